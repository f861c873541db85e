// SPDX-License-Identifier: Apache-2.0
/*
 * dali - what DALI's GPU reader of .npy files does with cuFile, call for call.
 *
 * Staging buffers of one chunk each lie side by side in one allocation and are
 * registered one by one. Threads open a batch of files twice each, register the
 * O_DIRECT descriptor, read headers by the other one, and fill stages from
 * offsets rounded down to 4096. Copies in a stream of their own take the bytes
 * to where they belong, and a stage is filled again after its copy. Readers
 * share the driver and the stages; the last one closes the driver.
 */
#include "fresh.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ALIGNED 4096
#define NR_STAGES 6

/* ------------------------------------------------------------- the stages */

struct stages {
	pthread_mutex_t lock;
	size_t chunk, nr; /* nr: chunks that are registered */
	CUdeviceptr raw;
	char *base;
	CUstream stream;
	CUevent copied;
	bool taken[NR_STAGES], copying[NR_STAGES];
};

/* Some cuFile closes descriptor 0 here, so DALI looks after it. */
static void scope_open(void)
{
	int kept = dup(STDIN_FILENO);

	assert_ok(cuFileDriverOpen());
	assert_true(fcntl(STDIN_FILENO, F_GETFL) >= 0);
	close(kept);
}

static void scope_close(void)
{
	assert_ok(cuFileDriverClose_v2());
	assert_true(fcntl(STDIN_FILENO, F_GETFL) >= 0);
}

static void stages_make(struct stages *s, size_t chunk)
{
	size_t size = (NR_STAGES + 1) * chunk;

	memset(s, 0, sizeof(*s));
	pthread_mutex_init(&s->lock, NULL);
	s->chunk = chunk;
	scope_open();
	assert_int_equal(cuMemAlloc(&s->raw, size), CUDA_SUCCESS);
	s->base = (char *)((s->raw + chunk - 1) / chunk * chunk);
	s->nr = (size - (size_t)((CUdeviceptr)s->base - s->raw)) / chunk;
	for (size_t i = 0; i < s->nr; i++)
		assert_ok(cuFileBufRegister(s->base + i * chunk, chunk, 0));
	assert_int_equal(cuStreamCreate(&s->stream, CF_CU_STREAM_NON_BLOCKING),
			 CUDA_SUCCESS);
	assert_int_equal(cuEventCreate(&s->copied, CF_CU_EVENT_DISABLE_TIMING),
			 CUDA_SUCCESS);
}

static void stages_end(struct stages *s)
{
	cuStreamSynchronize(s->stream);
	cuEventDestroy(s->copied);
	cuStreamDestroy(s->stream);
	for (size_t i = 0; i < s->nr; i++)
		assert_ok(cuFileBufDeregister(s->base + i * s->chunk));
	assert_int_equal(cuMemFree(s->raw), CUDA_SUCCESS);
	scope_close();
	pthread_mutex_destroy(&s->lock);
}

static int stage_take(struct stages *s)
{
	pthread_mutex_lock(&s->lock);
	for (;;) {
		for (int i = 0; i < NR_STAGES; i++)
			if (!s->taken[i]) {
				s->taken[i] = true;
				pthread_mutex_unlock(&s->lock);
				return i;
			}
		/* as many threads as stages: some copy is under way */
		cuEventSynchronize(s->copied);
		for (int i = 0; i < NR_STAGES; i++)
			if (s->copying[i])
				s->taken[i] = s->copying[i] = false;
	}
}

static bool stage_copy(struct stages *s, int i, CUdeviceptr to, size_t skip,
		       size_t n)
{
	CUdeviceptr from = (CUdeviceptr)s->base + i * s->chunk + skip;
	bool ok;

	pthread_mutex_lock(&s->lock);
	ok = !cuMemcpyDtoDAsync(to, from, n, s->stream) &&
	     !cuEventRecord(s->copied, s->stream);
	s->copying[i] = true;
	pthread_mutex_unlock(&s->lock);
	return ok;
}

/* -------------------------------------------------------------- the files */

struct sample {
	struct th_file file;
	unsigned char *bytes; /* of the whole file */
	size_t size, data_at;
	/* while its batch is read */
	int fdd, fd;
	CUfileHandle_t fh;
	size_t out; /* where its data go in the batch's memory */
};

static void sample_make(struct sample *a, enum th_file_kind kind,
			size_t data_at, size_t data)
{
	a->data_at = data_at;
	a->size = data_at + data;
	a->bytes = th_bytes(a->size);
	th_file_make(&a->file, kind, O_RDWR, a->bytes, a->size);
}

static void sample_end(struct sample *a)
{
	th_file_end(&a->file);
	free(a->bytes);
}

static bool sample_open(struct sample *a)
{
	CUfileDescr_t descr;
	struct stat st;
	unsigned char head[64];

	a->fdd = open(a->file.path, O_RDONLY | O_DIRECT);
	a->fd = open(a->file.path, O_RDONLY);
	if (a->fdd < 0 || a->fd < 0 || fstat(a->fd, &st))
		return false;
	memset(&descr, 0, sizeof(descr));
	descr.handle.fd = a->fdd;
	descr.type = CU_FILE_HANDLE_TYPE_OPAQUE_FD;
	if (cuFileHandleRegister(&a->fh, &descr).err)
		return false;
	return pread(a->fd, head, 10, 0) == 10 &&
	       pread(a->fd, head, sizeof(head), 10) == sizeof(head) &&
	       !memcmp(head, a->bytes + 10, sizeof(head));
}

static void sample_close(struct sample *a)
{
	cuFileHandleDeregister(a->fh);
	close(a->fd);
	close(a->fdd);
}

/* ------------------------------------------------------------- the reader */

struct piece {
	struct sample *sample;
	size_t at, n, skip, out;
};

struct batch {
	struct th_bad bad;
	struct stages *stages;
	struct sample *samples;
	size_t nr;
	CUdeviceptr out;
	struct piece *pieces;
	size_t nr_pieces;
	_Atomic size_t next_sample, next_piece;
};

static void open_some(void *arg, unsigned i)
{
	struct batch *b = arg;
	size_t at;

	(void)i;
	while ((at = b->next_sample++) < b->nr)
		if (!sample_open(&b->samples[at]))
			th_bad_note(&b->bad, "open: errno %d", errno);
}

static void read_some(void *arg, unsigned thread)
{
	struct batch *b = arg;
	size_t at;

	(void)thread;
	while ((at = b->next_piece++) < b->nr_pieces) {
		struct piece *p = &b->pieces[at];
		int i = stage_take(b->stages);
		char *stage = b->stages->base + i * b->stages->chunk;
		size_t done = 0;

		while (done < p->n) {
			ssize_t n =
				cuFileRead(p->sample->fh, stage, p->n - done,
					   (off_t)(p->at + done), (off_t)done);
			if (n <= 0) { /* DALI would read on for ever at 0 */
				th_bad_note(&b->bad, "read: %zd errno %d", n,
					    errno);
				break;
			}
			done += (size_t)n;
		}
		if (!stage_copy(b->stages, i, b->out + p->out, p->skip,
				p->n - p->skip))
			th_bad_note(&b->bad, "copy of piece %zu", at);
	}
}

/* Cuts the data of a sample as DALI does. */
static void schedule(struct batch *b, struct sample *a)
{
	size_t chunk = b->stages->chunk, at = a->data_at / ALIGNED * ALIGNED;
	size_t out = a->out;

	while (at < a->size) {
		struct piece p = { .sample = a, .at = at, .out = out };

		p.n = a->size - at < chunk ? a->size - at : chunk;
		if (at < a->data_at)
			p.skip = a->data_at - at;
		b->pieces[b->nr_pieces++] = p;
		at += p.n;
		out += p.n - p.skip;
	}
}

static void read_batch(struct stages *stages, struct sample *samples, size_t nr,
		       unsigned threads)
{
	struct batch b = { .stages = stages, .samples = samples, .nr = nr };
	size_t total = 0, pieces = 0;
	unsigned char *got;

	for (size_t i = 0; i < nr; i++) {
		samples[i].out = total;
		total += samples[i].size - samples[i].data_at;
		pieces += samples[i].size / stages->chunk + 2;
	}
	b.pieces = calloc(pieces, sizeof(*b.pieces));
	assert_non_null(b.pieces);
	assert_int_equal(cuMemAlloc(&b.out, total), CUDA_SUCCESS);
	th_threads(threads, open_some, &b);
	th_bad_check(&b.bad);
	for (size_t i = 0; i < nr; i++)
		schedule(&b, &samples[i]);
	th_threads(threads, read_some, &b);
	for (size_t i = 0; i < nr; i++)
		sample_close(&samples[i]);
	th_bad_check(&b.bad);

	assert_int_equal(cuStreamSynchronize(stages->stream), CUDA_SUCCESS);
	got = malloc(total);
	assert_non_null(got);
	assert_int_equal(cuMemcpyDtoH(got, b.out, total), CUDA_SUCCESS);
	for (size_t i = 0; i < nr; i++)
		th_equal("a sample", got + samples[i].out,
			 samples[i].bytes + samples[i].data_at,
			 samples[i].size - samples[i].data_at);
	free(got);
	cuMemFree(b.out);
	free(b.pieces);
}

static void read_files_of(enum th_file_kind kind, size_t chunk)
{
	static const size_t heads[] = { 80, 128, 4096, 4112, 65520 };
	struct sample samples[12];
	struct stages stages;
	size_t nr = sizeof(samples) / sizeof(samples[0]);

	th_need_gpu();
	for (size_t i = 0; i < nr; i++)
		sample_make(&samples[i], kind, heads[th_below(5)],
			    1 + th_below(i < 8 ? 3 * chunk : 64));
	for (unsigned epoch = 0; epoch < 4; epoch++) {
		stages_make(&stages, chunk);
		for (size_t at = 0; at < nr; at += 4)
			read_batch(&stages, samples + at, 4, 1 + epoch);
		for (size_t i = 0; i < nr; i++) { /* for the next epoch */
			th_fill(samples[i].bytes, samples[i].size);
			th_file_put(&samples[i].file, 0, samples[i].bytes,
				    samples[i].size);
		}
		read_batch(&stages, samples, nr, NR_STAGES);
		stages_end(&stages);
	}
	for (size_t i = 0; i < nr; i++)
		sample_end(&samples[i]);
}

static void chunks_of_2_mib(void **state)
{
	(void)state;
	read_files_of(TH_BUFFERED, TH_SCALE(2 * TH_MIB));
}

static void chunks_of_64_kib(void **state)
{
	(void)state;
	read_files_of(TH_BUFFERED, 64 * TH_KIB);
}

static void chunks_of_4_kib(void **state)
{
	(void)state;
	read_files_of(TH_BUFFERED, 4 * TH_KIB);
}

static void files_in_memory(void **state)
{
	int fd = open(th_shm_dir(), O_TMPFILE | O_RDWR | O_DIRECT, 0600);

	(void)state;
	if (fd < 0)
		th_skip("tmpfs has no O_DIRECT here");
	close(fd);
	read_files_of(TH_TMPFS, 64 * TH_KIB);
}

/* -------------------------------------------------------------- the rest */

struct reader {
	struct stages *stages;
	struct sample samples[4];
};

static void one_reader(void *arg, unsigned i)
{
	struct reader *r = (struct reader *)arg + i;

	for (unsigned turn = 0; turn < 8; turn++) {
		scope_open();
		read_batch(r->stages, r->samples, 4, 2);
		scope_close();
	}
}

/* Each opens the driver and closes it, while others read. */
static void three_readers_share_the_stages(void **state)
{
	struct reader readers[3];
	struct stages stages;

	(void)state;
	th_need_gpu();
	stages_make(&stages, 256 * TH_KIB);
	for (int i = 0; i < 3; i++) {
		readers[i].stages = &stages;
		for (int j = 0; j < 4; j++)
			sample_make(&readers[i].samples[j], TH_BUFFERED, 128,
				    TH_MIB + th_below(TH_MIB));
	}
	th_threads(3, one_reader, readers);
	stages_end(&stages);
	for (int i = 0; i < 3; i++)
		for (int j = 0; j < 4; j++)
			sample_end(&readers[i].samples[j]);
}

/* DALI takes the length when it opens, and reads to there. */
static void a_file_that_became_shorter_ends_in_0(void **state)
{
	struct stages stages;
	struct sample a;

	(void)state;
	th_need_gpu();
	stages_make(&stages, 64 * TH_KIB);
	sample_make(&a, TH_BUFFERED, 128, 200000);
	assert_true(sample_open(&a));
	assert_int_equal(ftruncate(a.file.plain, 70000), 0);
	assert_int_equal(cuFileRead(a.fh, stages.base, 65536, 65536, 0), 4464);
	assert_int_equal(cuFileRead(a.fh, stages.base, 61072, 70000, 4464), 0);
	assert_int_equal(cuFileRead(a.fh, stages.base, 65536, 131072, 0), 0);
	sample_close(&a);
	sample_end(&a);
	stages_end(&stages);
}

/* An allocation of 32 MiB in the smallest chunks that DALI permits. */
static void many_small_stages_register(void **state)
{
	size_t nr = TH_SCALE(8192);
	CUdeviceptr at;

	(void)state;
	th_need_gpu();
	scope_open();
	assert_int_equal(cuMemAlloc(&at, nr * ALIGNED), CUDA_SUCCESS);
	for (size_t i = 0; i < nr; i++)
		assert_ok(cuFileBufRegister((char *)at + i * ALIGNED, ALIGNED,
					    0));
	for (size_t i = 0; i < nr; i++)
		assert_ok(cuFileBufDeregister((char *)at + i * ALIGNED));
	cuMemFree(at);
	scope_close();
}

static const struct fresh_test tests[] = {
	FRESH(chunks_of_2_mib),
	FRESH(chunks_of_64_kib),
	FRESH(chunks_of_4_kib),
	FRESH(files_in_memory),
	FRESH(three_readers_share_the_stages),
	FRESH(a_file_that_became_shorter_ends_in_0),
	FRESH(many_small_stages_register),
};

FRESH_MAIN(tests, 30)

// SPDX-License-Identifier: Apache-2.0
/*
 * Many streams that wait for their IO at a time, on a driver whose streams
 * share eight hardware queues and where frees wait for an idle context and
 * keep nearly every other call out: nothing that must happen before such a
 * stream goes on may need the driver.
 *
 * A gun, a host function at the head of each stream, starts all of them at
 * once. The argument, if any, is a pattern of the tests to run.
 */
#include <fcntl.h>
#include <opencufile.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "harness.h"

#define MOST 24
#define GUARD ((size_t)4096)
#define SMALL (64 * TH_KIB)
#define ENTRIES 8
#define FUSE_NS 300000000u
#define LIMIT_S 60

struct lane {
	CUstream stream;
	struct th_mem mem; /* a guard, size bytes, a guard */
	CUfileBatchHandle_t batch;
	size_t size;
	off_t file_off, buf_off;
	ssize_t n;
};

struct held {
	unsigned nr;
	size_t size;
	unsigned char *file_bytes, *mem_bytes, *got;
	struct th_file file; /* gaps of a guard around each lane's bytes */
	CUfileHandle_t fh;
	struct lane lanes[MOST];
	_Atomic int fired;
	uint64_t fuse_ns; /* when the gun goes off by itself */
	_Atomic int over;
	struct th_bad bad;
};

static size_t file_size(const struct held *h)
{
	return h->nr * (h->size + GUARD) + GUARD;
}

static size_t mem_size(const struct held *h)
{
	return h->size + 2 * GUARD;
}

static void lane_init(struct held *h, unsigned i)
{
	struct lane *l = &h->lanes[i];

	th_mem_alloc(&l->mem, TH_DEVICE, mem_size(h));
	assert_int_equal(cuStreamCreate(&l->stream, CF_CU_STREAM_NON_BLOCKING),
			 0);
	assert_int_equal(cuFileBatchIOSetUp(&l->batch, ENTRIES).err, 0);
	l->size = h->size;
	l->file_off = (off_t)(GUARD + i * (h->size + GUARD));
	l->buf_off = GUARD;
}

static void held_init(struct held *h, unsigned nr, size_t size)
{
	*h = (struct held){ .nr = nr, .size = size };
	th_mem_need(TH_DEVICE);
	th_open();
	if (th_fake()) {
		th_fake()->channels(8);
		th_fake()->idle_calls(1);
	}
	h->file_bytes = th_bytes(file_size(h));
	h->mem_bytes = th_bytes(mem_size(h));
	h->got = malloc(file_size(h) + mem_size(h));
	assert_non_null(h->got);
	th_file_make(&h->file, TH_BUFFERED, O_RDWR, h->file_bytes,
		     file_size(h));
	h->fh = th_handle(h->file.fd);
	for (unsigned i = 0; i < nr; i++)
		lane_init(h, i);
}

static void held_fini(struct held *h)
{
	th_bad_check(&h->bad);
	for (unsigned i = 0; i < h->nr; i++) {
		cuFileBatchIODestroy(h->lanes[i].batch);
		assert_int_equal(cuStreamDestroy(h->lanes[i].stream), 0);
		th_mem_free(&h->lanes[i].mem);
	}
	cuFileHandleDeregister(h->fh);
	th_file_end(&h->file);
	free(h->file_bytes);
	free(h->mem_bytes);
	free(h->got);
	th_close();
}

/* --------------------------------------------------------------- rounds */

/* It goes off by itself: who frees meanwhile keeps the one who fires out. */
static void await_shot(void *arg)
{
	const struct held *h = arg;

	while (!atomic_load(&h->fired) && th_now_ns() < h->fuse_ns)
		th_sleep_ms(1);
}

static CUfileError_t submit(struct held *h, struct lane *l, bool write)
{
	l->n = -1;
	return write ? cuFileWriteAsync(h->fh, l->mem.ptr, &l->size,
					&l->file_off, &l->buf_off, &l->n,
					l->stream) :
		       cuFileReadAsync(h->fh, l->mem.ptr, &l->size,
				       &l->file_off, &l->buf_off, &l->n,
				       l->stream);
}

/* The bytes of a lane in pieces, the last one first. */
static CUfileError_t submit_batch(struct held *h, struct lane *l)
{
	CUfileIOParams_t params[ENTRIES];
	size_t piece = l->size / ENTRIES;

	l->n = -1;
	for (unsigned i = 0; i < ENTRIES; i++) {
		off_t at = (off_t)((ENTRIES - 1 - i) * piece);

		params[i] = (CUfileIOParams_t){ .mode = CUFILE_BATCH,
						.fh = h->fh,
						.opcode = CUFILE_READ };
		params[i].u.batch.devPtr_base = l->mem.ptr;
		params[i].u.batch.devPtr_offset = l->buf_off + at;
		params[i].u.batch.file_offset = l->file_off + at;
		params[i].u.batch.size = piece;
	}
	return ocf_batch_submit_stream(l->batch, ENTRIES, params, 0, l->stream);
}

static void reap(struct lane *l)
{
	CUfileIOEvents_t events[ENTRIES];
	struct timespec none = { 0, 0 };
	unsigned nr = ENTRIES;

	if (cuFileBatchIOGetStatus(l->batch, 0, &nr, events, &none).err)
		return;
	l->n = 0;
	for (unsigned i = 0; i < nr; i++)
		if (events[i].status == CUFILE_COMPLETE)
			l->n += (ssize_t)events[i].ret;
}

enum what { READS, WRITES, BATCHES };

/* All lanes at once, until all are through. */
static void volley(struct held *h, enum what what)
{
	CUfileError_t e;

	atomic_store(&h->fired, 0);
	h->fuse_ns = th_now_ns() + FUSE_NS;
	for (unsigned i = 0; i < h->nr; i++) {
		struct lane *l = &h->lanes[i];

		if (cuLaunchHostFunc(l->stream, await_shot, h))
			th_bad_note(&h->bad, "no host function");
		e = what == BATCHES ? submit_batch(h, l) :
				      submit(h, l, what == WRITES);
		if (e.err)
			th_bad_note(&h->bad, "lane %u is refused: %d", i,
				    (int)e.err);
	}
	atomic_store(&h->fired, 1);
	for (unsigned i = 0; i < h->nr; i++) {
		struct lane *l = &h->lanes[i];

		if (cuStreamSynchronize(l->stream))
			th_bad_note(&h->bad, "the stream is broken");
		if (what == BATCHES)
			reap(l);
		if (l->n != (ssize_t)l->size)
			th_bad_note(&h->bad, "lane %u answers %zd", i, l->n);
	}
}

/* Fresh bytes in the file; others in all memory. */
static void renew(struct held *h)
{
	th_fill(h->file_bytes, file_size(h));
	th_file_put(&h->file, 0, h->file_bytes, file_size(h));
	th_fill(h->mem_bytes, mem_size(h));
	for (unsigned i = 0; i < h->nr; i++)
		th_mem_put(&h->lanes[i].mem, 0, h->mem_bytes, mem_size(h));
}

static void check_lane(struct held *h, struct lane *l, unsigned char *got)
{
	th_mem_get(&l->mem, 0, got, mem_size(h));
	if (memcmp(got, h->mem_bytes, GUARD) ||
	    memcmp(got + GUARD + h->size, h->mem_bytes + GUARD + h->size,
		   GUARD))
		th_bad_note(&h->bad, "a neighbour has changed");
	if (memcmp(got + GUARD, h->file_bytes + l->file_off, h->size))
		th_bad_note(&h->bad, "wrong bytes were read");
}

static void reading_rounds(struct held *h, enum what what, unsigned rounds)
{
	for (unsigned round = 0; round < rounds; round++) {
		renew(h);
		volley(h, what);
		for (unsigned i = 0; i < h->nr; i++)
			check_lane(h, &h->lanes[i], h->got);
	}
}

static void many_streams_read_at_once(void **state)
{
	struct held h;

	held_init(&h, MOST, SMALL);
	reading_rounds(&h, READS, TH_SCALE(8));
	held_fini(&h);
}

static void a_dozen_streams_make_large_reads_at_once(void **state)
{
	struct held h;

	held_init(&h, 12, 16 * TH_MIB);
	reading_rounds(&h, READS, 2);
	held_fini(&h);
}

static void a_dozen_streams_have_batches_at_once(void **state)
{
	struct held h;

	held_init(&h, 12, SMALL);
	reading_rounds(&h, BATCHES, TH_SCALE(8));
	held_fini(&h);
}

/* Each lane writes bytes of its own: a file as large as all of them. */
static void many_streams_write_at_once(void **state)
{
	struct held h;

	held_init(&h, MOST, SMALL);
	for (int round = 0; round < TH_SCALE(8); round++) {
		renew(&h);
		for (unsigned i = 0; i < h.nr; i++) {
			unsigned char *own = h.file_bytes + h.lanes[i].file_off;

			th_fill(own, h.size);
			th_mem_put(&h.lanes[i].mem, GUARD, own, h.size);
		}
		volley(&h, WRITES);
		th_file_get(&h.file, 0, h.got, file_size(&h));
		th_equal("the file", h.got, h.file_bytes, file_size(&h));
		assert_int_equal(th_file_size(&h.file), file_size(&h));
	}
	held_fini(&h);
}

/* -------------------------------------------------------- and meanwhile */

/* Memory of the client's own comes and goes. */
static void come_and_go(struct held *h)
{
	void *own = mmap(NULL, SMALL, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (int i = 0; i < TH_SCALE(60); i++) {
		CUdeviceptr d;

		if (cuMemAlloc(&d, SMALL) || cuMemHostRegister(own, SMALL, 0) ||
		    cuMemHostUnregister(own) || cuMemFree(d))
			th_bad_note(&h->bad, "the client's calls fail");
	}
	munmap(own, SMALL);
	atomic_store(&h->over, 1);
}

/* Its own lane, again and again until the client has done its calls. */
static void read_until_over(void *arg, unsigned i)
{
	struct held *h = arg;
	struct lane *l = &h->lanes[i];
	unsigned char *got = malloc(mem_size(h));

	if (i == h->nr) {
		come_and_go(h);
		free(got);
		return;
	}
	do {
		th_mem_put(&l->mem, 0, h->mem_bytes, mem_size(h));
		if (submit(h, l, false).err || cuStreamSynchronize(l->stream) ||
		    l->n != (ssize_t)l->size)
			th_bad_note(&h->bad, "the read answers %zd", l->n);
		check_lane(h, l, got);
	} while (!atomic_load(&h->over));
	free(got);
}

static void a_client_frees_and_unregisters_while_streams_read(void **state)
{
	struct held h;

	held_init(&h, 4, SMALL);
	th_threads(h.nr + 1, read_until_over, &h);
	held_fini(&h);
}

#define READERS 4

struct meanwhile {
	struct held h;
	struct th_mem mem[READERS];
};

static void read_plainly(struct meanwhile *m, struct th_mem *mem)
{
	unsigned char *got = malloc(mem->size);
	struct held *h = &m->h;

	do {
		size_t n = 1 + th_below(mem->size);
		off_t at = (off_t)th_below(file_size(h) - n);

		if (cuFileRead(h->fh, mem->ptr, n, at, 0) != (ssize_t)n)
			th_bad_note(&h->bad, "a plain read ends short");
		th_mem_get(mem, 0, got, n);
		if (memcmp(got, h->file_bytes + at, n))
			th_bad_note(&h->bad, "wrong bytes, read plainly");
	} while (!atomic_load(&h->over));
	free(got);
}

static void read_both_ways(void *arg, unsigned i)
{
	struct meanwhile *m = arg;
	struct held *h = &m->h;

	if (i < READERS) {
		read_plainly(m, &m->mem[i]);
		return;
	}
	for (int round = 0; round < TH_SCALE(8); round++) {
		volley(h, READS);
		for (unsigned k = 0; k < h->nr; k++)
			check_lane(h, &h->lanes[k], h->got);
		for (unsigned k = 0; k < h->nr; k++)
			th_mem_put(&h->lanes[k].mem, 0, h->mem_bytes,
				   mem_size(h));
	}
	atomic_store(&h->over, 1);
}

static void threads_read_while_many_streams_do(void **state)
{
	struct meanwhile m;

	held_init(&m.h, 12, SMALL);
	renew(&m.h);
	for (int i = 0; i < READERS; i++)
		th_mem_alloc(&m.mem[i], TH_DEVICE, SMALL);
	th_threads(READERS + 1, read_both_ways, &m);
	for (int i = 0; i < READERS; i++)
		th_mem_free(&m.mem[i]);
	held_fini(&m.h);
}

/* -------------------------------------------------- the first operation */

#define QUEUES 8
#define SUBMITTED_MS 20000 /* or it waits for what the client does next */

struct waiting {
	struct held h;
	CUstream streams[QUEUES];
	uint32_t *word; /* what they wait for */
	_Atomic int submitted;
};

static void waiting_init(struct waiting *w)
{
	held_init(&w->h, 1, SMALL);
	renew(&w->h);
	atomic_store(&w->submitted, 0);
	assert_int_equal(cuMemHostAlloc((void **)&w->word, 4096, 0), 0);
	*w->word = 0;
	for (int i = 0; i < QUEUES; i++) {
		CUstream *s = &w->streams[i];

		assert_int_equal(cuStreamCreate(s, CF_CU_STREAM_NON_BLOCKING),
				 0);
		assert_int_equal(
			cuStreamWaitValue32(*s, (uintptr_t)w->word, 1,
					    CF_CU_STREAM_WAIT_VALUE_EQ),
			0);
	}
	th_sleep_ms(20); /* they have come to it */
}

static void waiting_fini(struct waiting *w)
{
	for (int i = 0; i < QUEUES; i++) {
		/* the word is theirs until they are past it */
		assert_int_equal(cuStreamSynchronize(w->streams[i]), 0);
		assert_int_equal(cuStreamDestroy(w->streams[i]), 0);
	}
	assert_int_equal(cuMemFreeHost(w->word), 0);
	held_fini(&w->h);
}

static void submit_or_open(void *arg, unsigned i)
{
	struct waiting *w = arg;

	if (i == 0) {
		if (submit(&w->h, &w->h.lanes[0], false).err)
			th_bad_note(&w->h.bad, "the read is refused");
		atomic_store(&w->submitted, 1);
		return;
	}
	for (int ms = 0; ms < SUBMITTED_MS && !atomic_load(&w->submitted); ms++)
		th_sleep_ms(1);
	if (!atomic_load(&w->submitted))
		th_bad_note(&w->h.bad, "it waits for the others");
	__atomic_store_n(w->word, 1, __ATOMIC_RELEASE);
}

/* What it could not try then is tried later. */
static void read_until_near(struct waiting *w)
{
	struct lane *l = &w->h.lanes[0];
	unsigned long before = th_ferry_near();

	while (th_ferry_near() == before) {
		renew(&w->h);
		assert_int_equal(submit(&w->h, l, false).err, 0);
		assert_int_equal(cuStreamSynchronize(l->stream), 0);
		assert_int_equal(l->n, l->size);
		check_lane(&w->h, l, w->h.got);
	}
}

/* Ours too, while they hold all queues. */
static void the_first_operation_of_a_context_waits_for_no_stream(void **state)
{
	struct waiting w;

	waiting_init(&w);
	th_threads(2, submit_or_open, &w);
	assert_int_equal(cuStreamSynchronize(w.h.lanes[0].stream), 0);
	assert_int_equal(w.h.lanes[0].n, w.h.size);
	check_lane(&w.h, &w.h.lanes[0], w.h.got);
	if (th_fake() && getenv("FAKECUDA_VERSION"))
		read_until_near(&w);
	waiting_fini(&w);
}

/* opencufile.stream_ferry; a few streams get on without it. */
static void the_kernel_is_in_streams_unless_it_is_switched_off(void **state)
{
	th_need_fake();
	for (int on = 0; on < 2; on++) {
		unsigned long before = th_ferry_launches();
		struct held h;

		setenv("OCF_STREAM_FERRY", on ? "true" : "false", 1);
		held_init(&h, 2, SMALL);
		renew(&h);
		volley(&h, READS);
		for (unsigned k = 0; k < h.nr; k++)
			check_lane(&h, &h.lanes[k], h.got);
		held_fini(&h);
		assert_int_equal(th_ferry_launches() - before, on ? 2 : 0);
	}
	unsetenv("OCF_STREAM_FERRY");
}

/* A watchdog for each test alone. */
static int setup(void **state)
{
	alarm(4 * LIMIT_S);
	return 0;
}

#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, setup, th_teardown_close)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(many_streams_read_at_once),
		TEST(many_streams_write_at_once),
		TEST(a_dozen_streams_make_large_reads_at_once),
		TEST(a_dozen_streams_have_batches_at_once),
		TEST(a_client_frees_and_unregisters_while_streams_read),
		TEST(threads_read_while_many_streams_do),
		TEST(the_first_operation_of_a_context_waits_for_no_stream),
		TEST(the_kernel_is_in_streams_unless_it_is_switched_off),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	th_start(LIMIT_S);
	return th_finish(
		cmocka_run_group_tests_name("stream_held", tests, NULL, NULL));
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Many threads on one handle, many handles, and many writers in one block of
 * one O_DIRECT file: nobody's bytes are lost.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "harness.h"

#define NR_THREADS 16

static bool moved(struct th_bad *bad, const char *what, ssize_t n, size_t want)
{
	if (n == (ssize_t)want)
		return true;
	th_bad_note(bad, "%s: %zd instead of %zu, errno %d", what, n, want,
		    errno);
	return false;
}

/* ------------------------------------------------------ interleaved tasks */

/* A file is cut into tasks; thread i writes tasks i, i + 16, i + 32, ... */
struct weave {
	struct th_bad bad;
	CUfileHandle_t fh;
	struct th_mem mem;
	size_t task, total;
};

static void write_every_16th_task(void *arg, unsigned i)
{
	struct weave *w = arg;

	for (size_t at = i * w->task; at < w->total;
	     at += NR_THREADS * w->task) {
		size_t n = w->total - at < w->task ? w->total - at : w->task;

		moved(&w->bad, "write",
		      cuFileWrite(w->fh, w->mem.ptr, n, (off_t)at, (off_t)at),
		      n);
	}
}

static void weave(enum th_mem_kind kind, size_t task)
{
	struct weave w = { .task = task, .total = TH_SCALE(TH_MIB) + 333 };
	unsigned char *bytes, *got;
	struct th_file file;

	th_mem_need(kind);
	bytes = th_bytes(w.total);
	got = th_bytes(w.total);
	th_mem_alloc(&w.mem, kind, w.total);
	th_mem_put(&w.mem, 0, bytes, w.total);
	th_file_make(&file, TH_ODIRECT, O_RDWR, NULL, 0);
	w.fh = th_handle(file.fd);
	th_threads(NR_THREADS, write_every_16th_task, &w);
	th_bad_check(&w.bad);
	assert_int_equal(th_file_size(&file), w.total);
	th_file_get(&file, 0, got, w.total);
	th_equal("tasks woven into one file", got, bytes, w.total);
	cuFileHandleDeregister(w.fh);
	th_file_end(&file);
	th_mem_free(&w.mem);
	free(bytes);
	free(got);
}

static void sixteen_threads_weave_199_byte_tasks(void **state)
{
	weave(*(enum th_mem_kind *)*state, 199);
}

static void sixteen_threads_weave_1000_byte_tasks(void **state)
{
	weave(*(enum th_mem_kind *)*state, 1000);
}

static void sixteen_threads_weave_5000_byte_tasks(void **state)
{
	weave(*(enum th_mem_kind *)*state, 5000);
}

/* --------------------------------------------------- two writers, a block */

struct duel {
	struct th_bad bad;
	pthread_barrier_t barrier;
	struct th_file file;
	CUfileHandle_t fh;
	unsigned rounds;
	size_t border; /* thread 0 writes below it, thread 1 above */
	size_t end;
};

static void check_halves(struct duel *d, unsigned char *got, int byte)
{
	th_file_get(&d->file, 0, got, d->end);
	for (size_t at = 0; at < d->end; at++)
		if (got[at] != (byte ^ (at < d->border ? 0 : 0x80))) {
			th_bad_note(&d->bad, "round %d: byte %zu is 0x%02x",
				    byte, at, got[at]);
			return;
		}
}

static void write_own_half(void *arg, unsigned i)
{
	struct duel *d = arg;
	size_t from = i ? d->border : 0;
	size_t size = i ? d->end - d->border : d->border;
	unsigned char *got = malloc(d->end);
	struct th_mem mem;

	th_mem_alloc(&mem, TH_DEVICE, size);
	for (unsigned r = 1; r <= d->rounds; r++) {
		int byte = (int)(r & 0x7f) ^ (i ? 0x80 : 0);

		th_mem_set(&mem, byte);
		pthread_barrier_wait(&d->barrier);
		moved(&d->bad, "half",
		      cuFileWrite(d->fh, mem.ptr, size, (off_t)from, 0), size);
		pthread_barrier_wait(&d->barrier);
		if (!i)
			check_halves(d, got, (int)(r & 0x7f));
	}
	th_mem_free(&mem);
	free(got);
}

static void two_writers_in_one_block_disturb_nobody(void **state)
{
	static const struct {
		size_t border, end;
	} duels[] = {
		{ 2000, 4096 },		  /* inside one block */
		{ 4096 + 100, 3 * 4096 }, /* whole blocks on both sides */
		{ TH_MIB + 100, 2 * TH_MIB + 50 }, /* slots on both sides */
	};

	(void)state;
	th_mem_need(TH_DEVICE);
	for (size_t i = 0; i < 3; i++) {
		struct duel d = { .border = duels[i].border,
				  .end = duels[i].end,
				  .rounds = i == 2 ? 10 : TH_SCALE(100) };

		pthread_barrier_init(&d.barrier, NULL, 2);
		th_file_make(&d.file, TH_ODIRECT, O_RDWR, NULL, 0);
		d.fh = th_handle(d.file.fd);
		th_threads(2, write_own_half, &d);
		th_bad_check(&d.bad);
		assert_int_equal(th_file_size(&d.file), d.end);
		cuFileHandleDeregister(d.fh);
		th_file_end(&d.file);
		pthread_barrier_destroy(&d.barrier);
	}
}

/* ------------------------------------------------- one handle, many hands */

#define OWN (512 * TH_KIB)

struct crowd {
	struct th_bad bad;
	struct th_file file;
	CUfileHandle_t fh;
	unsigned rounds;
};

static void check_bytes(struct th_bad *bad, const char *what,
			const unsigned char *got, const unsigned char *want,
			size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (got[i] != want[i]) {
			th_bad_note(bad,
				    "%s: byte %zu of %zu is 0x%02x not "
				    "0x%02x",
				    what, i, size, got[i], want[i]);
			return;
		}
}

/* Writes a random range of its own part and reads it back elsewhere. */
static void there_and_back(struct crowd *c, CUfileHandle_t fh, size_t start,
			   const struct th_mem *mem)
{
	size_t at = th_below(OWN - 1), size = 1 + th_below(OWN - at);
	size_t back = th_below(OWN - size + 1);
	unsigned char *bytes = th_bytes(size), *got = th_bytes(size);

	th_mem_put(mem, at, bytes, size);
	moved(&c->bad, "write",
	      cuFileWrite(fh, mem->ptr, size, (off_t)(start + at), (off_t)at),
	      size);
	moved(&c->bad, "read",
	      cuFileRead(fh, mem->ptr, size, (off_t)(start + at),
			 (off_t)(OWN + back)),
	      size);
	th_mem_get(mem, OWN + back, got, size);
	check_bytes(&c->bad, "there and back", got, bytes, size);
	free(bytes);
	free(got);
}

static void work_in_own_part(void *arg, unsigned i)
{
	struct crowd *c = arg;
	enum th_mem_kind kind = i % TH_NR_MEM_KINDS;
	struct th_mem mem;

	th_mem_alloc(&mem, kind == TH_SECOND ? TH_DEVICE : kind, 2 * OWN);
	for (unsigned r = 0; r < c->rounds; r++)
		there_and_back(c, c->fh, i * OWN, &mem);
	th_mem_free(&mem);
}

static void many_threads_share_one_handle(void **state)
{
	struct crowd c = { .rounds = TH_SCALE(20) };

	th_need_gpu();
	th_file_make(&c.file, *(enum th_file_kind *)*state, O_RDWR, NULL,
		     NR_THREADS * OWN);
	c.fh = th_handle(c.file.fd);
	th_threads(NR_THREADS, work_in_own_part, &c);
	th_bad_check(&c.bad);
	cuFileHandleDeregister(c.fh);
	th_file_end(&c.file);
}

static void register_work_deregister(void *arg, unsigned i)
{
	struct crowd *c = arg;
	struct th_mem mem;

	th_mem_alloc(&mem, i & 1 ? TH_DEVICE : TH_MALLOC, 2 * OWN);
	for (unsigned r = 0; r < c->rounds; r++) {
		struct th_file file;
		CUfileHandle_t fh;

		th_file_make(&file, r & 1 ? TH_ODIRECT : TH_TMPFS, O_RDWR, NULL,
			     0);
		fh = th_handle(file.fd);
		if (cuFileBufRegister(mem.ptr, 2 * OWN, 0).err)
			th_bad_note(&c->bad, "buffer register");
		there_and_back(c, fh, 0, &mem);
		if (cuFileBufDeregister(mem.ptr).err)
			th_bad_note(&c->bad, "buffer deregister");
		cuFileHandleDeregister(fh);
		th_file_end(&file);
	}
	th_mem_free(&mem);
}

static void many_threads_have_a_handle_each(void **state)
{
	struct crowd c = { .rounds = 2 }; /* one of each kind */
	int fds;

	(void)state;
	th_need_gpu();
	register_work_deregister(&c, 1);
	/* idle rings and the log are closed with the driver */
	th_close();
	fds = th_count_fds();
	th_open();
	c.rounds = TH_SCALE(12);
	th_threads(NR_THREADS, register_work_deregister, &c);
	th_bad_check(&c.bad);
	th_close();
	assert_int_equal(th_count_fds(), fds);
}

static void hundreds_of_handles_are_open_at_once(void **state)
{
	enum { NR = 300 }; /* two descriptors each, under the usual limit */
	static struct th_file files[NR];
	static CUfileHandle_t fhs[NR];
	struct th_mem mem;

	(void)state;
	th_mem_need(TH_MALLOC);
	th_mem_alloc(&mem, TH_MALLOC, 4096);
	for (int i = 0; i < NR; i++) {
		th_file_make(&files[i], TH_TMPFS, O_RDWR, NULL, 0);
		fhs[i] = th_handle(files[i].fd);
		for (int j = 0; j < i; j += 50)
			assert_ptr_not_equal(fhs[i], fhs[j]);
	}
	for (int i = 0; i < NR; i++) {
		th_mem_set(&mem, i & 0xff);
		assert_int_equal(cuFileWrite(fhs[i], mem.ptr, 100, i, 0), 100);
	}
	for (int i = 0; i < NR; i++) {
		unsigned char got[100];

		assert_int_equal(th_file_size(&files[i]), i + 100);
		th_file_get(&files[i], i, got, 100);
		th_all("each file has its own bytes", got, i & 0xff, 100);
		cuFileHandleDeregister(fhs[i]);
		th_file_end(&files[i]);
	}
	th_mem_free(&mem);
}

/* ------------------------------------------------ leaving while others work */

struct leaving {
	struct th_bad bad;
	CUfileHandle_t fh;
	struct th_mem mem[4];
};

static void read_until_refused(void *arg, unsigned i)
{
	struct leaving *l = arg;
	ssize_t n;

	if (!i) {
		th_sleep_ms(20);
		cuFileHandleDeregister(l->fh);
		/* from here on nobody may be inside */
		if (cuFileRead(l->fh, l->mem[0].ptr, 1, 0, 0) != -1 ||
		    errno != EINVAL)
			th_bad_note(&l->bad, "a read after deregister works");
		return;
	}
	do {
		n = cuFileRead(l->fh, l->mem[i - 1].ptr, 300000, 0, 0);
		if (n < 0 ? errno != EINVAL : n != 300000)
			th_bad_note(&l->bad, "read: %zd, errno %d", n, errno);
	} while (n > 0);
}

static void deregister_waits_for_reads_and_refuses_new_ones(void **state)
{
	struct leaving l = { 0 };
	unsigned char *bytes = th_bytes(300000);
	struct th_file file;

	(void)state;
	th_mem_need(TH_DEVICE);
	for (int round = 0; round < 5; round++) {
		th_file_make(&file, round & 1 ? TH_ODIRECT : TH_TMPFS, O_RDWR,
			     bytes, 300000);
		for (int i = 0; i < 4; i++)
			th_mem_alloc(&l.mem[i], i & 1 ? TH_DEVICE : TH_MALLOC,
				     300000);
		l.fh = th_handle(file.fd);
		th_threads(5, read_until_refused, &l);
		th_bad_check(&l.bad);
		for (int i = 0; i < 4; i++)
			th_mem_free(&l.mem[i]);
		th_file_end(&file);
	}
	free(bytes);
}

#define TEST(test) \
	cmocka_unit_test_setup_teardown(test, th_setup_open, th_teardown_close)
#define EACH(test, type, which) \
	{ \
		.name = #test " (" #which ")", .test_func = test, \
		.setup_func = th_setup_open, \
		.teardown_func = th_teardown_close, \
		.initial_state = &(enum type) \
		{ \
			which \
		} \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		EACH(sixteen_threads_weave_199_byte_tasks, th_mem_kind,
		     TH_DEVICE),
		EACH(sixteen_threads_weave_199_byte_tasks, th_mem_kind,
		     TH_MALLOC),
		EACH(sixteen_threads_weave_1000_byte_tasks, th_mem_kind,
		     TH_DEVICE),
		EACH(sixteen_threads_weave_1000_byte_tasks, th_mem_kind,
		     TH_MALLOC),
		EACH(sixteen_threads_weave_5000_byte_tasks, th_mem_kind,
		     TH_DEVICE),
		EACH(sixteen_threads_weave_5000_byte_tasks, th_mem_kind,
		     TH_MALLOC),
		TEST(two_writers_in_one_block_disturb_nobody),
		EACH(many_threads_share_one_handle, th_file_kind, TH_BUFFERED),
		EACH(many_threads_share_one_handle, th_file_kind, TH_ODIRECT),
		EACH(many_threads_share_one_handle, th_file_kind, TH_TMPFS),
		TEST(many_threads_have_a_handle_each),
		TEST(hundreds_of_handles_are_open_at_once),
		TEST(deregister_waits_for_reads_and_refuses_new_ones),
	};

	th_start(110);
	return th_finish(
		cmocka_run_group_tests_name("threads", tests, NULL, NULL));
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Launches that wait for their kernels, as CUDA_LAUNCH_BLOCKING has it, and
 * debuggers and profilers may: the kernel in a stream waits for a worker while
 * the thread that submits waits for the kernel.
 */
#include <stdlib.h>
#include <string.h>
#include "stream_world.h"

#define FILE_SIZE (12 * TH_MIB)
#define APART 4099
#define THREADS 4
#define ROUNDS 8

static const size_t sizes[] = { 1, 4096, 65536, TH_MIB + 13, 4 * TH_MIB };
#define NR_SIZES (sizeof(sizes) / sizeof(sizes[0]))

static void read_all_sizes(struct world *w)
{
	off_t at = 0;

	for (size_t i = 0; i < NR_SIZES; i++) {
		struct io io = { sizes[i],
				 (off_t)th_below(FILE_SIZE - sizes[i]), at,
				 -1 };

		read_async(w, &io);
		synchronise(w);
		expect(w, &io);
		at += (off_t)(sizes[i] + APART);
	}
	check(w);
}

/* In each of two sessions three operations find out; the others are served at
 * once. */
static void reads_of_any_size_come_back(void **state)
{
	unsigned long near = th_ferry_near();
	struct world w;

	(void)state;
	for (unsigned flags = 0; flags <= FIXED; flags += FIXED) {
		world_init(&w, FILE_SIZE, FILE_SIZE, flags);
		read_all_sizes(&w);
		world_blank(&w);
		read_all_sizes(&w);
		world_fini(&w);
	}
	assert_in_range(th_ferry_near() - near, 0, 2 * 3);
}

static void write_async(struct world *w, struct io *io)
{
	assert_int_equal(cuFileWriteAsync(w->fh, w->mem.ptr, &io->size,
					  &io->file_off, &io->buf_off, &io->n,
					  w->stream)
				 .err,
			 0);
}

static void writes_of_any_size_come_back(void **state)
{
	unsigned char *fresh = th_bytes(FILE_SIZE);
	struct world w;

	(void)state;
	world_init(&w, FILE_SIZE, FILE_SIZE, 0);
	th_mem_put(&w.mem, 0, fresh, FILE_SIZE);
	for (size_t i = 0; i < NR_SIZES; i++) {
		size_t room = FILE_SIZE - sizes[i];
		struct io io = { sizes[i], (off_t)th_below(room),
				 (off_t)th_below(room), -1 };

		write_async(&w, &io);
		synchronise(&w);
		assert_int_equal(io.n, sizes[i]);
		memcpy(w.bytes + io.file_off, fresh + io.buf_off, sizes[i]);
	}
	th_file_get(&w.file, 0, w.got, FILE_SIZE);
	th_equal("file", w.got, w.bytes, FILE_SIZE);
	free(fresh);
	world_fini(&w);
}

struct crowd {
	struct world w;
	struct th_bad bad;
};

/* Each into its part of the memory, and no two reads alike. */
static void read_in_own_stream(void *arg, unsigned i)
{
	const size_t part = FILE_SIZE / THREADS;
	struct crowd *c = arg;
	CUstream stream;

	if (cuStreamCreate(&stream, CF_CU_STREAM_NON_BLOCKING)) {
		th_bad_note(&c->bad, "no stream");
		return;
	}
	for (int round = 0; round < ROUNDS; round++) {
		size_t at = (size_t)round * (part / ROUNDS);
		struct io io = { 1 + th_below(part / ROUNDS),
				 (off_t)(i * part + at), (off_t)(i * part + at),
				 -1 };

		if (cuFileReadAsync(c->w.fh, c->w.mem.ptr, &io.size,
				    &io.file_off, &io.buf_off, &io.n, stream)
			    .err ||
		    cuStreamSynchronize(stream) || io.n != (ssize_t)io.size)
			th_bad_note(&c->bad, "a read of %zu answers %zd",
				    io.size, io.n);
		else
			memcpy(c->w.want + io.buf_off, c->w.bytes + io.file_off,
			       io.size);
	}
	cuStreamDestroy(stream);
}

static void threads_do_not_wait_for_each_other(void **state)
{
	struct crowd c = { .bad = { 0 } };

	(void)state;
	world_init(&c.w, FILE_SIZE, FILE_SIZE, 0);
	th_threads(THREADS, read_in_own_stream, &c);
	th_bad_check(&c.bad);
	check(&c.w);
	world_fini(&c.w);
}

static void plain_reads_go_on_between_them(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, FILE_SIZE, FILE_SIZE, 0);
	for (int i = 0; i < 200; i++) {
		struct io io = { 4096, (off_t)th_below(FILE_SIZE - 4096),
				 (off_t)i * APART, -1 };

		if (i % 2)
			read_async(&w, &io);
		else
			io.n = cuFileRead(w.fh, w.mem.ptr, io.size, io.file_off,
					  io.buf_off);
		synchronise(&w);
		expect(&w, &io);
	}
	check(&w);
	world_fini(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_of_any_size_come_back),
		cmocka_unit_test(writes_of_any_size_come_back),
		cmocka_unit_test(threads_do_not_wait_for_each_other),
		cmocka_unit_test(plain_reads_go_on_between_them),
	};

	setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
	th_start(150);
	return th_finish(cmocka_run_group_tests_name("stream_blocking", tests,
						     NULL, NULL));
}

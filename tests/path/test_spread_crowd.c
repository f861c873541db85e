// SPDX-License-Identifier: Apache-2.0
/*
 * Writes to tmpfs beside others: threads of the client's, entries of a batch,
 * and those in a stream go by the file's pages, too.
 */
#include <pthread.h>
#include "seam/cuda.h"
#include "spread_world.h"

#define WRITERS 6

struct crowd {
	struct world w;
	size_t share; /* of the file: or two write each */
	pthread_barrier_t begin;
	struct th_bad bad;
};

static void write_share(void *arg, unsigned i)
{
	struct crowd *c = arg;
	size_t at = i % (SIZE / c->share) * c->share;
	ssize_t n;

	pthread_barrier_wait(&c->begin);
	n = cuFileWrite(c->w.fh, c->w.mem.ptr, c->share, (off_t)at, (off_t)at);
	if (n != (ssize_t)c->share)
		th_bad_note(&c->bad, "thread %u: %zd", i, n);
}

static void crowd_writes(size_t share)
{
	struct crowd c = { .share = share };
	size_t all = share * WRITERS < SIZE ? share * WRITERS : SIZE;

	world_of(&c.w, TH_DEVICE, 0);
	pthread_barrier_init(&c.begin, NULL, WRITERS);
	for (unsigned round = 0; round < 400 && !copied; round++) {
		th_fill(c.w.model, all);
		th_mem_put(&c.w.mem, 0, c.w.model, all);
		th_threads(WRITERS, write_share, &c);
		th_bad_check(&c.bad);
		check_file(&c.w);
	}
	assert_true(copied);
	pthread_barrier_destroy(&c.begin);
	copied = 0;
	assert_int_equal(write_new(&c.w, 0, LARGE, 0), LARGE);
	assert_int_equal(copied, 0);
	world_end(&c.w);
}

/* Who has no helpers waits for nobody. */
static void many_that_write_one_file_map_it(void **state)
{
	crowd_writes(8 * TH_MIB);
}

static void they_do_so_for_a_mebibyte_each(void **state)
{
	crowd_writes(TH_MIB);
}

/* More workers than two take what need not wait for one another. */
static void entries_of_a_batch_map_it(void **state)
{
	static const size_t sizes[] = { TH_MIB, TH_MIB + 77, 4 * TH_MIB };
	CUfileIOParams_t io[WRITERS] = { 0 };
	CUfileBatchHandle_t batch;
	struct world w;

	world_make(&w, TH_DEVICE);
	assert_int_equal(cuFileBatchIOSetUp(&batch, WRITERS).err, 0);
	for (unsigned round = 0; round < 400 && !copied; round++) {
		CUfileIOEvents_t events[WRITERS];
		size_t size = sizes[round % 3];
		unsigned nr = WRITERS;

		th_fill(w.model, size * WRITERS);
		th_mem_put(&w.mem, 0, w.model, size * WRITERS);
		for (unsigned i = 0; i < WRITERS; i++) {
			io[i].mode = CUFILE_BATCH;
			io[i].fh = w.fh;
			io[i].opcode = CUFILE_WRITE;
			io[i].u.batch.devPtr_base = w.mem.ptr;
			io[i].u.batch.file_offset = (off_t)(i * size);
			io[i].u.batch.devPtr_offset = (off_t)(i * size);
			io[i].u.batch.size = size;
		}
		assert_int_equal(cuFileBatchIOSubmit(batch, WRITERS, io, 0).err,
				 0);
		assert_int_equal(cuFileBatchIOGetStatus(batch, WRITERS, &nr,
							events, NULL)
					 .err,
				 0);
		assert_int_equal(nr, WRITERS);
		for (unsigned i = 0; i < WRITERS; i++)
			assert_int_equal(events[i].ret, size);
		check_file(&w);
	}
	assert_true(copied);
	cuFileBatchIODestroy(batch);
	world_end(&w);
}

static void large_writes_in_a_stream_do(void **state)
{
	size_t size = LARGE + 77;
	off_t file_off = 4097, mem_off = 5;
	ssize_t done = -1;
	CUstream stream;
	struct world w;

	world_make(&w, TH_DEVICE);
	assert_int_equal(cuStreamCreate(&stream, CF_CU_STREAM_NON_BLOCKING), 0);
	th_fill(w.model + file_off, size);
	th_mem_put(&w.mem, (size_t)mem_off, w.model + file_off, size);
	assert_int_equal(cuFileWriteAsync(w.fh, w.mem.ptr, &size, &file_off,
					  &mem_off, &done, stream)
				 .err,
			 0);
	assert_int_equal(cuStreamSynchronize(stream), 0);
	assert_int_equal(done, size);
	assert_in_range(copied, 4, 25);
	assert_int_equal(written, 1);
	check_file(&w);
	assert_int_equal(cuStreamDestroy(stream), 0);
	world_end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(many_that_write_one_file_map_it),
		TEST(they_do_so_for_a_mebibyte_each),
		TEST(entries_of_a_batch_map_it),
		TEST(large_writes_in_a_stream_do),
	};

	th_start(120);
	return th_finish(
		cmocka_run_group_tests_name("spread_crowd", tests, NULL, NULL));
}

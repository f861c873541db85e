// SPDX-License-Identifier: Apache-2.0
/*
 * GPUs that do not see by themselves what a disk writes into their memory:
 * the driver is asked to flush before a read's end is told, or nothing is
 * read straight into them.
 */
#include <errno.h>
#include <string.h>
#include "alias_world.h"

#define FLUSH "cuFlushGPUDirectRDMAWrites"
#define NR 16

static unsigned long flushes(void)
{
	return th_fake()->calls(FLUSH);
}

static void begin(struct aw_world *w, int order, int options)
{
	th_need_fake()->writes_ordering(order, options);
	aw_begin(w, AW_HONEST, TH_ODIRECT);
}

static void end(struct aw_world *w)
{
	aw_end(w);
	th_fake()->writes_ordering(100, 1);
}

static void where_the_gpu_keeps_order_nothing_is_flushed(void **state)
{
	static const int orders[] = { 100, 200 };
	unsigned long before = th_need_fake()->calls(FLUSH);
	struct aw_world w;

	for (int i = 0; i < 2; i++) {
		begin(&w, orders[i], 1);
		assert_true(aw_both_ways(&w) > 0);
		assert_int_equal(flushes(), before);
		end(&w);
	}
}

static void a_read_is_flushed_before_it_ends(void **state)
{
	unsigned long before;
	struct aw_world w;

	begin(&w, 0, 1);
	before = flushes();
	aw_read_is_right(&w, AW_SIZE, 0, 0);
	assert_int_equal(flushes(), before + 1);
	aw_read_is_right(&w, 64 * TH_KIB - 300, 100, 100);
	assert_int_equal(flushes(), before + 2);
	aw_write_is_right(&w, AW_SIZE, 0, 0);
	assert_int_equal(flushes(), before + 2);
	end(&w);
}

static void a_read_that_cannot_be_flushed_fails(void **state)
{
	struct aw_world w;

	begin(&w, 0, 1);
	assert_int_equal(th_fake()->plan(FLUSH ":*=999"), 0);
	errno = 0;
	assert_int_equal(cuFileRead(w.fh, w.mem.ptr, AW_SIZE, 0, 0), -1);
	assert_int_equal(errno, CU_FILE_CUDA_DRIVER_ERROR);
	aw_write_is_right(&w, AW_SIZE, 0, 0);
	th_fake()->plan_clear();
	aw_read_is_right(&w, AW_SIZE, 0, 0);
	end(&w);
}

static void without_a_flush_reads_are_staged_and_writes_are_not(void **state)
{
	unsigned long before = th_need_fake()->calls(FLUSH);
	const char *why;
	struct aw_world w;

	begin(&w, 0, 2);
	assert_string_equal(aw_path_of(&w, false, AW_SIZE, 0, 0, &why),
			    "staged");
	assert_non_null(strstr(why, "see in time"));
	assert_string_equal(aw_path_of(&w, true, AW_SIZE, 0, 0, &why), "alias");
	aw_read_is_right(&w, AW_SIZE, 0, 0);
	assert_int_equal(atomic_load(&aw_straight), 0);
	aw_write_is_right(&w, AW_SIZE, 0, 0);
	assert_true(atomic_load(&aw_straight) > 0);
	assert_int_equal(flushes(), before);
	end(&w);
}

/* An error passes: the next request asks again. */
static void a_driver_that_fails_to_tell_is_asked_again(void **state)
{
	const char *why;
	struct aw_world w;

	th_need_fake()->writes_ordering(100, 1);
	th_open_for(TH_ODIRECT);
	th_close();
	assert_int_equal(th_fake()->plan("cuDeviceGetAttribute:*=999"), 0);
	aw_begin(&w, AW_HONEST, TH_ODIRECT);
	assert_string_equal(aw_path_of(&w, false, AW_SIZE, 0, 0, &why),
			    "staged");
	th_fake()->plan_clear();
	assert_string_equal(aw_path_of(&w, false, AW_SIZE, 0, 0, &why),
			    "alias");
	aw_read_is_right(&w, AW_SIZE, 0, 0);
	end(&w);
}

/* Nobody knows then whether its bytes are there yet. */
static void a_write_that_cannot_be_ordered_writes_nothing(void **state)
{
	struct aw_world w;

	begin(&w, 100, 1);
	aw_write_is_right(&w, AW_SIZE, 0, 0);
	th_mem_set(&w.mem, 0x5a);
	assert_int_equal(th_fake()->plan("cuStreamQuery:*=2"), 0);
	errno = 0;
	assert_int_equal(cuFileWrite(w.fh, w.mem.ptr, AW_SIZE, 0, 0), -1);
	assert_int_equal(errno, CU_FILE_CUDA_DRIVER_ERROR);
	th_fake()->plan_clear();
	th_file_get(&w.file, 0, w.got, AW_SIZE);
	th_equal("the file", w.got, w.content, AW_SIZE);
	aw_write_is_right(&w, AW_SIZE, 0, 0);
	end(&w);
}

static void batch(struct aw_world *w, CUfileOpcode_t opcode, ssize_t want,
		  CUfileStatus_t status)
{
	CUfileIOParams_t params[NR];
	CUfileIOEvents_t events[NR];
	CUfileBatchHandle_t b;
	unsigned nr = NR;

	assert_int_equal(cuFileBatchIOSetUp(&b, NR).err, 0);
	for (unsigned i = 0; i < NR; i++) {
		params[i] = (CUfileIOParams_t){ .mode = CUFILE_BATCH,
						.fh = w->fh,
						.opcode = opcode };
		params[i].u.batch.devPtr_base = w->mem.ptr;
		params[i].u.batch.devPtr_offset = (off_t)(i * AW_BLOCK);
		params[i].u.batch.file_offset = (off_t)(i * AW_BLOCK);
		params[i].u.batch.size = AW_BLOCK;
	}
	assert_int_equal(cuFileBatchIOSubmit(b, NR, params, 0).err, 0);
	assert_int_equal(cuFileBatchIOGetStatus(b, NR, &nr, events, NULL).err,
			 0);
	assert_int_equal(nr, NR);
	for (unsigned i = 0; i < NR; i++) {
		assert_int_equal(events[i].status, status);
		if (status == CUFILE_COMPLETE)
			assert_int_equal(events[i].ret, want);
	}
	cuFileBatchIODestroy(b);
}

static void entries_of_a_batch_are_flushed_before_they_end(void **state)
{
	unsigned long before;
	struct aw_world w;

	begin(&w, 0, 1);
	before = flushes();
	batch(&w, CUFILE_READ, (ssize_t)AW_BLOCK, CUFILE_COMPLETE);
	assert_in_range(flushes(), before + 1, before + NR);
	before = flushes();
	batch(&w, CUFILE_WRITE, (ssize_t)AW_BLOCK, CUFILE_COMPLETE);
	assert_int_equal(flushes(), before);
	assert_int_equal(th_fake()->plan(FLUSH ":*=999"), 0);
	batch(&w, CUFILE_READ, 0, CUFILE_FAILED);
	th_fake()->plan_clear();
	end(&w);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, aw_setup, aw_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(where_the_gpu_keeps_order_nothing_is_flushed),
		TEST(a_read_is_flushed_before_it_ends),
		TEST(a_read_that_cannot_be_flushed_fails),
		TEST(without_a_flush_reads_are_staged_and_writes_are_not),
		TEST(a_driver_that_fails_to_tell_is_asked_again),
		TEST(a_write_that_cannot_be_ordered_writes_nothing),
		TEST(entries_of_a_batch_are_flushed_before_they_end),
	};

	th_start(120);
	return th_finish(cmocka_run_group_tests(tests, NULL, NULL));
}

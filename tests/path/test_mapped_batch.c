// SPDX-License-Identifier: Apache-2.0
/*
 * Batches of reads whose windows are open: they follow each other on one lane,
 * and each has its bytes and one event, whatever becomes of the file, of a copy
 * or of the batch meanwhile.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "mapped_world.h"

#define NR 20
#define PIECE (MW_CHUNK / 4 * 3) /* most cross from window to window */
#define FEW 6
#define PIECES 7 /* the file has */

#define ROOM (MW_SIZE + PIECE + 2 * MW_PAD)

static struct th_mem room;
static unsigned char *want, *got;
static CUfileBatchHandle_t batch;
static CUfileIOParams_t params[NR];

static void set_read(unsigned i, size_t at, size_t size)
{
	params[i] = (CUfileIOParams_t){ .mode = CUFILE_BATCH,
					.fh = mw_fh,
					.opcode = CUFILE_READ,
					.cookie = (void *)(uintptr_t)i };
	params[i].u.batch.devPtr_base = room.ptr;
	params[i].u.batch.devPtr_offset = (off_t)at + MW_PAD;
	params[i].u.batch.file_offset = (off_t)at;
	params[i].u.batch.size = size;
}

/* Each once: what one reads wrong no other makes good. */
static void set_pieces(void)
{
	assert_int_equal((MW_SIZE + PIECE - 1) / PIECE, PIECES);
	for (unsigned i = 0; i < PIECES; i++)
		set_read(i, i * 3 % PIECES * PIECE, PIECE);
}

static size_t in_file(unsigned i, size_t end)
{
	size_t at = (size_t)params[i].u.batch.file_offset;
	size_t size = params[i].u.batch.size;

	return at >= end ? 0 : size < end - at ? size : end - at;
}

/* All nr have one event each, with what there is of a file of end bytes. */
static void run_to(unsigned nr, size_t end)
{
	CUfileIOEvents_t events[NR];
	bool seen[NR] = { false };
	unsigned ended = nr;

	assert_int_equal(cuFileBatchIOSubmit(batch, nr, params, 0).err, 0);
	assert_int_equal(
		cuFileBatchIOGetStatus(batch, nr, &ended, events, NULL).err, 0);
	assert_int_equal(ended, nr);
	for (unsigned i = 0; i < nr; i++) {
		size_t k = (size_t)events[i].cookie;

		assert_true(k < nr && !seen[k]);
		seen[k] = true;
		assert_int_equal(events[i].status, CUFILE_COMPLETE);
		assert_int_equal(events[i].ret, in_file((unsigned)k, end));
	}
}

static void fill(void)
{
	th_fill(want, ROOM);
	th_mem_put(&room, 0, want, ROOM);
}

static void check(unsigned nr)
{
	for (unsigned i = 0; i < nr; i++) {
		size_t at = (size_t)params[i].u.batch.file_offset;

		memcpy(want + MW_PAD + at, mw_content + at,
		       in_file(i, MW_SIZE));
	}
	th_mem_get(&room, 0, got, ROOM);
	th_equal("the batch", got, want, ROOM);
}

static void run(unsigned nr)
{
	fill();
	run_to(nr, MW_SIZE);
	check(nr);
}

static void set_up(void)
{
	th_mem_alloc(&room, TH_DEVICE, ROOM);
	want = malloc(ROOM);
	got = malloc(ROOM);
	assert_non_null(want);
	assert_non_null(got);
	assert_int_equal(cuFileBatchIOSetUp(&batch, NR).err, 0);
}

static void begin(void)
{
	mw_begin();
	mw_warm();
	set_up();
}

static void end(void)
{
	cuFileBatchIODestroy(batch);
	th_mem_free(&room);
	free(want);
	free(got);
	mw_end();
}

static unsigned long calls(const char *name)
{
	return th_fake() ? th_fake()->calls(name) : 0;
}

static void delay_copies(unsigned us)
{
	if (th_fake())
		th_fake()->copy_delay_us(us);
}

/* ------------------------------------------------------------------ tests */

/* Who carries each alone enters the context for each. */
static void reads_of_a_batch_follow_each_other_out_of_windows(void **state)
{
	uint64_t used;
	unsigned long before, together;

	mw_begin_hot();
	set_up();
	for (unsigned i = 0; i < NR; i++)
		set_read(i, i % (MW_NR_CHUNKS - 1) * MW_CHUNK, MW_CHUNK / 2);
	used = mw_counts().used;
	together = calls("cuMemcpyBatchAsync");
	before = calls("cuCtxPushCurrent_v2");
	delay_copies(2000); /* so that others wait behind the first */
	run(NR);
	delay_copies(0);
	assert_int_equal(mw_counts().used, used + NR);
	if (th_fake()) {
		assert_in_range(calls("cuCtxPushCurrent_v2") - before, 1, 4);
		assert_in_range(calls("cuMemcpyBatchAsync") - together, 2,
				NR / 2);
	}
	end();
}

static void pieces_cross_windows_and_the_end_of_the_file(void **state)
{
	uint64_t used;

	begin();
	for (int lap = 0; lap < 3; lap++) {
		used = mw_counts().used;
		set_pieces();
		run(PIECES);
		assert_true(mw_counts().used > used + PIECES);
	}
	set_read(0, MW_SIZE - 1, 2 * MW_PAD);
	set_read(1, MW_SIZE - PIECE, PIECE + MW_PAD);
	set_read(2, 0, MW_SIZE + MW_PAD);
	set_read(3, MW_SIZE, MW_PAD);
	run(4);
	assert_int_equal(mw_counts().stale, 0);
	end();
}

static void what_a_convoy_brings_is_read_too(void **state)
{
	if (!mw_pins)
		th_skip("chunks are too small for a convoy");
	mw_begin();
	set_up();
	for (unsigned i = 0; i < NR; i++)
		set_read(i, i % (MW_NR_CHUNKS - 1) * MW_CHUNK, MW_CHUNK);
	run(NR); /* 80 MiB together */
	assert_int_equal(mw_counts().opened, 0);
	for (int i = 0; i < 3; i++)
		run(NR);
	assert_int_equal(mw_counts().opened, MW_NR_CHUNKS - 1);
	assert_true(mw_counts().used >= MW_NR_CHUNKS - 1);
	end();
}

static void entries_that_are_smaller_are_carried_otherwise(void **state)
{
	const size_t size = 96 * TH_KIB;
	uint64_t used;

	mw_open_from = mw_use_from = size;
	mw_begin();
	set_up();
	for (unsigned i = 0; i < FEW; i++)
		set_read(i, (size_t)i * size, size);
	for (int lap = 0; lap < 3; lap++)
		run(FEW);
	assert_true(mw_counts().opened > 0);
	used = mw_counts().used;
	run(FEW);
	assert_true(mw_counts().used >= used + FEW);
	used = mw_counts().used;
	for (unsigned i = 0; i < FEW; i++)
		set_read(i, (size_t)i * size, size - 1);
	run(FEW);
	assert_int_equal(mw_counts().used, used);
	end();
}

/* Those whose windows are open beside those that have none yet. */
static void a_batch_of_which_a_part_is_open_is_read_whole(void **state)
{
	mw_begin_with("kept", 2 * MW_CHUNK, TH_BUFFERED);
	set_up();
	for (int i = 0; i < 3; i++)
		mw_read_is(mw_fh, MW_CHUNK, 0, mw_content, MW_CHUNK);
	assert_int_equal(mw_counts().open, 1);
	for (int lap = 0; lap < 4; lap++) {
		set_pieces();
		run(PIECES);
	}
	end();
}

/* Only the page table can tell. */
static void pages_that_were_replaced_are_read_again(void **state)
{
	static struct cf_os frozen;
	uint64_t stale;
	int fd;

	begin();
	frozen = *mw_usual;
	frozen.statx = mw_statx_frozen;
	fd = mw_open_direct();
	cf_os = &frozen;
	mw_warm();
	set_pieces();
	run(PIECES);
	stale = mw_counts().stale;
	mw_write_direct(fd, MW_CHUNK, 4096);
	run(PIECES);
	assert_true(mw_counts().stale > stale);
	close(fd);
	end();
}

static void read_chunks(void)
{
	run_to(MW_NR_CHUNKS - 1, MW_SIZE);
}

static void write_first_chunk(void)
{
	th_fill(mw_content, MW_CHUNK);
	(void)!pwrite(mw_file.plain, mw_content, MW_CHUNK, 0);
}

/* The pages stay the file's, and some of them were copied before. */
static void a_file_that_changes_meanwhile_is_read_again(void **state)
{
	th_need_fake();
	begin();
	for (unsigned i = 0; i < MW_NR_CHUNKS - 1; i++)
		set_read(i, i * MW_CHUNK, MW_CHUNK);
	mw_change_during(write_first_chunk, read_chunks);
	th_mem_get(&room, MW_PAD, got, MW_CHUNK);
	th_equal("the new bytes", got, mw_content, MW_CHUNK);
	end();
}

static void cut_off(void)
{
	(void)!ftruncate(mw_file.plain, (off_t)MW_CHUNK + 5);
}

static void read_till_cut(void)
{
	run_to(4, MW_CHUNK + 5);
}

static void a_file_that_is_cut_meanwhile_ends_there(void **state)
{
	th_need_fake();
	begin();
	/* all but the first are judged after the cut */
	set_read(0, 0, MW_CHUNK);
	set_read(1, MW_CHUNK, MW_CHUNK);
	set_read(2, 2 * MW_CHUNK, MW_CHUNK);
	set_read(3, MW_CHUNK / 2, 2 * MW_CHUNK);
	mw_change_during(cut_off, read_till_cut);
	th_mem_get(&room, MW_PAD, got, MW_CHUNK + 5);
	th_equal("what is left", got, mw_content, MW_CHUNK + 5);
	end();
}

static void a_copy_that_fails_is_made_again_another_way(void **state)
{
	const struct th_fake *fake = th_need_fake();
	const char *copy =
		mw_pins ? "cuMemcpyDtoDAsync_v2" : "cuMemcpyHtoDAsync_v2";

	for (int nth = 1; nth < 2 * PIECES; nth += 3) {
		char plan[64];

		begin();
		set_pieces();
		snprintf(plan, sizeof(plan), "%s:%d=999", copy, nth);
		assert_int_equal(fake->plan(plan), 0);
		run(PIECES);
		fake->plan_clear();
		snprintf(plan, sizeof(plan), "cuMemcpyBatchAsync:%d=999", nth);
		assert_int_equal(fake->plan(plan), 0);
		run(PIECES);
		fake->plan_clear();
		snprintf(plan, sizeof(plan), "cuEventRecord:%d=999", nth);
		assert_int_equal(fake->plan(plan), 0);
		run(PIECES);
		fake->plan_clear();
		snprintf(plan, sizeof(plan), "cuEventQuery:%d=999", nth);
		assert_int_equal(fake->plan(plan), 0);
		run(PIECES);
		fake->plan_clear();
		end();
	}
}

static void without_a_context_it_goes_another_way(void **state)
{
	const struct th_fake *fake = th_need_fake();

	begin();
	set_pieces();
	fill();
	assert_int_equal(fake->plan("cuCtxPushCurrent_v2:1=999"), 0);
	run_to(PIECES, MW_SIZE);
	fake->plan_clear();
	check(PIECES);
	end();
}

/* Freed after the cancel or the destroy: the fake driver sees a late byte. */
static void memory_may_go_after_a_cancel_or_a_destroy(void **state)
{
	begin();
	for (int round = 0; round < TH_SCALE(20); round++) {
		struct th_mem own;

		set_pieces();
		th_mem_alloc(&own, TH_DEVICE, ROOM);
		for (unsigned i = 0; i < PIECES; i++)
			params[i].u.batch.devPtr_base = own.ptr;
		assert_int_equal(
			cuFileBatchIOSubmit(batch, PIECES, params, 0).err, 0);
		usleep((unsigned)th_below(2000));
		if (round & 1) {
			cuFileBatchIODestroy(batch);
			assert_int_equal(cuFileBatchIOSetUp(&batch, NR).err, 0);
		} else {
			assert_int_equal(cuFileBatchIOCancel(batch).err, 0);
		}
		th_mem_free(&own);
	}
	set_pieces();
	run(PIECES);
	end();
}

/* Batches of several threads, and single reads, with windows that give way. */
static void read_storm(void *arg, unsigned i)
{
	struct th_bad *bad = arg;
	unsigned char *bytes = malloc(MW_SIZE);
	CUfileBatchHandle_t own_batch;
	struct th_mem own;

	th_mem_alloc(&own, TH_DEVICE, MW_SIZE);
	assert_int_equal(cuFileBatchIOSetUp(&own_batch, MW_NR_CHUNKS).err, 0);
	for (int lap = 0; lap < TH_SCALE(40); lap++) {
		CUfileIOParams_t own_params[MW_NR_CHUNKS];
		CUfileIOEvents_t events[MW_NR_CHUNKS];
		unsigned nr = MW_NR_CHUNKS;

		for (unsigned k = 0; k < nr; k++) {
			own_params[k] = params[0];
			own_params[k].u.batch.devPtr_base = own.ptr;
			own_params[k].u.batch.devPtr_offset =
				(off_t)(k * MW_CHUNK);
			own_params[k].u.batch.file_offset =
				(off_t)(k * MW_CHUNK);
			own_params[k].u.batch.size =
				k + 1 < nr ? MW_CHUNK : MW_SIZE - k * MW_CHUNK;
		}
		if (i &&
		    (cuFileBatchIOSubmit(own_batch, nr, own_params, 0).err ||
		     cuFileBatchIOGetStatus(own_batch, nr, &nr, events, NULL)
			     .err))
			th_bad_note(bad, "no batch");
		if (!i && cuFileRead(mw_fh, own.ptr, MW_SIZE, 0, 0) !=
				  (ssize_t)MW_SIZE)
			th_bad_note(bad, "no read");
		th_mem_get(&own, 0, bytes, MW_SIZE);
		if (memcmp(bytes, mw_content, MW_SIZE))
			th_bad_note(bad, "thread %u lap %d: wrong bytes", i,
				    lap);
	}
	cuFileBatchIODestroy(own_batch);
	th_mem_free(&own);
	free(bytes);
}

static void batches_of_many_threads_have_their_bytes(void **state)
{
	struct th_bad bad = { 0 };

	mw_begin_with("always", 3 * MW_CHUNK, TH_BUFFERED);
	set_up();
	set_read(0, 0, MW_CHUNK);
	th_threads(4, read_storm, &bad);
	th_bad_check(&bad);
	end();
}

/* It is asked once. */
static void a_driver_that_takes_no_batches_copies_one_by_one(void **state)
{
	const struct th_fake *fake = th_need_fake();
	unsigned long asked;

	begin();
	set_pieces();
	asked = calls("cuMemcpyBatchAsync");
	assert_int_equal(fake->plan("cuMemcpyBatchAsync:*=801"), 0);
	delay_copies(2000); /* so that others wait behind the first */
	for (int lap = 0; lap < 3; lap++)
		run(PIECES);
	delay_copies(0);
	assert_int_equal(calls("cuMemcpyBatchAsync"), asked + 1);
	fake->plan_clear();
	end();
}

#define TEST(name) cmocka_unit_test_teardown(name, mw_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(reads_of_a_batch_follow_each_other_out_of_windows),
		TEST(pieces_cross_windows_and_the_end_of_the_file),
		TEST(what_a_convoy_brings_is_read_too),
		TEST(entries_that_are_smaller_are_carried_otherwise),
		TEST(a_batch_of_which_a_part_is_open_is_read_whole),
		TEST(pages_that_were_replaced_are_read_again),
		TEST(a_file_that_changes_meanwhile_is_read_again),
		TEST(a_file_that_is_cut_meanwhile_ends_there),
		TEST(a_copy_that_fails_is_made_again_another_way),
		TEST(without_a_context_it_goes_another_way),
		TEST(memory_may_go_after_a_cancel_or_a_destroy),
		TEST(batches_of_many_threads_have_their_bytes),
		/* last: there are none from then on */
		TEST(a_driver_that_takes_no_batches_copies_one_by_one),
	};

	mw_start();
	return th_finish(
		cmocka_run_group_tests_name("mapped_batch", tests, NULL, NULL));
}

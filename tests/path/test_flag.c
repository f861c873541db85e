// SPDX-License-Identifier: Apache-2.0
/*
 * A small read that is alone (path/flag.h): looked for, waited for where it
 * takes long, and all the same bytes where a driver has no such flags.
 */
#include <stdlib.h>
#include "harness.h"
#include "path/flag.h"

#define SIZE (256 * TH_KIB)
#define AT 4097 /* of the bytes that move, in memory and in the file */
#define PART (60 * TH_KIB + 3)

static void world_make(struct th_pair *w)
{
	th_need_fake();
	th_pair_make(w, TH_BUFFERED, SIZE, 0);
	/* what only a first request does is done */
	assert_int_equal(cuFileRead(w->fh, w->mem.ptr, 1, 0, 0), 1);
	th_mem_set(&w->mem, 0xa5);
}

/* Calls that wait for a copy. */
static unsigned long waits(void)
{
	return th_fake()->calls("cuStreamSynchronize") +
	       th_fake()->calls("cuEventSynchronize");
}

static unsigned long flags(void)
{
	return th_fake()->calls("cuStreamWriteValue32_v2");
}

static void read_and_check(struct th_pair *w)
{
	assert_int_equal(cuFileRead(w->fh, w->mem.ptr, PART, AT, AT), PART);
	th_mem_get(&w->mem, 0, w->got, SIZE);
	for (size_t i = 0; i < AT; i++)
		assert_int_equal(w->got[i], 0xa5);
	assert_memory_equal(w->got + AT, w->bytes + AT, PART);
	for (size_t i = AT + PART; i < SIZE; i++)
		assert_int_equal(w->got[i], 0xa5);
	th_mem_set(&w->mem, 0xa5);
}

static void a_small_read_that_is_alone_is_looked_for(void **state)
{
	unsigned long flagged, waited;
	struct th_pair w;

	world_make(&w);
	flagged = flags();
	read_and_check(&w);
	assert_int_equal(flags(), flagged + 1);
	/* a moment of 50 us may be missed, but not for ever */
	do {
		waited = waits();
		assert_int_equal(cuFileRead(w.fh, w.mem.ptr, 512, AT, AT), 512);
	} while (waits() > waited);
	th_pair_end(&w);
}

/* False: it was over before the reader, on a busy machine, looked for it. */
static bool a_copy_of_so_long_is_waited_for(struct th_pair *w, unsigned us)
{
	unsigned long waited = waits();

	th_fake()->copy_delay_us(us);
	assert_int_equal(cuFileRead(w->fh, w->mem.ptr, 512, 0, 0), 512);
	th_fake()->copy_delay_us(0);
	assert_in_range(waits() - waited, 0, 1);
	return waits() > waited;
}

static void a_copy_that_takes_long_is_waited_for(void **state)
{
	unsigned us = 5000;
	struct th_pair w;

	world_make(&w);
	while (!a_copy_of_so_long_is_waited_for(&w, us)) {
		us *= 4;
		assert_true(us < 20000000);
	}
	th_mem_set(&w.mem, 0xa5);
	th_fake()->copy_delay_us(5000);
	read_and_check(&w);
	th_fake()->copy_delay_us(0);
	th_pair_end(&w);
}

static void a_failure_is_not_the_drivers_last_word(void **state)
{
	unsigned long flagged;
	struct th_pair w;

	world_make(&w);
	flagged = flags();
	assert_int_equal(th_fake()->plan("cuStreamWriteValue32_v2:1=999"), 0);
	read_and_check(&w);
	th_fake()->plan_clear();
	read_and_check(&w);
	assert_int_equal(flags(), flagged + 2);
	th_pair_end(&w);
}

static CUdeviceptr raised; /* where the driver was told to */

static CUresult note_raise(CUstream stream, CUdeviceptr addr, unsigned value,
			   unsigned flags)
{
	(void)stream;
	(void)flags;
	assert_true(value);
	raised = addr;
	return CF_CU_SUCCESS;
}

/* In memory that is not the GPU's to write, it would break the context. */
static void a_flag_is_in_the_room_behind_pinned_bytes_alone(void **state)
{
	const struct cf_cuda cuda = { .stream_write_value32 = note_raise };
	unsigned char *mem = th_same(0xa5, 8192);
	struct cf_slot slot = { .mem = (char *)mem, .size = 8192 };

	raised = 0;
	assert_false(cf_flag_put(&cuda, &slot, NULL));
	assert_int_equal(raised, 0);
	th_all("not pinned", mem, 0xa5, 8192);
	slot.pinned = true;
	assert_true(cf_flag_put(&cuda, &slot, NULL));
	assert_true(raised >= (uintptr_t)mem + 8192 - CF_FLAG_ROOM &&
		    raised + 4 <= (uintptr_t)mem + 8192);
	assert_false(cf_flag_is_up(&slot));
	*(unsigned *)(uintptr_t)raised = 1;
	assert_true(cf_flag_is_up(&slot));
	th_all("the bytes", mem, 0xa5, 8192 - CF_FLAG_ROOM);
	free(mem);
}

/* The last: it is remembered for the process. */
static void a_driver_without_flags_is_asked_once(void **state)
{
	unsigned long flagged, waited;
	struct th_pair w;

	world_make(&w);
	flagged = flags();
	waited = waits();
	assert_int_equal(th_fake()->plan("cuStreamWriteValue32_v2:1=801"), 0);
	read_and_check(&w);
	th_fake()->plan_clear();
	assert_int_equal(flags(), flagged + 1);
	assert_int_equal(waits(), waited + 1);
	read_and_check(&w);
	assert_int_equal(flags(), flagged + 1);
	assert_int_equal(waits(), waited + 2);
	th_pair_end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_small_read_that_is_alone_is_looked_for),
		cmocka_unit_test(a_copy_that_takes_long_is_waited_for),
		cmocka_unit_test(
			a_flag_is_in_the_room_behind_pinned_bytes_alone),
		cmocka_unit_test(a_failure_is_not_the_drivers_last_word),
		cmocka_unit_test(a_driver_without_flags_is_asked_once),
	};

	th_start(60);
	return th_finish(
		cmocka_run_group_tests_name("flag", tests, NULL, NULL));
}

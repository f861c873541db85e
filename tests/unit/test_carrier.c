// SPDX-License-Identifier: Apache-2.0
/* carrier - the room that one has: where a part and its blocks go. */
#include <errno.h>
#include <pthread.h>
#include "core/aperture.h"

static void fenced(void);

#define cf_aperture_fence fenced
#include "path/carrier.c"
#include "harness.h"

#include "core/ferry.h"
#include "core/handle.h"

static _Alignas(CF_SLOT_ALIGN) char hold[CF_FERRY_HOLD];
static struct cf_ferry ferry = {
	.hold = hold,
	.hold_lock = PTHREAD_MUTEX_INITIALIZER,
};
static unsigned fences;

/* While nobody else can have the hold. */
static void fenced(void)
{
	assert_int_equal(pthread_mutex_trylock(&ferry.hold_lock), EBUSY);
	fences++;
}

static struct cf_carrier carrier_of(size_t page, size_t step)
{
	static struct cf_handle handle;
	static struct cf_piece piece = { .handle = &handle, .ferry = &ferry };
	static struct cf_feed feed;
	struct cf_carrier c;

	handle.page_align = page;
	piece.size = feed.step = step;
	assert_true(cf_carrier_begin(&c, &piece, &feed, CF_CARRIER_ANY));
	assert_null(c.slot);
	/* it is one carrier's */
	assert_false(cf_carrier_begin(&(struct cf_carrier){ 0 }, &piece, &feed,
				      CF_CARRIER_IDLE));
	pthread_mutex_unlock(&ferry.hold_lock);
	return c;
}

/* Blocks at both ends of its bytes are read into a berth, too. */
static void what_is_in_a_berth_stays_there(void **state)
{
	(void)state;
	for (size_t page = 4096; page <= 65536; page *= 4)
		for (size_t step = 512; step <= CF_FERRY_HOLD; step += 512) {
			struct cf_carrier c = carrier_of(page, step);
			char *end = c.ferry->hold + CF_FERRY_HOLD;

			for (unsigned i = c.nr_berths; i-- > 0;) {
				struct cf_berth *b = &c.berths[i];

				assert_int_equal(
					(uintptr_t)b->mem % CF_SLOT_ALIGN, 0);
				assert_in_range(c.room, 1,
						(size_t)(end - b->mem) -
							2 * CF_SLOT_ALIGN);
				end = b->mem;
			}
			assert_ptr_equal(end, c.ferry->hold);
		}
}

static void there_are_two_where_a_part_fits_into_half(void **state)
{
	const size_t most = CF_FERRY_HOLD / 2 - 2 * 4096;

	(void)state;
	assert_int_equal(carrier_of(4096, 512).nr_berths, 2);
	assert_int_equal(carrier_of(4096, most).nr_berths, 2);
	assert_int_equal(carrier_of(4096, most).room, most);
	assert_int_equal(carrier_of(4096, most + 1).nr_berths, 1);
	assert_int_equal(carrier_of(4096, most + 1).room,
			 CF_FERRY_HOLD - 2 * 4096);
}

/* The file was gone, say. */
static void what_was_put_there_for_nothing_is_fenced(void **state)
{
	static _Alignas(4096) char aperture[CF_FERRY_NEAR];

	(void)state;
	ferry.rings = true;
	ferry.fresh = true;
	for (int near = 0; near < 2; near++) {
		struct cf_carrier c;

		ferry.near = near ? (struct cf_ferry_board *)aperture : NULL;
		c = carrier_of(4096, 4096);
		pthread_mutex_lock(&ferry.hold_lock);
		assert_ptr_equal(c.near,
				 near ? aperture + CF_FERRY_NEAR_HOLD : NULL);
		fences = 0;
		ferry.blocks = 1;
		cf_carrier_end(&c);
		assert_int_equal(fences, near);
		assert_int_equal(pthread_mutex_trylock(&ferry.hold_lock), 0);
		pthread_mutex_unlock(&ferry.hold_lock);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_in_a_berth_stays_there),
		cmocka_unit_test(there_are_two_where_a_part_fits_into_half),
		cmocka_unit_test(what_was_put_there_for_nothing_is_fenced),
	};

	th_start(30);
	return th_finish(
		cmocka_run_group_tests_name("carrier", tests, NULL, NULL));
}

// SPDX-License-Identifier: Apache-2.0
/* slabs - which arrays are somebody's wish, and what they come to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdlib.h>
#include "core/slabs.h"
#include "engine/plan_limits.h"

#define KIB 1024ul

/* A list as a program stages it. */
static void stage(enum cf_cfg id, const uint64_t *values, size_t nr)
{
	assert_int_equal(
		cf_staged_set_sizes(cf_config_staged(), id, values, nr), 0);
}

static void stage_posix(const uint64_t *kib, const uint64_t *counts, size_t nr)
{
	stage(CF_CFG_POSIX_POOL_SLAB_SIZE_KB, kib, nr);
	stage(CF_CFG_POSIX_POOL_SLAB_COUNT, counts, nr);
}

static void stage_bounce(const uint64_t *kib, const uint64_t *counts, size_t nr)
{
	stage(CF_CFG_GPU_BOUNCE_SLAB_SIZE_KB, kib, nr);
	stage(CF_CFG_GPU_BOUNCE_SLAB_COUNT, counts, nr);
}

static struct cf_config *load(void)
{
	struct cf_config *config = cf_config_new();

	assert_non_null(config);
	assert_int_equal(cf_config_load(config, cf_config_staged()), 0);
	cf_staged_reset(cf_config_staged());
	return config;
}

static void assert_slabs(size_t slot, size_t bytes)
{
	struct cf_config *config = load();
	struct cf_slabs slabs;

	assert_true(cf_slabs_asked(config, &slabs));
	assert_int_equal(slabs.slot, slot);
	assert_int_equal(slabs.bytes, bytes);
	cf_config_free(config);
}

static void assert_not_asked(void)
{
	struct cf_config *config = load();
	struct cf_slabs slabs;

	assert_false(cf_slabs_asked(config, &slabs));
	cf_config_free(config);
}

static void what_nvidia_ships_is_nobodys_wish(void **state)
{
	static const uint64_t posix[] = { 4, 1024, 16384 };
	static const uint64_t posix_counts[] = { 128, 64, 64 };
	static const uint64_t bounce[] = { 1024, 8192, 16384, 65536 };
	static const uint64_t bounce_counts[] = { 128, 8, 4, 2 };

	assert_not_asked();
	stage_posix(posix, posix_counts, 3);
	stage_bounce(bounce, bounce_counts, 4);
	assert_not_asked();
}

static void the_largest_slab_is_the_slot_and_all_are_the_bound(void **state)
{
	static const uint64_t kib[] = { 4, 256, 1024 }, counts[] = { 2, 4, 3 };
	static const uint64_t down[] = { 1024, 4 };

	stage_posix(kib, counts, 3);
	assert_slabs(1024 * KIB, (8 + 1024 + 3072) * KIB);
	stage_bounce(kib, counts, 3);
	assert_slabs(1024 * KIB, (8 + 1024 + 3072) * KIB);
	stage_posix(down, counts, 2);
	assert_slabs(1024 * KIB, (2048 + 16) * KIB);
}

static void counts_alone_are_a_wish_too(void **state)
{
	static const uint64_t kib[] = { 4, 1024, 16384 },
			      counts[] = { 1, 1, 1 };

	stage_posix(kib, counts, 3);
	assert_slabs(16384 * KIB, (4 + 1024 + 16384) * KIB);
}

static void so_are_sizes_alone_and_a_longer_list(void **state)
{
	static const uint64_t kib[] = { 4, 1024, 8192 };
	static const uint64_t longer[] = { 4, 1024, 16384, 64 };
	static const uint64_t counts[] = { 128, 64, 64, 1 };

	stage_posix(kib, counts, 3);
	assert_slabs(8192 * KIB, (512 + 65536 + 524288) * KIB);
	stage_posix(longer, counts, 4);
	assert_slabs(16384 * KIB, (512 + 65536 + 1048576 + 64) * KIB);
}

static void a_slot_stays_between_its_bounds(void **state)
{
	static const uint64_t small[] = { 4, 8 }, counts[] = { 1, 1 };
	static const uint64_t large[] = { 1024, 32768 };
	static const uint64_t larger[] = { 32768, 65536 };

	stage_posix(small, counts, 2);
	assert_slabs(CF_SLAB_MIN, 12 * KIB);
	stage_posix(large, counts, 2);
	assert_slabs(1024 * KIB, (1024 + 32768) * KIB);
	stage_posix(larger, counts, 2);
	assert_slabs(CF_SLAB_MAX, (32768 + 65536) * KIB);
}

/* cuda-python's test asks for slabs of 16 GiB, and more can be written. */
static void sums_that_no_machine_has_do_not_wrap(void **state)
{
	static const uint64_t kib[] = { 268435456, 268435456 };
	static const uint64_t counts[] = { 4294967295, 4294967295 };
	struct cf_config *config;
	struct cf_slabs slabs;

	stage_posix(kib, counts, 2);
	config = load();
	assert_true(cf_slabs_asked(config, &slabs));
	assert_int_equal(slabs.slot, CF_SLAB_MAX);
	assert_true(slabs.bytes > 1ul << 60);
	cf_config_free(config);
}

static void bounce_slabs_go_before_cache_keys_and_those_before_posix_slabs(
	void **state)
{
	static const uint64_t kib[] = { 128 }, counts[] = { 16 };

	cf_staged_set_size(cf_config_staged(), CF_CFG_PER_BUFFER_CACHE_SIZE_KB,
			   64);
	stage_posix(kib, counts, 1);
	assert_not_asked();
	cf_staged_set_size(cf_config_staged(), CF_CFG_PER_BUFFER_CACHE_SIZE_KB,
			   64);
	stage_bounce(kib, counts, 1);
	assert_slabs(128 * KIB, 2048 * KIB);
}

/* Of the bytes; what there is of slots has its size. */
static void the_setter_of_a_running_driver_has_the_last_word(void **state)
{
	static const uint64_t kib[] = { 128 }, counts[] = { 16 };
	struct cf_config *config;
	size_t slot;

	for (int asked = 0; asked < 4; asked++) {
		if (asked == 1)
			stage_bounce(kib, counts, 1);
		if (asked >= 2)
			stage_posix(kib, counts, 1);
		if (asked == 3)
			cf_staged_set_size(cf_config_staged(),
					   CF_CFG_MAX_DEVICE_CACHE_SIZE_KB,
					   65536);
		config = load();
		slot = cf_plan_slot_size(config);
		assert_int_equal(slot == 128 * KIB, asked == 1 || asked == 2);
		cf_config_set_runtime_size(
			config, CF_CFG_MAX_DEVICE_CACHE_SIZE_KB, 4096);
		assert_int_equal(cf_plan_slot_size(config), slot);
		assert_int_equal(cf_plan_staging_bytes(config), 4096 * KIB);
		cf_config_free(config);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_nvidia_ships_is_nobodys_wish),
		cmocka_unit_test(
			the_largest_slab_is_the_slot_and_all_are_the_bound),
		cmocka_unit_test(counts_alone_are_a_wish_too),
		cmocka_unit_test(so_are_sizes_alone_and_a_longer_list),
		cmocka_unit_test(a_slot_stays_between_its_bounds),
		cmocka_unit_test(sums_that_no_machine_has_do_not_wrap),
		cmocka_unit_test(
			bounce_slabs_go_before_cache_keys_and_those_before_posix_slabs),
		cmocka_unit_test(
			the_setter_of_a_running_driver_has_the_last_word),
	};

	setenv("CUFILE_ENV_PATH_JSON", "/nonexistent", 1);
	return cmocka_run_group_tests_name("slabs", tests, NULL, NULL);
}

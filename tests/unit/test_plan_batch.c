// SPDX-License-Identifier: Apache-2.0
/* test_plan_batch - how the entries of a batch are shared, and what for. */
#include "engine/plan.h"
#include "engine/plan_batch.h"
#include "engine/plan_limits.h"
#include "path/bundle.h"
#include "path/fleet.h"
#include "plan_asked.h"

static void a_fleet_is_deep_and_a_large_one_has_one_carrier(void **state)
{
	struct cf_fleet_plan small, large, tiny;

	configure(0);
	small = cf_plan_fleet(4096, 1000);
	assert_true(small.carriers > 1);
	assert_int_equal(small.carriers * small.flights, 128);
	large = cf_plan_fleet(TH_MIB, 1000);
	assert_int_equal(large.carriers, 1);
	assert_int_equal(large.flights, 32);
	tiny = cf_plan_fleet(4096, 3);
	assert_int_equal(tiny.carriers, 1);
	assert_int_equal(tiny.flights, 3);
	for (size_t need = 4096; need <= 4 * TH_MIB; need *= 2)
		for (unsigned nr = 1; nr <= 65536; nr *= 4) {
			struct cf_fleet_plan p = cf_plan_fleet(need, nr);

			assert_in_range(p.flights, 1, CF_FLEET_MAX);
			assert_true(p.carriers >= 1 && p.carriers <= nr);
		}
}

static bool has_convoys(size_t size)
{
	return cf_plan_has_convoys(&(struct cf_piece){ .size = size });
}

static void large_entries_of_a_batch_may_be_a_convoy(void **state)
{
	configure(0);
	assert_false(has_convoys(TH_MIB - 1));
	assert_true(has_convoys(TH_MIB));
	assert_true(has_convoys(8 * TH_MIB));
	assert_false(has_convoys(8 * TH_MIB + 1));
	configure(2044);
	assert_false(has_convoys(TH_MIB));
	configure(2048);
	assert_true(has_convoys(TH_MIB));
	assert_false(cf_plan_is_convoy(64 * TH_MIB - 1));
	assert_true(cf_plan_is_convoy(64 * TH_MIB));
}

static size_t demoted_of_bundle(enum cf_op op, size_t size)
{
	return cf_plan_bundle_demote(
		&(struct cf_piece){ .op = op, .size = size });
}

static void what_a_bundle_reads_is_demoted(void **state)
{
	size_t least = 16 * TH_KIB, most = CF_BUNDLE_MAX_SIZE;

	(void)state;
	configure_demoting();
	assert_int_equal(demoted_of_bundle(CF_READ, least - 1), 0);
	assert_int_equal(demoted_of_bundle(CF_READ, least), CF_DEMOTE_ALL);
	assert_int_equal(demoted_of_bundle(CF_READ, most), CF_DEMOTE_ALL);
	assert_int_equal(demoted_of_bundle(CF_READ, most + 1), 0);
	assert_int_equal(demoted_of_bundle(CF_WRITE, most), 0);
	atomic_store(&cf_plan_bounds.can_demote, false);
	assert_int_equal(demoted_of_bundle(CF_READ, most), 0);
}

static void has_crews(struct cf_crew_plan plan, unsigned bundles,
		      unsigned helpers)
{
	assert_int_equal(plan.bundles, bundles);
	assert_int_equal(bundles ? plan.helpers : 0, helpers);
}

#define LONG_NS 10000000 /* as many carriers as there can be */

static void reads_of_a_batch_that_are_worth_several_workers_have_crews(
	void **state)
{
	(void)state;
	configure(0);
	has_crews(cf_plan_crews(64, 4999, TH_MIB), 0, 0);
	has_crews(cf_plan_crews(64, 5000, TH_MIB), 1, 1);
	has_crews(cf_plan_crews(64, 35000, TH_MIB), 1, 7);
	has_crews(cf_plan_crews(64, 179999, TH_MIB), 1, 8);
	has_crews(cf_plan_crews(1, LONG_NS, TH_MIB), 0, 0);
	has_crews(cf_plan_crews(4, LONG_NS, TH_MIB), 1, 3);
	has_crews(cf_plan_crews(64, LONG_NS, TH_MIB), 1, 15);
	atomic_store(&cf_plan_bounds.gpu_workers, 4);
	has_crews(cf_plan_crews(64, LONG_NS, TH_MIB), 1, 3);
	atomic_store(&cf_plan_bounds.gpu_workers, 3);
	has_crews(cf_plan_crews(64, LONG_NS, TH_MIB), 0, 0);
	atomic_store(&cf_plan_bounds.gpu_workers, 0);
	has_crews(cf_plan_crews(64, LONG_NS, TH_MIB), 0, 0);
}

static void what_one_slot_does_not_hold_has_two_crews(void **state)
{
	(void)state;
	configure(0);
	has_crews(cf_plan_crews(256, LONG_NS, 4 * TH_MIB), 1, 15);
	has_crews(cf_plan_crews(257, LONG_NS, TH_MIB), 2, 7);
	has_crews(cf_plan_crews(64, LONG_NS, 4 * TH_MIB + 1), 2, 7);
	has_crews(cf_plan_crews(257, 60000, TH_MIB), 2, 3);
	has_crews(cf_plan_crews(64, 200000, 4 * TH_MIB + 1), 2, 4);
}

static unsigned share_of(unsigned nr, size_t need_of_each)
{
	return cf_plan_crews(nr, LONG_NS, (unsigned long long)nr * need_of_each)
		.share;
}

static void crews_have_shares_alike(void **state)
{
	(void)state;
	configure(0);
	assert_int_equal(share_of(64, 64 * TH_KIB), 64);
	assert_int_equal(share_of(65, 64 * TH_KIB), 33);
	assert_int_equal(share_of(128, 64 * TH_KIB), 64);
	assert_int_equal(share_of(130, 64 * TH_KIB), 33);
	/* of these a slot holds 63 */
	assert_int_equal(share_of(64, 64 * TH_KIB + 16), 32);
	assert_int_equal(share_of(127, 64 * TH_KIB + 16), 32);
	assert_int_equal(share_of(256, 4096), 256);
	assert_int_equal(share_of(257, 4096), 129);
	assert_int_equal(share_of(1024, 16), 256);
}

/* Then there are enough bundles without, each under way while others are. */
static void many_bytes_have_no_crews(void **state)
{
	(void)state;
	configure(0);
	has_crews(cf_plan_crews(4096, LONG_NS, 16 * TH_MIB), 2, 7);
	has_crews(cf_plan_crews(4096, LONG_NS, 16 * TH_MIB + 1), 0, 0);
}

static void small_slots_have_no_crews(void **state)
{
	(void)state;
	configure(1020);
	has_crews(cf_plan_crews(64, LONG_NS, 256 * TH_KIB), 0, 0);
	configure(1028);
	assert_int_equal(cf_plan_crewed_bytes(), TH_MIB);
	has_crews(cf_plan_crews(64, LONG_NS, TH_MIB), 1, 15);
	has_crews(cf_plan_crews(64, LONG_NS, TH_MIB + 1), 2, 7);
}

static void a_bundle_with_a_crew_may_fill_its_slot(void **state)
{
	static const uint64_t slots_kib[] = { 64, 1028, 2048, 16384 };

	(void)state;
	configure(0);
	assert_int_equal(cf_plan_crewed_bytes(), 4 * TH_MIB);
	assert_int_equal(cf_plan_bundle_bytes(), CF_BUNDLE_MAX_BYTES);
	for (size_t i = 0; i < sizeof(slots_kib) / sizeof(slots_kib[0]); i++) {
		configure(slots_kib[i]);
		assert_true(cf_plan_crewed_bytes() <= slots_kib[i] * TH_KIB);
		assert_true(cf_plan_bundle_bytes() <= cf_plan_crewed_bytes());
	}
}

static unsigned cost_of(struct cf_handle *handle, size_t size)
{
	struct cf_piece piece = { .handle = handle,
				  .via = handle->direct ? CF_VIA_DIRECT :
							  CF_VIA_CACHE,
				  .size = size };

	return cf_plan_cost_ns(&piece);
}

static void an_entry_costs_its_call_its_bytes_and_its_disk(void **state)
{
	struct cf_handle file, direct_file, theirs;
	unsigned cached;

	make_files(&file, &direct_file);
	theirs = file;
	theirs.fs_ops = (const void *)&theirs;
	cached = cost_of(&file, 4096);
	assert_true(cost_of(&file, TH_MIB) > 50 * cached);
	assert_true(cost_of(&direct_file, 4096) > 50 * cached);
	assert_true(cost_of(&theirs, 4096) > 50 * cached);
}

static void groups_are_halves_of_what_is_left(void **state)
{
	assert_int_equal(cf_plan_group_ns(400000, 4), 50000);
	assert_int_equal(cf_plan_group_ns(1000, 4), 20000);
	assert_int_equal(cf_plan_group_ns(10000000, 4), 100000);
	configure(0);
	atomic_store(&cf_plan_bounds.gpu_workers, 0);
	assert_int_equal(cf_plan_carriers(10000000, 100, 1), 1);
	configure(0);
}

static void flights_are_shared_by_carriers_and_none_is_left(void **state)
{
	struct cf_fleet_plan odd = cf_plan_fleet(4096, 65);
	struct cf_piece piece = { .size = 128 * TH_KIB };

	(void)state;
	assert_int_equal(odd.carriers, 4);
	assert_int_equal(odd.flights, 17);
	assert_true(cf_plan_fleet(256 * TH_KIB, 1000).carriers > 1);
	assert_int_equal(cf_plan_fleet(256 * TH_KIB + 1, 1000).carriers, 1);
	assert_false(cf_plan_is_large(&piece));
	piece.size++;
	assert_true(cf_plan_is_large(&piece));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			an_entry_costs_its_call_its_bytes_and_its_disk),
		cmocka_unit_test(groups_are_halves_of_what_is_left),
		cmocka_unit_test(
			flights_are_shared_by_carriers_and_none_is_left),
		cmocka_unit_test(
			a_fleet_is_deep_and_a_large_one_has_one_carrier),
		cmocka_unit_test(large_entries_of_a_batch_may_be_a_convoy),
		cmocka_unit_test(what_a_bundle_reads_is_demoted),
		cmocka_unit_test(
			reads_of_a_batch_that_are_worth_several_workers_have_crews),
		cmocka_unit_test(what_one_slot_does_not_hold_has_two_crews),
		cmocka_unit_test(crews_have_shares_alike),
		cmocka_unit_test(many_bytes_have_no_crews),
		cmocka_unit_test(small_slots_have_no_crews),
		cmocka_unit_test(a_bundle_with_a_crew_may_fill_its_slot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

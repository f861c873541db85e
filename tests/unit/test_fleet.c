// SPDX-License-Identifier: Apache-2.0
/*
 * test_fleet - pieces that go O_DIRECT through one ring: each ends once, with
 * its bytes, and what goes wrong on the way ends those it concerns.
 */
#include "path/fleet.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "core/device.h"
#include "core/file.h"
#include "harness.h"

#define MAX_NR 32
#define PAD 4096
#define LOST CF_ECUDA(CF_CU_UNKNOWN)

/* Piece i moves its stretch of the file to or from the same place of memory. */
struct world {
	struct cf_fleet fleet;
	struct th_pair pair;
	struct cf_piece pieces[MAX_NR];
	ssize_t results[MAX_NR];
	unsigned ends[MAX_NR]; /* how often it was told */
	unsigned nr, taken;
	bool asked_again;   /* after it was told that there is none */
	unsigned char *out; /* what a write takes to the file */
};

static const struct cf_piece *next(struct cf_fleet *fleet)
{
	struct world *w = (struct world *)fleet;

	w->asked_again |= w->taken > w->nr;
	return w->taken < w->nr ? &w->pieces[w->taken++] : (w->taken++, NULL);
}

static void ended(struct cf_fleet *fleet, const struct cf_piece *const *pieces,
		  const ssize_t *results, unsigned nr)
{
	struct world *w = (struct world *)fleet;

	assert_true(nr > 0);
	for (unsigned i = 0; i < nr; i++) {
		w->results[pieces[i] - w->pieces] = results[i];
		w->ends[pieces[i] - w->pieces]++;
	}
}

static void world_make(struct world *w, size_t slot, size_t size)
{
	*w = (struct world){
		.fleet = { .next = next, .ended = ended, .flights = 4 }
	};
	th_need_fake();
	th_slots_of(slot);
	th_pair_make(&w->pair, TH_ODIRECT, size, 2 * PAD);
	if (!cf_rings_usable()) { /* the driver's opening said so */
		th_pair_end(&w->pair);
		th_skip("this machine refuses io_uring");
	}
	w->out = th_bytes(size);
}

static void add(struct world *w, enum cf_op op, size_t at, size_t size)
{
	struct cf_piece *piece = &w->pieces[w->nr++];

	*piece = (struct cf_piece){ .op = op,
				    .via = CF_VIA_DIRECT,
				    .size = size,
				    .file_off = (off_t)at,
				    .handle = cf_handle_get(w->pair.fh) };
	assert_non_null(piece->handle);
	cf_handle_put(piece->handle); /* the pair keeps it registered */
	cf_memory_facts((uintptr_t)w->pair.mem.ptr + PAD + at, &piece->mem);
	assert_true(cf_fleet_can(piece, false));
	if (w->fleet.cell < cf_fleet_need(piece))
		w->fleet.cell = cf_fleet_need(piece);
}

/* Cuts all of the file into nr stretches; those of writes are whole blocks. */
static void add_all(struct world *w, enum cf_op op, unsigned nr)
{
	size_t each = w->pair.size / nr;

	each = op == CF_READ ? each - 5 : each & ~(size_t)4095;
	for (unsigned i = 0; i < nr; i++)
		add(w, op, i * each,
		    i + 1 < nr ? each : w->pair.size - i * each);
}

static void nothing_is_leased(struct world *w)
{
	static const size_t sizes[] = { 1, 64 * TH_MIB };
	struct cf_device *dev;
	size_t bytes, leased;

	assert_int_equal(cf_device_find(&w->pieces[0].mem, &dev), 0);
	for (unsigned i = 0; i < 2; i++) {
		cf_pool_usage(cf_gpu_pool(dev->gpu, sizes[i]), &bytes, &leased);
		assert_int_equal(leased, 0);
	}
}

static unsigned long calls; /* of the driver by the last one */

/* plan: what of it fails, or NULL. */
static void run_with(struct world *w, const char *plan)
{
	struct cf_ring *ring = cf_ring_lease(), *again;

	assert_non_null(ring);
	for (unsigned i = 0; i < w->nr; i++)
		w->ends[i] = 0;
	w->taken = 1;
	w->asked_again = false;
	th_mem_set(&w->pair.mem, 0xa5);
	if (w->pieces[0].op == CF_WRITE)
		th_mem_put(&w->pair.mem, PAD, w->out, w->pair.size);
	if (plan)
		assert_int_equal(th_fake()->plan(plan), 0);
	calls = th_fake()->calls(NULL);
	cf_fleet_run(&w->fleet, ring, &w->pieces[0]);
	calls = th_fake()->calls(NULL) - calls;
	th_fake()->plan_clear();
	assert_false(w->asked_again);
	/* it is idle again */
	again = cf_ring_lease();
	assert_ptr_equal(again, ring);
	cf_ring_give_back(again);
	nothing_is_leased(w);
}

static void run(struct world *w)
{
	run_with(w, NULL);
}

static void world_end(struct world *w)
{
	free(w->out);
	th_pair_end(&w->pair);
}

/* What has come of piece i, in memory or in the file, is what should. */
static void piece_is_there(struct world *w, unsigned i)
{
	const struct cf_piece *piece = &w->pieces[i];
	size_t at = (size_t)piece->file_off;

	assert_int_equal(w->results[i], piece->size);
	if (piece->op == CF_READ) {
		th_mem_get(&w->pair.mem, PAD + at, w->pair.got, piece->size);
		th_equal("in memory", w->pair.got, w->pair.bytes + at,
			 piece->size);
	} else {
		th_file_get(&w->pair.file, at, w->pair.got, piece->size);
		th_equal("in the file", w->pair.got, w->out + at, piece->size);
	}
}

/* Each that was taken was told once, the others not at all. */
static void ended_well_or_failed(struct world *w)
{
	for (unsigned i = 0; i < w->nr; i++) {
		assert_int_equal(w->ends[i], i < w->taken);
		if (i < w->taken && !cf_is_cuda_error((int)w->results[i]))
			piece_is_there(w, i);
	}
}

static void all_ended_well(struct world *w)
{
	assert_true(w->taken > w->nr);
	for (unsigned i = 0; i < w->nr; i++) {
		assert_int_equal(w->ends[i], 1);
		piece_is_there(w, i);
	}
}

/* ---------------------------------------------------------------- tests */

static const enum cf_op ops[] = { CF_READ, CF_WRITE };

static void all_of_it_is_moved(void **state)
{
	struct world w;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		world_make(&w, TH_MIB, 3 * TH_MIB + 777);
		add_all(&w, ops[i], 20);
		run(&w);
		all_ended_well(&w);
		world_end(&w);
	}
}

/* One of 64 KiB has room for a cell or two. */
static void it_is_with_little_room(void **state)
{
	struct world w;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		world_make(&w, 64 * TH_KIB, TH_MIB);
		add_all(&w, ops[i], 32);
		run(&w);
		all_ended_well(&w);
		world_end(&w);
	}
}

/* Nothing was begun, so the first is told, and it alone was taken. */
static void without_a_lane_the_first_one_fails(void **state)
{
	static const char *const plans[] = {
		"cuStreamCreateWithPriority:1=999,cuStreamCreate:1=999",
		"cuEventCreate:1=999",
	};
	struct world w;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		world_make(&w, TH_MIB, TH_MIB);
		add_all(&w, ops[i / 2], 8);
		run_with(&w, plans[i % 2]);
		ended_well_or_failed(&w);
		assert_int_equal(w.taken, 1);
		assert_int_equal(w.results[0], LOST);
		run(&w);
		all_ended_well(&w);
		world_end(&w);
	}
}

/* As when the client resets its GPU: the next may be well. */
static void a_context_that_is_another_by_now_gets_all_of_it(void **state)
{
	struct world w;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		world_make(&w, TH_MIB, TH_MIB);
		add_all(&w, ops[i], 8);
		run_with(&w, "cuStreamCreateWithPriority:1=709,"
			     "cuStreamCreate:1=709");
		all_ended_well(&w);
		world_end(&w);
	}
}

/* What was not copied is not written, and none is taken after it. */
static void a_write_that_is_not_copied_is_not_written(void **state)
{
	struct world w;

	(void)state;
	world_make(&w, TH_MIB, TH_MIB);
	add_all(&w, CF_WRITE, 16);
	run_with(&w, "cuStreamSynchronize:1=999");
	ended_well_or_failed(&w);
	assert_true(w.taken < w.nr);
	for (unsigned i = 0; i < w.taken; i++)
		assert_int_equal(w.results[i], LOST);
	th_file_get(&w.pair.file, 0, w.pair.got, w.pair.size);
	th_equal("the file", w.pair.got, w.pair.bytes, w.pair.size);
	world_end(&w);
}

/* Those that a round took: the disk chooses which land first. */
static bool any_was_lost(const struct world *w)
{
	for (unsigned i = 0; i < w->taken; i++)
		if (w->results[i] == LOST)
			return true;
	return false;
}

/* Others that were flying are copied, and that does not undo it. */
static void after_trouble_with_the_device_none_is_taken(void **state)
{
	struct world w;

	(void)state;
	world_make(&w, TH_MIB, TH_MIB);
	add_all(&w, CF_READ, 32);
	run_with(&w, "cuStreamSynchronize:1=999");
	ended_well_or_failed(&w);
	assert_true(any_was_lost(&w));
	assert_true(w.taken < w.nr);
	world_end(&w);
}

/* Its copy is over when the slot is anybody's again. */
static void a_copy_under_way_is_waited_for(void **state)
{
	struct world w;

	(void)state;
	world_make(&w, TH_MIB, TH_MIB);
	add_all(&w, CF_READ, 1);
	th_fake()->copy_delay_us(20000);
	run_with(&w, "cuStreamSynchronize:1=999");
	assert_int_equal(th_fake()->read((uintptr_t)w.pair.mem.ptr + PAD,
					 w.pair.got, w.pair.size),
			 0);
	th_fake()->copy_delay_us(0);
	assert_int_equal(w.results[0], LOST);
	th_equal("the bytes", w.pair.got, w.pair.bytes, w.pair.size);
	world_end(&w);
}

/* The n-th call of the driver fails, for all n there are. */
static void any_call_may_fail(void **state)
{
	unsigned long nr;
	char plan[32];
	struct world w;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		world_make(&w, 64 * TH_KIB, 256 * TH_KIB);
		add_all(&w, ops[i], 12);
		run(&w);
		run(&w);
		nr = calls;
		assert_in_range(nr, 10, 1000);
		for (unsigned n = 1; n <= nr; n++) {
			snprintf(plan, sizeof(plan), "*:%u=999", n);
			th_fill(w.out, w.pair.size);
			run_with(&w, plan);
			ended_well_or_failed(&w);
		}
		run(&w);
		all_ended_well(&w);
		world_end(&w);
	}
}

/* What lies behind its end, and over it. */
static void a_file_that_ends_ends_its_pieces(void **state)
{
	size_t end = 300 * TH_KIB + 5;
	struct world w;

	(void)state;
	world_make(&w, TH_MIB, TH_MIB);
	add_all(&w, CF_READ, 8);
	assert_int_equal(ftruncate(w.pair.file.plain, (off_t)end), 0);
	run(&w);
	for (unsigned i = 0; i < 8; i++) {
		size_t at = (size_t)w.pieces[i].file_off;
		size_t left = at < end ? end - at : 0;

		assert_int_equal(w.results[i], left < w.pieces[i].size ?
						       left :
						       w.pieces[i].size);
	}
	world_end(&w);
}

static void only_what_the_disk_moves_by_itself_can(void **state)
{
	struct cf_handle handle = { .page_align = 4096, .dio_align = 512 };
	const struct cf_piece good = { .size = CF_FLEET_MAX_SIZE,
				       .via = CF_VIA_DIRECT,
				       .mem.kind = CF_MEMORY_DEVICE,
				       .file_off = 100,
				       .handle = &handle };
	struct cf_piece piece = good;

	(void)state;
	assert_true(cf_fleet_can(&piece, false));
	piece.size++;
	assert_false(cf_fleet_can(&piece, false));
	piece.size = 0;
	assert_false(cf_fleet_can(&piece, false));
	piece = good;
	piece.via = CF_VIA_CACHE;
	assert_false(cf_fleet_can(&piece, false));
	/* the CPU's memory has to lie as the file does */
	piece = good;
	piece.mem.kind = CF_MEMORY_HOST;
	assert_false(cf_fleet_can(&piece, false));
	piece.mem.addr = 512 + 100;
	assert_true(cf_fleet_can(&piece, false));
	handle.fs_ops = (const void *)&handle;
	assert_false(cf_fleet_can(&good, false));
}

#define TEST(name) cmocka_unit_test_teardown(name, th_teardown_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(all_of_it_is_moved),
		TEST(it_is_with_little_room),
		TEST(without_a_lane_the_first_one_fails),
		TEST(a_context_that_is_another_by_now_gets_all_of_it),
		TEST(a_write_that_is_not_copied_is_not_written),
		TEST(after_trouble_with_the_device_none_is_taken),
		TEST(a_copy_under_way_is_waited_for),
		TEST(any_call_may_fail),
		TEST(a_file_that_ends_ends_its_pieces),
		TEST(only_what_the_disk_moves_by_itself_can),
	};

	th_start(60);
	return th_finish(
		cmocka_run_group_tests_name("fleet", tests, NULL, NULL));
}

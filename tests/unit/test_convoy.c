// SPDX-License-Identifier: Apache-2.0
/*
 * test_convoy - pieces of any size through the places of one slot: each ends
 * once, with its bytes, and early; and what goes wrong ends those it concerns.
 */
#include "path/convoy.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "core/device.h"
#include "core/slot.h"
#include "harness.h"
#include "seam/os.h"

#define MAX_NR 32
#define PAD 4096

/* Piece i reads its stretch of the file into the same place of memory. */
struct world {
	struct cf_convoy convoy;
	struct th_pair pair;
	struct cf_piece pieces[MAX_NR];
	ssize_t results[MAX_NR];
	unsigned ends[MAX_NR]; /* how often it was told */
	unsigned nr, taken, ended;
	unsigned ended_when_last; /* so many when the last was taken */
	bool reuses;		  /* the memory of pieces that have failed */
};

static unsigned char others[TH_MIB]; /* which the client puts there later */

static const struct cf_piece *next(struct cf_convoy *convoy)
{
	struct world *w = (struct world *)convoy;

	if (w->taken == w->nr)
		return NULL;
	if (w->taken + 1 == w->nr)
		w->ended_when_last = w->ended;
	return &w->pieces[w->taken++];
}

static void ended(struct cf_convoy *convoy, const struct cf_piece *piece,
		  ssize_t result)
{
	struct world *w = (struct world *)convoy;

	w->results[piece - w->pieces] = result;
	w->ends[piece - w->pieces]++;
	w->ended++;
	if (w->reuses && result < 0) {
		th_fake()->copy_delay_us(0);
		th_mem_put(&w->pair.mem, PAD + (size_t)piece->file_off, others,
			   piece->size);
	}
}

static void world_make(struct world *w, size_t slot, size_t size)
{
	*w = (struct world){ .convoy = { .next = next, .ended = ended } };
	th_need_fake();
	th_slots_of(slot);
	th_pair_make(&w->pair, TH_BUFFERED, size, 2 * PAD);
}

static void add(struct world *w, size_t at, size_t size)
{
	struct cf_piece *piece = &w->pieces[w->nr++];

	*piece = (struct cf_piece){ .op = CF_READ,
				    .size = size,
				    .file_off = (off_t)at,
				    .handle = cf_handle_get(w->pair.fh) };
	assert_non_null(piece->handle);
	cf_handle_put(piece->handle); /* the pair keeps it registered */
	cf_memory_facts((uintptr_t)w->pair.mem.ptr + PAD + at, &piece->mem);
	assert_true(cf_convoy_can(piece));
}

/* Cuts all of the file into nr stretches, no two alike. */
static void add_all(struct world *w, unsigned nr)
{
	size_t at = 0;

	for (unsigned i = 0; i < nr; i++) {
		size_t left = w->pair.size - at, fair = left / (nr - i);
		size_t size = i + 1 == nr ? left : fair / 2 + th_below(fair);

		add(w, at, size);
		at += size;
	}
}

static void run(struct world *w)
{
	struct cf_device *dev;
	size_t bytes, leased;

	w->taken = 1;
	cf_convoy_run(&w->convoy, &w->pieces[0]);
	th_fake()->plan_clear();
	th_fake()->copy_delay_us(0);
	assert_int_equal(cf_device_find(&w->pieces[0].mem, &dev), 0);
	cf_pool_usage(cf_gpu_pool(dev->gpu, TH_MIB), &bytes, &leased);
	assert_int_equal(leased, 0);
}

/* Each that was taken was told once, the others not at all. */
static void told_once(const struct world *w)
{
	for (unsigned i = 0; i < w->nr; i++)
		assert_int_equal(w->ends[i], i < w->taken);
}

static void world_end(struct world *w)
{
	th_pair_end(&w->pair);
}

/* The first size bytes, and no other. */
static void is_there(struct world *w, size_t size)
{
	struct th_pair *p = &w->pair;

	th_mem_get(&p->mem, 0, p->got, p->size + 2 * PAD);
	th_all("before", p->got, 0xa5, PAD);
	th_equal("the bytes", p->got + PAD, p->bytes, size);
	th_all("behind", p->got + PAD + size, 0xa5, p->size + PAD - size);
}

static void all_ended_well(struct world *w)
{
	told_once(w);
	assert_int_equal(w->taken, w->nr);
	for (unsigned i = 0; i < w->nr; i++)
		assert_int_equal(w->results[i], w->pieces[i].size);
	is_there(w, w->pair.size);
}

/* ---------------------------------------------------------------- tests */

/* Copies that begin late lie in their places until then. */
static void moves(size_t slot, size_t size, unsigned nr, unsigned delay_us)
{
	struct world w;

	world_make(&w, slot, size);
	add_all(&w, nr);
	th_fake()->copy_delay_us(delay_us);
	run(&w);
	all_ended_well(&w);
	world_end(&w);
}

static void pieces_larger_than_a_place_come_whole(void **state)
{
	moves(4 * TH_MIB, 13 * TH_MIB + 777, 5, 0);
	moves(4 * TH_MIB, 13 * TH_MIB + 777, 5, 3000);
	moves(256 * TH_KIB, 3 * TH_MIB + 5, 4, 2000);
}

static void pieces_smaller_than_a_place_come_whole(void **state)
{
	moves(4 * TH_MIB, 6 * TH_MIB + 777, 20, 3000);
	moves(4 * TH_MIB, 20, 4, 3000);
}

static void an_end_is_told_while_others_are_under_way(void **state)
{
	struct world w;

	world_make(&w, 4 * TH_MIB, 8 * TH_MIB);
	for (unsigned i = 0; i < 8; i++)
		add(&w, i * TH_MIB, TH_MIB);
	th_fake()->copy_delay_us(2000);
	run(&w);
	told_once(&w);
	/* those whose places were needed again, at least */
	assert_in_range(w.ended_when_last, 4, 7);
	world_end(&w);
}

static void the_end_of_the_file_ends_its_piece_and_no_other(void **state)
{
	size_t end = 5 * TH_MIB + 99;
	struct world w;

	for (unsigned delay = 0; delay < 2; delay++) {
		world_make(&w, 4 * TH_MIB, 12 * TH_MIB);
		for (unsigned i = 0; i < 4; i++)
			add(&w, i * 3 * TH_MIB, 3 * TH_MIB);
		add(&w, 0, TH_MIB);
		assert_int_equal(ftruncate(w.pair.file.plain, (off_t)end), 0);
		th_fake()->copy_delay_us(delay * 2000);
		run(&w);
		told_once(&w);
		assert_int_equal(w.results[0], 3 * TH_MIB);
		assert_int_equal(w.results[1], end - 3 * TH_MIB);
		assert_int_equal(w.results[2], 0);
		assert_int_equal(w.results[3], 0);
		assert_int_equal(w.results[4], TH_MIB);
		is_there(&w, end);
		world_end(&w);
	}
}

/* A piece whose end lies at a part's has sent all of it before it knows. */
static void a_file_that_ends_with_a_part_is_no_error(void **state)
{
	struct world w;

	world_make(&w, 4 * TH_MIB, 4 * TH_MIB);
	add(&w, 0, 4 * TH_MIB);
	assert_int_equal(ftruncate(w.pair.file.plain, 2 * TH_MIB), 0);
	run(&w);
	told_once(&w);
	assert_int_equal(w.results[0], 2 * TH_MIB);
	is_there(&w, 2 * TH_MIB);
	world_end(&w);
}

/* ------------------------------------------------------ what goes wrong */

static struct cf_os faulty;
static off_t bad_from; /* reads from here on fail */

static ssize_t fail_behind(int fd, void *buf, size_t size, off_t off)
{
	return off >= bad_from ? -EIO : cf_os_real.pread(fd, buf, size, off);
}

static void a_read_that_fails_ends_its_piece_and_no_other(void **state)
{
	struct world w;

	world_make(&w, 4 * TH_MIB, 8 * TH_MIB);
	faulty = cf_os_real;
	faulty.pread = fail_behind;
	bad_from = 3 * TH_MIB;
	add(&w, 4 * TH_MIB, 2 * TH_MIB);
	add(&w, 0, 2 * TH_MIB);
	add(&w, 2 * TH_MIB, 2 * TH_MIB);
	add(&w, 4 * TH_MIB, TH_MIB);
	cf_os = &faulty;
	run(&w);
	cf_os = &cf_os_real;
	told_once(&w);
	assert_int_equal(w.taken, 4);
	assert_int_equal(w.results[0], -EIO);
	assert_int_equal(w.results[1], 2 * TH_MIB);
	assert_int_equal(w.results[2], TH_MIB);
	assert_int_equal(w.results[3], -EIO);
	is_there(&w, 3 * TH_MIB);
	world_end(&w);
}

/* All bytes of a piece that ended well, and an error for all others. */
static void ended_well_or_failed(struct world *w)
{
	struct th_pair *p = &w->pair;

	told_once(w);
	th_mem_get(&p->mem, PAD, p->got, p->size);
	for (unsigned i = 0; i < w->taken; i++) {
		size_t at = (size_t)w->pieces[i].file_off;

		if (cf_is_cuda_error((int)w->results[i]))
			continue;
		assert_int_equal(w->results[i], w->pieces[i].size);
		th_equal("a piece", p->got + at, p->bytes + at,
			 w->pieces[i].size);
	}
}

/*
 * From the piece on whose copy or wait it was nothing is certain, and no other
 * is taken: good says how many ended well, taken how many were.
 */
static void fails_with(const char *plan, unsigned good, unsigned taken)
{
	struct world w;

	world_make(&w, 4 * TH_MIB, 8 * TH_MIB);
	for (unsigned i = 0; i < 8; i++)
		add(&w, i * TH_MIB, TH_MIB);
	assert_int_equal(th_fake()->plan(plan), 0);
	run(&w);
	told_once(&w);
	assert_int_equal(w.taken, taken);
	for (unsigned i = 0; i < taken; i++)
		assert_int_equal(w.results[i], i < good ?
						       (ssize_t)TH_MIB :
						       CF_ECUDA(CF_CU_UNKNOWN));
	ended_well_or_failed(&w);
	world_end(&w);
}

static void a_copy_that_fails_is_the_last(void **state)
{
	fails_with("cuMemcpyHtoDAsync_v2:1=999", 0, 1);
	fails_with("cuEventQuery:*=600,cuMemcpyHtoDAsync_v2:3=999", 2, 3);
	fails_with("cuEventQuery:*=600,cuMemcpyHtoDAsync_v2:3=999,"
		   "cuEventSynchronize:2=999",
		   1, 3);
}

static void a_copy_that_cannot_be_marked_is_the_last(void **state)
{
	fails_with("cuEventRecord:1=999", 0, 1);
	fails_with("cuEventQuery:*=600,cuEventRecord:3=999", 2, 3);
}

static void a_wait_that_fails_is_the_last(void **state)
{
	fails_with("cuEventQuery:*=600,cuEventSynchronize:1=999", 0, 4);
	fails_with("cuEventQuery:*=600,cuEventSynchronize:3=999", 2, 6);
}

static void a_question_that_fails_is_the_last(void **state)
{
	fails_with("cuEventQuery:1=999", 0, 1);
}

/* Its copy is over when the slot is anybody's again. */
static void a_copy_under_way_is_waited_for(void **state)
{
	struct world w;

	world_make(&w, 4 * TH_MIB, 2 * TH_MIB);
	add(&w, 0, TH_MIB);
	add(&w, TH_MIB, TH_MIB);
	assert_int_equal(th_fake()->plan("cuEventRecord:2=999"), 0);
	th_fake()->copy_delay_us(20000);
	run(&w);
	told_once(&w);
	assert_int_equal(w.results[1], CF_ECUDA(CF_CU_UNKNOWN));
	is_there(&w, 2 * TH_MIB);
	world_end(&w);
}

/* Whose memory is the client's again when its end is told. */
static void is_over_when_it_is_told(const char *plan, unsigned failed)
{
	struct world w;
	size_t at;

	world_make(&w, 4 * TH_MIB, 2 * TH_MIB);
	add(&w, 0, TH_MIB);
	add(&w, TH_MIB, TH_MIB);
	w.reuses = true;
	memset(others, 0x5a, sizeof(others));
	assert_int_equal(th_fake()->plan(plan), 0);
	th_fake()->copy_delay_us(20000);
	run(&w);
	told_once(&w);
	assert_int_equal(w.results[failed], CF_ECUDA(CF_CU_UNKNOWN));
	at = (size_t)w.pieces[failed].file_off;
	th_mem_get(&w.pair.mem, PAD + at, w.pair.got, TH_MIB);
	th_all("the client's", w.pair.got, 0x5a, TH_MIB);
	world_end(&w);
}

static void no_copy_comes_after_the_end_of_its_piece(void **state)
{
	is_over_when_it_is_told("cuEventRecord:1=999", 0);
	is_over_when_it_is_told("cuEventRecord:2=999", 1);
	is_over_when_it_is_told("cuEventQuery:1=999", 0);
	is_over_when_it_is_told("cuEventQuery:*=600,cuEventSynchronize:1=999",
				0);
}

/* Nothing was begun, so the first is told, and it alone was taken. */
static void without_a_lane_or_a_slot_the_first_one_fails(void **state)
{
	fails_with("cuStreamCreateWithPriority:1=999,cuStreamCreate:1=999", 0,
		   1);
	fails_with("cuEventCreate:1=999", 0, 1);
}

/* As when the client resets its GPU: the next may be well. */
static void a_context_that_is_another_by_now_gets_all_of_it(void **state)
{
	fails_with("cuStreamCreateWithPriority:1=709,cuStreamCreate:1=709", 8,
		   8);
}

static void forget(struct world *w)
{
	w->ended = 0;
	for (unsigned i = 0; i < w->nr; i++)
		w->ends[i] = 0;
	th_mem_set(&w->pair.mem, 0xa5);
}

/* The n-th call of the driver fails, for all n there are. */
static void any_call_may_fail(void **state)
{
	unsigned long calls;
	char plan[32];
	struct world w;

	world_make(&w, 256 * TH_KIB, TH_MIB);
	add_all(&w, 6);
	run(&w);
	forget(&w);
	calls = th_fake()->calls(NULL);
	run(&w);
	calls = th_fake()->calls(NULL) - calls;
	assert_in_range(calls, 20, 500);
	for (unsigned n = 1; n <= calls; n++) {
		forget(&w);
		snprintf(plan, sizeof(plan), "*:%u=999", n);
		assert_int_equal(th_fake()->plan(plan), 0);
		run(&w);
		ended_well_or_failed(&w);
		forget(&w);
		run(&w);
		all_ended_well(&w);
	}
	world_end(&w);
}

static void only_reads_of_the_page_cache_to_a_gpu_can(void **state)
{
	struct cf_handle handle = { .page_align = 65536 };
	const struct cf_piece good = { .op = CF_READ,
				       .size = TH_MIB,
				       .mem.kind = CF_MEMORY_DEVICE,
				       .handle = &handle };
	struct cf_piece piece = good;

	(void)state;
	assert_true(cf_convoy_can(&piece));
	piece.op = CF_WRITE;
	assert_false(cf_convoy_can(&piece));
	piece = good;
	piece.mem.kind = CF_MEMORY_HOST;
	assert_false(cf_convoy_can(&piece));
	piece = good;
	piece.via = CF_VIA_DIRECT;
	assert_false(cf_convoy_can(&piece));
	piece = good;
	handle.fs_ops = (const void *)&handle;
	assert_false(cf_convoy_can(&piece));
}

#define TEST(name) cmocka_unit_test_teardown(name, th_teardown_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(pieces_larger_than_a_place_come_whole),
		TEST(pieces_smaller_than_a_place_come_whole),
		TEST(an_end_is_told_while_others_are_under_way),
		TEST(the_end_of_the_file_ends_its_piece_and_no_other),
		TEST(a_file_that_ends_with_a_part_is_no_error),
		TEST(a_read_that_fails_ends_its_piece_and_no_other),
		TEST(a_copy_that_fails_is_the_last),
		TEST(no_copy_comes_after_the_end_of_its_piece),
		TEST(a_copy_that_cannot_be_marked_is_the_last),
		TEST(a_copy_under_way_is_waited_for),
		TEST(a_wait_that_fails_is_the_last),
		TEST(a_question_that_fails_is_the_last),
		TEST(any_call_may_fail),
		TEST(only_reads_of_the_page_cache_to_a_gpu_can),
		TEST(without_a_lane_or_a_slot_the_first_one_fails),
		TEST(a_context_that_is_another_by_now_gets_all_of_it),
	};

	th_start(60);
	return th_finish(
		cmocka_run_group_tests_name("convoy", tests, NULL, NULL));
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Reads in stream order whose kernel finds its orders, and small ones their
 * bytes, in an aperture; and when there is one.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include "stream_world.h"

#define SIZE (300 * TH_KIB)
#define GUARD ((size_t)64)
#define LARGE (3200 * TH_KIB) /* 100 KiB, doubled */
#define DEPTH 8

static void begin(struct world *w, unsigned flags)
{
	world_init(w, 2 * SIZE, SIZE, flags);
}

/* The guards are what they were. */
static void check_all(struct world *w, const struct io *ios, unsigned nr)
{
	synchronise(w);
	for (unsigned i = 0; i < nr; i++)
		expect(w, &ios[i]);
	check(w);
}

/* DEPTH of them, one behind the other in the file and in the memory. */
static void read_some(struct world *w, size_t size, size_t off)
{
	struct io ios[DEPTH];

	world_blank(w);
	for (unsigned i = 0; i < DEPTH; i++) {
		ios[i] = (struct io){
			size, (off_t)(TH_KIB + 3 * off + i * (size + off)),
			(off_t)(off + i * (size + GUARD)), -1
		};
		read_async(w, &ios[i]);
	}
	check_all(w, ios, DEPTH);
}

/* So many look into it, where the kernel is one that counts. */
static void read_near(struct world *w, size_t size, size_t off, unsigned nr)
{
	unsigned long before = th_ferry_near();

	read_some(w, size, off);
	if (th_fake())
		assert_int_equal(th_ferry_near() - before, nr);
}

static void reads_of_any_size_come_to_their_places(void **state)
{
	static const size_t sizes[] = { 1, 15, 512, 4096, 8191, 16384, 28672 };
	struct world w;

	begin(&w, FIXED);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (size_t off = 0; off < 32; off += off < 3 ? 1 : 13)
			read_near(&w, sizes[i], off, DEPTH);
	world_fini(&w);
}

static void those_that_no_hold_has_room_for_do_too(void **state)
{
	unsigned long before;
	struct world w;
	struct io io = { SIZE - 4 * GUARD, 7, (off_t)GUARD, -1 };

	begin(&w, FIXED);
	before = th_ferry_near();
	world_blank(&w);
	read_async(&w, &io);
	check_all(&w, &io, 1);
	if (th_fake())
		assert_int_equal(th_ferry_near() - before, 1);
	world_fini(&w);
}

/* With nothing else in the memory, and how many bytes were there first. */
static unsigned long read_one(struct world *w, size_t size, off_t off)
{
	struct io io = { size, off, 1 + off % 14, -1 };
	unsigned long before = th_ferry_device_bytes();

	world_blank(w);
	read_async(w, &io);
	check_all(w, &io, 1);
	return th_ferry_device_bytes() - before;
}

/* Which others of their size would fetch over the bus. Of larger ones some of
 * the carriers have one, and give it back. */
static void those_of_up_to_2_mib_have_slots_there(void **state)
{
	struct world w;

	world_init(&w, LARGE + TH_KIB, LARGE + GUARD, FIXED);
	for (int round = 0; round < 8; round++)
		for (size_t size = 100 * TH_KIB; size <= LARGE; size *= 2) {
			unsigned long nr = read_one(&w, size + round, round);

			if (th_fake() && size < LARGE)
				assert_int_equal(nr, size + round);
		}
	for (int round = 0; round < 8; round++) {
		unsigned long nr = read_one(&w, LARGE, round);

		if (th_fake())
			assert_in_range(nr, 1, LARGE);
	}
	if (th_fake())
		assert_int_equal(read_one(&w, 200 * TH_KIB, 5), 200 * TH_KIB);
	world_fini(&w);
}

static void a_file_that_ends_ends_the_read_there(void **state)
{
	struct world w;
	struct io io = { 16 * TH_KIB, (off_t)(2 * SIZE - 1000), 3, -1 };

	begin(&w, FIXED);
	world_blank(&w);
	read_async(&w, &io);
	check_all(&w, &io, 1);
	assert_int_equal(io.n, 1000);
	world_fini(&w);
}

static void a_large_one_ends_there_too(void **state)
{
	struct world w;
	struct io io = { SIZE - GUARD, (off_t)(2 * SIZE - 200000), 3, -1 };

	begin(&w, FIXED);
	for (int i = 0; i < 2; i++) {
		world_blank(&w);
		read_async(&w, &io);
		check_all(&w, &io, 1);
		assert_int_equal(io.n, 200000);
	}
	world_fini(&w);
}

/* opencufile.aperture */
static void there_is_none_where_none_is_wanted(void **state)
{
	struct world w;

	setenv("OCF_APERTURE", "0", 1);
	begin(&w, FIXED);
	read_near(&w, 4096, 0, 0);
	world_fini(&w);
	unsetenv("OCF_APERTURE");
}

static void wait_for_word(void *word)
{
	while (!atomic_load((atomic_bool *)word))
		th_sleep_ms(1);
}

/*
 * Who makes one waits for the context, perhaps behind what the client will
 * only end after this call: so that is put off.
 */
static void it_is_made_when_the_stream_is_idle(void **state)
{
	unsigned long before = th_ferry_near();
	atomic_bool go = false;
	struct world w;
	struct io io = { 4096, 0, 0, -1 };

	th_need_fake();
	begin(&w, 0);
	world_blank(&w);
	assert_int_equal(cuLaunchHostFunc(w.stream, wait_for_word, &go), 0);
	read_async(&w, &io);
	atomic_store(&go, true);
	check_all(&w, &io, 1);
	assert_int_equal(th_ferry_near() - before, 0);
	/* the first of these finds it idle */
	read_near(&w, 4096, 0, DEPTH);
	world_fini(&w);
}

/* Kernels of a graph look at the board, and the next one starts anew. */
static void graphs_between_them_do_no_harm(void **state)
{
	struct io io = { 4096, 0, 0, -1 };
	struct world w;
	CUgraph graph;
	CUgraphExec exec;

	begin(&w, FIXED);
	for (int i = 0; i < 70; i++) { /* each operation of a chunk, and more */
		read_near(&w, 4096, 1, DEPTH);
		world_blank(&w);
		io.n = -1;
		assert_int_equal(
			cuStreamBeginCapture(w.stream,
					     CF_CU_STREAM_CAPTURE_MODE_GLOBAL),
			0);
		read_async(&w, &io);
		assert_int_equal(cuStreamEndCapture(w.stream, &graph), 0);
		assert_int_equal(cuGraphInstantiateWithFlags(&exec, graph, 0),
				 0);
		for (int k = 0; k < 3; k++)
			assert_int_equal(cuGraphLaunch(exec, w.stream), 0);
		check_all(&w, &io, 1);
		assert_int_equal(cuGraphExecDestroy(exec), 0);
		assert_int_equal(cuGraphDestroy(graph), 0);
	}
	world_fini(&w);
}

#define TEST(name) cmocka_unit_test_teardown(name, th_teardown_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(reads_of_any_size_come_to_their_places),
		TEST(those_that_no_hold_has_room_for_do_too),
		TEST(those_of_up_to_2_mib_have_slots_there),
		TEST(a_file_that_ends_ends_the_read_there),
		TEST(a_large_one_ends_there_too),
		TEST(there_is_none_where_none_is_wanted),
		TEST(it_is_made_when_the_stream_is_idle),
		TEST(graphs_between_them_do_no_harm),
	};

	setenv("FAKECUDA_VERSION", "13030", 0);
	th_start(120);
	return th_finish(
		cmocka_run_group_tests_name("stream_near", tests, NULL, NULL));
}

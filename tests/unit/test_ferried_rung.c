// SPDX-License-Identifier: Apache-2.0
/*
 * ferried_rung - a carrier whose kernel has rung: it is on the GPU, and comes
 * to its end there.
 */
#include "ferried_world.h"

#define SMALL (20 * TH_KIB + 5)

/* One block, which is on the GPU; at an odd place of the file and the memory */
static void ring(struct world *w, size_t size)
{
	w->ferry.rings = true;
	w->ferry.fresh = true;
	w->ferry.blocks = 1;
	w->piece.size = size;
	w->piece.file_off = 4096 + 3;
	w->piece.mem.addr += 14;
	cf_feed_init(&w->feed, size, 0, size);
}

/* Memory of this process again. */
static void bring_near(struct world *w)
{
	assert_int_equal(
		posix_memalign((void **)&w->aperture, 4096, CF_FERRY_NEAR), 0);
	memset(w->aperture, 0, CF_FERRY_NEAR);
	w->told = w->ferry.near = (struct cf_ferry_board *)w->aperture;
	w->ferry.near_place = (uintptr_t)w->aperture;
	w->ferry.rings = true;
	w->ferry.fresh = true;
	cf_ferry_begin(&w->ferry);
}

static void is_read(struct world *w)
{
	th_all("before it", w->memory, 0xa5, 14);
	th_equal("memory", w->memory + 14, w->bytes + 4096 + 3, SMALL);
	th_all("behind it", w->memory + 14 + SMALL, 0xa5, 64);
}

static bool lies_in(const struct cf_ferry_order *o, const char *mem,
		    size_t size)
{
	return o->src >= (uintptr_t)mem &&
	       o->src + o->size <= (uintptr_t)mem + size;
}

static void start_kernel(struct world *w)
{
	assert_int_equal(pthread_create(&w->kernel, NULL, play_kernel, w), 0);
}

/* Nobody waits until it is moved: the hold is the ferry's until it has left. */
static void what_is_read_may_be_left_in_the_hold(void **state)
{
	struct world w;

	world_make(&w, CF_READ);
	ring(&w, SMALL);
	cf_ferried_run(&w.piece, &w.feed, &w.crew);
	assert_int_equal(cf_feed_result(&w.feed), SMALL);
	assert_int_equal(orders(&w), 1);
	th_all("memory", w.memory, 0xa5, SIZE);
	hold_is_free(&w);
	start_kernel(&w);
	assert_int_equal(cf_ferry_wait(&w.ferry, 1), 0);
	is_read(&w);
	world_end(&w);
}

/* As another carrier of the same read. */
static void who_comes_next_waits_for_what_is_there(void **state)
{
	pthread_t thread;
	struct world w;

	world_make(&w, CF_READ);
	ring(&w, SMALL);
	cf_ferried_run(&w.piece, &w.feed, &w.crew);
	w.piece.mem.addr += SMALL + 64;
	w.piece.file_off = 0;
	cf_feed_init(&w.feed, SMALL, 0, SMALL);
	assert_int_equal(pthread_create(&thread, NULL, run_ferried, &w), 0);
	th_sleep_ms(50);
	assert_int_equal(orders(&w), 1);
	start_kernel(&w);
	pthread_join(thread, NULL);
	assert_int_equal(cf_feed_result(&w.feed), SMALL);
	assert_int_equal(cf_ferry_wait(&w.ferry, 2), 0);
	is_read(&w);
	th_equal("the next", w.memory + 14 + SMALL + 64, w.bytes, SMALL);
	world_end(&w);
}

/* As a batch's, whose bytes are looked at when its event is there. */
static void what_an_event_tells_of_is_there(void **state)
{
	pthread_t thread;
	struct world w;

	world_make(&w, CF_READ);
	ring(&w, SMALL);
	w.ferry.events = true;
	assert_int_equal(pthread_create(&thread, NULL, run_ferried, &w), 0);
	while (!orders(&w))
		th_sleep_ms(1);
	th_sleep_ms(50);
	assert_int_equal(pthread_mutex_trylock(&w.ferry.hold_lock), EBUSY);
	start_kernel(&w);
	pthread_join(thread, NULL);
	assert_int_equal(cf_feed_result(&w.feed), SMALL);
	is_read(&w);
	world_end(&w);
}

static void one_that_is_gone_is_not_trusted_with_it(void **state)
{
	struct world w;

	world_make(&w, CF_READ);
	ring(&w, SMALL);
	w.lost_before = 1;
	cf_ferry_lose(&w.ferry);
	assert_int_equal(world_run(&w), LOST);
	world_end(&w);
}

static void where_there_is_an_aperture_it_is_read_into_that(void **state)
{
	struct world w;

	world_make(&w, CF_READ);
	bring_near(&w);
	ring(&w, SMALL);
	assert_int_equal(world_run(&w), SMALL);
	assert_int_equal(cf_ferry_wait(&w.ferry, 1), 0);
	assert_true(lies_in(w.ferry.near->orders,
			    w.aperture + CF_FERRY_NEAR_HOLD, CF_FERRY_HOLD));
	assert_int_equal(w.board.orders[0].size, 0);
	is_read(&w);
	world_end(&w);
}

/* No pages lie there for a disk to read into, or for another to be lent. */
static void what_needs_pages_has_the_hold(void **state)
{
	for (int direct = 0; direct < 2; direct++) {
		struct world w;

		world_make_on(&w, CF_READ, direct ? TH_ODIRECT : TH_BUFFERED);
		bring_near(&w);
		ring(&w, SMALL);
		w.piece.via = direct ? CF_VIA_DIRECT : CF_VIA_CACHE;
		if (!direct)
			atomic_store(&w.piece.handle->wants_pages, true);
		assert_int_equal(world_run(&w), SMALL);
		assert_int_equal(cf_ferry_wait(&w.ferry, 1), 0);
		assert_true(
			lies_in(w.ferry.near->orders, w.hold, CF_FERRY_HOLD));
		is_read(&w);
		world_end(&w);
	}
}

/* Then it moves vectors; what goes O_DIRECT lies as the disk has it. */
static void it_lies_in_the_hold_as_in_the_memory(void **state)
{
	for (int op = CF_READ; op <= CF_WRITE; op++)
		for (unsigned off = 0; off < 16; off++) {
			const struct cf_ferry_order *o;
			struct world w;
			uint64_t here;

			world_make(&w, (enum cf_op)op);
			ring(&w, SMALL);
			w.piece.mem.addr += off;
			assert_int_equal(world_run(&w), SMALL);
			assert_int_equal(cf_ferry_wait(&w.ferry, 1), 0);
			o = w.board.orders;
			here = op == CF_READ ? o->src : o->dst;
			assert_int_equal(here % 16, w.piece.mem.addr % 16);
			world_end(&w);
		}
}

#define TEST(name) cmocka_unit_test_teardown(name, th_teardown_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_read_may_be_left_in_the_hold),
		TEST(who_comes_next_waits_for_what_is_there),
		TEST(what_an_event_tells_of_is_there),
		TEST(one_that_is_gone_is_not_trusted_with_it),
		TEST(where_there_is_an_aperture_it_is_read_into_that),
		TEST(what_needs_pages_has_the_hold),
		TEST(it_lies_in_the_hold_as_in_the_memory),
	};

	th_start(60);
	return th_finish(
		cmocka_run_group_tests_name("ferried_rung", tests, NULL, NULL));
}

// SPDX-License-Identifier: Apache-2.0
/* ferried - a carrier with a kernel that this test plays. */
#include "ferried_world.h"
#include "seam/os.h"

/* -------------------------------------------------------------- the hold */

/* In two halves, the last order in one of them and the one before in both. */
static void a_read_comes_back_when_all_of_it_has_been_moved(void **state)
{
	for (size_t cut = 0; cut < 2; cut++) {
		struct world w;

		world_make(&w, CF_READ);
		w.slow_ms = 10;
		w.piece.size = SIZE - cut * STEP;
		cf_feed_init(&w.feed, w.piece.size, 0, STEP);
		assert_int_equal(world_run(&w), w.piece.size);
		is_settled(&w);
		th_equal("memory", w.memory, w.bytes, w.piece.size);
		th_all("behind it", w.memory + w.piece.size, 0xa5, 64);
		hold_is_free(&w);
		world_end(&w);
	}
}

static void a_write_puts_down_what_the_kernel_has_brought(void **state)
{
	unsigned char *got = malloc(SIZE);
	struct world w;

	world_make(&w, CF_WRITE);
	w.slow_ms = 5;
	assert_int_equal(world_run(&w), SIZE);
	th_file_get(&w.file, 0, got, SIZE);
	th_equal("file", got, w.memory, SIZE);
	hold_is_free(&w);
	world_end(&w);
	free(got);
}

static ssize_t refuse_direct(int fd, const void *buf, size_t size, off_t off)
{
	return fcntl(fd, F_GETFL) & O_DIRECT ?
		       -EINVAL :
		       cf_os_real.pwrite(fd, buf, size, off);
}

/* Its kernel has been told by then where the next bytes belong. */
static void a_write_whose_file_refuses_o_direct_brings_the_same(void **state)
{
	static const size_t offs[] = { 0, 1, 8, 15 };
	unsigned char *got = malloc(SIZE);
	static struct cf_os os;

	os = cf_os_real;
	os.pwrite = refuse_direct;
	for (size_t i = 0; i < 4; i++) {
		struct world w;

		cf_os = &os;
		world_make_on(&w, CF_WRITE, TH_ODIRECT);
		w.piece.via = CF_VIA_DIRECT;
		w.piece.mem.addr += offs[i];
		w.piece.size = SIZE - 16;
		cf_feed_init(&w.feed, w.piece.size, 0, STEP);
		assert_int_equal(world_run(&w), w.piece.size);
		assert_false(cf_file_is_direct(w.piece.handle, CF_VIA_DIRECT));
		th_file_get(&w.file, 0, got, SIZE);
		th_equal("file", got, w.memory + offs[i], w.piece.size);
		th_equal("behind it", got + w.piece.size,
			 w.bytes + w.piece.size, 16);
		world_end(&w);
		cf_os = &cf_os_real;
	}
	free(got);
}

/* Orders in pieces of what there is, of parts that are larger. */
static void parts_larger_than_the_hold_go_in_pieces(void **state)
{
	struct world w;

	world_make(&w, CF_READ);
	cf_feed_init(&w.feed, SIZE, 0, SIZE);
	assert_int_equal(world_run(&w), SIZE);
	assert_true(orders(&w) >= SIZE / CF_FERRY_HOLD);
	is_settled(&w);
	th_equal("memory", w.memory, w.bytes, SIZE);
	world_end(&w);
}

static void a_file_that_ends_ends_the_read_there(void **state)
{
	struct world w;

	world_make(&w, CF_READ);
	assert_int_equal(ftruncate(w.file.plain, 5 * STEP + 100), 0);
	assert_int_equal(world_run(&w), 5 * STEP + 100);
	is_settled(&w);
	th_equal("memory", w.memory, w.bytes, 5 * STEP + 100);
	th_all("behind it", w.memory + 5 * STEP + 100, 0xa5, 64);
	world_end(&w);
}

struct second {
	void (*lead)(void *arg);
	void *arg;
};

static void *run_lead(void *arg)
{
	struct second *s = arg;

	s->lead(s->arg);
	return NULL;
}

/* A helper that comes when the one who leads has a slot, or the hold. */
static void work(struct cf_crew *crew, void (*lead)(void *arg),
		 void (*help)(void *arg), void *arg)
{
	struct world *w =
		(struct world *)((char *)crew - offsetof(struct world, crew));
	struct second s = { lead, arg };
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, run_lead, &s), 0);
	while (!orders(w))
		th_sleep_ms(1);
	help(arg);
	atomic_store(&helped, true);
	pthread_join(thread, NULL);
}

static void a_helper_without_room_leaves_it_to_the_others(void **state)
{
	struct world w;

	world_make(&w, CF_READ);
	w.crew = (struct cf_crew){ .helpers = 1, .work = work };
	w.begins_at = UINT32_MAX;
	assert_int_equal(world_run(&w), SIZE);
	assert_true(atomic_load(&helped));
	th_equal("memory", w.memory, w.bytes, SIZE);
	hold_is_free(&w);
	world_end(&w);
}

/* ------------------------------------------------------------- it is gone */

/* Which of its bytes were moved nobody knows: none of them count. */
static void a_kernel_that_is_gone_leaves_nothing_of_a_read(void **state)
{
	for (uint32_t nr = 1; nr <= 6; nr++) {
		struct world w;

		world_make(&w, CF_READ);
		w.lost_before = nr;
		assert_int_equal(world_run(&w), LOST);
		hold_is_free(&w);
		world_end(&w);
	}
}

/* Somebody else has carried what came before, and all of that counts. */
static void what_others_have_carried_is_not_lost_with_it(void **state)
{
	struct cf_part part;
	struct world w;

	world_make(&w, CF_READ);
	assert_true(cf_feed_next(&w.feed, &part));
	assert_true(cf_feed_next(&w.feed, &part));
	w.lost_before = 3;
	assert_int_equal(world_run(&w), 2 * STEP);
	world_end(&w);
}

/* The parts before it are in the file. */
static void a_write_ends_where_the_kernel_has_gone(void **state)
{
	unsigned char *got = malloc(SIZE);
	struct world w;

	world_make(&w, CF_WRITE);
	w.lost_before = 5;
	assert_int_equal(world_run(&w), 4 * STEP);
	th_file_get(&w.file, 0, got, SIZE);
	th_equal("file", got, w.memory, 4 * STEP);
	th_equal("behind it", got + 4 * STEP, w.bytes + 4 * STEP,
		 SIZE - 4 * STEP);
	hold_is_free(&w);
	world_end(&w);
	free(got);
}

/* The one before is ordered, but not written: it is the first to miss. */
static void an_order_that_finds_no_room_loses_the_one_before_it(void **state)
{
	struct world w;

	world_make(&w, CF_WRITE);
	w.ferry.posted = CF_FERRY_ORDERS - 1;
	cf_ferry_lose(&w.ferry);
	w.kernel = pthread_self();
	cf_ferried_run(&w.piece, &w.feed, &w.crew);
	assert_int_equal(cf_feed_result(&w.feed), LOST);
	hold_is_free(&w);
	/* of its orders most were never written: none is to be carried out */
	atomic_store(&w.over, true);
	assert_int_equal(pthread_create(&w.kernel, NULL, play_kernel, &w), 0);
	world_end(&w);
}

/* ------------------------------------------------------------------ slots */

static size_t slots_out(const struct cf_pool *pool)
{
	size_t bytes, leased;

	cf_pool_usage((struct cf_pool *)pool, &bytes, &leased);
	return leased;
}

/* The GPU's slots, so many of them idle; so that they are taken. */
static struct cf_pool *lend_slots(struct world *w, size_t nr)
{
	struct cf_memory mem;
	struct cf_device *dev;
	struct th_mem own;
	struct cf_pool *pool;
	size_t bytes, leased;

	th_mem_alloc(&own, TH_DEVICE, 4096);
	cf_memory_facts((uintptr_t)own.ptr, &mem);
	assert_int_equal(cf_device_find(&mem, &dev), 0);
	th_mem_free(&own);
	pool = cf_gpu_pool(dev->gpu, SIZE + 2 * CF_SLOT_ALIGN);
	cf_pool_warm(pool, nr);
	cf_pool_usage(pool, &bytes, &leased);
	assert_true(bytes >= nr * SIZE);
	assert_int_equal(leased, 0);
	w->ferry.gpu = dev->gpu;
	return pool;
}

static void a_slot_goes_back_when_the_kernel_is_done(void **state)
{
	for (int write = 0; write < 2; write++) {
		struct cf_pool *pool;
		struct world w;

		th_need_gpu();
		world_make(&w, write ? CF_WRITE : CF_READ);
		pool = lend_slots(&w, 1);
		pthread_mutex_lock(&w.ferry.hold_lock);
		assert_int_equal(world_run(&w), SIZE);
		pthread_mutex_unlock(&w.ferry.hold_lock);
		assert_int_equal(slots_out(pool), 0);
		if (!write)
			th_equal("memory", w.memory, w.bytes, SIZE);
		world_end(&w);
	}
}

/* Called instead of cf_cache_store_past; nobody can see where bytes went by. */
void __wrap_cf_cache_store_past(void *to, const void *from, size_t size);
void __real_cf_cache_store_past(void *to, const void *from, size_t size);

static atomic_size_t past;

void __wrap_cf_cache_store_past(void *to, const void *from, size_t size)
{
	atomic_fetch_add(&past, size);
	__real_cf_cache_store_past(to, from, size);
}

/* But not what goes by the hold. */
static void what_goes_by_a_slot_may_go_past_the_caches(void **state)
{
	(void)state;
	for (int slot = 0; slot < 2; slot++) {
		struct world w;

		th_need_gpu();
		world_make(&w, CF_READ);
		if (slot)
			lend_slots(&w, 1);
		w.piece.past = true;
		w.piece.demote = CF_DEMOTE_ALL;
		atomic_store(&past, 0);
		assert_int_equal(world_run(&w), SIZE);
		assert_int_equal(atomic_load(&past), slot ? SIZE : 0);
		is_settled(&w);
		th_equal("memory", w.memory, w.bytes, SIZE);
		th_all("behind it", w.memory + SIZE, 0xa5, 64);
		world_end(&w);
	}
}

static bool hold_was_used(const struct world *w)
{
	for (size_t i = 0; i < CF_FERRY_HOLD; i++)
		if (w->hold[i])
			return true;
	return false;
}

/* Who leads has the only slot, and each fills two berths. */
static void a_helper_without_a_slot_has_the_hold(void **state)
{
	struct cf_pool *pool;
	struct world w;

	th_need_gpu();
	world_make(&w, CF_READ);
	pool = lend_slots(&w, 1);
	cf_pool_limit(pool, 1);
	memset(w.hold, 0, CF_FERRY_HOLD);
	w.crew = (struct cf_crew){ .helpers = 1, .work = work };
	w.begins_at = 4;
	assert_int_equal(world_run(&w), SIZE);
	assert_true(atomic_load(&helped));
	assert_true(hold_was_used(&w));
	th_equal("memory", w.memory, w.bytes, SIZE);
	assert_int_equal(slots_out(pool), 0);
	hold_is_free(&w);
	world_end(&w);
}

/*
 * A kernel that is not known to be gone may still look at it. Without another
 * in its place who needs one would wait for ever.
 */
static void a_slot_of_a_lost_kernel_is_not_lent_again(void **state)
{
	struct cf_slot *slot;
	struct cf_pool *pool;
	struct world w;

	th_need_gpu();
	world_make(&w, CF_READ);
	pool = lend_slots(&w, 1);
	cf_pool_limit(pool, 1);
	w.lost_before = 2;
	assert_int_equal(world_run(&w), LOST);
	assert_int_equal(slots_out(pool), 1);
	slot = cf_slot_try_lease(pool);
	assert_non_null(slot);
	assert_int_equal(slots_out(pool), 2);
	cf_slot_give_back(pool, slot);
	world_end(&w);
}

/* ------------------------------------------------------- ahead of a stream */

#define TICKET 9
#define FEW 10
#define MANY 40 /* more than are parked */

static _Atomic uint32_t begun;

/* Runs it; the stream is there when there were so many orders. */
static ssize_t run_ahead(struct world *w, uint32_t most)
{
	bool helps = w->crew.helpers > 0;
	pthread_t thread;

	atomic_store(&begun, 0);
	w->ferry.begun = &begun;
	w->ferry.ticket = TICKET;
	assert_int_equal(pthread_create(&thread, NULL, run_ferried, w), 0);
	for (int ms = 0; ms < 20000 && (orders(w) < most || helped != helps);
	     ms++)
		th_sleep_ms(1);
	th_sleep_ms(100);
	assert_int_equal(orders(w), most);
	assert_int_equal(atomic_load(&helped), helps);
	th_all("memory", w->memory, 0xa5, SIZE);
	atomic_store(&begun, TICKET);
	assert_int_equal(pthread_create(&w->kernel, NULL, play_kernel, w), 0);
	pthread_join(thread, NULL);
	is_settled(w);
	return cf_feed_result(&w->feed);
}

static void ahead_of_the_stream_the_hold_is_filled_once(void **state)
{
	struct world w;

	world_make(&w, CF_READ);
	assert_int_equal(run_ahead(&w, 2), SIZE);
	th_equal("memory", w.memory, w.bytes, SIZE);
	hold_is_free(&w);
	world_end(&w);
}

static void help_and_lead(struct cf_crew *crew, void (*lead)(void *arg),
			  void (*help)(void *arg), void *arg)
{
	for (unsigned i = 0; i < crew->helpers; i++)
		help(arg);
	atomic_store(&helped, true);
	lead(arg);
}

/*
 * Each has a slot of its own, until the kernel's board is full, or who leads
 * has the hold; or so many are parked that the next gives its slot back.
 */
static void ahead_of_it_helpers_fill_slots_and_go(void **state)
{
	static const struct {
		unsigned helpers;
		size_t slots;
		uint32_t orders;
	} rooms[] = { { FEW, FEW + 1, CF_FERRY_ORDERS },
		      { FEW, 2, 6 },
		      { MANY, MANY + 1, CF_FERRY_ORDERS } };

	for (size_t i = 0; i < sizeof(rooms) / sizeof(rooms[0]); i++) {
		struct cf_pool *pool;
		struct world w;

		th_need_gpu();
		/* so that there may be so many */
		assert_int_equal(
			cuFileSetParameterSizeT(
				CUFILE_PARAM_PROPERTIES_PER_BUFFER_CACHE_SIZE_KB,
				256)
				.err,
			0);
		world_make(&w, CF_READ);
		pool = lend_slots(&w, rooms[i].slots);
		w.crew = (struct cf_crew){ .helpers = rooms[i].helpers,
					   .work = help_and_lead };
		cf_feed_init(&w.feed, SIZE, 0, 4 * TH_KIB);
		assert_int_equal(run_ahead(&w, rooms[i].orders), SIZE);
		th_equal("memory", w.memory, w.bytes, SIZE);
		assert_int_equal(slots_out(pool), 0);
		world_end(&w);
	}
}

/* What is in slots then may still be looked at. */
static void a_stream_that_is_never_there_ends_the_read(void **state)
{
	struct cf_pool *pool;
	struct world w;

	th_need_gpu();
	world_make(&w, CF_READ);
	pool = lend_slots(&w, 1);
	atomic_store(&begun, 0);
	w.ferry.begun = &begun;
	w.ferry.ticket = TICKET;
	cf_ferry_lose(&w.ferry);
	cf_ferried_run(&w.piece, &w.feed, &w.crew);
	assert_int_equal(cf_feed_result(&w.feed), LOST);
	th_all("memory", w.memory, 0xa5, SIZE);
	assert_int_equal(slots_out(pool), 1);
	assert_int_equal(pthread_create(&w.kernel, NULL, play_kernel, &w), 0);
	world_end(&w);
}

#define TEST(name) cmocka_unit_test_teardown(name, th_teardown_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_read_comes_back_when_all_of_it_has_been_moved),
		TEST(a_write_puts_down_what_the_kernel_has_brought),
		TEST(a_write_whose_file_refuses_o_direct_brings_the_same),
		TEST(parts_larger_than_the_hold_go_in_pieces),
		TEST(a_file_that_ends_ends_the_read_there),
		TEST(a_helper_without_room_leaves_it_to_the_others),
		TEST(a_kernel_that_is_gone_leaves_nothing_of_a_read),
		TEST(what_others_have_carried_is_not_lost_with_it),
		TEST(a_write_ends_where_the_kernel_has_gone),
		TEST(an_order_that_finds_no_room_loses_the_one_before_it),
		TEST(a_slot_goes_back_when_the_kernel_is_done),
		TEST(what_goes_by_a_slot_may_go_past_the_caches),
		TEST(a_helper_without_a_slot_has_the_hold),
		TEST(a_slot_of_a_lost_kernel_is_not_lent_again),
		TEST(ahead_of_the_stream_the_hold_is_filled_once),
		TEST(ahead_of_it_helpers_fill_slots_and_go),
		TEST(a_stream_that_is_never_there_ends_the_read),
	};

	th_start(60);
	return cmocka_run_group_tests_name("ferried", tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * shuttle_near - orders and seats that lie in the GPU's own memory. What is
 * the same wherever they lie is test_shuttle's, which is run over such too.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/context.h"
#include "core/shuttle.c"
#include "harness.h"
#include "seam/cuda.h"
#include "seam/os.h"

#define SIZE ((size_t)4096)
#define AREA (2 * CF_SHUTTLE_MAX_SIZE)
#define CANARY 0xa5

static struct cf_cuda cuda;
static struct cf_shuttle *shuttle;
static struct th_mem device;

/* ------------------------------------------------------------- fixture */

static CUresult can_map_dma_buf(int *version)
{
	*version = 13030;
	return CF_CU_SUCCESS;
}

static unsigned long launches_before;

static struct cf_os os;
static void *shown; /* the aperture's mapping */

static int note_map(int fd, size_t size, void **mem)
{
	int err = cf_os_real.map_shared(fd, size, mem);

	shown = err ? NULL : *mem;
	return err;
}

static struct cf_shuttle *new_shuttle(void)
{
	CUcontext ctx;

	assert_int_equal(cf_cuda_loaded()->ctx_pop(&ctx), 0);
	assert_int_equal(cf_cuda_loaded()->ctx_push(ctx), 0);
	return cf_shuttle_new(ctx, 0);
}

static int begin(void **state)
{
	(void)state;
	th_need_fake();
	assert_non_null(cf_cuda_open());
	cuda = *cf_cuda_loaded();
	cuda.driver_get_version = can_map_dma_buf;
	cf_cuda_replace(&cuda);
	os = cf_os_real;
	os.clock_gettime = th_clock;
	os.map_shared = note_map;
	cf_os = &os;
	atomic_store(&th_clock_ns, 1000000000);
	atomic_store(&th_clock_look_ns, 0);
	th_mem_alloc(&device, TH_DEVICE, AREA);
	th_mem_set(&device, CANARY);
	launches_before = th_fake()->calls("cuLaunchKernel");
	shuttle = new_shuttle();
	assert_non_null(shuttle);
	return 0;
}

static int end(void **state)
{
	(void)state;
	th_shuttle_stay(false);
	th_shuttle_let();
	cf_shuttle_free(shuttle, true);
	assert_int_equal(th_fake()->live("vmm_map"), 0);
	assert_int_equal(th_fake()->live("vmm_reserve"), 0);
	cf_os = &cf_os_real;
	th_mem_free(&device);
	cf_cuda_replace(NULL);
	return 0;
}

static CUdeviceptr at(size_t off)
{
	return (CUdeviceptr)(uintptr_t)device.ptr + off;
}

static void has(size_t off, const unsigned char *bytes)
{
	unsigned char got[SIZE];

	th_mem_get(&device, off, got, SIZE);
	th_equal("moved", got, bytes, SIZE);
}

static void has_nothing_at(size_t off)
{
	unsigned char got[SIZE];

	th_mem_get(&device, off, got, SIZE);
	th_all("not moved", got, CANARY, SIZE);
}

static void take(struct cf_seat *seat)
{
	assert_true(cf_shuttle_take(shuttle, seat));
}

/* ---------------------------------------------------------------- places */

static bool is_zero(const void *words, size_t size)
{
	static const char zeroes[4096];

	assert_in_range(size, 1, sizeof(zeroes));
	return !memcmp(words, zeroes, size);
}

static void orders_lie_in_the_aperture_and_not_on_the_board(void **state)
{
	struct cf_shuttle_board *board;
	struct cf_shuttle_order *orders;
	struct cf_seat seat = { 0 };
	struct cf_ride ride;
	uint64_t tag;

	(void)state;
	take(&seat);
	assert_true(cf_shuttle_is_near(shuttle));
	board = shuttle->trips.words.board;
	orders = shown;
	assert_int_equal(
		cf_shuttle_begin(shuttle, &seat, seat.near, at(0), SIZE, &ride),
		0);
	tag = (uint64_t)ride.number << CF_SHUTTLE_ADDR_BITS;
	assert_int_equal(orders[seat.nr].words[CF_SHUTTLE_DST], at(0) | tag);
	assert_int_equal(orders[seat.nr].words[CF_SHUTTLE_SIZE], SIZE | tag);
	assert_int_equal(orders[seat.nr].words[CF_SHUTTLE_TAG], tag);
	assert_int_equal(cf_shuttle_end(shuttle, &ride), 0);
	assert_true(is_zero(board->orders, sizeof(board->orders)));
	cf_shuttle_leave(shuttle, &seat);
}

static bool is_within(const char *mem, const void *area, size_t size)
{
	return mem >= (const char *)area &&
	       mem + CF_SHUTTLE_ROOM <= (const char *)area + size;
}

static void each_seat_has_room_of_its_own_in_either_memory(void **state)
{
	struct cf_seat seats[CF_SHUTTLE_SEATS];
	struct cf_shuttle_order *orders;

	(void)state;
	for (unsigned i = 0; i < CF_SHUTTLE_SEATS; i++) {
		take(&seats[i]);
		assert_true(is_within(seats[i].near, shown, 2 * TH_MIB));
		assert_false(is_within(seats[i].mem, shown, 2 * TH_MIB));
		assert_int_equal((uintptr_t)seats[i].near % 4096, 0);
		memset(seats[i].near, (int)i + 1, CF_SHUTTLE_ROOM);
		memset(seats[i].mem, (int)i + 101, CF_SHUTTLE_ROOM);
	}
	for (unsigned i = 0; i < CF_SHUTTLE_SEATS; i++) {
		th_all("near", seats[i].near, (int)i + 1, CF_SHUTTLE_ROOM);
		th_all("pinned", seats[i].mem, (int)i + 101, CF_SHUTTLE_ROOM);
		cf_shuttle_leave(shuttle, &seats[i]);
	}
	orders = shown;
	for (unsigned i = 0; i < CF_SHUTTLE_SEATS; i++)
		assert_true(is_zero(orders[i].words, sizeof(orders->words)));
}

/* Which of the two is said by the address alone. */
static void bytes_are_moved_from_either_memory(void **state)
{
	unsigned char *far = th_bytes(CF_SHUTTLE_ROOM),
		      *near = th_bytes(CF_SHUTTLE_ROOM);
	struct cf_seat seat = { 0 };

	(void)state;
	for (size_t off = 0; off <= CF_SHUTTLE_ROOM - SIZE; off += 4000) {
		take(&seat);
		memcpy(seat.mem, far, CF_SHUTTLE_ROOM);
		memcpy(seat.near, near, CF_SHUTTLE_ROOM);
		assert_int_equal(cf_shuttle_move(shuttle, &seat, seat.mem + off,
						 at(0), SIZE),
				 0);
		assert_int_equal(cf_shuttle_move(shuttle, &seat,
						 seat.near + off, at(2 * SIZE),
						 SIZE),
				 0);
		has(0, far + off);
		has_nothing_at(SIZE);
		has(2 * SIZE, near + off);
		cf_shuttle_leave(shuttle, &seat);
	}
	free(far);
	free(near);
}

/* Memory is as whoever had it before has left it. */
static int leave_orders_there(int fd)
{
	struct cf_shuttle_order *orders = shown;
	uint64_t tag = (uint64_t)1 << CF_SHUTTLE_ADDR_BITS;

	for (unsigned i = 0; shown && i < CF_SHUTTLE_SEATS; i++) {
		orders[i].words[CF_SHUTTLE_DST] = tag | at(SIZE);
		orders[i].words[CF_SHUTTLE_SRC] = tag | at(0);
		orders[i].words[CF_SHUTTLE_SIZE] = tag | SIZE;
		orders[i].words[CF_SHUTTLE_TAG] = tag;
	}
	return cf_os_real.close(fd);
}

static void orders_of_whoever_had_the_memory_are_not_carried_out(void **state)
{
	unsigned long orders = th_shuttle_orders();
	struct cf_seat seat = { 0 };

	(void)state;
	shown = NULL;
	os.close = leave_orders_there;
	take(&seat);
	os.close = cf_os_real.close;
	assert_int_equal(
		cf_shuttle_move(shuttle, &seat, seat.near, at(2 * SIZE), SIZE),
		0);
	cf_shuttle_leave(shuttle, &seat);
	th_shuttle_let();
	assert_int_equal(th_shuttle_orders(), orders + 1);
}

/* ---------------------------------------------------------------- rides */

static void two_seats_are_under_way_for_one_thread(void **state)
{
	unsigned char *bytes = th_bytes(2 * SIZE);
	struct cf_seat seats[2];
	struct cf_ride rides[2];

	(void)state;
	for (int first = 0; first < 2; first++) {
		th_shuttle_hold(true);
		for (int i = 0; i < 2; i++) {
			take(&seats[i]);
			memcpy(seats[i].near, bytes + i * SIZE, SIZE);
			assert_int_equal(cf_shuttle_begin(shuttle, &seats[i],
							  seats[i].near,
							  at(2 * i * SIZE),
							  SIZE, &rides[i]),
					 0);
		}
		th_shuttle_hold(false);
		assert_int_equal(cf_shuttle_end(shuttle, &rides[first]), 0);
		has(2 * first * SIZE, bytes + first * SIZE);
		assert_int_equal(cf_shuttle_end(shuttle, &rides[!first]), 0);
		has(2 * !first * SIZE, bytes + !first * SIZE);
		has_nothing_at(SIZE);
		for (int i = 0; i < 2; i++)
			cf_shuttle_leave(shuttle, &seats[i]);
		th_fill(bytes, 2 * SIZE);
	}
	free(bytes);
}

static void not_taken(struct cf_seat *seat, size_t off, struct cf_ride *ride)
{
	th_shuttle_let(); /* whoever is here has left */
	th_shuttle_keep();
	atomic_store(&th_clock_look_ns, 1000);
	assert_int_equal(cf_shuttle_begin(shuttle, seat, seat->near, at(off),
					  SIZE, ride),
			 0);
	assert_int_equal(cf_shuttle_end(shuttle, ride), -ENOTSUP);
	atomic_store(&th_clock_look_ns, 0);
}

static void an_order_that_was_taken_back_is_nobody_s(void **state)
{
	struct cf_shuttle_order *orders;
	struct cf_ride ride;
	struct cf_seat seat = { 0 };
	uint64_t void_tag;

	(void)state;
	take(&seat);
	orders = shown;
	not_taken(&seat, 0, &ride);
	void_tag = (uint64_t)(ride.number - 1) << CF_SHUTTLE_ADDR_BITS;
	for (int i = 0; i < CF_SHUTTLE_WORDS; i++)
		assert_int_equal(orders[seat.nr].words[i], void_tag);
	th_shuttle_let();
	has_nothing_at(0);
	cf_shuttle_leave(shuttle, &seat);
}

static void its_number_is_the_next_one_s(void **state)
{
	unsigned char *bytes = th_bytes(SIZE);
	struct cf_ride before, ride;
	struct cf_seat seat = { 0 };

	(void)state;
	take(&seat);
	for (int i = 0; i < 5; i++) {
		memset(seat.near, 0x77, SIZE);
		not_taken(&seat, 0, &before);
		th_shuttle_let();
		atomic_fetch_add(&th_clock_ns, (int64_t)10 * 1000000000);
		th_fill(bytes, SIZE);
		memcpy(seat.near, bytes, SIZE);
		assert_int_equal(cf_shuttle_begin(shuttle, &seat, seat.near,
						  at(2 * SIZE), SIZE, &ride),
				 0);
		assert_int_equal(ride.number, before.number);
		assert_int_equal(cf_shuttle_end(shuttle, &ride), 0);
		has(2 * SIZE, bytes);
		has_nothing_at(0);
	}
	cf_shuttle_leave(shuttle, &seat);
	free(bytes);
}

/* ------------------------------------------------------------- the call */

static unsigned long launches(void)
{
	return th_fake()->calls("cuLaunchKernel") - launches_before;
}

static void who_calls_has_one_trip_come(void **state)
{
	(void)state;
	th_shuttle_stay(true);
	cf_shuttle_call(shuttle);
	assert_int_equal(launches(), 1);
	cf_shuttle_call(shuttle);
	assert_int_equal(launches(), 1);
}

static void who_calls_in_a_rest_has_none(void **state)
{
	struct cf_ride ride;
	struct cf_seat seat = { 0 };

	(void)state;
	take(&seat);
	not_taken(&seat, 0, &ride);
	th_shuttle_let();
	assert_int_equal(launches(), 1);
	cf_shuttle_call(shuttle);
	assert_int_equal(launches(), 1);
	atomic_fetch_add(&th_clock_ns, (int64_t)10 * 1000000000);
	cf_shuttle_call(shuttle);
	assert_int_equal(launches(), 2);
	cf_shuttle_leave(shuttle, &seat);
}

/* ------------------------------------------------------------- restored */

static int map_none(int fd, size_t size, void **mem)
{
	return -ENOMEM;
}

/* A trip looks in what the GPU has now, and finds nothing. */
static void not_found(const struct cf_seat *seat)
{
	struct cf_ride ride;

	atomic_store(&th_clock_look_ns, 1000);
	assert_int_equal(
		cf_shuttle_begin(shuttle, seat, seat->near, at(0), SIZE, &ride),
		0);
	assert_int_equal(cf_shuttle_end(shuttle, &ride), -ENOTSUP);
	atomic_store(&th_clock_look_ns, 0);
	th_shuttle_let();
	has_nothing_at(0);
	atomic_fetch_add(&th_clock_ns, (int64_t)10 * 1000000000);
}

static void moves(const struct cf_seat *seat)
{
	unsigned char *bytes = th_bytes(SIZE);

	memcpy(seat->near, bytes, SIZE);
	assert_int_equal(
		cf_shuttle_move(shuttle, seat, seat->near, at(2 * SIZE), SIZE),
		0);
	has(2 * SIZE, bytes);
	has_nothing_at(SIZE);
	free(bytes);
}

static void after_a_restore_another_is_made_once_all_have_left(void **state)
{
	struct cf_seat seat = { 0 }, other;
	unsigned long trips;

	(void)state;
	for (int i = 0; i < 3; i++) {
		take(&seat);
		moves(&seat);
		th_shuttle_let();
		th_fake()->restore();
		not_found(&seat);
		assert_true(cf_shuttle_is_near(shuttle));
		cf_shuttle_call(shuttle);
		trips = th_shuttle_trips();
		assert_false(cf_trips_send_for(&shuttle->trips));
		th_shuttle_let();
		assert_int_equal(th_shuttle_trips(), trips);
		assert_false(cf_shuttle_is_near(shuttle));
		assert_false(cf_shuttle_take(shuttle, &other));
		cf_shuttle_leave(shuttle, &seat);
		take(&seat);
		assert_true(cf_shuttle_is_near(shuttle));
		moves(&seat);
		cf_shuttle_leave(shuttle, &seat);
		assert_int_equal(th_fake()->live("vmm_map"), 1);
	}
}

static void it_is_made_by_one_when_nothing_runs_and_once(void **state)
{
	struct cf_seat seat = { 0 };
	unsigned long made;

	(void)state;
	take(&seat);
	moves(&seat);
	th_shuttle_let();
	th_fake()->restore();
	not_found(&seat);
	cf_shuttle_call(shuttle);
	cf_shuttle_leave(shuttle, &seat);
	shuttle->trips.launching = true;
	assert_false(cf_shuttle_take(shuttle, &seat));
	shuttle->trips.launching = false;
	assert_int_equal(th_fake()->plan("cuStreamQuery:1=600"), 0);
	assert_false(cf_shuttle_take(shuttle, &seat));
	th_fake()->plan_clear();
	made = th_fake()->calls("cuMemCreate");
	take(&seat);
	assert_int_equal(th_fake()->calls("cuMemCreate"), made + 1);
	assert_true(cf_trips_renew(&shuttle->trips));
	assert_int_equal(th_fake()->calls("cuMemCreate"), made + 1);
	moves(&seat);
	cf_shuttle_leave(shuttle, &seat);
}

static struct cf_trips *to_call; /* while another aperture is made */

/* By a thread that saw all ready before. */
static int map_and_call(int fd, size_t size, void **mem)
{
	if (to_call)
		cf_trips_send_for(to_call);
	return note_map(fd, size, mem);
}

static void while_it_is_made_nobody_launches(void **state)
{
	struct cf_seat seat = { 0 };
	unsigned long before;

	(void)state;
	take(&seat);
	moves(&seat);
	th_shuttle_let();
	th_fake()->restore();
	not_found(&seat);
	cf_shuttle_call(shuttle);
	cf_shuttle_leave(shuttle, &seat);
	before = launches();
	to_call = &shuttle->trips;
	os.map_shared = map_and_call;
	take(&seat);
	assert_int_equal(launches(), before);
	to_call = NULL;
	moves(&seat);
	cf_shuttle_leave(shuttle, &seat);
}

/* A seat without an aperture, and what it moves. */
static void one_that_is_pinned_moves(void)
{
	unsigned char *bytes = th_bytes(SIZE);
	struct cf_seat seat = { 0 };

	take(&seat);
	assert_null(seat.near);
	assert_false(cf_shuttle_is_near(shuttle));
	memcpy(seat.mem, bytes, SIZE);
	assert_int_equal(cf_shuttle_move(shuttle, &seat, seat.mem, at(0), SIZE),
			 0);
	has(0, bytes);
	cf_shuttle_leave(shuttle, &seat);
	free(bytes);
}

static void one_that_cannot_be_made_again_leaves_all_pinned(void **state)
{
	struct cf_seat seat = { 0 };

	(void)state;
	take(&seat);
	moves(&seat);
	th_shuttle_let();
	th_fake()->restore();
	not_found(&seat);
	cf_shuttle_call(shuttle);
	cf_shuttle_leave(shuttle, &seat);
	os.map_shared = map_none;
	one_that_is_pinned_moves();
}

/* Whoever still had a seat was not found either, and doubted once more. */
static void where_none_is_any_more_nobody_asks_after_it(void **state)
{
	struct cf_seat seats[2] = { { 0 } };

	(void)state;
	take(&seats[0]);
	take(&seats[1]);
	moves(&seats[0]);
	th_shuttle_let();
	th_fake()->restore();
	not_found(&seats[0]);
	cf_shuttle_call(shuttle);
	assert_true(cf_trips_are_stale(&shuttle->trips));
	th_shuttle_let();
	not_found(&seats[1]);
	cf_shuttle_leave(shuttle, &seats[0]);
	cf_shuttle_leave(shuttle, &seats[1]);
	os.map_shared = map_none;
	one_that_is_pinned_moves();
}

#define NUMBERS (1u << (64 - CF_SHUTTLE_ADDR_BITS)) /* that look different */

static uint32_t done_at(const struct cf_seat *seat)
{
	return atomic_load(&shuttle->trips.words.board->done[seat->nr].number);
}

/* The seat's next number looks like zero, which new memory is full of. */
static void restored_before_a_round_number(void)
{
	struct cf_seat seat = { 0 };

	take(&seat);
	do
		moves(&seat);
	while ((done_at(&seat) + 1) % NUMBERS);
	th_shuttle_let();
	th_fake()->restore();
	not_found(&seat);
	cf_shuttle_call(shuttle);
	cf_shuttle_leave(shuttle, &seat);
}

/* By a trip that comes, looks and leaves; a wrong order would have broken it.
 */
static void no_order_is_found(void)
{
	const struct cf_trips *trips = &shuttle->trips;
	unsigned long orders = th_shuttle_orders();

	cf_shuttle_call(shuttle);
	th_shuttle_let();
	assert_int_equal(atomic_load(&trips->words.board->gone),
			 atomic_load(&trips->trip));
	assert_int_equal(th_shuttle_orders(), orders);
}

static void orders_are_void_where_they_come_to_lie(void **state)
{
	struct cf_seat seat = { 0 };

	(void)state;
	restored_before_a_round_number();
	assert_true(cf_shuttle_is_near(shuttle));
	no_order_is_found();
	take(&seat);
	moves(&seat);
	cf_shuttle_leave(shuttle, &seat);
}

static void so_they_are_where_they_lie_on_the_board_again(void **state)
{
	(void)state;
	restored_before_a_round_number();
	os.map_shared = map_none;
	assert_false(cf_shuttle_is_near(shuttle));
	no_order_is_found();
	one_that_is_pinned_moves();
}

static void one_that_was_late_is_not_stale(void **state)
{
	struct cf_ride ride;
	struct cf_seat seat = { 0 };
	unsigned long asked;

	(void)state;
	take(&seat);
	asked = th_fake()->calls("cuMemcpyDtoHAsync_v2");
	for (unsigned long i = 1; i <= 3; i++) {
		not_taken(&seat, 0, &ride);
		th_shuttle_let();
		/* each doubt is asked about once */
		for (int k = 0; k < 2; k++) {
			atomic_fetch_add(&th_clock_ns,
					 (int64_t)10 * 1000000000);
			assert_int_equal(cf_shuttle_move(shuttle, &seat,
							 seat.near, at(0),
							 SIZE),
					 0);
			th_shuttle_let();
		}
		assert_int_equal(th_fake()->calls("cuMemcpyDtoHAsync_v2"),
				 asked + i);
	}
	assert_false(cf_trips_are_stale(&shuttle->trips));
	cf_shuttle_leave(shuttle, &seat);
}

/* ------------------------------------------------------- where none is had */

static void without_an_aperture_all_is_pinned(void **state)
{
	(void)state;
	os.map_shared = map_none;
	one_that_is_pinned_moves();
}

/* Neither is there anything near, nor is it asked for twice. */
static void without_a_kernel_nothing_is_near(void **state)
{
	(void)state;
	assert_int_equal(th_fake()->plan("cuModuleLoadData:*=218"), 0);
	assert_false(cf_shuttle_is_near(shuttle));
	cf_shuttle_call(shuttle);
	th_fake()->plan_clear();
	assert_false(cf_shuttle_is_near(shuttle));
	assert_int_equal(launches(), 0);
}

static void a_seat_that_is_taken_keeps_the_memory(void **state)
{
	struct cf_seat seat = { 0 }, other = { 0 };

	(void)state;
	take(&seat);
	assert_false(cf_shuttle_retire(shuttle));
	assert_int_equal(th_fake()->live("vmm_map"), 1);
	seat.near[0] = 1;
	take(&other);
	cf_shuttle_leave(shuttle, &other);
	cf_shuttle_leave(shuttle, &seat);
	assert_true(cf_shuttle_retire(shuttle));
	assert_int_equal(th_fake()->live("vmm_map"), 0);
	assert_int_equal(th_fake()->live("vmm_reserve"), 0);
	assert_false(cf_shuttle_take(shuttle, &seat));
}

/* And then it lets go of the seats. */
static void so_does_a_trip_that_is_there(void **state)
{
	struct cf_seat seat = { 0 };

	(void)state;
	th_shuttle_stay(true);
	cf_shuttle_call(shuttle);
	assert_false(cf_shuttle_retire(shuttle));
	assert_int_equal(th_fake()->live("vmm_map"), 1);
	take(&seat);
	cf_shuttle_leave(shuttle, &seat);
	th_shuttle_stay(false);
	th_shuttle_let();
	assert_true(cf_shuttle_retire(shuttle));
	assert_int_equal(th_fake()->live("vmm_map"), 0);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(orders_lie_in_the_aperture_and_not_on_the_board),
		TEST(each_seat_has_room_of_its_own_in_either_memory),
		TEST(bytes_are_moved_from_either_memory),
		TEST(orders_of_whoever_had_the_memory_are_not_carried_out),
		TEST(two_seats_are_under_way_for_one_thread),
		TEST(an_order_that_was_taken_back_is_nobody_s),
		TEST(its_number_is_the_next_one_s),
		TEST(who_calls_has_one_trip_come),
		TEST(who_calls_in_a_rest_has_none),
		TEST(after_a_restore_another_is_made_once_all_have_left),
		TEST(it_is_made_by_one_when_nothing_runs_and_once),
		TEST(while_it_is_made_nobody_launches),
		TEST(one_that_cannot_be_made_again_leaves_all_pinned),
		TEST(where_none_is_any_more_nobody_asks_after_it),
		TEST(orders_are_void_where_they_come_to_lie),
		TEST(so_they_are_where_they_lie_on_the_board_again),
		TEST(one_that_was_late_is_not_stale),
		TEST(without_an_aperture_all_is_pinned),
		TEST(without_a_kernel_nothing_is_near),
		TEST(a_seat_that_is_taken_keeps_the_memory),
		TEST(so_does_a_trip_that_is_there),
	};

	th_start(60);
	return th_finish(
		cmocka_run_group_tests_name("shuttle_near", tests, NULL, NULL));
}

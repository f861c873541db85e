// SPDX-License-Identifier: Apache-2.0
/*
 * test_express - which reads go by the shuttle, and what becomes of a seat and
 * of a feed. Shuttle, device, memory and file stand here.
 */
#include "path/express.h"

#include <errno.h>
#include <unistd.h>
#include "core/device.h"
#include "core/file.h"
#include "harness.h"

#define PAGE 4096
#define ADDR ((uintptr_t)0x700000000000 + 3)
#define CTX ((CUcontext)0x77)
#define LOST CF_ECUDA(CF_CU_UNKNOWN)

static struct cf_handle handle;
static struct cf_piece piece;
static struct cf_feed feed;

/* ------------------------------------------------- instead of the real ones */

static struct cf_device device;
static struct cf_memory now; /* what the driver says if it is asked again */
static char seat_mem[CF_SHUTTLE_ROOM], seat_near[CF_SHUTTLE_ROOM];
static int find_says, move_says, failed_with;
static bool pays, has_seat, is_near;
static ssize_t file_says, near_says;
static int64_t gap;
static unsigned nr_called; /* trips, before the file was read */
static unsigned nr_asked, nr_taken, nr_left, nr_lost, nr_moved, nr_failed;
static size_t moved_at, moved_size;
static bool moved_near;
static off_t off_of_part;
static char *read_to; /* the last time; how often, of either memory */
static unsigned nr_far_reads, nr_near_reads;

/* Seen from outside, or the linker of a sanitizer does not find them. */
#pragma GCC visibility push(default)
int __wrap_cf_device_find(const struct cf_memory *mem, struct cf_device **dev);
bool __wrap_cf_device_failed(struct cf_device *dev, int code);
void __wrap_cf_memory_facts(uintptr_t addr, struct cf_memory *mem);
bool __wrap_cf_shuttle_pays(struct cf_shuttle *shuttle, int64_t gap_ns);
void __wrap_cf_shuttle_call(struct cf_shuttle *shuttle);
bool __wrap_cf_shuttle_take_soon(struct cf_shuttle *shuttle,
				 struct cf_seat *seat);
void __wrap_cf_shuttle_leave(struct cf_shuttle *shuttle,
			     const struct cf_seat *seat);
void __wrap_cf_shuttle_lose(struct cf_shuttle *shuttle);
int __wrap_cf_shuttle_move(struct cf_shuttle *shuttle,
			   const struct cf_seat *seat, const char *from,
			   CUdeviceptr dst, size_t size);
ssize_t __wrap_cf_file_read(struct cf_handle *handle, enum cf_via via,
			    void *buf, size_t size, off_t off);
ssize_t __wrap_cf_file_move(struct cf_transfer *t);
#pragma GCC visibility pop

int __wrap_cf_device_find(const struct cf_memory *mem, struct cf_device **dev)
{
	(void)mem;
	*dev = &device;
	return find_says;
}

bool __wrap_cf_device_failed(struct cf_device *dev, int code)
{
	assert_ptr_equal(dev, &device);
	failed_with = code;
	nr_failed++;
	return false;
}

void __wrap_cf_memory_facts(uintptr_t addr, struct cf_memory *mem)
{
	assert_int_equal(addr, ADDR);
	nr_asked++;
	*mem = now;
}

bool __wrap_cf_shuttle_pays(struct cf_shuttle *shuttle, int64_t gap_ns)
{
	(void)shuttle;
	gap = gap_ns;
	return pays;
}

void __wrap_cf_shuttle_call(struct cf_shuttle *shuttle)
{
	(void)shuttle;
	assert_int_equal(nr_far_reads + nr_near_reads, 0);
	nr_called++;
}

bool __wrap_cf_shuttle_take_soon(struct cf_shuttle *shuttle,
				 struct cf_seat *seat)
{
	(void)shuttle;
	nr_taken += has_seat;
	*seat = (struct cf_seat){ .nr = 5,
				  .mem = seat_mem,
				  .near = is_near ? seat_near : NULL };
	return has_seat;
}

void __wrap_cf_shuttle_leave(struct cf_shuttle *shuttle,
			     const struct cf_seat *seat)
{
	(void)shuttle;
	assert_int_equal(seat->nr, 5);
	nr_left++;
}

void __wrap_cf_shuttle_lose(struct cf_shuttle *shuttle)
{
	(void)shuttle;
	nr_lost++;
}

static bool is_in(const char *at, size_t size, const char *room)
{
	return at >= room && at + size <= room + CF_SHUTTLE_ROOM;
}

int __wrap_cf_shuttle_move(struct cf_shuttle *shuttle,
			   const struct cf_seat *seat, const char *from,
			   CUdeviceptr dst, size_t size)
{
	(void)shuttle;
	assert_int_equal(seat->nr, 5);
	assert_int_equal(dst, ADDR);
	moved_near = is_in(from, size, seat_near);
	assert_true(moved_near || is_in(from, size, seat_mem));
	moved_at = (size_t)(from - (moved_near ? seat_near : seat_mem));
	assert_int_equal(moved_at % 16, ADDR % 16);
	moved_size = size;
	nr_moved++;
	return move_says;
}

ssize_t __wrap_cf_file_read(struct cf_handle *of, enum cf_via via, void *buf,
			    size_t size, off_t off)
{
	bool near = is_in(buf, size, seat_near);
	ssize_t says = near ? near_says : file_says;

	(void)of;
	if (via == CF_VIA_CACHE)
		assert_int_equal(off, piece.file_off + off_of_part);
	assert_true(near || is_in(buf, size, seat_mem));
	read_to = buf;
	nr_near_reads += near;
	nr_far_reads += !near;
	return says > (ssize_t)size ? (ssize_t)size : says;
}

ssize_t __wrap_cf_file_move(struct cf_transfer *t)
{
	t->result =
		__wrap_cf_file_read(t->handle, t->via, t->buf, t->size, t->off);
	t->code = t->result < 0 ? (int)t->result : 0;
	return t->result;
}

/* ------------------------------------------------------------------ world */

/* A read of 2 KiB at the file's start that nothing speaks against. */
static int begin(void **state)
{
	(void)state;
	handle.page_align = PAGE;
	piece = (struct cf_piece){
		.op = CF_READ,
		.express = true,
		.via = CF_VIA_CACHE,
		.handle = &handle,
		.mem = { .kind = CF_MEMORY_DEVICE,
			 .addr = ADDR,
			 .ctx = CTX,
			 .buffer_id = 7,
			 .end = ADDR + 2048 },
		.size = 2048,
	};
	now = piece.mem;
	find_says = move_says = 0;
	pays = has_seat = true;
	is_near = false;
	off_of_part = 0;
	file_says = near_says = 1 << 20;
	atomic_store(&handle.wants_pages, false);
	handle.fs_ops = NULL;
	nr_far_reads = nr_near_reads = 0;
	nr_called = nr_asked = nr_taken = nr_left = nr_lost = 0;
	nr_moved = nr_failed = 0;
	return 0;
}

static bool run(void)
{
	cf_feed_init(&feed, piece.size, 0, 512);
	return cf_express_run(&piece, &feed);
}

/* Not by the shuttle: nothing was done, and all of it is left to others. */
static void goes_another_way(void)
{
	assert_false(run());
	assert_int_equal(nr_taken, nr_left);
	assert_int_equal(nr_moved, 0);
	assert_true(cf_feed_has_more(&feed));
	assert_int_equal(cf_feed_result(&feed), piece.size);
}

static void is_carried(void)
{
	assert_true(run());
	assert_int_equal(nr_taken, nr_left);
	assert_int_equal(nr_moved, 1);
	assert_int_equal(moved_size, piece.size);
	assert_false(cf_feed_has_more(&feed));
	assert_int_equal(cf_feed_result(&feed), piece.size);
}

/* ---------------------------------------------------------------- bytes */

static void what_lies_in_the_page_cache_is_read_to_where_it_fits(void **state)
{
	(void)state;
	is_carried();
	assert_ptr_equal(read_to, seat_mem + ADDR % 16);
	assert_int_equal(moved_at, ADDR % 16);
	begin(state);
	piece.file_off = 1000;
	is_carried();
	assert_int_equal(moved_at, ADDR % 16);
}

static void blocks_are_read_whole(void **state)
{
	(void)state;
	piece.via = CF_VIA_DIRECT;
	piece.file_off = 5 * PAGE + 64 + ADDR % 16;
	is_carried();
	assert_ptr_equal(read_to, seat_mem);
	assert_int_equal(moved_at, 64 + ADDR % 16);
}

static void a_file_that_ends_ends_it(void **state)
{
	(void)state;
	file_says = 100;
	assert_true(run());
	assert_int_equal(moved_size, 100);
	assert_int_equal(cf_feed_result(&feed), 100);
	file_says = 0;
	nr_moved = 0;
	assert_true(run());
	assert_int_equal(nr_moved, 0);
	assert_int_equal(cf_feed_result(&feed), 0);
	assert_int_equal(nr_left, 2);
	assert_int_equal(nr_failed, 0);
}

static void a_file_that_fails_fails_it(void **state)
{
	(void)state;
	file_says = -EIO;
	assert_true(run());
	assert_int_equal(nr_moved, 0);
	assert_int_equal(nr_left, 1);
	assert_int_equal(nr_failed, 0);
	assert_int_equal(cf_feed_result(&feed), -EIO);
}

/* ------------------------------------------ seats in the GPU's own memory */

static void is_carried_from(bool near, size_t size)
{
	assert_true(run());
	assert_int_equal(nr_moved, 1);
	assert_int_equal(moved_near, near);
	assert_int_equal(moved_at, ADDR % 16);
	assert_int_equal(moved_size, size);
	assert_int_equal(cf_feed_result(&feed), size);
	assert_int_equal(nr_left, nr_taken);
}

static bool wants_pages(void)
{
	return atomic_load(&handle.wants_pages);
}

static void what_is_cached_is_read_into_the_gpu_s_memory(void **state)
{
	(void)state;
	is_near = true;
	piece.file_off = 1000;
	is_carried_from(true, piece.size);
	assert_int_equal(nr_near_reads, 1);
	assert_int_equal(nr_far_reads, 0);
	assert_false(wants_pages());
}

static void a_disk_does_not_reach_it(void **state)
{
	(void)state;
	is_near = true;
	piece.via = CF_VIA_DIRECT;
	piece.file_off = 5 * PAGE + ADDR % 16;
	is_carried_from(false, piece.size);
	assert_int_equal(nr_near_reads, 0);
}

/* It may do with its memory what it likes. */
static void a_client_s_callback_does_not_see_it(void **state)
{
	static const CUfileFSOps_t ops;

	(void)state;
	is_near = true;
	handle.fs_ops = &ops;
	is_carried_from(false, piece.size);
	assert_int_equal(nr_near_reads, 0);
	assert_false(wants_pages());
}

/* Whatever came of it there. */
static void who_wants_pages_gets_them_and_is_known(void **state)
{
	static const ssize_t says[] = { -EFAULT, -EINVAL, 0, 1, 2047 };

	for (size_t i = 0; i < sizeof(says) / sizeof(*says); i++) {
		begin(state);
		is_near = true;
		near_says = says[i];
		is_carried_from(false, piece.size);
		assert_int_equal(nr_near_reads, 1);
		assert_int_equal(nr_far_reads, 1);
		assert_true(wants_pages());
		/* and is not asked again */
		nr_moved = 0;
		is_carried_from(false, piece.size);
		assert_int_equal(nr_near_reads, 1);
		assert_int_equal(nr_far_reads, 2);
		assert_true(wants_pages());
	}
}

/* No page would have brought more. */
static void the_end_of_a_file_is_no_want_of_pages(void **state)
{
	(void)state;
	is_near = true;
	near_says = file_says = 100;
	is_carried_from(false, 100);
	assert_int_equal(nr_far_reads, 1);
	assert_false(wants_pages());
	near_says = file_says = nr_moved = 0;
	assert_true(run());
	assert_int_equal(nr_moved, 0);
	assert_int_equal(cf_feed_result(&feed), 0);
	assert_false(wants_pages());
}

static void a_file_that_shrinks_meanwhile_wants_none_either(void **state)
{
	(void)state;
	is_near = true;
	near_says = 1000;
	file_says = 100;
	is_carried_from(false, 100);
	assert_false(wants_pages());
	nr_moved = 0;
	file_says = 0;
	assert_true(run());
	assert_int_equal(cf_feed_result(&feed), 0);
	assert_int_equal(nr_moved, 0);
	assert_false(wants_pages());
}

static void a_file_that_fails_either_way_wants_none(void **state)
{
	static const ssize_t says[] = { -EIO, -EFAULT, 1000 };

	for (size_t i = 0; i < sizeof(says) / sizeof(*says); i++) {
		begin(state);
		is_near = true;
		near_says = says[i];
		file_says = -EIO;
		assert_true(run());
		assert_int_equal(nr_far_reads, 1);
		assert_int_equal(nr_moved, 0);
		assert_int_equal(nr_left, 1);
		assert_int_equal(cf_feed_result(&feed), -EIO);
		assert_false(wants_pages());
	}
}

/* No seat of the GPU was asked for anything. */
static void without_such_seats_nobody_is_taken_to_want_pages(void **state)
{
	(void)state;
	is_carried_from(false, piece.size);
	assert_int_equal(nr_far_reads, 1);
	assert_false(wants_pages());
}

static void a_part_is_filled_from_its_own_place(void **state)
{
	const struct cf_part part = { .at = 4096 + 5, .size = 1000 };
	struct cf_seat seat = { .nr = 5, .mem = seat_mem, .near = seat_near };
	const char *from = NULL;

	(void)state;
	piece.size = 1 << 20;
	off_of_part = (off_t)part.at;
	assert_int_equal(cf_express_fill(&piece, &part, &seat, &from), 1000);
	assert_ptr_equal(from, read_to);
	assert_int_equal((from - seat_near) % 16, (ADDR + part.at) % 16);
	near_says = -EFAULT;
	assert_int_equal(cf_express_fill(&piece, &part, &seat, &from), 1000);
	assert_ptr_equal(from, read_to);
	assert_int_equal((from - seat_mem) % 16, (ADDR + part.at) % 16);
}

/* ------------------------------------------------------ who does not suit */

static void only_what_is_small_and_asks_for_it_goes(void **state)
{
	size_t most = CF_SHUTTLE_ROOM - 2 * PAGE;

	(void)state;
	piece.express = false;
	goes_another_way();
	piece.express = true;
	piece.size = most;
	now.end = piece.mem.end = ADDR + most;
	is_carried();
	piece.size++;
	now.end = piece.mem.end = ADDR + most + 1;
	nr_moved = 0;
	goes_another_way();
	assert_int_equal(nr_taken, 1);
}

static void only_plain_device_memory_of_known_bounds_goes(void **state)
{
	begin(state);
	piece.mem.kind = now.kind = CF_MEMORY_MANAGED;
	goes_another_way();
	assert_int_equal(nr_taken, 0);
	begin(state);
	piece.mem.chained = now.chained = true;
	goes_another_way();
	assert_int_equal(nr_taken, 0);
	begin(state);
	piece.mem.end = 0;
	goes_another_way();
	assert_int_equal(nr_taken, 0);
}

static void blocks_that_lie_otherwise_do_not_go(void **state)
{
	(void)state;
	piece.via = CF_VIA_DIRECT;
	piece.file_off = ADDR % 16 + 1;
	goes_another_way();
	assert_int_equal(nr_taken, 0);
}

static void it_must_pay_and_have_a_seat(void **state)
{
	(void)state;
	pays = false;
	goes_another_way();
	assert_int_equal(nr_taken, 0);
	pays = true;
	has_seat = false;
	goes_another_way();
	has_seat = true;
	find_says = LOST;
	goes_another_way();
	assert_int_equal(nr_taken, 0);
}

/* A trip that has left since the last one comes while the disk works. */
static void what_a_disk_brings_may_come_less_often(void **state)
{
	is_carried();
	assert_int_equal(gap, CF_SHUTTLE_GAP_NS);
	assert_int_equal(nr_called, 0);
	begin(state);
	piece.rare = true;
	is_carried();
	assert_int_equal(gap, 3 * CF_SHUTTLE_GAP_NS);
	assert_int_equal(nr_called, 1);
	begin(state);
	piece.rare = true;
	has_seat = false;
	goes_another_way();
	assert_int_equal(nr_called, 0);
}

/* ------------------------------------------------------- what went wrong */

static void memory_that_is_another_by_now_is_left_alone(void **state)
{
	struct cf_memory was = now;

	(void)state;
	now.kind = CF_MEMORY_HOST;
	goes_another_way();
	now = was;
	now.ctx = NULL;
	goes_another_way();
	now = was;
	now.buffer_id++;
	goes_another_way();
	now = was;
	now.chained = true;
	goes_another_way();
	now = was;
	now.end--;
	goes_another_way();
	assert_int_equal(nr_asked, 5);
	assert_int_equal(nr_left, 5);
	now = was;
	is_carried();
}

static void what_is_registered_is_not_asked_for(void **state)
{
	(void)state;
	piece.registered = true;
	now.kind = CF_MEMORY_HOST;
	is_carried();
	assert_int_equal(nr_asked, 0);
}

static void an_order_that_was_not_carried_out_is_left_to_others(void **state)
{
	(void)state;
	move_says = -ENOTSUP;
	assert_false(run());
	assert_int_equal(nr_left, 1);
	assert_true(cf_feed_has_more(&feed));
	assert_int_equal(cf_feed_result(&feed), piece.size);
}

/* A kernel may still look at the seat. */
static void nobody_leaves_the_seat_of_a_kernel_that_is_lost(void **state)
{
	(void)state;
	move_says = LOST;
	assert_true(run());
	assert_int_equal(nr_failed, 1);
	assert_int_equal(failed_with, LOST);
	assert_int_equal(nr_taken, 1);
	assert_int_equal(nr_left, 0);
	assert_int_equal(nr_lost, 1);
	assert_false(cf_feed_has_more(&feed));
	assert_int_equal(cf_feed_result(&feed), LOST);
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_lies_in_the_page_cache_is_read_to_where_it_fits),
		TEST(blocks_are_read_whole),
		TEST(a_file_that_ends_ends_it),
		TEST(a_file_that_fails_fails_it),
		TEST(what_is_cached_is_read_into_the_gpu_s_memory),
		TEST(a_disk_does_not_reach_it),
		TEST(a_client_s_callback_does_not_see_it),
		TEST(who_wants_pages_gets_them_and_is_known),
		TEST(the_end_of_a_file_is_no_want_of_pages),
		TEST(a_file_that_shrinks_meanwhile_wants_none_either),
		TEST(a_file_that_fails_either_way_wants_none),
		TEST(without_such_seats_nobody_is_taken_to_want_pages),
		TEST(a_part_is_filled_from_its_own_place),
		TEST(only_what_is_small_and_asks_for_it_goes),
		TEST(only_plain_device_memory_of_known_bounds_goes),
		TEST(blocks_that_lie_otherwise_do_not_go),
		TEST(it_must_pay_and_have_a_seat),
		TEST(what_a_disk_brings_may_come_less_often),
		TEST(memory_that_is_another_by_now_is_left_alone),
		TEST(what_is_registered_is_not_asked_for),
		TEST(an_order_that_was_not_carried_out_is_left_to_others),
		TEST(nobody_leaves_the_seat_of_a_kernel_that_is_lost),
	};

	alarm(60);
	return cmocka_run_group_tests_name("express", tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Batches on O_DIRECT files: which entries rings carry and how many at once,
 * and that the bytes are right with little room, without rings, behind the
 * end of a file, and when they are dropped in the middle.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/ring.h"
#include "seam/uring.h"
#include "windows.h"

#define BLOCK th_page() /* a write of less is in no ring */

/* ------------------------------------------------------ a ring that counts */

static atomic_uint queued, refused;
static atomic_int under_way, deepest;
static struct cf_uring counting;

static bool count_queue(struct cf_kring *ring, bool write, int fd, void *mem,
			size_t size, off_t off, uint64_t cookie)
{
	int deep = 1 + atomic_fetch_add(&under_way, 1);
	int seen = atomic_load(&deepest);

	while (deep > seen &&
	       !atomic_compare_exchange_weak(&deepest, &seen, deep))
		continue;
	atomic_fetch_add(&queued, 1);
	return cf_uring_real.queue(ring, write, fd, mem, size, off, cookie);
}

static bool count_reap(struct cf_kring *ring, struct cf_uring_done *done)
{
	bool reaped = cf_uring_real.reap(ring, done);

	atomic_fetch_sub(&under_way, reaped);
	return reaped;
}

/* The first one tells that there are rings; no other is to be had. */
static int one_ring_only(unsigned depth, struct cf_kring **ring)
{
	static atomic_bool made;

	if (!atomic_exchange(&made, true))
		return cf_uring_real.make(depth, ring);
	atomic_fetch_add(&refused, 1);
	return -EMFILE;
}

static int setup(void **state)
{
	counting = cf_uring_real;
	counting.queue = count_queue;
	counting.reap = count_reap;
	cf_uring = &counting;
	atomic_store(&queued, 0);
	atomic_store(&refused, 0);
	atomic_store(&under_way, 0);
	atomic_store(&deepest, 0);
	/* what the page cache holds is read from the disk all the same */
	setenv("OCF_HYBRID", "off", 1);
	return 0;
}

static int teardown(void **state)
{
	int err = th_teardown_close(state);

	cf_uring = &cf_uring_real;
	unsetenv("OCF_IO_URING");
	unsetenv("OCF_HYBRID");
	return err;
}

static void need_rings(void)
{
	if (!cf_rings_usable())
		th_skip("this machine refuses io_uring");
}

/* A block or so stays free on both sides of each. odd: not whole blocks. */
static void move_all(struct windows *b, CUfileOpcode_t opcode, bool odd)
{
	for (unsigned i = 0; i < b->nr; i++) {
		size_t most = b->window - 2 * BLOCK;
		size_t at = odd ? 1 + th_below(BLOCK) : BLOCK;
		size_t size = odd ? 1 + th_below(most) : most;

		windows_set(b, i, opcode, b->nr - 1 - i, at, size);
	}
	windows_run(b, b->nr);
	windows_check(b);
}

static void there_and_back(struct windows *b)
{
	move_all(b, CUFILE_READ, false);
	move_all(b, CUFILE_READ, true);
	th_fill(b->in_mem, b->size);
	th_mem_put(&b->mem, 0, b->in_mem, b->size);
	move_all(b, CUFILE_WRITE, false);
	move_all(b, CUFILE_WRITE, true);
	move_all(b, CUFILE_READ, true);
}

/* ------------------------------------------------------------------ tests */

static void carries(enum th_mem_kind kind)
{
	struct windows b = { .nr = 0 };

	windows_init(&b, kind, TH_ODIRECT, 128, 3 * BLOCK);
	need_rings();
	move_all(&b, CUFILE_READ, false);
	assert_int_equal(atomic_load(&queued), b.nr);
	assert_true(atomic_load(&deepest) >= 16);
	th_fill(b.in_mem, b.size);
	th_mem_put(&b.mem, 0, b.in_mem, b.size);
	move_all(&b, CUFILE_WRITE, false);
	assert_int_equal(atomic_load(&queued), 2 * b.nr);
	there_and_back(&b);
	windows_fini(&b);
	windows_init(&b, kind, TH_ODIRECT, 20, TH_MIB);
	there_and_back(&b);
	windows_fini(&b);
}

static void rings_carry_entries_of_host_memory_side_by_side(void **state)
{
	carries(TH_MALLOC);
}

static void rings_carry_entries_of_gpu_memory_side_by_side(void **state)
{
	carries(TH_DEVICE);
}

static void large_and_small_entries_travel_in_one_batch(void **state)
{
	struct windows b = { .nr = 0 };

	windows_init(&b, TH_DEVICE, TH_ODIRECT, 24, TH_MIB);
	for (int lap = 0; lap < 4; lap++) {
		for (unsigned i = 0; i < b.nr; i++) {
			size_t size = i % 3 ? 1 + th_below(3 * BLOCK) :
					      1 + th_below(TH_MIB - BLOCK);

			/* reads of the lower half, writes to the upper */
			windows_set(&b, i,
				    i < b.nr / 2 ? CUFILE_READ : CUFILE_WRITE,
				    i, th_below(BLOCK), size);
		}
		windows_run(&b, b.nr);
		windows_check(&b);
	}
	windows_fini(&b);
}

static void an_entry_over_the_end_of_the_file_is_short(void **state)
{
	static const enum th_mem_kind kinds[] = { TH_MALLOC, TH_DEVICE };
	size_t end = 3 * 5 * BLOCK - 777;

	for (unsigned k = 0; k < 2; k++) {
		struct windows b = { .nr = 0 };
		CUfileIOEvents_t events[4];
		unsigned nr = 4;

		if (th_mem_is_device(kinds[k]) && !th_gpu(NULL))
			continue;
		windows_init(&b, kinds[k], TH_ODIRECT, 4, 5 * BLOCK);
		assert_int_equal(ftruncate(b.file.plain, (off_t)end), 0);
		for (unsigned i = 0; i < 4; i++)
			windows_set(&b, i, CUFILE_READ, i, 0, 5 * BLOCK);
		assert_int_equal(
			cuFileBatchIOSubmit(b.batch, 4, b.params, 0).err, 0);
		assert_int_equal(
			cuFileBatchIOGetStatus(b.batch, 4, &nr, events, NULL)
				.err,
			0);
		assert_int_equal(nr, 4);
		for (unsigned i = 0; i < 4; i++) {
			size_t at = (size_t)events[i].cookie * 5 * BLOCK;
			size_t left = at < end ? end - at : 0;

			assert_int_equal(events[i].status, CUFILE_COMPLETE);
			assert_int_equal(events[i].ret,
					 left < 5 * BLOCK ? left : 5 * BLOCK);
			th_mem_get(&b.mem, at, b.in_mem, left);
			th_equal("before the end", b.in_mem, b.in_file + at,
				 left < 5 * BLOCK ? left : 5 * BLOCK);
		}
		windows_fini(&b);
	}
}

static void two_slots_of_two_cells_are_enough(void **state)
{
	struct windows b = { .nr = 0 };

	windows_slots(2, 64);
	assert_int_equal(cuFileSetParameterSizeT(
				 CUFILE_PARAM_EXECUTION_MAX_IO_THREADS, 6)
				 .err,
			 0);
	windows_init(&b, TH_DEVICE, TH_ODIRECT, 200, 8 * BLOCK);
	there_and_back(&b);
	windows_fini(&b);
}

static void without_rings_threads_carry_them(void **state)
{
	struct windows b = { .nr = 0 };

	setenv("OCF_IO_URING", "0", 1);
	windows_init(&b, th_gpu(NULL) ? TH_DEVICE : TH_MALLOC, TH_ODIRECT, 60,
		     16 * BLOCK);
	there_and_back(&b);
	assert_int_equal(atomic_load(&queued), 0);
	windows_fini(&b);
}

/* Other requests hold the one ring there is, or nobody does. */
static void who_gets_no_ring_does_without(void **state)
{
	struct windows b = { .nr = 0 };
	struct cf_ring *mine;

	counting.make = one_ring_only;
	windows_init(&b, th_gpu(NULL) ? TH_DEVICE : TH_MALLOC, TH_ODIRECT, 60,
		     16 * BLOCK);
	need_rings();
	mine = cf_ring_lease();
	assert_non_null(mine);
	there_and_back(&b);
	assert_true(atomic_load(&refused) > 0);
	assert_int_equal(atomic_load(&queued), 0);
	cf_ring_give_back(mine);
	there_and_back(&b);
	assert_true(atomic_load(&queued) > 0);
	windows_fini(&b);
}

/* ---------------------------------------------------------------- cancel */

/*
 * Memory of its own for each round, freed after the cancel or the destroy: a
 * late byte is seen by the address sanitizer and by the fake driver.
 */
static void drop_in_the_middle(struct windows *b, enum th_mem_kind kind,
			       CUfileOpcode_t opcode)
{
	for (int round = 0; round < TH_SCALE(30); round++) {
		struct th_mem mem;

		th_mem_alloc(&mem, kind, b->size);
		th_mem_put(&mem, 0, b->in_mem, b->size);
		for (unsigned i = 0; i < b->nr; i++) {
			windows_set(b, i, opcode, i, BLOCK, BLOCK);
			b->params[i].u.batch.devPtr_base = mem.ptr;
		}
		assert_int_equal(
			cuFileBatchIOSubmit(b->batch, b->nr, b->params, 0).err,
			0);
		th_sleep_ms(round % 3);
		if (round & 1) {
			cuFileBatchIODestroy(b->batch);
			assert_int_equal(
				cuFileBatchIOSetUp(&b->batch, b->nr).err, 0);
		} else {
			assert_int_equal(cuFileBatchIOCancel(b->batch).err, 0);
		}
		th_mem_free(&mem);
	}
}

static void memory_may_go_after_a_cancel_or_a_destroy(void **state)
{
	static const enum th_mem_kind kinds[] = { TH_MALLOC, TH_DEVICE };

	for (unsigned k = 0; k < 2; k++) {
		struct windows b = { .nr = 0 };

		if (th_mem_is_device(kinds[k]) && !th_gpu(NULL))
			continue;
		windows_init(&b, kinds[k], TH_ODIRECT, WINDOWS_MAX, 3 * BLOCK);
		drop_in_the_middle(&b, kinds[k], CUFILE_READ);
		drop_in_the_middle(&b, kinds[k], CUFILE_WRITE);
		windows_fini(&b);
	}
}

/* --------------------------------------------------------------- others */

static struct {
	off_t from;	      /* entries from here on are another batch's */
	atomic_bool shut;     /* the first one that flies waits */
	atomic_uint flown;    /* of the first batch */
	atomic_uint overtook; /* of those, when the other one's flew */
} turn;

static bool turn_queue(struct cf_kring *ring, bool write, int fd, void *mem,
		       size_t size, off_t off, uint64_t cookie)
{
	unsigned none = 0;

	while (atomic_load(&turn.shut))
		th_sleep_ms(1);
	if (off < turn.from)
		atomic_fetch_add(&turn.flown, 1);
	else
		atomic_compare_exchange_strong(&turn.overtook, &none,
					       atomic_load(&turn.flown));
	return cf_uring_real.queue(ring, write, fd, mem, size, off, cookie);
}

/* The one worker there is lets a batch that came later through. */
static void a_fleet_lets_others_through(void **state)
{
	struct windows b = { .nr = 0 };
	CUfileIOEvents_t events[WINDOWS_MAX];
	CUfileBatchHandle_t other;
	unsigned nr = 2, first = WINDOWS_MAX - 2;

	assert_int_equal(cuFileSetParameterSizeT(
				 CUFILE_PARAM_EXECUTION_MAX_IO_THREADS, 1)
				 .err,
			 0);
	counting.queue = turn_queue;
	windows_init(&b, TH_MALLOC, TH_ODIRECT, WINDOWS_MAX, BLOCK);
	need_rings();
	for (unsigned i = 0; i < b.nr; i++)
		windows_set(&b, i, CUFILE_READ, i, 0, BLOCK);
	turn.from = (off_t)(first * b.window);
	atomic_store(&turn.flown, 0);
	atomic_store(&turn.overtook, 0);
	atomic_store(&turn.shut, true);
	assert_int_equal(cuFileBatchIOSetUp(&other, 2).err, 0);
	assert_int_equal(cuFileBatchIOSubmit(b.batch, first, b.params, 0).err,
			 0);
	assert_int_equal(cuFileBatchIOSubmit(other, 2, b.params + first, 0).err,
			 0);
	atomic_store(&turn.shut, false);
	assert_int_equal(
		cuFileBatchIOGetStatus(other, 2, &nr, events, NULL).err, 0);
	assert_int_equal(nr, 2);
	nr = first;
	assert_int_equal(
		cuFileBatchIOGetStatus(b.batch, first, &nr, events, NULL).err,
		0);
	assert_int_equal(nr, first);
	assert_int_equal(atomic_load(&turn.flown), first);
	assert_in_range(atomic_load(&turn.overtook), 1, first - 1);
	windows_check(&b);
	cuFileBatchIODestroy(other);
	windows_fini(&b);
}

/* -------------------------------------------------------------- many */

struct crowd {
	struct windows *b;
	struct th_bad bad;
};

/* A batch of its own, over a share of the windows that is its own. */
static void one_of_a_crowd(void *arg, unsigned thread)
{
	struct crowd *c = arg;
	struct windows *b = c->b;
	CUfileIOEvents_t events[8];
	CUfileBatchHandle_t batch;

	if (cuFileBatchIOSetUp(&batch, 8).err) {
		th_bad_note(&c->bad, "thread %u: no batch", thread);
		return;
	}
	for (int lap = 0; lap < TH_SCALE(20); lap++) {
		unsigned nr = 8;

		if (cuFileBatchIOSubmit(batch, 8, b->params + 8ul * thread, 0)
			    .err ||
		    cuFileBatchIOGetStatus(batch, 8, &nr, events, NULL).err ||
		    nr != 8)
			th_bad_note(&c->bad, "thread %u: %u ended", thread, nr);
		for (unsigned i = 0; i < nr; i++)
			if (events[i].ret != b->window - 2 * BLOCK)
				th_bad_note(&c->bad, "thread %u: %zu bytes",
					    thread, events[i].ret);
	}
	cuFileBatchIODestroy(batch);
}

static void thirty_two_threads_have_batches_on_one_file(void **state)
{
	struct windows b = { .nr = 0 };
	struct crowd c = { .b = &b };

	windows_init(&b, th_gpu(NULL) ? TH_DEVICE : TH_MALLOC, TH_ODIRECT,
		     WINDOWS_MAX, 4 * BLOCK);
	for (unsigned i = 0; i < b.nr; i++)
		windows_set(&b, i, i & 1 ? CUFILE_READ : CUFILE_WRITE, i, BLOCK,
			    b.window - 2 * BLOCK);
	th_threads(32, one_of_a_crowd, &c);
	th_bad_check(&c.bad);
	windows_check(&b);
	windows_fini(&b);
}

/* In a child its parent's device memory looks like the host's. */
static bool all_fail_in_a_child(struct windows *b)
{
	CUfileIOEvents_t events[WINDOWS_MAX];
	unsigned nr = b->nr;
	CUfileBatchHandle_t own;

	if (cuFileBatchIOSetUp(&own, nr).err ||
	    cuFileBatchIOSubmit(own, nr, b->params, 0).err ||
	    cuFileBatchIOGetStatus(own, nr, &nr, events, NULL).err)
		return false;
	for (unsigned i = 0; i < nr; i++)
		if (events[i].status != CUFILE_FAILED ||
		    (ssize_t)events[i].ret != -CU_FILE_CUDA_DRIVER_ERROR)
			return false;
	return nr == b->nr;
}

static void a_childs_entries_of_gpu_memory_fail_with_5011(void **state)
{
	struct windows b = { .nr = 0 };
	int status;
	pid_t pid;

	(void)state;
	th_need_fake();
	if (TH_TSAN)
		th_skip("the sanitizer lets a child start no thread");
	windows_init(&b, TH_DEVICE, TH_ODIRECT, 16, 4 * BLOCK);
	need_rings();
	for (unsigned i = 0; i < b.nr; i++)
		windows_set(&b, i, CUFILE_READ, i, BLOCK, 2 * BLOCK);
	windows_run(&b, b.nr);
	pid = th_fork();
	if (!pid) {
		bool failed;

		atomic_store(&queued, 0);
		failed = all_fail_in_a_child(&b);
		_exit(failed && atomic_load(&queued) ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	windows_check(&b);
	windows_fini(&b);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(rings_carry_entries_of_host_memory_side_by_side),
		TEST(rings_carry_entries_of_gpu_memory_side_by_side),
		TEST(large_and_small_entries_travel_in_one_batch),
		TEST(an_entry_over_the_end_of_the_file_is_short),
		TEST(two_slots_of_two_cells_are_enough),
		TEST(without_rings_threads_carry_them),
		TEST(who_gets_no_ring_does_without),
		TEST(memory_may_go_after_a_cancel_or_a_destroy),
		TEST(a_fleet_lets_others_through),
		TEST(a_childs_entries_of_gpu_memory_fail_with_5011),
		TEST(thirty_two_threads_have_batches_on_one_file),
	};

	th_start(250);
	return th_finish(
		cmocka_run_group_tests_name("fleet", tests, NULL, NULL));
}

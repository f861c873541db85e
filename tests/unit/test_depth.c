// SPDX-License-Identifier: Apache-2.0
/* test_depth - who is counted in a stream, who waits, and what is left. */
#include "engine/depth.h"

#include "harness.h"

#include <cufile.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define STREAM ((CUstream)0x2000)

static const struct cf_place known = { .stream = STREAM,
				       .ctx = (CUcontext)0x10,
				       .ctx_id = 7 };

static struct cf_depth *enter_at(const struct cf_place *at, unsigned max)
{
	struct cf_depth *depth;

	assert_int_equal(cf_depth_enter(at, NULL, max, &depth), 0);
	assert_non_null(depth);
	return depth;
}

static struct cf_depth *enter(CUstream stream, unsigned max)
{
	struct cf_place at = known;

	at.stream = stream;
	return enter_at(&at, max);
}

static void each_stream_is_counted_by_itself(void **state)
{
	struct cf_depth *a = enter(STREAM, 1), *b = enter((CUstream)0x3000, 1);
	struct cf_place other = known;
	struct cf_depth *c;

	assert_ptr_not_equal(a, b);
	other.ctx = (CUcontext)0x20;
	c = enter_at(&other, 1);
	assert_ptr_not_equal(a, c);
	assert_false(cf_depth_writes(a));
	cf_depth_write(a, 1);
	cf_depth_write(a, 1);
	cf_depth_write(a, -1);
	assert_true(cf_depth_writes(a));
	cf_depth_write(a, -1);
	assert_false(cf_depth_writes(a));
	cf_depth_write(NULL, 1);
	assert_false(cf_depth_writes(NULL));
	cf_depth_leave(a);
	cf_depth_leave(b);
	cf_depth_leave(c);
	cf_depth_leave(NULL);
}

/* It bears the name of the one that was there before. */
static void a_context_that_was_reset_begins_anew(void **state)
{
	struct cf_depth *before = enter(STREAM, 1), *after;
	struct cf_place reset = known;

	reset.ctx_id++;
	after = enter_at(&reset, 2);
	cf_depth_leave(before);
	cf_depth_leave(after);
	assert_ptr_not_equal(before, after);
}

struct waiter {
	pthread_t thread;
	struct cf_depth *depth;
	int err;
	atomic_bool in, asked;
};

static void *wait_for_room(void *arg)
{
	struct waiter *w = arg;

	atomic_store(&w->asked, true);
	w->err = cf_depth_enter(&known, NULL, 1, &w->depth);
	atomic_store(&w->in, true);
	return NULL;
}

static void send_in(struct waiter *w)
{
	*w = (struct waiter){ .err = 1 };
	assert_int_equal(pthread_create(&w->thread, NULL, wait_for_room, w), 0);
	while (!atomic_load(&w->asked))
		th_sleep_ms(1);
	th_sleep_ms(20); /* it is at its wait, or will be */
}

static void join(struct waiter *w)
{
	assert_int_equal(pthread_join(w->thread, NULL), 0);
}

/* What a waiter waits for is there when it is let in, and counts it. */
static void who_waits_is_let_in_when_one_leaves(void **state)
{
	for (int i = 0; i < 20; i++) {
		struct cf_depth *depth = enter(STREAM, 1);
		struct waiter w;
		void *other;

		send_in(&w);
		assert_false(atomic_load(&w.in));
		cf_depth_leave(depth);
		/* would be the same memory, had it been given back */
		other = malloc(64);
		memset(other, 0xff, 64);
		join(&w);
		free(other);
		assert_int_equal(w.err, 0);
		cf_depth_leave(w.depth);
	}
}

static void a_close_lets_nobody_in(void **state)
{
	struct cf_depth *depth = enter(STREAM, 1);
	struct waiter w;

	send_in(&w);
	cf_depths_close();
	join(&w);
	assert_int_equal(w.err, -CU_FILE_DRIVER_CLOSING);
	assert_null(w.depth);
	cf_depths_open();
	cf_depth_leave(depth);
	cf_depth_leave(enter(STREAM, 1));
}

static void streams_that_are_over_leave_no_memory(void **state)
{
	size_t before;

	cf_depth_leave(enter(STREAM, 1));
	before = mallinfo2().uordblks;
	for (uintptr_t i = 0; i < 1000; i++)
		cf_depth_leave(enter((CUstream)(0x100000 + 16 * i), 1));
	if (before) /* a sanitizer's allocator does not count here */
		assert_in_range(mallinfo2().uordblks, 0, before + 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_stream_is_counted_by_itself),
		cmocka_unit_test(a_context_that_was_reset_begins_anew),
		cmocka_unit_test(who_waits_is_let_in_when_one_leaves),
		cmocka_unit_test(a_close_lets_nobody_in),
		cmocka_unit_test(streams_that_are_over_leave_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * test_turns - which reads need a turn, how many there are, and who is next.
 * Threads take turns that the test gives back; time passes when it says so.
 */
#include "engine/turns.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include "core/cpus.h"
#include "engine/request.h"
#include "plan_asked.h"
#include "seam/os.h"

#define KIB TH_KIB
#define SMALL (32 * KIB)
#define MIDDLE (128 * KIB + 1)
#define LARGE (4096 * KIB)
#define TURNS 6u /* small reads, or eight of a slot, or four large ones */
#define ROOM (4 * TURNS) /* by what they take */
#define NR_GUESTS 20
#define NOW_NS 950000000
#define PATIENCE_NS 100000000

static struct cf_handle file, direct_file;
static struct cf_piece piece;

/* ------------------------------------------------------------------ time */

static struct cf_os os;
static atomic_uint nr_asleep;
static atomic_bool time_is_up;
static struct timespec until; /* of the last who was late */
static unsigned one_ends; /* while somebody waits too long, so large a turn */

static int clock_of_the_test(clockid_t clock, struct timespec *ts)
{
	assert_int_equal(clock, CLOCK_MONOTONIC);
	*ts = (struct timespec){ 7, NOW_NS };
	return 0;
}

/* Seen from outside, or the linker of a sanitizer does not find them. */
#pragma GCC visibility push(default)
int __wrap_pthread_cond_clockwait(pthread_cond_t *changed,
				  pthread_mutex_t *lock, clockid_t clock,
				  const struct timespec *deadline);
#pragma GCC visibility pop

int __wrap_pthread_cond_clockwait(pthread_cond_t *changed,
				  pthread_mutex_t *lock, clockid_t clock,
				  const struct timespec *deadline)
{
	assert_int_equal(clock, CLOCK_MONOTONIC);
	if (atomic_load(&time_is_up)) {
		until = *deadline;
		pthread_mutex_unlock(lock);
		cf_turns_end(one_ends);
		pthread_mutex_lock(lock);
		return ETIMEDOUT;
	}
	atomic_fetch_add(&nr_asleep, 1);
	pthread_cond_wait(changed, lock);
	atomic_fetch_sub(&nr_asleep, 1);
	return 0;
}

static void wait_asleep(unsigned nr)
{
	while (atomic_load(&nr_asleep) != nr)
		th_sleep_ms(1);
}

/* ----------------------------------------------------------------- world */

static int begin(void **state)
{
	(void)state;
	atomic_store(&cf_plan_bounds.turns, TURNS);
	atomic_store(&time_is_up, false);
	one_ends = 0;
	make_files(&file, &direct_file);
	piece = (struct cf_piece){ .op = CF_READ,
				   .handle = &file,
				   .via = CF_VIA_CACHE,
				   .mem.kind = CF_MEMORY_DEVICE,
				   .size = SMALL };
	cf_turns_fork_child(); /* nobody has any */
	return 0;
}

static unsigned take(size_t size)
{
	struct cf_piece mine = piece;

	mine.size = size;
	return cf_turns_begin(&mine, &cf_path_staged);
}

/* Who comes to read so much, and whether it is there. */
struct guest {
	size_t size;
	pthread_t thread;
	unsigned turn;
	unsigned place; /* in the order of those who got theirs */
	atomic_bool is_in;
};
static struct guest guests[NR_GUESTS];
static atomic_uint nr_in;

static void *come(void *arg)
{
	struct guest *guest = arg;

	guest->turn = take(guest->size);
	guest->place = atomic_fetch_add(&nr_in, 1);
	atomic_store(&guest->is_in, true);
	return NULL;
}

static void let_come(struct guest *guest, size_t size)
{
	*guest = (struct guest){ .size = size };
	assert_int_equal(pthread_create(&guest->thread, NULL, come, guest), 0);
}

static void wait_in(struct guest *guest)
{
	while (!atomic_load(&guest->is_in))
		th_sleep_ms(1);
	pthread_join(guest->thread, NULL);
}

/* ----------------------------------------------------------------- tests */

static bool needs_one(const struct cf_path_ops *path)
{
	unsigned turn = cf_turns_begin(&piece, path);

	cf_turns_end(turn);
	return turn;
}

static void only_cached_reads_of_some_size_need_one(void **state)
{
	static const CUfileFSOps_t ops;

	(void)state;
	assert_true(needs_one(&cf_path_staged));
	assert_false(needs_one(&cf_path_host));
	assert_false(needs_one(&cf_path_mapped));
	piece.size = SMALL - 1;
	assert_false(needs_one(&cf_path_staged));
	piece.size = LARGE;
	assert_true(needs_one(&cf_path_staged));
	piece.op = CF_WRITE;
	assert_false(needs_one(&cf_path_staged));
	piece.op = CF_READ;
	file.fs_ops = &ops;
	assert_false(needs_one(&cf_path_staged));
	file.fs_ops = NULL;
	piece.handle = &direct_file;
	piece.via = CF_VIA_DIRECT;
	assert_false(needs_one(&cf_path_staged));
}

/* Its last read was slow: the disk may want many at once. */
static void what_the_disk_brings_needs_none(void **state)
{
	(void)state;
	atomic_store(&file.pace, 1);
	assert_false(needs_one(&cf_path_staged));
	atomic_store(&file.pace, 0);
	assert_true(needs_one(&cf_path_staged));
}

static void there_are_some_more_than_processors(void **state)
{
	struct cf_cpus cpus;

	(void)state;
	assert_int_equal(cf_cpus_of_process(&cpus), 0);
	configure(0);
	assert_int_equal(cf_plan_bound(turns), cf_cpus_count(&cpus) + 8);
}

static void without_a_bound_none_is_needed(void **state)
{
	(void)state;
	atomic_store(&cf_plan_bounds.turns, 0);
	assert_false(needs_one(&cf_path_staged));
}

static void fill(unsigned nr, size_t size)
{
	for (unsigned i = 0; i < nr; i++)
		assert_int_not_equal(take(size), 0);
}

static void who_comes_later_waits_in_the_order_of_coming(void **state)
{
	(void)state;
	fill(TURNS, SMALL);
	for (unsigned i = 0; i < NR_GUESTS; i++) {
		let_come(&guests[i], SMALL);
		wait_asleep(i + 1);
	}
	atomic_store(&nr_in, 0);
	for (unsigned i = 0; i < NR_GUESTS; i++) {
		assert_int_equal(atomic_load(&nr_in), i);
		cf_turns_end(4);
		wait_in(&guests[i]);
		assert_int_equal(guests[i].place, i);
		wait_asleep(NR_GUESTS - 1 - i);
	}
	for (unsigned i = 0; i < TURNS; i++)
		cf_turns_end(4);
	/* and all of the room is there again */
	fill(TURNS, SMALL);
	let_come(&guests[0], SMALL);
	wait_asleep(1);
	cf_turns_end(4);
	wait_in(&guests[0]);
}

static void what_each_takes_is_by_its_size(void **state)
{
	(void)state;
	assert_int_equal(take(MIDDLE - 1), 4);
	assert_int_equal(take(MIDDLE), 3);
	assert_int_equal(take(LARGE / 2), 3);
	assert_int_equal(take(LARGE / 2 + 1), 4);
	assert_int_equal(take(LARGE), 4);
	assert_int_equal(take(LARGE + 1), 6);
}

static void large_ones_wait_for_more(void **state)
{
	(void)state;
	fill(4, LARGE + 1);
	let_come(&guests[0], LARGE + 1);
	wait_asleep(1);
	let_come(&guests[1], MIDDLE);
	wait_asleep(2);
	/* two thirds of one: the first is in, the second not yet */
	cf_turns_end(4);
	wait_in(&guests[0]);
	assert_int_equal(guests[0].turn, 6);
	wait_asleep(1);
	cf_turns_end(6);
	wait_in(&guests[1]);
	assert_int_equal(guests[1].turn, 3);
}

/* It may be what the others wait for, of which some end. */
static void who_has_waited_long_goes_anyway(void **state)
{
	(void)state;
	fill(TURNS, SMALL);
	let_come(&guests[0], SMALL);
	wait_asleep(1);
	atomic_store(&time_is_up, true);
	one_ends = 3;
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(take(SMALL), 4);
	assert_int_equal(until.tv_sec, 8);
	assert_int_equal(until.tv_nsec, NOW_NS + PATIENCE_NS - 1000000000);
	/* what has ended let in who came first */
	wait_in(&guests[0]);
	/* they count: as much must be back before the next may come */
	atomic_store(&time_is_up, false);
	let_come(&guests[1], SMALL);
	wait_asleep(1);
	cf_turns_end(4);
	th_sleep_ms(20);
	assert_false(atomic_load(&guests[1].is_in));
	cf_turns_end(4);
	wait_in(&guests[1]);
}

static void let_time_be_up(void)
{
	atomic_store(&time_is_up, true);
	assert_int_not_equal(take(SMALL), 0);
	atomic_store(&time_is_up, false);
}

static void end_all(unsigned *turns, unsigned nr)
{
	for (unsigned i = 0; i < nr; i++)
		cf_turns_end(turns[i]);
}

/* Such as of a file system that hangs: one wait in vain is enough. */
static void reads_that_are_still_count_no_more(void **state)
{
	unsigned still[TURNS], turns[TURNS];

	(void)state;
	for (unsigned i = 0; i < TURNS; i++)
		still[i] = take(SMALL);
	let_time_be_up();
	/* nobody waits: there is all of the room */
	for (unsigned i = 0; i < TURNS; i++)
		turns[i] = take(SMALL);
	/* and no more than that, also when the others get on */
	end_all(still, TURNS);
	let_come(&guests[0], SMALL);
	wait_asleep(1);
	end_all(turns, 1);
	wait_in(&guests[0]);
	cf_turns_end(guests[0].turn);
	end_all(turns + 1, TURNS - 1);
	for (unsigned i = 0; i < TURNS; i++)
		turns[i] = take(SMALL);
	let_come(&guests[0], SMALL);
	wait_asleep(1);
	end_all(turns, 1);
	wait_in(&guests[0]);
}

static void who_waits_for_reads_that_are_still_goes_too(void **state)
{
	(void)state;
	fill(TURNS, SMALL);
	for (unsigned i = 0; i < NR_GUESTS; i++) {
		let_come(&guests[i], SMALL);
		wait_asleep(i + 1);
	}
	let_time_be_up();
	for (unsigned i = 0; i < NR_GUESTS; i++)
		wait_in(&guests[i]);
	assert_int_equal(atomic_load(&nr_asleep), 0);
}

static void a_child_has_all_of_the_room(void **state)
{
	(void)state;
	fill(TURNS, SMALL);
	cf_requests_fork_child();
	fill(TURNS, SMALL);
	let_come(&guests[0], SMALL);
	wait_asleep(1);
	cf_turns_end(4);
	wait_in(&guests[0]);
}

/* Never more than there is room for, and everybody comes in; numbers of tickets
 * wrap around meanwhile. */
static atomic_int out, most_out;

static void *read_often(void *arg)
{
	const size_t *size = arg;

	for (unsigned i = 0; i < 2000; i++) {
		unsigned turn = take(*size);
		int now = atomic_fetch_add(&out, (int)turn) + (int)turn;
		int most = atomic_load(&most_out);

		while (now > most &&
		       !atomic_compare_exchange_weak(&most_out, &most, now))
			;
		if (!(i % 64))
			sched_yield();
		atomic_fetch_sub(&out, (int)turn);
		cf_turns_end(turn);
	}
	return NULL;
}

static void a_crowd_keeps_to_the_room(void **state)
{
	static const size_t sizes[] = { SMALL, MIDDLE, LARGE };
	pthread_t threads[24];

	(void)state;
	atomic_store(&most_out, 0);
	for (unsigned i = 0; i < 24; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, read_often,
						(void *)&sizes[i % 3]),
				 0);
	for (unsigned i = 0; i < 24; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(atomic_load(&out), 0);
	/* the last one in may take more than was left */
	assert_true(atomic_load(&most_out) <= (int)ROOM + 5);
	assert_int_equal(atomic_load(&nr_asleep), 0);
	fill(TURNS, SMALL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(only_cached_reads_of_some_size_need_one,
				       begin),
		cmocka_unit_test_setup(what_the_disk_brings_needs_none, begin),
		cmocka_unit_test_setup(there_are_some_more_than_processors,
				       begin),
		cmocka_unit_test_setup(without_a_bound_none_is_needed, begin),
		cmocka_unit_test_setup(
			who_comes_later_waits_in_the_order_of_coming, begin),
		cmocka_unit_test_setup(what_each_takes_is_by_its_size, begin),
		cmocka_unit_test_setup(large_ones_wait_for_more, begin),
		cmocka_unit_test_setup(who_has_waited_long_goes_anyway, begin),
		cmocka_unit_test_setup(reads_that_are_still_count_no_more,
				       begin),
		cmocka_unit_test_setup(
			who_waits_for_reads_that_are_still_goes_too, begin),
		cmocka_unit_test_setup(a_child_has_all_of_the_room, begin),
		cmocka_unit_test_setup(a_crowd_keeps_to_the_room, begin),
	};

	th_start(100);
	os = cf_os_real;
	os.clock_gettime = clock_of_the_test;
	cf_os = &os;
	return th_finish(
		cmocka_run_group_tests_name("turns", tests, NULL, NULL));
}

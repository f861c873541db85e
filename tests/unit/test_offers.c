// SPDX-License-Identifier: Apache-2.0
/*
 * test_offers - who may join work, for how long, and who is the last; and a
 * storm of threads that come, go and make offers.
 */
#include "engine/offers.h"
#include "harness.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

static struct cf_offers offers;
static int works[CF_MAX_OFFERS]; /* told apart by their addresses */

static int afresh(void **state)
{
	(void)state;
	cf_offers_forget(&offers);
	return 0;
}

static struct cf_offer *open_offer(int *work, unsigned wanted)
{
	struct cf_offer *offer = cf_offer_take(&offers);

	assert_non_null(offer);
	cf_offer_open(offer, work, wanted);
	return offer;
}

static void take_all(void)
{
	for (int i = 0; i < CF_MAX_OFFERS; i++)
		assert_non_null(cf_offer_take(&offers));
	assert_null(cf_offer_take(&offers));
}

static void join_is(unsigned *turn, int *work)
{
	struct cf_offer *offer = cf_offers_join(&offers, turn);

	assert_non_null(offer);
	assert_ptr_equal(offer->work, work);
}

static void nobody_joins(void)
{
	for (unsigned turn = 0; turn < CF_MAX_OFFERS; turn++) {
		unsigned mine = turn;

		assert_null(cf_offers_join(&offers, &mine));
	}
}

/* ------------------------------------------------------------- any work */

static void none_is_joined_that_was_not_opened(void **state)
{
	struct cf_offer *offer;
	unsigned turn = 0;

	nobody_joins();
	offer = cf_offer_take(&offers);
	nobody_joins();
	assert_int_equal(cf_offers_wanted(&offers), 0);
	cf_offer_open(offer, &works[0], 1);
	join_is(&turn, &works[0]);
	nobody_joins();
}

static void a_worker_takes_turns(void **state)
{
	unsigned turn = 0, other = 0;

	for (int i = 0; i < 3; i++)
		open_offer(&works[i], 3);
	for (int i = 0; i < 6; i++)
		join_is(&turn, &works[i % 3]);
	/* each worker has its own */
	for (int i = 0; i < 3; i++)
		join_is(&other, &works[i]);
	nobody_joins();
}

static void as_many_join_as_are_wanted(void **state)
{
	struct cf_offer *few = open_offer(&works[0], 1);
	struct cf_offer *many = open_offer(&works[1], 3);
	unsigned turn = 0;

	assert_int_equal(cf_offers_wanted(&offers), 4);
	join_is(&turn, &works[0]);
	assert_int_equal(cf_offer_wanted(few), 0);
	for (unsigned left = 3; left--;) {
		join_is(&turn, &works[1]);
		assert_int_equal(cf_offer_wanted(many), left);
		assert_int_equal(cf_offers_wanted(&offers), left);
	}
	nobody_joins();
	assert_int_equal(cf_offer_wanted(NULL), 0);
}

/* The counts share a word: neither runs into the other. */
static void more_may_be_wanted_than_ever_come(void **state)
{
	struct cf_offer *offer = open_offer(&works[0], 5000);
	unsigned turn = 0, nr = 0;

	assert_true(cf_offer_wanted(offer) > 1024);
	while (cf_offers_join(&offers, &turn))
		nr++;
	assert_true(nr > 1024);
	assert_int_equal(cf_offer_helpers(offer), nr);
	/* nor into what else the word says */
	while (nr--)
		assert_false(cf_offer_leave(offer));
	assert_int_equal(cf_offer_helpers(offer), 0);
	cf_offer_end(offer);
	take_all();
}

static void there_are_so_many_and_no_more(void **state)
{
	struct cf_offer *some = NULL;
	unsigned turn = 0;

	for (int i = 0; i < CF_MAX_OFFERS; i++) {
		struct cf_offer *offer = open_offer(&works[i], 1);

		if (i == 40)
			some = offer;
	}
	assert_null(cf_offer_take(&offers));
	for (int i = 0; i < CF_MAX_OFFERS; i++)
		join_is(&turn, &works[i]);
	/* who is in has the offer still */
	assert_null(cf_offer_take(&offers));
	cf_offer_leave(some);
	cf_offer_end(some);
	assert_ptr_equal(open_offer(&works[1], 1), some);
	join_is(&turn, &works[1]);
	assert_null(cf_offer_take(&offers));
}

static void what_is_forgotten_is_not_there(void **state)
{
	unsigned turn = 0;

	for (int i = 0; i < CF_MAX_OFFERS; i++)
		open_offer(&works[i], 2);
	for (int i = 0; i < 10; i++)
		join_is(&turn, &works[i]);
	cf_offers_forget(&offers);
	nobody_joins();
	assert_int_equal(cf_offers_wanted(&offers), 0);
	take_all();
}

/* -------------------------------------------------------- with a caller */

static struct cf_offer *open_and_join(unsigned wanted, unsigned joined)
{
	struct cf_offer *offer = open_offer(&works[0], wanted);
	unsigned turn = 0;

	while (joined--)
		join_is(&turn, &works[0]);
	return offer;
}

static void none_joins_what_was_withdrawn(void **state)
{
	struct cf_offer *offer = open_and_join(5, 2);

	cf_offer_withdraw(offer);
	nobody_joins();
	assert_int_equal(cf_offer_wanted(offer), 0);
	/* who is in stays */
	assert_int_equal(cf_offer_helpers(offer), 2);
	cf_offer_leave(offer);
	assert_int_equal(cf_offer_helpers(offer), 1);
}

static void only_the_last_wakes_a_caller_that_sleeps(void **state)
{
	struct cf_offer *offer = open_and_join(3, 3);

	cf_offer_withdraw(offer);
	assert_false(cf_offer_leave(offer));
	cf_offer_sleep(offer);
	assert_false(cf_offer_leave(offer));
	assert_int_equal(cf_offer_helpers(offer), 1);
	assert_true(cf_offer_leave(offer));
	assert_int_equal(cf_offer_helpers(offer), 0);
}

static void a_caller_that_looks_is_not_woken(void **state)
{
	struct cf_offer *offer = open_and_join(2, 2);

	cf_offer_withdraw(offer);
	assert_false(cf_offer_leave(offer));
	assert_false(cf_offer_leave(offer));
	/* nor is the one that has the offer after one that slept */
	cf_offer_sleep(offer);
	cf_offer_end(offer);
	assert_ptr_equal(open_and_join(1, 1), offer);
	assert_false(cf_offer_leave(offer));
}

/* ---------------------------------------------------- without a caller */

static void a_load_is_over_when_nobody_need_come(void **state)
{
	struct cf_offer *offer = open_and_join(5, 1);

	assert_true(cf_offer_leave_load(offer, CF_LEFT_NONE));
	nobody_joins();
}

static void a_load_is_not_over_before_its_last_worker(void **state)
{
	static const enum cf_left others[] = { CF_LEFT_NONE, CF_LEFT_MORE,
					       CF_LEFT_FULL };

	for (int i = 0; i < 3; i++) {
		struct cf_offer *offer = open_and_join(6, 3);

		assert_false(cf_offer_leave_load(offer, CF_LEFT_NONE));
		nobody_joins();
		/* who had not seen that it is over does not open it again */
		assert_false(cf_offer_leave_load(offer, others[i]));
		nobody_joins();
		assert_true(cf_offer_leave_load(offer, others[i]));
		nobody_joins();
		cf_offer_end(offer);
	}
}

static void who_leaves_more_leaves_its_place(void **state)
{
	struct cf_offer *offer = open_and_join(2, 2);
	unsigned turn = 0;

	nobody_joins();
	assert_false(cf_offer_leave_load(offer, CF_LEFT_MORE));
	assert_int_equal(cf_offer_wanted(offer), 1);
	/* also as the last one */
	assert_false(cf_offer_leave_load(offer, CF_LEFT_MORE));
	assert_int_equal(cf_offer_wanted(offer), 2);
	join_is(&turn, &works[0]);
	join_is(&turn, &works[0]);
	nobody_joins();
}

static void who_finds_it_full_takes_its_place_along(void **state)
{
	struct cf_offer *offer = open_and_join(3, 2);
	unsigned turn = 0;

	assert_false(cf_offer_leave_load(offer, CF_LEFT_FULL));
	assert_int_equal(cf_offer_wanted(offer), 1);
	join_is(&turn, &works[0]);
	assert_false(cf_offer_leave_load(offer, CF_LEFT_FULL));
	nobody_joins();
	/* the one whose work filled it comes and goes as before */
	assert_false(cf_offer_leave_load(offer, CF_LEFT_MORE));
	join_is(&turn, &works[0]);
	nobody_joins();
	assert_true(cf_offer_leave_load(offer, CF_LEFT_NONE));
}

/* -------------------------------------------------------------- a storm */

#define NR_CALLERS 3
#define NR_POSTERS 2
#define NR_JOINERS 5
#define NR_THREADS (NR_CALLERS + NR_POSTERS + NR_JOINERS)
#define ROUNDS 5000

static struct storm {
	struct cf_offers jobs, loads;
	pthread_mutex_t lock;
	pthread_cond_t done; /* a job's last helper came back */
	atomic_uint making;  /* callers and posters that are not through */
	atomic_uint loads_posted, loads_over, helped, refused;
	struct th_bad bad;
} storm;

static bool one_in(unsigned in_so_many)
{
	return th_random() % in_so_many == 0;
}

/* On its caller's stack, and gone with it. */
struct job {
	unsigned wanted;
	atomic_uint joined, inside;
	atomic_bool gone;
};

static void wait_for_helpers(struct cf_offer *offer)
{
	if (one_in(2)) { /* by looking */
		while (cf_offer_helpers(offer))
			sched_yield();
		return;
	}
	pthread_mutex_lock(&storm.lock);
	cf_offer_sleep(offer);
	while (cf_offer_helpers(offer))
		pthread_cond_wait(&storm.done, &storm.lock);
	pthread_mutex_unlock(&storm.lock);
}

static void call_for_help(void)
{
	struct job job = { .wanted = 1 + (unsigned)(th_random() % 4) };
	struct cf_offer *offer = cf_offer_take(&storm.jobs);
	bool waits = one_in(2);

	if (!offer) {
		th_bad_note(&storm.bad, "%d callers have all offers",
			    NR_CALLERS);
		return;
	}
	cf_offer_open(offer, &job, job.wanted);
	/* or all might come too late */
	while (waits && !atomic_load(&job.joined))
		sched_yield();
	cf_offer_withdraw(offer);
	wait_for_helpers(offer);
	cf_offer_end(offer);
	atomic_store(&job.gone, true);
	if (atomic_load(&job.inside))
		th_bad_note(&storm.bad, "a job was left early");
	if (atomic_load(&job.joined) > job.wanted)
		th_bad_note(&storm.bad, "%u came to a job that wanted %u",
			    atomic_load(&job.joined), job.wanted);
}

static bool help_somebody(unsigned *turn)
{
	struct cf_offer *offer = cf_offers_join(&storm.jobs, turn);
	struct job *job;

	if (!offer)
		return false;
	job = offer->work;
	atomic_fetch_add(&job->inside, 1);
	atomic_fetch_add(&job->joined, 1);
	if (one_in(4))
		sched_yield();
	if (atomic_load(&job->gone))
		th_bad_note(&storm.bad, "a job went under its helper");
	atomic_fetch_sub(&job->inside, 1);
	atomic_fetch_add(&storm.helped, 1);
	if (cf_offer_leave(offer)) {
		pthread_mutex_lock(&storm.lock);
		pthread_cond_broadcast(&storm.done);
		pthread_mutex_unlock(&storm.lock);
	}
	return true;
}

/* Units of work, of which some are done at a time; freed by who ends it. */
struct load {
	pthread_mutex_t lock; /* units and busy */
	unsigned units, busy, places;
	unsigned wanted;
	atomic_uint inside;
};

static void post_load(void)
{
	struct cf_offer *offer = cf_offer_take(&storm.loads);
	struct load *load = calloc(1, sizeof(*load));

	if (!offer)
		atomic_fetch_add(&storm.refused, 1);
	while (!offer) {
		sched_yield();
		offer = cf_offer_take(&storm.loads);
	}
	pthread_mutex_init(&load->lock, NULL);
	load->units = (unsigned)(th_random() % 8);
	load->places = 1 + (unsigned)(th_random() % 3);
	load->wanted = 1 + (unsigned)(th_random() % 6);
	atomic_fetch_add(&storm.loads_posted, 1);
	cf_offer_open(offer, load, load->wanted);
}

/* False: all are done or taken, or there is no place; *left says which. */
static bool take_unit(struct load *load, enum cf_left *left)
{
	bool took;

	pthread_mutex_lock(&load->lock);
	took = load->units && load->busy < load->places;
	*left = load->units ? CF_LEFT_FULL : CF_LEFT_NONE;
	if (took) {
		load->units--;
		load->busy++;
	}
	pthread_mutex_unlock(&load->lock);
	return took;
}

static void unit_done(struct load *load)
{
	pthread_mutex_lock(&load->lock);
	load->busy--;
	pthread_mutex_unlock(&load->lock);
}

static enum cf_left carry(struct load *load)
{
	enum cf_left left;

	while (take_unit(load, &left)) {
		if (one_in(4))
			sched_yield();
		unit_done(load);
		if (one_in(3))
			return CF_LEFT_MORE;
	}
	return left;
}

static void end_load(struct load *load)
{
	if (atomic_load(&load->inside))
		th_bad_note(&storm.bad, "a load was over early");
	if (load->units || load->busy)
		th_bad_note(&storm.bad,
			    "a load was over with %u units, %u "
			    "busy",
			    load->units, load->busy);
	pthread_mutex_destroy(&load->lock);
	memset(load, 0xee, sizeof(*load));
	free(load);
	atomic_fetch_add(&storm.loads_over, 1);
}

static bool carry_something(unsigned *turn)
{
	struct cf_offer *offer = cf_offers_join(&storm.loads, turn);
	struct load *load;
	enum cf_left left;

	if (!offer)
		return false;
	load = offer->work;
	if (atomic_fetch_add(&load->inside, 1) >= load->wanted)
		th_bad_note(&storm.bad, "more at a load than it wanted");
	left = carry(load);
	atomic_fetch_sub(&load->inside, 1);
	if (cf_offer_leave_load(offer, left)) {
		cf_offer_end(offer);
		end_load(load);
	}
	return true;
}

static bool is_through(void)
{
	return !atomic_load(&storm.making) &&
	       atomic_load(&storm.loads_over) ==
		       atomic_load(&storm.loads_posted);
}

static void join_until_all_is_over(void)
{
	unsigned job_turn = 0, load_turn = 0;

	while (!is_through()) {
		bool helped = help_somebody(&job_turn);

		if (!carry_something(&load_turn) && !helped)
			sched_yield();
	}
}

static void *take_part(void *arg)
{
	unsigned i = *(unsigned *)arg;

	if (i >= NR_CALLERS + NR_POSTERS) {
		join_until_all_is_over();
		return NULL;
	}
	for (int round = 0; round < TH_SCALE(ROUNDS); round++)
		if (i < NR_CALLERS)
			call_for_help();
		else
			post_load();
	atomic_fetch_sub(&storm.making, 1);
	return NULL;
}

/* Nobody is in, nobody is wanted, and no offer was lost. */
static void is_empty(struct cf_offers *all)
{
	unsigned turn = 0;

	assert_int_equal(cf_offers_wanted(all), 0);
	assert_null(cf_offers_join(all, &turn));
	for (int i = 0; i < CF_MAX_OFFERS; i++)
		assert_non_null(cf_offer_take(all));
}

static void a_storm_leaves_nobody_inside_and_nothing_undone(void **state)
{
	pthread_t threads[NR_THREADS];
	unsigned numbers[NR_THREADS];

	pthread_mutex_init(&storm.lock, NULL);
	pthread_cond_init(&storm.done, NULL);
	storm.making = NR_CALLERS + NR_POSTERS;
	for (unsigned i = 0; i < NR_THREADS; i++) {
		numbers[i] = i;
		assert_int_equal(pthread_create(&threads[i], NULL, take_part,
						&numbers[i]),
				 0);
	}
	for (unsigned i = 0; i < NR_THREADS; i++)
		pthread_join(threads[i], NULL);
	th_bad_check(&storm.bad);
	print_message("%u helped, %u loads, %u of them had to wait for an "
		      "offer\n",
		      storm.helped, storm.loads_over, storm.refused);
	assert_true(storm.helped > 0);
	assert_int_equal(storm.loads_over, NR_POSTERS * TH_SCALE(ROUNDS));
	is_empty(&storm.jobs);
	is_empty(&storm.loads);
}

#define RULE(function) cmocka_unit_test_setup(function, afresh)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RULE(none_is_joined_that_was_not_opened),
		RULE(a_worker_takes_turns),
		RULE(as_many_join_as_are_wanted),
		RULE(more_may_be_wanted_than_ever_come),
		RULE(there_are_so_many_and_no_more),
		RULE(what_is_forgotten_is_not_there),
		RULE(none_joins_what_was_withdrawn),
		RULE(only_the_last_wakes_a_caller_that_sleeps),
		RULE(a_caller_that_looks_is_not_woken),
		RULE(a_load_is_over_when_nobody_need_come),
		RULE(a_load_is_not_over_before_its_last_worker),
		RULE(who_leaves_more_leaves_its_place),
		RULE(who_finds_it_full_takes_its_place_along),
		cmocka_unit_test(
			a_storm_leaves_nobody_inside_and_nothing_undone),
	};

	th_start(100);
	return th_finish(cmocka_run_group_tests(tests, NULL, NULL));
}

// SPDX-License-Identifier: Apache-2.0
/* The list of registered streams: who is found, and who waits for whom. */
#include <cufile.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>
#include "engine/depth.h"
#include "engine/dock.h"
#include "engine/sops.h"
#include "engine/stream_ref.h"
#include "harness.h"
#include "seam/cuda.h"

/* Never given to the driver. */
#define STREAM ((CUstream)0x7000)
#define CTX ((CUcontext)0x100)

static const struct cf_place known = { .stream = STREAM, .ctx = CTX, .id = 7 };

static int begin(void **state)
{
	(void)state;
	cf_cuda_open();
	cf_sops_open();
	return 0;
}

static int end(void **state)
{
	(void)state;
	cf_sops_shut();
	cf_stream_refs_close();
	return 0;
}

static bool is_listed(const struct cf_place *at)
{
	struct cf_stream_ref *ref = cf_stream_ref_get(at);

	if (ref)
		cf_stream_ref_put(ref);
	return ref;
}

static void a_stream_is_found_by_its_id_or_where_that_is_not_known(void **state)
{
	struct cf_place at = known;

	(void)state;
	assert_false(cf_stream_refs_any());
	assert_int_equal(cf_stream_ref_list(&known, 5), 0);
	assert_true(cf_stream_refs_any());
	assert_int_equal(cf_stream_ref_list(&known, 0), -CU_FILE_INVALID_VALUE);
	at.id = 0;
	assert_true(is_listed(&at));
	at.id = 8;
	assert_false(is_listed(&at));
	at = known;
	at.ctx = (CUcontext)0x200;
	assert_false(is_listed(&at));
	/* another handle, in the same bucket */
	at = (struct cf_place){ .stream = (CUstream)0x7001, .ctx = CTX };
	assert_false(is_listed(&at));
}

static CUresult is_in_ctx(CUstream stream, CUcontext *ctx)
{
	(void)stream;
	*ctx = CTX;
	return CF_CU_SUCCESS;
}

static CUresult is_gone(CUcontext ctx, unsigned long long *id)
{
	(void)ctx, (void)id;
	return CF_CU_CONTEXT_IS_DESTROYED;
}

/* Between the two questions. */
static void a_stream_whose_context_has_gone_is_nowhere(void **state)
{
	const struct cf_cuda cuda = { .stream_get_ctx = is_in_ctx,
				      .ctx_get_id = is_gone };
	struct cf_place at;

	(void)state;
	assert_int_equal(cf_place_find(&cuda, STREAM, NULL, &at),
			 CF_ECUDA(CF_CU_CONTEXT_IS_DESTROYED));
}

static CUresult say_no(CUstream stream, unsigned long long *id)
{
	(void)stream;
	*id = 7;
	return CF_CU_INVALID_HANDLE;
}

static void without_an_answer_a_stream_has_no_id(void **state)
{
	const struct cf_cuda none = { 0 }, no = { .stream_get_id = say_no };
	const struct cf_cuda *const cudas[] = { NULL, &none, &no };

	(void)state;
	for (size_t i = 0; i < sizeof(cudas) / sizeof(cudas[0]); i++) {
		struct cf_place at = { .stream = STREAM };

		cf_place_ask_id(cudas[i], &at);
		assert_int_equal(at.id, 0);
	}
}

static void a_handle_given_away_anew_takes_the_place_of_the_old(void **state)
{
	struct cf_stream_ref *old;
	struct cf_place at = known;

	(void)state;
	assert_int_equal(cf_stream_ref_list(&known, 5), 0);
	old = cf_stream_ref_get(&known);
	at.id = 8;
	assert_int_equal(cf_stream_ref_list(&at, 0), 0);
	assert_false(is_listed(&known));
	assert_true(is_listed(&at));
	/* who holds the old one may still look at it */
	assert_int_equal(cf_stream_ref_flags(old), 5);
	cf_stream_ref_put(old);
}

static void is_one_for_each_context(CUstream stream, CUstream other)
{
	struct cf_place at = { .stream = stream, .ctx = CTX };
	struct cf_stream_ref *ref;

	assert_int_equal(cf_stream_ref_list(&at, 0), 0);
	at.ctx = (CUcontext)0x200;
	assert_null(cf_stream_ref_unlist(&at));
	assert_int_equal(cf_stream_ref_list(&at, 0), 0);
	at.stream = other;
	assert_null(cf_stream_ref_unlist(&at));
	at.stream = stream;
	ref = cf_stream_ref_unlist(&at);
	assert_non_null(ref);
	cf_stream_ref_wait(ref);
	assert_false(is_listed(&at));
	at.ctx = CTX;
	assert_true(is_listed(&at));
	/* one that is behind another */
	at.ctx = (CUcontext)0x200;
	assert_int_equal(cf_stream_ref_list(&at, 0), 0);
	at.ctx = CTX;
	ref = cf_stream_ref_unlist(&at);
	assert_non_null(ref);
	cf_stream_ref_wait(ref);
	assert_false(is_listed(&at));
	at.ctx = (CUcontext)0x200;
	assert_true(is_listed(&at));
}

static void a_default_stream_is_one_for_each_context(void **state)
{
	(void)state;
	is_one_for_each_context(CF_CU_STREAM_LEGACY, CF_CU_STREAM_PER_THREAD);
	cf_stream_refs_close();
	is_one_for_each_context(CF_CU_STREAM_PER_THREAD, CF_CU_STREAM_LEGACY);
}

static void a_close_forgets_all_streams(void **state)
{
	struct cf_place at = known;

	(void)state;
	for (uintptr_t i = 0; i < 64; i++) { /* some in each bucket */
		at.stream = (CUstream)((uintptr_t)STREAM + (i << 4));
		assert_int_equal(cf_stream_ref_list(&at, 0), 0);
	}
	cf_stream_refs_close();
	assert_false(cf_stream_refs_any());
}

struct pair {
	struct cf_stream_ref *submitter, *forgetter;
	atomic_bool given_back;
};

static void submit_or_forget(void *arg, unsigned i)
{
	struct pair *pair = arg;

	if (i) {
		cf_stream_ref_wait(pair->forgetter);
		assert_true(atomic_load(&pair->given_back));
		return;
	}
	th_sleep_ms(70); /* in the driver, as it were */
	atomic_store(&pair->given_back, true);
	cf_stream_ref_put(pair->submitter);
}

/* It has no operation yet whose context could be looked after. */
static void a_deregistration_waits_for_a_submission_that_is_slow(void **state)
{
	struct pair pair = { .given_back = false };

	(void)state;
	assert_int_equal(cf_stream_ref_list(&known, 0), 0);
	pair.submitter = cf_stream_ref_get(&known);
	pair.forgetter = cf_stream_ref_unlist(&known);
	assert_ptr_equal(pair.submitter, pair.forgetter);
	th_threads(2, submit_or_forget, &pair);
	assert_false(cf_stream_refs_any());
}

static atomic_bool is_patient;
static _Atomic unsigned waits; /* that have begun */

/* Seen from outside, or the linker of a sanitizer does not find them. */
#pragma GCC visibility push(default)
void __wrap_cf_dock_await_bytes(struct cf_dock *dock);
int __real_pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *lock,
				  clockid_t clock,
				  const struct timespec *until);
int __wrap_pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *lock,
				  clockid_t clock,
				  const struct timespec *until);
#pragma GCC visibility pop

/* Patient: it comes back only if it is told. */
int __wrap_pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *lock,
				  clockid_t clock, const struct timespec *until)
{
	if (!atomic_load(&is_patient))
		return __real_pthread_cond_clockwait(cond, lock, clock, until);
	atomic_fetch_add(&waits, 1);
	return pthread_cond_wait(cond, lock);
}

static void leave_or_forget(void *arg, unsigned i)
{
	if (i) {
		cf_stream_ref_wait(arg);
		return;
	}
	while (!atomic_load(&waits))
		sched_yield();
	/* free only when the other thread sleeps */
	cf_sops_lock();
	cf_stream_ref_leave(arg);
	cf_sops_unlock();
}

/* As an operation does that goes home without a run. */
static void who_leaves_tells_who_waits_for_it(void **state)
{
	struct cf_stream_ref *ref;

	(void)state;
	assert_int_equal(cf_stream_ref_list(&known, 0), 0);
	ref = cf_stream_ref_get(&known);
	assert_ptr_equal(cf_stream_ref_unlist(&known), ref);
	atomic_store(&waits, 0);
	atomic_store(&is_patient, true);
	th_threads(2, leave_or_forget, ref);
	atomic_store(&is_patient, false);
}

struct crowd {
	struct cf_stream_ref *refs[3];
	_Atomic unsigned nr_over;
};

static void leave_last_or_forget(void *arg, unsigned i)
{
	struct crowd *crowd = arg;

	if (i) {
		while (atomic_load(&waits) < i - 1)
			sched_yield();
		cf_stream_ref_wait(crowd->refs[i - 1]);
		atomic_fetch_add(&crowd->nr_over, 1);
		return;
	}
	while (atomic_load(&waits) < 3)
		sched_yield();
	for (unsigned nr = 0; nr < 3; nr++) {
		cf_stream_ref_put(crowd->refs[2 - nr]);
		while (atomic_load(&crowd->nr_over) <= nr)
			sched_yield();
	}
}

/* Those who began to wait sooner sleep on. */
static void of_many_who_wait_the_right_one_is_told(void **state)
{
	struct crowd crowd = { .nr_over = 0 };
	struct cf_place at = known;

	(void)state;
	for (uintptr_t i = 0; i < 3; i++) {
		at.stream = (CUstream)((uintptr_t)STREAM + (i << 4));
		assert_int_equal(cf_stream_ref_list(&at, 0), 0);
		crowd.refs[i] = cf_stream_ref_get(&at);
		assert_ptr_equal(cf_stream_ref_unlist(&at), crowd.refs[i]);
	}
	atomic_store(&waits, 0);
	atomic_store(&is_patient, true);
	th_threads(4, leave_last_or_forget, &crowd);
	atomic_store(&is_patient, false);
}

/* The last whose bytes were awaited. */
static const struct cf_dock *awaited;

void __wrap_cf_dock_await_bytes(struct cf_dock *dock)
{
	awaited = dock;
}

/* An operation comes and goes, and then the stream is forgotten. */
static void use_and_forget(struct cf_dock *dock)
{
	struct cf_stream_ref *ref;

	assert_int_equal(cf_stream_ref_list(&known, 0), 0);
	ref = cf_stream_ref_unlist(&known);
	cf_stream_ref_join(ref, dock);
	cf_stream_ref_put(ref);
	cf_stream_ref_wait(ref);
}

static void a_deregistration_awaits_the_bytes_of_what_is_over(void **state)
{
	char dock[2];

	(void)state;
	awaited = NULL;
	use_and_forget((struct cf_dock *)&dock[0]);
	assert_ptr_equal(awaited, &dock[0]);
	/* the close awaits them itself */
	cf_sops_shut();
	use_and_forget((struct cf_dock *)&dock[1]);
	assert_ptr_equal(awaited, &dock[0]);
}

struct inside {
	struct cf_stream_ref *ref;
	atomic_bool is_out;
	bool awaited;
};

static void wait_inside_or_shut(void *arg, unsigned i)
{
	struct inside *in = arg;

	if (i) {
		cf_stream_ref_wait(in->ref);
		th_sleep_ms(50); /* on its way out */
		atomic_store(&in->is_out, true);
		cf_sops_leave();
		return;
	}
	while (!atomic_load(&waits))
		sched_yield();
	cf_sops_shut();
	in->awaited = atomic_load(&in->is_out);
}

/* The submitter that is waited for never comes out of the driver. */
static void a_close_lets_go_who_waits_and_awaits_who_is_inside(void **state)
{
	struct inside in = { .is_out = false };
	struct cf_stream_ref *submitter;

	(void)state;
	assert_int_equal(cf_stream_ref_list(&known, 0), 0);
	submitter = cf_stream_ref_get(&known);
	in.ref = cf_stream_ref_unlist(&known);
	assert_int_equal(cf_sops_enter(), 0);
	atomic_store(&waits, 0);
	atomic_store(&is_patient, true);
	th_threads(2, wait_inside_or_shut, &in);
	atomic_store(&is_patient, false);
	assert_true(in.awaited);
	assert_int_equal(cf_sops_enter(), -CU_FILE_DRIVER_NOT_INITIALIZED);
	cf_stream_ref_put(submitter);
}

static void end_or_drain(void *arg, unsigned i)
{
	struct inside *in = arg;

	if (i) {
		cf_sops_drain();
		in->awaited = atomic_load(&in->is_out);
		return;
	}
	th_sleep_ms(50); /* it is carried */
	atomic_store(&in->is_out, true);
	cf_sops_lock();
	cf_sops_end();
	cf_sops_unlock();
}

static void a_close_awaits_what_has_begun(void **state)
{
	struct inside in = { .is_out = false };

	(void)state;
	cf_sops_lock();
	cf_sops_begin();
	cf_sops_unlock();
	th_threads(2, end_or_drain, &in);
	assert_true(in.awaited);
	assert_int_equal(cf_sops_begun(), 0);
}

struct full {
	struct cf_depth *first;
	_Atomic int err; /* of who came when there was no room */
};

static void enter_or_make_room(void *arg, unsigned i)
{
	struct full *full = arg;
	struct cf_depth *second;

	if (i) {
		full->err = cf_depth_enter(&known, NULL, 1, &second);
		cf_depth_leave(second);
		return;
	}
	while (!atomic_load(&waits) && full->err == 1)
		sched_yield();
	cf_depth_leave(full->first);
}

static void after_the_next_open_a_full_stream_is_awaited_again(void **state)
{
	struct full full = { .err = 1 };

	(void)state;
	cf_sops_shut();
	cf_sops_open();
	assert_int_equal(cf_depth_enter(&known, NULL, 1, &full.first), 0);
	atomic_store(&waits, 0);
	atomic_store(&is_patient, true);
	th_threads(2, enter_or_make_room, &full);
	atomic_store(&is_patient, false);
	assert_int_equal(full.err, 0);
}

/* Of its parent's threads none is inside, and none comes to end a run. */
static void a_child_waits_for_no_thread_of_its_parent(void **state)
{
	(void)state;
	assert_int_equal(cf_sops_enter(), 0);
	cf_sops_lock();
	cf_sops_begin();
	cf_sops_unlock();
	cf_sops_fork_prepare();
	cf_sops_fork_child();
	cf_sops_shut();
	cf_sops_drain();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_stream_is_found_by_its_id_or_where_that_is_not_known),
		TEST(a_stream_whose_context_has_gone_is_nowhere),
		TEST(without_an_answer_a_stream_has_no_id),
		TEST(a_handle_given_away_anew_takes_the_place_of_the_old),
		TEST(a_default_stream_is_one_for_each_context),
		TEST(a_close_forgets_all_streams),
		TEST(a_deregistration_waits_for_a_submission_that_is_slow),
		TEST(who_leaves_tells_who_waits_for_it),
		TEST(of_many_who_wait_the_right_one_is_told),
		TEST(a_deregistration_awaits_the_bytes_of_what_is_over),
		TEST(a_close_lets_go_who_waits_and_awaits_who_is_inside),
		TEST(a_close_awaits_what_has_begun),
		TEST(after_the_next_open_a_full_stream_is_awaited_again),
		TEST(a_child_waits_for_no_thread_of_its_parent),
	};

	th_start(30);
	return cmocka_run_group_tests_name("stream_ref", tests, NULL, NULL);
}

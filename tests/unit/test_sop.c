// SPDX-License-Identifier: Apache-2.0
/*
 * sop - an operation that is given up after its bell was found, or has begun by
 * then, or whose bell rings at the close; and launches of a graph that come
 * while one is under way.
 */
#include "engine/sop_end.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>
#include "core/context.h"
#include "engine/dock_internal.h"
#include "engine/parcel.h"
#include "engine/sops.h"
#include "engine/uncalled.h"
#include "harness.h"

#define UNTOLD (-77)

/* ------------------------------------------------ instead of the real ones */

/* What the next run from malloc meets; no other allocation does. */
static void *(*next_run)(size_t size);

static atomic_bool waits; /* somebody sleeps for a change */

static atomic_bool no_thread;

/* Whether this thread has the lock of sops.h; and had it when a run ended. */
static _Thread_local bool has_lock;
static atomic_bool ended_locked;

static _Atomic unsigned nr_home, nr_ended;

static unsigned begun_at_end; /* runs under way when docks are closed */

#pragma GCC visibility push(default)
void __real_cf_sops_lock(void);
void __wrap_cf_sops_lock(void);
void __real_cf_sops_unlock(void);
void __wrap_cf_sops_unlock(void);
void __real_cf_docks_close(void);
void __wrap_cf_docks_close(void);
void __real_cf_dock_give_back(struct cf_sop *sop);
void __wrap_cf_dock_give_back(struct cf_sop *sop);
void __real_cf_ferry_end(struct cf_ferry *ferry);
void __wrap_cf_ferry_end(struct cf_ferry *ferry);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*run)(void *arg), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*run)(void *arg), void *arg);
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
int __real_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock);
#pragma GCC visibility pop

void __wrap_cf_sops_lock(void)
{
	__real_cf_sops_lock();
	has_lock = true;
}

void __wrap_cf_sops_unlock(void)
{
	has_lock = false;
	__real_cf_sops_unlock();
}

void __wrap_cf_docks_close(void)
{
	begun_at_end = cf_sops_begun();
	__real_cf_docks_close();
}

void __wrap_cf_dock_give_back(struct cf_sop *sop)
{
	atomic_fetch_add(&nr_home, 1);
	__real_cf_dock_give_back(sop);
}

void __wrap_cf_ferry_end(struct cf_ferry *ferry)
{
	atomic_store(&ended_locked, has_lock);
	atomic_fetch_add(&nr_ended, 1);
	__real_cf_ferry_end(ferry);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*run)(void *arg), void *arg)
{
	return atomic_load(&no_thread) ?
		       EAGAIN :
		       __real_pthread_create(thread, attr, run, arg);
}

int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock)
{
	atomic_store(&waits, true);
	return __real_pthread_cond_wait(cond, lock);
}

void *__wrap_malloc(size_t size)
{
	void *(*run)(size_t) = size == sizeof(struct cf_run) ? next_run : NULL;

	return run ? run(size) : __real_malloc(size);
}

/* ------------------------------------------------------------------ world */

static void rings_here(struct cf_sop *sop)
{
	cf_sop_rung(sop, false);
}

static void rings_elsewhere(struct cf_sop *sop)
{
	cf_sop_rung(sop, true);
}

static void reached(struct cf_sop *sop)
{
	cf_sop_reached(sop);
}

/* with_kernel: if there can be one. */
static struct cf_sop *lease(bool with_kernel)
{
	CUcontext ctx = th_primary();
	struct cf_sop *sop;

	assert_int_equal(cf_dock_lease(ctx,
				       cf_context_id(cf_cuda_loaded(), ctx),
				       with_kernel, &sop),
			 0);
	return sop;
}

static void fill(struct cf_sop *sop, bool belled, ssize_t *n)
{
	sop->state = CF_SOP_QUEUED;
	sop->held = true;
	sop->belled = belled;
	sop->ferried = sop->captured = sop->busy = false;
	sop->ref = NULL;
	sop->depth = NULL;
	sop->parcel = NULL;
	sop->errand = (struct cf_errand){ .call.op = CF_READ, .bytes_p = n };
	atomic_store(&sop->ferry.lost, false);
	atomic_store(&sop->words->gate, belled ? UINT32_MAX : 0);
}

/* One that is in a stream, and whose bell somebody has. */
static struct cf_sop *submitted(bool belled, ssize_t *n)
{
	struct cf_sop *sop = lease(false);

	fill(sop, belled, n);
	return sop;
}

static void await_runs(void)
{
	while (cf_sops_begun())
		usleep(100);
	/* and sees what they wrote */
	cf_sops_lock();
	cf_sops_unlock();
}

/* ------------------------------------------------------------------ tests */

/* Nothing is done, nothing told, and it is home. */
static void one_that_is_given_up_before_it_begins_never_does(void **state)
{
	static void (*const comes[])(struct cf_sop * sop) = {
		rings_here, rings_elsewhere, cf_sop_lost, cf_sop_shut, reached
	};

	th_need_gpu();
	th_open();
	for (size_t i = 0; i < sizeof(comes) / sizeof(comes[0]); i++) {
		ssize_t n = UNTOLD;
		struct cf_sop *sop = submitted(comes[i] != reached, &n);

		assert_int_equal(cf_sop_stop_or_wait(sop, CF_CU_UNKNOWN),
				 CF_ECUDA(CF_CU_UNKNOWN));
		/* the stream waits for nobody */
		assert_int_equal(atomic_load(&sop->words->gate), 0);
		assert_int_not_equal(atomic_load(&sop->words->passed),
				     sop->ticket);
		comes[i](sop);
		assert_int_equal(atomic_load(&sop->words->passed), sop->ticket);
		assert_int_equal(n, UNTOLD);
		assert_int_equal(cf_sops_begun(), 0);
	}
	th_close();
	/* all of them were home, or the close had left them */
	if (th_fake())
		assert_int_equal(th_fake()->live("host_register"), 0);
}

static void one_that_rings_while_the_driver_closes_is_refused(void **state)
{
	ssize_t n = UNTOLD;
	struct cf_sop *sop;

	(void)state;
	th_need_gpu();
	th_open();
	sop = submitted(true, &n);
	atomic_store(&sop->words->passed, sop->ticket - 1);
	cf_sops_shut();
	cf_sop_rung(sop, false);
	assert_int_equal(n, -CU_FILE_DRIVER_CLOSING);
	assert_int_equal(atomic_load(&sop->words->gate), 0);
	cf_sop_let_go(sop);
	/* its stream says itself that it is past the gate */
	assert_int_equal(atomic_load(&sop->words->passed), sop->ticket - 1);
	atomic_store(&sop->words->passed, sop->ticket);
	th_close();
}

/* Who waits for its events hears of each entry. */
static void a_batch_that_rings_while_the_driver_closes_has_its_events(
	void **state)
{
	struct th_file file;
	CUfileIOParams_t params[2];
	CUfileIOEvents_t events[2];
	struct cf_queue queue;
	unsigned nr = 2;
	char mem[8];
	struct cf_sop *sop;
	ssize_t n;

	(void)state;
	th_need_gpu();
	th_open();
	th_file_make(&file, TH_TMPFS, O_RDWR, NULL, sizeof(mem));
	cf_queue_init(&queue);
	assert_int_equal(cf_events_open(&queue.events, nr), 0);
	params[0] = (CUfileIOParams_t){ .mode = CUFILE_BATCH,
					.fh = th_handle(file.fd),
					.opcode = CUFILE_READ,
					.cookie = &params[0] };
	params[0].u.batch.devPtr_base = mem;
	params[0].u.batch.size = sizeof(mem);
	params[1] = params[0];
	params[1].cookie = &params[1];
	sop = submitted(true, &n);
	assert_int_equal(cf_parcel_new(&queue, nr, params, &sop->parcel), 0);
	cf_sops_shut();
	cf_sop_rung(sop, false);
	assert_int_equal(atomic_load(&queue.events.pending), 0);
	assert_int_equal(cf_events_take(&queue.events, nr, &nr, events, NULL),
			 0);
	assert_int_equal(nr, 2);
	for (unsigned i = 0; i < nr; i++) {
		assert_ptr_equal(events[i].cookie, &params[i]);
		assert_int_equal(events[i].status, CUFILE_FAILED);
		assert_int_equal((ssize_t)events[i].ret,
				 -CU_FILE_DRIVER_CLOSING);
	}
	cf_sop_let_go(sop);
	atomic_store(&sop->words->passed, sop->ticket);
	cf_events_close(&queue.events);
	th_close();
	th_file_end(&file);
}

/* In a graph, and one launch of it is under way. */
static struct cf_sop *launched(ssize_t *n)
{
	struct cf_sop *sop = submitted(false, n);

	sop->held = false;
	sop->captured = sop->busy = true;
	sop->more = 0;
	return sop;
}

static void *none(size_t size)
{
	(void)size;
	return NULL;
}

static void a_launch_for_which_there_is_no_memory_says_so(void **state)
{
	ssize_t n = UNTOLD;
	struct cf_sop *sop;

	(void)state;
	th_need_gpu();
	th_open();
	sop = launched(&n);
	next_run = none;
	cf_sop_replayed(sop);
	next_run = NULL;
	assert_int_equal(n, -ENOMEM);
	assert_int_equal(cf_sops_begun(), 0);
	assert_int_equal(atomic_load(&sop->words->gate), 0);
	sop->busy = false;
	cf_sop_graph_gone(sop);
	th_close();
}

static void a_launch_beside_another_has_a_run_of_its_own(void **state)
{
	ssize_t n = UNTOLD;
	struct cf_sop *sop;

	(void)state;
	th_need_gpu();
	th_open();
	sop = launched(&n);
	sop->run = (struct cf_run){ .sop = sop };
	cf_sop_replayed(sop);
	await_runs();
	assert_int_equal(n, -CU_FILE_HANDLE_NOT_REGISTERED);
	atomic_store(&nr_home, 0);
	cf_sop_graph_gone(sop);
	assert_int_equal(nr_home, 0);
	cf_sops_lock();
	cf_run_over_locked(&sop->run);
	cf_sops_unlock();
	assert_int_equal(nr_home, 1);
	th_close();
}

static struct cf_sop *under_way;

static void *while_it_ends(size_t size)
{
	cf_sops_lock();
	under_way->busy = false;
	cf_sops_unlock();
	return __real_malloc(size);
}

/* The sanitizers see whether what was allocated in vain is freed. */
static void a_launch_takes_the_run_that_ended_meanwhile(void **state)
{
	ssize_t n = UNTOLD;

	(void)state;
	th_need_gpu();
	th_open();
	under_way = launched(&n);
	next_run = while_it_ends;
	cf_sop_replayed(under_way);
	next_run = NULL;
	await_runs();
	cf_sops_lock();
	assert_false(under_way->busy);
	assert_false(under_way->run.extra);
	cf_sops_unlock();
	assert_int_equal(n, -CU_FILE_HANDLE_NOT_REGISTERED);
	cf_sop_graph_gone(under_way);
	th_close();
}

/*
 * The next launch may come as soon as its kernel's run has ended, and would
 * find the run busy that nobody carries any more. And the gate is as it was,
 * or who has the operation next does not wait at it.
 */
static void a_kernels_run_ends_with_the_run_and_leaves_the_gate(void **state)
{
	ssize_t n = UNTOLD;
	struct cf_sop *sop;

	(void)state;
	th_need_gpu();
	th_open();
	sop = lease(true);
	fill(sop, false, &n);
	sop->held = false;
	sop->captured = true;
	sop->ferried = sop->ferry.board;
	sop->ferry.rings = sop->ferry.fresh = false;
	sop->ferry.shared = true;
	sop->ferry.begun = NULL;
	atomic_store(&ended_locked, !sop->ferried);
	cf_sop_replayed(sop);
	await_runs();
	assert_int_equal(n, -CU_FILE_HANDLE_NOT_REGISTERED);
	assert_true(atomic_load(&ended_locked));
	assert_int_equal(atomic_load(&sop->words->gate), 0);
	cf_sop_graph_gone(sop);
	/* nor is a kernel awaited that was never launched */
	assert_false(sop->ferried);
	th_close();
}

/* Its kernel may be in the stream all the same, and is told to leave. */
static void one_with_a_kernel_that_is_given_up_ends_its_run(void **state)
{
	ssize_t n = UNTOLD;
	struct cf_sop *sop;

	(void)state;
	th_need_fake();
	th_open();
	sop = lease(true);
	fill(sop, true, &n);
	assert_non_null(sop->ferry.board);
	sop->ferried = sop->ferry.rings = true;
	sop->ferry.fresh = false;
	cf_ferry_begin(&sop->ferry);
	atomic_store(&nr_ended, 0);
	assert_int_equal(cf_sop_stop_or_wait(sop, CF_CU_UNKNOWN),
			 CF_ECUDA(CF_CU_UNKNOWN));
	assert_int_equal(nr_ended, 1);
	/* who has it next waits until it has */
	cf_sop_skip(sop);
	assert_true(sop->ferried);
	sop->ferried = false;
	atomic_store(&sop->words->passed, sop->ticket);
	th_close();
}

static void a_launch_of_one_that_failed_half_way_does_nothing(void **state)
{
	ssize_t n = UNTOLD;
	struct cf_sop *sop;

	(void)state;
	th_need_gpu();
	th_open();
	sop = submitted(false, &n);
	sop->held = false;
	sop->captured = true;
	cf_sop_disarm(sop);
	cf_sop_replayed(sop);
	await_runs();
	assert_int_equal(n, UNTOLD);
	cf_sop_graph_gone(sop);
	th_close();
}

/* Without a wait in the stream nothing writes that it is past it. */
static void one_that_a_callback_awaited_comes_home_once(void **state)
{
	(void)state;
	th_need_gpu();
	th_open();
	for (int held = 0; held < 2; held++) {
		ssize_t n = UNTOLD;
		struct cf_sop *sop = submitted(false, &n);

		sop->dock->memops = false;
		sop->held = held;
		atomic_store(&sop->words->passed, sop->ticket - 1);
		atomic_store(&nr_home, 0);
		cf_sop_reached(sop);
		assert_int_equal(n, -CU_FILE_HANDLE_NOT_REGISTERED);
		assert_int_equal(nr_home, !held);
		if (held)
			cf_sop_let_go(sop);
		assert_int_equal(nr_home, 1);
		assert_int_equal(atomic_load(&sop->words->passed), sop->ticket);
	}
	th_close();
}

/* The others end in another way, and must not end in both. */
static void only_batches_that_nobody_called_are_looked_after(void **state)
{
	char batch;
	const struct {
		void *parcel;
		bool belled;
		enum cf_sop_state state;
	} others[] = {
		{ NULL, false, CF_SOP_QUEUED },
		{ &batch, true, CF_SOP_QUEUED },
		{ &batch, false, CF_SOP_BEGUN },
	};

	(void)state;
	th_need_gpu();
	th_open();
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		ssize_t n;
		struct cf_sop *sop = submitted(others[i].belled, &n);

		sop->parcel = others[i].parcel;
		sop->state = others[i].state;
		cf_sop_let_go(sop);
		assert_false(cf_uncalled_any());
		cf_sop_never_mind(sop);
	}
	th_close();
}

/* Its worker is still at it, and ends when somebody waits, or gives up. */
struct begun {
	struct cf_sop *sop;
	atomic_bool ends, is_over;
};

static void *end_when_awaited(void *arg)
{
	struct begun *b = arg;

	while (!atomic_load(&waits) && !atomic_load(&b->is_over))
		sched_yield();
	atomic_store(&b->ends, true);
	if (!atomic_load(&b->is_over))
		cf_run_finish(&b->sop->run, 5);
	return NULL;
}

static void one_that_has_begun_is_awaited_and_can_be_used_again(void **state)
{
	ssize_t n = UNTOLD;
	struct begun b = { .sop = NULL };
	pthread_t thread;
	bool ended;
	int err;

	(void)state;
	th_need_gpu();
	th_open();
	b.sop = submitted(true, &n);
	b.sop->state = CF_SOP_BEGUN;
	b.sop->run = (struct cf_run){ .sop = b.sop };
	cf_sops_lock();
	cf_sops_begin();
	cf_sops_unlock();
	atomic_store(&waits, false);
	assert_int_equal(pthread_create(&thread, NULL, end_when_awaited, &b),
			 0);
	err = cf_sop_stop_or_wait(b.sop, CF_CU_UNKNOWN);
	ended = atomic_load(&b.ends);
	atomic_store(&b.is_over, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(err, 0);
	assert_true(ended);
	assert_int_equal(n, 5);
	/* nor does it wait for a kernel that is in no stream */
	assert_true(atomic_load(&b.sop->ferry.lost));
	/* no stream waits for it, and none writes that it has passed */
	assert_int_equal(atomic_load(&b.sop->words->passed), b.sop->ticket);
	th_close();
}

static void *end_when_closed(void *arg)
{
	atomic_bool *is_over = arg;

	while (!atomic_load(&waits) && !atomic_load(is_over))
		sched_yield();
	cf_sops_lock();
	cf_sops_end();
	cf_sops_unlock();
	return NULL;
}

/* Or what they move with would be left behind. */
static void a_close_awaits_runs_before_it_ends_docks(void **state)
{
	atomic_bool is_over = false;
	pthread_t thread;

	(void)state;
	th_open();
	cf_sops_lock();
	cf_sops_begin();
	cf_sops_unlock();
	atomic_store(&waits, false);
	assert_int_equal(
		pthread_create(&thread, NULL, end_when_closed, &is_over), 0);
	th_close();
	atomic_store(&is_over, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(begun_at_end, 0);
}

enum part { OWN_RUN, OTHER_RUN, GRAPH, NR_PARTS };

static void ends(struct cf_sop *sop, struct cf_run *other, enum part part)
{
	if (part == GRAPH) {
		cf_sop_graph_gone(sop);
		return;
	}
	cf_sops_lock();
	cf_run_over_locked(part == OWN_RUN ? &sop->run : other);
	cf_sops_unlock();
}

/* Two launches of it are under way, and its graph may be destroyed meanwhile.
 */
static void one_of_a_graph_goes_home_with_the_last_that_has_it(void **state)
{
	static const enum part orders[][NR_PARTS] = {
		{ OWN_RUN, OTHER_RUN, GRAPH }, { OWN_RUN, GRAPH, OTHER_RUN },
		{ OTHER_RUN, OWN_RUN, GRAPH }, { OTHER_RUN, GRAPH, OWN_RUN },
		{ GRAPH, OWN_RUN, OTHER_RUN }, { GRAPH, OTHER_RUN, OWN_RUN },
	};

	(void)state;
	th_need_gpu();
	th_open();
	for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
		struct cf_run *other = calloc(1, sizeof(*other));
		ssize_t n = UNTOLD;
		struct cf_sop *sop = launched(&n);

		sop->more = 1;
		sop->run = (struct cf_run){ .sop = sop };
		*other = (struct cf_run){ .sop = sop, .extra = true };
		atomic_store(&sop->words->passed, sop->ticket - 1);
		for (unsigned k = 0; k < NR_PARTS; k++) {
			assert_int_not_equal(atomic_load(&sop->words->passed),
					     sop->ticket);
			ends(sop, other, orders[i][k]);
		}
		assert_int_equal(atomic_load(&sop->words->passed), sop->ticket);
	}
	th_close();
	if (th_fake())
		assert_int_equal(th_fake()->live("host_register"), 0);
}

/* Or its stream would wait for nobody. */
static void one_that_nobody_would_carry_is_refused(void **state)
{
	size_t size = 4096;
	off_t at = 0;
	struct th_pair p;
	CUstream stream;
	ssize_t n = UNTOLD;

	(void)state;
	th_need_gpu();
	th_pair_make(&p, TH_BUFFERED, size, 0);
	assert_int_equal(cuStreamCreate(&stream, CF_CU_STREAM_NON_BLOCKING), 0);
	atomic_store(&no_thread, true);
	assert_int_equal(
		cuFileReadAsync(p.fh, p.mem.ptr, &size, &at, &at, &n, stream)
			.err,
		CU_FILE_NOMEM_ERROR);
	atomic_store(&no_thread, false);
	assert_int_equal(cuStreamSynchronize(stream), 0);
	assert_int_equal(n, UNTOLD);
	assert_int_equal(
		cuFileReadAsync(p.fh, p.mem.ptr, &size, &at, &at, &n, stream)
			.err,
		0);
	assert_int_equal(cuStreamSynchronize(stream), 0);
	assert_int_equal(n, size);
	assert_int_equal(cuStreamDestroy(stream), 0);
	th_pair_end(&p);
}

#define TEST(name) cmocka_unit_test_teardown(name, th_teardown_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(one_that_is_given_up_before_it_begins_never_does),
		TEST(one_that_rings_while_the_driver_closes_is_refused),
		TEST(a_batch_that_rings_while_the_driver_closes_has_its_events),
		TEST(a_launch_for_which_there_is_no_memory_says_so),
		TEST(a_launch_beside_another_has_a_run_of_its_own),
		TEST(a_launch_takes_the_run_that_ended_meanwhile),
		TEST(a_kernels_run_ends_with_the_run_and_leaves_the_gate),
		TEST(one_with_a_kernel_that_is_given_up_ends_its_run),
		TEST(a_launch_of_one_that_failed_half_way_does_nothing),
		TEST(one_that_a_callback_awaited_comes_home_once),
		TEST(only_batches_that_nobody_called_are_looked_after),
		TEST(one_that_has_begun_is_awaited_and_can_be_used_again),
		TEST(a_close_awaits_runs_before_it_ends_docks),
		TEST(one_of_a_graph_goes_home_with_the_last_that_has_it),
		TEST(one_that_nobody_would_carry_is_refused),
	};

	th_start(60);
	return th_finish(cmocka_run_group_tests_name("sop", tests, NULL, NULL));
}

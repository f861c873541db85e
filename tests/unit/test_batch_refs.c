// SPDX-License-Identifier: Apache-2.0
/*
 * batch - who looks a batch up keeps it: neither its destruction nor the
 * driver's close ends before the last such reference is gone. And the table:
 * what names no batch, how many there may be, and what one needs.
 */
#include "engine/batch.c"
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>

static atomic_bool no_thread, no_memory;

/* Seen from outside, or the linker of a sanitizer does not find them. */
#pragma GCC visibility push(default)
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*run)(void *arg), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*run)(void *arg), void *arg);
void __real_cf_session_lock(void);
void __wrap_cf_session_lock(void);
void __real_cf_session_unlock(void);
void __wrap_cf_session_unlock(void);
void *__real_calloc(size_t nr, size_t size);
void *__wrap_calloc(size_t nr, size_t size);
void __real_cf_handle_put_all(struct cf_handle *handle, unsigned nr);
void __wrap_cf_handle_put_all(struct cf_handle *handle, unsigned nr);
void __real_cf_events_post(struct cf_events *events,
			   const CUfileIOEvents_t *ended, unsigned nr);
void __wrap_cf_events_post(struct cf_events *events,
			   const CUfileIOEvents_t *ended, unsigned nr);
#pragma GCC visibility pop

/* References of entries that came back, less the events that were posted. */
static atomic_int given_back;
static atomic_bool posted_early;

void __wrap_cf_handle_put_all(struct cf_handle *handle, unsigned nr)
{
	__real_cf_handle_put_all(handle, nr);
	atomic_fetch_add(&given_back, (int)nr);
}

void __wrap_cf_events_post(struct cf_events *events,
			   const CUfileIOEvents_t *ended, unsigned nr)
{
	if (atomic_fetch_sub(&given_back, (int)nr) < (int)nr)
		atomic_store(&posted_early, true);
	__real_cf_events_post(events, ended, nr);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*run)(void *arg), void *arg)
{
	return atomic_load(&no_thread) ?
		       EAGAIN :
		       __real_pthread_create(thread, attr, run, arg);
}

/* Whether this thread has the session's lock; had it when events were made. */
static _Thread_local bool has_lock;
static bool made_locked;

void __wrap_cf_session_lock(void)
{
	__real_cf_session_lock();
	has_lock = true;
}

void __wrap_cf_session_unlock(void)
{
	has_lock = false;
	__real_cf_session_unlock();
}

/* Of events. */
void *__wrap_calloc(size_t nr, size_t size)
{
	if (size == sizeof(CUfileIOEvents_t))
		made_locked = has_lock;
	return atomic_load(&no_memory) && size == sizeof(CUfileIOEvents_t) ?
		       NULL :
		       __real_calloc(nr, size);
}

struct world {
	CUfileBatchHandle_t value;
	struct cf_batch *batch;
	void (*end)(struct world *w);
	pthread_t thread;
	_Atomic bool over;
};

static void world_make(struct world *w, void (*end)(struct world *w))
{
	*w = (struct world){ .end = end };
	th_open();
	assert_int_equal(cuFileBatchIOSetUp(&w->value, 4).err, 0);
	w->batch = cf_batch_get(w->value);
	assert_non_null(w->batch);
}

static void *run_end(void *arg)
{
	struct world *w = arg;

	w->end(w);
	atomic_store(&w->over, true);
	return NULL;
}

static void destroy(struct world *w)
{
	cuFileBatchIODestroy(w->value);
}

static void close_driver(struct world *w)
{
	(void)w;
	(void)cuFileDriverClose_v2();
}

/* From when it is destroyed on, its value is nobody's. */
static void await_death(struct world *w)
{
	struct cf_batch *batch;

	while ((batch = cf_batch_get(w->value))) {
		cf_batch_put(batch);
		th_sleep_ms(1);
	}
}

static void ends_with_the_last_reference(struct world *w)
{
	CUfileIOEvents_t events[4];
	struct timespec none = { 0, 0 };
	unsigned nr = 4;

	pthread_create(&w->thread, NULL, run_end, w);
	await_death(w);
	th_sleep_ms(50);
	assert_false(atomic_load(&w->over));
	/* who has one may use it all the same */
	(void)cf_batch_status(w->batch, 0, &nr, events, &none);
	cf_batch_put(w->batch);
	pthread_join(w->thread, NULL);
	assert_true(atomic_load(&w->over));
}

static void a_destruction_waits_for_the_last_reference(void **state)
{
	struct world w;
	CUfileBatchHandle_t next;

	world_make(&w, destroy);
	ends_with_the_last_reference(&w);
	/* the place is free, and the old value is still none */
	assert_int_equal(cuFileBatchIOSetUp(&next, 4).err, 0);
	assert_null(cf_batch_get(w.value));
	cuFileBatchIODestroy(next);
}

static void a_close_waits_for_the_last_reference(void **state)
{
	struct world w;

	world_make(&w, close_driver);
	ends_with_the_last_reference(&w);
}

/* Whoever carried the last entry may have it yet. */
static void a_close_waits_for_the_last_submission(void **state)
{
	struct cf_submission *sub;
	struct world w;

	(void)state;
	world_make(&w, close_driver);
	sub = cf_submission_new(&w.batch->queue, 1);
	assert_non_null(sub);
	cf_batch_put(w.batch);
	pthread_create(&w.thread, NULL, run_end, &w);
	await_death(&w);
	th_sleep_ms(50);
	assert_false(atomic_load(&w.over));
	cf_submission_put(sub);
	pthread_join(w.thread, NULL);
}

/* Somebody else is destroying it: the close has no batch left to destroy. */
static void a_close_waits_for_a_batch_that_is_being_destroyed(void **state)
{
	struct world w, other = { .end = close_driver };

	world_make(&w, destroy);
	pthread_create(&w.thread, NULL, run_end, &w);
	await_death(&w);
	pthread_create(&other.thread, NULL, run_end, &other);
	th_sleep_ms(50);
	assert_false(atomic_load(&w.over));
	assert_false(atomic_load(&other.over));
	cf_batch_put(w.batch);
	pthread_join(w.thread, NULL);
	pthread_join(other.thread, NULL);
}

/* ------------------------------------------------------------- the table */

static void refused(uint64_t value)
{
	struct cf_batch *batch =
		cf_batch_get((CUfileBatchHandle_t)(uintptr_t)value);

	if (batch) /* whose destruction would wait for this reference */
		cf_batch_put(batch);
	assert_null(batch);
}

/* Numbers that a program may hold, and those beside a batch's. */
static void what_is_no_batchs_value_finds_none(void **state)
{
	CUfileBatchHandle_t made;
	uint64_t value;

	(void)state;
	th_open();
	assert_int_equal(cuFileBatchIOSetUp(&made, 4).err, 0);
	value = (uintptr_t)made;
	refused(value & ~VALUE_TAG_MASK);
	refused(value ^ 1ull << 63);
	refused(value + (1ull << 24));
	for (uint64_t i = 0; i <= 2 * nr_batches; i++)
		if (i != (value & 0xffffff))
			refused((value & ~0xffffffull) | i);
	cuFileBatchIODestroy(made);
}

/* After 16 million batches in one place. */
static void generations_begin_anew_and_values_stay_values(void **state)
{
	CUfileBatchHandle_t last, next;

	(void)state;
	th_open();
	assert_int_equal(cuFileBatchIOSetUp(&last, 4).err, 0);
	cuFileBatchIODestroy(last);
	free_batches->generation = GENERATION_MASK;
	assert_int_equal(cuFileBatchIOSetUp(&last, 4).err, 0);
	cuFileBatchIODestroy(last);
	assert_int_equal(cuFileBatchIOSetUp(&next, 4).err, 0);
	refused((uintptr_t)last);
	assert_int_equal((uintptr_t)next & VALUE_TAG_MASK, VALUE_TAG);
	assert_int_equal((uintptr_t)next >> 24 & GENERATION_MASK, 0);
	cuFileBatchIODestroy(next);
	refused((uintptr_t)next);
}

static void a_full_table_says_that_there_is_no_room(void **state)
{
	struct cf_batch *free_before;
	CUfileBatchHandle_t made;
	uint32_t nr_before;

	(void)state;
	th_open();
	nr_before = nr_batches;
	free_before = free_batches;
	nr_batches = NR_CHUNKS << CHUNK_BITS;
	free_batches = NULL;
	assert_int_equal(cuFileBatchIOSetUp(&made, 4).err, CU_FILE_NOMEM_ERROR);
	nr_batches = nr_before;
	free_batches = free_before;
	assert_int_equal(cuFileBatchIOSetUp(&made, 4).err, 0);
	cuFileBatchIODestroy(made);
}

static unsigned free_places(void)
{
	unsigned nr = 0;

	for (const struct cf_batch *b = free_batches; b; b = b->next_free)
		nr++;
	return nr;
}

static void one_without_room_for_its_events_leaves_its_place(void **state)
{
	CUfileBatchHandle_t made;
	unsigned before;

	(void)state;
	th_open();
	assert_int_equal(cuFileBatchIOSetUp(&made, 4).err, 0);
	cuFileBatchIODestroy(made);
	before = free_places();
	atomic_store(&no_memory, true);
	assert_int_equal(cuFileBatchIOSetUp(&made, 4).err, CU_FILE_NOMEM_ERROR);
	atomic_store(&no_memory, false);
	assert_int_equal(free_places(), before);
	assert_int_equal(cuFileBatchIOSetUp(&made, 4).err, 0);
	cuFileBatchIODestroy(made);
}

/* Or a close that comes meanwhile would leave it behind. */
static void one_is_made_with_the_session_locked(void **state)
{
	CUfileBatchHandle_t made;

	(void)state;
	th_open();
	made_locked = false;
	assert_int_equal(cuFileBatchIOSetUp(&made, 4).err, 0);
	assert_true(made_locked);
	cuFileBatchIODestroy(made);
}

/* Once it is there its entries are carried, whatever there is no room for. */
static void there_is_none_without_a_worker(void **state)
{
	CUfileBatchHandle_t made;

	(void)state;
	th_open();
	atomic_store(&no_thread, true);
	assert_int_equal(cuFileBatchIOSetUp(&made, 4).err,
			 CU_FILE_INTERNAL_BATCH_SETUP_ERROR);
	atomic_store(&no_thread, false);
	assert_int_equal(cuFileBatchIOSetUp(&made, 4).err, 0);
	cuFileBatchIODestroy(made);
}

#define NR 8
#define SIZE 4096

/* Who has seen it may deregister and free at once. */
static void an_event_comes_after_its_entrys_references(void **state)
{
	CUfileIOParams_t params[NR] = { 0 };
	CUfileIOEvents_t events[NR];
	unsigned char bytes[NR * SIZE];
	CUfileBatchHandle_t batch;
	struct th_file files[2];
	CUfileHandle_t fhs[2];
	unsigned nr = NR;

	(void)state;
	th_open();
	for (int i = 0; i < 2; i++) {
		th_file_make(&files[i], TH_BUFFERED, O_RDWR, NULL, NR * SIZE);
		fhs[i] = th_handle(files[i].fd);
	}
	for (unsigned i = 0; i < NR; i++) {
		params[i].mode = CUFILE_BATCH;
		params[i].fh = fhs[i / 3 % 2];
		params[i].opcode = CUFILE_READ;
		params[i].u.batch.devPtr_base = bytes;
		params[i].u.batch.devPtr_offset = (off_t)i * SIZE;
		params[i].u.batch.size = SIZE;
	}
	assert_int_equal(cuFileBatchIOSetUp(&batch, NR).err, 0);
	assert_int_equal(cuFileBatchIOSubmit(batch, NR, params, 0).err, 0);
	assert_int_equal(
		cuFileBatchIOGetStatus(batch, NR, &nr, events, NULL).err, 0);
	assert_int_equal(nr, NR);
	cuFileBatchIODestroy(batch);
	assert_int_equal(given_back, 0);
	assert_false(posted_early);
	for (int i = 0; i < 2; i++) {
		cuFileHandleDeregister(fhs[i]);
		th_file_end(&files[i]);
	}
}

/* Who held it there is not in the child, to give it back. */
static void a_child_waits_for_no_reference_of_its_parent(void **state)
{
	CUfileBatchHandle_t value;
	struct cf_batch *held;
	void *ring;

	(void)state;
	th_open();
	assert_int_equal(cuFileBatchIOSetUp(&value, 1).err, 0);
	held = cf_batch_get(value);
	ring = held->queue.events.ring;
	cf_batches_fork_prepare();
	cf_batches_fork_child();
	assert_null(cf_batch_get(value));
	assert_int_equal(held->refs, 0);
	free(ring); /* which no child does */
}

#define TEST(name) cmocka_unit_test_teardown(name, th_teardown_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_destruction_waits_for_the_last_reference),
		TEST(a_close_waits_for_the_last_reference),
		TEST(a_close_waits_for_the_last_submission),
		TEST(a_close_waits_for_a_batch_that_is_being_destroyed),
		TEST(what_is_no_batchs_value_finds_none),
		TEST(generations_begin_anew_and_values_stay_values),
		TEST(a_full_table_says_that_there_is_no_room),
		TEST(one_without_room_for_its_events_leaves_its_place),
		TEST(one_is_made_with_the_session_locked),
		TEST(there_is_none_without_a_worker),
		TEST(an_event_comes_after_its_entrys_references),
		TEST(a_child_waits_for_no_reference_of_its_parent),
	};

	th_start(60);
	return th_finish(
		cmocka_run_group_tests_name("batch_refs", tests, NULL, NULL));
}

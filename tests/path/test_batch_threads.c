// SPDX-License-Identifier: Apache-2.0
/* Batches of many threads, and cancels and closes in between. */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include "batch_field.h"

#define NR_THREADS 64
#define EACH 16
#define NR_ROUNDS TH_SCALE(40)

struct crowd {
	CUfileBatchHandle_t shared;
	struct field f;
	atomic_uint submitted, reaped;
	atomic_uint left[NR_THREADS]; /* of a thread's entries: not reaped */
	struct th_bad bad;
};

static void own_entries(struct crowd *c, unsigned thread,
			CUfileIOParams_t *params)
{
	size_t at = (size_t)thread * EACH * 4096;

	for (unsigned i = 0; i < EACH; i++, at += 4096) {
		params[i] = (CUfileIOParams_t){ .mode = CUFILE_BATCH,
						.fh = c->f.fh,
						.opcode = CUFILE_READ,
						.cookie = &c->left[thread] };
		params[i].u.batch.devPtr_base = c->f.mem.ptr;
		params[i].u.batch.devPtr_offset = (off_t)at;
		params[i].u.batch.file_offset = (off_t)at;
		params[i].u.batch.size = 4096;
	}
}

static void reap_some(struct crowd *c, CUfileBatchHandle_t batch, unsigned min)
{
	CUfileIOEvents_t events[EACH];
	unsigned nr = EACH;
	CUfileError_t error =
		cuFileBatchIOGetStatus(batch, min, &nr, events, NULL);

	if (error.err)
		th_bad_note(&c->bad, "status answers %d", error.err);
	for (unsigned i = 0; i < nr && !error.err; i++) {
		if (events[i].status != CUFILE_COMPLETE ||
		    events[i].ret != 4096)
			th_bad_note(&c->bad, "status %d ret %zd",
				    events[i].status, events[i].ret);
		atomic_fetch_sub((atomic_uint *)events[i].cookie, 1);
	}
	if (!error.err)
		atomic_fetch_add(&c->reaped, nr);
}

/* Memory that a read is still under way into is nobody's to give again. */
static void submit_own(struct crowd *c, CUfileBatchHandle_t batch,
		       CUfileIOParams_t *params, atomic_uint *left)
{
	CUfileError_t error;

	if (atomic_load(left))
		return;
	atomic_store(left, EACH);
	error = cuFileBatchIOSubmit(batch, EACH, params, 0);
	if (!error.err) {
		atomic_fetch_add(&c->submitted, EACH);
		return;
	}
	atomic_store(left, 0);
	if (error.err != CU_FILE_BATCH_FULL || batch != c->shared)
		th_bad_note(&c->bad, "submit answers %d", error.err);
}

/* Half of them share a batch: what one submits another may reap. */
static void submit_and_reap(void *arg, unsigned thread)
{
	struct crowd *c = arg;
	CUfileIOParams_t params[EACH];
	CUfileBatchHandle_t own = NULL, batch = c->shared;

	own_entries(c, thread, params);
	if (thread & 1) {
		if (cuFileBatchIOSetUp(&own, EACH).err)
			th_bad_note(&c->bad, "no batch");
		batch = own;
	}
	for (int round = 0; round < NR_ROUNDS; round++) {
		submit_own(c, batch, params, &c->left[thread]);
		reap_some(c, batch, own ? EACH : 1);
	}
	cuFileBatchIODestroy(own);
}

static void sixty_four_threads_submit_and_reap(void **state)
{
	struct crowd c = { .submitted = 0 };
	unsigned before;

	bf_set_size(CUFILE_PARAM_EXECUTION_MAX_IO_THREADS, 6);
	th_open();
	bf_init(&c.f, th_gpu(NULL) ? TH_DEVICE : TH_MALLOC, TH_BUFFERED,
		NR_THREADS * EACH * 4096);
	c.shared = bf_batch_of(NR_THREADS * EACH / 4);
	th_threads(NR_THREADS, submit_and_reap, &c);
	do {
		before = atomic_load(&c.reaped);
		reap_some(&c, c.shared, EACH);
	} while (atomic_load(&c.reaped) != before);
	th_bad_check(&c.bad);
	/* each entry one event, and no event that nobody asked for */
	assert_int_equal(atomic_load(&c.reaped), atomic_load(&c.submitted));
	memcpy(c.f.in_mem, c.f.in_file, c.f.size);
	bf_check(&c.f);
	cuFileBatchIODestroy(c.shared);
	bf_fini(&c.f);
	th_close();
}

#define CREWED 64
#define CREWED_EACH (16 * TH_KIB)

/* Reads of one size each, one behind the other. */
struct reads {
	CUfileBatchHandle_t batch;
	CUfileIOParams_t params[CREWED];
	unsigned nr;
	enum th_mem_kind kind;
};

/*
 * Memory of its own for each round, freed after the cancel or the destroy:
 * a late byte is seen by the address sanitizer and by the fake driver.
 */
static void submit_and_stop(struct crowd *c, struct reads *r, unsigned wait_ms,
			    bool destroy)
{
	size_t each = r->params[0].u.batch.size;
	struct th_mem mem;

	if (!r->batch && cuFileBatchIOSetUp(&r->batch, r->nr).err)
		th_bad_note(&c->bad, "no batch");
	th_mem_alloc(&mem, r->kind, r->nr * each);
	for (unsigned i = 0; i < r->nr; i++) {
		r->params[i].u.batch.devPtr_base = mem.ptr;
		r->params[i].u.batch.devPtr_offset = (off_t)(i * each);
	}
	if (cuFileBatchIOSubmit(r->batch, r->nr, r->params, 0).err)
		th_bad_note(&c->bad, "submit");
	if (wait_ms)
		th_sleep_ms(wait_ms);
	if (destroy) {
		cuFileBatchIODestroy(r->batch);
		r->batch = NULL;
	} else if (cuFileBatchIOCancel(r->batch).err) {
		th_bad_note(&c->bad, "cancel");
	}
	th_mem_free(&mem);
}

static void cancel_and_free(void *arg, unsigned thread)
{
	struct reads r = { .nr = EACH,
			   .kind = th_gpu(NULL) && thread & 1 ? TH_DEVICE :
								TH_MALLOC };

	own_entries(arg, thread, r.params);
	for (int round = 0; round < NR_ROUNDS; round++)
		submit_and_stop(arg, &r, 0, round & 1);
	cuFileBatchIODestroy(r.batch);
}

static void memory_may_go_after_a_cancel_or_a_destroy(void **state)
{
	struct crowd c = { .submitted = 0 };

	bf_set_size(CUFILE_PARAM_EXECUTION_MAX_IO_THREADS, 6);
	th_open();
	if (th_fake())
		th_fake()->copy_delay_us(50);
	bf_init(&c.f, TH_MALLOC, TH_BUFFERED, 16 * EACH * 4096);
	th_threads(16, cancel_and_free, &c);
	th_bad_check(&c.bad);
	bf_fini(&c.f);
	if (th_fake())
		th_fake()->copy_delay_us(0);
	th_close();
}

/* The same, of so many bytes that helpers fill their slots. */
static void cancel_crews_and_free(void *arg, unsigned thread)
{
	struct reads r = { .nr = CREWED, .kind = TH_DEVICE };
	struct crowd *c = arg;

	for (unsigned i = 0; i < CREWED; i++) {
		r.params[i].mode = CUFILE_BATCH;
		r.params[i].fh = c->f.fh;
		r.params[i].u.batch.file_offset = (off_t)(i * CREWED_EACH);
		r.params[i].u.batch.size = CREWED_EACH;
	}
	for (unsigned round = 0; round < TH_SCALE(40); round++)
		submit_and_stop(c, &r, (unsigned)th_below(3),
				(round ^ thread) & 1);
	cuFileBatchIODestroy(r.batch);
}

static void memory_may_go_after_a_cancel_of_crews(void **state)
{
	struct crowd c = { .submitted = 0 };

	th_need_gpu();
	bf_set_size(CUFILE_PARAM_EXECUTION_MAX_IO_THREADS, 8);
	th_open();
	if (th_fake())
		th_fake()->copy_delay_us(500);
	bf_init(&c.f, TH_DEVICE, TH_BUFFERED, CREWED * CREWED_EACH);
	assert_int_equal(bf_crews_of(c.f.fh, CREWED, CREWED_EACH), 1);
	th_threads(3, cancel_crews_and_free, &c);
	th_bad_check(&c.bad);
	bf_fini(&c.f);
	if (th_fake())
		th_fake()->copy_delay_us(0);
	th_close();
}

/* Others cancel and reap what these submit, until the driver is closed. */
static void use_until_closed(void *arg, unsigned thread)
{
	struct crowd *c = arg;
	CUfileIOParams_t params[EACH];
	CUfileIOEvents_t events[EACH];
	unsigned nr;

	own_entries(c, thread, params);
	if (!thread) {
		th_sleep_ms(30);
		th_close();
		return;
	}
	for (;;) {
		CUfileError_t error =
			cuFileBatchIOSubmit(c->shared, EACH, params, 0);

		if (error.err && error.err != CU_FILE_BATCH_FULL)
			return;
		if (thread % 8 == 1)
			cuFileBatchIOCancel(c->shared);
		nr = EACH;
		if (cuFileBatchIOGetStatus(c->shared, 1, &nr, events, NULL).err)
			return;
	}
}

static void close_in_the_middle_of_it_all_ends_it_all(void **state)
{
	struct crowd c = { .submitted = 0 };

	for (int round = 0; round < TH_SCALE(8); round++) {
		bf_set_size(CUFILE_PARAM_EXECUTION_MAX_IO_THREADS, 4);
		th_open();
		bf_init(&c.f, th_gpu(NULL) ? TH_DEVICE : TH_MALLOC, TH_BUFFERED,
			16 * EACH * 4096);
		c.shared = bf_batch_of(100);
		th_threads(16, use_until_closed, &c);
		bf_fini(&c.f);
	}
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, NULL, th_teardown_close)
	const struct CMUnitTest tests[] = {
		TEST(sixty_four_threads_submit_and_reap),
		TEST(memory_may_go_after_a_cancel_or_a_destroy),
		TEST(memory_may_go_after_a_cancel_of_crews),
		TEST(close_in_the_middle_of_it_all_ends_it_all),
	};

	th_start(280);
	(void)th_volley_kernel(NULL);
	return th_finish(cmocka_run_group_tests_name("batch_threads", tests,
						     NULL, NULL));
}

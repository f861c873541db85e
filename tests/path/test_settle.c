// SPDX-License-Identifier: Apache-2.0
/*
 * A request that fails while copies of it are under way: its slots go back to
 * the pool when no copy can touch them any more, and not before. Somebody
 * looks at the pool meanwhile, as another request that wants a slot would.
 */
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include "core/device.h"
#include "core/ring.h"
#include "harness.h"

#define ENTRIES 8

static void set_workers(size_t nr)
{
	assert_int_equal(cuFileSetParameterSizeT(
				 CUFILE_PARAM_EXECUTION_MAX_IO_THREADS, nr)
				 .err,
			 0);
}

static void world_make(struct th_pair *w, enum th_file_kind kind, size_t size)
{
	th_need_fake();
	th_pair_make(w, kind, size, 0);
}

/* ----------------------------------------------------- who wants a slot */

struct watch {
	struct cf_pool *pool;
	uint64_t back_ns; /* when the first slot came back; 0: not yet */
	atomic_bool ready;
	atomic_bool over;
};

static void look(struct watch *watch)
{
	size_t bytes, leased, most = 0;
	bool over = false;

	atomic_store(&watch->ready, true);
	while (!over) {
		over = atomic_load(&watch->over);
		cf_pool_usage(watch->pool, &bytes, &leased);
		if (leased < most) {
			watch->back_ns = th_now_ns();
			return;
		}
		most = leased;
		sched_yield();
	}
}

/* ------------------------------------------------------------- requests */

static bool transfer(struct th_pair *w, bool write)
{
	ssize_t n = write ? cuFileWrite(w->fh, w->mem.ptr, w->size, 0, 0) :
			    cuFileRead(w->fh, w->mem.ptr, w->size, 0, 0);

	return n == (ssize_t)w->size;
}

/* Entries that lie side by side in memory and apart in the file. */
static bool batch(struct th_pair *w, bool write)
{
	size_t size = w->size / ENTRIES;
	CUfileIOParams_t params[ENTRIES];
	CUfileIOEvents_t events[ENTRIES];
	CUfileBatchHandle_t handle;
	unsigned nr = ENTRIES, good = 0;

	for (unsigned i = 0; i < ENTRIES; i++) {
		params[i] = (CUfileIOParams_t){
			.mode = CUFILE_BATCH,
			.fh = w->fh,
			.opcode = write ? CUFILE_WRITE : CUFILE_READ,
		};
		params[i].u.batch.devPtr_base = w->mem.ptr;
		params[i].u.batch.devPtr_offset = (off_t)(i * size);
		params[i].u.batch.file_offset = (off_t)(i * size);
		params[i].u.batch.size = size;
	}
	if (cuFileBatchIOSetUp(&handle, ENTRIES).err)
		return false;
	if (!cuFileBatchIOSubmit(handle, ENTRIES, params, 0).err &&
	    !cuFileBatchIOGetStatus(handle, ENTRIES, &nr, events, NULL).err)
		for (unsigned i = 0; i < nr; i++)
			good += events[i].ret == size;
	cuFileBatchIODestroy(handle);
	return good == ENTRIES;
}

struct attempt {
	struct th_pair *w;
	struct watch watch;
	bool (*run)(struct th_pair *w, bool write);
	bool write, done;
};

static void run_or_look(void *arg, unsigned i)
{
	struct attempt *a = arg;

	if (i) {
		look(&a->watch);
		return;
	}
	while (!atomic_load(&a->watch.ready))
		sched_yield();
	a->done = a->run(a->w, a->write);
	atomic_store(&a->watch.over, true);
}

/* The same once more is right: nothing of the failure is left. */
static void is_right(struct attempt *a)
{
	struct th_pair *w = a->w;

	assert_true(a->run(w, a->write));
	if (a->write)
		th_file_get(&w->file, 0, w->got, w->size);
	else
		th_mem_get(&w->mem, 0, w->got, w->size);
	th_equal("the bytes", w->got, w->bytes, w->size);
}

/*
 * delay_ms: of each copy, so late at the least is a slot back. False: on a
 * busy machine it was out and back before anybody looked.
 */
static bool fail_and_look(struct attempt *a, const char *plan,
			  unsigned delay_ms)
{
	uint64_t start;

	th_fake()->copy_delay_us(delay_ms * 1000);
	assert_int_equal(th_fake()->plan(plan), 0);
	start = th_now_ns();
	th_threads(2, run_or_look, a);
	th_fake()->plan_clear();
	th_fake()->copy_delay_us(0);
	assert_false(a->done);
	if (!a->watch.back_ns)
		return false;
	assert_true(a->watch.back_ns - start >= delay_ms * 1000000ull);
	return true;
}

static void slots_stay_out(struct th_pair *w,
			   bool (*run)(struct th_pair *w, bool write),
			   bool write, size_t pool_size, const char *plan)
{
	struct attempt a = { .w = w, .run = run, .write = write };
	unsigned delay_ms = 150;

	if (write)
		th_mem_put(&w->mem, 0, w->bytes, w->size);
	/* what only a first one does is done */
	is_right(&a);
	a.watch.pool = cf_gpu_pool(cf_gpu_at(0), pool_size);
	while (!fail_and_look(&a, plan, delay_ms)) {
		delay_ms *= 3;
		assert_true(delay_ms < 10000);
		a.watch.ready = a.watch.over = false;
	}
	is_right(&a);
}

/* ----------------------------------------------------------------- tests */

static void after_a_small_read(void **state)
{
	struct th_pair w;

	world_make(&w, TH_BUFFERED, 60 * TH_KIB);
	slots_stay_out(&w, transfer, false, w.size,
		       "cuStreamSynchronize:1=999");
	th_pair_end(&w);
}

static void after_a_small_write(void **state)
{
	struct th_pair w;

	world_make(&w, TH_BUFFERED, 60 * TH_KIB);
	slots_stay_out(&w, transfer, true, w.size, "cuEventSynchronize:1=999");
	th_pair_end(&w);
}

static void after_a_read_that_several_carry(void **state)
{
	struct th_pair w;

	set_workers(3);
	world_make(&w, TH_BUFFERED, 3 * TH_MIB);
	slots_stay_out(&w, transfer, false, w.size,
		       "cuStreamSynchronize:1=999");
	th_pair_end(&w);
}

/* A ring's parts are in several slots, all but one of them its own. */
static void after_a_direct_read(void **state)
{
	struct th_pair w;

	world_make(&w, TH_ODIRECT, 12 * TH_MIB);
	if (!cf_rings_usable())
		th_skip("this machine refuses io_uring");
	slots_stay_out(&w, transfer, false, w.size, "cuEventRecord:2=999");
	th_pair_end(&w);
}

static void after_a_direct_write(void **state)
{
	struct th_pair w;

	world_make(&w, TH_ODIRECT, 12 * TH_MIB);
	if (!cf_rings_usable())
		th_skip("this machine refuses io_uring");
	slots_stay_out(&w, transfer, true, w.size, "cuEventSynchronize:1=999");
	/* the wait for a later copy shows nothing, either */
	slots_stay_out(&w, transfer, true, w.size, "cuEventSynchronize:*=999");
	th_pair_end(&w);
}

static void after_entries_of_a_batch(bool write, const char *plan)
{
	struct th_pair w;

	setenv("OCF_BATCH_KERNEL", "0", 1);
	world_make(&w, TH_BUFFERED, ENTRIES * 4 * TH_KIB);
	slots_stay_out(&w, batch, write, w.size, plan);
	th_pair_end(&w);
	unsetenv("OCF_BATCH_KERNEL");
}

static void after_reads_of_a_batch_that_share_a_slot(void **state)
{
	after_entries_of_a_batch(false, "cuStreamSynchronize:1=999");
}

/* The first one is the order behind the default streams. */
static void after_writes_of_a_batch_that_share_a_slot(void **state)
{
	after_entries_of_a_batch(true, "cuStreamSynchronize:2=999");
}

#define TEST(name) cmocka_unit_test_teardown(name, th_teardown_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(after_a_small_read),
		TEST(after_a_small_write),
		TEST(after_a_read_that_several_carry),
		TEST(after_a_direct_read),
		TEST(after_a_direct_write),
		TEST(after_reads_of_a_batch_that_share_a_slot),
		TEST(after_writes_of_a_batch_that_share_a_slot),
	};

	th_start(120);
	return th_finish(cmocka_run_group_tests_name(
		"slots stay out until copies are over", tests, NULL, NULL));
}

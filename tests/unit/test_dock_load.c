// SPDX-License-Identifier: Apache-2.0
/*
 * dock_load - how long a lease waits for what it would load, and that nobody
 * is lent anything meanwhile. Time is the test's: looks at the clock and naps
 * move it, or it stands still.
 */
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>
#include "core/context.h"
#include "core/quiet.h"
#include "engine/dock_internal.h"
#include "engine/sop.h"
#include "harness.h"
#include "seam/os.h"

#define MS ((int64_t)1000 * 1000)
#define LONG (500 * MS) /* a first wait */
#define TRIES 1000

static struct cf_cuda *cuda, real;
static struct cf_os os;
static CUcontext ctx;
static unsigned long long id;
static CUstream stream;
static struct th_mem word; /* that it waits for */

/* Seen from outside, or the linker of a sanitizer does not find them. */
#pragma GCC visibility push(default)
int __real_nanosleep(const struct timespec *ts, struct timespec *left);
int __wrap_nanosleep(const struct timespec *ts, struct timespec *left);
#pragma GCC visibility pop

int __wrap_nanosleep(const struct timespec *ts, struct timespec *left)
{
	if (cf_os != &os || !th_clock_look_ns)
		return __real_nanosleep(ts, left);
	atomic_fetch_add(&th_clock_ns, ts->tv_nsec);
	return sched_yield();
}

static int begin(void **state)
{
	(void)state;
	(void)th_need_fake();
	th_open();
	cuda = (struct cf_cuda *)cf_cuda_loaded();
	real = *cuda;
	ctx = th_primary();
	id = cf_context_id(cuda, ctx);
	assert_int_equal(cuStreamCreate(&stream, CF_CU_STREAM_NON_BLOCKING), 0);
	os = cf_os_real;
	os.clock_gettime = th_clock;
	th_clock_look_ns = 1000;
	cf_os = &os;
	return 0;
}

static void hold(void)
{
	CUdeviceptr gpu;

	th_mem_alloc(&word, TH_PINNED, sizeof(uint32_t));
	*(uint32_t *)word.ptr = 0;
	assert_int_equal(cuda->mem_host_get_device_pointer(&gpu, word.ptr, 0),
			 0);
	assert_int_equal(cuda->stream_wait_value32(stream, gpu, 1, 0), 0);
}

static void let_go(void)
{
	if (!word.ptr)
		return;
	__atomic_store_n((uint32_t *)word.ptr, 1, __ATOMIC_RELEASE);
	assert_int_equal(cuStreamSynchronize(stream), 0);
	th_mem_free(&word);
	word.ptr = NULL;
}

static int end(void **state)
{
	cf_os = &cf_os_real;
	*cuda = real;
	let_go();
	assert_int_equal(cuStreamDestroy(stream), 0);
	return th_teardown_close(state);
}

struct lent {
	bool ferry, near;
	int64_t took;
	struct cf_dock *dock;
};

static struct lent lend(bool may_load)
{
	int64_t begun = th_clock_ns;
	struct lent lent = { false };
	struct cf_sop *sop;

	if (cf_dock_lease(ctx, id, may_load, &sop))
		return lent;
	lent = (struct lent){ sop->ferry.board, sop->ferry.near,
			      th_clock_ns - begun, sop->dock };
	sop->ferried = false;
	atomic_store(&sop->words->passed, sop->ticket);
	cf_dock_give_back(sop);
	return lent;
}

/* And for each of the times after that, a moment, or not at all. */
static void a_busy_context_is_waited_for_at_length_once(void **state)
{
	struct lent lent;
	int tries = 0;

	(void)state;
	hold();
	lent = lend(true);
	assert_false(lent.ferry);
	assert_in_range(lent.took, LONG, 2 * LONG);
	lent = lend(true);
	assert_false(lent.ferry);
	assert_in_range(lent.took, 0, MS / 2);
	atomic_fetch_add(&th_clock_ns, CF_QUIET_REST_NS);
	lent = lend(true);
	assert_false(lent.ferry);
	assert_in_range(lent.took, CF_QUIET_PATIENCE_NS, LONG / 10);
	let_go();
	do {
		assert_in_range(++tries, 1, TRIES);
		atomic_fetch_add(&th_clock_ns, CF_QUIET_MAX_REST_NS);
	} while (!lend(true).ferry);
}

static atomic_uint waits, loads;

static CUresult wait_and_count(CUstream s, CUdeviceptr addr, uint32_t value,
			       unsigned flags)
{
	atomic_fetch_add(&waits, 1);
	return real.stream_wait_value32(s, addr, value, flags);
}

static CUresult load_and_count(CUmodule *module, const void *image)
{
	atomic_fetch_add(&loads, 1);
	return real.module_load_data(module, image);
}

/* It would be tried in the probe, which has nothing to do but what is put into
 * it to find out. */
static void a_probe_that_is_held_up_is_waited_for_once(void **state)
{
	struct lent lent;
	unsigned before;
	int tries = 0;

	(void)state;
	cuda->module_load_data = load_and_count;
	cuda->stream_wait_value32 = wait_and_count;
	atomic_store(&loads, 0);
	cf_dock_prepare(cuda, ctx, id);
	lent = lend(false);
	assert_true(lent.ferry);
	assert_int_equal(cuStreamSynchronize(lent.dock->probe), 0);
	th_fake()->channels(1); /* one stream holds up all */
	hold();
	lent = lend(true);
	assert_false(lent.near);
	assert_in_range(lent.took, LONG, 2 * LONG);
	before = waits;
	for (int i = 0; i < 3; i++) {
		lent = lend(true);
		assert_true(lent.ferry);
		assert_false(lent.near);
		assert_in_range(lent.took, 0, MS / 2);
	}
	assert_int_equal(waits, before);
	let_go();
	do {
		assert_in_range(++tries, 1, TRIES);
		assert_int_equal(cuStreamSynchronize(lent.dock->probe), 0);
	} while (!lend(true).near);
	/* and there is nothing more to load */
	cf_dock_prepare(cuda, ctx, id);
	assert_int_equal(loads, 1);
	assert_int_equal(th_fake()->live("vmm_map"), 1);
	th_fake()->channels(0);
}

static atomic_bool loading, other_has_one;

/* Until another had time enough to be lent one. */
static void stay_a_while(void)
{
	atomic_store(&loading, true);
	for (int i = 0; i < 100 && !atomic_load(&other_has_one); i++)
		usleep(1000);
}

static CUresult load_long(CUmodule *module, const void *image)
{
	stay_a_while();
	return real.module_load_data(module, image);
}

static CUresult make_long(CUmemGenericAllocationHandle *handle, size_t size,
			  const CUmemAllocationProp *prop,
			  unsigned long long flags)
{
	stay_a_while();
	return real.mem_create(handle, size, prop, flags);
}

static struct lent lents[2];

static void lend_while_it_loads(void *arg, unsigned i)
{
	(void)arg;
	th_thread_gpu();
	while (i && !atomic_load(&loading))
		usleep(100);
	lents[i] = lend(!i);
	if (i)
		atomic_store(&other_has_one, true);
}

static void lend_two(void)
{
	atomic_store(&loading, false);
	atomic_store(&other_has_one, false);
	th_threads(2, lend_while_it_loads, NULL);
	*cuda = real;
}

/* It would wait for a copy that the loader keeps out, or have another board
 * than its kernel looks at. */
static void nobody_is_lent_one_while_another_loads(void **state)
{
	(void)state;
	th_clock_look_ns = 0;
	cuda->module_load_data = load_long;
	lend_two();
	assert_true(loading && lents[0].ferry && lents[1].ferry);
	th_close();

	th_open();
	cf_dock_prepare(cuda, ctx, id);
	assert_true(lend(false).ferry);
	cuda->mem_create = make_long;
	lend_two();
	assert_true(loading && lents[0].near && lents[1].near);
}

static struct cf_dock *near_dock(void)
{
	struct lent lent = lend(true);

	for (int tries = 1; !lent.near; tries++) {
		assert_in_range(tries, 1, TRIES);
		atomic_fetch_add(&th_clock_ns, CF_QUIET_MAX_REST_NS);
		lent = lend(true);
	}
	return lent.dock;
}

/* The board's orders and the holds, then the slots, then what tells whether it
 * is the GPU's yet. */
static void what_it_has_lies_apart(void **state)
{
	const struct cf_dock *dock;
	const char *slots, *words;

	(void)state;
	th_clock_look_ns = 0;
	dock = near_dock();
	slots = dock->slots.mem;
	words = (const char *)dock->fresh.near;
	assert_true(slots >= dock->aperture.mem + CF_CHUNK_NEAR);
	assert_true(words >= slots + CF_NEAR_SLOTS * CF_NEAR_SLOT);
	assert_true(words + sizeof(*dock->fresh.near) <=
		    dock->aperture.mem + dock->aperture.size);
}

static CUresult no_memory(CUmemGenericAllocationHandle *handle, size_t size,
			  const CUmemAllocationProp *prop,
			  unsigned long long flags)
{
	(void)handle, (void)size, (void)prop, (void)flags;
	return CF_CU_OUT_OF_MEMORY;
}

static void without_another_the_stale_one_is_not_used(void **state)
{
	struct cf_dock *dock;

	(void)state;
	th_clock_look_ns = 0;
	dock = near_dock();
	dock->stale = true;
	dock->neared = false;
	cuda->mem_create = no_memory;
	for (int i = 0; i < TRIES && !dock->neared; i++)
		assert_false(lend(true).near);
	assert_true(dock->neared);
	assert_int_equal(th_fake()->live("vmm_map"), 0);
}

/* And who leases what is home finds no way there. */
static void a_context_that_is_gone_leaves_what_is_out(void **state)
{
	struct cf_sop *out, *late;
	uint32_t ticket;
	CUcontext gone;

	(void)state;
	th_clock_look_ns = 0;
	assert_int_equal(cuCtxCreate_v2(&gone, 0, 0), 0);
	ctx = gone;
	id = cf_context_id(cuda, gone);
	(void)near_dock();
	cf_docks_strip(cuda);
	assert_true(lend(false).near);
	assert_int_equal(cf_dock_lease(gone, id, false, &out), 0);
	ticket = out->ticket;
	out->ferried = false;
	assert_int_equal(cuCtxDestroy(gone), 0);
	th_need_gpu();
	cf_docks_strip(cuda);
	assert_int_equal(out->ticket, ticket);
	assert_int_equal(th_fake()->live("vmm_map"), 1);
	atomic_store(&out->words->passed, ticket);
	cf_dock_give_back(out);
	cuda->ctx_get_id = NULL; /* another may have that handle */
	cf_docks_strip(cuda);
	assert_int_equal(th_fake()->live("vmm_map"), 1);
	cuda->ctx_get_id = real.ctx_get_id;
	cf_docks_strip(cuda);
	assert_int_equal(th_fake()->live("vmm_map"), 0);
	assert_int_equal(cf_dock_lease(gone, id, false, &late), 0);
	assert_null(late->ferry.near);
	assert_null(late->dock->aperture.mem);
	atomic_store(&late->words->passed, late->ticket);
	cf_dock_give_back(late);
}

static CUresult does_not_say(CUcontext context, unsigned long long *to)
{
	(void)context, (void)to;
	return CF_CU_UNKNOWN;
}

/* Streams would wait for ever at pages that the CPU has given up. */
static void an_error_does_not_say_that_a_context_is_gone(void **state)
{
	struct cf_dock *dock;

	(void)state;
	th_clock_look_ns = 0;
	dock = near_dock();
	cuda->ctx_get_id = does_not_say;
	cf_docks_strip(cuda);
	cuda->ctx_get_id = real.ctx_get_id;
	assert_false(dock->bare);
	assert_int_equal(th_fake()->live("vmm_map"), 1);
	assert_true(lend(false).near);
}

static void one_question_that_fails_does_not_say_it_is_broken(void **state)
{
	static const char *const calls[] = { "cuCtxGetId",
					     "cuCtxPushCurrent_v2",
					     "cuStreamQuery" };
	struct cf_dock *dock;
	char plan[64];

	(void)state;
	th_clock_look_ns = 0;
	dock = near_dock();
	for (unsigned i = 0; i < 3; i++) {
		snprintf(plan, sizeof(plan), "%s:1=999", calls[i]);
		assert_int_equal(th_fake()->plan(plan), 0);
		assert_true(cf_dock_alive(dock));
		th_fake()->plan_clear();
		snprintf(plan, sizeof(plan), "%s:*=999", calls[i]);
		assert_int_equal(th_fake()->plan(plan), 0);
		assert_false(cf_dock_alive(dock));
		th_fake()->plan_clear();
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_busy_context_is_waited_for_at_length_once),
		TEST(a_probe_that_is_held_up_is_waited_for_once),
		TEST(nobody_is_lent_one_while_another_loads),
		TEST(what_it_has_lies_apart),
		TEST(without_another_the_stale_one_is_not_used),
		TEST(a_context_that_is_gone_leaves_what_is_out),
		TEST(an_error_does_not_say_that_a_context_is_gone),
		TEST(one_question_that_fails_does_not_say_it_is_broken),
	};

	setenv("FAKECUDA_VERSION", "13030", 0);
	th_start(60);
	return th_finish(
		cmocka_run_group_tests_name("dock_load", tests, NULL, NULL));
}

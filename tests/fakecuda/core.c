// SPDX-License-Identifier: Apache-2.0
/*
 * core - the fake driver as a whole: its lock, its door, its beginning, its
 * end, and what becomes of it in a forked child.
 *
 * A child of an initialised process answers NOT_INITIALIZED to everything, as
 * the real driver does; a child of a process that never called cuInit starts
 * fresh.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

struct fc_globals fc = { .lock = PTHREAD_MUTEX_INITIALIZER };
__thread struct fc_thread fc_self;

static pthread_once_t start_once = PTHREAD_ONCE_INIT;
static atomic_ulong next_thread_id;

void fc_lock(void)
{
	pthread_mutex_lock(&fc.lock);
}

void fc_unlock(void)
{
	pthread_mutex_unlock(&fc.lock);
}

uint64_t fc_thread_id(void)
{
	if (!fc_self.id)
		fc_self.id = atomic_fetch_add(&next_thread_id, 1) + 1;
	return fc_self.id;
}

uint64_t fc_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void *fc_zalloc(size_t size)
{
	void *p = calloc(1, size ? size : 1);

	if (!p)
		abort(); /* a test machine without memory has no answer */
	return p;
}

static unsigned long env_number(const char *name, unsigned long fallback)
{
	const char *s = getenv(name);

	return s && *s ? strtoul(s, NULL, 0) : fallback;
}

/* What fakecuda_reset returns to. */
void fc_env_defaults(void)
{
	const char *plan = getenv("FAKECUDA_PLAN");

	fc.nr_gpus = (int)env_number("FAKECUDA_GPUS", 1);
	if (fc.nr_gpus > FC_MAX_GPUS)
		fc.nr_gpus = FC_MAX_GPUS;
	fc.gpu_mem = (uint64_t)env_number("FAKECUDA_MEM_MIB", 16384) << 20;
	fc.reuse_handles = env_number("FAKECUDA_REUSE_HANDLES", 0);
	fc.no_dmabuf = !env_number("FAKECUDA_DMABUF", 1);
	fc.launches_wait = env_number("CUDA_LAUNCH_BLOCKING", 0);
	fc.coherent = env_number("FAKECUDA_COHERENT", 0);
	fc.version = (int)env_number("FAKECUDA_VERSION", 13000);
	fc.compute = (int)env_number("FAKECUDA_COMPUTE", 90);
	fc.memory = getenv("FAKECUDA_MEMORY");
	fc.report = env_number("FAKECUDA_REPORT", 0);
	fc.strict = env_number("FAKECUDA_STRICT", 0);
	fc.abort_on_complaint = env_number("FAKECUDA_ABORT", 0);
	atomic_store(&fc.writes_ordering, 100);
	atomic_store(&fc.flush_options, 1);
	atomic_store(&fc.stream_depth, 0);
	atomic_store(&fc.stream_full, 0);
	atomic_store(&fc.idle_calls, env_number("FAKECUDA_IDLE_CALLS", 0));
	atomic_store(&fc.channels,
		     (unsigned int)env_number("FAKECUDA_CHANNELS", 0));
	atomic_store(&fc.copy_delay_us,
		     (unsigned int)env_number("FAKECUDA_COPY_DELAY_US", 0));
	atomic_store(&fc.legacy_delay_us,
		     (unsigned int)env_number("FAKECUDA_LEGACY_DELAY_US", 0));
	if (plan && fakecuda_plan(plan))
		fprintf(stderr, "fakecuda: FAKECUDA_PLAN is no plan: %s\n",
			plan);
}

static void before_fork(void)
{
	fc_lock();
}

static void after_fork_parent(void)
{
	fc_unlock();
}

static void after_fork_child(void)
{
	atomic_store(&fc.forked, atomic_load(&fc.inited));
	fc_unlock();
}

static void start(void)
{
	fc_env_defaults();
	pthread_atfork(before_fork, after_fork_parent, after_fork_child);
	if (env_number("FAKECUDA_DEINIT_AT_EXIT", 0))
		atexit(fakecuda_deinit);
}

/*
 * Every driver call comes through here: returns what the call must answer, or
 * 0 where it may go on.
 */
int fc_enter(struct fc_call *call, unsigned int how)
{
	int planned;

	if (atomic_load(&fc.forked))
		return CF_CU_NOT_INITIALIZED;
	pthread_once(&start_once, start);
	if (atomic_load(&fc.gone)) {
		atomic_fetch_add(&fc.late_calls, 1);
		return CF_CU_DEINITIALIZED;
	}
	fc_self.op_delay_us = 0;
	planned = fc_plan_answer(call, &fc_self.op_delay_us);
	if (planned)
		return planned;
	if (!(how & FC_BEFORE_INIT) && !atomic_load(&fc.inited))
		return CF_CU_NOT_INITIALIZED;
	if (fc_self.in_host_fn && !(how & FC_BEFORE_INIT)) {
		fc_complain("%s called from a host function", call->name);
		return CF_CU_NOT_PERMITTED;
	}
	if (!atomic_load(&fc.idle_calls) || how & (FC_BEFORE_INIT | FC_PASS))
		return 0;
	return FC_LOCKED(fc_idle_door());
}

static int init_locked(void)
{
	if (fc.nr_gpus == 0)
		return CF_CU_NO_DEVICE;
	if (!atomic_load(&fc.inited))
		fc.pid = (int)getpid();
	atomic_store(&fc.inited, true);
	return 0;
}

CUresult cuInit(unsigned int flags)
{
	FC_ENTER(FC_BEFORE_INIT);
	if (flags)
		return (int)CF_CU_INVALID_VALUE;
	return FC_LOCKED(init_locked());
}

void fakecuda_deinit(void)
{
	fc_lock();
	atomic_store(&fc.gone, true);
	fc_ctx_wake_all(); /* who waits for a context to open */
	fc_unlock();
}

unsigned long fakecuda_late_calls(void)
{
	return atomic_load(&fc.late_calls);
}

void fakecuda_copy_delay_us(unsigned int us)
{
	pthread_once(&start_once, start);
	atomic_store(&fc.copy_delay_us, us);
}

void fakecuda_writes_ordering(int order, int flush_options)
{
	pthread_once(&start_once, start);
	atomic_store(&fc.writes_ordering, order);
	atomic_store(&fc.flush_options, flush_options);
}

void fakecuda_legacy_delay_us(unsigned int us)
{
	pthread_once(&start_once, start);
	atomic_store(&fc.legacy_delay_us, us);
}

void fakecuda_stream_depth(unsigned int nr)
{
	pthread_once(&start_once, start);
	atomic_store(&fc.stream_depth, nr);
}

unsigned long fakecuda_stream_full(void)
{
	return atomic_load(&fc.stream_full);
}

void fakecuda_channels(unsigned int nr)
{
	pthread_once(&start_once, start);
	fc_lock();
	atomic_store(&fc.channels, nr);
	fc_ctx_wake_all();
	fc_unlock();
}

void fakecuda_idle_calls(int on)
{
	pthread_once(&start_once, start);
	fc_lock();
	atomic_store(&fc.idle_calls, on);
	fc_ctx_wake_all();
	fc_unlock();
}

void fakecuda_reuse_handles(int on)
{
	pthread_once(&start_once, start);
	fc_lock();
	fc.reuse_handles = on;
	fc_unlock();
}

void fakecuda_reset(void)
{
	struct fc_ctx *c;

	pthread_once(&start_once, start);
	fc_lock();
	fc_primary_reset();
	for (c = fc_ctx_all(); c; c = c->next)
		if (!atomic_load(&c->dead))
			fc_ctx_kill(c);
	fc_vmm_reset();
	fc_range_retire_of(NULL);
	fc_pool_reset();
	fc_graph_reset();
	fc_user_reset();
	memset(&fc_self, 0, sizeof(fc_self));
	atomic_store(&fc.gone, false);
	atomic_store(&fc.late_calls, 0);
	fc_unlock();
	fakecuda_plan_clear();
	fc_plan_reset();
	fc_env_defaults();
	fakecuda_complaints_clear();
}

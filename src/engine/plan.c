// SPDX-License-Identifier: Apache-2.0
/*
 * plan - the numbers behind the parallelism, in one place.
 *
 * A cached read is bound by the kernel's copy out of the page cache, about
 * 10 GB/s a thread, so it is spread. Its parts are as few as keep everybody
 * busy, because the driver takes one copy at a time in and threads that ask
 * together wait for each other. Requests that run side by side fill the link
 * as they are; only large ones still share what helpers there are. A buffered
 * write holds the inode's lock, so one thread writes while its copies run
 * ahead. A disk wants a few large requests at once.
 */
#include "engine/plan.h"

#include <sched.h>
#include <stdatomic.h>
#include "core/file.h"
#include "engine/worker.h"

#define KIB (1ul << 10)
#define MIN_STEP (64 * KIB)
#define MIN_SHARE (256 * KIB)	 /* of a cached read, for one carrier */
#define CROWD_SPLIT (8192 * KIB) /* from here on also beside others */
#define DIRECT_STEP (1024 * KIB)
#define DIRECT_CARRIERS 4
#define MAX_HOST_STEP (4096 * KIB)
#define AUTO_WORKERS 12
#define AUTO_HELPERS 8 /* of one request; more do not fill the link fuller */
#define AUTO_SLOT (4096 * KIB)
#define MAX_SHARE (1024 * KIB) /* of a part, where the link is ours alone */

/* Relaxed: a request that is under way may still use the old ones. */
static _Atomic unsigned max_workers;
static _Atomic unsigned max_helpers; /* of one request */
static _Atomic size_t split_from;
static _Atomic size_t max_step;

static unsigned cpus(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set))
		return 1;
	return (unsigned)CPU_COUNT(&set);
}

/*
 * NVIDIA ships its defaults as a file, so a value that says no more than the
 * default does is nobody's wish; it leaves the choice to us.
 */
static bool is_default(const struct cf_config *config, enum cf_cfg id)
{
	return cf_config_size(config, id) == cf_config_default(id);
}

static unsigned least(uint64_t a, uint64_t b)
{
	return (unsigned)(a < b ? a : b);
}

/* Three quarters of the processors, unless somebody asked for a number. */
static unsigned workers_allowed(const struct cf_config *config)
{
	if (!cf_config_bool(config, CF_CFG_PARALLEL_IO))
		return 0;
	if (!is_default(config, CF_CFG_MAX_IO_THREADS))
		return (unsigned)cf_config_size(config, CF_CFG_MAX_IO_THREADS);
	return least(cpus() * 3 / 4, AUTO_WORKERS);
}

static unsigned helpers_allowed(const struct cf_config *config)
{
	uint64_t carriers =
		cf_config_size(config, CF_CFG_MAX_REQUEST_PARALLELISM);

	if (is_default(config, CF_CFG_MAX_REQUEST_PARALLELISM))
		return AUTO_HELPERS;
	return carriers ? (unsigned)carriers - 1 : 0;
}

/* Below 2 * MIN_SHARE a helper would come too late. */
static size_t split_allowed(const struct cf_config *config)
{
	if (is_default(config, CF_CFG_MIN_IO_THRESHOLD_SIZE_KB))
		return 2 * MIN_SHARE;
	return cf_config_size(config, CF_CFG_MIN_IO_THRESHOLD_SIZE_KB) * KIB;
}

static size_t power_below(size_t n)
{
	return n ? 1ul << (63 - __builtin_clzl(n)) : 1;
}

/*
 * The fewer copies, the less the driver's lock is fought over; so slots are
 * large unless somebody asked for a size.
 */
size_t cf_plan_slot_size(const struct cf_config *config)
{
	if (is_default(config, CF_CFG_PER_BUFFER_CACHE_SIZE_KB))
		return AUTO_SLOT;
	return cf_config_size(config, CF_CFG_PER_BUFFER_CACHE_SIZE_KB) * KIB;
}

void cf_plan_configure(const struct cf_config *config)
{
	unsigned workers = workers_allowed(config);

	cf_workers_configure(workers);
	atomic_store_explicit(&max_workers, workers, memory_order_relaxed);
	atomic_store_explicit(&max_helpers, helpers_allowed(config),
			      memory_order_relaxed);
	atomic_store_explicit(&split_from, split_allowed(config),
			      memory_order_relaxed);
	atomic_store_explicit(&max_step, power_below(cf_plan_slot_size(config)),
			      memory_order_relaxed);
}

static size_t clamp(size_t n, size_t low, size_t high)
{
	if (n > high)
		n = high;
	return n < low ? low : n;
}

/* What there is, shared by all who run now. */
static unsigned helpers_for(bool direct, unsigned company)
{
	unsigned nr =
		least(atomic_load_explicit(&max_workers, memory_order_relaxed) /
			      company,
		      atomic_load_explicit(&max_helpers, memory_order_relaxed));

	return direct ? least(nr, DIRECT_CARRIERS - 1) : nr;
}

static unsigned carriers_for(const struct cf_piece *piece, unsigned company)
{
	bool direct = cf_file_is_direct(piece->handle);
	size_t from = atomic_load_explicit(&split_from, memory_order_relaxed);

	if (company > 1 && from < CROWD_SPLIT)
		from = CROWD_SPLIT;
	/* whether a client's callbacks may run side by side is not known */
	if (piece->handle->fs_ops || piece->size < from)
		return 1;
	if (piece->op == CF_WRITE && !direct)
		return 1;
	return (unsigned)clamp(piece->size / (direct ? DIRECT_STEP : MIN_SHARE),
			       1, 1 + helpers_for(direct, company));
}

/*
 * One carrier cuts for the sake of overlap, unless the piece is small or one
 * of many: while it waits for its copy, the others read. Several take a part
 * each, or a few where the parts would be large.
 */
static size_t staged_step(const struct cf_piece *piece, unsigned carriers,
			  unsigned company)
{
	size_t slot = atomic_load_explicit(&max_step, memory_order_relaxed);
	size_t share = power_below(piece->size / carriers);

	if (cf_file_is_direct(piece->handle))
		return slot < DIRECT_STEP ? slot : DIRECT_STEP;
	if (carriers == 1) {
		if (company > 1 || piece->size < 2 * MIN_SHARE)
			return slot;
		share /= 2;
	}
	if (share > MAX_SHARE && company == 1)
		share = MAX_SHARE;
	return clamp(share, slot < MIN_STEP ? slot : MIN_STEP, slot);
}

static size_t host_step(const struct cf_piece *piece, unsigned carriers)
{
	if (carriers == 1)
		return power_below(SIZE_MAX);
	if (cf_file_is_direct(piece->handle))
		return DIRECT_STEP;
	return clamp(power_below(piece->size / carriers / 2), MIN_STEP,
		     MAX_HOST_STEP);
}

struct cf_plan cf_plan_make(const struct cf_piece *piece,
			    const struct cf_path_ops *path, unsigned company)
{
	unsigned carriers = carriers_for(piece, company);

	return (struct cf_plan){
		.step = path == &cf_path_staged ?
				staged_step(piece, carriers, company) :
				host_step(piece, carriers),
		.skew = (size_t)piece->file_off &
			(piece->handle->dio_align - 1),
		.helpers = carriers - 1,
	};
}

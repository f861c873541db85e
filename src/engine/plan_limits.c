// SPDX-License-Identifier: Apache-2.0
/* plan_limits - the configuration, and what it leaves to the machine. */
#include "engine/plan_limits.h"

#include "core/cache.h"
#include "core/cpus.h"
#include "core/file.h"
#include "core/log.h"
#include "core/numbers.h"
#include "core/quota.h"
#include "core/slabs.h"
#include "engine/worker.h"

#define KIB (1ul << 10)
#define MIB (1ul << 20)

#define DIRECT_CARRIERS 4
#define AUTO_WORKERS 12 /* of one GPU */
#define AUTO_HELPERS 9	/* of one request; more do not fill the link fuller */
#define MORE_TURNS 8	/* turns beyond the processors: some wait for a GPU */
#define AUTO_SLOT (4 * MIB)
#define SPLIT_FROM (256 * KIB) /* times the requests that run */
#define RING_FROM (2 * MIB)    /* below it one call keeps the disk busy */

struct cf_plan_bounds cf_plan_bounds;
static _Atomic uint32_t gpus[CF_NR_TEAMS]; /* a bit for each GPU seen */

static unsigned nr_cpus(void)
{
	struct cf_cpus cpus;
	unsigned nr = cf_cpus_of_process(&cpus) ? 1 : cf_cpus_count(&cpus);
	unsigned quota = cf_quota_cpus();

	if (quota >= nr)
		return nr;
	cf_log(CF_LOG_INFO,
	       "control groups leave the time of %u of %u processors", quota,
	       nr);
	return quota;
}

/*
 * NVIDIA ships its defaults as a file, so a value that says no more than the
 * default does is nobody's wish; it leaves the choice to us.
 */
static bool is_default(const struct cf_config *config, enum cf_cfg id)
{
	return cf_config_size(config, id) == cf_config_default(id);
}

/* Three quarters of the processors, unless somebody asked for a number. */
static unsigned workers_allowed(const struct cf_config *config, unsigned cpus)
{
	if (!cf_config_bool(config, CF_CFG_PARALLEL_IO))
		return 0;
	if (!is_default(config, CF_CFG_MAX_IO_THREADS))
		return (unsigned)cf_config_size(config, CF_CFG_MAX_IO_THREADS);
	return cf_least(cpus * 3 / 4, CF_TEAM_MAX);
}

/* Of one GPU: more would fill its link no better, and cost processor time. */
static unsigned gpu_workers_allowed(const struct cf_config *config,
				    unsigned workers)
{
	return is_default(config, CF_CFG_MAX_IO_THREADS) ?
		       cf_least(workers, AUTO_WORKERS) :
		       workers;
}

static unsigned helpers_allowed(const struct cf_config *config)
{
	uint64_t carriers =
		cf_config_size(config, CF_CFG_MAX_REQUEST_PARALLELISM);

	if (is_default(config, CF_CFG_MAX_REQUEST_PARALLELISM))
		return AUTO_HELPERS;
	return carriers ? (unsigned)carriers - 1 : 0;
}

static unsigned ferry_helpers_allowed(const struct cf_config *config,
				      unsigned workers)
{
	if (is_default(config, CF_CFG_MAX_REQUEST_PARALLELISM))
		return workers;
	return cf_least(workers, helpers_allowed(config));
}

/* A ring splits, too: a configured size from which to split holds for it. */
static size_t split_allowed(const struct cf_config *config, size_t ours)
{
	if (is_default(config, CF_CFG_MIN_IO_THRESHOLD_SIZE_KB))
		return ours;
	return cf_config_size(config, CF_CFG_MIN_IO_THRESHOLD_SIZE_KB) * KIB;
}

/* A configured size from which to split holds for brisk reads, too. */
static size_t brisk_allowed(const struct cf_config *config)
{
	return is_default(config, CF_CFG_MIN_IO_THRESHOLD_SIZE_KB) ?
		       SPLIT_FROM :
		       0;
}

/*
 * The fewer copies, the less the driver's lock is fought over; so slots are
 * large unless somebody asked for a size.
 */
size_t cf_plan_slot_size(const struct cf_config *config)
{
	struct cf_slabs slabs;

	if (cf_slabs_asked(config, &slabs))
		return slabs.slot;
	if (is_default(config, CF_CFG_PER_BUFFER_CACHE_SIZE_KB))
		return AUTO_SLOT;
	return cf_config_size(config, CF_CFG_PER_BUFFER_CACHE_SIZE_KB) * KIB;
}

size_t cf_plan_staging_bytes(const struct cf_config *config)
{
	struct cf_slabs slabs;

	/* the setter of a running driver has the last word */
	if (cf_config_source(config, CF_CFG_MAX_DEVICE_CACHE_SIZE_KB) !=
		    CF_CFG_FROM_RUNTIME &&
	    cf_slabs_asked(config, &slabs))
		return slabs.bytes;
	return cf_config_size(config, CF_CFG_MAX_DEVICE_CACHE_SIZE_KB) * KIB;
}

#define SET(name, value) \
	atomic_store_explicit(&cf_plan_bounds.name, value, memory_order_relaxed)

void cf_plan_configure(const struct cf_config *config)
{
	unsigned cpus = nr_cpus();
	unsigned most = workers_allowed(config, cpus);
	unsigned workers = gpu_workers_allowed(config, most);

	cf_workers_configure(workers);
	SET(most_workers, most);
	SET(gpu_workers, workers);
	for (int i = 0; i < CF_NR_TEAMS; i++) {
		atomic_store(&gpus[i], 0);
		SET(workers[i], workers);
	}
	SET(helpers, helpers_allowed(config));
	SET(ferry_helpers, ferry_helpers_allowed(config, workers));
	SET(cpus, cpus);
	SET(turns, cpus + MORE_TURNS);
	SET(split_from, split_allowed(config, SPLIT_FROM));
	SET(brisk_to, brisk_allowed(config));
	SET(ring_from, split_allowed(config, RING_FROM));
	SET(step, cf_power_below(cf_plan_slot_size(config)));
	SET(can_demote, cf_cache_can_demote());
	SET(may_flag, !cf_config_bool(config, CF_CFG_STREAM_MEMOPS_BYPASS));
}

/*
 * Each further GPU gets as many workers again. Its streams get a third of that:
 * their workers look for work while they have none, in the way of those that
 * carry.
 */
static unsigned workers_for(enum cf_team team, unsigned nr_gpus)
{
	unsigned one = cf_plan_bound(gpu_workers);
	unsigned more = team == CF_TEAM_STREAM ? one / 3 : one;

	return cf_least(one + (uint64_t)more * (nr_gpus - 1),
			cf_plan_bound(most_workers));
}

/* Another thread may note another GPU meanwhile: the last one has seen both. */
static void follow(enum cf_team team)
{
	uint32_t seen;

	do {
		unsigned workers;

		seen = atomic_load(&gpus[team]);
		workers = workers_for(team, (unsigned)__builtin_popcount(seen));
		SET(workers[team], workers);
		cf_workers_allow(team, workers);
	} while (seen != atomic_load(&gpus[team]));
}

uint32_t cf_plan_note_gpu(enum cf_team team, const struct cf_memory *mem)
{
	uint32_t bit;

	if (mem->kind == CF_MEMORY_HOST)
		return 0;
	bit = UINT32_C(1) << (unsigned)mem->ordinal % 32;
	if (!(atomic_load_explicit(&gpus[team], memory_order_relaxed) & bit)) {
		atomic_fetch_or(&gpus[team], bit);
		follow(team);
	}
	return bit;
}

unsigned cf_plan_helpers_for(const struct cf_piece *piece,
			     struct cf_company company)
{
	enum cf_team team = piece->ferry ? CF_TEAM_STREAM : CF_TEAM_IO;
	unsigned of_all = cf_plan_bound(workers[team]) / company.all;
	unsigned of_gpu = cf_plan_bound(gpu_workers) / company.here;
	unsigned nr =
		cf_least(cf_least(of_all, of_gpu), cf_plan_bound(helpers));

	return cf_file_is_direct(piece->handle, piece->via) ?
		       cf_least(nr, DIRECT_CARRIERS - 1) :
		       nr;
}

struct cf_plan_limits cf_plan_limits(void)
{
	unsigned workers = cf_plan_bound(workers[CF_TEAM_IO]);

	return (struct cf_plan_limits){
		.workers = workers,
		.carriers = 1 + cf_least(workers, cf_plan_bound(helpers)),
		.split_from = cf_plan_bound(split_from),
	};
}

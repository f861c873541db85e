// SPDX-License-Identifier: Apache-2.0
/* plan_limits - the configuration, and what it leaves to the machine. */
#include "engine/plan_limits.h"

#include "core/cache.h"
#include "core/cpus.h"
#include "core/numbers.h"
#include "core/slabs.h"
#include "engine/worker.h"

#define KIB (1ul << 10)
#define MIB (1ul << 20)

#define DIRECT_CARRIERS 4
#define AUTO_WORKERS 12
#define AUTO_HELPERS 9 /* of one request; more do not fill the link fuller */
#define MORE_TURNS 8   /* than processors: some wait for the GPU */
#define AUTO_SLOT (4 * MIB)
#define SPLIT_FROM (256 * KIB) /* for each request that runs */
#define RING_FROM (2 * MIB)    /* below, one call keeps the disk busy */

struct cf_plan_bounds cf_plan_bounds;

static unsigned nr_cpus(void)
{
	struct cf_cpus cpus;

	return cf_cpus_of_process(&cpus) ? 1 : cf_cpus_count(&cpus);
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
	return cf_least(cpus * 3 / 4, AUTO_WORKERS);
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

static size_t split_allowed(const struct cf_config *config)
{
	if (is_default(config, CF_CFG_MIN_IO_THRESHOLD_SIZE_KB))
		return SPLIT_FROM;
	return cf_config_size(config, CF_CFG_MIN_IO_THRESHOLD_SIZE_KB) * KIB;
}

/* Who has said from where to split has it so. */
static size_t brisk_allowed(const struct cf_config *config)
{
	return is_default(config, CF_CFG_MIN_IO_THRESHOLD_SIZE_KB) ?
		       SPLIT_FROM :
		       0;
}

/* A ring splits, too: from where somebody has asked for it. */
static size_t ring_allowed(const struct cf_config *config)
{
	if (is_default(config, CF_CFG_MIN_IO_THRESHOLD_SIZE_KB))
		return RING_FROM;
	return cf_config_size(config, CF_CFG_MIN_IO_THRESHOLD_SIZE_KB) * KIB;
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

	if (cf_slabs_asked(config, &slabs))
		return slabs.bytes;
	return cf_config_size(config, CF_CFG_MAX_DEVICE_CACHE_SIZE_KB) * KIB;
}

#define SET(name, value) \
	atomic_store_explicit(&cf_plan_bounds.name, value, memory_order_relaxed)

void cf_plan_configure(const struct cf_config *config)
{
	unsigned cpus = nr_cpus();
	unsigned workers = workers_allowed(config, cpus);

	cf_workers_configure(workers);
	SET(workers, workers);
	SET(helpers, helpers_allowed(config));
	SET(ferry_helpers, ferry_helpers_allowed(config, workers));
	SET(turns, cpus + MORE_TURNS);
	SET(split_from, split_allowed(config));
	SET(brisk_to, brisk_allowed(config));
	SET(ring_from, ring_allowed(config));
	SET(step, cf_power_below(cf_plan_slot_size(config)));
	SET(can_demote, cf_cache_can_demote());
	SET(may_flag, !cf_config_bool(config, CF_CFG_STREAM_MEMOPS_BYPASS));
}

unsigned cf_plan_helpers_for(bool direct, unsigned company)
{
	unsigned nr = cf_least(cf_plan_bound(workers) / company,
			       cf_plan_bound(helpers));

	return direct ? cf_least(nr, DIRECT_CARRIERS - 1) : nr;
}

struct cf_plan_limits cf_plan_limits(void)
{
	unsigned workers = cf_plan_bound(workers);

	return (struct cf_plan_limits){
		.workers = workers,
		.carriers = 1 + cf_least(workers, cf_plan_bound(helpers)),
		.split_from = cf_plan_bound(split_from),
	};
}

// SPDX-License-Identifier: Apache-2.0
/*
 * plan - the numbers behind the parallelism, in one place.
 *
 * A cached read is bound by the kernel's copy out of the page cache, about
 * 10 GB/s a thread, so it is spread, and the caller alone talks to the driver
 * (path/relay.c). What the cores have just written the GPU fetches slowly out
 * of their caches; small parts are demoted first (core/cache.h), which pays
 * as soon as the link is the bound. A very large read pushes its own parts
 * out. Requests that run side by side fill the link as they are; a few may
 * still share the helpers. A buffered write holds the inode's lock, so one
 * thread writes while its copies run ahead. A disk wants a few large requests
 * at once: one thread keeps them under way through io_uring, or a few threads
 * make one each.
 */
#include "engine/plan.h"

#include <limits.h>
#include <stdatomic.h>
#include "core/cache.h"
#include "core/cpus.h"
#include "core/file.h"
#include "core/ring.h"
#include "core/slabs.h"
#include "engine/worker.h"
#include "path/bundle.h"
#include "path/fleet.h"

#define KIB (1ul << 10)
#define MIB (1ul << 20)

#define MAPPED_STEP (4096 * KIB) /* the last one's check is waited for */
#define AUTO_WORKERS 12
#define AUTO_HELPERS 9 /* of one request; more do not fill the link fuller */
#define AUTO_SLOT (4 * MIB)

/* reads out of the page cache that several carry */
#define SPLIT_FROM (256 * KIB) /* for each request that runs */
#define FEW 4		       /* requests; of more only large ones are split */
#define CROWD_SPLIT (8 * MIB)
#define MIN_SHARE (32 * KIB) /* of one carrier */
#define SHARE_PARTS 4	     /* of a share, so that nobody waits long */
#define MIN_STEP (32 * KIB)
#define MAX_STEP (128 * KIB)
#define VERY_LARGE (128 * MIB)
#define LARGE_STEP (1 * MIB) /* with its source, what a core's cache holds */
/* orders of a ferry: what is short is cut to be several, what is long to have
 * the first one soon; a row is idle some 5 us between two */
#define FERRY_MIN_STEP (64 * KIB)
#define FERRY_STEP (128 * KIB)
#define FERRY_MAX_STEP (512 * KIB)
/* reads that one carries: alone in two halves, so that they overlap */
#define HALVE_FROM (512 * KIB)
#define MAX_HALF (1 * MIB)
#define FLAG_MAX (256 * KIB) /* longer copies are waited for with less ado */
#define DEMOTE_CROWD 8	     /* requests that make the link the bound */
#define DEMOTE_MAX (2 * MIB)

#define DIRECT_STEP (1 * MIB)
#define DIRECT_CARRIERS 4
#define RING_FROM (2 * MIB) /* below, one call keeps the disk busy */
#define RING_FLIGHTS 8
#define RING_MIN_STEP (512 * KIB)
#define RING_TOTAL 32 /* under way for all who run; more only queue up */
#define MIN_HOST_STEP (64 * KIB)
#define MAX_HOST_STEP (4 * MIB)

/* of an entry of a batch: a call, its bytes out of the page cache, a disk */
#define CALL_NS 700
#define BYTES_PER_NS 10
#define DISK_NS 100000
#define BUNDLE_DEMOTE (16 * KIB)
/* worth a wake and a launch; no longer than others should wait for its end */
#define FLEET_SMALL (128 * KIB)
#define FLEET_FLIGHTS 128      /* under way for one batch */
#define FLEET_BYTES (32 * MIB) /* the same; more only queue up */
#define FLEET_MIN_FLIGHTS 16   /* of a carrier that others help */
#define FLEET_CARRIERS 4       /* system calls side by side */
#define MIN_GROUP_NS 20000
#define MAX_GROUP_NS 100000

/* Relaxed: a request that is under way may still use the old ones. */
static _Atomic unsigned max_workers;
static _Atomic unsigned max_helpers; /* of one request */
static _Atomic size_t split_from;
static _Atomic size_t ring_from;
static _Atomic size_t max_step;
static _Atomic bool can_demote;
static _Atomic bool may_flag;

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
	return least(nr_cpus() * 3 / 4, AUTO_WORKERS);
}

static unsigned helpers_allowed(const struct cf_config *config)
{
	uint64_t carriers =
		cf_config_size(config, CF_CFG_MAX_REQUEST_PARALLELISM);

	if (is_default(config, CF_CFG_MAX_REQUEST_PARALLELISM))
		return AUTO_HELPERS;
	return carriers ? (unsigned)carriers - 1 : 0;
}

static size_t split_allowed(const struct cf_config *config)
{
	if (is_default(config, CF_CFG_MIN_IO_THRESHOLD_SIZE_KB))
		return SPLIT_FROM;
	return cf_config_size(config, CF_CFG_MIN_IO_THRESHOLD_SIZE_KB) * KIB;
}

/* A ring splits, too: from where somebody has asked for it. */
static size_t ring_allowed(const struct cf_config *config)
{
	if (is_default(config, CF_CFG_MIN_IO_THRESHOLD_SIZE_KB))
		return RING_FROM;
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

void cf_plan_configure(const struct cf_config *config)
{
	unsigned workers = workers_allowed(config);

	cf_workers_configure(workers);
	atomic_store_explicit(&can_demote, cf_cache_can_demote(),
			      memory_order_relaxed);
	atomic_store_explicit(
		&may_flag, !cf_config_bool(config, CF_CFG_STREAM_MEMOPS_BYPASS),
		memory_order_relaxed);
	atomic_store_explicit(&max_workers, workers, memory_order_relaxed);
	atomic_store_explicit(&max_helpers, helpers_allowed(config),
			      memory_order_relaxed);
	atomic_store_explicit(&split_from, split_allowed(config),
			      memory_order_relaxed);
	atomic_store_explicit(&ring_from, ring_allowed(config),
			      memory_order_relaxed);
	atomic_store_explicit(&max_step, power_below(cf_plan_slot_size(config)),
			      memory_order_relaxed);
}

struct cf_plan_limits cf_plan_limits(void)
{
	struct cf_plan_limits limits = {
		.workers = atomic_load_explicit(&max_workers,
						memory_order_relaxed),
		.split_from =
			atomic_load_explicit(&split_from, memory_order_relaxed),
	};

	limits.carriers = 1 + least(limits.workers,
				    atomic_load_explicit(&max_helpers,
							 memory_order_relaxed));
	return limits;
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

/* The smallest request that is split. */
static size_t least_split(bool direct, unsigned company)
{
	size_t from = atomic_load_explicit(&split_from, memory_order_relaxed);

	if (direct)
		return from > DIRECT_STEP ? from : 2 * DIRECT_STEP;
	if (company > FEW)
		return from > CROWD_SPLIT ? from : CROWD_SPLIT;
	return from * company;
}

static unsigned carriers_for(const struct cf_piece *piece, unsigned company)
{
	bool direct = cf_file_is_direct(piece->handle, piece->via);

	/* whether a client's callbacks may run side by side is not known */
	if (piece->handle->fs_ops || piece->size < least_split(direct, company))
		return 1;
	if (piece->op == CF_WRITE && !direct)
		return 1;
	return (unsigned)clamp(piece->size / (direct ? DIRECT_STEP : MIN_SHARE),
			       1, 1 + helpers_for(direct, company));
}

/*
 * Parts too large for a core's cache leave it by themselves, at less cost in
 * the long run; the first ones come later for it.
 */
static bool is_large(const struct cf_piece *piece, unsigned company)
{
	return piece->size >= VERY_LARGE || company > FEW ||
	       (company > 2 && piece->size >= CROWD_SPLIT);
}

/* Of several that run the rows have enough to do as it is. */
static size_t ferry_step(size_t size, unsigned company)
{
	size_t most = power_below(size / (company > 1 ? 32 : 64));

	return clamp(clamp(most, FERRY_STEP, FERRY_MAX_STEP), FERRY_MIN_STEP,
		     power_below(size / 4));
}

static size_t staged_step(const struct cf_piece *piece, unsigned carriers,
			  unsigned company)
{
	size_t slot = atomic_load_explicit(&max_step, memory_order_relaxed);
	size_t step = slot;

	if (piece->ferry && carriers > 1)
		step = ferry_step(piece->size, company);
	else if (cf_file_is_direct(piece->handle, piece->via))
		step = DIRECT_STEP;
	else if (carriers > 1 && is_large(piece, company))
		step = LARGE_STEP;
	else if (carriers > 1)
		step = clamp(power_below(piece->size / carriers / SHARE_PARTS),
			     MIN_STEP, MAX_STEP);
	else if (company == 1 && piece->size >= HALVE_FROM)
		step = clamp(power_below(piece->size / 2), 0, MAX_HALF);
	return step < slot ? step : slot;
}

static size_t host_step(const struct cf_piece *piece, unsigned carriers)
{
	if (carriers == 1)
		return power_below(SIZE_MAX);
	if (cf_file_is_direct(piece->handle, piece->via))
		return DIRECT_STEP;
	return clamp(power_below(piece->size / carriers / 2), MIN_HOST_STEP,
		     MAX_HOST_STEP);
}

static bool should_demote(const struct cf_piece *piece, unsigned carriers,
			  unsigned company)
{
	if (piece->op == CF_WRITE ||
	    !atomic_load_explicit(&can_demote, memory_order_relaxed))
		return false;
	if (carriers > 1)
		return !is_large(piece, company);
	return company >= DEMOTE_CROWD && piece->size <= DEMOTE_MAX;
}

/*
 * Of one part: one more call of the driver, which others would wait for. A
 * write has its event anyway, and gains nothing.
 */
static bool should_flag(const struct cf_piece *piece, unsigned carriers,
			unsigned company)
{
	return piece->op == CF_READ && carriers == 1 && company == 1 &&
	       piece->size <= FLAG_MAX &&
	       atomic_load_explicit(&may_flag, memory_order_relaxed);
}

/* Parts that wrote one page, each its way, would collide. */
static size_t skew_of(const struct cf_piece *piece)
{
	return (size_t)piece->file_off & (piece->handle->page_align - 1);
}

/* Memory and file are cut by blocks alike, so that all but edges go direct. */
static bool blocks_match(const struct cf_piece *piece)
{
	return !((piece->mem.addr ^ (uintptr_t)piece->file_off) &
		 (piece->handle->dio_align - 1));
}

/* What nvidia-fs does not carry, and it may be all, is staged. */
static bool uses_slots(const struct cf_path_ops *path)
{
	return path == &cf_path_staged || path == &cf_path_nvfs;
}

/* Small ones are cut finer, to be several at all. */
static size_t ring_step(const struct cf_piece *piece)
{
	size_t slot = atomic_load_explicit(&max_step, memory_order_relaxed);
	size_t step =
		clamp(power_below(piece->size / 4), RING_MIN_STEP, DIRECT_STEP);

	return step < slot ? step : slot;
}

/*
 * Parts that one carrier keeps under way through a ring, or 0. What is one
 * part gains nothing, and may have a slot that is smaller than a whole one.
 */
static unsigned flights_for(const struct cf_piece *piece,
			    const struct cf_path_ops *path, unsigned company)
{
	if (!cf_file_is_direct(piece->handle, piece->via) ||
	    piece->handle->fs_ops || piece->ferry ||
	    piece->size <
		    atomic_load_explicit(&ring_from, memory_order_relaxed) ||
	    piece->size <= ring_step(piece))
		return 0;
	/* an alias lies in its pages as the memory does */
	if (!uses_slots(path) &&
	    ((path != &cf_path_host && path != &cf_path_alias) ||
	     !blocks_match(piece)))
		return 0;
	if (!cf_rings_usable())
		return 0;
	return (unsigned)clamp(RING_TOTAL / company, 2, RING_FLIGHTS);
}

/* One thread keeps the link busy; parts do not cross from window to window. */
static struct cf_plan mapped_plan(const struct cf_piece *piece)
{
	size_t step = cf_windows_chunk();

	if (step > MAPPED_STEP)
		step = MAPPED_STEP;
	return (struct cf_plan){
		.step = step,
		.skew = (size_t)piece->file_off & (step - 1),
	};
}

struct cf_plan cf_plan_make(const struct cf_piece *piece,
			    const struct cf_path_ops *path, unsigned company)
{
	unsigned flights = flights_for(piece, path, company);
	unsigned carriers = flights ? 1 : carriers_for(piece, company);
	bool staged = uses_slots(path);

	if (flights)
		return (struct cf_plan){
			.step = ring_step(piece),
			.skew = skew_of(piece),
			.flights = flights,
		};
	if (path == &cf_path_mapped)
		return mapped_plan(piece);
	return (struct cf_plan){
		.step = staged ? staged_step(piece, carriers, company) :
				 host_step(piece, carriers),
		.skew = skew_of(piece),
		.helpers = carriers - 1,
		.demote = staged && should_demote(piece, carriers, company),
		.flagged = staged && should_flag(piece, carriers, company),
	};
}

unsigned cf_plan_cost_ns(const struct cf_piece *piece)
{
	uint64_t cost = CALL_NS + piece->size / BYTES_PER_NS;

	/* a client's own file system may take any time */
	if (cf_file_is_direct(piece->handle, piece->via) ||
	    piece->handle->fs_ops)
		cost += DISK_NS;
	return least(cost, UINT_MAX);
}

/* Tiny entries are bound by their calls, and not by the link. */
bool cf_plan_bundle_demotes(const struct cf_piece *piece)
{
	return piece->op == CF_READ && piece->size >= BUNDLE_DEMOTE &&
	       atomic_load_explicit(&can_demote, memory_order_relaxed);
}

size_t cf_plan_bundle_bytes(void)
{
	return clamp(atomic_load_explicit(&max_step, memory_order_relaxed), 0,
		     CF_BUNDLE_MAX_BYTES);
}

bool cf_plan_has_fleets(const struct cf_piece *piece)
{
	return cf_fleet_need(piece) <=
		       atomic_load_explicit(&max_step, memory_order_relaxed) &&
	       cf_rings_usable();
}

bool cf_plan_is_large(const struct cf_piece *piece)
{
	return piece->size > FLEET_SMALL;
}

/*
 * Small ones cost more of a thread than of the disk, so several threads ask
 * for them; of large ones one thread keeps any disk busy.
 */
struct cf_fleet_plan cf_plan_fleet(size_t need, unsigned nr)
{
	unsigned most = least(FLEET_BYTES / need, FLEET_FLIGHTS);
	unsigned flights = (unsigned)clamp(nr, 1, most ? most : 1);
	unsigned carriers = 1;

	if (need <= 2 * FLEET_SMALL)
		carriers = (unsigned)clamp(flights / FLEET_MIN_FLIGHTS, 1,
					   FLEET_CARRIERS);
	flights = (flights + carriers - 1) / carriers;
	return (struct cf_fleet_plan){ carriers, least(flights, CF_FLEET_MAX) };
}

/* One worker there always is, for what has no caller. */
unsigned cf_plan_carriers(unsigned long long cost_ns, unsigned nr)
{
	unsigned most =
		atomic_load_explicit(&max_workers, memory_order_relaxed);
	unsigned wanted = least(cost_ns / MIN_GROUP_NS + 1, nr);

	return least(wanted, most ? most : 1);
}

/* Halves what is left among all: large groups first, small ones at the end. */
unsigned long long cf_plan_group_ns(unsigned long long left_ns,
				    unsigned carriers)
{
	return clamp(left_ns / 2 / carriers, MIN_GROUP_NS, MAX_GROUP_NS);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * plan - the numbers behind the parallelism of a request; how long a part is
 * stands in engine/plan_step.c.
 *
 * A cached read is bound by the kernel's copy out of the page cache, about 10
 * GB/s a thread. So several threads share it, and the caller alone talks to the
 * driver (path/relay.c); engine/plan_cache.c says which bytes leave the caches
 * first. Requests that run side by side fill the link as they are; a few of
 * them may still share the helpers. A buffered write holds the inode's lock, so
 * one thread writes while its copies run ahead, but see engine/plan_spread.c. A
 * read whose pages the disk has to bring is one call, unless it is large
 * (core/cold.h). A disk wants a few large requests at once: one thread keeps
 * them under way through io_uring, or a few threads make one each.
 */
#include "engine/plan.h"

#include "core/file.h"
#include "core/near_slots.h"
#include "core/numbers.h"
#include "core/ring.h"
#include "core/shuttle.h"
#include "engine/plan_cache.h"
#include "engine/plan_limits.h"
#include "engine/plan_near.h"
#include "engine/plan_spread.h"
#include "engine/plan_step.h"

/* reads out of the page cache that several carry */
#define FEW 6		     /* requests; beside more only large are split */
#define MIN_SHARE (32 * KIB) /* bytes for one carrier */
/* reads that are split where workers are awake anyway */
#define BRISK_FROM (64 * KIB)
#define BRISK_WORKERS 3 /* fewer are no use */
/* reads whose pages are asked for (core/ahead.h) */
#define AHEAD_HELPERS 1
#define ALONE_MANY (16 * MIB) /* ferry or tmpfs: all workers carry it */
/* for each carrier of a ferry: more are in the way of its kernel's loads */
#define FERRY_SHARE (128 * KIB)
/* bytes of all reads that run: with more, others are held up at the BAR */
#define FERRY_NEAR (2 * MIB)
#define FERRY_NEAR_SLOTS 3 /* of a larger one that is alone, beside pinned */
/* reads that one carries */
#define FLAG_MAX (256 * KIB) /* longer copies are waited for with less ado */
#define EXPRESS_CROWD 4

#define RING_FLIGHTS 8
#define RING_TOTAL 32 /* flights of all requests; more only queue up */

/* The smallest request that is split. */
static size_t least_split(bool direct, unsigned company)
{
	size_t from = cf_plan_bound(split_from);

	if (direct)
		return from > CF_PLAN_DIRECT_STEP ? from :
						    2 * CF_PLAN_DIRECT_STEP;
	if (company > FEW)
		return from > CF_PLAN_CROWD_SPLIT ? from : CF_PLAN_CROWD_SPLIT;
	return from * company;
}

/* How many carriers would have enough to do. */
static size_t shares_of(const struct cf_piece *piece, bool direct)
{
	if (direct)
		return piece->size / CF_PLAN_DIRECT_STEP;
	if (piece->spread)
		return piece->size / cf_plan_spread_step(piece);
	if (piece->ferry)
		return cf_clamp(piece->size / FERRY_SHARE, 2, SIZE_MAX);
	return piece->size / MIN_SHARE;
}

/* Whether slots were configured smaller than a page: parts may share pages. */
static bool parts_tear_pages(const struct cf_piece *piece)
{
	return cf_plan_bound(step) < piece->handle->page_align;
}

/*
 * Where pages are asked for ahead two threads are enough: one asks while the
 * other waits for some.
 */
static unsigned helpers_of(const struct cf_piece *piece,
			   struct cf_company company)
{
	bool direct = cf_file_is_direct(piece->handle, piece->via);
	unsigned nr = cf_plan_helpers_for(piece, company);

	if (piece->ahead)
		return cf_least(nr, AHEAD_HELPERS);
	if ((piece->ferry || piece->spread) && !direct && company.here == 1 &&
	    piece->size >= ALONE_MANY)
		return cf_plan_bound(ferry_helpers);
	return nr;
}

static unsigned carriers_for(const struct cf_piece *piece,
			     struct cf_company company)
{
	bool direct = cf_file_is_direct(piece->handle, piece->via);

	if (piece->cold || piece->unhelped)
		return 1;
	if (piece->near)
		return cf_plan_near_carriers(piece, company);
	if (piece->brisk)
		return 1 +
		       (unsigned)cf_clamp(
			       (piece->size - 1) / cf_plan_brisk_step(piece), 0,
			       cf_plan_helpers_for(piece, company));
	/* whether a client's callbacks may run side by side is not known */
	if (piece->handle->fs_ops ||
	    piece->size < least_split(direct, company.here))
		return 1;
	if (piece->op == CF_WRITE && !piece->spread &&
	    (!direct || parts_tear_pages(piece)))
		return 1;
	return (unsigned)cf_clamp(shares_of(piece, direct), 1,
				  1 + helpers_of(piece, company));
}

/*
 * A flag costs one more call of the driver, which other requests would wait
 * for: so only for a request of one part that is alone. A write has its event
 * anyway, and gains nothing.
 */
static bool should_flag(const struct cf_piece *piece, unsigned carriers,
			unsigned company)
{
	return piece->op == CF_READ && carriers == 1 && company == 1 &&
	       piece->size <= FLAG_MAX && cf_plan_bound(may_flag);
}

/*
 * A warp moves 4 KiB in the time that the bus takes, and then the next 4 KiB:
 * so a larger read is quicker by a copy engine, unless other reads wait for
 * that, too.
 */
static bool may_go_express(const struct cf_piece *piece, unsigned carriers,
			   unsigned company)
{
	return piece->combine && piece->op == CF_READ && carriers == 1 &&
	       piece->size <= (company < EXPRESS_CROWD ? CF_PLAN_EXPRESS_ALONE :
							 CF_SHUTTLE_MAX_SIZE);
}

/* A read that is alone; of several, one comes soon after the other. */
static bool is_rare(const struct cf_piece *piece, unsigned company)
{
	return company == 1 &&
	       (piece->cold || cf_file_is_direct(piece->handle, piece->via));
}

bool cf_plan_can_ask(const struct cf_path_ops *path)
{
	return path == &cf_path_staged || path == &cf_path_host;
}

bool cf_plan_can_be_brisk(const struct cf_piece *piece,
			  const struct cf_path_ops *path)
{
	return path == &cf_path_staged && piece->op == CF_READ &&
	       piece->size >= BRISK_FROM &&
	       piece->size < cf_plan_bound(brisk_to) && !piece->ferry &&
	       cf_piece_is_buffered(piece) &&
	       cf_plan_bound(workers[CF_TEAM_IO]) >= BRISK_WORKERS;
}

/* The nvfs path stages what nvidia-fs does not carry, which may be all. */
static bool uses_slots(const struct cf_path_ops *path)
{
	return path == &cf_path_staged || path == &cf_path_nvfs;
}

/*
 * Parts that one carrier keeps under way through a ring, or 0. A piece of one
 * part gains nothing, and its slot may be smaller than a whole one.
 */
static unsigned flights_for(const struct cf_piece *piece,
			    const struct cf_path_ops *path, unsigned company)
{
	if (!cf_file_is_direct(piece->handle, piece->via) ||
	    piece->handle->fs_ops || piece->ferry ||
	    piece->size < cf_plan_bound(ring_from) ||
	    piece->size <= cf_plan_ring_step(piece))
		return 0;
	/* an alias lies in its pages as the memory does */
	if (!uses_slots(path) &&
	    ((path != &cf_path_host && path != &cf_path_alias) ||
	     !cf_piece_blocks_match(piece)))
		return 0;
	if (!cf_rings_suit(piece->handle) ||
	    (piece->op == CF_WRITE && parts_tear_pages(piece)))
		return 0;
	return (unsigned)cf_clamp(RING_TOTAL / company, 2, RING_FLIGHTS);
}

static unsigned near_slots_for(const struct cf_piece *piece, unsigned company)
{
	if (!piece->ferry || piece->op == CF_WRITE || piece->ahead)
		return 0;
	if (piece->size * company <= FERRY_NEAR)
		return CF_NEAR_SLOTS;
	return company == 1 ? FERRY_NEAR_SLOTS : 0;
}

/* One thread keeps the link busy; parts do not cross from window to window. */
static struct cf_plan mapped_plan(const struct cf_piece *piece)
{
	size_t step = cf_windows_chunk();

	return (struct cf_plan){
		.step = step,
		.skew = (size_t)piece->file_off & (step - 1),
	};
}

bool cf_plan_is_alone(const struct cf_piece *piece,
		      const struct cf_path_ops *path)
{
	return path == &cf_path_host &&
	       piece->size < cf_plan_bound(split_from) &&
	       piece->size < cf_plan_bound(ring_from);
}

struct cf_plan cf_plan_make(const struct cf_piece *piece,
			    const struct cf_path_ops *path,
			    struct cf_company company)
{
	unsigned flights = flights_for(piece, path, company.all);
	unsigned here = company.here;
	unsigned carriers = flights ? 1 : carriers_for(piece, company);
	bool staged = uses_slots(path);

	if (flights)
		return (struct cf_plan){
			.step = cf_plan_ring_step(piece),
			.skew = cf_plan_skew(piece),
			.flights = flights,
		};
	if (path == &cf_path_mapped)
		return mapped_plan(piece);
	return (struct cf_plan){
		.step = staged ? cf_plan_staged_step(piece, carriers, here) :
				 cf_plan_host_step(piece, carriers),
		.skew = cf_plan_skew(piece),
		.helpers = carriers - 1,
		.demote =
			staged ? cf_plan_demoted(piece, carriers, company) : 0,
		.past = staged && cf_plan_goes_past(piece, carriers, company),
		.flagged = staged && should_flag(piece, carriers, here),
		.express = staged && may_go_express(piece, carriers, here),
		.rare = is_rare(piece, here),
		.near_slots = near_slots_for(piece, here),
	};
}

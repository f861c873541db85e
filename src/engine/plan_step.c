// SPDX-License-Identifier: Apache-2.0
/*
 * plan_step - where a piece is cut.
 *
 * A part is long enough to be worth a call, and short enough that the first one
 * is soon on its way and nobody waits long for the last.
 */
#include "engine/plan_step.h"

#include "core/file.h"
#include "core/numbers.h"
#include "core/shuttle.h"
#include "core/slot.h"
#include "engine/plan_limits.h"
#include "engine/plan_spread.h"

/* reads out of the page cache that several carry */
#define SHARE_PARTS 4 /* in the share of one carrier */
#define MIN_STEP (32 * KIB)
#define MAX_STEP (128 * KIB)
#define CROWD_STEP (1 * MIB)  /* with its source, what a core's cache holds */
#define BRISK_STEP (16 * KIB) /* twice that from BRISK_LARGE on */
#define BRISK_LARGE (128 * KIB)
#define NEAR_STEP CF_SHUTTLE_MAX_SIZE
#define LARGE_STEP (512 * KIB)
#define AHEAD_STEP (512 * KIB)
/* orders of a ferry: a short piece is cut to have several, a long one to have
 * the first one soon; a block of the kernel is idle some 5 us between two */
#define FERRY_MIN_STEP (64 * KIB)
#define FERRY_STEP (128 * KIB)
#define FERRY_MAX_STEP (512 * KIB)
/* pieces of one carrier: two halves, if it is alone, so that they overlap; in a
 * write each is a call that takes the inode's lock */
#define HALVE_READ (512 * KIB)
#define HALVE_WRITE (1 * MIB)
#define MAX_HALF (1 * MIB)
#define RING_MIN_STEP (512 * KIB)
#define MIN_HOST_STEP (64 * KIB)
#define MAX_HOST_STEP (4 * MIB)

size_t cf_plan_brisk_step(const struct cf_piece *piece)
{
	return piece->size > BRISK_LARGE ? 2 * BRISK_STEP : BRISK_STEP;
}

/*
 * The parts of a crowd are too large for a core's cache and leave it by
 * themselves, which costs less than demoting; for that the first ones come
 * later.
 */
bool cf_plan_is_crowd(const struct cf_piece *piece, unsigned company)
{
	return company > 2 && piece->size >= CF_PLAN_CROWD_SPLIT;
}

static size_t relay_step(const struct cf_piece *piece, unsigned carriers,
			 unsigned company)
{
	if (piece->brisk)
		return cf_plan_brisk_step(piece);
	if (cf_plan_is_crowd(piece, company))
		return CROWD_STEP;
	if (piece->ahead)
		return AHEAD_STEP;
	if (piece->size >= CF_PLAN_LARGE)
		return LARGE_STEP;
	return cf_clamp(cf_power_below(piece->size / carriers / SHARE_PARTS),
			MIN_STEP, MAX_STEP);
}

/* Where several run, the kernel's blocks have enough to do as it is. */
static size_t ferry_step(size_t size, unsigned company)
{
	size_t most = cf_power_below(size / (company > 1 ? 32 : 64));

	return cf_clamp(cf_clamp(most, FERRY_STEP, FERRY_MAX_STEP),
			FERRY_MIN_STEP, cf_power_below(size / 4));
}

static size_t halve_from(const struct cf_piece *piece)
{
	return piece->op == CF_WRITE ? HALVE_WRITE : HALVE_READ;
}

size_t cf_plan_staged_step(const struct cf_piece *piece, unsigned carriers,
			   unsigned company)
{
	size_t slot = cf_plan_bound(step);
	size_t step = slot;

	if (piece->near)
		step = NEAR_STEP;
	else if (piece->spread)
		step = cf_plan_spread_step(piece);
	else if (piece->ferry && carriers > 1)
		step = ferry_step(piece->size, company);
	else if (cf_file_is_direct(piece->handle, piece->via))
		step = CF_PLAN_DIRECT_STEP;
	else if (carriers > 1)
		step = relay_step(piece, carriers, company);
	else if (company == 1 && !piece->cold &&
		 piece->size >= halve_from(piece))
		step = cf_clamp(cf_power_below(piece->size / 2), 0, MAX_HALF);
	return step < slot ? step : slot;
}

size_t cf_plan_host_step(const struct cf_piece *piece, unsigned carriers)
{
	if (carriers == 1)
		return cf_power_below(SIZE_MAX);
	if (piece->spread)
		return cf_plan_spread_step(piece);
	if (cf_file_is_direct(piece->handle, piece->via))
		return CF_PLAN_DIRECT_STEP;
	if (piece->ahead)
		return AHEAD_STEP;
	return cf_clamp(cf_power_below(piece->size / carriers / 2),
			MIN_HOST_STEP, MAX_HOST_STEP);
}

/*
 * Parts of a write that share a page, each written its own way, would collide.
 * Parts of a read begin in a slot where the one before ended, as blocks of the
 * file do.
 */
size_t cf_plan_skew(const struct cf_piece *piece)
{
	size_t align = piece->op == CF_WRITE ? piece->handle->page_align :
					       CF_SLOT_ALIGN;

	return (size_t)piece->file_off & (align - 1);
}

/* Small pieces are cut finer, to have several parts at all. */
size_t cf_plan_ring_step(const struct cf_piece *piece)
{
	size_t slot = cf_plan_bound(step);
	size_t step = cf_clamp(cf_power_below(piece->size / 4), RING_MIN_STEP,
			       CF_PLAN_DIRECT_STEP);

	return step < slot ? step : slot;
}

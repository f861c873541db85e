// SPDX-License-Identifier: Apache-2.0
/*
 * submission_sort - which entries travel alike, and how many may carry them.
 *
 * The kernel writes a file one call at a time, under its inode's lock. So two
 * workers are enough for buffered writes of one file: one is in that lock, and
 * the other gets the next bytes ready; more would only spin for it. Writes that
 * can be spread (core/spread.h) need no such lock where there are many.
 */
#include "core/numbers.h"
#include "core/spread.h"
#include "engine/plan_batch.h"
#include "engine/plan_limits.h"
#include "engine/plan_spread.h"
#include "engine/submission.h"
#include "path/convoy.h"

static bool is_plain(const struct cf_entry *entry)
{
	const struct cf_path_ops *path = entry->req.route.path;

	return path == &cf_path_staged || path == &cf_path_host;
}

static bool has_alias(const struct cf_entry *entry)
{
	return entry->req.route.path == &cf_path_alias;
}

static bool may_sail(const struct cf_entry *entry)
{
	const struct cf_piece *piece = &entry->req.piece;

	return (is_plain(entry) || has_alias(entry)) &&
	       cf_fleet_can(piece, has_alias(entry)) &&
	       cf_plan_has_fleets(piece);
}

static bool is_buffered_write(const struct cf_piece *piece)
{
	return piece->op == CF_WRITE && piece->size &&
	       cf_piece_is_buffered(piece);
}

/*
 * A mapped entry may be, too: small copies out of windows, one by one, are
 * slower than a bundle.
 */
static bool may_be_staged(const struct cf_route *route)
{
	return route->path == &cf_path_staged ||
	       (route->path == &cf_path_mapped &&
		cf_route_next(route) == &cf_path_staged);
}

/*
 * SERIAL because it is not known whether a client's callbacks may run side by
 * side. An entry that is alone gains nothing by a bundle.
 */
static enum cf_way way_of(const struct cf_submission *sub,
			  const struct cf_entry *entry)
{
	const struct cf_piece *piece = &entry->req.piece;

	if (piece->handle->fs_ops)
		return CF_WAY_SERIAL;
	if (piece->ferry)
		return CF_WAY_EACH;
	if (sub->nr > 1 && may_sail(entry))
		return CF_WAY_FLEET;
	if (sub->nr > 1 && may_be_staged(&entry->req.route) &&
	    cf_bundle_can(piece) &&
	    cf_bundle_need(piece) <= cf_plan_bundle_bytes())
		return CF_WAY_BUNDLE;
	if (sub->nr > 1 && is_plain(entry) && is_buffered_write(piece))
		return cf_plan_can_spread(piece, entry->req.route.path) ?
			       CF_WAY_EACH :
			       CF_WAY_WRITES;
	if (entry->req.route.path == &cf_path_staged && cf_convoy_can(piece) &&
	    cf_plan_has_convoys(piece))
		return CF_WAY_CONVOY;
	if (entry->req.route.path == &cf_path_mapped &&
	    piece->view.sight == CF_SIGHT_OPEN)
		return CF_WAY_MAPPED;
	return CF_WAY_EACH;
}

static bool takes_all(enum cf_way way)
{
	return way == CF_WAY_EACH || way == CF_WAY_SERIAL;
}

static bool is_of_file(const struct cf_sort *sort, const struct cf_piece *piece)
{
	return sort->dev == piece->handle->dev &&
	       sort->ino == piece->handle->ino;
}

/*
 * A fleet's cells are as large as the largest entry needs, so its entries are
 * of one size class. With aliases they have one disk, so that a refusal is true
 * of all.
 */
static bool sails_alike(const struct cf_sort *sort,
			const struct cf_entry *entry)
{
	const struct cf_piece *piece = &entry->req.piece;

	return sort->large == cf_plan_is_large(piece) &&
	       sort->alias == has_alias(entry) &&
	       (!sort->alias || sort->disk == piece->handle->disk);
}

static bool fits(const struct cf_sort *sort, enum cf_way way,
		 const struct cf_entry *entry)
{
	const struct cf_piece *piece = &entry->req.piece;

	if (sort->way != way || takes_all(way))
		return sort->way == way;
	if (is_buffered_write(piece) && !is_of_file(sort, piece))
		return false;
	if (sort->op != piece->op ||
	    sort->host != (piece->mem.kind == CF_MEMORY_HOST))
		return false;
	if (way == CF_WAY_FLEET && !sails_alike(sort, entry))
		return false;
	return sort->host || (sort->ctx == piece->mem.ctx &&
			      sort->ordinal == piece->mem.ordinal);
}

/*
 * Carriers at a time, 0: any number. Those of a fleet are counted when all its
 * entries are known.
 */
static unsigned most_of(enum cf_way way, const struct cf_piece *piece)
{
	if (way == CF_WAY_SERIAL || way == CF_WAY_MAPPED)
		return 1;
	return way != CF_WAY_EACH && is_buffered_write(piece) ?
		       CF_PLAN_WRITERS :
		       0;
}

static struct cf_sort *sort_new(struct cf_submission *sub, enum cf_way way,
				const struct cf_entry *entry)
{
	const struct cf_piece *piece = &entry->req.piece;
	struct cf_sort *sort = &sub->sorts[sub->nr_sorts++];

	*sort = (struct cf_sort){ .way = way,
				  .op = piece->op,
				  .host = piece->mem.kind == CF_MEMORY_HOST,
				  .large = cf_plan_is_large(piece),
				  .alias = has_alias(entry),
				  .disk = piece->handle->disk,
				  .ctx = piece->mem.ctx,
				  .ordinal = piece->mem.ordinal,
				  .dev = piece->handle->dev,
				  .ino = piece->handle->ino,
				  .most = most_of(way, piece) };
	return sort;
}

/* The last two places are kept for EACH and SERIAL, which take any entry. */
static struct cf_sort *sort_for(struct cf_submission *sub,
				const struct cf_entry *entry)
{
	enum cf_way way = way_of(sub, entry);

	for (unsigned i = 0; i < sub->nr_sorts; i++)
		if (fits(&sub->sorts[i], way, entry))
			return &sub->sorts[i];
	if (takes_all(way) || sub->nr_sorts + 2 < CF_MAX_SORTS)
		return sort_new(sub, way, entry);
	for (unsigned i = 0; i < sub->nr_sorts; i++)
		if (sub->sorts[i].way == CF_WAY_EACH)
			return &sub->sorts[i];
	return sort_new(sub, CF_WAY_EACH, entry);
}

static struct cf_streak *streak_new(struct cf_submission *sub,
				    struct cf_sort *sort)
{
	struct cf_streak *streak = &sub->streaks[sub->nr_streaks++];

	if (sort->last)
		sort->last->next = streak;
	else
		sort->first = streak;
	sort->last = streak;
	return streak;
}

/* The sort's last streak, if entry i makes that longer; else a new one. */
static struct cf_streak *streak_for(struct cf_submission *sub,
				    struct cf_sort *sort, unsigned i)
{
	const struct cf_piece *piece = &sub->entries[i].req.piece;
	bool bundle = sort->way == CF_WAY_BUNDLE;
	unsigned need = bundle ? (unsigned)cf_bundle_need(piece) : 0;
	unsigned cost_ns = cf_plan_cost_ns(piece);
	struct cf_streak *streak = sort->last;

	if (streak && streak->first + streak->nr == i &&
	    streak->cost_ns == cost_ns && streak->need == need)
		return streak;
	streak = streak_new(sub, sort);
	*streak = (struct cf_streak){ .first = i,
				      .cost_ns = cost_ns,
				      .need = need };
	return streak;
}

static void append(struct cf_sort *sort, struct cf_streak *streak,
		   const struct cf_entry *entry)
{
	streak->nr++;
	sort->cost_ns += streak->cost_ns;
	sort->bytes += entry->req.piece.size;
	sort->nr++;
	if (sort->way == CF_WAY_FLEET) {
		size_t need = cf_fleet_need(&entry->req.piece);

		sort->need = need > sort->need ? need : sort->need;
	} else {
		sort->need += streak->need;
	}
}

static bool is_short(const struct cf_sort *sort)
{
	return (sort->way == CF_WAY_CONVOY &&
		!cf_plan_is_convoy(sort->bytes)) ||
	       (sort->way == CF_WAY_MAPPED && sort->nr < 2);
}

/* Whether a convoy pays is known when all its entries are. */
static void leave_short_convoys(struct cf_submission *sub)
{
	for (unsigned i = 0; i < sub->nr_sorts; i++)
		if (is_short(&sub->sorts[i])) {
			sub->sorts[i].way = CF_WAY_EACH;
			sub->sorts[i].most = 0;
		}
}

/* Convoys are noted as read here: no cf_request_run does that for them. */
static void note_convoys(const struct cf_submission *sub)
{
	for (unsigned i = 0; i < sub->nr_sorts; i++) {
		const struct cf_streak *streak = sub->sorts[i].first;

		for (; streak && cf_way_is_convoy(sub->sorts[i].way);
		     streak = streak->next)
			for (unsigned k = 0; k < streak->nr; k++)
				cf_windows_note(&sub->entries[streak->first + k]
							 .req.piece);
	}
}

/* Few workers carry bundles with a crew; the others are its helpers. */
static void lend_crews(struct cf_sort *sort)
{
	struct cf_crew_plan plan;

	if (sort->way != CF_WAY_BUNDLE || sort->op != CF_READ)
		return;
	plan = cf_plan_crews(sort->nr, sort->cost_ns, sort->need);
	sort->most = plan.bundles;
	sort->helpers = plan.helpers;
	sort->share = plan.share;
}

/* How many workers the sorts are worth. */
static unsigned count_carriers(struct cf_submission *sub, unsigned gpus)
{
	unsigned long long cost_ns = 0;
	unsigned nr = 0, carriers = 0;

	for (unsigned i = 0; i < sub->nr_sorts; i++) {
		struct cf_sort *sort = &sub->sorts[i];

		if (sort->way == CF_WAY_FLEET)
			sort->most =
				cf_plan_fleet(sort->need, sort->nr).carriers;
		lend_crews(sort);
		if (sort->most) {
			carriers += cf_least(sort->most, sort->nr);
			continue;
		}
		cost_ns += sort->cost_ns;
		nr += sort->nr;
	}
	return carriers + (nr ? cf_plan_carriers(cost_ns, nr, gpus) : 0);
}

/*
 * Whether the entry differs from the one before it in offsets alone, and takes
 * as much of a slot. Then it has the same sort and streak. A write that is
 * large enough to be spread has not always: it may be the one that makes the
 * file longer.
 */
static bool goes_with(const struct cf_entry *entry,
		      const struct cf_entry *before)
{
	const struct cf_piece *piece = &entry->req.piece;

	return entry->like && piece->size == before->req.piece.size &&
	       (piece->op == CF_READ || piece->size < CF_SPREAD_CROWD_FROM) &&
	       cf_bundle_need(piece) == cf_bundle_need(&before->req.piece);
}

void cf_submission_sort(struct cf_submission *sub)
{
	struct cf_sort *sort = NULL;
	struct cf_streak *streak = NULL;
	uint32_t gpus = 0;

	for (unsigned i = 0; i < sub->nr; i++) {
		struct cf_entry *entry = &sub->entries[i];
		struct cf_piece *piece = &entry->req.piece;

		if (i && goes_with(entry, entry - 1)) {
			piece->demote = entry[-1].req.piece.demote;
		} else {
			piece->demote = cf_plan_bundle_demote(piece);
			gpus |= cf_plan_note_gpu(sub->team, &piece->mem);
			sort = sort_for(sub, entry);
			streak = streak_for(sub, sort, i);
		}
		append(sort, streak, entry);
	}
	leave_short_convoys(sub);
	note_convoys(sub);
	sub->waiting = sub->nr;
	sub->carriers = count_carriers(
		sub, gpus ? (unsigned)__builtin_popcount(gpus) : 1);
}

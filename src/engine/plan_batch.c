// SPDX-License-Identifier: Apache-2.0
/*
 * plan_batch - the numbers of batches, beside those of one request (plan.c).
 */
#include "engine/plan_batch.h"

#include <limits.h>
#include "core/file.h"
#include "core/numbers.h"
#include "core/ring.h"
#include "engine/plan_limits.h"
#include "path/bundle.h"
#include "path/fleet.h"

#define KIB (1ul << 10)
#define MIB (1ul << 20)

/* costs of an entry: a call, its bytes out of the page cache, a disk */
#define CALL_NS 700
#define BYTES_PER_NS 10
#define DISK_NS 100000
#define BUNDLE_DEMOTE (16 * KIB)
#define FLEET_SMALL (128 * KIB)
#define FLEET_FLIGHTS 128      /* under way for one batch */
#define FLEET_BYTES (32 * MIB) /* the same in bytes; more only queue up */
#define FLEET_MIN_FLIGHTS 16   /* of each carrier, if there are several */
#define FLEET_CARRIERS 4       /* system calls side by side */
#define CONVOY_FROM (1 * MIB)  /* a smaller one pushes out none before it */
#define CONVOY_MAX (8 * MIB)
#define CONVOY_BYTES (64 * MIB) /* a shorter one is mostly its two ends */
#define CONVOY_SLOT (2 * MIB)
#define CREW_WORKERS 4	   /* at least, or they have enough to do as it is */
#define CREW_GROUP_NS 5000 /* enough for each of a few, who come at once */
#define CREW_FEW 8
#define CREW_BYTES (16 * MIB)
#define CREW_SLOT (1 * MIB)
/* worth a wake and a launch; no longer than others should wait for its end */
#define MIN_GROUP_NS 20000
#define MAX_GROUP_NS 100000

unsigned cf_plan_cost_ns(const struct cf_piece *piece)
{
	uint64_t cost = CALL_NS + piece->size / BYTES_PER_NS;

	/* a client's own file system may take any time */
	if (cf_file_is_direct(piece->handle, piece->via) ||
	    piece->handle->fs_ops)
		cost += DISK_NS;
	return cf_least(cost, UINT_MAX);
}

/*
 * Entries below BUNDLE_DEMOTE are bound by their calls, not by the link; those
 * of a convoy are pushed out of the caches by the next (path/convoy.h).
 */
size_t cf_plan_bundle_demote(const struct cf_piece *piece)
{
	return piece->op == CF_READ && piece->size >= BUNDLE_DEMOTE &&
			       piece->size <= CF_BUNDLE_MAX_SIZE &&
			       cf_plan_bound(can_demote) ?
		       CF_DEMOTE_ALL :
		       0;
}

size_t cf_plan_bundle_bytes(void)
{
	return cf_clamp(cf_plan_bound(step), 0, CF_BUNDLE_MAX_BYTES);
}

size_t cf_plan_crewed_bytes(void)
{
	return cf_plan_bound(step);
}

/* How many groups of `each` hold nr. */
static unsigned count_for(unsigned nr, unsigned each)
{
	return (nr + each - 1) / each;
}

/* Bundles are alike, or the last would be a few entries that are waited for. */
static unsigned share_of_crew(unsigned nr, unsigned long long need,
			      unsigned crews)
{
	size_t each = cf_clamp(need / nr, 1, cf_plan_crewed_bytes());
	unsigned fit = cf_least(cf_plan_crewed_bytes() / each, CF_BUNDLE_MAX);
	unsigned rounds = count_for(count_for(nr, fit), crews);

	return count_for(nr, rounds * crews);
}

/* Threads of all crews, those that lead included. 1: two would not pay. */
static unsigned count_crewed(unsigned nr, unsigned long long cost_ns)
{
	unsigned most = cf_plan_bound(gpu_workers);
	unsigned few = cf_least(cost_ns / CREW_GROUP_NS + 1, CREW_FEW);
	unsigned many = cf_plan_carriers(cost_ns, nr, 1);

	if (most < CREW_WORKERS)
		return 1;
	return cf_least(few > many ? few : many, cf_least(nr, most));
}

/*
 * A crew sends few copies, and sends what was read first while it reads more.
 * Where there are many bundles, that happens without crews: some are read while
 * others are sent, by more threads.
 */
struct cf_crew_plan cf_plan_crews(unsigned nr, unsigned long long cost_ns,
				  unsigned long long need)
{
	unsigned carriers = count_crewed(nr, cost_ns);
	unsigned bundles =
		nr > CF_BUNDLE_MAX || need > cf_plan_crewed_bytes() ? 2 : 1;

	if (carriers < 2 || need > CREW_BYTES ||
	    cf_plan_crewed_bytes() < CREW_SLOT)
		return (struct cf_crew_plan){ .bundles = 0 };
	return (struct cf_crew_plan){
		.bundles = bundles,
		.helpers = carriers / bundles - 1,
		.share = share_of_crew(nr, need, bundles),
	};
}

bool cf_plan_has_fleets(const struct cf_piece *piece)
{
	return cf_fleet_need(piece) <= cf_plan_bound(step) &&
	       cf_rings_suit(piece->handle);
}

bool cf_plan_is_large(const struct cf_piece *piece)
{
	return piece->size > FLEET_SMALL;
}

/* In small slots a convoy would make many small copies. */
bool cf_plan_has_convoys(const struct cf_piece *piece)
{
	return piece->size >= CONVOY_FROM && piece->size <= CONVOY_MAX &&
	       cf_plan_bound(step) >= CONVOY_SLOT;
}

bool cf_plan_is_convoy(unsigned long long bytes)
{
	return bytes >= CONVOY_BYTES;
}

/*
 * Small entries cost more of a thread than of the disk, so several threads ask
 * for them; with large ones a single thread keeps any disk busy.
 */
struct cf_fleet_plan cf_plan_fleet(size_t need, unsigned nr)
{
	unsigned most = cf_least(FLEET_BYTES / need, FLEET_FLIGHTS);
	unsigned flights = (unsigned)cf_clamp(nr, 1, most ? most : 1);
	unsigned carriers = 1;

	if (need <= 2 * FLEET_SMALL)
		carriers = (unsigned)cf_clamp(flights / FLEET_MIN_FLIGHTS, 1,
					      FLEET_CARRIERS);
	flights = (flights + carriers - 1) / carriers;
	return (struct cf_fleet_plan){ carriers,
				       cf_least(flights, CF_FLEET_MAX) };
}

/* At least 1: there always is a worker for work without a caller. */
unsigned cf_plan_carriers(unsigned long long cost_ns, unsigned nr,
			  unsigned gpus)
{
	unsigned most = cf_least((uint64_t)cf_plan_bound(gpu_workers) * gpus,
				 cf_plan_bound(most_workers));
	unsigned wanted = cf_least(cost_ns / MIN_GROUP_NS + 1, nr);

	return cf_least(wanted, most ? most : 1);
}

/* Half of what is left, among all: groups get smaller towards the end. */
unsigned long long cf_plan_group_ns(unsigned long long left_ns,
				    unsigned carriers)
{
	return cf_clamp(left_ns / 2 / carriers, MIN_GROUP_NS, MAX_GROUP_NS);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * shuttle - seats, and waits in them.
 *
 * DESIGN  Who copies has a seat and writes its order (shuttle_board.h). If no
 * trip is here one of those who wait launches the next; the others do not
 * care who (shuttle_trips.h). All look at their own seat's word until it is
 * done. A trip that is on the GPU comes to its end by itself, and so do all
 * orders that it finds; one that does not come has its orders taken back, and
 * copies then go the plain way for a while, twice as long each time.
 *
 * Locks: that of permit.h.
 */
#include "core/shuttle.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include "core/haste.h"
#include "core/pause.h"
#include "core/shuttle_trips.h"
#include "core/stripes.h"

#define FAST 16	 /* such copies, and a kernel pays */
#define SPINS 32 /* between looks at the clock */
#define LONG 256 /* spins, longer than a trip takes to answer */
/* copies that make up for a rest: each saves some us, one in vain takes 30 */
#define GOOD 500

/* What is pinned. */
struct room {
	struct cf_shuttle_board board;
	_Alignas(4096) char seats[CF_SHUTTLE_SEATS][CF_SHUTTLE_ROOM];
};

/* What the GPU has in an aperture. */
struct near {
	struct cf_shuttle_order orders[CF_SHUTTLE_SEATS];
	_Alignas(4096) char seats[CF_SHUTTLE_SEATS][CF_SHUTTLE_ROOM];
	struct cf_fresh_words words;
};

struct cf_shuttle {
	struct cf_trips trips;
	/* relaxed, both: they guide, and a lost update does not matter */
	_Alignas(CF_SHUTTLE_LINE) struct cf_haste haste;
	_Atomic unsigned good;
	_Atomic unsigned lost; /* relaxed; seats that stay taken */
	struct {
		_Alignas(CF_SHUTTLE_LINE) atomic_bool taken;
	} seats[CF_SHUTTLE_SEATS]; /* acquire, release */
};

struct cf_shuttle *cf_shuttle_new(CUcontext ctx, int ordinal)
{
	struct cf_shuttle *shuttle =
		aligned_alloc(_Alignof(struct cf_shuttle), sizeof(*shuttle));

	if (!shuttle)
		return NULL;
	__builtin_memset(shuttle, 0, sizeof(*shuttle));
	cf_trips_init(&shuttle->trips, ctx, ordinal, sizeof(struct room),
		      sizeof(struct near), offsetof(struct near, words));
	return shuttle;
}

void cf_shuttle_free(struct cf_shuttle *shuttle, bool alive)
{
	if (!shuttle)
		return;
	cf_trips_fini(&shuttle->trips, alive);
	free(shuttle);
}

bool cf_shuttle_pays(struct cf_shuttle *shuttle, int64_t gap_ns)
{
	struct cf_trips *trips = &shuttle->trips;
	bool fast;

	/* also while one that has not come is on its way */
	if (cf_permit_rests(&trips->permit))
		return false;
	/* counted also while one is here, which leaves after one long gap */
	fast = cf_haste_note(&shuttle->haste, gap_ns, FAST);
	return fast || (cf_permit_is_ready(&trips->permit) &&
			cf_trips_one_is_here(trips));
}

static bool claim(struct cf_shuttle *shuttle, unsigned nr)
{
	atomic_bool *taken = &shuttle->seats[nr].taken;

	return !atomic_load_explicit(taken, memory_order_relaxed) &&
	       !atomic_exchange_explicit(taken, true, memory_order_acquire);
}

static void release(struct cf_shuttle *shuttle, unsigned nr)
{
	atomic_store_explicit(&shuttle->seats[nr].taken, false,
			      memory_order_release);
}

/* False: others have some; who has all is alone with what the trips have. */
static bool claim_all(struct cf_shuttle *shuttle)
{
	unsigned nr = 0;

	while (nr < CF_SHUTTLE_SEATS && claim(shuttle, nr))
		nr++;
	if (nr == CF_SHUTTLE_SEATS)
		return true;
	while (nr)
		release(shuttle, --nr);
	return false;
}

static void release_all(struct cf_shuttle *shuttle)
{
	for (unsigned nr = 0; nr < CF_SHUTTLE_SEATS; nr++)
		release(shuttle, nr);
}

bool cf_shuttle_retire(struct cf_shuttle *shuttle)
{
	if (!claim_all(shuttle))
		return false;
	if (cf_trips_retire(&shuttle->trips))
		return true;
	release_all(shuttle);
	return false;
}

static bool renew(struct cf_shuttle *shuttle)
{
	bool renewed;

	if (!claim_all(shuttle))
		return false;
	renewed = cf_trips_renew(&shuttle->trips);
	release_all(shuttle);
	return renewed;
}

static bool is_ready(struct cf_shuttle *shuttle)
{
	return cf_trips_are_ready(&shuttle->trips) ||
	       (cf_trips_are_stale(&shuttle->trips) && renew(shuttle));
}

bool cf_shuttle_is_near(struct cf_shuttle *shuttle)
{
	return is_ready(shuttle) &&
	       cf_shuttle_in_aperture(&shuttle->trips.words);
}

void cf_shuttle_call(struct cf_shuttle *shuttle)
{
	if (is_ready(shuttle))
		cf_trips_send_for(&shuttle->trips);
}

/* --------------------------------------------------------------- seats */

static struct room *room_of(struct cf_shuttle *shuttle)
{
	return (struct room *)shuttle->trips.pinned.mem;
}

static void sit(struct cf_shuttle *shuttle, unsigned nr, struct cf_seat *seat)
{
	struct near *near = (struct near *)shuttle->trips.aperture.mem;

	*seat = (struct cf_seat){
		.nr = nr,
		.mem = room_of(shuttle)->seats[nr],
		.near = near ? near->seats[nr] : NULL,
	};
}

/* A thread comes back to the seat whose lines its core has. */
bool cf_shuttle_take(struct cf_shuttle *shuttle, struct cf_seat *seat)
{
	unsigned first = cf_stripe_number();

	if (!is_ready(shuttle))
		return false;
	for (unsigned i = 0; i < CF_SHUTTLE_SEATS; i++) {
		unsigned nr = (first + i) % CF_SHUTTLE_SEATS;

		if (!claim(shuttle, nr))
			continue;
		sit(shuttle, nr, seat);
		return true;
	}
	return false;
}

/* Some who have a seat may have lost their processor in it, and get this one;
 * more than one turn of that is longer than a copy by other means. */
bool cf_shuttle_take_soon(struct cf_shuttle *shuttle, struct cf_seat *seat)
{
	if (cf_shuttle_take(shuttle, seat))
		return true;
	if (!cf_trips_are_ready(&shuttle->trips))
		return false;
	sched_yield();
	return cf_shuttle_take(shuttle, seat);
}

/*
 * What was put into a seat and never ordered, as the file or the memory was
 * gone, would come over what the next owner puts there.
 */
void cf_shuttle_leave(struct cf_shuttle *shuttle, const struct cf_seat *seat)
{
	if (seat->near)
		cf_aperture_fence();
	release(shuttle, seat->nr);
}

void cf_shuttle_lose(struct cf_shuttle *shuttle)
{
	atomic_fetch_add_explicit(&shuttle->lost, 1, memory_order_relaxed);
}

unsigned cf_shuttle_seats_out(const struct cf_shuttle *shuttle)
{
	unsigned out = 0;

	for (unsigned nr = 0; nr < CF_SHUTTLE_SEATS; nr++)
		out += atomic_load_explicit(&shuttle->seats[nr].taken,
					    memory_order_acquire);
	return out - atomic_load_explicit(&shuttle->lost, memory_order_relaxed);
}

/* ------------------------------------------------------------- waiting */

static bool is_done(const struct cf_trips *trips, const struct cf_ride *ride)
{
	return cf_shuttle_is_done(trips->words.board, ride->seat, ride->number);
}

/*
 * Takes the order back, or waits for the trip that may have found it: its
 * block is on the GPU, and comes to its end unless the context breaks.
 */
static int give_up(struct cf_trips *trips, const struct cf_ride *ride)
{
	while (!is_done(trips, ride)) {
		CUresult res;

		if (cf_shuttle_take_back(&trips->words, ride->seat, &ride->copy,
					 ride->number)) {
			/* all that came are gone, so this is the last word */
			if (is_done(trips, ride))
				return 0;
			cf_trips_doubt(trips);
			if (cf_trips_one_is_here(trips))
				cf_trips_rest(trips,
					      "the GPU has no room for it");
			return -ENOTSUP;
		}
		res = cf_trips_ask(trips);
		if (res != CF_CU_SUCCESS && res != CF_CU_NOT_READY)
			return cf_cuda_code(res);
		sched_yield();
	}
	return 0;
}

static int wait_done(struct cf_trips *trips, const struct cf_ride *ride)
{
	int64_t since = 0;

	for (unsigned spins = 1; !is_done(trips, ride); spins++) {
		if (!cf_trips_send_for(trips))
			return give_up(trips, ride);
		if (spins % SPINS) {
			cf_pause();
			continue;
		}
		if (cf_trips_are_late(trips, &since))
			return give_up(trips, ride);
		/* who should launch may wait for this processor */
		if (spins > LONG)
			sched_yield();
	}
	return 0;
}

static void note_good(struct cf_shuttle *shuttle)
{
	unsigned good =
		atomic_load_explicit(&shuttle->good, memory_order_relaxed);

	if (good > GOOD)
		return;
	atomic_store_explicit(&shuttle->good, good + 1, memory_order_relaxed);
	if (good == GOOD)
		cf_permit_renew(&shuttle->trips.permit);
}

/* What the GPU calls a byte of a seat. */
static uint64_t gpu_addr_of(const struct cf_trips *trips,
			    const struct cf_seat *seat, const char *at)
{
	if (seat->near && at >= seat->near && at < seat->near + CF_SHUTTLE_ROOM)
		return trips->aperture.gpu + (size_t)(at - trips->aperture.mem);
	return trips->pinned.gpu_addr + (size_t)(at - trips->pinned.mem);
}

int cf_shuttle_begin(struct cf_shuttle *shuttle, const struct cf_seat *seat,
		     const char *from, CUdeviceptr dst, size_t size,
		     struct cf_ride *ride)
{
	struct cf_trips *trips = &shuttle->trips;
	uint64_t src = gpu_addr_of(trips, seat, from);

	if ((dst | src) >> CF_SHUTTLE_ADDR_BITS)
		return -ENOTSUP;
	ride->copy = (struct cf_shuttle_copy){ dst, src, size };
	ride->seat = seat->nr;
	ride->number = cf_shuttle_order(&trips->words, seat->nr, &ride->copy);
	return 0;
}

int cf_shuttle_end(struct cf_shuttle *shuttle, const struct cf_ride *ride)
{
	int err = wait_done(&shuttle->trips, ride);

	if (!err)
		note_good(shuttle);
	else
		atomic_store_explicit(&shuttle->good, 0, memory_order_relaxed);
	return err;
}

int cf_shuttle_move(struct cf_shuttle *shuttle, const struct cf_seat *seat,
		    const char *from, CUdeviceptr dst, size_t size)
{
	struct cf_ride ride;
	int err = cf_shuttle_begin(shuttle, seat, from, dst, size, &ride);

	return err ? err : cf_shuttle_end(shuttle, &ride);
}

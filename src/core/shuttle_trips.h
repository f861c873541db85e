// SPDX-License-Identifier: Apache-2.0
/*
 * shuttle_trips - a shuttle's kernel: made once, launched trip after trip.
 *
 * Part of a shuttle. Any thread, any context current, but to end it. Lock: that
 * of permit.h.
 */
#ifndef CF_CORE_SHUTTLE_TRIPS_H
#define CF_CORE_SHUTTLE_TRIPS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "core/aperture.h"
#include "core/fresh.h"
#include "core/permit.h"
#include "core/pinned.h"
#include "core/shuttle_board.h"

struct cf_trips {
	CUcontext ctx;
	int ordinal;	 /* of its GPU */
	size_t room;	 /* bytes to pin, the board in front */
	size_t near;	 /* of an aperture, the orders in front, */
	size_t fresh_at; /* and there core/fresh.h's words */
	struct cf_permit permit;
	/* once there is the permit */
	struct cf_pinned pinned;
	struct cf_aperture aperture;
	struct cf_fresh fresh;
	struct cf_shuttle_words words;
	CUmodule module;
	CUfunction function;
	CUstream stream;
	/* one launches at a time, the others go on: acquire, release */
	atomic_bool launching;
	/* relaxed: when the last launch was done, and that waited for its end
	 */
	_Atomic int64_t launched;
	_Atomic unsigned blocked;
	/* relaxed: a trip has not found an order, so the next launch asks
	 * whether the aperture is fresh; and it was not */
	atomic_bool doubted, stale;
	/* the last one that was launched, also while it is; seq_cst */
	_Alignas(CF_SHUTTLE_LINE) _Atomic uint32_t trip;
};

void cf_trips_init(struct cf_trips *trips, CUcontext ctx, int ordinal,
		   size_t room, size_t near, size_t fresh_at);
/* alive: the context is current and can be asked. */
void cf_trips_fini(struct cf_trips *trips, bool alive);

/* Makes kernel and board; see cf_permit_ask. */
bool cf_trips_are_ready(struct cf_trips *trips);

/* What is ordered now is found by the last trip that was launched. */
static inline bool cf_trips_one_is_here(struct cf_trips *trips)
{
	return !cf_shuttle_has_left(trips->words.board,
				    atomic_load(&trips->trip));
}

/* Launches the next one if need be, or lets another do it. False: there is
 * none, and will be none for a while. */
bool cf_trips_send_for(struct cf_trips *trips);

/*
 * Whether it is long since *since, 0 at first, and since the launch that was to
 * bring a trip.
 */
bool cf_trips_are_late(struct cf_trips *trips, int64_t *since);

/* No trip has found an order, while it was there to be found. */
static inline void cf_trips_doubt(struct cf_trips *trips)
{
	if (cf_shuttle_in_aperture(&trips->words))
		atomic_store_explicit(&trips->doubted, true,
				      memory_order_relaxed);
}

/*
 * Whether it is not ready because its aperture is stale. Who has all seats may
 * then make another; false: that must wait.
 */
static inline bool cf_trips_are_stale(const struct cf_trips *trips)
{
	return atomic_load_explicit(&trips->stale, memory_order_relaxed);
}
bool cf_trips_renew(struct cf_trips *trips);

/* The context is gone, and the caller has all seats: ends the aperture. False:
 * a kernel of before may look there yet. */
bool cf_trips_retire(struct cf_trips *trips);

/* Small copies go the plain way for a while. */
void cf_trips_rest(struct cf_trips *trips, const char *why);

/* Success, not ready, or why no trip will come to its end any more. */
CUresult cf_trips_ask(struct cf_trips *trips);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * gather_seats - the places of those whose copies wait to share a launch.
 *
 * A seat belongs to the thread that took it, until that frees it. Between the
 * listing and the answer it is the launcher's, who got it with the list.
 * Part of a gather. No lock: each word says what it orders.
 */
#ifndef CF_CORE_GATHER_SEATS_H
#define CF_CORE_GATHER_SEATS_H

#include <stddef.h>
#include <stdint.h>
#include "core/gather_kernel.h"
#include "seam/cuda.h"

#define CF_GATHER_SEATS 64 /* bits of a word */
#define CF_GATHER_LINE 64

enum cf_seat_state { CF_SEAT_LISTED, CF_SEAT_LAUNCHED, CF_SEAT_REFUSED };

struct cf_seat {
	struct cf_gather_row row;
	struct cf_seat *next; /* on the list */
	CUstream stream;      /* launched: where */
	int code;	      /* refused: why */
	/*
	 * The launcher's release store hands stream and code to the owner,
	 * who acquires; after it the launcher leaves the seat alone.
	 */
	_Atomic int state;
} __attribute__((aligned(2 * CF_GATHER_LINE)));

struct cf_seats {
	/*
	 * A push releases the seat's row; who takes the list acquires all of
	 * them, since each push continues the release of the one before.
	 */
	_Alignas(CF_GATHER_LINE) struct cf_seat *_Atomic list;
	/*
	 * Bits of seats that are taken: acquire to take, release to free, so
	 * that the next owner's writes come after the last one's reads.
	 */
	_Alignas(CF_GATHER_LINE) _Atomic uint64_t taken;
	struct cf_seat seats[CF_GATHER_SEATS];
};

/* NULL: all are taken. */
struct cf_seat *cf_seats_take(struct cf_seats *seats);
void cf_seats_free(struct cf_seats *seats, struct cf_seat *seat);

static inline size_t cf_seat_number(const struct cf_seats *seats,
				    const struct cf_seat *seat)
{
	return (size_t)(seat - seats->seats);
}

/* Its row is filled. */
void cf_seats_list(struct cf_seats *seats, struct cf_seat *seat);
/* All that are listed, by next; the caller answers each. */
struct cf_seat *cf_seats_take_list(struct cf_seats *seats);

/* Answers one, and the next of the list: from here on it may be another's. */
struct cf_seat *cf_seat_answer(struct cf_seat *seat, CUstream stream,
			       CUresult res);
enum cf_seat_state cf_seat_state(struct cf_seat *seat);

#endif

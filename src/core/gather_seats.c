// SPDX-License-Identifier: Apache-2.0
/* gather_seats - takes and frees seats, hangs them up, and answers them. */
#include "core/gather_seats.h"

#include <stdatomic.h>

struct cf_seat *cf_seats_take(struct cf_seats *seats)
{
	uint64_t taken =
		atomic_load_explicit(&seats->taken, memory_order_relaxed);

	while (~taken) {
		int i = __builtin_ctzll(~taken);

		if (atomic_compare_exchange_weak_explicit(
			    &seats->taken, &taken, taken | (uint64_t)1 << i,
			    memory_order_acquire, memory_order_relaxed))
			return &seats->seats[i];
	}
	return NULL;
}

void cf_seats_free(struct cf_seats *seats, struct cf_seat *seat)
{
	uint64_t bit = (uint64_t)1 << cf_seat_number(seats, seat);

	atomic_fetch_and_explicit(&seats->taken, ~bit, memory_order_release);
}

void cf_seats_list(struct cf_seats *seats, struct cf_seat *seat)
{
	struct cf_seat *head =
		atomic_load_explicit(&seats->list, memory_order_relaxed);

	atomic_store_explicit(&seat->state, CF_SEAT_LISTED,
			      memory_order_relaxed);
	do
		seat->next = head;
	while (!atomic_compare_exchange_weak_explicit(&seats->list, &head, seat,
						      memory_order_release,
						      memory_order_relaxed));
}

struct cf_seat *cf_seats_take_list(struct cf_seats *seats)
{
	return atomic_exchange_explicit(&seats->list, NULL,
					memory_order_acquire);
}

struct cf_seat *cf_seat_answer(struct cf_seat *seat, CUstream stream,
			       CUresult res)
{
	struct cf_seat *next = seat->next;

	seat->stream = stream;
	seat->code = cf_cuda_code(res);
	atomic_store_explicit(&seat->state,
			      res == CF_CU_SUCCESS ? CF_SEAT_LAUNCHED :
						     CF_SEAT_REFUSED,
			      memory_order_release);
	return next;
}

enum cf_seat_state cf_seat_state(struct cf_seat *seat)
{
	return (enum cf_seat_state)atomic_load_explicit(&seat->state,
							memory_order_acquire);
}

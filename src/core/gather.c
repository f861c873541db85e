// SPDX-License-Identifier: Apache-2.0
/*
 * gather - who waits, who launches, and how a thread learns that it is done.
 *
 * DESIGN  A copy takes a seat and hangs it on a list. One or two threads at
 * a time have a turn: they take the whole list and launch the kernel for it,
 * while the list fills again. More would only queue up for the driver's own
 * lock. The kernel reports into the pinned words of each seat, so that each
 * thread sees its own end and nobody has to be woken.
 *
 * Nobody is left waiting: a thread whose seat is still on the list tries for
 * a turn itself, and goes without one when it has tried for long. One whose
 * seat was taken waits for the launcher to come back from one driver call,
 * then for its report; where that is late it waits for the stream instead,
 * which also brings to light a kernel that failed.
 *
 * A kernel, unlike a copy, waits for room on the GPU. Our streams go first
 * when there is some, and when too many waits were long the next copies go
 * the plain way for a while.
 *
 * Locks: none but that of permit.h.
 */
#include "core/gather.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include "core/gather_kernel.h"
#include "core/gather_seats.h"
#include "core/pause.h"
#include "core/permit.h"

#define CROWD 8		       /* copies at hand that share launches */
#define TURNS 2		       /* threads that launch at a time */
#define TURN_NS (500 * 1000)   /* on the list, before going without */
#define REPORT_NS (100 * 1000) /* launched, before asking the stream */
#define SLOW_NS (60 * 1000)    /* a wait that was long */
#define SLOW_WEIGHT 8	       /* one long wait outweighs so many others */
#define SLOW_LIMIT 256	       /* all in all too many */

struct cf_gather {
	/* relaxed: counts that guide, and order nothing */
	_Alignas(CF_GATHER_LINE) _Atomic unsigned present;
	_Atomic unsigned slowness; /* a lost update does not matter */
	unsigned nr_cpus;
	struct cf_permit permit;
	struct cf_gather_kernel kernel; /* once there is the permit */
	/* who launch now; relaxed, it guards no data but saves work */
	_Alignas(CF_GATHER_LINE) _Atomic int turns;
	_Atomic unsigned launches; /* relaxed: spreads them over the streams */
	struct cf_seats seats;
};

_Static_assert(CF_GATHER_MAX_SIZE == CF_GATHER_BLOCK * CF_GATHER_BLOCKS,
	       "a report has a word for each block");

/* Those that this thread may use, when the gather is made. */
static unsigned count_cpus(void)
{
	cpu_set_t cpus;

	return sched_getaffinity(0, sizeof(cpus), &cpus) ?
		       1 :
		       (unsigned)CPU_COUNT(&cpus);
}

struct cf_gather *cf_gather_new(void)
{
	struct cf_gather *gather =
		aligned_alloc(_Alignof(struct cf_gather), sizeof(*gather));

	if (!gather)
		return NULL;
	__builtin_memset(gather, 0, sizeof(*gather));
	gather->nr_cpus = count_cpus();
	cf_permit_init(&gather->permit);
	return gather;
}

void cf_gather_free(struct cf_gather *gather, bool alive)
{
	if (!gather)
		return;
	cf_gather_kernel_free(&gather->kernel, alive);
	cf_permit_fini(&gather->permit);
	free(gather);
}

static CUresult make(void *owner)
{
	struct cf_gather *gather = owner;
	CUresult res = cf_gather_kernel_make(&gather->kernel, CF_GATHER_SEATS);

	if (res != CF_CU_SUCCESS)
		cf_gather_kernel_free(&gather->kernel, true);
	return res;
}

/* ------------------------------------------------------- is it a crowd */

bool cf_gather_enter(struct cf_gather *gather)
{
	unsigned before = atomic_fetch_add_explicit(&gather->present, 1,
						    memory_order_relaxed);

	return before + 1 >= CROWD && !cf_permit_rests(&gather->permit);
}

void cf_gather_leave(struct cf_gather *gather)
{
	atomic_fetch_sub_explicit(&gather->present, 1, memory_order_relaxed);
}

/* --------------------------------------------------------------- turns */

static void end_turn(struct cf_gather *gather)
{
	atomic_fetch_sub_explicit(&gather->turns, 1, memory_order_relaxed);
}

/* Looks before it tries: those who wait should not pull at the line. */
static bool take_turn(struct cf_gather *gather)
{
	if (atomic_load_explicit(&gather->turns, memory_order_relaxed) >= TURNS)
		return false;
	if (atomic_fetch_add_explicit(&gather->turns, 1, memory_order_relaxed) <
	    TURNS)
		return true;
	end_turn(gather);
	return false;
}

/* ------------------------------------------------------------ launching */

/* One launch for the first seats of the list; answers those that are left. */
static struct cf_seat *launch(struct cf_gather *gather, struct cf_seat *list)
{
	unsigned nth = atomic_fetch_add_explicit(&gather->launches, 1,
						 memory_order_relaxed);
	CUstream stream = gather->kernel.streams[nth % CF_GATHER_STREAMS];
	struct cf_gather_row rows[CF_GATHER_ROWS];
	struct cf_seat *rest = list;
	unsigned nr = 0;
	CUresult res;

	for (; rest && nr < CF_GATHER_ROWS; rest = rest->next)
		rows[nr++] = rest->row;
	res = cf_gather_kernel_launch(&gather->kernel, rows, nr, stream);
	while (list != rest)
		list = cf_seat_answer(list, stream, res);
	return rest;
}

static void launch_list(struct cf_gather *gather)
{
	struct cf_seat *list = cf_seats_take_list(&gather->seats);

	while (list)
		list = launch(gather, list);
}

/* Spins, or makes room where there are more threads than CPUs for them. */
static void wait_a_bit(bool make_room)
{
	if (make_room)
		sched_yield();
	else
		cf_pause();
}

/* Every so many spins: has it been that long since begun? */
static bool is_late(unsigned spins, int64_t begun, int64_t limit_ns)
{
	return spins % 32 == 0 && cf_permit_clock() - begun > limit_ns;
}

/* Until the seat is off the list and launched, by whomever. */
static void wait_launch(struct cf_gather *gather, struct cf_seat *seat,
			int64_t begun, bool make_room)
{
	for (unsigned spins = 1; cf_seat_state(seat) == CF_SEAT_LISTED;
	     spins++) {
		bool late = is_late(spins, begun, TURN_NS);

		if (take_turn(gather)) {
			launch_list(gather);
			end_turn(gather);
		} else if (late) {
			launch_list(gather);
		}
		if (cf_seat_state(seat) == CF_SEAT_LISTED)
			wait_a_bit(make_room || late);
	}
}

static struct cf_gather_report *report_of(struct cf_gather *gather,
					  const struct cf_seat *seat)
{
	return &gather->kernel.reports[cf_seat_number(&gather->seats, seat)];
}

/*
 * All blocks have reported. The acquire pairs with the kernel's fence before
 * its report: who sees the report sees the bytes.
 */
static bool is_reported(struct cf_gather *gather, const struct cf_seat *seat)
{
	struct cf_gather_report *report = report_of(gather, seat);
	unsigned nr = cf_gather_blocks(seat->row.size);

	for (unsigned i = 0; i < nr; i++)
		if (!atomic_load_explicit(&report->done[i],
					  memory_order_acquire))
			return false;
	return true;
}

/* The GPU is busy with something else, or the kernel broke. */
static int wait_stream(struct cf_gather *gather, const struct cf_seat *seat)
{
	const struct cf_cuda *cuda = cf_cuda_loaded();
	CUresult res = cuda ? cuda->stream_synchronize(seat->stream) :
			      CF_CU_DEINITIALIZED;

	if (res == CF_CU_SUCCESS && !is_reported(gather, seat))
		res = CF_CU_LAUNCH_FAILED;
	return cf_cuda_code(res);
}

static int wait_report(struct cf_gather *gather, const struct cf_seat *seat,
		       int64_t begun, bool make_room)
{
	for (unsigned spins = 1; !is_reported(gather, seat); spins++) {
		if (is_late(spins, begun, REPORT_NS))
			return wait_stream(gather, seat);
		wait_a_bit(make_room);
	}
	return 0;
}

/*
 * Long waits add up, short ones take away. After a rest a few long ones are
 * enough for the next and longer one, until many short ones have come.
 */
static void note_wait(struct cf_gather *gather, int64_t begun)
{
	unsigned slowness =
		atomic_load_explicit(&gather->slowness, memory_order_relaxed);

	if (cf_permit_clock() - begun > SLOW_NS)
		slowness += SLOW_WEIGHT;
	else if (slowness)
		slowness--;
	else
		return;
	if (slowness > SLOW_LIMIT) {
		slowness = SLOW_LIMIT / 2;
		/* those who waited beside us have said the same */
		if (!cf_permit_rests(&gather->permit))
			cf_permit_rest(&gather->permit);
	}
	if (!slowness)
		cf_permit_renew(&gather->permit);
	atomic_store_explicit(&gather->slowness, slowness,
			      memory_order_relaxed);
}

static void fill_seat(struct cf_gather *gather, struct cf_seat *seat,
		      uint64_t dst, uint64_t src, size_t size)
{
	struct cf_gather_report *report = report_of(gather, seat);

	seat->row = (struct cf_gather_row){
		.dst = dst,
		.src = src,
		.report =
			gather->kernel.reports_addr +
			cf_seat_number(&gather->seats, seat) * sizeof(*report),
		.size = (uint32_t)size,
	};
	/* the push releases all of it, to the launcher and so to the GPU */
	for (unsigned i = 0; i < cf_gather_blocks(seat->row.size); i++)
		atomic_store_explicit(&report->done[i], 0,
				      memory_order_relaxed);
}

static int copy(struct cf_gather *gather, uint64_t dst, uint64_t src,
		size_t size)
{
	struct cf_seat *seat = cf_seats_take(&gather->seats);
	bool make_room =
		atomic_load_explicit(&gather->present, memory_order_relaxed) >
		gather->nr_cpus;
	int64_t begun;
	int err;

	if (!seat)
		return -ENOTSUP;
	begun = cf_permit_clock();
	fill_seat(gather, seat, dst, src, size);
	cf_seats_list(&gather->seats, seat);
	wait_launch(gather, seat, begun, make_room);
	err = cf_seat_state(seat) == CF_SEAT_REFUSED ?
		      seat->code :
		      wait_report(gather, seat, begun, make_room);
	cf_seats_free(&gather->seats, seat);
	note_wait(gather, begun);
	return err;
}

/* The slot's address for the GPU; 0: it is not for us. */
static uint64_t usable(struct cf_gather *gather, const void *slot, size_t size)
{
	if (!size || size > CF_GATHER_MAX_SIZE ||
	    !cf_permit_ask(&gather->permit, "gather", make, gather))
		return 0;
	/* a kernel that meets memory not pinned breaks the whole context */
	return cf_gather_gpu_addr(slot);
}

int cf_gather_in(struct cf_gather *gather, CUdeviceptr dst, const void *slot,
		 size_t size)
{
	uint64_t addr = usable(gather, slot, size);

	return addr ? copy(gather, dst, addr, size) : -ENOTSUP;
}

int cf_gather_out(struct cf_gather *gather, void *slot, CUdeviceptr src,
		  size_t size)
{
	uint64_t addr = usable(gather, slot, size);

	return addr ? copy(gather, addr, src, size) : -ENOTSUP;
}

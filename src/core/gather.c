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
 * Locks: none but make_lock, which guards the making of the kernel and
 * is only ever tried: while one thread makes it the others copy plainly.
 */
#include "core/gather.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include "core/gather_kernel.h"
#include "core/log.h"
#include "core/pause.h"
#include "seam/os.h"

#define CROWD 8		       /* copies at hand that share launches */
#define TURNS 2		       /* threads that launch at a time */
#define TURN_NS (500 * 1000)   /* on the list, before going without */
#define REPORT_NS (100 * 1000) /* launched, before asking the stream */
#define SLOW_NS (60 * 1000)    /* a wait that was long */
#define SLOW_WEIGHT 8	       /* one long wait outweighs so many others */
#define SLOW_LIMIT 256	       /* all in all too many */
#define REST_NS (50 * 1000 * 1000ll) /* the plain way, after that */
#define MAX_REST_NS (32 * REST_NS)   /* twice as long each time, up to this */

#define SEATS 64 /* bits of a word */
#define LINE 64

enum seat_state { LISTED, LAUNCHED, REFUSED };

struct seat {
	struct cf_gather_row row;
	struct seat *next; /* on the list */
	CUstream stream;   /* LAUNCHED: where */
	int code;	   /* REFUSED: why */
	/*
	 * The launcher's release store hands stream and code to the owner,
	 * who acquires; after it the launcher leaves the seat alone.
	 */
	_Atomic int state;
} __attribute__((aligned(2 * LINE)));

enum ready { UNTRIED, READY, NEVER };

struct cf_gather {
	/* relaxed: a count that guides, and orders nothing */
	_Alignas(LINE) _Atomic unsigned present;
	/* these too; a lost update of slowness does not matter */
	_Atomic int64_t rest_until;
	_Atomic int64_t rest_ns; /* the next rest */
	_Atomic unsigned slowness;
	unsigned nr_cpus;
	/* UNTRIED until the kernel below is there: release, acquire */
	_Atomic int ready;
	/*
	 * A push releases the seat's row; who takes the list acquires all of
	 * them, since each push continues the release of the one before.
	 */
	_Alignas(LINE) struct seat *_Atomic list;
	/* who launch now; relaxed, it guards no data but saves work */
	_Alignas(LINE) _Atomic int turns;
	_Atomic unsigned launches; /* relaxed: spreads them over the streams */
	/*
	 * Bits of seats that are taken: acquire to take, release to free, so
	 * that the next owner's writes come after the last one's reads.
	 */
	_Alignas(LINE) _Atomic uint64_t taken;
	_Alignas(LINE) pthread_mutex_t make_lock;
	struct cf_gather_kernel kernel;
	struct seat seats[SEATS];
};

_Static_assert(CF_GATHER_MAX_SIZE == CF_GATHER_BLOCK * CF_GATHER_BLOCKS,
	       "a report has a word for each block");

static int64_t now_ns(void)
{
	struct timespec ts = { 0 };

	cf_os->clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

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
	atomic_init(&gather->rest_ns, REST_NS);
	pthread_mutex_init(&gather->make_lock, NULL);
	return gather;
}

void cf_gather_free(struct cf_gather *gather, bool alive)
{
	if (!gather)
		return;
	cf_gather_kernel_free(&gather->kernel, alive);
	pthread_mutex_destroy(&gather->make_lock);
	free(gather);
}

/* Tried once; whatever comes of it stands for the life of the context. */
static bool make_ready(struct cf_gather *gather)
{
	CUresult res;

	if (pthread_mutex_trylock(&gather->make_lock))
		return false;
	if (atomic_load_explicit(&gather->ready, memory_order_relaxed) ==
	    UNTRIED) {
		res = cf_gather_kernel_make(&gather->kernel, SEATS);
		if (res != CF_CU_SUCCESS) {
			cf_gather_kernel_free(&gather->kernel, true);
			cf_log(CF_LOG_WARN,
			       "gather kernel: %s (%d), small copies go alone",
			       cf_cuda_error_name((int)res), (int)res);
		}
		atomic_store_explicit(&gather->ready,
				      res == CF_CU_SUCCESS ? READY : NEVER,
				      memory_order_release);
	}
	pthread_mutex_unlock(&gather->make_lock);
	return atomic_load_explicit(&gather->ready, memory_order_relaxed) ==
	       READY;
}

static bool is_ready(struct cf_gather *gather)
{
	int ready = atomic_load_explicit(&gather->ready, memory_order_acquire);

	return ready == UNTRIED ? make_ready(gather) : ready == READY;
}

/* ------------------------------------------------------- is it a crowd */

static bool is_resting(struct cf_gather *gather)
{
	int64_t until =
		atomic_load_explicit(&gather->rest_until, memory_order_relaxed);

	return until && now_ns() < until;
}

bool cf_gather_enter(struct cf_gather *gather)
{
	unsigned before = atomic_fetch_add_explicit(&gather->present, 1,
						    memory_order_relaxed);

	return before + 1 >= CROWD && !is_resting(gather);
}

void cf_gather_leave(struct cf_gather *gather)
{
	atomic_fetch_sub_explicit(&gather->present, 1, memory_order_relaxed);
}

/* ----------------------------------------------------- seats and turns */

static struct seat *take_seat(struct cf_gather *gather)
{
	uint64_t taken =
		atomic_load_explicit(&gather->taken, memory_order_relaxed);

	while (~taken) {
		int i = __builtin_ctzll(~taken);

		if (atomic_compare_exchange_weak_explicit(
			    &gather->taken, &taken, taken | (uint64_t)1 << i,
			    memory_order_acquire, memory_order_relaxed))
			return &gather->seats[i];
	}
	return NULL;
}

static void free_seat(struct cf_gather *gather, struct seat *seat)
{
	uint64_t bit = (uint64_t)1 << (seat - gather->seats);

	atomic_fetch_and_explicit(&gather->taken, ~bit, memory_order_release);
}

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

static struct cf_gather_report *report_of(struct cf_gather *gather,
					  const struct seat *seat)
{
	return &gather->kernel.reports[seat - gather->seats];
}

static void list_seat(struct cf_gather *gather, struct seat *seat)
{
	struct seat *head =
		atomic_load_explicit(&gather->list, memory_order_relaxed);

	do
		seat->next = head;
	while (!atomic_compare_exchange_weak_explicit(
		&gather->list, &head, seat, memory_order_release,
		memory_order_relaxed));
}

/* ------------------------------------------------------------ launching */

/* One launch for the first seats of the list; answers those that are left. */
static struct seat *launch(struct cf_gather *gather, struct seat *list)
{
	unsigned nth = atomic_fetch_add_explicit(&gather->launches, 1,
						 memory_order_relaxed);
	CUstream stream = gather->kernel.streams[nth % CF_GATHER_STREAMS];
	struct cf_gather_row rows[CF_GATHER_ROWS];
	struct seat *rest = list;
	unsigned nr = 0;
	CUresult res;

	for (; rest && nr < CF_GATHER_ROWS; rest = rest->next)
		rows[nr++] = rest->row;
	res = cf_gather_kernel_launch(&gather->kernel, rows, nr, stream);
	while (list != rest) {
		struct seat *next = list->next;

		list->stream = stream;
		list->code = cf_cuda_code(res);
		/* from here on the seat may be another's */
		atomic_store_explicit(&list->state,
				      res == CF_CU_SUCCESS ? LAUNCHED : REFUSED,
				      memory_order_release);
		list = next;
	}
	return rest;
}

static void launch_list(struct cf_gather *gather)
{
	struct seat *list = atomic_exchange_explicit(&gather->list, NULL,
						     memory_order_acquire);

	while (list)
		list = launch(gather, list);
}

static int state_of(struct seat *seat)
{
	return atomic_load_explicit(&seat->state, memory_order_acquire);
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
	return spins % 32 == 0 && now_ns() - begun > limit_ns;
}

/* Until the seat is off the list and launched, by whomever. */
static void wait_launch(struct cf_gather *gather, struct seat *seat,
			int64_t begun, bool make_room)
{
	for (unsigned spins = 1; state_of(seat) == LISTED; spins++) {
		bool late = is_late(spins, begun, TURN_NS);

		if (take_turn(gather)) {
			launch_list(gather);
			end_turn(gather);
		} else if (late) {
			launch_list(gather);
		}
		if (state_of(seat) == LISTED)
			wait_a_bit(make_room || late);
	}
}

/*
 * All blocks have reported. The acquire pairs with the kernel's fence before
 * its report: who sees the report sees the bytes.
 */
static bool is_reported(struct cf_gather *gather, const struct seat *seat)
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
static int wait_stream(struct cf_gather *gather, const struct seat *seat)
{
	const struct cf_cuda *cuda = cf_cuda_loaded();
	CUresult res = cuda ? cuda->stream_synchronize(seat->stream) :
			      CF_CU_DEINITIALIZED;

	if (res == CF_CU_SUCCESS && !is_reported(gather, seat))
		res = CF_CU_LAUNCH_FAILED;
	return cf_cuda_code(res);
}

static int wait_report(struct cf_gather *gather, const struct seat *seat,
		       int64_t begun, bool make_room)
{
	for (unsigned spins = 1; !is_reported(gather, seat); spins++) {
		if (is_late(spins, begun, REPORT_NS))
			return wait_stream(gather, seat);
		wait_a_bit(make_room);
	}
	return 0;
}

static void rest(struct cf_gather *gather, int64_t now)
{
	int64_t rest_ns =
		atomic_load_explicit(&gather->rest_ns, memory_order_relaxed);
	int64_t next = rest_ns < MAX_REST_NS ? 2 * rest_ns : rest_ns;

	atomic_store_explicit(&gather->rest_ns, next, memory_order_relaxed);
	atomic_store_explicit(&gather->rest_until, now + rest_ns,
			      memory_order_relaxed);
}

/*
 * Long waits add up, short ones take away. After a rest a few long ones are
 * enough for the next and longer one, until many short ones have come.
 */
static void note_wait(struct cf_gather *gather, int64_t begun)
{
	unsigned slowness =
		atomic_load_explicit(&gather->slowness, memory_order_relaxed);
	int64_t now = now_ns();

	if (now - begun > SLOW_NS)
		slowness += SLOW_WEIGHT;
	else if (slowness)
		slowness--;
	else
		return;
	if (slowness > SLOW_LIMIT) {
		slowness = SLOW_LIMIT / 2;
		/* those who waited beside us have said the same */
		if (!is_resting(gather))
			rest(gather, now);
	}
	if (!slowness)
		atomic_store_explicit(&gather->rest_ns, REST_NS,
				      memory_order_relaxed);
	atomic_store_explicit(&gather->slowness, slowness,
			      memory_order_relaxed);
}

static void fill_seat(struct cf_gather *gather, struct seat *seat, uint64_t dst,
		      uint64_t src, size_t size)
{
	struct cf_gather_report *report = report_of(gather, seat);

	seat->row = (struct cf_gather_row){
		.dst = dst,
		.src = src,
		.report = gather->kernel.reports_addr +
			  (uint64_t)(seat - gather->seats) * sizeof(*report),
		.size = (uint32_t)size,
	};
	/* the push releases all of it, to the launcher and so to the GPU */
	for (unsigned i = 0; i < cf_gather_blocks(seat->row.size); i++)
		atomic_store_explicit(&report->done[i], 0,
				      memory_order_relaxed);
	atomic_store_explicit(&seat->state, LISTED, memory_order_relaxed);
}

static int copy(struct cf_gather *gather, uint64_t dst, uint64_t src,
		size_t size)
{
	struct seat *seat = take_seat(gather);
	bool make_room =
		atomic_load_explicit(&gather->present, memory_order_relaxed) >
		gather->nr_cpus;
	int64_t begun;
	int err;

	if (!seat)
		return -ENOTSUP;
	begun = now_ns();
	fill_seat(gather, seat, dst, src, size);
	list_seat(gather, seat);
	wait_launch(gather, seat, begun, make_room);
	err = state_of(seat) == REFUSED ?
		      seat->code :
		      wait_report(gather, seat, begun, make_room);
	free_seat(gather, seat);
	note_wait(gather, begun);
	return err;
}

/* The slot's address for the GPU; 0: it is not for us. */
static uint64_t usable(struct cf_gather *gather, const void *slot, size_t size)
{
	if (!size || size > CF_GATHER_MAX_SIZE || !is_ready(gather))
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

// SPDX-License-Identifier: Apache-2.0
/* shuttle_trips - makes, launches and ends the kernel, and counts its rests. */
#include "core/shuttle_trips.h"

#include "core/clock.h"
#include "core/context.h"
#include "core/lane.h"
#include "core/log.h"
#include "core/quiet.h"
#include "core/shuttle_ptx.h"

#define THREADS (32 * CF_SHUTTLE_SEATS)
/* of the GPU's clock, some 50, 200 and 20 us */
#define IDLE_CLOCKS 90000  /* no order for so long: leave */
#define STAY_CLOCKS 360000 /* here for so long: say so */
#define GRACE_CLOCKS 40000 /* and leave, when the next may be behind */
#define LATE_NS (30 * 1000)
/* launches in a row that waited for their end, and it is no chance */
#define BLOCKED 16
#define CLOSE_NS (500 * 1000 * 1000) /* at the close, for the GPU */

/* ---------------------------------------------------------------- life */

void cf_trips_init(struct cf_trips *trips, CUcontext ctx, int ordinal,
		   size_t room, size_t near, size_t fresh_at)
{
	trips->ctx = ctx;
	trips->ordinal = ordinal;
	trips->room = room;
	trips->near = near;
	trips->fresh_at = fresh_at;
	cf_permit_init(&trips->permit);
}

static void end_objects(const struct cf_cuda *cuda, struct cf_trips *trips)
{
	if (cuda && trips->stream)
		cuda->stream_destroy(trips->stream);
	if (cuda && trips->module)
		cuda->module_unload(trips->module);
	if (trips->pinned.mem)
		cf_pinned_end(&trips->pinned, cuda);
	trips->stream = NULL;
	trips->module = NULL;
	trips->pinned.mem = NULL;
}

/*
 * Of a context that broke nobody says whether its kernels are gone. The board
 * does where they came to their end: others may look at the orders yet.
 */
static bool is_empty(const struct cf_cuda *cuda, const struct cf_trips *trips)
{
	return (cuda && trips->stream &&
		cuda->stream_query(trips->stream) == CF_CU_SUCCESS) ||
	       (trips->pinned.mem && atomic_load(&trips->words.board->gone) ==
					     atomic_load(&trips->trip));
}

/* One that never came keeps what it will read. */
void cf_trips_fini(struct cf_trips *trips, bool alive)
{
	const struct cf_cuda *cuda = alive ? cf_cuda_loaded() : NULL;

	if (cuda && trips->stream &&
	    !cf_lane_ends_by(cuda, trips->stream, CLOSE_NS)) {
		cf_log(CF_LOG_WARN,
		       "shuttle: trip %u has not come by the close, what it "
		       "will read is left to it",
		       atomic_load(&trips->trip));
	} else {
		if (is_empty(cuda, trips))
			cf_aperture_end(&trips->aperture);
		end_objects(cuda, trips);
	}
	cf_permit_fini(&trips->permit);
}

bool cf_trips_retire(struct cf_trips *trips)
{
	bool empty = !trips->aperture.mem || is_empty(NULL, trips);

	if (empty)
		cf_aperture_end(&trips->aperture);
	return empty;
}

static CUresult make_kernel(const struct cf_cuda *cuda, struct cf_trips *trips)
{
	CUresult res = cuda->module_load_data(&trips->module, cf_shuttle_ptx);

	if (res != CF_CU_SUCCESS) {
		trips->module = NULL;
		return res;
	}
	res = cuda->module_get_function(&trips->function, trips->module,
					"cf_shuttle");
	return res == CF_CU_SUCCESS ? cf_lane_stream(cuda, &trips->stream) :
				      res;
}

static CUresult make_board(struct cf_trips *trips)
{
	if (cf_pinned_make(&trips->pinned, trips->room, NULL, -1))
		return CF_CU_OUT_OF_MEMORY;
	trips->words.board = (struct cf_shuttle_board *)trips->pinned.mem;
	trips->words.orders = trips->words.board->orders;
	return trips->pinned.gpu_addr ? CF_CU_SUCCESS : CF_CU_NOT_SUPPORTED;
}

/* Orders are void before anybody writes one, on whatever processor. */
static void make_aperture(struct cf_trips *trips)
{
	struct cf_shuttle_order *orders;

	if (!cf_aperture_make(&trips->aperture, trips->ordinal, trips->near,
			      trips->stream))
		return;
	orders = (struct cf_shuttle_order *)trips->aperture.mem;
	cf_shuttle_void_all(trips->words.board, orders);
	cf_aperture_settle(&orders->words[0]);
	cf_fresh_init(&trips->fresh, &trips->aperture, trips->fresh_at,
		      trips->stream, &trips->words.board->answer);
	trips->words.orders = orders;
}

static uint64_t orders_addr(const struct cf_trips *trips)
{
	return cf_shuttle_in_aperture(&trips->words) ?
		       trips->aperture.gpu :
		       trips->pinned.gpu_addr +
			       offsetof(struct cf_shuttle_board, orders);
}

/* 0, or why it cannot be current; then the driver is there to be called. */
static CUresult enter(const struct cf_trips *trips, struct cf_scope *scope)
{
	int err = cf_context_enter(trips->ctx, scope);

	return err ? (CUresult)cf_cuda_result(err) : CF_CU_SUCCESS;
}

static CUresult make(void *owner)
{
	struct cf_trips *trips = owner;
	const struct cf_cuda *cuda = cf_cuda_loaded();
	struct cf_scope scope;
	CUresult res;

	if (!cuda || !cuda->module_load_data || !cuda->module_unload ||
	    !cuda->module_get_function || !cuda->launch_kernel)
		return CF_CU_NOT_SUPPORTED;
	res = enter(trips, &scope);
	if (res != CF_CU_SUCCESS)
		return res;
	res = cf_context_is_quiet(cuda, CF_QUIET_PATIENCE_NS) ?
		      make_kernel(cuda, trips) :
		      CF_CU_NOT_READY;
	if (res == CF_CU_SUCCESS)
		res = make_board(trips);
	if (res == CF_CU_SUCCESS)
		make_aperture(trips);
	else
		end_objects(cuda, trips);
	cf_context_leave(&scope);
	return res;
}

bool cf_trips_are_ready(struct cf_trips *trips)
{
	return cf_permit_ask(&trips->permit, "shuttle", make, trips);
}

/* --------------------------------------------------------------- rests */

/* Those who wait beside us say the same. */
void cf_trips_rest(struct cf_trips *trips, const char *why)
{
	if (cf_permit_rests(&trips->permit))
		return;
	cf_permit_rest(&trips->permit);
	cf_log(CF_LOG_INFO,
	       "shuttle: %s (trip %u), small copies go alone for a while", why,
	       atomic_load(&trips->trip));
}

/*
 * One that waits for its end (CUDA_LAUNCH_BLOCKING) is gone when it is back;
 * so is one whose thread was not let run for long.
 */
static bool are_blocked(struct cf_trips *trips, uint32_t trip)
{
	unsigned blocked = 0;

	if (atomic_load_explicit(&trips->words.board->gone,
				 memory_order_relaxed) == trip)
		blocked = 1 + atomic_load_explicit(&trips->blocked,
						   memory_order_relaxed);
	atomic_store_explicit(&trips->blocked, blocked % BLOCKED,
			      memory_order_relaxed);
	return blocked == BLOCKED;
}

bool cf_trips_are_late(struct cf_trips *trips, int64_t *since)
{
	int64_t now = cf_clock_ns();
	int64_t launched =
		atomic_load_explicit(&trips->launched, memory_order_relaxed);

	if (!*since ||
	    atomic_load_explicit(&trips->launching, memory_order_relaxed))
		*since = now;
	if (*since < launched)
		*since = launched;
	return now - *since > LATE_NS;
}

/* ------------------------------------------------------------ launching */

static CUresult launch(struct cf_trips *trips, uint32_t trip)
{
	uint64_t idle = IDLE_CLOCKS, stay = STAY_CLOCKS, grace = GRACE_CLOCKS;
	uint64_t orders = orders_addr(trips);
	void *params[] = {
		&trips->pinned.gpu_addr, &orders, &trip, &idle, &stay, &grace
	};
	struct cf_scope scope;
	CUresult res = enter(trips, &scope);

	if (res != CF_CU_SUCCESS)
		return res;
	res = cf_cuda_entered()->launch_kernel(trips->function, 1, 1, 1,
					       THREADS, 1, 1, 0, trips->stream,
					       params, NULL);
	cf_context_leave(&scope);
	return res;
}

/* Asks once for each doubt. No trip is in the stream, to hold up the answer. */
static bool is_stale(struct cf_trips *trips)
{
	enum cf_freshness found = CF_FRESH_UNKNOWN;
	struct cf_scope scope;

	if (!atomic_load_explicit(&trips->doubted, memory_order_relaxed) ||
	    enter(trips, &scope) != CF_CU_SUCCESS)
		return false;
	found = cf_fresh_ask(cf_cuda_entered(), &trips->fresh);
	cf_context_leave(&scope);
	if (found == CF_FRESH_UNKNOWN)
		return false;
	atomic_store_explicit(&trips->doubted, false, memory_order_relaxed);
	return found == CF_FRESH_STALE;
}

static void suspend(struct cf_trips *trips)
{
	cf_log(CF_LOG_INFO,
	       "shuttle: the process was restored from a checkpoint, what is "
	       "on gpu %d is made anew",
	       trips->ordinal);
	cf_permit_suspend(&trips->permit);
	atomic_store_explicit(&trips->stale, true, memory_order_release);
}

static bool make_anew(struct cf_trips *trips)
{
	const struct cf_cuda *cuda = cf_cuda_loaded();
	struct cf_scope scope;
	bool empty;

	if (!cuda || enter(trips, &scope) != CF_CU_SUCCESS)
		return false;
	empty = cuda->stream_query(trips->stream) == CF_CU_SUCCESS;
	if (empty) {
		cf_aperture_end(&trips->aperture);
		trips->words.orders = trips->words.board->orders;
		cf_shuttle_void_all(trips->words.board, trips->words.orders);
		/* of the one that is gone, and there may be no other */
		atomic_store_explicit(&trips->doubted, false,
				      memory_order_relaxed);
		make_aperture(trips);
		atomic_store_explicit(&trips->stale, false,
				      memory_order_relaxed);
		cf_permit_resume(&trips->permit);
	}
	cf_context_leave(&scope);
	return empty;
}

/* Who launches needs no seat: a kernel must not get addresses that go. */
bool cf_trips_renew(struct cf_trips *trips)
{
	bool renewed;

	if (!cf_trips_are_stale(trips))
		return true;
	if (atomic_exchange_explicit(&trips->launching, true,
				     memory_order_acquire))
		return false;
	renewed = make_anew(trips);
	atomic_store_explicit(&trips->launching, false, memory_order_release);
	return renewed;
}

/* The number stands first, so that who looks meanwhile waits for that trip. */
static void launch_next(struct cf_trips *trips)
{
	uint32_t trip = atomic_load(&trips->trip);
	CUresult res;

	if (!cf_shuttle_has_left(trips->words.board, trip))
		return;
	if (is_stale(trips)) {
		suspend(trips);
		return;
	}
	atomic_store(&trips->trip, trip + 1);
	res = launch(trips, trip + 1);
	if (res != CF_CU_SUCCESS)
		atomic_store(&trips->trip, trip);
	atomic_store_explicit(&trips->launched, cf_clock_ns(),
			      memory_order_relaxed);
	if (res != CF_CU_SUCCESS)
		cf_trips_rest(trips, cf_cuda_error_name((int)res));
	else if (are_blocked(trips, trip + 1))
		cf_trips_rest(trips, "launches wait for their end");
}

bool cf_trips_send_for(struct cf_trips *trips)
{
	if (cf_trips_one_is_here(trips) ||
	    atomic_exchange_explicit(&trips->launching, true,
				     memory_order_acquire))
		return true;
	/* who has a seat yet may not know */
	if (!cf_permit_rests(&trips->permit) && !cf_trips_are_stale(trips))
		launch_next(trips);
	atomic_store_explicit(&trips->launching, false, memory_order_release);
	return cf_trips_one_is_here(trips);
}

static CUresult ask(struct cf_trips *trips)
{
	struct cf_scope scope;
	CUresult res = enter(trips, &scope);

	if (res != CF_CU_SUCCESS)
		return res;
	res = cf_cuda_entered()->stream_query(trips->stream);
	cf_context_leave(&scope);
	return res;
}

/* Where the context broke each answer is an error; else a trip may be here. */
CUresult cf_trips_ask(struct cf_trips *trips)
{
	CUresult res = ask(trips);

	return res == CF_CU_SUCCESS || res == CF_CU_NOT_READY ? res :
								ask(trips);
}

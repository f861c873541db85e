// SPDX-License-Identifier: Apache-2.0
/* draws - finds windows to copy from, and checks their pages meanwhile. */
#include "path/draws.h"

#include <errno.h>
#include <stdatomic.h>
#include <time.h>
#include "core/copy_in.h"
#include "core/pause.h"
#include "core/windows.h"

/* cf_draws open from which on waits sleep; with fewer, copies end too soon */
#define MANY 4

#define MAX_NAPS 1000

/* bytes sent as a group; the link's pause behind them is short beside them */
#define TOGETHER ((size_t)4 << 20)

#define FERRY_DEPTH CF_FERRY_ORDERS /* as many as a board holds */

static _Atomic unsigned nr_open; /* by lanes; relaxed: a hint */

static void begin(struct cf_draws *draws, const struct cf_gpu *gpu,
		  size_t depth)
{
	draws->gpu = gpu;
	draws->depth = depth;
	draws->chunk = cf_windows_chunk();
	draws->begun = draws->sent = draws->ended = 0;
	draws->waiting = 0;
	draws->groups = 0;
	draws->naps = 0;
}

void cf_draws_open_ferry(struct cf_draws *draws, struct cf_ferry *ferry)
{
	begin(draws, ferry->gpu, FERRY_DEPTH);
	draws->ferry = ferry;
}

int cf_draws_open(struct cf_draws *draws, struct cf_device *dev)
{
	int err = cf_lane_lease(&dev->lanes, &draws->lane);

	if (err)
		return err;
	begin(draws, dev->gpu, CF_DRAWS);
	draws->ferry = NULL;
	draws->cuda = cf_cuda_entered();
	draws->dev = dev;
	draws->by_lift = false;
	draws->sleeps = atomic_fetch_add_explicit(
				&nr_open, 1, memory_order_relaxed) >= MANY - 1;
	return 0;
}

void cf_draws_close(struct cf_draws *draws)
{
	if (draws->ferry)
		return;
	atomic_fetch_sub_explicit(&nr_open, 1, memory_order_relaxed);
	cf_lane_give_back(&draws->dev->lanes, draws->lane);
}

unsigned cf_draws_out(void)
{
	return atomic_load_explicit(&nr_open, memory_order_relaxed);
}

/* ------------------------------------------------------------------ ends */

static struct cf_draw *oldest(struct cf_draws *draws)
{
	return &draws->draws[draws->ended % draws->depth];
}

static void check(struct cf_draw *one)
{
	if (!one->looked &&
	    !cf_window_is_current(one->window, one->from, one->size))
		one->why = "pages were replaced";
	one->looked = true;
}

/*
 * Costs no time while the copies are on their way. Orders that were posted at
 * once are carried out when the stream comes, so their check waits for it.
 */
static void check_sent(struct cf_draws *draws)
{
	if (draws->ferry && draws->ferry->at_once)
		(void)cf_ferry_wait_begun(draws->ferry);
	for (size_t n = draws->ended; n < draws->sent; n++)
		check(&draws->draws[n % draws->depth]);
}

/* The oldest copy is over; not moved: it failed, or its ferry is gone. */
static void take_note(struct cf_draws *draws, bool moved)
{
	struct cf_draw *one = oldest(draws);

	draws->ended++;
	check(one);
	if (!moved) {
		if (!draws->ferry)
			cf_lane_settle(draws->lane);
		one->why = "the copy failed";
	}
	cf_windows_put(one->window, one->why);
	draws->over(draws, one);
}

static bool wait_for(const struct cf_draws *draws, struct cf_draw *one)
{
	if (one->lost)
		return false;
	if (one->rides)
		return cf_lift_wait(&draws->dev->lift, &one->rider) ==
		       CF_CU_SUCCESS;
	return draws->ferry ? !cf_ferry_wait(draws->ferry, one->nr) :
			      draws->cuda->event_synchronize(one->done) ==
				      CF_CU_SUCCESS;
}

/* First ends draws whose event the new group would use again. */
static void send_off(struct cf_draws *draws)
{
	while (draws->ended < draws->sent &&
	       draws->groups - oldest(draws)->group == CF_LANE_DEPTH)
		take_note(draws, wait_for(draws, oldest(draws)));
	cf_draws_send(draws);
}

static void wait_oldest(struct cf_draws *draws)
{
	if (draws->sent == draws->ended)
		send_off(draws);
	check_sent(draws);
	take_note(draws, wait_for(draws, oldest(draws)));
}

void cf_draws_look(struct cf_draws *draws)
{
	while (draws->ended < draws->sent) {
		const struct cf_draw *one = oldest(draws);
		CUresult res = one->lost ? CF_CU_UNKNOWN :
					   draws->cuda->event_query(one->done);

		if (res == CF_CU_NOT_READY) {
			check_sent(draws);
			return;
		}
		take_note(draws, res == CF_CU_SUCCESS);
	}
}

void cf_draws_wait(struct cf_draws *draws)
{
	send_off(draws);
	while (draws->ended < draws->begun)
		wait_oldest(draws);
}

void cf_draws_check(struct cf_draws *draws)
{
	send_off(draws);
	check_sent(draws);
}

static void window_comes_back(const struct cf_ferry_loan *loan, bool lost)
{
	cf_windows_put(loan->what, lost);
}

/* Ends the oldest before its copy is over, if it is known to count. */
static bool leave(struct cf_draws *draws)
{
	struct cf_draw *one = oldest(draws);
	const struct cf_ferry_loan loan = { .back = window_comes_back,
					    .what = one->window };

	if (!draws->ferry || !one->looked || one->lost || one->why ||
	    !cf_ferry_lend(draws->ferry, &loan))
		return false;
	draws->ended++;
	draws->over(draws, one);
	return true;
}

void cf_draws_leave(struct cf_draws *draws)
{
	while (draws->ended < draws->begun && leave(draws))
		;
	cf_draws_wait(draws);
}

/* ------------------------------------------------------------- beginning */

/*
 * Another thread is opening a window, which takes a millisecond. Except in mode
 * auto the CPU is to be spared the copy: the caller waits asleep, but not for
 * ever. True: look for the window again.
 */
static bool waits_for_others(struct cf_draws *draws)
{
	if (cf_windows_mode() == CF_WINDOWS_AUTO || draws->naps == MAX_NAPS)
		return false;
	/* this thread may attend a lift's car whose riders wait for it */
	if (draws->by_lift && draws->begun != draws->ended) {
		wait_oldest(draws);
		return true;
	}
	draws->naps++;
	nanosleep(&(struct timespec){ .tv_nsec = CF_NAP_NS }, NULL);
	return true;
}

/* Ends draws of its own if the window needs their room. */
static int find_window(struct cf_draws *draws, const struct cf_piece *piece,
		       uint64_t chunk, struct cf_window **window)
{
	int err;

	for (;;) {
		err = cf_windows_get(piece, chunk, draws->gpu, window);
		if (err == -EBUSY && waits_for_others(draws))
			continue;
		if (err != -ENOSPC || draws->begun == draws->ended)
			return err;
		wait_oldest(draws);
	}
}

/* Bytes that the window shows; the next path carries the rest. */
static size_t shown_of(const struct cf_draw *one)
{
	size_t end = one->window->size;
	size_t shown = one->from < end ? end - one->from : 0;

	return one->size < shown ? one->size : shown;
}

/* While a copy is under way, the next draws are gathered for one call. */
static bool should_send(const struct cf_draws *draws)
{
	return draws->ferry || draws->sent == draws->ended ||
	       draws->waiting >= TOGETHER ||
	       draws->begun - draws->sent >= draws->depth / 2;
}

/* Whether the CPU reads no byte: where the file was cut that is a SIGBUS. */
static bool goes_unread(const struct cf_draws *draws, const struct cf_draw *one)
{
	return draws->ferry || one->window->pin.gpu ||
	       cf_copy_in_goes_unread(draws->cuda, &one->piece->mem, one->at,
				      one->size);
}

static size_t leave_to_others(const struct cf_draw *one)
{
	cf_windows_put(one->window, false);
	return 0;
}

size_t cf_draw_begin(struct cf_draws *draws, const struct cf_piece *piece,
		     const struct cf_part *part, const char **why)
{
	uint64_t off = (uint64_t)piece->file_off + part->at;
	struct cf_draw one = { .piece = piece,
			       .from = off % draws->chunk,
			       .at = part->at,
			       .size = part->size };

	if (draws->begun - draws->ended == draws->depth)
		wait_oldest(draws);
	*why = "no window";
	if (find_window(draws, piece, off / draws->chunk, &one.window))
		return 0;
	*why = "the file ends in no whole granule";
	one.size = shown_of(&one);
	if (!one.size)
		return leave_to_others(&one);
	*why = "the CPU would read its pages";
	if (!goes_unread(draws, &one))
		return leave_to_others(&one);
	draws->draws[draws->begun++ % draws->depth] = one;
	draws->waiting += one.size;
	if (should_send(draws))
		send_off(draws);
	return one.size;
}

struct cf_draw *cf_draws_last(struct cf_draws *draws)
{
	return &draws->draws[(draws->begun - 1) % draws->depth];
}

bool cf_draw_file_stands(const struct cf_piece *piece)
{
	struct cf_stamp now;

	return !cf_stamp_take(piece->handle->fd, &now) &&
	       cf_stamp_equal(&now, &piece->view.stamp);
}

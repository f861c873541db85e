// SPDX-License-Identifier: Apache-2.0
/*
 * draws - copies out of windows that are under way, on one lane or by a ferry.
 *
 * DESIGN  A window (core/windows.h) is pinned pages of the page cache, and a
 * draw is one copy straight out of it. A few draws run while the next window is
 * found or opened; those that wait behind them go in one call of the driver
 * (core/copy_many.h). Draws of small reads go by a lift together with those of
 * other threads (core/lift.h), if the window is pinned. For a stream operation
 * a draw is an order of its ferry. Then no driver call may be made: windows
 * that a ferry uses must be pinned, and none is opened for it.
 *
 * A draw's bytes count if, at one moment during the copy or after it, the pages
 * copied from were the file's, and if the file's stamp did not change from the
 * look before the route was chosen until after that moment. Otherwise they are
 * read again in another way.
 *
 * WHY NO WRONG BYTE IS SEEN  A page that was registered has a reference: as
 * long as it is the file's, it is what read(2) copies from, and no page can
 * leave the file without leaving the page tables first.
 *  - A write through the page cache, and a store to a shared mapping, change
 *    the page itself, which the GPU sees as a CPU does.
 *  - A truncation, a hole, a collapsed or cloned range, and a write with
 *    O_DIRECT take pages out of the file. Their bits in the witness's page
 *    table go, and stay away, because nobody can touch it: not a fault beside
 *    it, that of pinning or of another window, nor mlockall. ctime does not
 *    tell of each: a direct write sets it when it begins, and takes the pages
 *    out when it ends, which may be long after the file looked settled. A page
 *    that goes after the look keeps its bytes for as long as it is pinned, and
 *    the read is as one that was before what took it out.
 *  - Reclaim, drop_caches, compaction and khugepaged leave a page with a
 *    reference in its file. They may take it out of the page table for a
 *    while, and then the bytes are read again for nothing.
 *  - A page may be replaced in the file while it is being pinned. The witness
 *    had its pages before any was pinned, so it has lost the replaced page's
 *    bit; the pages that it still has are those that were pinned.
 *  - A debugger, or a write to /proc/self/mem, may touch the witness. Then only
 *    the stamp tells, which is compared at each read.
 *  - A change in the same tick as the stamp would not show in it: no window
 *    is opened on a file that changed so lately (cf_stamp_is_settled).
 *  - If another file takes the name, the handle still has its own file. If the
 *    descriptor comes to name another file, it is not mapped; if that happens
 *    while it is being mapped, the window is not used.
 *  - The CPU must not read a registered mapping: if the file was truncated, the
 *    touch would be a SIGBUS. The driver reads it by the CPU for small copies
 *    (core/copy_in.h), so these go in rows, or another way.
 *  - File systems where one of these does not hold are not mapped at all
 *    (core/windows_look.c).
 */
#ifndef CF_PATH_DRAWS_H
#define CF_PATH_DRAWS_H

#include "core/device.h"
#include "core/ferry.h"
#include "core/piece.h"

#define CF_DRAWS CF_FERRY_ORDERS /* under way, at most */

struct cf_window;

struct cf_draw {
	const struct cf_piece *piece;
	/* what tells that the copy is done: the event of the group that it was
	 * sent with, or a ferry's order, or, if it rides, the rider */
	unsigned group;
	CUevent done;
	uint32_t nr;
	bool rides;
	struct cf_rider rider;
	struct cf_window *window;
	size_t from;	 /* in the window */
	size_t at, size; /* in the piece */
	bool last;	 /* of its piece; set by the owner */
	bool looked;	 /* its pages were checked during the copy */
	bool lost;	 /* no copy is under way */
	const char *why; /* its bytes do not count; or NULL */
};

/* Of one thread. */
struct cf_draws {
	/* Called when the oldest is over; one->why: its bytes do not count. */
	void (*over)(struct cf_draws *draws, const struct cf_draw *one);
	const struct cf_gpu *gpu;
	struct cf_ferry *ferry; /* or NULL, and then: */
	const struct cf_cuda *cuda;
	struct cf_device *dev;
	struct cf_lane *lane;
	size_t chunk; /* bytes of a file that one window shows */
	size_t depth; /* draws under way, at most */
	struct cf_draw draws[CF_DRAWS];
	size_t begun, sent, ended; /* counts of draws, in their order */
	size_t waiting;		   /* bytes begun and not sent */
	unsigned groups;	   /* sent; each has an event */
	unsigned naps;		   /* for windows that another thread opens */
	bool sleeps;		   /* waits asleep */
	bool by_lift;		   /* set by the owner before the first draw */
};

/* The device is entered. 0, or a negative code: there is no lane. */
int cf_draws_open(struct cf_draws *draws, struct cf_device *dev);
void cf_draws_open_ferry(struct cf_draws *draws, struct cf_ferry *ferry);
/* All draws are over. */
void cf_draws_close(struct cf_draws *draws);
/* How many are open, but for those of ferries. */
unsigned cf_draws_out(void);

/*
 * Begins the copy of a part, which lies within the file and in one chunk of it.
 * May wait for the oldest draw. Answers how many bytes from its front are on
 * their way; 0: none, for the reason *why.
 */
size_t cf_draw_begin(struct cf_draws *draws, const struct cf_piece *piece,
		     const struct cf_part *part, const char **why);

/* Sends all draws that wait as one group; for draws.c. */
void cf_draws_send(struct cf_draws *draws);

/* The draw that was begun last, which is not over. */
struct cf_draw *cf_draws_last(struct cf_draws *draws);

/* Whether the file is what it was when the route was chosen. */
bool cf_draw_file_stands(const struct cf_piece *piece);

/* Checks the pages of all draws, which are under way. */
void cf_draws_check(struct cf_draws *draws);

/* Ends the draws that are done; waits until all are. */
void cf_draws_look(struct cf_draws *draws);
void cf_draws_wait(struct cf_draws *draws);

/*
 * As cf_draws_wait, but draws by a ferry that were checked, and count, may
 * still be under way; their windows are lent to the ferry.
 */
void cf_draws_leave(struct cf_draws *draws);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * draws - copies out of windows that are under way, on one lane or by a ferry.
 *
 * DESIGN  A window (core/windows.h) is pinned pages of the page cache, and the
 * copy goes straight out of it. A few run while the next window
 * is found or opened, and what comes behind them goes in one call of the driver
 * (core/copy_many.h). Those of small reads go by a lift, with those of other
 * threads (core/lift.h), out of windows that are pinned. A ferry carries each
 * out as an order, in place of its stream, and makes no call of the driver; so
 * windows that it uses are pinned, and are never opened for it.
 *
 * What was copied counts if the pages copied from were the file's pages at one
 * moment of the read, while the copy was under way or when it was done, and the
 * file's stamp did not change from the look before the route was chosen to
 * behind that moment.
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
 *  - A page that was replaced while it was being pinned, be it the old or the
 *    new one that is: the witness had its pages before any was pinned, and so
 *    has lost the old one's bit. What it still has is what was pinned.
 *  - A debugger, and who writes to /proc/self/mem, may touch the witness. Then
 *    only the stamp tells, which is compared at each read.
 *  - A change in the same tick as the stamp would not show in it: no window
 *    is opened on a file that changed so lately (cf_stamp_is_settled).
 *  - A name that another file took is no matter: the handle has its file. A
 *    descriptor that names another file by now is not mapped, and where it came
 *    to do so while it was, there is no window.
 *  - What is registered the CPU must not read: of a file that was cut it would
 *    be a SIGBUS. The driver's does for small copies (core/copy_in.h), which go
 *    in rows, or another way.
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
	unsigned group; /* it was sent with, */
	CUevent done;	/* and whose this is */
	uint32_t nr;	/* or the order of a ferry */
	bool rides;	/* or this is waited for: */
	struct cf_rider rider;
	struct cf_window *window;
	size_t from;	 /* in the window */
	size_t at, size; /* in the piece */
	bool last;	 /* of its piece; the owner says so */
	bool looked;	 /* whether its pages are the file's */
	bool lost;	 /* nothing copies it */
	const char *why; /* it does not count; or NULL */
};

/* The owner's, for one thread. */
struct cf_draws {
	/* The oldest is over. one->why tells whether its bytes count. */
	void (*over)(struct cf_draws *draws, const struct cf_draw *one);
	const struct cf_gpu *gpu;
	struct cf_ferry *ferry; /* or NULL, and: */
	const struct cf_cuda *cuda;
	struct cf_device *dev;
	struct cf_lane *lane;
	size_t chunk; /* of a file, which a window shows */
	size_t depth; /* so many are under way, at most */
	struct cf_draw draws[CF_DRAWS];
	size_t begun, sent, ended; /* draws; those that are not sent wait, */
	size_t waiting;		   /* so many bytes */
	unsigned groups;	   /* that were sent; each has an event */
	unsigned naps;		   /* for windows that another thread opens */
	bool sleeps;
	bool by_lift; /* the owner says so, before the first */
};

/* The device is entered. 0, or a negative code: there is no lane. */
int cf_draws_open(struct cf_draws *draws, struct cf_device *dev);
void cf_draws_open_ferry(struct cf_draws *draws, struct cf_ferry *ferry);
/* All are over. */
void cf_draws_close(struct cf_draws *draws);

/*
 * Begins the copy of a part that lies in one chunk of the file, and in the
 * file. May wait for the oldest. Bytes from its front that are on their way;
 * or 0, *why being why there are none.
 */
size_t cf_draw_begin(struct cf_draws *draws, const struct cf_piece *piece,
		     const struct cf_part *part, const char **why);

/* Has all copied that wait, as one more group; for draws.c. */
void cf_draws_send(struct cf_draws *draws);

/* The last that was begun, and is not over. */
struct cf_draw *cf_draws_last(struct cf_draws *draws);

/* Whether the file is what it was when the route was chosen. */
bool cf_draw_file_stands(const struct cf_piece *piece);

/* Looks at the pages of all, which are under way. */
void cf_draws_check(struct cf_draws *draws);

/* Tells of those that are over; and of all. */
void cf_draws_look(struct cf_draws *draws);
void cf_draws_wait(struct cf_draws *draws);

/*
 * As to wait, but what a ferry moves, and was checked and counts, may be on its
 * way, and its windows are lent to it.
 */
void cf_draws_leave(struct cf_draws *draws);

#endif

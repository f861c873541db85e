// SPDX-License-Identifier: Apache-2.0
/*
 * windows - which windows are open, and which are worth opening.
 *
 * A file is cut into chunks, and each chunk has at most one window, shared by
 * all handles of the file. It stays open after its use, so that the next read
 * is a copy and nothing else, until the handle that opened it is deregistered,
 * the file changes, a chunk that is read more often needs the room, or memory
 * runs short. A window keeps its file open, and with it locks made by flock; so
 * it outlives its handle at most by a copy that is under way.
 */
#ifndef CF_CORE_WINDOWS_H
#define CF_CORE_WINDOWS_H

#include <stdint.h>
#include <sys/types.h>
#include "core/window.h"
#include "core/windows_limits.h"

struct cf_gpu;
struct cf_piece;

/* What is known of a piece's file pages before its route is chosen. */
enum cf_sight {
	CF_SIGHT_NONE,	/* nobody looked */
	CF_SIGHT_OPEN,	/* windows show all of it */
	CF_SIGHT_WORTH, /* they may be opened: it is cached, and worth it */
	CF_SIGHT_OFF,
	CF_SIGHT_NO_PINS, /* there are none, and mode auto needs them */
	CF_SIGHT_NO_READ, /* a write, or host memory */
	CF_SIGHT_SMALL,
	CF_SIGHT_NO_PAGES, /* O_DIRECT, no regular file, or another one */
	CF_SIGHT_STRANGER, /* a file system that is not known to be safe */
	CF_SIGHT_FIRST_READ,
	CF_SIGHT_COOL,	   /* read again, but not often enough */
	CF_SIGHT_NO_ROOM,  /* beside windows that are used more */
	CF_SIGHT_CHANGING, /* changed a moment ago */
	CF_SIGHT_NOT_CACHED,
	CF_SIGHT_CANNOT_TELL, /* the kernel does not say what is cached */
	CF_SIGHT_REFUSED,     /* its file system, or the driver, said no */
	CF_SIGHT_MEMORY_SHORT,
	CF_NR_SIGHTS
};

struct cf_view {
	enum cf_sight sight;
	bool stamped; /* the stamp was taken, and the piece is in the file */
	enum cf_among among;   /* if it was: what else comes with it */
	struct cf_stamp stamp; /* of the file */
	/* when the range was read before: a window used less recently may go
	 * for it. UINT64_MAX: any may */
	uint64_t since;
};

/*
 * Fills piece->view. Costs next to nothing where nothing is to be gained. The
 * caller holds the handle. known: the file's stamp, taken since the call began,
 * or NULL. Any thread.
 */
void cf_windows_look(struct cf_piece *piece, enum cf_among among,
		     const struct cf_stamp *known);

/* Whether windows that are opened now are pinned, as far as is known. */
bool cf_windows_may_be_pinned(void);

/* Remembers that a piece that was looked at is read now. */
void cf_windows_note(const struct cf_piece *piece);

/*
 * Holds the window of a chunk of the piece's file, opened if need be, for a
 * GPU. 0; -ENOSPC: no room beside windows in use; -EBUSY: another thread is
 * opening it; -ESTALE: it is not open, and cannot or need not be now, or the
 * GPU does not reach it; or why opening failed.
 */
int cf_windows_get(const struct cf_piece *piece, uint64_t chunk,
		   const struct cf_gpu *gpu, struct cf_window **window);

/* Ends a hold: the copy is over. stale: its bytes did not count. */
void cf_windows_put(struct cf_window *window, bool stale);

/* Opens it for the reads to come; as cf_windows_get, but holds nothing. */
int cf_windows_open(const struct cf_piece *piece, uint64_t chunk,
		    const struct cf_gpu *gpu);

/* Takes the windows that a handle opened out of use; */
void cf_windows_retire(const struct cf_handle *handle);
/* has all such windows closed (core/reaper.h). The caller holds no lock. */
void cf_windows_reap(void);

/* Takes all windows out of use, and has them closed. */
void cf_windows_drop(void);

/* At the last close, all handles being gone. Forgets what was refused. */
void cf_windows_close(void);

/* What happened since the last close. */
struct cf_windows_counts {
	uint64_t opened;  /* windows */
	uint64_t used;	  /* copies out of windows */
	uint64_t stale;	  /* copies whose bytes did not count */
	uint64_t refused; /* windows that could not be opened */
	size_t open;	  /* windows, now */
	size_t bytes;	  /* of those, and of those that go */
	size_t holds;	  /* by copies, now */
};
void cf_windows_count(struct cf_windows_counts *counts);

/* fork: the child has none of the parent's windows. */
void cf_windows_fork_prepare(void);
void cf_windows_fork_parent(void);
void cf_windows_fork_child(void);

#endif

// SPDX-License-Identifier: Apache-2.0
/* windows_internal - what windows.c, the look and the survey share. */
#ifndef CF_CORE_WINDOWS_INTERNAL_H
#define CF_CORE_WINDOWS_INTERNAL_H

#include <pthread.h>
#include "core/windows.h"
#include "seam/hidden.h"

/* Guards core/window_table.h and core/reread.h; see windows.c. */
extern CF_HIDDEN pthread_mutex_t cf_windows_lock;

/* Lock held. Whether size bytes fit, or a window older than since may go. */
bool cf_windows_have_room_locked(size_t size, uint64_t since);

/* Up to where windows show a file: its size, cut or filled to their unit. */
uint64_t cf_windows_end(const struct cf_stamp *file, size_t chunk);

/*
 * Whether the chunk in which the piece begins has a window: one that is being
 * made, or shows the file as it was, counts too.
 */
bool cf_windows_are_there(const struct cf_piece *piece, size_t chunk);

/* What is so for all chunks that a read touches. */
struct cf_survey {
	bool all_open;	/* each has a window that shows the file as it is */
	bool again;	/* the bytes of the read have been read before */
	bool hot;	/* and all that was read of the chunks, twice more */
	bool whole;	/* all of each chunk has been read before */
	bool room;	/* the first has a window, or there is room for it */
	uint64_t since; /* the earliest of their last reads */
};

/*
 * Looks at size bytes of the piece, whose view.stamp is set. reads: they are
 * read now, which is remembered. Where size is less than limits->open_from
 * nothing is known or remembered, and again, hot and whole are true.
 */
void cf_windows_survey(const struct cf_piece *piece, size_t size, bool reads,
		       const struct cf_windows_limits *limits,
		       struct cf_survey *survey);

/* A pinned window was opened: has it closed when it is idle (windows_idle.c).
 */
void cf_windows_tend(void);

#endif

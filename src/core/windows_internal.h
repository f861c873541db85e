// SPDX-License-Identifier: Apache-2.0
/* windows_internal - what windows.c, the look and the survey share. */
#ifndef CF_CORE_WINDOWS_INTERNAL_H
#define CF_CORE_WINDOWS_INTERNAL_H

#include <pthread.h>
#include "core/windows.h"

/* The table's and core/reread.h's; see windows.c. */
extern pthread_mutex_t cf_windows_lock;

/* It is held. Whether size bytes fit, or may with what is older than since. */
bool cf_windows_have_room_locked(size_t size, uint64_t since);

/* Where the last window of a file ends, at most: it may be cut to its unit. */
uint64_t cf_windows_end(const struct cf_stamp *file, size_t chunk);

/* Whether there is a window of the file where the piece begins, or was. */
bool cf_windows_are_there(const struct cf_piece *piece, size_t chunk);

/* Of the chunks that a read of size bytes touches, together. */
struct cf_survey {
	bool all_open;	/* each has a window that shows the file as it is */
	bool again;	/* its bytes have been read before */
	bool hot;	/* and twice more */
	bool whole;	/* all of each chunk has */
	bool room;	/* the first one is open, or may be */
	uint64_t since; /* the longest time ago that was */
};

/* piece->view.stamp is set. reads: notes the read, unless it is too small. */
void cf_windows_survey(const struct cf_piece *piece, size_t size, bool reads,
		       const struct cf_windows_limits *limits,
		       struct cf_survey *survey);

#endif

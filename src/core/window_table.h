// SPDX-License-Identifier: Apache-2.0
/*
 * window_table - the windows that are there, by file and chunk, and which of
 * them has to go first.
 *
 * Holds a window from its announcement until it is retired, and then, once
 * nobody uses it, until it is taken away to be closed. Time is counted in
 * looks. The caller holds the lock of windows.c, but where it is said.
 */
#ifndef CF_CORE_WINDOW_TABLE_H
#define CF_CORE_WINDOW_TABLE_H

#include "core/window.h"

/* Any thread, no lock; hints: windows there are, some to be taken away. */
size_t cf_window_table_size(void);
bool cf_window_table_has_doomed(void);

/* The window of a chunk of a file, also one that is being made; or NULL. */
struct cf_window *cf_window_table_find(const struct cf_stamp *file,
				       uint64_t chunk);
/* There is none of its stamp and chunk yet. */
void cf_window_table_add(struct cf_window *w);

/* So many bytes are read, 1 or more; the time, which such bytes are. */
uint64_t cf_window_table_tick(size_t size);

/* It is used now, until it is let go. */
void cf_window_table_hold(struct cf_window *w);
void cf_window_table_let_go(struct cf_window *w);
/* By its maker, whose it is again: it was retired. */
void cf_window_table_unhold(struct cf_window *w);

/*
 * The one that was not used for the longest time, of those that may go for a
 * newcomer that was read at since; UINT64_MAX: for any. NULL: none may.
 */
struct cf_window *cf_window_table_oldest(uint64_t since);

/* Nobody finds it any more. All: that a handle opened, or (NULL) unused. */
void cf_window_table_retire(struct cf_window *w);
void cf_window_table_retire_all(const struct cf_handle *handle);

/* One that was retired and is not used; it is the caller's. NULL: none. */
struct cf_window *cf_window_table_take_doomed(void);

/* fork: leaks them all on purpose. */
void cf_window_table_forget(void);

#endif

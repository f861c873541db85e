// SPDX-License-Identifier: Apache-2.0
/*
 * window_table - the windows that there are, by file and chunk, and which of
 * them has to go first.
 *
 * A window can be found from its announcement until it is retired. A retired
 * one that nobody uses is kept aside until it is taken away to be closed. Time
 * is counted in bytes that were read. The caller holds cf_windows_lock, except
 * where the comment says otherwise.
 */
#ifndef CF_CORE_WINDOW_TABLE_H
#define CF_CORE_WINDOW_TABLE_H

#include "core/window.h"

/* Any thread, no lock, hints: how many can be found; any to be taken away? */
size_t cf_window_table_size(void);
bool cf_window_table_has_doomed(void);

/* How many holds there are, of all windows. */
size_t cf_window_table_holds(void);

/* The window of a chunk of a file, also one that is being made; or NULL. */
struct cf_window *cf_window_table_find(const struct cf_stamp *file,
				       uint64_t chunk);
/* The table has no window of this file and chunk yet. */
void cf_window_table_add(struct cf_window *w);

/* Counts size bytes that are read, 1 or more, and answers the time. */
uint64_t cf_window_table_tick(size_t size);

/* A copy uses the window from the hold until it is let go. */
void cf_window_table_hold(struct cf_window *w);
void cf_window_table_let_go(struct cf_window *w);
/* Ends its maker's hold of a retired window, which then is the maker's. */
void cf_window_table_unhold(struct cf_window *w);

/*
 * The window that was unused for the longest time, of those that may go for a
 * chunk whose last read was at the time since. UINT64_MAX: each that is not
 * held may. NULL: none may.
 */
struct cf_window *cf_window_table_oldest(uint64_t since);

/* Takes a window out of the table. All: those that this handle opened; NULL:
 * those that are not held. */
void cf_window_table_retire(struct cf_window *w);
void cf_window_table_retire_all(const struct cf_handle *handle);

/* A retired window that is not held, now the caller's. NULL: there is none. */
struct cf_window *cf_window_table_take_doomed(void);

/* In the child of a fork: leaks all windows on purpose. */
void cf_window_table_forget(void);

#endif

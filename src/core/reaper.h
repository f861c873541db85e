// SPDX-License-Identifier: Apache-2.0
/*
 * reaper - closes windows, and opens them, where nobody waits for it.
 *
 * The driver may hold up the end of a registration until all work of the
 * context is done. A thread that serves a request must not wait for that: the
 * work may be a kernel that waits for the program, or a stream that waits for
 * this very request. So windows are closed by a thread that lives as long as
 * there are some, and its file lets go of each at once. What is pinned nothing
 * holds up: who needs its room closes it.
 */
#ifndef CF_CORE_REAPER_H
#define CF_CORE_REAPER_H

#include <stdbool.h>
#include <stddef.h>

struct cf_window;

/* So many bytes will come; they are counted from now on. Under any lock. */
void cf_reaper_expect(size_t size);

/* Takes a window that nobody uses, and frees it. No lock is held. */
void cf_reaper_take(struct cf_window *w);

/* The same by the calling thread, before it returns. */
void cf_reaper_close_here(struct cf_window *w);

/*
 * Has the thread do this once what it has to close is closed. False: it has
 * such work, or there is no thread.
 */
bool cf_reaper_ask(void (*work)(void));

/* Of the windows that were expected and are still registered. */
size_t cf_reaper_bytes(void);

/* Waits a moment for one of them to go; false if none did. */
bool cf_reaper_wait(void);

/* At the last close: returns when all are gone. */
void cf_reaper_close(void);

/* fork: the child has neither the thread nor the windows. */
void cf_reaper_fork_prepare(void);
void cf_reaper_fork_parent(void);
void cf_reaper_fork_child(void);

#endif

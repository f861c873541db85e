// SPDX-License-Identifier: Apache-2.0
/*
 * reaper - a thread that closes and opens windows, for which no request waits.
 *
 * The driver may hold up the end of a registration until all work of the
 * context is done. A thread that serves a request must not wait for that: the
 * work may be a kernel that waits for the program, or a stream that waits for
 * this very request. So windows are closed by a thread that lives as long as
 * there are some, and a window is taken off its file at once. The end of a pin
 * (pins.h) nothing holds up: a thread that needs its room closes such a window
 * itself.
 */
#ifndef CF_CORE_REAPER_H
#define CF_CORE_REAPER_H

#include <stdbool.h>
#include <stddef.h>

struct cf_window;

/* Windows of size bytes will be given to it, and count now. Under any lock. */
void cf_reaper_expect(size_t size);

/* Takes over a window that no one uses, to close and free. No lock is held. */
void cf_reaper_take(struct cf_window *w);

/* The same, but the calling thread closes it, before this returns. */
void cf_reaper_close_here(struct cf_window *w);

/*
 * Has the thread call work after it has closed its windows. False: it has work
 * already, or no thread can be made.
 */
bool cf_reaper_ask(void (*work)(void));

/*
 * Has the thread call tend each period_ms, until that answers false: there is
 * nothing to look after any more. Call it again for more; tend may be told
 * once too often. A call that cannot make the thread is forgotten.
 */
void cf_reaper_tend(bool (*tend)(void), unsigned period_ms);

/* Bytes of windows that were expected and are not closed yet. */
size_t cf_reaper_bytes(void);

/* Waits a moment until a window is closed; false: none was. */
bool cf_reaper_wait(void);

/* At the last close: returns when all windows are closed. */
void cf_reaper_close(void);

/* fork: the child has neither the thread nor the windows. */
void cf_reaper_fork_prepare(void);
void cf_reaper_fork_parent(void);
void cf_reaper_fork_child(void);

#endif

// SPDX-License-Identifier: Apache-2.0
/* twin - a handle's second descriptor, with O_DIRECT the other way round. */
#ifndef CF_CORE_TWIN_H
#define CF_CORE_TWIN_H

#include "core/handle.h"

/*
 * The descriptor that goes via this, the client's own or the twin, which is
 * opened when first needed; or -errno. look: a client who closed all that it
 * found may have the twin's number for another file; the twin is opened anew
 * then. That is a system call. Any thread; the caller holds the handle.
 */
int cf_twin_fd(struct cf_handle *handle, enum cf_via via, bool look);

/* Before each write there is a look, before reads from here on: of the time of
 * smaller ones it would be a part that counts. */
#define CF_TWIN_LOOK_FROM ((size_t)1 << 20)

/*
 * Whether it can be had, for who has another way if not. What could not be
 * opened is not tried again, unless too many were open.
 */
bool cf_twin_ready(struct cf_handle *handle, enum cf_via via, bool look);

/* Whether fd still names the handle's file, as far as can be told. */
bool cf_twin_is(const struct cf_handle *handle, int fd);

/* Closes what was opened, if it still is that. Nobody holds the handle. */
void cf_twin_close(struct cf_handle *handle);

/* fork: nobody may be in the middle of a reopen. */
void cf_twins_fork_prepare(void);
void cf_twins_fork_release(void); /* in parent and child */

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * session - from the first open to the last close of the driver.
 *
 * Opening reads the configuration and counts the processors: no thread, no
 * CUDA, and of files only the configuration's own and small ones of the kernel.
 * Statistics, nvidia-fs and NICs have more of them, where they are wanted.
 * Some calls open implicitly; registering a file or a buffer then counts as one
 * use, asking for properties does not (contract 3.3, behaviour "Driver and
 * parameters").
 */
#ifndef CF_ENGINE_SESSION_H
#define CF_ENGINE_SESSION_H

#include <stdbool.h>
#include "core/config.h"
#include "engine/rules.h"

/* 0 and one use more, or a negative code. Any thread, also in static init. */
int cf_session_open(void);

/*
 * One use less; the last one waits for the requests that run, then ends
 * handles, buffers and devices. 0, or -5001 if no use is counted.
 */
int cf_session_close(void);

/*
 * Opens if closed, for a caller that will use the session, which keeps it open
 * where a registration fails; counts no use. 0 or a negative code.
 */
int cf_session_open_implicit(void);

/*
 * The same for calls that read or change the running configuration: 0 with the
 * session locked, so that nobody closes it meanwhile. cf_session_end unlocks.
 */
int cf_session_begin(void);
void cf_session_end(void);

/*
 * As cf_session_open_implicit, but for a caller that has something to do before
 * cf_session_begin_register locks; it does not keep the session open.
 */
int cf_session_open_to_register(void);

/*
 * For calls that register something: opens if closed, counts a use if there is
 * none, and answers 0 with the session locked, so that nobody closes it
 * meanwhile; or a negative code. cf_session_end_register unlocks. If the
 * registration failed it takes the use back, and closes a session that nobody
 * else uses, as if it had never been open.
 */
int cf_session_begin_register(bool *counted);
void cf_session_end_register(bool counted, bool failed);

/* True also after an implicit open. */
bool cf_session_is_open(void);
long cf_session_uses(void);

/* The running configuration, NULL when closed; valid until the close. */
const struct cf_config *cf_session_config(void);
/*
 * What requests read of the configuration; for callers that hold a handle,
 * which keeps the session open.
 */
const struct cf_rules *cf_session_rules(void);
/*
 * For the runtime setters, whose values are atomic; the session is locked.
 * Afterwards cf_session_apply tells those who keep a copy.
 */
struct cf_config *cf_session_config_mut(void);
void cf_session_apply(void);

/* Serialises staged parameters against opens and closes. */
void cf_session_lock(void);
void cf_session_unlock(void);

#endif

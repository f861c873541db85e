// SPDX-License-Identifier: Apache-2.0
/*
 * stream_ref - a stream that was registered: where it is, what was promised
 * for it, and how many of its operations are out.
 *
 * On a list from its registration until it is forgotten; freed when nothing
 * of it is out any more. Who gets one counts as one that is out. Lock: that
 * of sops.h, taken inside but where it is said.
 */
#ifndef CF_ENGINE_STREAM_REF_H
#define CF_ENGINE_STREAM_REF_H

#include "engine/place.h"

struct cf_dock;
struct cf_stream_ref;

/* 0, -ENOMEM or, where a stream of the place is listed,
 * -CU_FILE_INVALID_VALUE. */
int cf_stream_ref_list(const struct cf_place *at, unsigned flags);

/* Not locked, a hint: whether any is listed. */
bool cf_stream_refs_any(void);

/* NULL: none. A place whose id is not known could be any of its name. */
struct cf_stream_ref *cf_stream_ref_get(const struct cf_place *at);
void cf_stream_ref_put(struct cf_stream_ref *ref);

/*
 * Takes it off the list; NULL: none. It is known by its handle alone, unless
 * it is a default stream.
 */
struct cf_stream_ref *cf_stream_ref_unlist(const struct cf_place *at);

/*
 * Waits until nothing but the caller's own is out and all bytes are in their
 * places, its context dies or sops are shut; then puts that.
 */
void cf_stream_ref_wait(struct cf_stream_ref *ref);

/* CU_FILE_STREAM_*; they stay. */
unsigned cf_stream_ref_flags(const struct cf_stream_ref *ref);

/* An operation of the dock goes out; comes home, the lock being held. */
void cf_stream_ref_join(struct cf_stream_ref *ref, struct cf_dock *dock);
void cf_stream_ref_leave(struct cf_stream_ref *ref);

/* Forgets all. */
void cf_stream_refs_close(void);
void cf_stream_refs_fork_child(void);

#endif

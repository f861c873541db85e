// SPDX-License-Identifier: Apache-2.0
/*
 * stream_ref - a stream that was registered: where it is, what was promised
 * for it, and how many of its operations are out.
 *
 * On a list from its registration until it is deregistered; freed when no
 * operation of it is out any more. A reference from get or unlist counts like
 * an operation. Lock: that of sops.h, taken inside but where it is said.
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

/* NULL: none. Where the place's id is not known, handle and context decide. */
struct cf_stream_ref *cf_stream_ref_get(const struct cf_place *at);
void cf_stream_ref_put(struct cf_stream_ref *ref);

/*
 * Takes it off the list; NULL: none. Looks for the handle alone, unless it is a
 * default stream, for the stream may be gone already.
 */
struct cf_stream_ref *cf_stream_ref_unlist(const struct cf_place *at);

/*
 * Waits until no operation is out and all bytes are in their places, or the
 * context dies, or sops are shut; then puts the caller's reference.
 */
void cf_stream_ref_wait(struct cf_stream_ref *ref);

/* CU_FILE_STREAM_*, as registered; they never change. */
unsigned cf_stream_ref_flags(const struct cf_stream_ref *ref);

/* An operation of the dock goes out; comes back, with the lock held. */
void cf_stream_ref_join(struct cf_stream_ref *ref, struct cf_dock *dock);
void cf_stream_ref_leave(struct cf_stream_ref *ref);

/* Forgets all streams. */
void cf_stream_refs_close(void);
void cf_stream_refs_fork_child(void);

#endif

// SPDX-License-Identifier: Apache-2.0
/* twin - a handle's second descriptor, with O_DIRECT the other way round. */
#ifndef CF_CORE_TWIN_H
#define CF_CORE_TWIN_H

#include "core/handle.h"

/*
 * The descriptor for this via: the client's own, or the twin, which is opened
 * when first needed; or -errno. look: checks by a system call that the twin's
 * number still names the file, for the client may have closed it, and opens a
 * new twin if not. Any thread; the caller holds the handle.
 */
int cf_twin_fd(struct cf_handle *handle, enum cf_via via, bool look);

/* Each write looks, and reads from this size on: of the time of smaller reads a
 * look would be too large a part. */
#define CF_TWIN_LOOK_FROM ((size_t)1 << 20)

/*
 * Whether that descriptor can be had, for callers that have another way if not.
 * After a failure the twin is not tried again, unless too many files were open,
 * and without one for CF_VIA_DIRECT the file counts as one that refuses it.
 */
bool cf_twin_ready(struct cf_handle *handle, enum cf_via via, bool look);

/* Whether fd still names the handle's file, as far as can be told. */
bool cf_twin_is(const struct cf_handle *handle, int fd);

/* A twin that no handle has any more. */
struct cf_twin_left {
	int fd;	    /* -1: there was none */
	int flags;  /* that it was opened with */
	int client; /* the descriptor that was registered */
	dev_t dev;
	ino_t ino;
};

/* Takes the twin from a handle that no request holds. */
struct cf_twin_left cf_twin_take(struct cf_handle *handle);

/* In the child of a fork: those who opened are not there. */
void cf_twins_fork_child(void);

#endif

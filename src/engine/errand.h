// SPDX-License-Identifier: Apache-2.0
/*
 * errand - a call whose numbers count only when its stream comes to it.
 *
 * An operation has a copy. What the pointers lead to is the client's, who keeps
 * it until the result is there. No locks.
 */
#ifndef CF_ENGINE_ERRAND_H
#define CF_ENGINE_ERRAND_H

#include "engine/request.h"

/* What a read(2) moves at most, and an int holds. */
#define CF_ERRAND_INT_MAX ((size_t)0x7ffff000)

/* The pointers are not NULL, but for ferry and one of bytes_p and int_p. */
struct cf_errand {
	struct cf_call call; /* its numbers as they were when it was accepted */
	size_t *size_p;
	off_t *file_off_p, *buf_off_p;
	unsigned fixed; /* CU_FILE_STREAM_FIXED_*: will not change */
	ssize_t *bytes_p;
	struct cf_known facts;	/* of call.base; base NULL: ask the driver */
	struct cf_ferry *ferry; /* to move the bytes with, or NULL */
	int *int_p; /* instead of bytes_p, for at most CF_ERRAND_INT_MAX */
};

/* At the submission: reads all numbers into the call. */
void cf_errand_accept(struct cf_errand *errand);

/*
 * When the stream has come: reads the numbers that may have changed, and serves
 * the call. Bytes, or a negative code.
 */
ssize_t cf_errand_run(const struct cf_errand *errand);

/* Writes the result where the client looks for it; the stream is still held. */
void cf_errand_tell(const struct cf_errand *errand, ssize_t n);

#endif

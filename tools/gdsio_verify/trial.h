// SPDX-License-Identifier: Apache-2.0
/*
 * trial - what is read where, and which way.
 *
 * One thread's. The memory is a guard, a gap that gives it the alignment, the
 * range itself, and a guard again.
 */
#ifndef GDSIO_VERIFY_TRIAL_H
#define GDSIO_VERIFY_TRIAL_H

#include <cufile.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include "cuda_min.h"
#include "gdsio/memory.h"

enum way {
	WAY_CALLS,  /* cuFileRead */
	WAY_STREAM, /* cuFileReadAsync, on one stream */
	WAY_BATCH,  /* one batch */
};

struct trial {
	/* as asked for */
	const char *file;
	int gpu;   /* TRIAL_ANY_GPU, or a number */
	bool host; /* memory of the host */
	enum way way;
	bool registered; /* the buffer is */
	off_t off, size; /* of the file; size 0: to its end */
	long nr;	 /* requests */
	off_t align;	 /* the buffer is aligned so, and no better; 0: pages */
	off_t buffer_off; /* from there to the pointer of the requests */
	off_t devptr_off; /* and their offset from that */
	/* while it is open */
	int plain_fd, fd; /* fd: with O_DIRECT, where the file can */
	CUfileHandle_t handle;
	struct gpu device;
	struct buffer memory;
	size_t start; /* in memory: what is registered */
	size_t chunk; /* bytes of a request; the last may have fewer */
};

#define TRIAL_ANY_GPU (-1)
#define TRIAL_GUARD 4096

/* False: reported. What was opened is closed in any case. */
bool trial_open(struct trial *trial);
bool trial_close(struct trial *trial);

/* Where the first byte goes, in memory. */
static inline size_t trial_at(const struct trial *trial)
{
	return trial->start + (size_t)trial->buffer_off +
	       (size_t)trial->devptr_off;
}

/* The pointer of all requests. */
static inline void *trial_pointer(const struct trial *trial)
{
	return (char *)trial->memory.base + trial->start + trial->buffer_off;
}

/* Request i: from where in the range, and how much. */
static inline size_t trial_request(const struct trial *trial, long i,
				   size_t *at)
{
	size_t left;

	*at = (size_t)i * trial->chunk;
	left = *at < (size_t)trial->size ? (size_t)trial->size - *at : 0;
	return left < trial->chunk ? left : trial->chunk;
}

/* All requests, one way. False: reported. */
bool trial_read(struct trial *trial);

/* Each byte of the range is another than in the file; the guards are known. */
bool trial_spoil(struct trial *trial);
/* Each is the file's, and the guards are as they were. */
bool trial_compare(struct trial *trial);

#endif

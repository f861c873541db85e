// SPDX-License-Identifier: Apache-2.0
/*
 * copy - one file into another by cuFileRead and cuFileWrite, and the proof.
 *
 * The calls come in this order: open, run, verify, close. A call that fails
 * reports why and answers false; then only close may follow.
 */
#ifndef TOOLS_COPY_H
#define TOOLS_COPY_H

#include <cufile.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include "chunk.h"

struct file {
	const char *name;
	int fd;		/* -1: not open */
	struct stat st; /* as it was opened */
	CUfileHandle_t handle;
	double seconds; /* in cuFileRead or cuFileWrite */
	uint64_t sum;
};

struct copy {
	struct chunk chunk;
	struct file src;
	struct file dst;
	off_t size; /* of the source; 0: empty, or not known */
	off_t done; /* bytes copied */
	double start;
	double sync_seconds; /* in fsync */
	double shown;	     /* when progress was last drawn */
	bool show;	     /* progress */
};

/* Opens both, refuses one file under two names, empties the destination. */
bool copy_open(struct copy *copy);

/* Opens the driver, copies chunk by chunk, fsyncs, closes the driver. */
bool copy_run(struct copy *copy);

/* Reads both files with pread(2) and compares checksums and ends. */
bool copy_verify(struct copy *copy);

void copy_close(struct copy *copy);

/* Decimal gigabytes a second. */
double copy_rate(off_t bytes, double seconds);

#endif

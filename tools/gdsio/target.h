// SPDX-License-Identifier: Apache-2.0
/*
 * target - a file or block device that threads read and write.
 *
 * Opened and looked at by the main thread before anything moves, registered
 * once, and used by any number of threads.
 */
#ifndef GDSIO_TARGET_H
#define GDSIO_TARGET_H

#include <cufile.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include "gdsio/plan.h"

struct target {
	char *name;
	int fd;	      /* with O_DIRECT, unless the job says otherwise */
	int plain_fd; /* for what O_DIRECT cannot do; may be fd itself */
	off_t size;   /* when it was opened */
	off_t begin;  /* the range that is moved */
	off_t end;
	bool was_made; /* it was not there before */
	bool has_handle;
	CUfileHandle_t handle;
};

/* nr: the number in the name of a directory's file. False: reported. */
bool target_open(struct target *target, const struct plan *plan,
		 const struct job *job, int nr);

/*
 * Before random writes, which may leave out the end: makes the file as long as
 * its range, so that all of that can be read at random again. False: reported.
 */
bool target_extend(const struct target *target);
bool target_register(struct target *target);

/* undo: nothing was written, so that a file that was made is removed. */
void target_close(struct target *target, bool undo);

/* The descriptor for a transfer by pread(2) or pwrite(2). */
int target_fd(const struct target *target, off_t off, size_t size);

#endif

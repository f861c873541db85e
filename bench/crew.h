// SPDX-License-Identifier: Apache-2.0
/*
 * crew - threads that read or write many parts of a file at once, as fio's
 * jobs do, into memory of their own. Each thread of a cell has its own crew,
 * which the calls below mean.
 */
#ifndef BENCH_CREW_H
#define BENCH_CREW_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define CREW_PART (1ul << 20) /* bytes; longer jobs are cut */

struct crew_job {
	int fd;
	bool write;
	size_t size; /* CREW_PART at most */
	off_t off;
};

void crew_begin(unsigned helpers); /* 0: the caller alone */
/* Returns when all jobs are done: 0, or an errno; EIO: one came up short. */
int crew_run(const struct crew_job *jobs, unsigned nr);
void crew_end(void); /* also without a begin */

#endif

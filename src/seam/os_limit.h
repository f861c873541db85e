// SPDX-License-Identifier: Apache-2.0
/*
 * os_limit - how large the process may make a file (RLIMIT_FSIZE).
 *
 * To a write that begins at the limit or behind it the kernel answers EFBIG,
 * and sends SIGXFSZ, which ends the process. A line of the log is not worth
 * that. And a request goes on after a short write, with a second call at the
 * limit, where a program's own pwrite would just have come up short.
 */
#ifndef CF_SEAM_OS_LIMIT_H
#define CF_SEAM_OS_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* True: no file may have this size. */
bool cf_limit_forbids(size_t size);
/* True: a write at fd's position (O_APPEND: its end) would be refused. */
bool cf_limit_stops_write(int fd);
/*
 * True: a write of size bytes at off would be refused. False also for a small
 * one that did not ask, as no limit was seen lately.
 */
bool cf_limit_stops_pwrite(int fd, size_t size, off_t off);
/* A write came up short, perhaps at the limit: the next one asks. */
void cf_limit_suspect(void);

#endif

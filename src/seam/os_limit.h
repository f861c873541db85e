// SPDX-License-Identifier: Apache-2.0
/*
 * os_limit - how large the process may make a file (RLIMIT_FSIZE).
 *
 * Behind the limit the kernel does not only say EFBIG: SIGXFSZ ends the
 * process. What is written for ourselves is not worth that, and a request goes
 * on behind a short write, where its caller's one pwrite would have ended.
 */
#ifndef CF_SEAM_OS_LIMIT_H
#define CF_SEAM_OS_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Whether a file may not have this size. */
bool cf_limit_forbids(size_t size);
/* Whether a write to fd, where it stands, or behind an O_APPEND's end, is. */
bool cf_limit_stops_write(int fd);
/* Whether one of size bytes at off is; small ones do not always ask. */
bool cf_limit_stops_pwrite(int fd, size_t size, off_t off);
/* A write came up short, perhaps at the limit: the next one asks. */
void cf_limit_suspect(void);

#endif

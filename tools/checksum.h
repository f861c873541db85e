// SPDX-License-Identifier: Apache-2.0
/* checksum - 64 bits that tell two files apart, by way of plain pread(2). */
#ifndef TOOLS_CHECKSUM_H
#define TOOLS_CHECKSUM_H

#include <stdint.h>
#include <sys/types.h>

/*
 * *sum: of the first size bytes of a file, of all if it is shorter. Answers how
 * many bytes there were, or -1 with errno.
 */
off_t checksum_file(int fd, off_t size, uint64_t *sum);

#endif

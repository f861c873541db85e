// SPDX-License-Identifier: Apache-2.0
/*
 * fuse_world - files of a file system in user space, which a process of the
 * test serves. It bypasses the page cache (FOPEN_DIRECT_IO), and takes one
 * request after the other (no FUSE_ASYNC_DIO).
 */
#ifndef FUSE_WORLD_H
#define FUSE_WORLD_H

#include <stdbool.h>
#include <stddef.h>

#define FUSE_FILE_SIZE (((size_t)8 << 20) + 5)

enum fuse_file {
	FUSE_WHOLE,
	/* large requests are done by half, or a signal comes; there is no
	 * statfs */
	FUSE_SHORT,
	FUSE_NR_FILES
};

/*
 * Before there are other threads: descriptors of the files, to read and write,
 * O_DIRECT. False: it may not be mounted here.
 */
bool fuse_world_begin(int fds[FUSE_NR_FILES]);

/* What a file holds at first. */
unsigned char fuse_world_byte(size_t at);

#endif

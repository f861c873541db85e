// SPDX-License-Identifier: Apache-2.0
/*
 * nvfs_io - requests to nvidia-fs: blocking ones, and ones whose end a fence
 * reports, of which many can be started at once.
 *
 * An operation owns a leased mapping from its start to its end. Its file
 * offset, size and GPU address are multiples of a block; one that begins inside
 * a GPU page must end in the same page.
 */
#ifndef CF_CORE_NVFS_IO_H
#define CF_CORE_NVFS_IO_H

#include <sys/types.h>
#include "core/nvfs_map.h"

/* At the open of a session: a failed batch of an earlier one is forgotten. */
void cf_nvfs_allow_batches(void);

/* How the driver wants a file to be named. */
struct cf_nvfs_file {
	int fd; /* O_DIRECT */
	uint64_t ino;
	unsigned major, minor; /* of the file system, or of the disk */
};

struct cf_nvfs_op {
	struct cf_nvfs_mapping *map;
	bool write;
	uintptr_t gpu;
	size_t size;
	off_t off;
	/* for start and end: */
	int err; /* of the start; not 0: there is no fence to wait for */
	int64_t give_up_ns; /* end of the wait; 0: the fence is sure to come */
};

/* Facts of a descriptor that stays open and is O_DIRECT. 0 or -errno. */
int cf_nvfs_file_facts(int fd, struct cf_nvfs_file *file);

/* The most bytes, up to size, that one operation may move from gpu on. */
size_t cf_nvfs_op_size(const struct cf_nvfs_mapping *map, uintptr_t gpu,
		       size_t size);

/* Returns when it is done: bytes, 0 at the end of the file, or -errno. */
ssize_t cf_nvfs_sync(const struct cf_nvfs_file *file, struct cf_nvfs_op *op);

/*
 * Starts up to CF_NVFS_MAX_BATCH operations, each with a mapping of its own,
 * and does not wait. Each needs a cf_nvfs_end, which waits and answers as sync.
 */
void cf_nvfs_start(const struct cf_nvfs_file *file,
		   struct cf_nvfs_op *const *ops, unsigned nr);
ssize_t cf_nvfs_end(struct cf_nvfs_op *op);

/*
 * After a read of n bytes: the next *size bytes, at *at of the operation, that
 * were not written to the GPU because the file has a hole there. *at is 0 for
 * the first call, and then where to search on. False: no more. Call it before
 * the mapping's next operation.
 */
bool cf_nvfs_next_hole(const struct cf_nvfs_op *op, size_t n, size_t *at,
		       size_t *size);

#endif

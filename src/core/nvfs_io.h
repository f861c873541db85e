// SPDX-License-Identifier: Apache-2.0
/*
 * nvfs_io - requests to nvidia-fs: one that blocks, one whose end a fence
 * tells, and many of these at once.
 *
 * An operation owns a leased mapping from its start to its end. Its file
 * offset, its size and its GPU address are whole blocks; one that begins
 * inside a GPU page ends in it.
 */
#ifndef CF_CORE_NVFS_IO_H
#define CF_CORE_NVFS_IO_H

#include <sys/types.h>
#include "core/nvfs_map.h"

/* At an open: one that failed says nothing of the next session. */
void cf_nvfs_allow_batches(void);

/* The file as the driver wants to have it named. */
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
	/* start and end's own: */
	int err; /* of its start; then there is no fence to wait for */
	uint64_t give_up_ns; /* 0: the fence is sure to come */
};

/* Facts of a descriptor that stays open and is O_DIRECT. 0 or -errno. */
int cf_nvfs_file_facts(int fd, struct cf_nvfs_file *file);

/* The most one operation may move from there: see above. */
size_t cf_nvfs_op_size(const struct cf_nvfs_mapping *map, uintptr_t gpu,
		       size_t size);

/* Blocks. Bytes, 0 at the end of the file, or -errno. */
ssize_t cf_nvfs_sync(const struct cf_nvfs_file *file, struct cf_nvfs_op *op);

/*
 * Starts up to CF_NVFS_MAX_BATCH operations, one mapping each, and has them
 * go on. Each needs its end, also after a failure.
 */
void cf_nvfs_start(const struct cf_nvfs_file *file,
		   struct cf_nvfs_op *const *ops, unsigned nr);
ssize_t cf_nvfs_end(struct cf_nvfs_op *op);

/*
 * The next bytes of a read that moved n of them and were not written in the
 * GPU because the file has a hole there; *at counts from the start of the
 * operation, and is 0 at first. False: no more. Call it before the mapping's
 * next operation.
 */
bool cf_nvfs_next_hole(const struct cf_nvfs_op *op, size_t n, size_t *at,
		       size_t *size);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * nvfs_abi - the calls to the nvidia-fs kernel driver, 2.12 and later.
 *
 * The driver copies a whole argument in, and mostly out again, whatever the
 * call: always pass a zeroed union cf_nvfs_arg. MAP, READ and WRITE answer
 * EPERM for any failure, and leave the true error in io.result.
 */
#ifndef CF_CORE_NVFS_ABI_H
#define CF_CORE_NVFS_ABI_H

#include <stddef.h>
#include <stdint.h>

#define CF_NVFS_READ 0x40047402ul
#define CF_NVFS_MAP 0x40047403ul
#define CF_NVFS_WRITE 0x40047404ul
#define CF_NVFS_BATCH 0x40047408ul

#define CF_NVFS_BLOCK ((size_t)4096)	/* of file offsets and sizes */
#define CF_NVFS_PAGE ((size_t)64 << 10) /* of a GPU's memory */
#define CF_NVFS_MAX_SHADOW ((size_t)16 << 20)
#define CF_NVFS_MAX_BATCH 256
#define CF_NVFS_MAX_HOLES 768

struct cf_nvfs_map_arg {
	int64_t size;	 /* of the GPU's range */
	uint64_t pci;	 /* domain << 32 | bus << 8 | device << 3 | function */
	uint64_t shadow; /* as mmap answered it */
	uint64_t gpu;	 /* first byte of the range */
	uint64_t fence;	 /* a page of ours, for struct cf_nvfs_fence */
	uint32_t blocks; /* of the shadow */
	uint16_t internal; /* 1: not a buffer of the client's */
	uint16_t pad;
};

/* for bits of struct cf_nvfs_io_arg */
#define CF_NVFS_SYNC 0x01u
#define CF_NVFS_OP_WRITE 0x10u /* in a batch; else a read */

struct cf_nvfs_io_arg {
	uint64_t shadow;
	int64_t off; /* in the file */
	uint64_t size;
	uint64_t fence_value; /* not 0 unless CF_NVFS_SYNC */
	int64_t result;	      /* out: bytes, or -errno */
	uint64_t ino;
	uint32_t generation; /* 0: any */
	uint32_t major, minor;
	uint64_t gpu_off; /* from the start of the range */
	uint32_t pad;
	int32_t fd;
	uint8_t bits;
	uint8_t pad2[3];
} __attribute__((packed, aligned(8)));

struct cf_nvfs_batch_arg {
	uint64_t id;
	uint64_t nr;
	uint64_t entries; /* of struct cf_nvfs_io_arg */
};

union cf_nvfs_arg {
	struct cf_nvfs_map_arg map;
	struct cf_nvfs_io_arg io;
	struct cf_nvfs_batch_arg batch;
	unsigned char room[128];
};

enum cf_nvfs_fence_state {
	CF_NVFS_CLEAN,
	CF_NVFS_SPARSE, /* holes of the file were not written to the GPU */
	CF_NVFS_DIED,	/* the GPU's memory has gone */
};

#define CF_NVFS_FENCE_MAGIC 0xabc0cba1abc2cba3ull
#define CF_NVFS_FENCE_VERSION 1

struct cf_nvfs_hole {
	uint16_t first, nr; /* in blocks, first from start of the fence */
};

/* The page by which the driver reports the end of a request. */
struct cf_nvfs_fence {
	uint64_t value; /* stored last */
	int64_t result;
	uint32_t state;
	uint32_t pad;
	uint64_t magic;
	uint32_t version;
	uint32_t nr_holes;
	int64_t start; /* offset in the file */
	struct cf_nvfs_hole holes[CF_NVFS_MAX_HOLES];
};

_Static_assert(sizeof(struct cf_nvfs_map_arg) == 48 &&
		       offsetof(struct cf_nvfs_map_arg, blocks) == 40 &&
		       offsetof(struct cf_nvfs_map_arg, internal) == 44,
	       "MAP");
_Static_assert(sizeof(struct cf_nvfs_io_arg) == 80 &&
		       offsetof(struct cf_nvfs_io_arg, result) == 32 &&
		       offsetof(struct cf_nvfs_io_arg, ino) == 40 &&
		       offsetof(struct cf_nvfs_io_arg, major) == 52 &&
		       offsetof(struct cf_nvfs_io_arg, gpu_off) == 60 &&
		       offsetof(struct cf_nvfs_io_arg, fd) == 72 &&
		       offsetof(struct cf_nvfs_io_arg, bits) == 76,
	       "READ and WRITE");
_Static_assert(sizeof(struct cf_nvfs_batch_arg) == 24, "BATCH");
_Static_assert(sizeof(union cf_nvfs_arg) >= 104, "what the driver copies");
_Static_assert(offsetof(struct cf_nvfs_fence, state) == 16 &&
		       offsetof(struct cf_nvfs_fence, magic) == 24 &&
		       offsetof(struct cf_nvfs_fence, nr_holes) == 36 &&
		       offsetof(struct cf_nvfs_fence, start) == 40 &&
		       offsetof(struct cf_nvfs_fence, holes) == 48 &&
		       sizeof(struct cf_nvfs_fence) <= CF_NVFS_BLOCK,
	       "the fence page");

#endif

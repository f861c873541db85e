// SPDX-License-Identifier: Apache-2.0
/*
 * stream_world - reads in stream order from a file of random bytes into device
 * memory, all of which is as expected afterwards.
 */
#ifndef STREAM_WORLD_H
#define STREAM_WORLD_H

#include "harness.h"

/* Sizes and offsets do not change once a stream is registered with this. */
#define FIXED 0xf

struct io {
	size_t size;
	off_t file_off, buf_off;
	ssize_t n;
};

struct world {
	struct th_mem mem;
	struct th_file file;
	size_t file_size;
	CUfileHandle_t fh;
	CUstream stream;
	unsigned char *bytes;	   /* in the file */
	unsigned char *want, *got; /* in the memory */
};

/* Opens the library; flags: cuFileStreamRegister's, or 0 for none. */
void world_init(struct world *w, size_t file_size, size_t mem_size,
		unsigned flags);
void world_fini(struct world *w);
/* What does not name the driver's objects, which may be gone. */
void world_forget(struct world *w);

/* The memory is 0x5a all over, as at first. */
void world_blank(struct world *w);

void read_async(struct world *w, struct io *io);
void synchronise(struct world *w);

/* What the operation does to the memory if it comes in its turn; and it did. */
void expect(struct world *w, const struct io *io);
void check(struct world *w);

#endif

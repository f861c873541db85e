// SPDX-License-Identifier: Apache-2.0
/*
 * stream_world - reads in stream order from a file of random bytes into device
 * memory. Afterwards all of the memory is compared.
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

/* Opens the driver. flags: of cuFileStreamRegister; 0: not registered. */
void world_init(struct world *w, size_t file_size, size_t mem_size,
		unsigned flags);
void world_fini(struct world *w);
/* Instead of world_fini, if the driver's objects are gone: ends the rest. */
void world_forget(struct world *w);

/* The memory is 0x5a all over, as at first. */
void world_blank(struct world *w);

void read_async(struct world *w, struct io *io);
void synchronise(struct world *w);

/* Of an operation that is over: checks io->n, and adds its bytes to what memory
 * must hold. Called in stream order. */
void expect(struct world *w, const struct io *io);
/* All of the memory is as expected. */
void check(struct world *w);

#endif

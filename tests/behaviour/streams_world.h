// SPDX-License-Identifier: Apache-2.0
/*
 * streams_world - a stream, a file and as much memory of a GPU, and operations
 * in the stream.
 */
#ifndef TESTS_STREAMS_WORLD_H
#define TESTS_STREAMS_WORLD_H

#include "fresh.h"

#define SW_SIZE (256 * TH_KIB)

struct world {
	unsigned char *bytes;
	struct th_file file;
	struct th_mem mem;
	CUfileHandle_t fh;
	CUstream stream;
};

/* One operation's parameters, and what it answers. */
struct io {
	size_t size;
	off_t file_off, buf_off;
	ssize_t bytes;
};

#define SW_UNTOUCHED ((ssize_t)-77777)

struct io sw_io(size_t size, off_t file_off, off_t buf_off);

/* Opens the driver. */
void sw_make_as(struct world *w, int accmode);
void sw_make(struct world *w); /* O_RDWR */
/* Closes the driver as often as it is open. */
void sw_end(struct world *w);

CUfileError_t sw_read(struct world *w, struct io *io, CUstream stream);
CUfileError_t sw_write(struct world *w, struct io *io, CUstream stream);
void sw_settle(CUstream stream);
/* All of the read, and its bytes. */
void sw_assert_arrived(struct world *w, const struct io *io);

#endif

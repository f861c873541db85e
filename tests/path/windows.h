// SPDX-License-Identifier: Apache-2.0
/*
 * windows - memory and a file cut alike, for batches whose entries move between
 * a window of the one and a window of the other.
 */
#ifndef TESTS_PATH_WINDOWS_H
#define TESTS_PATH_WINDOWS_H

#include "harness.h"

#define WINDOWS_MAX 256

struct windows {
	struct th_mem mem;
	struct th_file file;
	CUfileHandle_t fh;
	CUfileBatchHandle_t batch;
	CUfileIOParams_t params[WINDOWS_MAX];
	unsigned nr;
	size_t window, size;
	unsigned char *in_file, *in_mem; /* what should be there */
};

/* From the next init on: slots of so many KiB, and no more than nr. */
void windows_slots(unsigned nr, unsigned kib);

/* Opens the driver, too. All bytes are random. */
void windows_init(struct windows *w, enum th_mem_kind mem,
		  enum th_file_kind file, unsigned nr, size_t window);
void windows_fini(struct windows *w);

/* Entry i: size bytes of window i of memory, and of a window of the file. */
void windows_set(struct windows *w, unsigned i, CUfileOpcode_t opcode,
		 unsigned file_window, size_t at, size_t size);

/* The first nr: each has one event and all of its bytes, a few at a time. */
void windows_run(struct windows *w, unsigned nr);

void windows_check(struct windows *w);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * windows - memory and a file that are cut into parts ("windows") of one size,
 * for batches whose entries move between a part of the one and one of the
 * other.
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

/* The next init makes slots of so many KiB, nr at most. */
void windows_slots(unsigned nr, unsigned kib);

/* Opens the driver. nr windows of window bytes; all bytes are random. */
void windows_init(struct windows *w, enum th_mem_kind mem,
		  enum th_file_kind file, unsigned nr, size_t window);
void windows_fini(struct windows *w);

/* Entry i moves size bytes, from offset at on in both windows: window i of the
 * memory, and this one of the file. in_mem or in_file is updated. */
void windows_set(struct windows *w, unsigned i, CUfileOpcode_t opcode,
		 unsigned file_window, size_t at, size_t size);

/* Submits the first nr entries; each must have one event and all its bytes. */
void windows_run(struct windows *w, unsigned nr);

/* Memory and file are as in_mem and in_file say. */
void windows_check(struct windows *w);

#endif

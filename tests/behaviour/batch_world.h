// SPDX-License-Identifier: Apache-2.0
/*
 * batch_world - a file and memory of BW_NR entries of a batch, and looks at
 * what became of them.
 */
#ifndef TESTS_BATCH_WORLD_H
#define TESTS_BATCH_WORLD_H

#include "fresh.h"

#define BW_NR 8
#define BW_SIZE 4096

/* A file of BW_NR entries' bytes, and as much memory of some kind. */
struct bench {
	struct th_file file;
	struct th_mem mem;
	unsigned char *bytes;
	CUfileHandle_t fh;
	CUfileIOParams_t params[BW_NR];
	CUfileIOEvents_t events[BW_NR];
	unsigned nr;
};

CUfileIOParams_t bw_entry(CUfileHandle_t fh, CUfileOpcode_t opcode, void *base,
			  size_t at, size_t size, size_t cookie);
/* Opens the driver. Entry i has the cookie 100 + i. */
void bw_begin_as(struct bench *b, enum th_mem_kind kind, CUfileOpcode_t opcode);
void bw_begin(struct bench *b); /* reads into plain memory */
/* Closes the driver as often as it is open. */
void bw_end(struct bench *b);
CUfileBatchHandle_t bw_batch_of(unsigned nr);

/* Each cookie from 100 on once, all complete and whole. */
void bw_check_events(const CUfileIOEvents_t *events, unsigned nr);
void bw_check_read(const struct bench *b);
/* Nothing was read and there is nothing to report. */
void bw_check_untouched(struct bench *b, CUfileBatchHandle_t batch);

#endif

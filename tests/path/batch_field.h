// SPDX-License-Identifier: Apache-2.0
/*
 * batch_field - what batches move, and a batch of moves.
 */
#ifndef TESTS_BATCH_FIELD_H
#define TESTS_BATCH_FIELD_H

#include "harness.h"

#define BF_MAX_NR 4096 /* entries of a batch */

/* Windows of one memory and of one file. */
struct field {
	struct th_mem mem;
	struct th_file file;
	CUfileHandle_t fh;
	size_t size;	       /* of both */
	unsigned char *in_mem; /* as it must be */
	unsigned char *in_file;
};

void bf_init(struct field *f, enum th_mem_kind mem_kind,
	     enum th_file_kind file_kind, size_t size);
void bf_check(struct field *f);
void bf_fini(struct field *f);

/* An entry, and its effect on what must be. */
CUfileIOParams_t bf_move(struct field *f, CUfileOpcode_t opcode, size_t mem_at,
			 size_t file_at, size_t size, size_t cookie);
CUfileBatchHandle_t bf_batch_of(unsigned nr);
/* Submits, and reaps in odd portions; each entry has one whole event. */
void bf_run(CUfileBatchHandle_t batch, CUfileIOParams_t *params, unsigned nr);

void bf_set_size(CUFileSizeTConfigParameter_t param, size_t value);
unsigned bf_crews_of(CUfileHandle_t fh, unsigned nr, size_t each);

#endif

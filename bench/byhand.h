// SPDX-License-Identifier: Apache-2.0
/*
 * byhand - what a careful user writes without cuFile. The synchronous loop is
 * in byhand.c, batches in byhand_batch.c, streams in byhand_stream.c.
 */
#ifndef BENCH_BYHAND_H
#define BENCH_BYHAND_H

#include "bench.h"

/* Pinned memory of the size users pick; larger requests go in turns. */
#define STAGE_SIZE (16ul << 20)

/* This thread's pinned buffer, made when first asked for; NULL: no memory. */
char *byhand_stage(void);
/* The thread's memory is the processor's own: no stage, no copies. */
bool byhand_in_place(void);

static inline int byhand_fd(CUfileHandle_t fh)
{
	return (int)(intptr_t)fh;
}

void byhand_end_batch(void);
void byhand_end_stream(void);

#endif

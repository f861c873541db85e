// SPDX-License-Identifier: Apache-2.0
/*
 * byhand - what a careful user writes without cuFile. The synchronous loop is
 * in byhand.c, batches in byhand_batch.c, streams in byhand_stream.c.
 */
#ifndef BENCH_BYHAND_H
#define BENCH_BYHAND_H

#include "bench.h"

/* Bytes of pinned memory, as users pick it; larger requests go in parts. */
#define STAGE_SIZE (16ul << 20)

/* This thread's pinned buffer, made when first asked for; NULL: no memory. */
char *byhand_stage(void);
/* Whether this thread's buffer is host memory: no stage and no copies then. */
bool byhand_in_place(void);

static inline int byhand_fd(CUfileHandle_t fh)
{
	return (int)(intptr_t)fh;
}

void byhand_end_batch(void);
void byhand_end_stream(void);

#endif

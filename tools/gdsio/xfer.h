// SPDX-License-Identifier: Apache-2.0
/*
 * xfer - the eight ways of -x to move a request, a table each.
 *
 * To add one: a file with its table, a row in xfer_ways (xfer.c).
 */
#ifndef GDSIO_XFER_H
#define GDSIO_XFER_H

#include "gdsio/worker.h"

struct xfer_way {
	const char *name; /* in the result line */

	/* On the worker's thread, around everything; may be NULL. */
	bool (*begin)(struct worker *worker);
	void (*end)(struct worker *worker);

	/* Moves the first nr slots and sets moved. False: reported. */
	bool (*move)(struct worker *worker, int nr);
};

const struct xfer_way *xfer_way(enum xfer xfer);

extern const struct xfer_way xfer_direct;
extern const struct xfer_way xfer_cpu_only;
extern const struct xfer_way xfer_cpu_gpu;
extern const struct xfer_way xfer_cpu_async_gpu;
extern const struct xfer_way xfer_cpu_cached_gpu;
extern const struct xfer_way xfer_async;
extern const struct xfer_way xfer_batch;
extern const struct xfer_way xfer_batch_stream;

#endif

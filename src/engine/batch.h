// SPDX-License-Identifier: Apache-2.0
/*
 * batch - many requests at once, and the events of their ends (contract
 * 3.12, behaviour "Batch").
 *
 * A batch is named by a value like a file handle: a place in a table and the
 * generation that lives there. get counts, put uncounts; destroying refuses
 * new gets at once, drops what has not begun, and returns when the rest has
 * ended and the last put is done. Any thread may call anything.
 */
#ifndef CF_ENGINE_BATCH_H
#define CF_ENGINE_BATCH_H

#include <cufile.h>
#include <time.h>

/* The most entries of one batch. */
#define CF_BATCH_MAX 65536

struct cf_batch;
struct cf_parcel;

/* 1 to CF_BATCH_MAX entries; the session is open and locked. 0, -5039 or
 * -5043. */
int cf_batch_new(unsigned nr, CUfileBatchHandle_t *value);

/* A reference, or NULL where the value names no live batch. */
struct cf_batch *cf_batch_get(CUfileBatchHandle_t value);
void cf_batch_put(struct cf_batch *batch);

/*
 * Checks all entries, and submits all or none: 0, -5040 for an entry that is
 * not well formed (a log line names it), -5037, -5049, -5043, or what the
 * driver said when the order of writes was settled.
 */
int cf_batch_submit(struct cf_batch *batch, unsigned nr,
		    const CUfileIOParams_t *params);

/*
 * The same checks, and the same room taken, for entries that wait for their
 * stream: see parcel.h. 0, -5040, -5037, -5049 or -5043.
 */
int cf_batch_pack(struct cf_batch *batch, unsigned nr,
		  const CUfileIOParams_t *params, struct cf_parcel **parcel);

/* See cf_events_take. */
int cf_batch_status(struct cf_batch *batch, unsigned min_nr, unsigned *nr,
		    CUfileIOEvents_t *events, const struct timespec *timeout);

/*
 * Drops what has not begun, waits for what has, forgets the events. On
 * return nothing touches the entries' buffers any more.
 */
void cf_batch_cancel(struct cf_batch *batch);

/* -5040 if there is no such batch. */
int cf_batch_destroy(CUfileBatchHandle_t value);

/* Destroys all; the workers still run. */
void cf_batches_close(void);

void cf_batches_fork_prepare(void);
void cf_batches_fork_parent(void);
/* The child has no batch: its parent's workers do not run there. */
void cf_batches_fork_child(void);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * batch - many requests at once, and the events of their ends (contract 3.12,
 * behaviour "Batch").
 *
 * A batch is named by a value like a file handle: a place in a table and the
 * generation that lives there. get counts a reference, put takes it back.
 * Destroying refuses new gets at once, drops entries that have not begun, and
 * returns when the others have ended and the last reference is back. Any thread
 * may call anything.
 */
#ifndef CF_ENGINE_BATCH_H
#define CF_ENGINE_BATCH_H

#include <cufile.h>
#include <time.h>

/* The most entries of one batch. */
#define CF_BATCH_MAX 65536

struct cf_batch;
struct cf_parcel;

/*
 * Makes a batch for 1 to CF_BATCH_MAX entries; the caller has locked the
 * session, which is open. 0, -5039 (no worker) or -5043.
 */
int cf_batch_new(unsigned nr, CUfileBatchHandle_t *value);

/* A reference, or NULL where the value names no live batch. */
struct cf_batch *cf_batch_get(CUfileBatchHandle_t value);
void cf_batch_put(struct cf_batch *batch);

/*
 * Checks all entries, and submits all or none. 0; -5040 for an entry that is
 * not well formed (a log line names it); -5049 for one that strict mode keeps
 * from every path; -5037 (no room); -5043; or what the driver said when a write
 * waited for the default streams.
 */
int cf_batch_submit(struct cf_batch *batch, unsigned nr,
		    const CUfileIOParams_t *params);

/*
 * The same checks, and the same room taken, for entries that wait for a stream
 * (parcel.h). 0, -5040, -5037, -5049 or -5043.
 */
int cf_batch_pack(struct cf_batch *batch, unsigned nr,
		  const CUfileIOParams_t *params, struct cf_parcel **parcel);

/* See cf_events_take. */
int cf_batch_status(struct cf_batch *batch, unsigned min_nr, unsigned *nr,
		    CUfileIOEvents_t *events, const struct timespec *timeout);

/*
 * Drops entries that have not begun, waits for those that have, and forgets all
 * events. On return nothing touches the entries' buffers any more.
 */
void cf_batch_cancel(struct cf_batch *batch);

/* -5040 if there is no such batch. */
int cf_batch_destroy(CUfileBatchHandle_t value);

/* How many places of the table are taken. */
unsigned cf_batches_out(void);

/* Destroys all batches, at the close. The workers still run. */
void cf_batches_close(void);

void cf_batches_fork_prepare(void);
void cf_batches_fork_parent(void);
/* The child has no batch: its parent's workers do not run there. */
void cf_batches_fork_child(void);

#endif

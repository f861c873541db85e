// SPDX-License-Identifier: Apache-2.0
/*
 * parcel - entries that were given to a batch and wait for their stream.
 *
 * They are pending from the start, so that cuFileBatchIOGetStatus waits for
 * them and a cancel drops them. But they hold no file: handles and memory are
 * looked up when the stream comes to them. Owned by its submitter, then by the
 * sop that it put into the stream. It may outlive its batch, which then has
 * taken the entries out of it.
 */
#ifndef CF_ENGINE_PARCEL_H
#define CF_ENGINE_PARCEL_H

#include "engine/submission.h"

struct cf_parcel;

/*
 * Checks the entries, of which there is at least one, makes them pending and
 * copies them: 0, or what cf_batch_submit answers, and nothing has changed.
 */
int cf_parcel_new(struct cf_queue *queue, unsigned nr,
		  const CUfileIOParams_t *params, struct cf_parcel **parcel);

/* The bytes of its largest entry. */
size_t cf_parcel_largest(const struct cf_parcel *parcel);

/* Frees it; its entries end without an event. */
void cf_parcel_free(struct cf_parcel *parcel);

/*
 * The stream has come to it: has workers carry the entries, and the ferry (or
 * NULL) move those that it reaches. Takes the parcel over. Calls ended once,
 * after the last event, on any thread and perhaps before it returns. An entry
 * that cannot be carried any more has an event that says so.
 */
void cf_parcel_open(struct cf_parcel *parcel, struct cf_ferry *ferry,
		    void (*ended)(void *arg), void *arg);

/* All entries end with this code. Takes the parcel over. */
void cf_parcel_fail(struct cf_parcel *parcel, int code);

/* Takes all entries out of the queue's parcels, without an event. */
void cf_parcels_strip(struct cf_queue *queue);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * batch - the table of batches, their lives, and what is done with one.
 *
 * Places of the table live in chunks that are never freed: a worker that comes
 * after its batch was destroyed still finds the lock of the batch's queue.
 *
 * Lock: table_lock guards the places and their references. It is held for a
 * moment; nothing but an allocation is made under it.
 */
#include "engine/batch.h"

#include <stdint.h>
#include <stdlib.h>
#include "core/log.h"
#include "core/log_tag.h"
#include "core/stats.h"
#include "engine/parcel.h"
#include "engine/submission.h"
#include "engine/worker.h"

#define CHUNK_BITS 4
#define CHUNK_SIZE (1u << CHUNK_BITS)
#define NR_CHUNKS 4096
#define GENERATION_MASK 0xffffffu

/* "CB": no pointer a process can hold has these top bits. */
#define VALUE_TAG (0x4342ull << 48)
#define VALUE_TAG_MASK (0xffffull << 48)

struct cf_batch {
	struct cf_queue queue;
	uint32_t index;
	unsigned size;		    /* written before it is live */
	bool live;		    /* table_lock */
	uint32_t generation;	    /* table_lock */
	unsigned refs;		    /* table_lock */
	struct cf_batch *next_free; /* table_lock */
};

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t put_last = PTHREAD_COND_INITIALIZER;
static struct cf_batch *chunks[NR_CHUNKS]; /* table_lock */
static uint32_t nr_batches;		   /* table_lock; places made */
static struct cf_batch *free_batches;	   /* table_lock */

/* --------------------------------------------------------------- table */

static struct cf_batch *batch_at(uint32_t index)
{
	return &chunks[index >> CHUNK_BITS][index & (CHUNK_SIZE - 1)];
}

static CUfileBatchHandle_t value_of(const struct cf_batch *batch)
{
	return (CUfileBatchHandle_t)(uintptr_t)(VALUE_TAG |
						(uint64_t)batch->generation
							<< 24 |
						batch->index);
}

/* table_lock held */
static struct cf_batch *find_locked(CUfileBatchHandle_t value)
{
	uint64_t v = (uintptr_t)value;
	uint32_t index = v & 0xffffff;
	struct cf_batch *batch;

	if ((v & VALUE_TAG_MASK) != VALUE_TAG || index >= nr_batches)
		return NULL;
	batch = batch_at(index);
	return batch->live && batch->generation == (v >> 24 & GENERATION_MASK) ?
		       batch :
		       NULL;
}

/* table_lock held */
static bool grow_locked(void)
{
	struct cf_batch *chunk;

	if (nr_batches >> CHUNK_BITS >= NR_CHUNKS)
		return false;
	chunk = calloc(CHUNK_SIZE, sizeof(*chunk));
	if (!chunk)
		return false;
	chunks[nr_batches >> CHUNK_BITS] = chunk;
	for (uint32_t i = 0; i < CHUNK_SIZE; i++) {
		chunk[i].index = nr_batches++;
		cf_queue_init(&chunk[i].queue);
		chunk[i].next_free = free_batches;
		free_batches = &chunk[i];
	}
	return true;
}

static struct cf_batch *take_place(void)
{
	struct cf_batch *batch = NULL;

	pthread_mutex_lock(&table_lock);
	if (free_batches || grow_locked()) {
		batch = free_batches;
		free_batches = batch->next_free;
	}
	pthread_mutex_unlock(&table_lock);
	return batch;
}

static void free_place_locked(struct cf_batch *batch)
{
	batch->generation = (batch->generation + 1) & GENERATION_MASK;
	batch->next_free = free_batches;
	free_batches = batch;
}

struct cf_batch *cf_batch_get(CUfileBatchHandle_t value)
{
	struct cf_batch *batch;

	pthread_mutex_lock(&table_lock);
	batch = find_locked(value);
	if (batch)
		batch->refs++;
	pthread_mutex_unlock(&table_lock);
	return batch;
}

void cf_batch_put(struct cf_batch *batch)
{
	pthread_mutex_lock(&table_lock);
	if (!--batch->refs && !batch->live)
		pthread_cond_broadcast(&put_last);
	pthread_mutex_unlock(&table_lock);
}

/* ---------------------------------------------------------------- life */

int cf_batch_new(unsigned nr, CUfileBatchHandle_t *value)
{
	struct cf_batch *batch;
	int err = cf_workers_reserve(CF_TEAM_IO);

	if (err) {
		cf_log(CF_LOG_ERROR, "batch of %u entries: no worker (%d)", nr,
		       err);
		return -CU_FILE_INTERNAL_BATCH_SETUP_ERROR;
	}
	batch = take_place();
	if (!batch)
		return -CU_FILE_NOMEM_ERROR;
	err = cf_events_open(&batch->queue.events, nr);
	pthread_mutex_lock(&table_lock);
	if (err) {
		free_place_locked(batch);
	} else {
		batch->size = nr;
		batch->live = true;
		*value = value_of(batch);
	}
	pthread_mutex_unlock(&table_lock);
	return err ? -CU_FILE_NOMEM_ERROR : 0;
}

/* table_lock held, but released while it waits. */
static void retire_locked(struct cf_batch *batch)
{
	batch->live = false;
	pthread_mutex_unlock(&table_lock);
	cf_events_finish(&batch->queue.events);
	cf_batch_cancel(batch);
	pthread_mutex_lock(&table_lock);
	while (batch->refs)
		pthread_cond_wait(&put_last, &table_lock);
	pthread_mutex_unlock(&table_lock);
	cf_events_close(&batch->queue.events);
	pthread_mutex_lock(&table_lock);
	free_place_locked(batch);
}

int cf_batch_destroy(CUfileBatchHandle_t value)
{
	struct cf_batch *batch;

	pthread_mutex_lock(&table_lock);
	batch = find_locked(value);
	if (batch)
		retire_locked(batch);
	pthread_mutex_unlock(&table_lock);
	return batch ? 0 : -CU_FILE_INTERNAL_BATCH_SUBMIT_ERROR;
}

unsigned cf_batches_out(void)
{
	unsigned out;

	pthread_mutex_lock(&table_lock);
	out = nr_batches;
	for (struct cf_batch *b = free_batches; b; b = b->next_free)
		out--;
	pthread_mutex_unlock(&table_lock);
	return out;
}

/*
 * Waits also for batches that other threads are destroying, which are not live
 * any more, and then for all submissions.
 */
void cf_batches_close(void)
{
	pthread_mutex_lock(&table_lock);
	for (uint32_t i = 0; i < nr_batches; i++)
		if (batch_at(i)->live)
			retire_locked(batch_at(i));
	for (uint32_t i = 0; i < nr_batches; i++)
		while (batch_at(i)->refs)
			pthread_cond_wait(&put_last, &table_lock);
	pthread_mutex_unlock(&table_lock);
	cf_submissions_wait();
}

void cf_batches_fork_prepare(void)
{
	pthread_mutex_lock(&table_lock);
	cf_submissions_fork_prepare();
}

void cf_batches_fork_parent(void)
{
	cf_submissions_fork_parent();
	pthread_mutex_unlock(&table_lock);
}

/*
 * The parent's threads may have held the locks of batches, or have been
 * changing their lists: all are made anew. Memory of lists and rings is not
 * freed.
 */
void cf_batches_fork_child(void)
{
	cf_submissions_fork_child();
	pthread_cond_init(&put_last, NULL);
	free_batches = NULL;
	for (uint32_t i = 0; i < nr_batches; i++) {
		struct cf_batch *batch = batch_at(i);

		cf_queue_init(&batch->queue);
		batch->live = false;
		batch->refs = 0;
		free_place_locked(batch);
	}
	pthread_mutex_unlock(&table_lock);
}

/* ---------------------------------------------------------- submitting */

static int check_numbers(const struct cf_batch *batch, unsigned nr,
			 const CUfileIOParams_t *params)
{
	if (nr && nr <= batch->size && params)
		return 0;
	cf_log(CF_LOG_ERROR, "batch submit: %u entries at " CF_TAG ", of %u",
	       nr, cf_tag(params), batch->size);
	return -CU_FILE_INTERNAL_BATCH_SUBMIT_ERROR;
}

int cf_batch_pack(struct cf_batch *batch, unsigned nr,
		  const CUfileIOParams_t *params, struct cf_parcel **parcel)
{
	int err = check_numbers(batch, nr, params);

	return err ? err : cf_parcel_new(&batch->queue, nr, params, parcel);
}

int cf_batch_submit(struct cf_batch *batch, unsigned nr,
		    const CUfileIOParams_t *params)
{
	struct cf_submission *sub;
	int err = check_numbers(batch, nr, params);

	if (err)
		return err;
	sub = cf_submission_new(&batch->queue, nr);
	if (!sub)
		return -CU_FILE_NOMEM_ERROR;
	sub->start = cf_stats_begin();
	err = cf_submission_fill(sub, params);
	if (!err) {
		if (sub->start)
			cf_stats_batch_begun(nr);
		cf_submission_start(sub);
	}
	cf_submission_put(sub);
	return err;
}

int cf_batch_status(struct cf_batch *batch, unsigned min_nr, unsigned *nr,
		    CUfileIOEvents_t *events, const struct timespec *timeout)
{
	return cf_events_take(&batch->queue.events, min_nr, nr, events,
			      timeout);
}

void cf_batch_cancel(struct cf_batch *batch)
{
	cf_events_drop_begin(&batch->queue.events);
	cf_parcels_strip(&batch->queue);
	cf_queue_strip(&batch->queue);
	cf_events_drop_end(&batch->queue.events);
}

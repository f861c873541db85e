// SPDX-License-Identifier: Apache-2.0
/*
 * parcel - see parcel.h.
 *
 * Whoever takes a parcel off its queue's list, its owner or a cancel, ends its
 * entries; the parcel itself is freed by its owner alone.
 *
 * Lock: queue->lock, for the list; nothing is called under it.
 */
#include "engine/parcel.h"

#include <stdlib.h>
#include <string.h>
#include "core/ferry.h"
#include "core/handle.h"
#include "core/log.h"
#include "core/stats.h"
#include "engine/entry.h"

struct cf_parcel {
	struct cf_queue *queue;
	struct cf_parcel *next, **link; /* queue->lock; link NULL: off it */
	unsigned nr;
	CUfileIOParams_t params[];
};

/* -------------------------------------------------------------- the list */

static void put_on(struct cf_parcel *parcel)
{
	struct cf_queue *queue = parcel->queue;

	pthread_mutex_lock(&queue->lock);
	parcel->next = queue->parcels;
	parcel->link = &queue->parcels;
	if (parcel->next)
		parcel->next->link = &parcel->next;
	queue->parcels = parcel;
	pthread_mutex_unlock(&queue->lock);
}

static void take_off_locked(struct cf_parcel *parcel)
{
	*parcel->link = parcel->next;
	if (parcel->next)
		parcel->next->link = parcel->link;
	parcel->link = NULL;
}

/* False: a cancel has taken its entries. */
static bool take_off(struct cf_parcel *parcel)
{
	bool mine;

	pthread_mutex_lock(&parcel->queue->lock);
	mine = parcel->link;
	if (mine)
		take_off_locked(parcel);
	pthread_mutex_unlock(&parcel->queue->lock);
	return mine;
}

/* A parcel that is off the list may be freed as soon as the lock is open. */
void cf_parcels_strip(struct cf_queue *queue)
{
	pthread_mutex_lock(&queue->lock);
	while (queue->parcels) {
		unsigned nr = queue->parcels->nr;

		take_off_locked(queue->parcels);
		pthread_mutex_unlock(&queue->lock);
		cf_events_forget(&queue->events, nr);
		pthread_mutex_lock(&queue->lock);
	}
	pthread_mutex_unlock(&queue->lock);
}

/* ------------------------------------------------------------ the making */

static int check(unsigned nr, const CUfileIOParams_t *params)
{
	struct cf_facts last = { .known.base = NULL };

	for (unsigned i = 0; i < nr; i++) {
		struct cf_entry entry;
		const char *why;
		int err = cf_entry_init(&entry, &params[i], &last, NULL, NULL,
					&why);

		if (err)
			return cf_entry_refuse(err, i, nr, &params[i], why);
		cf_request_fini(&entry.req);
	}
	return 0;
}

static void drop(struct cf_parcel *parcel)
{
	if (take_off(parcel))
		cf_events_forget(&parcel->queue->events, parcel->nr);
}

void cf_parcel_free(struct cf_parcel *parcel)
{
	drop(parcel);
	free(parcel);
}

int cf_parcel_new(struct cf_queue *queue, unsigned nr,
		  const CUfileIOParams_t *params, struct cf_parcel **out)
{
	int err = check(nr, params);
	struct cf_parcel *parcel;

	if (err)
		return err;
	parcel = malloc(sizeof(*parcel) + nr * sizeof(parcel->params[0]));
	if (!parcel)
		return -CU_FILE_NOMEM_ERROR;
	*parcel = (struct cf_parcel){ .queue = queue, .nr = nr };
	memcpy(parcel->params, params, nr * sizeof(parcel->params[0]));
	err = cf_events_expect(&queue->events, nr);
	if (err) {
		free(parcel);
		return err;
	}
	put_on(parcel);
	/* a cancel that had looked through the list waits for these entries */
	if (cf_events_are_dropped(&queue->events))
		drop(parcel);
	*out = parcel;
	return 0;
}

size_t cf_parcel_largest(const struct cf_parcel *parcel)
{
	size_t largest = 0;

	for (unsigned i = 0; i < parcel->nr; i++)
		if (parcel->params[i].u.batch.size > largest)
			largest = parcel->params[i].u.batch.size;
	return largest;
}

/* --------------------------------------------------------------- the end */

static void fail_entry(struct cf_parcel *parcel, unsigned i, int code)
{
	CUfileIOEvents_t event = cf_entry_event(parcel->params[i].cookie, code);

	cf_events_post(&parcel->queue->events, &event, 1);
}

static void fail_all(struct cf_parcel *parcel, int code)
{
	cf_log(CF_LOG_ERROR, "batch in stream: %u entries end with code %d",
	       parcel->nr, code);
	for (unsigned i = 0; i < parcel->nr; i++)
		fail_entry(parcel, i, code);
}

void cf_parcel_fail(struct cf_parcel *parcel, int code)
{
	if (take_off(parcel))
		fail_all(parcel, code);
	free(parcel);
}

static void count_failure(const struct cf_submission *sub, enum cf_op op,
			  int code)
{
	struct cf_stats_io io = {
		.op = op, .result = code, .start = sub->start, .ordinal = -1
	};

	if (sub->start)
		cf_stats_batch_ended(&io);
}

/* As cf_entry_init, but a handle that was deregistered has its own code. */
static int look_again(struct cf_entry *entry, const CUfileIOParams_t *params,
		      struct cf_facts *last, struct cf_ferry *ferry,
		      const char **why)
{
	struct cf_handle *handle = cf_handle_get(params->fh);
	int err;

	*why = "the file was deregistered";
	if (!handle)
		return -CU_FILE_HANDLE_NOT_REGISTERED;
	err = cf_entry_init(entry, params, last, handle, ferry, why);
	cf_handle_put(handle);
	return err;
}

/*
 * All order is the stream's: see leave_order_to_stream in call.c. An entry that
 * cannot be carried any more ends here, with an event.
 */
static void fill(struct cf_submission *sub, struct cf_parcel *parcel,
		 struct cf_ferry *ferry)
{
	struct cf_facts last = { .known.base = NULL };

	sub->nr = 0;
	if (ferry)
		cf_ferry_look_at_gpu(ferry);
	for (unsigned i = 0; i < parcel->nr; i++) {
		const CUfileIOParams_t *params = &parcel->params[i];
		struct cf_entry *entry = &sub->entries[sub->nr];
		const char *why;
		int err = look_again(entry, params, &last, ferry, &why);

		if (!err) {
			entry->req.piece.ordered = false;
			entry->req.piece.combine = false;
			sub->nr++;
			continue;
		}
		cf_log(CF_LOG_ERROR,
		       "batch in stream: entry %u of %u, handle %s: %s (%d), "
		       "before the stream came to it",
		       i, parcel->nr, cf_handle_words(params->fh), why, err);
		count_failure(sub,
			      params->opcode == CUFILE_WRITE ? CF_WRITE :
							       CF_READ,
			      err);
		fail_entry(parcel, i, err);
	}
	sub->left = sub->nr;
}

/* True: entries are under way, and the last of them calls sub->ended. */
static bool start(struct cf_submission *sub)
{
	if (!sub->nr)
		return false;
	cf_submission_sort(sub);
	cf_submission_start(sub);
	return true;
}

static bool carry(struct cf_parcel *parcel, struct cf_ferry *ferry,
		  void (*ended)(void *arg), void *arg)
{
	struct cf_submission *sub =
		cf_submission_new(parcel->queue, parcel->nr);
	bool on_its_way;

	if (!sub) {
		fail_all(parcel, -CU_FILE_NOMEM_ERROR);
		return false;
	}
	sub->team = CF_TEAM_STREAM;
	sub->ended = ended;
	sub->ended_arg = arg;
	sub->start = cf_stats_begin();
	if (sub->start)
		cf_stats_batch_begun(parcel->nr);
	fill(sub, parcel, ferry);
	on_its_way = start(sub);
	cf_submission_put(sub);
	return on_its_way;
}

void cf_parcel_open(struct cf_parcel *parcel, struct cf_ferry *ferry,
		    void (*ended)(void *arg), void *arg)
{
	bool on_its_way = take_off(parcel) && carry(parcel, ferry, ended, arg);

	free(parcel);
	if (!on_its_way)
		ended(arg);
}

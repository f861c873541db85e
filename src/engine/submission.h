// SPDX-License-Identifier: Apache-2.0
/*
 * submission - the entries that one submit brought to a batch.
 *
 * Entries wait in sorts: lists of entries that travel alike. Workers take
 * groups of them and carry them. Whoever takes an entry off its list, a worker
 * or a cancel, must end it. A submission lives until its last worker is back,
 * which may be after its last entry's end, and after its batch's.
 */
#ifndef CF_ENGINE_SUBMISSION_H
#define CF_ENGINE_SUBMISSION_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include "engine/events.h"
#include "engine/request.h"
#include "engine/worker.h"
#include "path/bundle.h"
#include "path/fleet.h"

#define CF_MAX_SORTS 16

/* The part of a batch that its submissions see; never freed. */
struct cf_queue {
	pthread_mutex_t lock;	     /* the lists; nothing is called under it */
	struct cf_submission *first; /* submissions with waiting entries */
	struct cf_parcel *parcels;   /* parcels that wait for their streams */
	struct cf_events events;
};

struct cf_entry {
	struct cf_request req;
	void *cookie;
	ssize_t result;
	bool like; /* made by cf_request_init_like from the one before it */
};

/*
 * Entries of one sort that follow each other and cost the same. It says all
 * that a take has to know, so that a take need not read the entries, which are
 * still in the cache of the core that submitted them. Written by the sorting,
 * and by cf_queue_strip.
 */
struct cf_streak {
	struct cf_streak *next; /* of the sort */
	unsigned first, nr;	/* entries */
	unsigned cost_ns;	/* of each: a worker's time, about */
	unsigned need;		/* of each: bytes of a slot, if a BUNDLE */
};

enum cf_way {
	CF_WAY_EACH,   /* one request after the other */
	CF_WAY_SERIAL, /* EACH, by one worker at a time */
	CF_WAY_WRITES, /* EACH, buffered writes of one file */
	CF_WAY_BUNDLE, /* small ones of one device and direction, together */
	CF_WAY_FLEET,  /* O_DIRECT, alike, side by side through a ring */
	CF_WAY_CONVOY, /* large cached reads of one device, many of them */
	CF_WAY_MAPPED, /* reads of one device out of windows, by one worker */
};

static inline bool cf_way_is_convoy(enum cf_way way)
{
	return way == CF_WAY_CONVOY || way == CF_WAY_MAPPED;
}

/* Entries that travel alike, in the order in which they came. */
struct cf_sort {
	enum cf_way way;
	unsigned most;		    /* carriers at a time, 0: any number */
	unsigned helpers;	    /* BUNDLE: of the crew of each carrier */
	unsigned share;		    /* BUNDLE: entries that each takes */
	unsigned busy;		    /* queue->lock; carriers at work */
	unsigned taken;		    /* queue->lock; off the first streak */
	struct cf_streak *first;    /* queue->lock */
	struct cf_streak *last;	    /* written in sort */
	unsigned long long cost_ns; /* queue->lock; of entries that wait */
	unsigned nr;		    /* all entries, at first; written in sort */
	unsigned long long bytes;   /* of all entries; written in sort */
	size_t need; /* of a slot: FLEET largest, BUNDLE all; set in sort */
	/* what the entries of all but EACH and SERIAL have in common */
	dev_t dev; /* with ino: the file of buffered writes */
	ino_t ino;
	enum cf_op op;
	bool host, large;
	bool alias; /* FLEET: to and from the aliases of one GPU */
	dev_t disk; /* with alias: the disk of all */
	CUcontext ctx;
	int ordinal;
};

struct cf_submission {
	struct cf_queue *queue;
	struct cf_submission *next, **link; /* queue->lock */
	unsigned waiting;  /* queue->lock; entries of all sorts */
	unsigned carriers; /* how many workers pay */
	unsigned nr;
	unsigned nr_sorts;
	unsigned nr_streaks;
	struct cf_streak *streaks; /* in memory behind the entries; up to nr */
	uint64_t start;		   /* cf_stats_begin's */
	enum cf_team team;	   /* whose workers carry it */
	struct cf_sort sorts[CF_MAX_SORTS];
	struct cf_load load;
	struct cf_task task; /* used instead if there are too many loads */
	_Atomic unsigned refs;
	/* called once, after the last entry's event; or NULL */
	void (*ended)(void *arg);
	void *ended_arg;
	_Atomic unsigned left; /* entries that have not ended */
	struct cf_entry entries[];
};

void cf_queue_init(struct cf_queue *queue);

/*
 * With room for nr entries, or NULL: no memory. cf_submissions_wait waits until
 * it is gone.
 */
struct cf_submission *cf_submission_new(struct cf_queue *queue, unsigned nr);
/* Its maker has one reference, and its workers have one until it is over. */
void cf_submission_put(struct cf_submission *sub);

/*
 * On the submitting thread: makes a request of each of params, and sorts them.
 * 0; or the code of the first that is refused, and then no entry holds
 * anything.
 */
int cf_submission_fill(struct cf_submission *sub,
		       const CUfileIOParams_t *params);

/* Sorts the entries, all of which hold a request; fill has done so. */
void cf_submission_sort(struct cf_submission *sub);

/* Its entries are pending: queues them, so that they can be taken. */
void cf_submission_queue(struct cf_submission *sub);

/* The same, and has workers carry them. */
void cf_submission_start(struct cf_submission *sub);

/* Entries that a worker carries at a time, at most. */
#define CF_GROUP_MAX CF_BUNDLE_MAX

struct cf_group {
	struct cf_sort *sort;
	struct cf_entry *entries[CF_GROUP_MAX];
	unsigned nr;
	bool more;	 /* others waited when it was taken, or none was */
	unsigned behind; /* how many waited then */
};

/* The entry that the piece is of. */
static inline struct cf_entry *cf_entry_of(const struct cf_piece *piece)
{
	return (struct cf_entry *)((uintptr_t)piece -
				   offsetof(struct cf_entry, req.piece));
}

/* Takes the next group off its list; false: no work for one worker more. */
bool cf_submission_take(struct cf_submission *sub, struct cf_group *group);
/*
 * Takes one more entry of the group's sort, for the worker that carries the
 * group, which it is not put into. NULL: there is none.
 */
struct cf_entry *cf_submission_next(struct cf_submission *sub,
				    struct cf_group *group);
/* The group has been carried. */
void cf_submission_done(struct cf_submission *sub, struct cf_group *group);
/* nr entries have ended, and their events are posted or forgotten. */
void cf_submission_ended(struct cf_submission *sub, unsigned nr);

/* Ends all entries of the queue that nobody has begun, without an event. */
void cf_queue_strip(struct cf_queue *queue);

/* Waits until there is no submission. Nobody makes one meanwhile. */
void cf_submissions_wait(void);
void cf_submissions_fork_prepare(void);
void cf_submissions_fork_parent(void);
void cf_submissions_fork_child(void);

#endif

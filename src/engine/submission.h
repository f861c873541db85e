// SPDX-License-Identifier: Apache-2.0
/*
 * submission - the entries that one submit brought to a batch.
 *
 * Entries wait in sorts, lists of those that travel alike. Workers take groups
 * of them and carry them; whoever takes an entry off its list, worker or
 * cancel, ends it. A submission lives until its last worker is back, which may
 * be later than its last entry's end and than its batch's.
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
	struct cf_submission *first; /* those with entries that wait */
	struct cf_parcel *parcels;   /* those that wait for their streams */
	struct cf_events events;
};

struct cf_entry {
	struct cf_request req;
	void *cookie;
	ssize_t result;
	bool like; /* the one before it, as cf_request_init_like has it */
};

/*
 * Entries of one sort that follow each other and cost the same. It says all
 * that a take has to know of them: workers take one after the other, and the
 * entries are still in the cache of the core that submitted them. Written in
 * sort, and by who strips.
 */
struct cf_streak {
	struct cf_streak *next; /* of the sort */
	unsigned first, nr;	/* entries */
	unsigned cost_ns;	/* of each: of a worker's time, about */
	unsigned need;		/* of each: BUNDLE, of a slot; else 0 */
};

enum cf_way {
	CF_WAY_EACH,   /* one request after the other */
	CF_WAY_SERIAL, /* the same, by one worker at a time */
	CF_WAY_WRITES, /* the same, buffered writes of one file */
	CF_WAY_BUNDLE, /* small ones of one device and direction, together */
	CF_WAY_FLEET,  /* those for the disk, alike, side by side */
	CF_WAY_CONVOY, /* large cached reads of one device, many of them */
	CF_WAY_MAPPED, /* the same out of windows, by one worker */
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
	unsigned share;		    /* the same: entries that it takes */
	unsigned busy;		    /* queue->lock; of most */
	unsigned taken;		    /* queue->lock; of the first streak */
	struct cf_streak *first;    /* queue->lock */
	struct cf_streak *last;	    /* written in sort */
	unsigned long long cost_ns; /* queue->lock; of those that wait */
	unsigned nr;		    /* at first; written in sort */
	unsigned long long bytes;   /* the same */
	size_t need; /* FLEET: the largest, BUNDLE: all; written in sort */
	/* what the entries of all but EACH and SERIAL have in common */
	dev_t dev; /* buffered writes */
	ino_t ino;
	enum cf_op op;
	bool host, large;
	bool alias; /* FLEET: to and from the aliases of one GPU */
	dev_t disk; /* the same */
	CUcontext ctx;
	int ordinal;
};

struct cf_submission;

struct cf_submission {
	struct cf_queue *queue;
	struct cf_submission *next, **link; /* queue->lock */
	unsigned waiting;  /* queue->lock; entries of all sorts */
	unsigned carriers; /* workers that are worth their while */
	unsigned nr;
	unsigned nr_sorts;
	unsigned nr_streaks;
	struct cf_streak *streaks; /* behind the entries, with room for nr */
	uint64_t start;		   /* cf_stats_begin's */
	enum cf_team team;	   /* whose workers carry it */
	struct cf_sort sorts[CF_MAX_SORTS];
	struct cf_load load;
	struct cf_task task; /* instead, where there are too many loads */
	_Atomic unsigned refs;
	/* NULL: nobody waits. Else told once, behind the last entry's event */
	void (*ended)(void *arg);
	void *ended_arg;
	_Atomic unsigned left; /* entries that have not ended */
	struct cf_entry entries[];
};

void cf_queue_init(struct cf_queue *queue);

/* With room for nr entries; counts until cf_submissions_wait. Or NULL. */
struct cf_submission *cf_submission_new(struct cf_queue *queue, unsigned nr);
/* The one that made it has one to put; and the workers, until it is over. */
void cf_submission_put(struct cf_submission *sub);

/*
 * On the thread that submits: the entries hold what params ask for, and may be
 * started. 0; or a code, of the first that is refused, and none holds anything.
 */
int cf_submission_fill(struct cf_submission *sub,
		       const CUfileIOParams_t *params);

/* Sorts the entries, all of which hold a request; fill has done so. */
void cf_submission_sort(struct cf_submission *sub);

/* Its entries are pending: queues them, for a take. */
void cf_submission_queue(struct cf_submission *sub);

/* The same, and has workers carry them. */
void cf_submission_start(struct cf_submission *sub);

/* What a worker carries at a time. */
#define CF_GROUP_MAX CF_BUNDLE_MAX

struct cf_group {
	struct cf_sort *sort;
	struct cf_entry *entries[CF_GROUP_MAX];
	unsigned nr;
	bool more;	 /* others waited when it was taken, or none was */
	unsigned behind; /* so many did when it was taken */
};

/* Whose piece it is. */
static inline struct cf_entry *cf_entry_of(const struct cf_piece *piece)
{
	return (struct cf_entry *)((uintptr_t)piece -
				   offsetof(struct cf_entry, req.piece));
}

/* The next group, taken off its list; false: there is none for one more. */
bool cf_submission_take(struct cf_submission *sub, struct cf_group *group);
/*
 * One more entry of the group's sort, which is not put into the group; NULL:
 * there is none. By who carries the group.
 */
struct cf_entry *cf_submission_next(struct cf_submission *sub,
				    struct cf_group *group);
/* The group has been carried. */
void cf_submission_done(struct cf_submission *sub, struct cf_group *group);
/* So many entries have ended and are events, or forgotten. */
void cf_submission_ended(struct cf_submission *sub, unsigned nr);

/* Ends all entries of the queue that nobody has begun, without an event. */
void cf_queue_strip(struct cf_queue *queue);

/* Until there is no submission, and so none at work. Nobody makes one. */
void cf_submissions_wait(void);
void cf_submissions_fork_prepare(void);
void cf_submissions_fork_parent(void);
void cf_submissions_fork_child(void);

#endif

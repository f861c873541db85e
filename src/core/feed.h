// SPDX-License-Identifier: Apache-2.0
/*
 * feed - a piece's bytes, dealt out in parts to whoever helps to carry it.
 *
 * Parts are claimed from the front by one atomic add, so that fast carriers
 * take more of them. What could not be moved is told to the feed; the piece
 * then ends where the first missing byte is, whoever found it missing.
 */
#ifndef CF_CORE_FEED_H
#define CF_CORE_FEED_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct cf_part {
	size_t at; /* from the start of the piece */
	size_t size;
};

struct cf_feed {
	size_t size;	      /* of the piece */
	size_t step;	      /* of a part, but for the first and the last */
	size_t skew;	      /* by which the first is shorter */
	_Atomic size_t next;  /* parts dealt out; relaxed, they carry no data */
	_Atomic size_t limit; /* the first byte known to be missing */
	pthread_mutex_t lock;
	int code; /* lock; why it is missing, 0: the end of the file */
};

/*
 * Parts of step bytes; the first is skew bytes shorter, so that a piece that
 * begins in the middle of a block goes on at the start of one. Of a skew that
 * is larger what is over whole steps counts.
 */
void cf_feed_init(struct cf_feed *feed, size_t size, size_t skew, size_t step);

/* The next part, or false: there is none, or none that would count. */
bool cf_feed_next(struct cf_feed *feed, struct cf_part *part);

/*
 * As cf_feed_next, but only a part whose number *nr (0 is the first) is
 * below bound. 1; 0: none is left; -EAGAIN: not now.
 */
int cf_feed_try(struct cf_feed *feed, size_t bound, struct cf_part *part,
		size_t *nr);

/* Whether a part is left; another carrier may take it first. */
bool cf_feed_has_more(struct cf_feed *feed);

/*
 * Part nr as far as it made it, for one that knows its carrier has come back
 * from it. False: it is past the end, or nothing of it made it.
 */
bool cf_feed_part(struct cf_feed *feed, size_t nr, struct cf_part *part);

/* Nothing from at on made it: the file ended (code 0), or an error. */
void cf_feed_short(struct cf_feed *feed, size_t at, int code);

/*
 * Whether all of a part made it. n: bytes from its front that did, or a
 * negative code; what is missing the feed is told.
 */
static inline bool cf_feed_made(struct cf_feed *feed,
				const struct cf_part *part, ssize_t n)
{
	if (n == (ssize_t)part->size)
		return true;
	cf_feed_short(feed, part->at + (n > 0 ? (size_t)n : 0),
		      n < 0 ? (int)n : 0);
	return false;
}

/* When all carriers are done: bytes from the front, or a negative code. */
ssize_t cf_feed_result(struct cf_feed *feed);

#endif

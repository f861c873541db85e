// SPDX-License-Identifier: Apache-2.0
/* feed - deals out parts and remembers where the first byte is missing. */
#include "core/feed.h"

#include <errno.h>
#include <stdatomic.h>

void cf_feed_init(struct cf_feed *feed, size_t size, size_t skew, size_t step)
{
	feed->size = size;
	feed->step = step;
	feed->skew = skew < step ? skew : skew % step;
	atomic_init(&feed->next, 0);
	atomic_init(&feed->limit, size);
	/* assigned, not initialised, as a feed is never destroyed */
	feed->lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	feed->code = 0;
}

/* Fills part n. False: it begins beyond the feed's limit. */
static bool part_of(struct cf_feed *feed, size_t n, struct cf_part *part)
{
	size_t end = (n + 1) * feed->step - feed->skew;

	part->at = n ? n * feed->step - feed->skew : 0;
	if (part->at >=
	    atomic_load_explicit(&feed->limit, memory_order_relaxed))
		return false;
	part->size = (end < feed->size ? end : feed->size) - part->at;
	return true;
}

bool cf_feed_next(struct cf_feed *feed, struct cf_part *part)
{
	return part_of(
		feed,
		atomic_fetch_add_explicit(&feed->next, 1, memory_order_relaxed),
		part);
}

int cf_feed_try(struct cf_feed *feed, size_t bound, struct cf_part *part,
		size_t *nr)
{
	*nr = atomic_load_explicit(&feed->next, memory_order_relaxed);
	do {
		if (!part_of(feed, *nr, part))
			return 0;
		if (*nr >= bound)
			return -EAGAIN;
	} while (!atomic_compare_exchange_weak_explicit(
		&feed->next, nr, *nr + 1, memory_order_relaxed,
		memory_order_relaxed));
	return 1;
}

bool cf_feed_has_more(struct cf_feed *feed)
{
	struct cf_part part;

	return part_of(feed,
		       atomic_load_explicit(&feed->next, memory_order_relaxed),
		       &part);
}

bool cf_feed_part(struct cf_feed *feed, size_t nr, struct cf_part *part)
{
	size_t limit = atomic_load_explicit(&feed->limit, memory_order_relaxed);

	if (!part_of(feed, nr, part))
		return false;
	if (part->size > limit - part->at)
		part->size = limit - part->at;
	return true;
}

void cf_feed_short(struct cf_feed *feed, size_t at, int code)
{
	pthread_mutex_lock(&feed->lock);
	if (at < feed->limit || (at == feed->limit && !feed->code)) {
		feed->limit = at;
		feed->code = code;
	}
	pthread_mutex_unlock(&feed->lock);
}

ssize_t cf_feed_result(struct cf_feed *feed)
{
	size_t limit = feed->limit;

	return limit || !feed->code ? (ssize_t)limit : feed->code;
}

// SPDX-License-Identifier: Apache-2.0
/* feed - deals out parts and remembers where the first byte is missing. */
#include "core/feed.h"

#include <stdatomic.h>

void cf_feed_init(struct cf_feed *feed, size_t size, size_t skew, size_t step)
{
	feed->size = size;
	feed->step = step;
	feed->skew = skew;
	atomic_init(&feed->next, 0);
	atomic_init(&feed->limit, size);
	pthread_mutex_init(&feed->lock, NULL);
	feed->code = 0;
}

bool cf_feed_next(struct cf_feed *feed, struct cf_part *part)
{
	size_t n =
		atomic_fetch_add_explicit(&feed->next, 1, memory_order_relaxed);
	size_t end = (n + 1) * feed->step - feed->skew;

	part->at = n ? n * feed->step - feed->skew : 0;
	if (part->at >=
	    atomic_load_explicit(&feed->limit, memory_order_relaxed))
		return false;
	part->size = (end < feed->size ? end : feed->size) - part->at;
	return true;
}

bool cf_feed_has_more(struct cf_feed *feed)
{
	size_t n = atomic_load_explicit(&feed->next, memory_order_relaxed);

	return n * feed->step - (n ? feed->skew : 0) <
	       atomic_load_explicit(&feed->limit, memory_order_relaxed);
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

	pthread_mutex_destroy(&feed->lock);
	return limit || !feed->code ? (ssize_t)limit : feed->code;
}

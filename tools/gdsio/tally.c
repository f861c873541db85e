// SPDX-License-Identifier: Apache-2.0
/* tally - what a thread has moved, and how long each request took. */
#include "gdsio/tally.h"

#include <math.h>

#define SUB_BITS 3

static int bucket_of(uint64_t ns)
{
	int top = 63 - __builtin_clzll(ns | 1);

	if (top <= SUB_BITS)
		return (int)ns;
	return ((top - SUB_BITS) << SUB_BITS) + (int)(ns >> (top - SUB_BITS));
}

/* The smallest that falls into it. */
double tally_bucket_ns(int bucket)
{
	int shift = (bucket >> SUB_BITS) - 1;

	if (shift <= 0)
		return bucket;
	return ldexp((bucket & 7) + 8, shift);
}

void tally_add(struct tally *tally, uint64_t ns)
{
	if (!tally->ops || ns < tally->min_ns)
		tally->min_ns = ns;
	if (ns > tally->max_ns)
		tally->max_ns = ns;
	tally->ops++;
	tally->sum_ns += ns;
	tally->bucket[bucket_of(ns)]++;
}

void tally_merge(struct tally *into, const struct tally *from)
{
	if (!from->ops)
		return;
	if (!into->ops || from->min_ns < into->min_ns)
		into->min_ns = from->min_ns;
	if (from->max_ns > into->max_ns)
		into->max_ns = from->max_ns;
	into->ops += from->ops;
	into->sum_ns += from->sum_ns;
	into->read_bytes += from->read_bytes;
	into->written_bytes += from->written_bytes;
	for (int i = 0; i < TALLY_BUCKETS; i++)
		into->bucket[i] += from->bucket[i];
}

double tally_percentile(const struct tally *tally, double part)
{
	uint64_t rank = (uint64_t)(part * (double)tally->ops);
	uint64_t seen = 0;

	for (int i = 0; i < TALLY_BUCKETS && tally->ops; i++) {
		seen += tally->bucket[i];
		if (seen > rank)
			return fmax(tally_bucket_ns(i), (double)tally->min_ns);
	}
	return (double)tally->max_ns;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * tally - what a thread has moved, and how long each request took.
 *
 * Latencies go into buckets of an eighth of a power of two of nanoseconds,
 * so that a percentile is wrong by less than a tenth.
 */
#ifndef GDSIO_TALLY_H
#define GDSIO_TALLY_H

#include <stdint.h>

#define TALLY_BUCKETS 512

struct tally {
	uint64_t ops;
	uint64_t read_bytes;
	uint64_t written_bytes;
	uint64_t sum_ns;
	uint64_t min_ns;
	uint64_t max_ns;
	uint64_t bucket[TALLY_BUCKETS];
};

void tally_add(struct tally *tally, uint64_t ns);
void tally_merge(struct tally *into, const struct tally *from);

static inline uint64_t tally_bytes(const struct tally *tally)
{
	return tally->read_bytes + tally->written_bytes;
}

/* In nanoseconds; part from 0 to 1. */
double tally_percentile(const struct tally *tally, double part);
double tally_bucket_ns(int bucket);

#endif

// SPDX-License-Identifier: Apache-2.0
/* reread - a bit for each 64th part of a chunk, in a table of small sets. */
#include "core/reread.h"

#include <limits.h>
#include <string.h>

#define NR_SETS 256
#define WAYS 4

static struct place {
	uint64_t dev, ino, chunk;
	uint64_t read;	/* 64ths that were read, a bit each */
	uint64_t time;	/* 0: an empty place */
	unsigned again; /* 64ths that were read again, counted each time */
} sets[NR_SETS][WAYS];

static struct place *set_of(const struct cf_touch *touch)
{
	uint64_t h = (touch->ino * 31 + touch->chunk) * 0x9e3779b97f4a7c15ull;

	return sets[h >> 56];
}

static bool is_of(const struct place *place, const struct cf_touch *touch)
{
	return place->time && place->dev == touch->dev &&
	       place->ino == touch->ino && place->chunk == touch->chunk;
}

/* The chunk's place, or else the one in its set that was read longest ago. */
static struct place *place_of(const struct cf_touch *touch)
{
	struct place *set = set_of(touch), *oldest = set;

	for (int i = 0; i < WAYS; i++) {
		if (is_of(&set[i], touch))
			return &set[i];
		if (set[i].time < oldest->time)
			oldest = &set[i];
	}
	return oldest;
}

/* Bits of the 64ths that [from, to) touches; chunk_size: a power of two. */
static uint64_t bits_of(const struct cf_touch *touch)
{
	size_t part = touch->chunk_size / 64;
	unsigned first = (unsigned)(touch->from / part);
	unsigned last = (unsigned)((touch->to - 1) / part);

	return (UINT64_MAX >> (63 - (last - first))) << first;
}

static unsigned count(uint64_t bits)
{
	return (unsigned)__builtin_popcountll(bits);
}

struct cf_touched cf_reread_note(const struct cf_touch *touch)
{
	struct place *place = place_of(touch);
	struct place known = *place;
	uint64_t bits = bits_of(touch);
	struct cf_touched touched;

	if (!is_of(&known, touch))
		known = (struct place){ .dev = touch->dev,
					.ino = touch->ino,
					.chunk = touch->chunk };
	touched.again = (known.read & bits) == bits;
	touched.hot = touched.again && known.again >= 2 * count(known.read);
	touched.before = known.time;
	known.read |= bits;
	touched.whole = known.read == UINT64_MAX;
	known.time = touch->now;
	if (touched.again && known.again < UINT_MAX / 2)
		known.again += count(bits);
	if (touch->now)
		*place = known;
	return touched;
}

void cf_reread_forget(void)
{
	memset(sets, 0, sizeof(sets));
}

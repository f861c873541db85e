// SPDX-License-Identifier: Apache-2.0
/*
 * pattern - data that looks random and that any range of can be checked
 * without keeping a copy: each 8-byte word is a hash of its place.
 */
#include "bench.h"

#include <string.h>

static uint64_t word_at(uint64_t place, uint64_t seed)
{
	uint64_t x = place + seed * 0x9e3779b97f4a7c15ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

/* Whole words only: the grid's sizes and offsets are multiples of 8. */
void pattern_fill(void *mem, size_t size, uint64_t off, uint64_t seed)
{
	uint64_t *words = mem;

	for (size_t i = 0; i < size / 8; i++)
		words[i] = word_at(off / 8 + i, seed);
}

bool pattern_check(const void *mem, size_t size, uint64_t off, uint64_t seed)
{
	const uint64_t *words = mem;

	for (size_t i = 0; i < size / 8; i++)
		if (words[i] != word_at(off / 8 + i, seed))
			return false;
	return true;
}

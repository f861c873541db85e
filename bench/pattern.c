// SPDX-License-Identifier: Apache-2.0
/*
 * pattern - data that looks random and that any range of can be checked
 * without keeping a copy: each 8-byte word is a hash of its place. Ranges
 * begin and end at any byte.
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

/* Bytes up to the next whole word, or all that are left. */
static size_t ragged(uint64_t off, size_t size)
{
	size_t part = 8 - off % 8;

	return size < part ? size : part;
}

void pattern_fill(void *mem, size_t size, uint64_t off, uint64_t seed)
{
	char *at = mem;
	size_t part;

	for (; size; at += part, off += part, size -= part) {
		uint64_t word = word_at(off / 8, seed);

		part = ragged(off, size);
		if (part == 8)
			memcpy(at, &word, 8);
		else
			memcpy(at, (char *)&word + off % 8, part);
	}
}

bool pattern_check(const void *mem, size_t size, uint64_t off, uint64_t seed)
{
	const char *at = mem;
	size_t part;

	for (; size; at += part, off += part, size -= part) {
		uint64_t word = word_at(off / 8, seed);

		part = ragged(off, size);
		if (part == 8 ? memcmp(at, &word, 8) != 0 :
				memcmp(at, (char *)&word + off % 8, part) != 0)
			return false;
	}
	return true;
}

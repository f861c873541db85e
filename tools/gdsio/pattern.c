// SPDX-License-Identifier: Apache-2.0
/* pattern - the bytes that belong at each offset of a verified file. */
#include "gdsio/pattern.h"

#include <string.h>

#define WORD 8

/* The finalizer of splitmix64: every bit of x changes half of the answer. */
static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static uint64_t word_at(uint64_t index, uint64_t seed)
{
	return mix(index * 0x9e3779b97f4a7c15ull + mix(seed + 1));
}

unsigned char pattern_at(off_t off, uint64_t seed)
{
	uint64_t word = word_at((uint64_t)off / WORD, seed);
	unsigned char bytes[WORD];

	memcpy(bytes, &word, WORD);
	return bytes[(uint64_t)off % WORD];
}

void pattern_fill(void *data, size_t size, off_t off, uint64_t seed)
{
	unsigned char *at = data;
	size_t done = 0;

	for (; done < size && (uint64_t)off % WORD; done++)
		at[done] = pattern_at(off++, seed);
	for (; done + WORD <= size; done += WORD, off += WORD) {
		uint64_t word = word_at((uint64_t)off / WORD, seed);

		memcpy(at + done, &word, WORD);
	}
	for (; done < size; done++)
		at[done] = pattern_at(off++, seed);
}

static size_t check_bytes(const unsigned char *at, size_t from, size_t to,
			  off_t off, uint64_t seed)
{
	for (size_t i = from; i < to; i++) {
		if (at[i] != pattern_at(off + (off_t)i, seed))
			return i;
	}
	return PATTERN_MATCHES;
}

size_t pattern_check(const void *data, size_t size, off_t off, uint64_t seed)
{
	const unsigned char *at = data;
	size_t head = (WORD - (uint64_t)off % WORD) % WORD;
	size_t done = head < size ? head : size;
	size_t bad = check_bytes(at, 0, done, off, seed);

	for (; bad == PATTERN_MATCHES && done + WORD <= size; done += WORD) {
		uint64_t word = word_at(((uint64_t)off + done) / WORD, seed);

		if (memcmp(at + done, &word, WORD))
			return check_bytes(at, done, done + WORD, off, seed);
	}
	if (bad == PATTERN_MATCHES)
		bad = check_bytes(at, done, size, off, seed);
	return bad;
}

uint64_t random_next(uint64_t *state)
{
	return mix(*state += 0x9e3779b97f4a7c15ull);
}

void random_fill(void *data, size_t size, uint64_t *state)
{
	unsigned char *at = data;

	for (size_t done = 0; done < size; done += WORD) {
		uint64_t word = random_next(state);
		size_t n = size - done < WORD ? size - done : WORD;

		memcpy(at + done, &word, n);
	}
}

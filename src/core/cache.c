// SPDX-License-Identifier: Apache-2.0
/* cache - CLDEMOTE where there is one, and stores that pass the caches by. */
#include "core/cache.h"

#include <string.h>
#include "core/numbers.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <emmintrin.h>
#include <stdint.h>

#define LINE 64
#define LEAF_FEATURES 7
#define ECX_CLDEMOTE (1u << 25)

bool cf_cache_can_demote(void)
{
	unsigned eax, ebx, ecx, edx;

	return __get_cpuid_count(LEAF_FEATURES, 0, &eax, &ebx, &ecx, &edx) &&
	       ecx & ECX_CLDEMOTE;
}

/* Older processors take the instruction for a no-op. */
void cf_cache_demote(const void *mem, size_t size)
{
	const char *line = mem;

	for (size_t at = 0; at < size; at += LINE)
		__asm__ volatile("cldemote %0" : : "m"(line[at]));
}

/* to is aligned to a line. */
static void store_line(char *to, const char *from)
{
	__m128i vectors[LINE / sizeof(__m128i)];

	memcpy(vectors, from, LINE);
	for (unsigned i = 0; i < LINE / sizeof(__m128i); i++)
		_mm_stream_si128((__m128i *)(void *)to + i, vectors[i]);
}

/* Whoever is told of the bytes next is not told before they are there. */
void cf_cache_store_past(void *to, const void *from, size_t size)
{
	size_t at = cf_clamp(-(uintptr_t)to % LINE, 0, size);

	memcpy(to, from, at);
	for (; size - at >= LINE; at += LINE)
		store_line((char *)to + at, (const char *)from + at);
	memcpy((char *)to + at, (const char *)from + at, size - at);
	_mm_sfence();
}

#else

bool cf_cache_can_demote(void)
{
	return false;
}

void cf_cache_demote(const void *mem, size_t size)
{
	(void)mem;
	(void)size;
}

void cf_cache_store_past(void *to, const void *from, size_t size)
{
	memcpy(to, from, size);
}

#endif

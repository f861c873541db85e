// SPDX-License-Identifier: Apache-2.0
/* cache - CLDEMOTE where there is one. */
#include "core/cache.h"

#if defined(__x86_64__)
#include <cpuid.h>

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

#endif

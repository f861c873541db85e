// SPDX-License-Identifier: Apache-2.0
/*
 * log_tag - mixes addresses with a secret of the process.
 *
 * The secret is made of the random bytes that the kernel gives each process,
 * folded to half their size, so that a tag tells nothing about other values
 * that are derived from those bytes.
 */
#include "core/log_tag.h"

#include <string.h>
#include <sys/auxv.h>

/* The finisher of splitmix64: every bit of x reaches every bit. */
static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

static uint64_t secret(void)
{
	const void *given = (const void *)getauxval(AT_RANDOM);
	uint64_t half[2] = { 0 };

	if (given)
		memcpy(half, given, sizeof(half));
	return mix(mix(half[0]) + half[1]);
}

uint32_t cf_log_tag(uintptr_t addr)
{
	uint64_t key = secret();
	uint32_t tag = (uint32_t)mix(mix(addr ^ key) + key);

	if (!addr)
		return 0;
	return tag ? tag : 1;
}

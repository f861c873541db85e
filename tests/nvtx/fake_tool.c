// SPDX-License-Identifier: Apache-2.0
/*
 * fake_tool - a profiler that keeps what it is told, by NVTX's ABI alone.
 *
 * As a library that is injected it has InitializeInjectionNvtx2; as the old
 * library, OLD_LIBRARY, it has the functions by name. FAKE_NVTX says how it
 * differs: refuse (it does not begin), late (it takes ranges when told to),
 * plain (it knows no domains).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "fake_nvtx.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT struct fake_nvtx fake_nvtx;
static __thread int depth;
static int the_domain;

static bool is(const char *mode)
{
	const char *set = getenv("FAKE_NVTX");

	return set && !strcmp(set, mode);
}

/* struct size, version, message and payload where the ABI has them */
static void keep(const void *event)
{
	const char *bytes = event;
	uint16_t head[2];
	int32_t payload_type, message_type;
	const char *message;
	unsigned n = fake_nvtx.pushes++;

	memcpy(head, bytes, sizeof(head));
	memcpy(&payload_type, bytes + 16, 4);
	memcpy(&message_type, bytes + 32, 4);
	memcpy(&message, bytes + 40, sizeof(message));
	if (head[0] < 2 || head[0] > 3 || head[1] != 48 || payload_type != 1 ||
	    message_type != 1)
		fake_nvtx.misuses++;
	if (n >= FAKE_NVTX_MAX)
		return;
	strncpy(fake_nvtx.messages[n], message, 47);
	memcpy(&fake_nvtx.payloads[n], bytes + 24, 8);
}

EXPORT void *nvtxDomainCreateA(const char *name);
EXPORT int nvtxDomainRangePushEx(void *domain, const void *event);
EXPORT int nvtxDomainRangePop(void *domain);

void *nvtxDomainCreateA(const char *name)
{
	fake_nvtx.domains++;
	strncpy(fake_nvtx.domain, name, sizeof(fake_nvtx.domain) - 1);
	return &the_domain;
}

int nvtxDomainRangePushEx(void *domain, const void *event)
{
	if (domain != (is("plain") ? NULL : &the_domain))
		fake_nvtx.misuses++;
	keep(event);
	return depth++;
}

int nvtxDomainRangePop(void *domain)
{
	if (domain != (is("plain") ? NULL : &the_domain) || depth < 1)
		fake_nvtx.misuses++;
	fake_nvtx.pops++;
	return --depth;
}

#ifndef OLD_LIBRARY
typedef void (*function)(void);

EXPORT int InitializeInjectionNvtx2(const void *(*get_export)(uint32_t id));
EXPORT void fake_nvtx_take(bool takes);

static function **core2;

void fake_nvtx_take(bool takes)
{
	*core2[4] = takes ? (function)nvtxDomainRangePushEx : NULL;
	*core2[5] = takes ? (function)nvtxDomainRangePop : NULL;
	*core2[12] = takes && !is("plain") ? (function)nvtxDomainCreateA : NULL;
}

int InitializeInjectionNvtx2(const void *(*get_export)(uint32_t id))
{
	const struct {
		size_t size;
		int (*get_table)(int module, function ***table, unsigned *size);
	} *callbacks = get_export(1);
	static const unsigned sizes[] = { 0, 16, 9, 15, 7, 16, 7 };
	function **table;
	unsigned size;

	fake_nvtx.begins++;
	if (is("refuse") || !callbacks || callbacks->size != sizeof(*callbacks))
		return 0;
	for (int module = 1; module < 7; module++) {
		if (!callbacks->get_table(module, &table, &size) ||
		    size != sizes[module] || table[0] || table[size])
			return 0;
		for (unsigned i = 1; i < size; i++)
			if (!table[i] || *table[i])
				return 0;
	}
	if (callbacks->get_table(0, &table, &size) ||
	    callbacks->get_table(7, &table, &size) || get_export(2) ||
	    !get_export(3))
		return 0;
	if (!callbacks->get_table(5, &core2, &size))
		return 0;
	if (!is("late"))
		fake_nvtx_take(true);
	return 1;
}
#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * alias - an address by which the CPU, and so the kernel, reaches a range of
 * device memory. IO to and from it goes straight to the GPU.
 *
 * An alias is made when a buffer is registered, by the first provider that has
 * an address for it: the client's (opencufile.h), the memory's own address
 * where the machine is coherent, or the driver's dma-buf. It is tested before
 * it is used (alias_test.h). The registration holds a reference, and so does
 * each request that uses it; the last one put ends the mapping.
 */
#ifndef CF_CORE_ALIAS_H
#define CF_CORE_ALIAS_H

#include <opencufile.h>
#include <stdbool.h>
#include <sys/types.h>
#include "core/memory.h"

/* What came of asking for an address. */
enum cf_alias_state {
	CF_ALIAS_UNREGISTERED, /* not asked: no registered GPU memory */
	CF_ALIAS_NOBODY,       /* no provider has one */
	CF_ALIAS_WRONG,	       /* the address shows other memory */
	CF_ALIAS_PLAIN,	       /* a mapping without pages: buffered IO only */
	CF_ALIAS_PAGES,	       /* O_DIRECT can be tried */
};

/* Constant once made, but for refs. */
struct cf_alias {
	_Atomic unsigned refs;
	enum cf_alias_state state; /* PLAIN or PAGES */
	uintptr_t device;	   /* the GPU's address of the first byte */
	uintptr_t cpu;		   /* the CPU's */
	size_t size;
	/* ends the mapping: unmap(arg, map, map_size) */
	void (*unmap)(void *arg, void *mem, size_t size); /* or NULL */
	void *arg;
	void *map;
	size_t map_size;
};

/*
 * Asks the providers for size bytes of mem, and tests the first address that
 * one has. PAGES or PLAIN: *alias is the caller's reference; else NULL.
 * Serialised by the session lock; calls the driver.
 */
enum cf_alias_state cf_alias_make(const struct cf_memory *mem, size_t size,
				  struct cf_alias **alias);

void cf_alias_get(struct cf_alias *alias);
/* NULL is ignored. The last put ends the mapping. */
void cf_alias_put(struct cf_alias *alias);
/* How many there are. */
unsigned cf_aliases_out(void);
/* In a child of a fork: the parent ends the mapping. NULL is ignored. */
void cf_alias_leave(struct cf_alias *alias);

/* Where the CPU finds the byte that the GPU has at addr. */
static inline uintptr_t cf_alias_at(const struct cf_alias *alias,
				    uintptr_t addr)
{
	return alias->cpu + (addr - alias->device);
}

/* The client's provider from now on; NULL: none. 0 or -5022. Any thread. */
int cf_alias_set_provider(const ocf_alias_provider_t *provider);

/* fork: no thread may be about to change the provider. */
void cf_alias_fork_prepare(void);
void cf_alias_fork_release(void); /* in parent and child */

/* Forgets which providers were proven on which GPUs; they are tested anew. */
void cf_alias_forget(void);

/* ------------------------------------------------ what turned out not to go */

/*
 * Pairs of file system and GPU between which IO to an alias was refused for a
 * reason that does not pass: -EREMOTEIO (no way from that disk to that GPU),
 * -EFAULT (the pages cannot be had), -EINVAL (such memory is refused; since
 * Linux 7.3 also: no way).
 */
bool cf_alias_is_refusal(int code);
/* Remembers the pair until the last close. Any thread, no lock. */
void cf_alias_refuse(dev_t dev, int ordinal, int code);
/* The code that was remembered for the pair, or 0. */
int cf_alias_refused(dev_t dev, int ordinal);
/* Forgets all pairs. */
void cf_alias_refused_close(void);

#endif

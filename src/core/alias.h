// SPDX-License-Identifier: Apache-2.0
/*
 * alias - an address by which the CPU, and so the kernel, reaches a range of
 * device memory. IO to and from it goes straight to the GPU.
 *
 * One is made when a buffer is registered, by the first provider that has an
 * address for it: the client's (opencufile.h), the memory's own address where
 * the machine is coherent, or the driver's dma-buf. It is tested before it is
 * used (alias_test.h). The registration holds a reference, and each request
 * that found it; the last one ends the mapping.
 */
#ifndef CF_CORE_ALIAS_H
#define CF_CORE_ALIAS_H

#include <opencufile.h>
#include <stdbool.h>
#include <sys/types.h>
#include "core/memory.h"

/* What became of the question for an address. */
enum cf_alias_state {
	CF_ALIAS_UNREGISTERED, /* nobody asked */
	CF_ALIAS_NOBODY,       /* no provider has one */
	CF_ALIAS_WRONG,	       /* what is seen there is not the memory */
	CF_ALIAS_PLAIN,	       /* a mapping without pages: buffered IO only */
	CF_ALIAS_PAGES,	       /* O_DIRECT can be tried */
};

/* Constant once made, but for the count. */
struct cf_alias {
	_Atomic unsigned refs;
	enum cf_alias_state state; /* PLAIN or PAGES */
	uintptr_t device;	   /* the first byte, as the GPU names it */
	uintptr_t cpu;		   /* as the CPU does */
	size_t size;
	/* who ends it, and what it is told */
	void (*unmap)(void *arg, void *mem, size_t size); /* or NULL */
	void *arg;
	void *map;
	size_t map_size;
};

/*
 * Asks the providers about size bytes of mem, and tests what they say. PAGES
 * or PLAIN: *alias is the caller's reference; else NULL. Serialised by the
 * session lock; asks the driver.
 */
enum cf_alias_state cf_alias_make(const struct cf_memory *mem, size_t size,
				  struct cf_alias **alias);

void cf_alias_get(struct cf_alias *alias);
/* NULL is nobody's. The last one ends the mapping. */
void cf_alias_put(struct cf_alias *alias);
/* In a child of a fork: the mapping is its parent's to end. NULL is nobody's.
 */
void cf_alias_leave(struct cf_alias *alias);

/* Where the CPU finds the byte that the GPU has at addr. */
static inline uintptr_t cf_alias_at(const struct cf_alias *alias,
				    uintptr_t addr)
{
	return alias->cpu + (addr - alias->device);
}

/* The client's provider from now on; NULL: none. 0 or -5022. Any thread. */
int cf_alias_set_provider(const ocf_alias_provider_t *provider);

/* fork: nobody may be about to change it. */
void cf_alias_fork_prepare(void);
void cf_alias_fork_release(void); /* in parent and child */

/* What was found out about GPUs is asked anew. */
void cf_alias_forget(void);

/* ------------------------------------------------ what turned out not to go */

/*
 * Pairs of file system and GPU where IO to an alias was refused for a reason
 * that will not pass: -EREMOTEIO (no way from that disk to that GPU),
 * -EFAULT (the pages cannot be had), -EINVAL (such memory is refused; since
 * Linux 7.3 also: no way).
 */
bool cf_alias_is_refusal(int code);
/* Remembers it until the last close. Any thread, no lock. */
void cf_alias_refuse(dev_t dev, int ordinal, int code);
/* 0, or the code that was remembered. */
int cf_alias_refused(dev_t dev, int ordinal);
/* Forgets them all. */
void cf_alias_refused_close(void);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * buffer - registered memory ranges.
 *
 * A registration pins nothing: it is the client's promise to use the range,
 * kept as an interval. Ranges may overlap and nest, but a base address can be
 * registered only once. Registering takes microseconds and has no size limit.
 */
#ifndef CF_CORE_BUFFER_H
#define CF_CORE_BUFFER_H

#include <stdbool.h>
#include "core/alias.h"
#include "core/memory.h"
#include "core/remote.h"

/*
 * 0, -5023 (the base is registered), -5014 (beyond the allocation) or -ENOMEM.
 * relaxed: the client asked for relaxed ordering at NICs.
 */
int cf_buffer_register(const struct cf_memory *mem, size_t size, bool relaxed);

/*
 * Stores what cf_alias_make answered for the registration with this base, if
 * more than NOBODY. Takes the reference over.
 */
void cf_buffer_set_alias(uintptr_t base, enum cf_alias_state state,
			 struct cf_alias *alias);

/*
 * For a range that cf_buffer_cover calls whole: a reference on an alias that
 * holds [mem->addr, mem->addr + size); or NULL, and *state says why. Any
 * thread.
 */
struct cf_alias *cf_buffer_alias(const struct cf_memory *mem, size_t size,
				 enum cf_alias_state *state);

/* False: cf_buffer_alias would answer NULL and NOBODY for any range. */
bool cf_buffer_may_have_alias(void);

/* A registration. */
struct cf_buffer_range {
	uintptr_t base, end; /* half open */
	uint64_t buffer_id;  /* of the allocation; 0: host, or not known */
	bool relaxed;
};

/*
 * The same for NICs that reach the memory. set takes the reference over, and
 * puts it if the registration has gone or has one already.
 */
void cf_buffer_set_remote(const struct cf_buffer_range *reg,
			  struct cf_remote *remote);
struct cf_remote *cf_buffer_remote(const struct cf_memory *mem, size_t size);

/*
 * The registration of GPU memory with the lowest base, from this one on, that
 * no NIC reaches. False: there is none. Any thread.
 */
bool cf_buffer_unreached(uintptr_t from, struct cf_buffer_range *out);

/*
 * The registration that holds [start, start + size) of mem's allocation.
 * False: there is none. Any thread.
 */
bool cf_buffer_find(const struct cf_memory *mem, uintptr_t start, size_t size,
		    struct cf_buffer_range *out);

/* 0 or -5024: base is no registered base. */
int cf_buffer_deregister(uintptr_t base);

enum cf_cover {
	CF_COVER_NONE,	 /* base lies in no registration */
	CF_COVER_WHOLE,	 /* one registration holds all of the range */
	CF_COVER_BEYOND, /* base is registered, the range leaves it */
};

/*
 * How registrations cover [start, start + size), which a client named by an
 * offset from base. mem: facts of the memory that is there now; a registration
 * of memory that was freed since does not count. *held: the one that holds it
 * all. Takes no global lock. Any thread.
 */
enum cf_cover cf_buffer_cover(const struct cf_memory *mem, uintptr_t base,
			      uintptr_t start, size_t size,
			      struct cf_buffer_range *held);

/* Forgets all registrations. */
void cf_buffers_close(void);

/* Bytes of one GPU that are registered, for statistics. */
uint64_t cf_buffer_bytes(int ordinal);

void cf_buffers_fork_prepare(void);
void cf_buffers_fork_parent(void);
void cf_buffers_fork_child(void);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * handle_table - the entries of handles, and the values that name them.
 *
 * Entries live in chunks that are never freed. So a lookup may read an entry
 * that another thread is just retiring, and notice that by its state word:
 *
 *      63        32 31   30     29            0
 *     | generation | live | - |   references   |
 *
 * The lock is handle.c's. It guards the entries that are free, the lists by
 * descriptor, and how many entries there are.
 */
#ifndef CF_CORE_HANDLE_TABLE_H
#define CF_CORE_HANDLE_TABLE_H

#include <stdatomic.h>
#include <stddef.h>
#include "core/handle.h"
#include "seam/hidden.h"

#define CF_TABLE_CHUNK_BITS 8
#define CF_TABLE_CHUNK (1u << CF_TABLE_CHUNK_BITS)
#define CF_TABLE_CHUNKS 4096 /* a million handles */
#define CF_TABLE_FD_LISTS 4096

#define CF_ENTRY_LIVE (1ull << 31)
#define CF_ENTRY_REFS ((1ull << 30) - 1)
#define CF_ENTRY_GENERATION_SHIFT 32
#define CF_ENTRY_GENERATION 0xffffffull

/* "CF": no pointer a process can hold has these top bits. */
#define CF_VALUE_TAG (0x4346ull << 48)
#define CF_VALUE_TAG_MASK (0xffffull << 48)
#define CF_VALUE_INDEX 0xffffffull
#define CF_VALUE_GENERATION_SHIFT 24

struct cf_handle_entry {
	struct cf_handle handle;
	uint32_t index;
	/* handle.c's lock */
	bool retiring; /* one waits for its last put */
	/* among those that are free, or of its fd's list */
	struct cf_handle_entry *next;
};

/* Published with release once its entries are set up. */
extern CF_HIDDEN struct cf_handle_entry
	*_Atomic cf_handle_chunks[CF_TABLE_CHUNKS];

static inline uint64_t cf_entry_state(const struct cf_handle_entry *entry)
{
	return atomic_load_explicit(&entry->handle.state, memory_order_relaxed);
}

static inline uint64_t cf_entry_generation(uint64_t state)
{
	return state >> CF_ENTRY_GENERATION_SHIFT & CF_ENTRY_GENERATION;
}

static inline bool cf_entry_is_live(const struct cf_handle_entry *entry)
{
	return cf_entry_state(entry) & CF_ENTRY_LIVE;
}

/* NULL: there is no such chunk. Any thread, without the lock. */
static inline struct cf_handle_entry *cf_handle_entry_at(uint32_t index)
{
	struct cf_handle_entry *chunk;

	if (index >> CF_TABLE_CHUNK_BITS >= CF_TABLE_CHUNKS)
		return NULL;
	chunk = atomic_load_explicit(
		&cf_handle_chunks[index >> CF_TABLE_CHUNK_BITS],
		memory_order_acquire);
	return chunk ? &chunk[index & (CF_TABLE_CHUNK - 1)] : NULL;
}

/* The place that value names, whoever has it now; NULL: none. As above. */
static inline struct cf_handle_entry *cf_handle_entry_of(CUfileHandle_t value,
							 uint64_t *generation)
{
	uint64_t v = (uintptr_t)value;

	if ((v & CF_VALUE_TAG_MASK) != CF_VALUE_TAG)
		return NULL;
	*generation = v >> CF_VALUE_GENERATION_SHIFT & CF_ENTRY_GENERATION;
	return cf_handle_entry_at(v & CF_VALUE_INDEX);
}

CUfileHandle_t cf_handle_entry_value(const struct cf_handle_entry *entry);

/* All from here on: the lock is held. */

/* Not live, and with the generation that it is to have. NULL: no memory. */
struct cf_handle_entry *cf_handle_entry_new(void);
/* Its value names nothing from now on. */
void cf_handle_entry_free(struct cf_handle_entry *entry);
/* Entries that there ever were. */
uint32_t cf_handle_entries(void);

/* The live entry of a descriptor, or NULL. Lists have those that retire, too.
 */
struct cf_handle_entry *cf_handle_of_fd(int fd);
void cf_handle_list_fd(struct cf_handle_entry *entry);
void cf_handle_unlist_fd(struct cf_handle_entry *entry);

#endif

// SPDX-License-Identifier: Apache-2.0
/* handle_table - chunks of entries, those that are free, and lists by fd. */
#include "core/handle_table.h"

#include <stdio.h>
#include <stdlib.h>
#include "core/log_tag.h"

struct cf_handle_entry *_Atomic cf_handle_chunks[CF_TABLE_CHUNKS];

static uint32_t nr_entries;
static struct cf_handle_entry *free_entries;
static struct cf_handle_entry *by_fd[CF_TABLE_FD_LISTS];

CUfileHandle_t cf_handle_entry_value(const struct cf_handle_entry *entry)
{
	uint64_t generation = cf_entry_generation(cf_entry_state(entry));

	return (CUfileHandle_t)(uintptr_t)(CF_VALUE_TAG |
					   generation
						   << CF_VALUE_GENERATION_SHIFT |
					   entry->index);
}

unsigned cf_handle_number(const struct cf_handle *handle)
{
	return ((const struct cf_handle_entry *)handle)->index;
}

const char *cf_handle_text(CUfileHandle_t value, char text[CF_HANDLE_TEXT])
{
	uint64_t v = (uintptr_t)value;

	if ((v & CF_VALUE_TAG_MASK) == CF_VALUE_TAG)
		snprintf(text, CF_HANDLE_TEXT, "%u",
			 (unsigned)(v & CF_VALUE_INDEX));
	else
		snprintf(text, CF_HANDLE_TEXT, CF_TAG, cf_tag(v));
	return text;
}

uint32_t cf_handle_entries(void)
{
	return nr_entries;
}

static bool add_chunk(void)
{
	struct cf_handle_entry *chunk = calloc(CF_TABLE_CHUNK, sizeof(*chunk));

	if (!chunk)
		return false;
	for (uint32_t i = 0; i < CF_TABLE_CHUNK; i++)
		chunk[i].index = nr_entries + i;
	atomic_store_explicit(
		&cf_handle_chunks[nr_entries >> CF_TABLE_CHUNK_BITS], chunk,
		memory_order_release);
	return true;
}

struct cf_handle_entry *cf_handle_entry_new(void)
{
	struct cf_handle_entry *entry = free_entries;

	if (entry) {
		free_entries = entry->next;
		return entry;
	}
	if (nr_entries >> CF_TABLE_CHUNK_BITS >= CF_TABLE_CHUNKS)
		return NULL;
	if (!(nr_entries & (CF_TABLE_CHUNK - 1)) && !add_chunk())
		return NULL;
	return cf_handle_entry_at(nr_entries++);
}

void cf_handle_entry_free(struct cf_handle_entry *entry)
{
	uint64_t next = cf_entry_generation(cf_entry_state(entry)) + 1;

	atomic_store_explicit(&entry->handle.state,
			      (next & CF_ENTRY_GENERATION)
				      << CF_ENTRY_GENERATION_SHIFT,
			      memory_order_relaxed);
	entry->retiring = false;
	entry->next = free_entries;
	free_entries = entry;
}

static struct cf_handle_entry **list_of(int fd)
{
	return &by_fd[(unsigned)fd % CF_TABLE_FD_LISTS];
}

struct cf_handle_entry *cf_handle_of_fd(int fd)
{
	struct cf_handle_entry *entry = *list_of(fd);

	while (entry && (entry->handle.fd != fd || !cf_entry_is_live(entry)))
		entry = entry->next;
	return entry;
}

void cf_handle_list_fd(struct cf_handle_entry *entry)
{
	entry->next = *list_of(entry->handle.fd);
	*list_of(entry->handle.fd) = entry;
}

void cf_handle_unlist_fd(struct cf_handle_entry *entry)
{
	struct cf_handle_entry **at = list_of(entry->handle.fd);

	while (*at != entry)
		at = &(*at)->next;
	*at = entry->next;
}

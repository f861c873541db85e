// SPDX-License-Identifier: Apache-2.0
/*
 * handle - the table of registered files.
 *
 * Entries live in chunks that are never freed. So a lookup may read an entry
 * that another thread is just retiring, and notice that by its state word:
 *
 *      63        32 31   30     29            0
 *     | generation | live | - |   references   |
 *
 * A get is one compare-and-swap that succeeds only for the right generation
 * and a live entry. Its acquire pairs with the release that published the
 * entry, so all fields are visible.
 *
 * Lock: table_lock guards the free list, the search by fd and registration;
 * file system calls are made before it is taken. The windows' lock may be taken
 * under it; windows are closed after it is released.
 */
#include "core/handle.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/file_facts.h"
#include "core/log.h"
#include "core/log_tag.h"
#include "core/twin.h"
#include "core/windows.h"

#define CHUNK_BITS 8
#define CHUNK_SIZE (1u << CHUNK_BITS)
#define NR_CHUNKS 4096 /* a million handles */
#define NR_FD_LISTS 4096

#define LIVE (1ull << 31)
#define REFS_MASK ((1ull << 30) - 1)
#define GENERATION_SHIFT 32
#define GENERATION_MASK 0xffffffull

/* "CF": no pointer a process can hold has these top bits. */
#define VALUE_TAG (0x4346ull << 48)
#define VALUE_TAG_MASK (0xffffull << 48)

struct entry {
	struct cf_handle handle;
	uint32_t index;
	/* table_lock */
	bool retiring;	    /* one waits for its last put */
	struct entry *next; /* among those that are free, or of its fd's list */
};

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t put_last = PTHREAD_COND_INITIALIZER;
/* published with release once its entries are set up */
static struct entry *_Atomic chunks[NR_CHUNKS];
/* table_lock */
static uint32_t nr_entries;
static struct entry *free_entries;
static struct entry *by_fd[NR_FD_LISTS]; /* also those that are retiring */

static uint64_t generation_of(uint64_t state)
{
	return state >> GENERATION_SHIFT & GENERATION_MASK;
}

static struct entry *entry_at(uint32_t index)
{
	struct entry *chunk;

	if (index >> CHUNK_BITS >= NR_CHUNKS)
		return NULL;
	chunk = atomic_load_explicit(&chunks[index >> CHUNK_BITS],
				     memory_order_acquire);
	return chunk ? &chunk[index & (CHUNK_SIZE - 1)] : NULL;
}

static struct entry *entry_of(CUfileHandle_t value, uint64_t *generation)
{
	uint64_t v = (uintptr_t)value;

	if ((v & VALUE_TAG_MASK) != VALUE_TAG)
		return NULL;
	*generation = v >> 24 & GENERATION_MASK;
	return entry_at(v & 0xffffff);
}

static CUfileHandle_t value_of(const struct entry *entry)
{
	uint64_t state = atomic_load_explicit(&entry->handle.state,
					      memory_order_relaxed);

	return (CUfileHandle_t)(uintptr_t)(VALUE_TAG |
					   generation_of(state) << 24 |
					   entry->index);
}

static bool is_live(const struct entry *entry)
{
	return atomic_load_explicit(&entry->handle.state,
				    memory_order_relaxed) &
	       LIVE;
}

struct cf_handle *cf_handle_get(CUfileHandle_t value)
{
	uint64_t generation, state;
	struct entry *entry = entry_of(value, &generation);

	if (!entry)
		return NULL;
	state = atomic_load_explicit(&entry->handle.state,
				     memory_order_relaxed);
	do {
		if (!(state & LIVE) || generation_of(state) != generation)
			return NULL;
	} while (!atomic_compare_exchange_weak_explicit(
		&entry->handle.state, &state, state + 1, memory_order_acquire,
		memory_order_relaxed));
	return &entry->handle;
}

/* Relaxed: the first reference has acquired all fields. */
void cf_handle_get_more(struct cf_handle *handle)
{
	atomic_fetch_add_explicit(&handle->state, 1, memory_order_relaxed);
}

/* Release: the thread that retires the handle comes after the last reads. */
void cf_handle_put_all(struct cf_handle *handle, unsigned nr)
{
	uint64_t state = atomic_fetch_sub_explicit(&handle->state, nr,
						   memory_order_release);

	if ((state & REFS_MASK) != nr || state & LIVE)
		return;
	pthread_mutex_lock(&table_lock);
	pthread_cond_broadcast(&put_last);
	pthread_mutex_unlock(&table_lock);
}

void cf_handle_put(struct cf_handle *handle)
{
	cf_handle_put_all(handle, 1);
}

unsigned cf_handle_number(const struct cf_handle *handle)
{
	return ((const struct entry *)handle)->index;
}

const char *cf_handle_text(CUfileHandle_t value, char text[CF_HANDLE_TEXT])
{
	uint64_t v = (uintptr_t)value;

	if ((v & VALUE_TAG_MASK) == VALUE_TAG)
		snprintf(text, CF_HANDLE_TEXT, "%u", (unsigned)(v & 0xffffff));
	else
		snprintf(text, CF_HANDLE_TEXT, CF_TAG, cf_tag(v));
	return text;
}

/* table_lock held */
static struct entry *entry_new_locked(void)
{
	struct entry *chunk, *entry = free_entries;

	if (entry) {
		free_entries = entry->next;
		return entry;
	}
	if (nr_entries >> CHUNK_BITS >= NR_CHUNKS)
		return NULL;
	if (!(nr_entries & (CHUNK_SIZE - 1))) {
		chunk = calloc(CHUNK_SIZE, sizeof(*chunk));
		if (!chunk)
			return NULL;
		for (uint32_t i = 0; i < CHUNK_SIZE; i++)
			chunk[i].index = nr_entries + i;
		atomic_store_explicit(&chunks[nr_entries >> CHUNK_BITS], chunk,
				      memory_order_release);
	}
	return entry_at(nr_entries++);
}

static struct entry **list_of(int fd)
{
	return &by_fd[(unsigned)fd % NR_FD_LISTS];
}

/* table_lock held */
static struct entry *find_fd_locked(int fd)
{
	struct entry *entry = *list_of(fd);

	while (entry && (entry->handle.fd != fd || !is_live(entry)))
		entry = entry->next;
	return entry;
}

/* table_lock held */
static void unlist_fd_locked(struct entry *entry)
{
	struct entry **at = list_of(entry->handle.fd);

	while (*at != entry)
		at = &(*at)->next;
	*at = entry->next;
}

/* table_lock held, but released while it waits for the last put. */
static void wait_idle_locked(struct entry *entry)
{
	while (atomic_load_explicit(&entry->handle.state,
				    memory_order_acquire) &
	       REFS_MASK)
		pthread_cond_wait(&put_last, &table_lock);
}

/* table_lock held */
static void free_locked(struct entry *entry)
{
	struct cf_handle *handle = &entry->handle;
	uint64_t state =
		atomic_load_explicit(&handle->state, memory_order_relaxed);

	cf_windows_retire(handle);
	if (!handle->fs_ops)
		unlist_fd_locked(entry);
	atomic_store_explicit(&handle->state,
			      ((generation_of(state) + 1) & GENERATION_MASK)
				      << GENERATION_SHIFT,
			      memory_order_relaxed);
	entry->retiring = false;
	entry->next = free_entries;
	free_entries = entry;
}

/*
 * table_lock held, but released while wait_idle_locked waits, and while the
 * twin is closed, which may wait for the file's server.
 */
static void retire_locked(struct entry *entry)
{
	struct cf_twin_left twin;

	atomic_fetch_and_explicit(&entry->handle.state, ~LIVE,
				  memory_order_relaxed);
	entry->retiring = true;
	wait_idle_locked(entry);
	twin = cf_twin_take(&entry->handle);
	free_locked(entry);
	if (twin.fd < 0)
		return;
	pthread_mutex_unlock(&table_lock);
	cf_twin_close(&twin);
	pthread_mutex_lock(&table_lock);
}

/*
 * table_lock held. All but the state, which lookups read at any time; nobody
 * has the rest.
 */
static void publish_locked(struct entry *entry, const struct cf_handle *made,
			   CUfileHandle_t *value)
{
	const size_t rest = offsetof(struct cf_handle, fd);
	struct cf_handle *handle = &entry->handle;
	uint64_t state =
		atomic_load_explicit(&handle->state, memory_order_relaxed);

	memcpy((char *)handle + rest, (const char *)made + rest,
	       sizeof(*handle) - rest);
	if (made->fs_ops) {
		handle->fs_table = *made->fs_ops;
		handle->fs_ops = &handle->fs_table;
	} else {
		entry->next = *list_of(handle->fd);
		*list_of(handle->fd) = entry;
	}
	*value = value_of(entry);
	atomic_store_explicit(&handle->state, state | LIVE,
			      memory_order_release);
}

/*
 * One handle per fd. If fd now names another file, the client has closed the
 * old one without a deregister: its handle can only do harm, and is retired.
 */
static int register_locked(const struct cf_handle *made, CUfileHandle_t *value)
{
	struct entry *entry;

	/* again after each: another thread may have registered fd meanwhile */
	while (!made->fs_ops && (entry = find_fd_locked(made->fd))) {
		if (entry->handle.dev == made->dev &&
		    entry->handle.ino == made->ino && !entry->handle.lost)
			return -CU_FILE_HANDLE_ALREADY_REGISTERED;
		cf_log(CF_LOG_WARN,
		       "handle %u fd %d: closed without deregister, replaced",
		       entry->index, made->fd);
		retire_locked(entry);
	}
	entry = entry_new_locked();
	if (!entry)
		return -CU_FILE_NOMEM_ERROR;
	publish_locked(entry, made, value);
	return 0;
}

void cf_handle_took_fd(int fd)
{
	struct entry *entry;

	pthread_mutex_lock(&table_lock);
	entry = find_fd_locked(fd);
	if (entry) {
		atomic_store_explicit(&entry->handle.lost, true,
				      memory_order_relaxed);
		cf_log(CF_LOG_WARN,
		       "handle %u fd %d: closed without deregister, lost",
		       entry->index, fd);
	}
	pthread_mutex_unlock(&table_lock);
}

int cf_handle_register(const CUfileDescr_t *descr,
		       const struct cf_file_answer *answer, bool force_direct,
		       CUfileHandle_t *value)
{
	struct cf_handle made = { .fd = -1, .twin = -1 };
	int err;

	err = cf_file_facts(descr, answer, &made);
	if (err)
		return err;
	made.direct |= force_direct && !made.fs_ops;
	pthread_mutex_lock(&table_lock);
	err = register_locked(&made, value);
	pthread_mutex_unlock(&table_lock);
	cf_windows_reap();
	return err;
}

int cf_handle_deregister(CUfileHandle_t value)
{
	uint64_t generation;
	struct entry *entry = entry_of(value, &generation);
	int err = -CU_FILE_HANDLE_NOT_REGISTERED;

	if (!entry)
		return err;
	pthread_mutex_lock(&table_lock);
	if (is_live(entry) &&
	    generation_of(entry->handle.state) == generation) {
		retire_locked(entry);
		err = 0;
	}
	pthread_mutex_unlock(&table_lock);
	cf_windows_reap();
	return err;
}

/* Waits also for handles whose deregister is still waiting for their IO. */
void cf_handles_close(void)
{
	pthread_mutex_lock(&table_lock);
	for (uint32_t i = 0; i < nr_entries; i++) {
		if (is_live(entry_at(i)))
			retire_locked(entry_at(i));
		else
			wait_idle_locked(entry_at(i));
	}
	pthread_mutex_unlock(&table_lock);
}

void cf_handles_fork_prepare(void)
{
	pthread_mutex_lock(&table_lock);
}

void cf_handles_fork_parent(void)
{
	pthread_mutex_unlock(&table_lock);
}

/*
 * A new condition: the old may count waiters that the child does not have. What
 * one of those was about to free is free.
 */
void cf_handles_fork_child(void)
{
	pthread_cond_init(&put_last, NULL);
	for (uint32_t i = 0; i < nr_entries; i++) {
		struct entry *entry = entry_at(i);
		struct cf_twin_left twin;

		atomic_fetch_and(&entry->handle.state, ~REFS_MASK);
		if (!entry->retiring)
			continue;
		twin = cf_twin_take(&entry->handle);
		cf_twin_close(&twin);
		free_locked(entry);
	}
	pthread_mutex_unlock(&table_lock);
}

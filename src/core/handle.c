// SPDX-License-Identifier: Apache-2.0
/*
 * handle - registers files, and counts who uses them.
 *
 * A get is one compare-and-swap of an entry's state word (core/handle_table.h)
 * that succeeds only for the right generation and a live entry. Its acquire
 * pairs with the release that published the entry, so all fields are visible.
 *
 * Lock: table_lock guards the table but for its lookups, and registration; file
 * system calls are made before it is taken. The windows' lock may be taken
 * under it; windows are closed after it is released.
 */
#include "core/handle.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/sysmacros.h>
#include "core/file_facts.h"
#include "core/handle_table.h"
#include "core/kept.h"
#include "core/log.h"
#include "core/twin.h"
#include "core/windows.h"

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t put_last = PTHREAD_COND_INITIALIZER;

struct cf_handle *cf_handle_get(CUfileHandle_t value)
{
	uint64_t generation, state;
	struct cf_handle_entry *entry = cf_handle_entry_of(value, &generation);

	if (!entry)
		return NULL;
	state = cf_entry_state(entry);
	do {
		if (!(state & CF_ENTRY_LIVE) ||
		    cf_entry_generation(state) != generation)
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

	if ((state & CF_ENTRY_REFS) != nr || state & CF_ENTRY_LIVE)
		return;
	pthread_mutex_lock(&table_lock);
	pthread_cond_broadcast(&put_last);
	pthread_mutex_unlock(&table_lock);
}

void cf_handle_put(struct cf_handle *handle)
{
	cf_handle_put_all(handle, 1);
}

/* table_lock held, but released while it waits for the last put. */
static void wait_idle_locked(struct cf_handle_entry *entry)
{
	while (atomic_load_explicit(&entry->handle.state,
				    memory_order_acquire) &
	       CF_ENTRY_REFS)
		pthread_cond_wait(&put_last, &table_lock);
}

/* table_lock held */
static void free_locked(struct cf_handle_entry *entry)
{
	cf_windows_retire(&entry->handle);
	if (!entry->handle.fs_ops)
		cf_handle_unlist_fd(entry);
	cf_handle_entry_free(entry);
}

/*
 * table_lock held, but released while twins are looked at and closed, which may
 * wait for the server of dev's files.
 */
static void close_twins_locked(const struct cf_twin_left *twin, bool all)
{
	struct cf_kept *kept = cf_kept_draw_locked(twin->dev, all);

	if (twin->fd < 0 && !kept)
		return;
	pthread_mutex_unlock(&table_lock);
	kept = cf_kept_leave(twin, cf_kept_sift(kept));
	pthread_mutex_lock(&table_lock);
	cf_kept_return_locked(kept);
}

/* table_lock held, but released while it waits. */
static void retire_locked(struct cf_handle_entry *entry)
{
	struct cf_twin_left twin;

	atomic_fetch_and_explicit(&entry->handle.state, ~CF_ENTRY_LIVE,
				  memory_order_relaxed);
	entry->retiring = true;
	wait_idle_locked(entry);
	twin = cf_twin_take(&entry->handle);
	free_locked(entry);
	close_twins_locked(&twin, false);
}

/*
 * table_lock held. All but the state, which lookups read at any time; nobody
 * has the rest.
 */
static void publish_locked(struct cf_handle_entry *entry,
			   const struct cf_handle *made, CUfileHandle_t *value)
{
	const size_t rest = offsetof(struct cf_handle, fd);
	struct cf_handle *handle = &entry->handle;
	uint64_t state = cf_entry_state(entry);

	memcpy((char *)handle + rest, (const char *)made + rest,
	       sizeof(*handle) - rest);
	if (made->fs_ops) {
		handle->fs_table = *made->fs_ops;
		handle->fs_ops = &handle->fs_table;
	} else {
		cf_handle_list_fd(entry);
	}
	*value = cf_handle_entry_value(entry);
	atomic_store_explicit(&handle->state, state | CF_ENTRY_LIVE,
			      memory_order_release);
}

/* table_lock held, but released meanwhile: a log may be slow to take a line. */
static void tell_closed_locked(uint32_t index, int fd, const char *what)
{
	pthread_mutex_unlock(&table_lock);
	cf_log(CF_LOG_WARN, "handle %u fd %d: closed without deregister, %s",
	       index, fd, what);
	pthread_mutex_lock(&table_lock);
}

/*
 * One handle per fd. If fd now names another file, the client has closed the
 * old one without a deregister: its handle can only do harm, and is retired.
 */
static int replace_locked(int fd, dev_t dev, ino_t ino)
{
	struct cf_handle_entry *entry;

	/* again after each: another thread may have registered fd meanwhile */
	while ((entry = cf_handle_of_fd(fd))) {
		if (entry->handle.dev == dev && entry->handle.ino == ino &&
		    !entry->handle.lost)
			return -CU_FILE_HANDLE_ALREADY_REGISTERED;
		retire_locked(entry);
		tell_closed_locked(entry->index, fd, "replaced");
	}
	return 0;
}

static int register_locked(const struct cf_handle *made, CUfileHandle_t *value)
{
	struct cf_handle_entry *entry;
	int err = 0;

	if (!made->fs_ops)
		err = replace_locked(made->fd, made->dev, made->ino);
	if (err)
		return err;
	entry = cf_handle_entry_new();
	if (!entry)
		return -CU_FILE_NOMEM_ERROR;
	publish_locked(entry, made, value);
	return 0;
}

void cf_handle_took_fd(int fd)
{
	struct cf_handle_entry *entry;

	pthread_mutex_lock(&table_lock);
	entry = cf_handle_of_fd(fd);
	if (entry) {
		atomic_store_explicit(&entry->handle.lost, true,
				      memory_order_relaxed);
		tell_closed_locked(entry->index, fd, "lost");
	}
	pthread_mutex_unlock(&table_lock);
}

int cf_handle_kept(const struct cf_handle *handle, int flags)
{
	int fd;

	pthread_mutex_lock(&table_lock);
	fd = cf_kept_take_locked(handle->dev, handle->ino, flags);
	pthread_mutex_unlock(&table_lock);
	return fd;
}

void cf_handle_replace(const CUfileDescr_t *descr,
		       const struct cf_file_answer *answer)
{
	const struct statx *stx = &answer->stx;

	if (!cf_file_is_taken(answer))
		return;
	pthread_mutex_lock(&table_lock);
	(void)replace_locked(descr->handle.fd,
			     makedev(stx->stx_dev_major, stx->stx_dev_minor),
			     stx->stx_ino);
	pthread_mutex_unlock(&table_lock);
	cf_windows_reap();
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
	struct cf_handle_entry *entry = cf_handle_entry_of(value, &generation);
	int err = -CU_FILE_HANDLE_NOT_REGISTERED;

	if (!entry)
		return err;
	pthread_mutex_lock(&table_lock);
	if (cf_entry_is_live(entry) &&
	    cf_entry_generation(entry->handle.state) == generation) {
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
	const struct cf_twin_left none = { .fd = -1 };

	pthread_mutex_lock(&table_lock);
	for (uint32_t i = 0; i < cf_handle_entries(); i++) {
		if (cf_entry_is_live(cf_handle_entry_at(i)))
			retire_locked(cf_handle_entry_at(i));
		else
			wait_idle_locked(cf_handle_entry_at(i));
	}
	close_twins_locked(&none, true);
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
 * one of those was about to free is free; but its twin stays open, until an
 * exec: to close it may wait for the file's server, and the fork with it.
 */
void cf_handles_fork_child(void)
{
	pthread_cond_init(&put_last, NULL);
	for (uint32_t i = 0; i < cf_handle_entries(); i++) {
		struct cf_handle_entry *entry = cf_handle_entry_at(i);

		atomic_fetch_and(&entry->handle.state, ~CF_ENTRY_REFS);
		entry->handle.opening = false;
		if (entry->retiring)
			free_locked(entry);
	}
	pthread_mutex_unlock(&table_lock);
}

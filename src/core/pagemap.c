// SPDX-License-Identifier: Apache-2.0
/*
 * pagemap - reads the pagemap of /proc, which has one word for each page.
 *
 * A file page leaves every page table when it leaves the page cache, and comes
 * back only when a thread touches its address. So if no thread touches a
 * mapping, the pages that are still present are those that were mapped first.
 * The present bit needs no privileges; the rest of a word does.
 *
 * The descriptor is kept open, since an open costs more than a small question.
 * A client that closes descriptors it does not own may have put another file in
 * its place, so it is checked before each use.
 *
 * Lock: fd_lock guards opening and closing; innermost but for the log's.
 */
#include "core/pagemap.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <unistd.h>
#include "seam/os.h"

#define PRESENT (1ull << 63)
#define WORDS 2048 /* read at once */

static pthread_mutex_t fd_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int map_fd = -1;
static _Atomic uint64_t map_dev, map_ino; /* map_fd's file; fd_lock to write */

/* 1: fd still names the file that we opened; 0: it does not; or -errno. */
static int is_ours(int fd)
{
	struct stat st;
	int err = fd < 0 ? -EBADF : cf_os->fstat(fd, &st);

	if (err)
		return err == -EBADF ? 0 : err;
	return st.st_dev == map_dev && st.st_ino == map_ino;
}

static void close_ours(int fd)
{
	if (is_ours(fd))
		cf_os->close(fd);
}

/* fd_lock held */
static int open_locked(void)
{
	int fd = cf_os->open(CF_PROC_SELF "/pagemap", O_RDONLY | O_CLOEXEC, 0);
	struct stat st;
	int err;

	if (fd < 0)
		return fd;
	err = cf_os->fstat(fd, &st);
	if (err) {
		cf_os->close(fd);
		return err;
	}
	map_dev = st.st_dev;
	map_ino = st.st_ino;
	atomic_store_explicit(&map_fd, fd, memory_order_release);
	return fd;
}

static int descriptor(void)
{
	int fd = atomic_load_explicit(&map_fd, memory_order_acquire);
	int ours = is_ours(fd);

	if (ours)
		return ours < 0 ? ours : fd;
	pthread_mutex_lock(&fd_lock);
	fd = map_fd;
	ours = is_ours(fd);
	if (!ours)
		fd = open_locked();
	pthread_mutex_unlock(&fd_lock);
	return ours < 0 ? ours : fd;
}

int cf_pagemap_present(const void *mem, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t first = (uintptr_t)mem / page;
	size_t end = ((uintptr_t)mem + size + page - 1) / page;
	int fd = descriptor();
	uint64_t words[WORDS];

	if (fd < 0)
		return fd;
	while (first < end) {
		size_t nr = end - first < WORDS ? end - first : WORDS;
		ssize_t n = cf_os->pread(fd, words, nr * sizeof(*words),
					 (off_t)(first * sizeof(*words)));

		if (n != (ssize_t)(nr * sizeof(*words)))
			return n < 0 ? (int)n : -EIO;
		for (size_t i = 0; i < nr; i++)
			if (!(words[i] & PRESENT))
				return 0;
		first += nr;
	}
	return 1;
}

void cf_pagemap_close(void)
{
	pthread_mutex_lock(&fd_lock);
	close_ours(map_fd);
	map_fd = -1;
	pthread_mutex_unlock(&fd_lock);
}

void cf_pagemap_fork_prepare(void)
{
	pthread_mutex_lock(&fd_lock);
}

void cf_pagemap_fork_parent(void)
{
	pthread_mutex_unlock(&fd_lock);
}

/* The parent's descriptor shows the parent's pages: close it. */
void cf_pagemap_fork_child(void)
{
	close_ours(map_fd);
	map_fd = -1;
	pthread_mutex_unlock(&fd_lock);
}

// SPDX-License-Identifier: Apache-2.0
/* spread - see spread.h. */
#include "core/spread.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>
#include "core/file.h"
#include "core/fs_magic.h"
#include "core/log.h"
#include "seam/os.h"

#define FILES 64

/* Relaxed: process_vm_writev is refused, by the kernel or by a sandbox. */
static _Atomic bool refused;
/* By inode number, so files may share a counter; relaxed: hints. */
static _Atomic unsigned writers_of[FILES];

/* The descriptor is still the handle's file, which has all of the range. */
static bool is_within(const struct cf_piece *piece)
{
	const struct cf_handle *handle = piece->handle;
	struct stat st;

	return !cf_os->fstat(handle->fd, &st) && st.st_ino == handle->ino &&
	       st.st_dev == handle->dev &&
	       st.st_size - piece->file_off >= (off_t)piece->size;
}

static bool may_be(const struct cf_piece *piece)
{
	const struct cf_handle *handle = piece->handle;

	return piece->op == CF_WRITE && piece->size >= CF_SPREAD_CROWD_FROM &&
	       (unsigned long)handle->fs_magic == TMPFS_MAGIC &&
	       (handle->open_flags & O_ACCMODE) == O_RDWR &&
	       !atomic_load_explicit(&refused, memory_order_relaxed);
}

bool cf_spread_can(const struct cf_piece *piece)
{
	return may_be(piece) && is_within(piece);
}

unsigned cf_spread_join(struct cf_spread *spread, const struct cf_piece *piece)
{
	spread->mem = NULL;
	spread->writers = NULL;
	if (!may_be(piece))
		return 0;
	spread->writers = &writers_of[piece->handle->ino % FILES];
	return 1 + atomic_fetch_add_explicit(spread->writers, 1,
					     memory_order_relaxed);
}

bool cf_spread_begin(struct cf_spread *spread, const struct cf_piece *piece)
{
	size_t delta =
		(size_t)piece->file_off & ((size_t)sysconf(_SC_PAGESIZE) - 1);
	void *mem;

	spread->from = piece->file_off - (off_t)delta;
	spread->size = delta + piece->size;
	if (cf_os->map_to_write(piece->handle->fd, spread->from, spread->size,
				&mem))
		return false;
	/* the child of a fork has no use for it */
	(void)cf_os->madvise(mem, spread->size, MADV_DONTFORK);
	spread->mem = mem;
	return true;
}

void cf_spread_end(struct cf_spread *spread)
{
	if (spread->mem)
		(void)cf_os->unmap(spread->mem, spread->size);
	if (spread->writers)
		atomic_fetch_sub_explicit(spread->writers, 1,
					  memory_order_relaxed);
}

unsigned cf_spreads_out(void)
{
	unsigned out = 0;

	for (unsigned i = 0; i < FILES; i++)
		out += atomic_load_explicit(&writers_of[i],
					    memory_order_relaxed);
	return out;
}

void cf_spreads_fork_child(void)
{
	for (unsigned i = 0; i < FILES; i++)
		atomic_store_explicit(&writers_of[i], 0, memory_order_relaxed);
}

/*
 * Empties the page table here, where all carriers do it at once; munmap, at the
 * end, is made by one thread.
 */
static void let_go(char *mem, size_t size)
{
	uintptr_t mask = (uintptr_t)sysconf(_SC_PAGESIZE) - 1;
	uintptr_t from = ((uintptr_t)mem + mask) & ~mask;
	uintptr_t end = ((uintptr_t)mem + size) & ~mask;

	if (end > from)
		(void)cf_os->madvise((void *)from, end - from, MADV_DONTNEED);
}

static size_t copied(const struct cf_spread *spread, const void *buf,
		     size_t size, off_t off)
{
	char *to = spread->mem + (off - spread->from);
	ssize_t n = cf_os->copy_to(to, buf, size);

	let_go(to, size);
	if ((n == -ENOSYS || n == -EPERM) && !atomic_exchange(&refused, true))
		cf_log(CF_LOG_INFO,
		       "tmpfs: one thread writes: process_vm_writev: %s",
		       n == -ENOSYS ? "ENOSYS" : "EPERM");
	return n > 0 ? (size_t)n : 0;
}

/*
 * How much to copy: not the piece's last byte. That is left to pwrite, which
 * takes privileges from the file, wakes its watchers, and obeys its limits.
 */
static size_t to_copy(const struct cf_piece *piece, size_t size, off_t off)
{
	bool last = off - piece->file_off + (off_t)size == (off_t)piece->size;

	return last ? size - 1 : size;
}

ssize_t cf_spread_write(const struct cf_piece *piece, const void *buf,
			size_t size, off_t off)
{
	size_t done = 0;
	ssize_t n;

	if (piece->spread)
		done = copied(piece->spread, buf, to_copy(piece, size, off),
			      off);
	if (done == size)
		return (ssize_t)size;
	n = cf_file_write(piece->handle, piece->via, (const char *)buf + done,
			  size - done, off + (off_t)done);
	if (n < 0)
		return done ? (ssize_t)done : n;
	return (ssize_t)done + n;
}

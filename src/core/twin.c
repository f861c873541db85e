// SPDX-License-Identifier: Apache-2.0
/*
 * twin - opens the client's file once more, and picks one of the two.
 *
 * The twin is buffered if the client's descriptor is O_DIRECT, and O_DIRECT if
 * it is not. It is closed by the deregister and not before, or later (kept.h):
 * closing any descriptor of an inode drops the process's POSIX locks on it.
 *
 * Lock: reopen_lock, innermost, held for moments: who opens a handle's twin is
 * told of in the handle, for an open waits for a server that is away.
 */
#include "core/twin.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include "core/kept.h"
#include "core/log.h"
#include "seam/frames.h"
#include "seam/os.h"

static pthread_mutex_t reopen_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t opened = PTHREAD_COND_INITIALIZER;

bool cf_twin_is(const struct cf_handle *handle, int fd)
{
	return cf_os_is_file(fd, handle->dev, handle->ino);
}

static bool is_lost(const struct cf_handle *handle, int fd)
{
	return cf_os_is_lost(fd, handle->dev, handle->ino);
}

/*
 * If standard streams are closed, the twin must not get their numbers: a
 * program that prints all the same would print over the client's file. The
 * numbers are held during the open by O_PATH descriptors, for closing those
 * drops no locks.
 */
static int open_beside_streams(const char *path, int flags)
{
	int held[CF_NR_STREAMS], nr = 0, fd;

	for (int i = 0; i < CF_NR_STREAMS; i++)
		if (cf_os->get_flags(i) == -EBADF)
			held[nr++] = cf_os->open("/", O_PATH | O_CLOEXEC, 0);
	fd = cf_os->open(path, flags | O_CLOEXEC, 0);
	while (nr--)
		if (held[nr] >= 0)
			cf_os->close(held[nr]);
	return fd;
}

#define REFUSAL "handle %u fd %d: reopen with flags 0%o: %s"

/* Errors have a bound of lines: while too many files are open all may fail. */
static void log_refusal(const struct cf_handle *handle, int flags, int err,
			enum cf_log_level level)
{
	unsigned number = cf_handle_number(handle);

	if (level == CF_LOG_ERROR)
		cf_log_limited(CF_LOG_ERROR, REFUSAL, number, handle->fd, flags,
			       strerror(-err));
	else
		cf_log(level, REFUSAL, number, handle->fd, flags,
		       strerror(-err));
}

static int twin_flags(const struct cf_handle *handle)
{
	return (handle->open_flags ^ O_DIRECT) &
	       ~(O_CREAT | O_EXCL | O_TRUNC | O_NOFOLLOW | O_TMPFILE);
}

/* What an earlier handle of the file had; -1: nothing. */
static int kept_fd(const struct cf_handle *handle, int flags)
{
	const struct cf_twin_left left = {
		.fd = cf_handle_kept(handle, flags),
		.flags = flags,
		.dev = handle->dev,
		.ino = handle->ino,
	};

	return left.fd >= 0 && cf_kept_is_lost(&left) ? -1 : left.fd;
}

/*
 * Opens the same file once more with O_DIRECT flipped. By /proc unlinked and
 * renamed files are reached too. Not where the client has a write lease on its
 * descriptor: any open would break that, and wait for up to 45 s.
 */
static int reopen(const struct cf_handle *handle, enum cf_log_level level)
{
	int flags = twin_flags(handle);
	char path[40];
	int fd;

	/* to open another file may block (a pipe) or drop its record locks */
	if (!cf_twin_is(handle, handle->fd)) {
		cf_log(level, "handle %u fd %d: closed without deregister",
		       cf_handle_number(handle), handle->fd);
		return -EBADF;
	}
	fd = kept_fd(handle, flags);
	if (fd >= 0)
		return fd;
	snprintf(path, sizeof(path), CF_PROC_SELF "/fd/%d", handle->fd);
	fd = cf_os->get_lease(handle->fd) == F_WRLCK ?
		     -EBUSY :
		     open_beside_streams(path, flags);
	if (fd < 0) {
		log_refusal(handle, flags, fd, level);
		return fd;
	}
	if (cf_twin_is(handle, fd))
		return fd;
	cf_os->close(fd);
	return -EBADF;
}

/*
 * A lost twin's number now names a file of the client's: it stays open. Answers
 * the number, or -1.
 */
static int forget_lost_locked(struct cf_handle *handle)
{
	int fd = handle->twin;

	if (fd < 0 || !is_lost(handle, fd))
		return -1;
	handle->twin = -1;
	return fd;
}

static void tell_lost(const struct cf_handle *handle, int fd)
{
	if (fd >= 0)
		cf_log(CF_LOG_WARN,
		       "handle %u fd %d: descriptor %d of the library was "
		       "closed",
		       cf_handle_number(handle), handle->fd, fd);
}

/* The caller has set handle->opening. */
static int open_alone(struct cf_handle *handle, enum cf_log_level level)
{
	int fd = reopen(handle, level);

	pthread_mutex_lock(&reopen_lock);
	if (fd >= 0)
		handle->twin = fd;
	handle->opening = false;
	pthread_cond_broadcast(&opened);
	pthread_mutex_unlock(&reopen_lock);
	/* fd cannot be moved up: closing it there would drop locks, too */
	if (fd >= 0)
		cf_handle_took_fd(fd);
	return fd;
}

/* One thread at a time: to close a second copy would drop locks, too. */
static CF_APART int open_twin(struct cf_handle *handle, enum cf_log_level level)
{
	int fd, lost;

	pthread_mutex_lock(&reopen_lock);
	while (handle->opening)
		pthread_cond_wait(&opened, &reopen_lock);
	lost = forget_lost_locked(handle);
	fd = handle->twin;
	handle->opening = fd < 0;
	pthread_mutex_unlock(&reopen_lock);
	tell_lost(handle, lost);
	return fd < 0 ? open_alone(handle, level) : fd;
}

static int fd_for(struct cf_handle *handle, enum cf_via via, bool look,
		  enum cf_log_level level)
{
	enum cf_via own =
		handle->open_flags & O_DIRECT ? CF_VIA_DIRECT : CF_VIA_CACHE;
	int fd;

	if (own == via)
		return atomic_load_explicit(&handle->lost,
					    memory_order_relaxed) ?
			       -EBADF :
			       handle->fd;
	fd = atomic_load_explicit(&handle->twin, memory_order_acquire);
	return fd < 0 || (look && is_lost(handle, fd)) ?
		       open_twin(handle, level) :
		       fd;
}

int cf_twin_fd(struct cf_handle *handle, enum cf_via via, bool look)
{
	return fd_for(handle, via, look, CF_LOG_ERROR);
}

bool cf_twin_ready(struct cf_handle *handle, enum cf_via via, bool look)
{
	int fd;

	if (atomic_load_explicit(&handle->no_twin, memory_order_relaxed))
		return false;
	fd = fd_for(handle, via, look, CF_LOG_INFO);
	if (fd >= 0 || cf_os_is_short(fd))
		return fd >= 0;
	atomic_store_explicit(&handle->no_twin, true, memory_order_relaxed);
	if (via == CF_VIA_DIRECT)
		atomic_store_explicit(&handle->dio_refused, true,
				      memory_order_relaxed);
	return false;
}

struct cf_twin_left cf_twin_take(struct cf_handle *handle)
{
	struct cf_twin_left left = {
		.fd = handle->twin,
		.flags = twin_flags(handle),
		.client = handle->fd,
		.dev = handle->dev,
		.ino = handle->ino,
	};

	handle->twin = -1;
	return left;
}

/* A fork waits for no open; what one was about to keep, the child lacks. */
void cf_twins_fork_child(void)
{
	pthread_mutex_init(&reopen_lock, NULL);
	pthread_cond_init(&opened, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * file - which descriptor carries which bytes.
 *
 * A handle keeps, opened lazily, a twin of the client's descriptor: buffered
 * where the client's is O_DIRECT, and the other way round where O_DIRECT is
 * forced. The twin is closed at deregister and no sooner: closing any
 * descriptor of an inode drops the process's POSIX locks on it.
 *
 * A file system may refuse O_DIRECT for reasons of its own (EINVAL); that is
 * found out once per handle and its requests use the page cache from then on.
 */
#include "core/file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "core/log.h"
#include "seam/os.h"

/* relaxed: a request that is under way may keep the old bound */
static _Atomic size_t max_part = 16 << 20;

/* held across the open; innermost but for the log's */
static pthread_mutex_t reopen_lock = PTHREAD_MUTEX_INITIALIZER;

/* One system call's worth of a transfer. */
struct part {
	int fd;
	bool direct;
	size_t size;
};

void cf_file_limit(size_t size)
{
	atomic_store_explicit(&max_part, size, memory_order_relaxed);
}

bool cf_file_is_direct(struct cf_handle *handle)
{
	return handle->direct && !atomic_load_explicit(&handle->dio_refused,
						       memory_order_relaxed);
}

struct cf_file_way cf_file_way(struct cf_handle *handle, uintptr_t buf,
			       size_t size, off_t off)
{
	size_t mask = handle->dio_align - 1;
	size_t misaligned = (size_t)off & mask;
	size_t head = misaligned ? mask + 1 - misaligned : 0;
	size_t direct = size > head ? (size - head) & ~mask : 0;

	if (handle->fs_ops)
		return (struct cf_file_way){ 0, CF_CACHED_USER_FS };
	if (!handle->direct)
		return (struct cf_file_way){ 0, CF_CACHED_OPENED };
	if (!cf_file_is_direct(handle))
		return (struct cf_file_way){ 0, CF_CACHED_REFUSED };
	if ((buf & mask) != misaligned)
		return (struct cf_file_way){ 0, CF_CACHED_SKEWED };
	return (struct cf_file_way){ direct, direct == size ? CF_CACHED_NONE :
							      CF_CACHED_EDGES };
}

ssize_t cf_file_cached(struct cf_handle *handle, size_t size, off_t off)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t first = (size_t)off & ~(page - 1);
	size_t end = ((size_t)off + size + page - 1) & ~(page - 1);
	struct cf_cachestat stat;
	int err;

	if (handle->fs_ops)
		return -ENOSYS;
	if (first == end)
		return 0;
	err = cf_os->cachestat(handle->fd, (off_t)first, end - first, &stat);
	return err ? err : (ssize_t)(stat.cached * page);
}

static bool same_file(const struct cf_handle *handle, int fd)
{
	struct stat st;

	return cf_os->fstat(fd, &st) == 0 && st.st_ino == handle->ino &&
	       st.st_dev == handle->dev;
}

/*
 * Opens the same file once more with O_DIRECT flipped. /proc/self/fd reaches
 * unlinked and renamed files too.
 */
static int reopen(const struct cf_handle *handle)
{
	int flags = (handle->open_flags ^ O_DIRECT) &
		    ~(O_CREAT | O_EXCL | O_TRUNC | O_NOFOLLOW | O_TMPFILE);
	char path[40];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", handle->fd);
	fd = cf_os->open(path, flags | O_CLOEXEC, 0);
	if (fd < 0) {
		cf_log(CF_LOG_ERROR,
		       "handle %u fd %d: reopen with flags 0%o: %s",
		       cf_handle_number(handle), handle->fd, flags,
		       strerror(-fd));
		return fd;
	}
	if (same_file(handle, fd))
		return fd;
	cf_os->close(fd);
	return -EBADF;
}

/* One at a time: a copy opened in vain, and closed, would drop locks too. */
static int open_twin(struct cf_handle *handle)
{
	int fd;

	pthread_mutex_lock(&reopen_lock);
	fd = handle->twin;
	if (fd < 0)
		fd = reopen(handle);
	if (fd >= 0)
		handle->twin = fd;
	pthread_mutex_unlock(&reopen_lock);
	return fd;
}

void cf_files_fork_prepare(void)
{
	pthread_mutex_lock(&reopen_lock);
}

void cf_files_fork_release(void)
{
	pthread_mutex_unlock(&reopen_lock);
}

static int twin_fd(struct cf_handle *handle)
{
	int fd = atomic_load_explicit(&handle->twin, memory_order_acquire);

	return fd >= 0 ? fd : open_twin(handle);
}

/* The descriptor with, or without, O_DIRECT; or -errno. */
static int fd_for(struct cf_handle *handle, bool direct)
{
	bool own = handle->open_flags & O_DIRECT;

	return own == direct ? handle->fd : twin_fd(handle);
}

/*
 * The longest run from the front that one descriptor can carry: up to the
 * next block boundary buffered, then whole blocks direct, then the rest.
 */
static int next_part(struct cf_handle *handle, const void *buf, size_t size,
		     off_t off, struct part *part)
{
	size_t mask = handle->dio_align - 1;
	size_t misaligned = (size_t)off & mask;

	part->size = atomic_load_explicit(&max_part, memory_order_relaxed);
	if (part->size > size)
		part->size = size;
	part->direct = false;
	if (cf_file_is_direct(handle) &&
	    ((uintptr_t)buf & mask) == misaligned) {
		if (misaligned) {
			size_t head = mask + 1 - misaligned;

			if (part->size > head)
				part->size = head;
		} else if (part->size > mask) {
			part->size &= ~mask;
			part->direct = true;
		}
	}
	part->fd = fd_for(handle, part->direct);
	return part->fd < 0 ? part->fd : 0;
}

static ssize_t user_fs_io(struct cf_handle *handle, bool write, char *buf,
			  size_t size, off_t off)
{
	const CUfileFSOps_t *ops = handle->fs_ops;
	ssize_t n = -ENOSYS;

	if (write && ops->write)
		n = ops->write(handle->fs_handle, buf, size, off, NULL);
	else if (!write && ops->read)
		n = ops->read(handle->fs_handle, buf, size, off, NULL);
	/* A callback owes a negative errno or a count it was asked for. */
	return n < -4095 || n > (ssize_t)size ? -EIO : n;
}

/* One call; *refused says that O_DIRECT was, and that trying again may do. */
static ssize_t one_call(struct cf_handle *handle, bool write, char *buf,
			size_t size, off_t off, bool *refused)
{
	struct part part;
	ssize_t n;
	int err;

	*refused = false;
	if (handle->fs_ops)
		return user_fs_io(handle, write, buf, size, off);
	err = next_part(handle, buf, size, off, &part);
	*refused = err == -EINVAL && part.direct;
	if (err)
		return err;
	n = write ? cf_os->pwrite(part.fd, buf, part.size, off) :
		    cf_os->pread(part.fd, buf, part.size, off);
	*refused = n == -EINVAL && part.direct;
	return n;
}

static ssize_t move(struct cf_handle *handle, bool write, char *buf,
		    size_t size, off_t off)
{
	size_t done = 0;
	bool refused;

	while (done < size) {
		ssize_t n = one_call(handle, write, buf + done, size - done,
				     off + (off_t)done, &refused);

		if (n == -EINTR)
			continue;
		if (refused && !atomic_exchange(&handle->dio_refused, true))
			cf_log(CF_LOG_WARN,
			       "handle %u off %lld len %zu: O_DIRECT "
			       "refused (EINVAL), using the page cache",
			       cf_handle_number(handle),
			       (long long)off + (long long)done, size - done);
		if (refused)
			continue;
		if (n < 0)
			return done ? (ssize_t)done : n;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	/* A write of nothing is no success, or its caller would try for ever.
	 */
	return write && !done && size ? -EIO : (ssize_t)done;
}

ssize_t cf_file_read(struct cf_handle *handle, void *buf, size_t size,
		     off_t off)
{
	return move(handle, false, buf, size, off);
}

ssize_t cf_file_write(struct cf_handle *handle, const void *buf, size_t size,
		      off_t off)
{
	return move(handle, true, (char *)(uintptr_t)buf, size, off);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * old_kernel - one of 2021, as far as the library and the test can tell: no
 * cachestat (Linux 6.5), no O_DIRECT on tmpfs (6.6), no alignment of direct IO
 * in statx (6.1), no io_uring that waits for calls of its thread (5.19), no
 * pages that are populated by madvise (5.14).
 */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define CACHESTAT 451
#define DIOALIGN 0x2000u
#define COOP_TASKRUN (1u << 8)
#define POPULATE_READ 22
#define POPULATE_WRITE 23

/* Seen from outside, or the linker of a sanitizer does not find them. */
#pragma GCC visibility push(default)
int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
int __wrap___open64_2(const char *path, int flags);
int __real_statx(int dir, const char *path, int flags, unsigned mask,
		 struct statx *stx);
int __wrap_statx(int dir, const char *path, int flags, unsigned mask,
		 struct statx *stx);
int __real_madvise(void *mem, size_t size, int advice);
int __wrap_madvise(void *mem, size_t size, int advice);
long __real_syscall(long nr, ...);
long __wrap_syscall(long nr, ...);
int __real_io_uring_queue_init_params(unsigned entries, struct io_uring *ring,
				      struct io_uring_params *params);
int __wrap_io_uring_queue_init_params(unsigned entries, struct io_uring *ring,
				      struct io_uring_params *params);
#pragma GCC visibility pop

static int refuse(int err)
{
	errno = err;
	return -1;
}

int __wrap_open64(const char *path, int flags, ...)
{
	struct statfs fs;
	mode_t mode;
	va_list ap;
	int fd;

	va_start(ap, flags);
	mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(ap, mode_t) : 0;
	va_end(ap);
	fd = __real_open64(path, flags, mode);
	if (fd < 0 || !(flags & O_DIRECT) || fstatfs(fd, &fs) ||
	    fs.f_type != TMPFS_MAGIC)
		return fd;
	close(fd);
	return refuse(EINVAL);
}

/* What open64 is with _FORTIFY_SOURCE, where its flags are not constant. */
int __wrap___open64_2(const char *path, int flags)
{
	return __wrap_open64(path, flags);
}

int __wrap_statx(int dir, const char *path, int flags, unsigned mask,
		 struct statx *stx)
{
	return __real_statx(dir, path, flags, mask & ~DIOALIGN, stx);
}

int __wrap_madvise(void *mem, size_t size, int advice)
{
	return advice == POPULATE_READ || advice == POPULATE_WRITE ?
		       refuse(EINVAL) :
		       __real_madvise(mem, size, advice);
}

long __wrap_syscall(long nr, ...)
{
	long a[6];
	va_list ap;

	if (nr == CACHESTAT)
		return refuse(ENOSYS);
	va_start(ap, nr);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	return __real_syscall(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int __wrap_io_uring_queue_init_params(unsigned entries, struct io_uring *ring,
				      struct io_uring_params *params)
{
	return params->flags & COOP_TASKRUN ?
		       -EINVAL :
		       __real_io_uring_queue_init_params(entries, ring, params);
}

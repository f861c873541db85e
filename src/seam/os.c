// SPDX-License-Identifier: Apache-2.0
/*
 * os - the real table: thin shims that turn errno into -errno once. Those of
 * memory are in os_memory.c.
 */
#include "seam/os.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>
#include "seam/os_limit.h"
#include "seam/os_memory.h"

/* Linux 6.5; one number on every architecture that numbers calls alike. */
#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif

static int os_open(const char *path, int flags, mode_t mode)
{
	int fd = open(path, flags, mode);

	return fd < 0 ? -errno : fd;
}

static int os_close(int fd)
{
	return close(fd) < 0 ? -errno : 0;
}

static ssize_t os_read(int fd, void *buf, size_t size)
{
	ssize_t n = read(fd, buf, size);

	return n < 0 ? -errno : n;
}

/*
 * Not by libc's door: what the kernel looks at may be in use by others, who
 * know it (core/alias_test.c), and race detectors watch that door.
 */
static ssize_t os_write(int fd, const void *buf, size_t size)
{
	ssize_t n;

	if (cf_limit_stops_write(fd))
		return -EFBIG;
	n = syscall(SYS_write, fd, buf, size);
	return n < 0 ? -errno : n;
}

static ssize_t os_pread(int fd, void *buf, size_t size, off_t off)
{
	ssize_t n = pread(fd, buf, size, off);

	return n < 0 ? -errno : n;
}

static ssize_t os_pwrite(int fd, const void *buf, size_t size, off_t off)
{
	ssize_t n;

	if (cf_limit_stops_pwrite(fd, size, off))
		return -EFBIG;
	n = pwrite(fd, buf, size, off);
	if (n < 0)
		return -errno;
	if ((size_t)n < size)
		cf_limit_suspect();
	return n;
}

static int os_fstat(int fd, struct stat *st)
{
	return fstat(fd, st) < 0 ? -errno : 0;
}

static int os_statx(int fd, unsigned mask, struct statx *stx)
{
	return statx(fd, "", AT_EMPTY_PATH, mask, stx) < 0 ? -errno : 0;
}

static int os_file_type(int fd)
{
	struct statx stx;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE,
		  &stx) < 0)
		return -errno;
	return stx.stx_mode & S_IFMT;
}

static int os_file_id(int fd, dev_t *dev, ino_t *ino)
{
	struct statx stx;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &stx) <
	    0)
		return -errno;
	*dev = makedev(stx.stx_dev_major, stx.stx_dev_minor);
	*ino = stx.stx_ino;
	return 0;
}

static int os_fstatfs(int fd, struct statfs *fs)
{
	return fstatfs(fd, fs) < 0 ? -errno : 0;
}

static int os_get_flags(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 ? -errno : flags;
}

static int os_get_lease(int fd)
{
	int lease = fcntl(fd, F_GETLEASE);

	return lease < 0 ? -errno : lease;
}

/* To an owner of its own, a file's descriptor, all locks are another's. */
static int os_record_locks(int fd)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	if (fcntl(fd, F_OFD_GETLK, &lock) < 0)
		return -errno;
	if (lock.l_type == F_UNLCK)
		return CF_LOCKS_NONE;
	return lock.l_pid == getpid() ? CF_LOCKS_OWN : CF_LOCKS_OTHER;
}

static int os_ioctl(int fd, unsigned long request, void *arg)
{
	int answer = ioctl(fd, request, arg);

	return answer < 0 ? -errno : answer;
}

static int os_cachestat(int fd, off_t off, size_t len, struct cf_cachestat *out)
{
	uint64_t range[2] = { (uint64_t)off, len };

	return syscall(SYS_cachestat, fd, range, out, 0) < 0 ? -errno : 0;
}

static int os_read_ahead(int fd, off_t off, size_t size)
{
	return -posix_fadvise(fd, off, (off_t)size, POSIX_FADV_WILLNEED);
}

static int os_dup_above(int fd, int lowest)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, lowest);

	return copy < 0 ? -errno : copy;
}

/* glibc clears the part of the mask that the kernel does not write. */
static int os_get_affinity(pid_t tid, unsigned long *mask, size_t size)
{
	return sched_getaffinity(tid, size, (cpu_set_t *)mask) < 0 ? -errno : 0;
}

static int os_set_timer_slack(unsigned long ns)
{
	return prctl(PR_SET_TIMERSLACK, ns) < 0 ? -errno : 0;
}

static int os_set_affinity(const unsigned long *mask, size_t size)
{
	return sched_setaffinity(0, size, (const cpu_set_t *)mask) < 0 ?
		       -errno :
		       0;
}

static ssize_t os_get_dents(int fd, void *buf, size_t size)
{
	ssize_t n = getdents64(fd, buf, size);

	return n < 0 ? -errno : n;
}

static ssize_t os_read_link(const char *path, char *buf, size_t size)
{
	ssize_t n = readlink(path, buf, size);

	return n < 0 ? -errno : n;
}

static int os_pipe(int fds[2])
{
	return pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0 ? -errno : 0;
}

static ssize_t os_splice_pages(int pipe, const void *mem, size_t size)
{
	struct iovec iov = { (void *)(uintptr_t)mem, size };
	ssize_t n = vmsplice(pipe, &iov, 1, SPLICE_F_NONBLOCK);

	return n < 0 ? -errno : n;
}

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif

/* Linux before 6.3 does not know the last flag. */
static int os_memfd(const char *name)
{
	unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd = memfd_create(name, flags | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(name, flags);
	return fd < 0 ? -errno : fd;
}

static int os_set_mode(int fd, mode_t mode)
{
	return fchmod(fd, mode) < 0 ? -errno : 0;
}

static int os_resize(int fd, size_t size)
{
	if (cf_limit_forbids(size))
		return -EFBIG;
	return ftruncate(fd, (off_t)size) < 0 ? -errno : 0;
}

static int os_seal(int fd, int seals)
{
	return fcntl(fd, F_ADD_SEALS, seals) < 0 ? -errno : 0;
}

static int os_clock_gettime(clockid_t clock, struct timespec *ts)
{
	return clock_gettime(clock, ts) < 0 ? -errno : 0;
}

static const char *os_getenv(const char *name)
{
	return secure_getenv(name);
}

static char **os_environment(void)
{
	return getauxval(AT_SECURE) ? NULL : environ;
}

const struct cf_os cf_os_real = {
	.open = os_open,
	.close = os_close,
	.read = os_read,
	.write = os_write,
	.pread = os_pread,
	.pwrite = os_pwrite,
	.fstat = os_fstat,
	.statx = os_statx,
	.file_type = os_file_type,
	.file_id = os_file_id,
	.fstatfs = os_fstatfs,
	.get_flags = os_get_flags,
	.get_lease = os_get_lease,
	.record_locks = os_record_locks,
	.ioctl = os_ioctl,
	.cachestat = os_cachestat,
	.read_ahead = os_read_ahead,
	.dup_above = os_dup_above,
	.fd_table = cf_os_fd_table,
	.map_anon = cf_os_map_anon,
	.map_shared = cf_os_map_shared,
	.map_file = cf_os_map_file,
	.map_to_write = cf_os_map_to_write,
	.copy_to = cf_os_copy_to,
	.copy_out = cf_os_copy_out,
	.map_nothing = cf_os_map_nothing,
	.forbid = cf_os_forbid,
	.madvise = cf_os_madvise,
	.unmap = cf_os_unmap,
	.prefer_node = cf_os_prefer_node,
	.memory_policy = cf_os_memory_policy,
	.get_affinity = os_get_affinity,
	.set_affinity = os_set_affinity,
	.set_timer_slack = os_set_timer_slack,
	.get_dents = os_get_dents,
	.read_link = os_read_link,
	.pipe = os_pipe,
	.splice_pages = os_splice_pages,
	.memfd = os_memfd,
	.set_mode = os_set_mode,
	.resize = os_resize,
	.seal = os_seal,
	.map_file_at = cf_os_map_file_at,
	.map_anon_at = cf_os_map_anon_at,
	.clock_gettime = os_clock_gettime,
	.getenv = os_getenv,
	.environment = os_environment,
};

const struct cf_os *cf_os = &cf_os_real;

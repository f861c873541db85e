// SPDX-License-Identifier: Apache-2.0
/* Preloaded: no file system makes a file without a name, as NFS and FAT. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((visibility("default"))) int open(const char *path, int flags,
						...)
{
	mode_t mode = 0;
	va_list rest;

	va_start(rest, flags);
	if (flags & O_CREAT)
		mode = va_arg(rest, mode_t);
	va_end(rest);
	if ((flags & O_TMPFILE) != O_TMPFILE)
		return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
	errno = EOPNOTSUPP;
	return -1;
}

// SPDX-License-Identifier: Apache-2.0
/* os_limit - see os_limit.h. */
#include "seam/os_limit.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define ASKS_FROM ((size_t)64 << 10) /* bytes; smaller writes would feel it */

/* Relaxed: there may be a limit. False: the last look found none. */
static _Atomic bool suspected = true;

static rlim_t file_limit(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) ? RLIM_INFINITY : limit.rlim_cur;
}

bool cf_limit_forbids(size_t size)
{
	return size > file_limit();
}

bool cf_limit_stops_write(int fd)
{
	rlim_t limit = file_limit();
	struct stat st;
	off_t at;

	if (limit == RLIM_INFINITY)
		return false;
	/* a pipe has no position */
	at = lseek(fd, 0, SEEK_CUR);
	if (at < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	if (fcntl(fd, F_GETFL) & O_APPEND)
		at = st.st_size;
	return (rlim_t)at >= limit;
}

void cf_limit_suspect(void)
{
	atomic_store_explicit(&suspected, true, memory_order_relaxed);
}

/* Only regular files grow, so the limit is for them alone. */
bool cf_limit_stops_pwrite(int fd, size_t size, off_t off)
{
	struct stat st;
	rlim_t limit;

	if (size < ASKS_FROM &&
	    !atomic_load_explicit(&suspected, memory_order_relaxed))
		return false;
	limit = file_limit();
	atomic_store_explicit(&suspected, limit != RLIM_INFINITY,
			      memory_order_relaxed);
	return limit != RLIM_INFINITY && off >= 0 && (rlim_t)off >= limit &&
	       fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

// SPDX-License-Identifier: Apache-2.0
/* file_around - see file_around.h. */
#include "core/file_around.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "core/twin.h"
#include "seam/frames.h"
#include "seam/os.h"

#define MOST ((size_t)1 << 20) /* bytes of a call */
#define MEMORY_ALIGN ((size_t)4096)

bool cf_file_must_go_around(struct cf_handle *handle)
{
	return handle->open_flags & O_DIRECT &&
	       !cf_twin_ready(handle, CF_VIA_CACHE, false);
}

static size_t round_up(size_t size, size_t align)
{
	return (size + align - 1) & ~(align - 1);
}

/* The memory may be gone or not writable, which a read answers with EFAULT. */
static ssize_t copy_out(char *buf, const char *from, size_t size)
{
	ssize_t n = cf_os->copy_out(buf, from, size);

	if (n != -ENOSYS && n != -EPERM)
		return n;
	memcpy(buf, from, size);
	return (ssize_t)size;
}

CF_APART ssize_t cf_file_read_around(struct cf_handle *handle, char *buf,
				     size_t size, off_t off)
{
	size_t align = cf_handle_block(handle);
	size_t before = (size_t)off & (align - 1);
	size_t whole = round_up(before + (size < MOST ? size : MOST), align);
	size_t first = (size_t)off - before;
	int fd = cf_twin_fd(handle, CF_VIA_DIRECT, false);
	ssize_t n = -EBADF;
	void *mem;

	if (first + whole > LLONG_MAX)
		return 0;
	if (posix_memalign(&mem, align > MEMORY_ALIGN ? align : MEMORY_ALIGN,
			   whole))
		return -ENOMEM;
	if (fd >= 0 && cf_twin_is(handle, fd))
		n = cf_os->pread(fd, mem, whole, (off_t)first);
	if (n > 0) {
		n = n > (ssize_t)before ? n - (ssize_t)before : 0;
		n = n < (ssize_t)size ? n : (ssize_t)size;
		if (n)
			n = copy_out(buf, (char *)mem + before, (size_t)n);
	}
	free(mem);
	return n;
}

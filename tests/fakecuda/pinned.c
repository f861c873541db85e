// SPDX-License-Identifier: Apache-2.0
/*
 * pinned - bytes of pages that were registered read-only.
 *
 * A GPU reads the pages that were pinned, whatever the file has in their place
 * by now. We cannot hold on to a page, but we can see that it went: a file
 * page that leaves the page cache leaves the page table, and nobody touches a
 * registered mapping. For a page that went, the copy gets poison, which is
 * as wrong as the old bytes a GPU would read, and easier to see.
 *
 * Bytes are read by a system call: the page may go at any moment, and a load
 * would then be a SIGBUS, which a GPU does not get.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "internal.h"

#define POISON 0xdb
#define PRESENT (1ull << 63)

static bool is_there(int fd, uintptr_t addr)
{
	uint64_t word;

	return fd < 0 ||
	       pread(fd, &word, sizeof(word),
		     (off_t)(addr / FC_PAGE * sizeof(word))) != sizeof(word) ||
	       word & PRESENT;
}

static void copy_page(int fd, char *to, const char *from, size_t n)
{
	struct iovec local = { to, n };
	struct iovec remote = { (void *)(uintptr_t)from, n };

	if (!is_there(fd, (uintptr_t)from) ||
	    process_vm_readv(getpid(), &local, 1, &remote, 1, 0) != (ssize_t)n)
		memset(to, POISON, n);
}

void fc_pinned_copy(char *to, const char *from, size_t size)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

	while (size) {
		size_t n = FC_PAGE - (uintptr_t)from % FC_PAGE;

		if (n > size)
			n = size;
		copy_page(fd, to, from, n);
		to += n;
		from += n;
		size -= n;
	}
	if (fd >= 0)
		close(fd);
}

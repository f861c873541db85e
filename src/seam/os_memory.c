// SPDX-License-Identifier: Apache-2.0
/* os_memory - mappings and their nodes, for os.c's table. */
#include "seam/os_memory.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include "seam/os_limit.h"

void *cf_os_map_anon(size_t size)
{
	void *mem = mmap(NULL, size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return mem == MAP_FAILED ? NULL : mem;
}

int cf_os_map_shared(int fd, size_t size, void **mem)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		return -errno;
	*mem = at;
	return 0;
}

int cf_os_map_file(int fd, off_t off, size_t size, void **mem)
{
	*mem = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, off);
	return *mem == MAP_FAILED ? -errno : 0;
}

int cf_os_map_to_write(int fd, off_t off, size_t size, void **mem)
{
	/* by a mapping bytes would get where a write may not put them */
	if (cf_limit_forbids((size_t)off + size))
		return -EFBIG;
	*mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, off);
	return *mem == MAP_FAILED ? -errno : 0;
}

int cf_os_map_nothing(void *mem, size_t size)
{
	void *at = mmap(mem, size, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
			-1, 0);

	return at == MAP_FAILED ? -errno : 0;
}

int cf_os_map_file_at(void *mem, size_t size, int fd)
{
	void *got = mmap(mem, size, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_FIXED, fd, 0);

	return got == MAP_FAILED ? -errno : 0;
}

int cf_os_map_anon_at(void *mem, size_t size)
{
	void *got = mmap(mem, size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	return got == MAP_FAILED ? -errno : 0;
}

int cf_os_unmap(void *mem, size_t size)
{
	return munmap(mem, size) < 0 ? -errno : 0;
}

int cf_os_forbid(void *mem, size_t size)
{
	return mprotect(mem, size, PROT_NONE) < 0 ? -errno : 0;
}

int cf_os_madvise(void *mem, size_t size, int advice)
{
	return madvise(mem, size, advice) < 0 ? -errno : 0;
}

/* Any living thread names the process; its first thread may have ended. */
ssize_t cf_os_copy_to(void *mem, const void *buf, size_t size)
{
	const struct iovec from = { (void *)(uintptr_t)buf, size };
	const struct iovec to = { mem, size };
	ssize_t n = process_vm_writev(gettid(), &from, 1, &to, 1, 0);

	return n < 0 ? -errno : n;
}

/* Device memory that is mapped has no pages that a writev would find. */
ssize_t cf_os_copy_out(void *mem, const void *buf, size_t size)
{
	const struct iovec from = { (void *)(uintptr_t)buf, size };
	const struct iovec to = { mem, size };
	ssize_t n = process_vm_readv(gettid(), &to, 1, &from, 1, 0);

	return n < 0 ? -errno : n;
}

#define MAX_NODES 1024 /* the most a Linux kernel can be built for */
#define WORD_BITS (8 * sizeof(long))

/* The kernel subtracts one from the number of bits that it is told. */
int cf_os_prefer_node(void *mem, size_t size, unsigned node)
{
	unsigned long nodes[MAX_NODES / WORD_BITS] = { 0 };

	if (node >= MAX_NODES)
		return -EINVAL;
	nodes[node / WORD_BITS] = 1ul << node % WORD_BITS;
	return syscall(SYS_mbind, mem, size, MPOL_PREFERRED, nodes,
		       MAX_NODES + 1, 0) < 0 ?
		       -errno :
		       0;
}

int cf_os_memory_policy(void)
{
	int policy;

	return syscall(SYS_get_mempolicy, &policy, NULL, 0, NULL, 0) < 0 ?
		       -errno :
		       policy;
}

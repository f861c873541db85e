// SPDX-License-Identifier: Apache-2.0
/* pinned - maps memory, places it on a node and pins it; and the reverse. */
#include "core/pinned.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include "core/log.h"
#include "seam/os.h"

#define LARGE_PAGE ((size_t)2 << 20)

/*
 * Called before the pages are touched. A process that has a policy of its own
 * (numactl) keeps it; where a container forbids the call, pages lie anywhere.
 */
static void place(const struct cf_pinned *p, int node)
{
	int err;

	if (node < 0)
		return;
	err = cf_os->memory_policy();
	if (!err)
		err = cf_os->prefer_node(p->mem, p->size, (unsigned)node);
	if (err)
		cf_log(CF_LOG_DEBUG, "slots size %zu, not put on node %d: %s",
		       p->size, node,
		       err < 0 ? strerror(-err) :
				 "the process has a memory policy");
}

static CUresult pin_here(const struct cf_cuda *cuda, struct cf_pinned *p)
{
	return cuda->mem_host_register(p->mem, p->size,
				       CF_CU_MEMHOSTREGISTER_PORTABLE);
}

uint64_t cf_pinned_gpu_addr(const void *mem)
{
	const struct cf_cuda *cuda = cf_cuda_loaded();
	int attribute = CF_CU_POINTER_DEVICE_POINTER;
	CUdeviceptr addr = 0;
	void *data = &addr;

	if (!cuda || cuda->pointer_get_attributes(
			     1, &attribute, &data,
			     (CUdeviceptr)(uintptr_t)mem) != CF_CU_SUCCESS)
		return 0;
	return addr;
}

/*
 * Pinned if the driver will; a copy from unpinned memory is slow, not wrong.
 *
 * A child does not get it: who writes to a page that it shares with a child is
 * given another one, and the GPU would have the old. Linux has copied pinned
 * pages for the child since 5.12; before, and in gVisor, nothing else helps.
 */
static void pin(struct cf_pinned *p, CUcontext ctx)
{
	const struct cf_cuda *cuda = cf_cuda_loaded();
	CUresult res = CF_CU_SUCCESS;
	CUcontext popped;

	if (!cuda)
		return;
	(void)cf_os->madvise(p->map, p->map_size, MADV_DONTFORK);
	if (ctx)
		res = cuda->ctx_push(ctx);
	if (res == CF_CU_SUCCESS) {
		res = pin_here(cuda, p);
		if (res == CF_CU_SUCCESS)
			p->gpu_addr = cf_pinned_gpu_addr(p->mem);
		if (ctx)
			cuda->ctx_pop(&popped);
	}
	p->pinned = res == CF_CU_SUCCESS;
	if (!p->pinned) {
		(void)cf_os->madvise(p->map, p->map_size, MADV_DOFORK);
		cf_log(CF_LOG_WARN,
		       "slot pin size %zu: %s (%d), going on "
		       "unpinned",
		       p->size, cf_cuda_error_name((int)res), (int)res);
	}
}

/*
 * The rest of the mapping, around mem, is never touched: it takes no memory.
 * Some of it lies behind mem, so that no two of them touch: copies of
 * neighbours are joined (path/copies.c), and the driver refuses one that goes
 * on in what was pinned by another call.
 */
static bool map(struct cf_pinned *p, size_t size)
{
	bool large = size >= LARGE_PAGE;
	size_t boundary = large ? LARGE_PAGE : 1;

	*p = (struct cf_pinned){ .size = size, .map_size = size + boundary };
	p->map = cf_os->map_anon(p->map_size);
	if (!p->map)
		return false;
	p->mem = p->map + (-(uintptr_t)p->map & (boundary - 1));
	if (large)
		(void)cf_os->madvise(p->mem, size, MADV_HUGEPAGE);
	return true;
}

int cf_pinned_make(struct cf_pinned *p, size_t size, CUcontext ctx, int node)
{
	if (!map(p, size))
		return -ENOMEM;
	place(p, node);
	pin(p, ctx);
	return 0;
}

static bool unpin_it(const struct cf_pinned *p, bool unpin)
{
	const struct cf_cuda *cuda = cf_cuda_loaded();

	return !p->pinned ||
	       (unpin && cuda &&
		cuda->mem_host_unregister(p->mem) == CF_CU_SUCCESS);
}

/*
 * Memory that the driver may still hold stays mapped: else the driver would
 * take whatever is mapped there next for pinned, and copy from the old pages.
 */
void cf_pinned_end(struct cf_pinned *p, bool unpin)
{
	if (unpin_it(p, unpin))
		cf_os->unmap(p->map, p->map_size);
}

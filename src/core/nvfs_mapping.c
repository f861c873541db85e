// SPDX-License-Identifier: Apache-2.0
/* nvfs_mapping - makes and ends mappings, by calls of nvidia-fs. */
#include "core/nvfs_mapping.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "core/log.h"
#include "core/log_tag.h"
#include "core/nvfs.h"
#include "core/topology.h"
#include "seam/os.h"

_Static_assert(CF_NVFS_SHADOW % CF_NVFS_PAGE == 0 &&
		       CF_NVFS_SHADOW <= CF_NVFS_MAX_SHADOW,
	       "what the driver takes");

/* As the driver wants it: whole blocks below a GPU page, whole pages above. */
static size_t shadow_size(const struct cf_buffer_range *reg)
{
	size_t size = reg->end - reg->base;

	/* a small shadow has the range at the same offset in its page */
	if (size < CF_NVFS_PAGE)
		size += reg->base % CF_NVFS_PAGE;
	if (size >= CF_NVFS_SHADOW)
		return CF_NVFS_SHADOW;
	if (size <= CF_NVFS_PAGE)
		return (size + CF_NVFS_BLOCK - 1) & ~(CF_NVFS_BLOCK - 1);
	return (size + CF_NVFS_PAGE - 1) & ~(CF_NVFS_PAGE - 1);
}

void cf_nvfs_unmap(struct cf_nvfs_mapping *m)
{
	int err = 0;

	/* the shadow first: until then the driver may write the fence page */
	if (m->shadow)
		err = cf_os->unmap(m->shadow, m->shadow_size);
	if (err)
		cf_log(CF_LOG_ERROR, "nvidia-fs: unmap " CF_TAG " len %zu: %s",
		       cf_tag(m->shadow), m->shadow_size, strerror(-err));
	if (m->fence && !err)
		cf_os->unmap(m->fence, CF_NVFS_BLOCK);
	free(m);
}

/* The fence page is pinned: a fork must not give us a copy of it. */
static int map_pages(struct cf_nvfs_mapping *m)
{
	int err = cf_os->map_shared(m->fd, m->shadow_size, &m->shadow);

	if (err)
		return err;
	m->fence = cf_os->map_anon(CF_NVFS_BLOCK);
	if (!m->fence)
		return -ENOMEM;
	return cf_os->madvise(m->fence, CF_NVFS_BLOCK, MADV_DONTFORK);
}

/* Any failure is EPERM; the true error is where a READ has its result. */
static int map_range(const struct cf_nvfs_mapping *m,
		     const struct cf_buffer_range *reg, int ordinal)
{
	union cf_nvfs_arg arg = { .room = { 0 } };
	int err;

	arg.map = (struct cf_nvfs_map_arg){
		.size = (int64_t)(reg->end - reg->base),
		.pci = cf_gpu_pci(ordinal),
		.shadow = (uintptr_t)m->shadow,
		.gpu = reg->base,
		.fence = (uintptr_t)m->fence,
		.blocks = (uint32_t)(m->shadow_size / CF_NVFS_BLOCK),
	};
	err = cf_os->ioctl(m->fd, CF_NVFS_MAP, &arg);
	if (err == -EPERM && arg.io.result < 0 && arg.io.result >= -4095)
		err = (int)arg.io.result;
	return err < 0 ? err : 0;
}

int cf_nvfs_map(const struct cf_buffer_range *reg, int ordinal,
		struct cf_nvfs_mapping **out)
{
	struct cf_nvfs_mapping *m = calloc(1, sizeof(*m));
	int err;

	if (!m)
		return -ENOMEM;
	m->fd = cf_nvfs_node();
	m->base = reg->base;
	m->shadow_size = shadow_size(reg);
	err = m->fd < 0 ? -ENODEV : map_pages(m);
	if (!err)
		err = map_range(m, reg, ordinal);
	if (err) {
		cf_log_limited(CF_LOG_WARN,
			       "nvidia-fs: map GPU %d " CF_TAG " len %zu: %s",
			       ordinal, cf_tag(reg->base),
			       (size_t)(reg->end - reg->base), strerror(-err));
		cf_nvfs_unmap(m);
		return err;
	}
	*out = m;
	return 0;
}

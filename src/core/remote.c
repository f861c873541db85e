// SPDX-License-Identifier: Apache-2.0
/* remote - see remote.h. */
#include "core/remote.h"

#include <inttypes.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/dma_buf.h"
#include "core/log.h"
#include "core/nic.h"
#include "core/pci.h"
#include "core/topology.h"
#include "seam/os.h"

#define UNKNOWN_ORDER 0x7000

/* The range at one NIC. */
struct way {
	const struct cf_nic *nic;
	struct cf_ibv_mr *mr;
	unsigned order; /* of cf_pci_order; smaller is nearer to the GPU */
};

/* Constant once made, but for refs and turn. */
struct cf_remote {
	_Atomic unsigned refs;
	_Atomic unsigned turn; /* relaxed: NICs of one rank take turns */
	struct cf_nics *nics;  /* a reference */
	unsigned nr;
	struct way way[CF_MAX_NICS];
};

/* ------------------------------------------------------------ registering */

/* Peers will use the key of this region, and the GPU's own addresses. */
static struct cf_ibv_mr *by_dma_buf(const struct cf_nics *nics,
				    const struct cf_nic *nic,
				    const struct cf_memory *mem, size_t size,
				    int access)
{
	struct cf_dma_buf buf;
	struct cf_ibv_mr *mr;

	if (!nics->dma_buf || !cf_dma_buf_can(mem->ordinal) ||
	    cf_dma_buf_export(mem, size, false, &buf))
		return NULL;
	mr = nics->verbs->reg_dmabuf_mr(nic->pd, mem->addr - buf.first, size,
					mem->addr, buf.fd, access);
	cf_os->close(buf.fd);
	return mr;
}

/* By nvidia-peermem: the kernel asks the GPU's driver about the address. */
static struct cf_ibv_mr *by_address(const struct cf_nics *nics,
				    const struct cf_nic *nic,
				    const struct cf_memory *mem, size_t size,
				    int access)
{
	if (!nics->virtual_address)
		return NULL;
	return nics->verbs->reg_mr(nic->pd, (void *)mem->addr, size, access);
}

static void add_way(struct cf_remote *remote, const struct cf_nic *nic,
		    const struct cf_memory *mem, size_t size, int access)
{
	struct cf_ibv_mr *mr = by_dma_buf(remote->nics, nic, mem, size, access);

	if (!mr)
		mr = by_address(remote->nics, nic, mem, size, access);
	cf_log(mr ? CF_LOG_DEBUG : CF_LOG_WARN,
	       "rdma: %zu bytes of gpu %d %s by %s", size, mem->ordinal,
	       mr ? "are reached" : "could not be registered",
	       nic->place.device);
	if (mr)
		remote->way[remote->nr++] = (struct way){ nic, mr, 0 };
}

/* ---------------------------------------------------------------- ranking */

static const struct cf_pci *find_gpu(const struct cf_pci *list, unsigned nr,
				     int ordinal)
{
	uint64_t place = cf_gpu_pci(ordinal);
	char address[24];

	snprintf(address, sizeof(address), "%04x:%02x:%02x.%x",
		 (unsigned)(place >> 32), (unsigned)(place >> 8) & 0xff,
		 (unsigned)(place >> 3) & 0x1f, (unsigned)place & 7);
	for (unsigned i = 0; i < nr; i++)
		if (!strcmp(list[i].address, address))
			return &list[i];
	return NULL;
}

static unsigned order_of(const struct cf_pci *list, unsigned nr,
			 const struct cf_pci *gpu, const char *device)
{
	for (unsigned i = 0; gpu && i < nr; i++)
		if (list[i].kind == CF_PCI_NETWORK &&
		    !strcmp(list[i].name, device))
			return cf_pci_order(gpu, &list[i]);
	return UNKNOWN_ORDER;
}

static void rank(struct cf_remote *remote, int ordinal)
{
	const struct cf_pci *gpu;
	struct cf_pci *list;
	unsigned nr;

	(void)cf_pci_list(&list, &nr); /* of nothing, after an error */
	gpu = find_gpu(list, nr, ordinal);
	for (unsigned i = 0; i < remote->nr; i++)
		remote->way[i].order = order_of(
			list, nr, gpu, remote->way[i].nic->place.device);
	free(list);
}

/* --------------------------------------------------------------- its life */

static bool can_be_remote(const struct cf_memory *mem)
{
	return mem->kind == CF_MEMORY_DEVICE &&
	       cf_memory_can_be_told_apart(mem);
}

struct cf_remote *cf_remote_make(const struct cf_memory *mem, size_t size,
				 bool relaxed)
{
	struct cf_nics *nics = can_be_remote(mem) ? cf_nics_get() : NULL;
	struct cf_remote *remote = nics ? calloc(1, sizeof(*remote)) : NULL;
	int access;

	if (!remote) {
		cf_nics_put(nics);
		return NULL;
	}
	remote->refs = 1;
	remote->nics = nics;
	access = nics->access | (relaxed ? CF_IBV_ACCESS_RELAXED_ORDERING : 0);
	for (unsigned i = 0; i < nics->nr; i++)
		add_way(remote, &nics->nic[i], mem, size, access);
	if (!remote->nr) {
		cf_remote_put(remote);
		return NULL;
	}
	rank(remote, mem->ordinal);
	return remote;
}

void cf_remote_get(struct cf_remote *remote)
{
	atomic_fetch_add_explicit(&remote->refs, 1, memory_order_relaxed);
}

void cf_remote_put(struct cf_remote *remote)
{
	if (!remote || atomic_fetch_sub_explicit(&remote->refs, 1,
						 memory_order_acq_rel) > 1)
		return;
	for (unsigned i = 0; i < remote->nr && !remote->nics->foreign; i++)
		remote->nics->verbs->dereg_mr(remote->way[i].mr);
	cf_nics_put(remote->nics);
	free(remote);
}

/* -------------------------------------------------------------- describing */

static bool is_host(const struct cf_nic_hosts *hosts, uint32_t ip)
{
	for (int i = 0; i < hosts->nr; i++)
		if (hosts->ip[i] == ip)
			return ip;
	return hosts->nr < 0;
}

bool cf_remote_serves(const struct cf_remote *remote,
		      const struct cf_nic_hosts *hosts)
{
	for (unsigned i = 0; i < remote->nr; i++)
		if (is_host(hosts, remote->way[i].nic->place.ip))
			return true;
	return false;
}

/* The bytes of one call of a file system. */
struct range {
	uintptr_t addr;
	size_t size;
	off_t off;
};

static int priority_of(const struct cf_handle *handle,
		       const struct range *range, uint32_t ip)
{
	const struct sockaddr_in address = { .sin_family = AF_INET,
					     .sin_addr.s_addr = ip };
	int priority;

	if (!handle->fs_ops->getRDMADevicePriority || !ip)
		return -1;
	priority = handle->fs_ops->getRDMADevicePriority(
		handle->fs_handle, (char *)range->addr, range->size, range->off,
		(const sockaddr_t *)(const void *)&address);
	return priority < -1 ? -1 : priority;
}

/* The best NICs, all equally good, in the order of the list. */
static unsigned best_of(const struct cf_remote *remote,
			const struct cf_handle *handle,
			const struct range *range, unsigned best[CF_MAX_NICS])
{
	unsigned nr = 0, order = 0;
	int priority = -1;

	for (unsigned i = 0; i < remote->nr; i++) {
		const struct way *way = &remote->way[i];
		uint32_t ip = way->nic->place.ip;
		int own;

		if (!is_host(&handle->hosts, ip))
			continue;
		own = priority_of(handle, range, ip);
		if (nr &&
		    (own < priority || (own == priority && way->order > order)))
			continue;
		if (own != priority || way->order != order)
			nr = 0;
		priority = own;
		order = way->order;
		best[nr++] = i;
	}
	return nr;
}

static void write_text(const struct way *way, const struct range *range,
		       struct cf_remote_info *out)
{
	int n = snprintf(out->text, sizeof(out->text),
			 "%016" PRIxPTR ":%08zx:%08" PRIx32 ":%04x:%06x:1:",
			 range->addr, range->size, way->mr->rkey, way->nic->lid,
			 way->nic->target->qp_num & 0xffffff);

	for (int i = 0; i < 16; i++)
		n += snprintf(out->text + n, sizeof(out->text) - (size_t)n,
			      "%02x", way->nic->place.gid[i]);
	out->info = (cufileRDMAInfo_t){ .version = 1,
					.desc_len = n,
					.desc_str = out->text };
}

bool cf_remote_describe(struct cf_remote *remote,
			const struct cf_handle *handle, uintptr_t addr,
			size_t size, off_t file_off, struct cf_remote_info *out)
{
	const struct range range = { addr, size, file_off };
	unsigned best[CF_MAX_NICS], turn = 0;
	unsigned nr = best_of(remote, handle, &range, best);

	if (!nr)
		return false;
	if (nr > 1)
		turn = atomic_fetch_add_explicit(&remote->turn, 1,
						 memory_order_relaxed);
	write_text(&remote->way[best[turn % nr]], &range, out);
	return true;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * rdma - a user-space file system's server reads and writes registered GPU
 * memory itself, by NICs that we have opened to it.
 *
 * DESIGN  The file system's callback gets the GPU's address, which the CPU may
 * not touch, and the description by which its server reaches that memory
 * (core/remote.h). A file system that has no use for it answers ENOTSUP, and
 * requests of that handle use host memory from then on.
 */
#include <errno.h>
#include <stdatomic.h>
#include "core/arrival.h"
#include "core/config.h"
#include "core/nic.h"
#include "core/remote.h"
#include "path/path.h"

static enum cf_why check_memory(const struct cf_piece *piece)
{
	if (piece->mem.kind == CF_MEMORY_HOST)
		return CF_WHY_NOT_DEVICE;
	if (!piece->registered)
		return CF_WHY_NOT_REGISTERED;
	if (!piece->remote)
		return CF_WHY_RDMA_MEMORY;
	if (!cf_remote_serves(piece->remote, &piece->handle->hosts))
		return CF_WHY_RDMA_HOSTS;
	return piece->op == CF_READ && cf_arrival_of(piece->mem.ordinal) ==
					       CF_ARRIVAL_LOOSE ?
		       CF_WHY_LOOSE :
		       CF_WHY_YES;
}

static enum cf_why rdma_can(const struct cf_piece *piece,
			    const struct cf_policy *policy)
{
	struct cf_handle *handle = piece->handle;

	if (!handle || !handle->fs_ops)
		return CF_WHY_NO_USER_FS;
	if (!cf_nics_wanted())
		return CF_WHY_RDMA_OFF;
	if (atomic_load_explicit(&handle->rdma_refused, memory_order_relaxed))
		return CF_WHY_RDMA_REFUSED;
	if (piece->op == CF_WRITE &&
	    !cf_config_bool(policy->config, CF_CFG_GDS_RDMA_WRITE_SUPPORT))
		return CF_WHY_RDMA_WRITES;
	return check_memory(piece);
}

static struct cf_file_way rdma_way(const struct cf_piece *piece)
{
	return (struct cf_file_way){ .cached = CF_CACHED_USER_FS };
}

/* False: the piece ends in this part, and the feed knows where. */
static bool carry(const struct cf_piece *piece, const struct cf_part *part,
		  struct cf_feed *feed)
{
	struct cf_transfer t = {
		.handle = piece->handle,
		.write = piece->op == CF_WRITE,
		.via = piece->via,
		.remote = piece->remote,
		.buf = (char *)piece->mem.addr + part->at,
		.size = part->size,
		.off = piece->file_off + (off_t)part->at,
	};
	ssize_t n = cf_file_move(&t);
	bool refused = t.code == -ENOTSUP; /* also after some bytes */

	if (n == (ssize_t)part->size)
		return true;
	if (refused)
		atomic_store_explicit(&piece->handle->rdma_refused, true,
				      memory_order_relaxed);
	cf_feed_short(feed, part->at + (n > 0 ? (size_t)n : 0),
		      refused ? CF_PATH_GIVES_UP : t.code);
	return false;
}

static void rdma_run(const struct cf_piece *piece, struct cf_feed *feed,
		     struct cf_crew *crew)
{
	int err = cf_path_settle_write(piece);
	struct cf_part part;

	if (err) {
		cf_feed_short(feed, 0, err);
		return;
	}
	while (cf_feed_next(feed, &part) && carry(piece, &part, feed))
		continue;
	cf_path_arrive(piece, feed);
}

const struct cf_path_ops cf_path_rdma = {
	.name = "rdma",
	.can = rdma_can,
	.way = rdma_way,
	.settle = cf_path_settle_write,
	.run = rdma_run,
};

// SPDX-License-Identifier: Apache-2.0
/* host - file to and from memory the CPU can address, with no copy of ours. */
#include "core/file.h"
#include "path/path.h"

static enum cf_why host_can(const struct cf_piece *piece,
			    const struct cf_policy *policy)
{
	if (piece->mem.kind != CF_MEMORY_HOST)
		return CF_WHY_NOT_HOST;
	return policy->allow_system_memory ? CF_WHY_YES :
					     CF_WHY_NO_SYSTEM_MEMORY;
}

static ssize_t host_run(const struct cf_piece *piece)
{
	void *mem = (void *)piece->mem.addr;

	return piece->op == CF_READ ?
		       cf_file_read(piece->handle, mem, piece->size,
				    piece->file_off) :
		       cf_file_write(piece->handle, mem, piece->size,
				     piece->file_off);
}

const struct cf_path_ops cf_path_host = {
	.name = "host",
	.can = host_can,
	.run = host_run,
};

// SPDX-License-Identifier: Apache-2.0
/* reach - see reach.h. */
#include "core/reach.h"

#include "core/buffer.h"
#include "core/nic.h"
#include "core/remote.h"

static bool is_unreached(const struct cf_memory *mem)
{
	struct cf_buffer_range range;

	return cf_buffer_unreached(mem->addr, &range) &&
	       range.base == mem->addr;
}

void cf_reach(const struct cf_memory *mem, size_t size, bool relaxed)
{
	struct cf_remote *remote;

	if (!cf_nics_wanted() || !is_unreached(mem))
		return;
	remote = cf_remote_make(mem, size, relaxed);
	if (remote)
		cf_buffer_set_remote(mem, remote);
}

void cf_reach_all(void)
{
	struct cf_buffer_range range;
	struct cf_memory mem;
	uintptr_t from = 0;

	while (cf_buffer_unreached(from, &range)) {
		cf_memory_facts(range.base, &mem);
		if (mem.buffer_id == range.buffer_id)
			cf_reach(&mem, range.end - range.base, range.relaxed);
		from = range.base + 1;
	}
}

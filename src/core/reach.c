// SPDX-License-Identifier: Apache-2.0
/* reach - see reach.h. */
#include "core/reach.h"

#include "core/buffer.h"
#include "core/nic.h"
#include "core/remote.h"

static void reach(const struct cf_memory *mem,
		  const struct cf_buffer_range *reg)
{
	struct cf_remote *remote =
		reg->buffer_id == mem->buffer_id ?
			cf_remote_make(mem, reg->end - reg->base,
				       reg->relaxed) :
			NULL;

	if (remote)
		cf_buffer_set_remote(reg, remote);
}

void cf_reach(const struct cf_memory *mem)
{
	struct cf_buffer_range reg;

	if (cf_nics_wanted() && cf_buffer_unreached(mem->addr, &reg) &&
	    reg.base == mem->addr)
		reach(mem, &reg);
}

void cf_reach_all(void)
{
	struct cf_buffer_range reg;
	struct cf_memory mem;
	uintptr_t from = 0;

	while (cf_buffer_unreached(from, &reg)) {
		cf_memory_facts(reg.base, &mem);
		reach(&mem, &reg);
		from = reg.base + 1;
	}
}

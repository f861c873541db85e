// SPDX-License-Identifier: Apache-2.0
/* stray - plain memory for one lease. */
#include "core/stray.h"

#include <stdlib.h>
#include "seam/os.h"

struct cf_slot *cf_stray_new(size_t size)
{
	struct cf_slot *slot = calloc(1, sizeof(*slot));

	if (!slot)
		return NULL;
	slot->mem = cf_os->map_anon(size);
	if (!slot->mem) {
		free(slot);
		return NULL;
	}
	slot->size = size;
	slot->stray = true;
	return slot;
}

void cf_stray_free(struct cf_slot *slot)
{
	cf_os->unmap(slot->mem, slot->size);
	free(slot);
}

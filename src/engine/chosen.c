// SPDX-License-Identifier: Apache-2.0
/* chosen - see chosen.h. The numbers are plan's, their reasons too. */
#include "engine/chosen.h"

#include <inttypes.h>
#include <stdio.h>
#include "engine/plan_limits.h"

#define KIB 1024

/* False: the value acts as it stands. */
static bool find(const struct cf_config *config, enum cf_cfg id, uint64_t *n)
{
	struct cf_plan_limits limits = cf_plan_limits();

	switch (id) {
	case CF_CFG_MAX_IO_THREADS:
		*n = limits.workers;
		return true;
	case CF_CFG_MAX_REQUEST_PARALLELISM:
		*n = limits.carriers;
		return true;
	case CF_CFG_MIN_IO_THRESHOLD_SIZE_KB:
		*n = limits.split_from / KIB;
		return true;
	case CF_CFG_PER_BUFFER_CACHE_SIZE_KB:
		*n = cf_plan_slot_size(config) / KIB;
		return true;
	case CF_CFG_MAX_DEVICE_CACHE_SIZE_KB:
		*n = cf_plan_staging_bytes(config) / KIB;
		return true;
	default:
		return false;
	}
}

void cf_chosen_text(const struct cf_config *config, enum cf_cfg id, char *text,
		    size_t size)
{
	uint64_t n;

	if (find(config, id, &n) && n != cf_config_size(config, id))
		snprintf(text, size, "%" PRIu64, n);
	else
		text[0] = '\0';
}

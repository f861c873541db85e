// SPDX-License-Identifier: Apache-2.0
/*
 * config_staged - values that wait for the next open.
 *
 * The only part of the configuration that outlives a session, hence a static;
 * the session lock guards it.
 */
#include "core/config_internal.h"

static struct cf_config_staged the_staged;

struct cf_config_staged *cf_config_staged(void)
{
	return &the_staged;
}

int cf_staged_set_size(struct cf_config_staged *s, enum cf_cfg id,
		       uint64_t size)
{
	cf_value_set_number(&s->values[id], size, CF_CFG_FROM_STAGED);
	return 0;
}

int cf_staged_set_bool(struct cf_config_staged *s, enum cf_cfg id, bool on)
{
	return cf_staged_set_size(s, id, on);
}

int cf_staged_set_string(struct cf_config_staged *s, enum cf_cfg id,
			 const char *text)
{
	return cf_value_set_text(&s->values[id], text, CF_CFG_FROM_STAGED);
}

int cf_staged_set_sizes(struct cf_config_staged *s, enum cf_cfg id,
			const uint64_t *sizes, size_t nr)
{
	return cf_value_set_sizes(&s->values[id], sizes, nr,
				  CF_CFG_FROM_STAGED);
}

const struct cf_value *cf_staged_find(const struct cf_config_staged *s,
				      enum cf_cfg id)
{
	const struct cf_value *v = &s->values[id];

	return cf_value_source(v) == CF_CFG_FROM_STAGED ? v : NULL;
}

void cf_staged_clear(struct cf_config_staged *s)
{
	for (int id = 0; id < CF_CFG_NR; id++) {
		if (id != CF_CFG_GPU_BOUNCE_SLAB_SIZE_KB &&
		    id != CF_CFG_GPU_BOUNCE_SLAB_COUNT)
			cf_value_clear(&s->values[id]);
	}
}

void cf_staged_reset(struct cf_config_staged *s)
{
	for (int id = 0; id < CF_CFG_NR; id++)
		cf_value_clear(&s->values[id]);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * config_value - one value of any row's type, with its source.
 *
 * Text and lists are owned copies. number and source are atomic, since a
 * runtime setter may store them while other threads read; relaxed order is
 * enough, for nothing else is published through them.
 */
#ifndef CF_CORE_CONFIG_VALUE_H
#define CF_CORE_CONFIG_VALUE_H

#include <stdatomic.h>

#include "core/config_table.h"

/* Arrays of more slabs are refused. */
#define CF_CFG_MAX_SLABS 64

struct cf_value {
	_Atomic uint64_t number;
	_Atomic int source;
	uint64_t loaded; /* number as loaded, before any runtime setter */
	char *text;
	uint64_t *sizes;
	char **strings;
	size_t nr;
	size_t line; /* of the file, if the source is CF_CFG_FROM_JSON */
};

/* Setters answer 0 or -ENOMEM, which leaves the old value. */
void cf_value_set_number(struct cf_value *v, uint64_t number,
			 enum cf_cfg_source source);
int cf_value_set_text(struct cf_value *v, const char *text,
		      enum cf_cfg_source source);
int cf_value_set_sizes(struct cf_value *v, const uint64_t *sizes, size_t nr,
		       enum cf_cfg_source source);
/* Takes over the array and its strings (of malloc). */
void cf_value_take_strings(struct cf_value *v, char **strings, size_t nr,
			   enum cf_cfg_source source);
int cf_value_set_default(struct cf_value *v, const struct cf_config_row *row);
int cf_value_copy(struct cf_value *to, const struct cf_value *from,
		  enum cf_cfg_type type);
void cf_value_clear(struct cf_value *v);
void cf_strings_free(char **strings, size_t nr);

static inline uint64_t cf_value_number(const struct cf_value *v)
{
	return atomic_load_explicit(&v->number, memory_order_relaxed);
}

static inline enum cf_cfg_source cf_value_source(const struct cf_value *v)
{
	return (enum cf_cfg_source)atomic_load_explicit(&v->source,
							memory_order_relaxed);
}

/* The staged value, or NULL. */
const struct cf_value *cf_staged_find(const struct cf_config_staged *s,
				      enum cf_cfg id);
const struct cf_value *cf_config_value(const struct cf_config *c,
				       enum cf_cfg id);

/* Prints the value as it would stand in the file. */
void cf_value_print(const struct cf_value *v, const struct cf_config_row *row,
		    FILE *out);

#endif

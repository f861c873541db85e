// SPDX-License-Identifier: Apache-2.0
/*
 * config_table - the rows of config_rows.h as data, and what they allow.
 */
#ifndef CF_CORE_CONFIG_TABLE_H
#define CF_CORE_CONFIG_TABLE_H

#include "core/config.h"
#include "seam/hidden.h"

enum cf_cfg_type {
	CF_CFG_BOOL,
	CF_CFG_SIZE,
	CF_CFG_STRING,
	CF_CFG_SIZES,
	CF_CFG_STRINGS
};

enum cf_param_family {
	CF_PARAM_NONE,
	CF_PARAM_SIZET,
	CF_PARAM_BOOL,
	CF_PARAM_STRING
};

/* flags */
#define CF_CFG_NO_LIMIT 1u     /* CF_CFG_UNLIMITED is allowed, too */
#define CF_CFG_NO_MINMAX 2u    /* the bounds are not told to callers */
#define CF_CFG_EMPTY_COUNTS 4u /* an empty environment variable is a value */
#define CF_CFG_HEX 8u	       /* a text that is a number of 32 bits: "0x1f" */

struct cf_config_row {
	const char *key;
	enum cf_cfg_type type;
	uint64_t number; /* default of a bool and a size */
	uint64_t min;
	uint64_t max;
	uint64_t multiple;
	const char *text;    /* default of a string and of a list */
	const char *choices; /* NULL: any text */
	unsigned flags;
	const char *env; /* NULL: none */
	enum cf_param_family family;
	int param;
	const char *idle; /* why the value is not used; NULL: it is */
	const char *help;
};

extern CF_HIDDEN const struct cf_config_row cf_config_rows[CF_CFG_NR];

/* Both answer a row's id, or -1. */
int cf_config_by_key(const char *key);
int cf_config_by_param(enum cf_param_family family, int param);

bool cf_row_has_json_key(const struct cf_config_row *row);
bool cf_row_size_ok(const struct cf_config_row *row, uint64_t size);
/* text as the row spells it, perhaps in buf; NULL: not one of the choices. */
const char *cf_row_choice(const struct cf_config_row *row, const char *text,
			  char *buf, size_t buf_size);
/* Prints what the row allows: "an integer from 64 to 16384, a multiple of 4" */
void cf_row_expects(const struct cf_config_row *row, char *buf,
		    size_t buf_size);

#endif

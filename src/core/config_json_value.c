// SPDX-License-Identifier: Apache-2.0
/*
 * config_json_value - converts a value of a cufile.json for its row.
 */
#include "core/config_json_value.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *cf_json_plain_string(yyjson_val *val)
{
	const char *text = yyjson_get_str(val);

	return text && strlen(text) == yyjson_get_len(val) ? text : NULL;
}

static bool read_size(const struct cf_config_row *row, yyjson_val *val,
		      uint64_t *size)
{
	if (yyjson_is_uint(val))
		*size = yyjson_get_uint(val);
	else if (yyjson_is_sint(val) && yyjson_get_sint(val) == -1 &&
		 (row->flags & CF_CFG_NO_LIMIT))
		*size = CF_CFG_UNLIMITED;
	else
		return false;
	return cf_row_size_ok(row, *size);
}

static int apply_string(const struct cf_config_row *row, struct cf_value *v,
			yyjson_val *val)
{
	const char *text = cf_json_plain_string(val);
	char buf[32];

	if (text)
		text = cf_row_choice(row, text, buf, sizeof(buf));
	return text ? cf_value_set_text(v, text, CF_CFG_FROM_JSON) : -EINVAL;
}

static int apply_sizes(const struct cf_config_row *row, struct cf_value *v,
		       yyjson_val *val)
{
	uint64_t sizes[CF_CFG_MAX_SLABS];
	size_t nr = 0;
	yyjson_arr_iter it;

	if (!yyjson_is_arr(val) || yyjson_arr_size(val) > CF_CFG_MAX_SLABS)
		return -EINVAL;
	/* an empty list is allowed only if it is the default */
	if (!yyjson_arr_size(val) && row->text[0])
		return -EINVAL;
	it = yyjson_arr_iter_with(val);
	while ((val = yyjson_arr_iter_next(&it))) {
		if (!read_size(row, val, &sizes[nr++]))
			return -EINVAL;
	}
	return cf_value_set_sizes(v, sizes, nr, CF_CFG_FROM_JSON);
}

static int apply_strings(struct cf_value *v, yyjson_val *val)
{
	yyjson_arr_iter it;
	char **strings;
	size_t nr = 0;
	int err;

	if (!yyjson_is_arr(val))
		return -EINVAL;
	strings = calloc(yyjson_arr_size(val) + 1, sizeof(*strings));
	if (!strings)
		return -ENOMEM;
	it = yyjson_arr_iter_with(val);
	while ((val = yyjson_arr_iter_next(&it))) {
		const char *text = cf_json_plain_string(val);

		err = -EINVAL;
		if (!text)
			goto err_free;
		err = -ENOMEM;
		strings[nr] = strdup(text);
		if (!strings[nr])
			goto err_free;
		nr++;
	}
	cf_value_take_strings(v, strings, nr, CF_CFG_FROM_JSON);
	return 0;

err_free:
	cf_strings_free(strings, nr);
	return err;
}

int cf_json_apply_value(const struct cf_config_row *row, struct cf_value *v,
			yyjson_val *val)
{
	uint64_t size;

	switch (row->type) {
	case CF_CFG_BOOL:
		if (!yyjson_is_bool(val))
			return -EINVAL;
		cf_value_set_number(v, yyjson_get_bool(val), CF_CFG_FROM_JSON);
		return 0;
	case CF_CFG_SIZE:
		if (!read_size(row, val, &size))
			return -EINVAL;
		cf_value_set_number(v, size, CF_CFG_FROM_JSON);
		return 0;
	case CF_CFG_STRING:
		return apply_string(row, v, val);
	case CF_CFG_SIZES:
		return apply_sizes(row, v, val);
	case CF_CFG_STRINGS:
		return apply_strings(v, val);
	}
	return -EINVAL;
}

void cf_json_tell_value(yyjson_val *val, char *text, size_t size)
{
	if (yyjson_is_str(val))
		snprintf(text, size, "\"%.40s\"", yyjson_get_str(val));
	else if (yyjson_is_bool(val))
		snprintf(text, size, "%s",
			 yyjson_get_bool(val) ? "true" : "false");
	else if (yyjson_is_uint(val))
		snprintf(text, size, "%" PRIu64, yyjson_get_uint(val));
	else if (yyjson_is_sint(val))
		snprintf(text, size, "%" PRId64, yyjson_get_sint(val));
	else if (yyjson_is_real(val))
		snprintf(text, size, "%g", yyjson_get_real(val));
	else
		snprintf(text, size, "%s",
			 yyjson_is_arr(val) ? "this list" :
			 yyjson_is_obj(val) ? "this object" :
					      "null");
}

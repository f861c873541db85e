// SPDX-License-Identifier: Apache-2.0
/*
 * config_json_value - a value of a cufile.json, and the row that it is for.
 *
 * Pure but for the value that is set. Any thread.
 */
#ifndef CF_CORE_CONFIG_JSON_VALUE_H
#define CF_CORE_CONFIG_JSON_VALUE_H

#include <yyjson.h>

#include "core/config_value.h"

/* A string as C knows it, no NUL inside; NULL: it is none. */
const char *cf_json_plain_string(yyjson_val *val);

/* 0, -EINVAL (not for this row: *v is as it was) or -ENOMEM. */
int cf_json_apply_value(const struct cf_config_row *row, struct cf_value *v,
			yyjson_val *val);

/* A value as the file has it; the long ones are cut, or not told. */
void cf_json_tell_value(yyjson_val *val, char *text, size_t size);

#endif

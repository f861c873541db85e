// SPDX-License-Identifier: Apache-2.0
/*
 * config_json_value - converts a value of a cufile.json for its row.
 *
 * Changes nothing but *v. Any thread.
 */
#ifndef CF_CORE_CONFIG_JSON_VALUE_H
#define CF_CORE_CONFIG_JSON_VALUE_H

#include <yyjson.h>

#include "core/config_value.h"

/* The value's text; NULL: no string, or one with a NUL inside. */
const char *cf_json_plain_string(yyjson_val *val);

/* 0, -EINVAL (not for this row: *v is as it was) or -ENOMEM. */
int cf_json_apply_value(const struct cf_config_row *row, struct cf_value *v,
			yyjson_val *val);

/* Prints a value as the file has it; long ones are cut, or left out. */
void cf_json_tell_value(yyjson_val *val, char *text, size_t size);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * config_json_text - the text of a cufile.json, and notes on places in it.
 *
 * yyjson parses in place, so a key's string points into the buffer and shows
 * its offset; lines are counted in an untouched copy. For one thread.
 */
#ifndef CF_CORE_CONFIG_JSON_TEXT_H
#define CF_CORE_CONFIG_JSON_TEXT_H

#include <yyjson.h>

#include "core/config_internal.h"

struct cf_json_text {
	const char *file; /* its name */
	const char *buf;  /* parsed in place */
	const char *text; /* the copy */
	size_t len;
	/* the place counted last; keys come in the file's order */
	size_t known_offset, known_line, known_start;
};

struct cf_json_place {
	size_t line, column; /* from 1 */
};

struct cf_json_place cf_json_place_of(struct cf_json_text *json, size_t offset);

/* The place of a key's opening quote. */
struct cf_json_place cf_json_place_of_key(struct cf_json_text *json,
					  yyjson_val *key);

/* Notes "FILE:LINE:COLUMN: name: what", for the place of that key. */
void cf_json_note(struct cf_config *c, struct cf_json_text *json,
		  enum cf_log_level level, yyjson_val *key, const char *name,
		  const char *what);

#endif

// SPDX-License-Identifier: Apache-2.0
/* config_json_text - counts lines and columns. */
#include "core/config_json_text.h"

/* Counts on from the place of the last call, so a file is counted once. */
struct cf_json_place cf_json_place_of(struct cf_json_text *json, size_t offset)
{
	if (offset < json->known_offset)
		json->known_offset = json->known_line = json->known_start = 0;
	for (; json->known_offset < offset; json->known_offset++)
		if (json->text[json->known_offset] == '\n') {
			json->known_line++;
			json->known_start = json->known_offset + 1;
		}
	return (struct cf_json_place){
		.line = json->known_line + 1,
		.column = offset - json->known_start + 1,
	};
}

struct cf_json_place cf_json_place_of_key(struct cf_json_text *json,
					  yyjson_val *key)
{
	size_t quote = (size_t)(yyjson_get_str(key) - json->buf) - 1;

	return cf_json_place_of(json, quote);
}

void cf_json_note(struct cf_config *c, struct cf_json_text *json,
		  enum cf_log_level level, yyjson_val *key, const char *name,
		  const char *what)
{
	struct cf_json_place at;

	if (cf_config_notes_full(c))
		return;
	at = cf_json_place_of_key(json, key);
	cf_config_note(c, level, "%s:%zu:%zu: %s: %s", json->file, at.line,
		       at.column, name, what);
}

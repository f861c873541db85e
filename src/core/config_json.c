// SPDX-License-Identifier: Apache-2.0
/*
 * config_json - applies the text of a cufile.json to the rows.
 *
 * Positions: the reader parses in place, so a key's string points into the
 * buffer and its offset is known; lines are counted in an untouched copy.
 * The file may be written by anybody: nothing in it makes the load fail
 * unless it is not JSON at all.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#include "core/config_internal.h"
#include "core/config_near.h"

_Static_assert(CF_JSON_PADDING >= YYJSON_PADDING_SIZE,
	       "the reader needs its padding");

#define NAME_SIZE 128

struct json {
	struct cf_config *c;
	const char *file;
	const char *buf;  /* parsed in place */
	const char *text; /* as it was written */
	size_t len;
	bool seen[CF_CFG_NR];
	/* a place that is known: keys come in the file's order */
	size_t known_offset, known_line, known_start;
};

struct where {
	size_t line, column; /* from 1 */
};

/* Old spellings (contract 4.2): a section, and a key that has moved. */
static const struct {
	const char *old, *now;
} aliases[] = {
	{ "blacklist", "denylist" },
	{ "profile.io_batchsize", "properties.io_batchsize" },
};

/* Goes on from the place asked for last, so that a file is counted once. */
static struct where where_is(struct json *json, size_t offset)
{
	if (offset < json->known_offset)
		json->known_offset = json->known_line = json->known_start = 0;
	for (; json->known_offset < offset; json->known_offset++)
		if (json->text[json->known_offset] == '\n') {
			json->known_line++;
			json->known_start = json->known_offset + 1;
		}
	return (struct where){ .line = json->known_line + 1,
			       .column = offset - json->known_start + 1 };
}

/* The opening quote of a key. */
static struct where key_at(struct json *json, yyjson_val *key)
{
	return where_is(json, (size_t)(yyjson_get_str(key) - json->buf) - 1);
}

static void note(struct json *json, enum cf_log_level level, yyjson_val *key,
		 const char *name, const char *what)
{
	struct where at;

	if (json->c->nr_notes == CF_CFG_MAX_NOTES)
		return;
	at = key_at(json, key);
	cf_config_note(json->c, level, "%s:%zu:%zu: %s: %s", json->file,
		       at.line, at.column, name, what);
}

/* A string as C knows it: no NUL inside. */
static const char *plain_string(yyjson_val *val)
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

/* The apply functions answer 0, -EINVAL (not for this row) or -ENOMEM. */

static int apply_string(const struct cf_config_row *row, struct cf_value *v,
			yyjson_val *val)
{
	const char *text = plain_string(val);
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
	/* an empty list is a value only where it is the default */
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
		const char *text = plain_string(val);

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

static int apply_value(const struct cf_config_row *row, struct cf_value *v,
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

/* A value as the file has it; the long ones are cut, or not told. */
static void tell_value(yyjson_val *val, char *text, size_t size)
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

static int apply_row(struct json *json, enum cf_cfg id, yyjson_val *key,
		     yyjson_val *val)
{
	const struct cf_config_row *row = &cf_config_rows[id];
	char expects[160], told[64], what[256];
	int err;

	if (json->seen[id])
		note(json, CF_LOG_WARN, key, row->key,
		     "given twice, the last one counts");
	json->seen[id] = true;
	err = apply_value(row, &json->c->values[id], val);
	if (!err)
		json->c->values[id].line = key_at(json, key).line;
	if (err != -EINVAL)
		return err;
	cf_row_expects(row, expects, sizeof(expects));
	tell_value(val, told, sizeof(told));
	snprintf(what, sizeof(what), "%s ignored: expected %s", told, expects);
	note(json, CF_LOG_ERROR, key, row->key, what);
	return 0;
}

static bool is_section(const char *name)
{
	size_t len = strlen(name);

	for (int id = 0; id < CF_CFG_NR; id++) {
		const char *key = cf_config_rows[id].key;

		if (!strncmp(key, name, len) && key[len] == '.')
			return true;
	}
	return false;
}

static bool is_mount_table(const char *name)
{
	const char *last = strrchr(name, '.');

	return last && !strncmp(name, "fs.", 3) &&
	       !strcmp(last, ".mount_table");
}

static bool is_list_of_strings(yyjson_val *val)
{
	yyjson_arr_iter it = yyjson_arr_iter_with(val);

	if (!yyjson_is_arr(val))
		return false;
	while ((val = yyjson_arr_iter_next(&it)))
		if (!plain_string(val))
			return false;
	return true;
}

static void note_unknown(struct json *json, yyjson_val *key, const char *name)
{
	char what[NAME_SIZE + 64], near[NAME_SIZE];

	if (cf_config_near_key(name, near, sizeof(near)))
		snprintf(what, sizeof(what),
			 "unknown key, ignored; did you mean %s?", near);
	else
		snprintf(what, sizeof(what), "unknown key, ignored");
	note(json, CF_LOG_WARN, key, name, what);
}

/* {"rdma_dev_addr_list": [...]}, and nothing else. */
static void check_mount(struct json *json, const char *name, yyjson_val *mount,
			yyjson_val *val)
{
	yyjson_obj_iter it = yyjson_obj_iter_with(val);
	yyjson_val *key;

	if (!yyjson_is_obj(val))
		note(json, CF_LOG_ERROR, mount, name,
		     "ignored: expected an object");
	while ((key = yyjson_obj_iter_next(&it))) {
		if (!yyjson_equals_str(key, "rdma_dev_addr_list"))
			note(json, CF_LOG_WARN, key, name,
			     "unknown key, ignored");
		else if (!is_list_of_strings(yyjson_obj_iter_get_val(key)))
			note(json, CF_LOG_ERROR, key, name,
			     "ignored: expected a list of strings");
	}
}

/*
 * A NIC list for each mount. They belong to RDMA, by which the library itself
 * moves nothing, so their form is looked at and they are forgotten.
 */
static void check_mount_table(struct json *json, const char *name,
			      yyjson_val *table, yyjson_val *val)
{
	yyjson_obj_iter it = yyjson_obj_iter_with(val);
	yyjson_val *key;

	if (!yyjson_is_obj(val))
		note(json, CF_LOG_ERROR, table, name,
		     "ignored: expected an object");
	while ((key = yyjson_obj_iter_next(&it)))
		check_mount(json, name, key, yyjson_obj_iter_get_val(key));
}

/* False where no row can have that name. */
static bool make_name(char *name, const char *section, yyjson_val *key)
{
	const char *text = plain_string(key);
	int n;

	if (!text || strchr(text, '.'))
		return false;
	n = snprintf(name, NAME_SIZE, "%s%s%s", section, section[0] ? "." : "",
		     text);
	if (n < 0 || n >= NAME_SIZE)
		return false;
	for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++) {
		if (!strcmp(name, aliases[i].old))
			snprintf(name, NAME_SIZE, "%s", aliases[i].now);
	}
	return true;
}

static int apply_section(struct json *json, const char *section,
			 yyjson_val *obj);

static int apply_member(struct json *json, const char *section, yyjson_val *obj,
			yyjson_val *key, yyjson_val *val)
{
	char name[NAME_SIZE];
	int id;

	if (!make_name(name, section, key)) {
		note(json, CF_LOG_WARN, key, section[0] ? section : "top level",
		     "unknown key, ignored");
		return 0;
	}
	id = cf_config_by_key(name);
	/* a key without a dot is a variable's name, no key of the file */
	if (id >= 0 && cf_row_has_json_key(&cf_config_rows[id]))
		return apply_row(json, (enum cf_cfg)id, key, val);
	if (is_section(name)) {
		if (yyjson_obj_getn(obj, yyjson_get_str(key),
				    yyjson_get_len(key)) != val)
			note(json, CF_LOG_WARN, key, name,
			     "given twice, the last one counts");
		if (yyjson_is_obj(val))
			return apply_section(json, name, val);
		note(json, CF_LOG_ERROR, key, name,
		     "ignored: expected an object");
		return 0;
	}
	if (is_mount_table(name))
		check_mount_table(json, name, key, val);
	else
		note_unknown(json, key, name);
	return 0;
}

/* As deep as the rows' keys are, no deeper. */
static int apply_section(struct json *json, const char *section,
			 yyjson_val *obj)
{
	yyjson_obj_iter it = yyjson_obj_iter_with(obj);
	yyjson_val *key;

	while ((key = yyjson_obj_iter_next(&it))) {
		int err = apply_member(json, section, obj, key,
				       yyjson_obj_iter_get_val(key));

		if (err)
			return err;
	}
	return 0;
}

static int apply_root(struct json *json, yyjson_val *root)
{
	if (yyjson_is_obj(root))
		return apply_section(json, "", root);
	cf_config_note(json->c, CF_LOG_ERROR,
		       "%s:1:1: ignored: expected an object", json->file);
	return -EINVAL;
}

static int apply_text(struct json *json, char *buf)
{
	yyjson_read_err failure;
	yyjson_doc *doc = yyjson_read_opts(
		buf, json->len,
		YYJSON_READ_INSITU | YYJSON_READ_ALLOW_COMMENTS |
			YYJSON_READ_ALLOW_TRAILING_COMMAS,
		NULL, &failure);
	struct where at;
	int err;

	if (doc) {
		err = apply_root(json, yyjson_doc_get_root(doc));
		yyjson_doc_free(doc);
		return err;
	}
	if (failure.code == YYJSON_READ_ERROR_MEMORY_ALLOCATION)
		return -ENOMEM;
	at = where_is(json, failure.pos < json->len ? failure.pos : json->len);
	cf_config_note(json->c, CF_LOG_ERROR,
		       "%s:%zu:%zu: %s; the defaults are used", json->file,
		       at.line, at.column, failure.msg);
	return -EINVAL;
}

int cf_config_apply_json(struct cf_config *c, const char *file, char *buf,
			 size_t len)
{
	char *text = malloc(len + 1);
	struct json json = {
		.c = c, .file = file, .buf = buf, .text = text, .len = len
	};
	int err;

	if (!text)
		return -ENOMEM;
	memcpy(text, buf, len);
	memset(buf + len, 0, CF_JSON_PADDING);
	err = apply_text(&json, buf);
	free(text);
	return err;
}

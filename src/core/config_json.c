// SPDX-License-Identifier: Apache-2.0
/*
 * config_json - applies the text of a cufile.json to the rows.
 *
 * The file may be written by anybody: nothing in it makes the load fail unless
 * it is no JSON at all.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#include "core/config_internal.h"
#include "core/config_json_text.h"
#include "core/config_json_value.h"
#include "core/config_near.h"

_Static_assert(CF_JSON_PADDING >= YYJSON_PADDING_SIZE,
	       "the reader needs its padding");

#define NAME_SIZE 128

struct json {
	struct cf_config *c;
	struct cf_json_text text;
	bool seen[CF_CFG_NR];
};

/* Old spellings (contract 4.2): a section, and a key that has moved. */
static const struct {
	const char *old, *now;
} aliases[] = {
	{ "blacklist", "denylist" },
	{ "profile.io_batchsize", "properties.io_batchsize" },
};

static void note(struct json *json, enum cf_log_level level, yyjson_val *key,
		 const char *name, const char *what)
{
	cf_json_note(json->c, &json->text, level, key, name, what);
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
	err = cf_json_apply_value(row, &json->c->values[id], val);
	if (!err)
		json->c->values[id].line =
			cf_json_place_of_key(&json->text, key).line;
	if (err != -EINVAL)
		return err;
	cf_row_expects(row, expects, sizeof(expects));
	cf_json_tell_value(val, told, sizeof(told));
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
		if (!cf_json_plain_string(val))
			return false;
	return true;
}

static void note_unknown(struct json *json, yyjson_val *key, const char *name)
{
	char what[NAME_SIZE + 64], near[NAME_SIZE];

	/* searching for a similar key takes long */
	if (cf_config_notes_full(json->c))
		return;
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
 * A NIC list for each mount. The library itself moves nothing by RDMA, so only
 * the form of the lists is checked.
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

/* Fills name with "section.key". False: no row can have that name. */
static bool make_name(char *name, const char *section, yyjson_val *key)
{
	const char *text = cf_json_plain_string(key);
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
	/* a row's key without a dot names a variable, not a key of the file */
	if (id >= 0 && cf_row_has_json_key(&cf_config_rows[id]))
		return apply_row(json, (enum cf_cfg)id, key, val);
	if (is_section(name)) {
		/* goes through the object up to the key's first place */
		if (!cf_config_notes_full(json->c) &&
		    yyjson_obj_getn(obj, yyjson_get_str(key),
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

/* Recurses as deep as the rows' keys go. */
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
		       "%s:1:1: ignored: expected an object", json->text.file);
	return -EINVAL;
}

/* buf: the text, parsed in place. */
static int apply_text(struct json *json, char *buf)
{
	struct cf_json_text *text = &json->text;
	yyjson_read_err failure;
	yyjson_doc *doc = yyjson_read_opts(
		buf, text->len,
		YYJSON_READ_INSITU | YYJSON_READ_ALLOW_COMMENTS |
			YYJSON_READ_ALLOW_TRAILING_COMMAS,
		NULL, &failure);
	struct cf_json_place at;
	int err;

	if (doc) {
		err = apply_root(json, yyjson_doc_get_root(doc));
		yyjson_doc_free(doc);
		return err;
	}
	if (failure.code == YYJSON_READ_ERROR_MEMORY_ALLOCATION)
		return -ENOMEM;
	at = cf_json_place_of(text, failure.pos < text->len ? failure.pos :
							      text->len);
	cf_config_note(json->c, CF_LOG_ERROR,
		       "%s:%zu:%zu: %s; the defaults are used", text->file,
		       at.line, at.column, failure.msg);
	return -EINVAL;
}

int cf_config_apply_json(struct cf_config *c, const char *file, char *buf,
			 size_t len)
{
	char *copy = malloc(len + 1);
	struct json json = {
		.c = c,
		.text = { .file = file, .buf = buf, .text = copy, .len = len },
	};
	int err;

	if (!copy)
		return -ENOMEM;
	memcpy(copy, buf, len);
	memset(buf + len, 0, CF_JSON_PADDING);
	err = apply_text(&json, buf);
	free(copy);
	return err;
}

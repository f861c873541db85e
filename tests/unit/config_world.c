// SPDX-License-Identifier: Apache-2.0
/* config_world - see config_world.h. */
#include "config_world.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/config_value.h"

char cw_named_file[] = "/tmp/test_config_named_XXXXXX";
char cw_system_file[] = "/tmp/test_config_system_XXXXXX";
bool cw_system_file_exists;

#define MAX_ENV 8

static struct {
	const char *name;
	const char *value;
} fake_env[MAX_ENV];

void cw_set_env(const char *name, const char *value)
{
	for (size_t i = 0; i < MAX_ENV; i++) {
		if (fake_env[i].name && strcmp(fake_env[i].name, name))
			continue;
		fake_env[i].name = name;
		fake_env[i].value = value;
		return;
	}
	fail_msg("no room for %s", name);
}

void cw_clear_env(void)
{
	memset(fake_env, 0, sizeof(fake_env));
}

static const char *fake_getenv(const char *name)
{
	for (size_t i = 0; i < MAX_ENV; i++) {
		if (fake_env[i].name && !strcmp(fake_env[i].name, name))
			return fake_env[i].value;
	}
	return NULL;
}

/* What is set, and what belongs to somebody else. */
static char **fake_environment(void)
{
	static char text[MAX_ENV][256], home[] = "HOME=/root",
					odd[] = "CUFILE_";
	static char *list[MAX_ENV + 3];
	size_t n = 0;

	list[n++] = home;
	list[n++] = odd + sizeof(odd) - 1;
	for (size_t i = 0; i < MAX_ENV && fake_env[i].name; i++) {
		snprintf(text[i], sizeof(text[i]), "%s=%s", fake_env[i].name,
			 fake_env[i].value);
		list[n++] = text[i];
	}
	list[n] = NULL;
	return list;
}

static int fake_open(const char *path, int flags, mode_t mode)
{
	if (strcmp(path, CW_SYSTEM_FILE))
		return cf_os_real.open(path, flags, mode);
	return cw_system_file_exists ?
		       cf_os_real.open(cw_system_file, flags, mode) :
		       -ENOENT;
}

void cw_write_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

struct cf_config *cw_load(const struct cf_config_staged *staged)
{
	struct cf_config *c = cf_config_new();

	assert_non_null(c);
	assert_int_equal(cf_config_load(c, staged), 0);
	return c;
}

struct cf_config *cw_load_text(const char *text)
{
	cw_write_text(cw_named_file, text);
	cw_set_env("CUFILE_ENV_PATH_JSON", cw_named_file);
	return cw_load(NULL);
}

const char *cw_nest(const char *key, const char *value)
{
	static char text[1024];
	char copy[128];
	char *save = NULL;
	size_t n = 0;
	int depth = 0;

	snprintf(copy, sizeof(copy), "%s", key);
	for (char *part = strtok_r(copy, ".", &save); part;
	     part = strtok_r(NULL, ".", &save)) {
		n += (size_t)snprintf(text + n, sizeof(text) - n,
				      "{\"%s\":", part);
		depth++;
	}
	n += (size_t)snprintf(text + n, sizeof(text) - n, "%s", value);
	while (depth--)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "}");
	return text;
}

struct cf_config *cw_load_row(const struct cf_config_row *row,
			      const char *value)
{
	return cw_load_text(cw_nest(row->key, value));
}

const char *cw_printed(const struct cf_config *c, int id)
{
	static char text[4][512];
	static int turn;
	char *buf = text[turn++ % 4];
	FILE *out = fmemopen(buf, 512, "w");

	assert_non_null(out);
	cf_value_print(cf_config_value(c, (enum cf_cfg)id), &cf_config_rows[id],
		       out);
	fclose(out);
	return buf;
}

const char *cw_default_of(int id)
{
	struct cf_config *c = cf_config_new();
	const char *text = cw_printed(c, id);

	cf_config_free(c);
	return text;
}

void cw_assert_no_notes(const struct cf_config *c)
{
	if (cf_config_note_text(c, 0))
		fail_msg("unexpected note: %s", cf_config_note_text(c, 0));
}

void cw_assert_note(const struct cf_config *c, size_t index, const char *part)
{
	const char *text = cf_config_note_text(c, index);

	if (!text || !strstr(text, part))
		fail_msg("note %zu is \"%s\", not with \"%s\"", index,
			 text ? text : "-", part);
}

void cw_assert_refused(const struct cf_config_row *row, int id,
		       const char *value)
{
	struct cf_config *c = cw_load_row(row, value);

	cw_assert_row(c, id, cw_default_of(id), CF_CFG_FROM_DEFAULT);
	cw_assert_note(c, 0, row->key);
	cw_assert_note(c, 0, ":1:");
	cw_assert_note(c, 0, cw_named_file);
	assert_null(cf_config_note_text(c, 1));
	cf_config_free(c);
}

void cw_assert_taken(const struct cf_config_row *row, int id, const char *value)
{
	struct cf_config *c = cw_load_row(row, value);

	cw_assert_no_notes(c);
	cw_assert_row(c, id, value, CF_CFG_FROM_JSON);
	cf_config_free(c);
}

const char *cw_number_text(uint64_t number)
{
	static char text[4][32];
	static int turn;
	char *buf = text[turn++ % 4];

	snprintf(buf, 32, "%" PRIu64, number);
	return buf;
}

const char *cw_other_value(const struct cf_config_row *row)
{
	static char text[64];
	uint64_t low = (row->min + row->multiple - 1) /
		       (row->multiple ? row->multiple : 1) * row->multiple;

	switch (row->type) {
	case CF_CFG_BOOL:
		return row->number ? "false" : "true";
	case CF_CFG_SIZE:
		return cw_number_text(low == row->number ? low + row->multiple :
							   low);
	case CF_CFG_STRING:
		if (!row->choices)
			return row->flags & CF_CFG_HEX ? "\"0x12345\"" :
							 "\"something\"";
		/* the last choice is nowhere the default */
		snprintf(text, sizeof(text), "\"%s\"",
			 strrchr(row->choices, '|') + 1);
		return text;
	case CF_CFG_SIZES:
		return "[8, 16, 64]";
	case CF_CFG_STRINGS:
		return "[\"one\", \"two\"]";
	}
	return NULL;
}

const char *cw_bare(const char *value)
{
	static char text[64];
	size_t n = strcspn(value + 1, "\"");

	if (value[0] != '"')
		return value;
	memcpy(text, value + 1, n);
	text[n] = '\0';
	return text;
}

void cw_stage_other(int id)
{
	static const uint64_t sizes[] = { 12, 20, 32 };
	const struct cf_config_row *row = &cf_config_rows[id];
	struct cf_config_staged *s = cf_config_staged();
	const char *value = cw_bare(cw_other_value(row));

	if (row->type == CF_CFG_BOOL)
		cf_staged_set_bool(s, (enum cf_cfg)id, !row->number);
	else if (row->type == CF_CFG_SIZE)
		cf_staged_set_size(s, (enum cf_cfg)id,
				   strtoull(value, NULL, 10));
	else if (row->type == CF_CFG_STRING)
		cf_staged_set_string(s, (enum cf_cfg)id, value);
	else
		cf_staged_set_sizes(s, (enum cf_cfg)id, sizes, 3);
}

int cw_setup(void **state)
{
	static struct cf_os fake;

	(void)state;
	fake = cf_os_real;
	fake.getenv = fake_getenv;
	fake.environment = fake_environment;
	fake.open = fake_open;
	cf_os = &fake;
	cw_clear_env();
	cw_system_file_exists = false;
	return 0;
}

int cw_teardown(void **state)
{
	(void)state;
	cf_staged_reset(cf_config_staged());
	cf_os = &cf_os_real;
	return 0;
}

int cw_begin(void **state)
{
	(void)state;
	close(mkstemp(cw_named_file));
	close(mkstemp(cw_system_file));
	return 0;
}

int cw_end(void **state)
{
	(void)state;
	unlink(cw_named_file);
	unlink(cw_system_file);
	return 0;
}

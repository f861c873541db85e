// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_config - a configuration file and variables of any bytes.
 *
 * The input: the file's text; then, each behind a byte 0xff, variables: a
 * byte that says which, and the value. However they look, loading answers 0
 * or 5002, every value is one that its row allows, loading again gives the
 * same, and what is printed "as the file would have it" reads as the same.
 */
#include <cufile.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/config_internal.h"
#include "seam/os.h"
#include "target.h"

#define FD 12345
#define MAX_ENV 8

static struct {
	const char *text;
	size_t size, at, portion;
	int env[MAX_ENV]; /* rows */
	char values[MAX_ENV][256];
	unsigned nr_env;
} world;

static const char *fake_getenv(const char *name)
{
	if (!strcmp(name, "CUFILE_ENV_PATH_JSON"))
		return "the input";
	for (unsigned i = 0; i < world.nr_env; i++)
		if (!strcmp(cf_config_rows[world.env[i]].env, name))
			return world.values[i];
	return NULL;
}

static int fake_open(const char *path, int flags, mode_t mode)
{
	world.at = 0;
	return strcmp(path, "the input") ? -ENOENT : FD;
}

static int fake_close(int fd)
{
	return 0;
}

static int fake_fstat(int fd, struct stat *st)
{
	*st = (struct stat){ .st_mode = S_IFREG | 0600 };
	return 0;
}

static ssize_t fake_read(int fd, void *buf, size_t size)
{
	size_t left = world.size - world.at;

	if (size > left)
		size = left;
	if (size > world.portion)
		size = world.portion;
	memcpy(buf, world.text + world.at, size);
	world.at += size;
	return (ssize_t)size;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static struct cf_os os;

	os = cf_os_real;
	os.getenv = fake_getenv;
	os.open = fake_open;
	os.close = fake_close;
	os.fstat = fake_fstat;
	os.read = fake_read;
	cf_os = &os;
	return 0;
}

/* -------------------------------------------------------------- checks */

static void check_value(const struct cf_config *c, int id)
{
	const struct cf_config_row *row = &cf_config_rows[id];
	const struct cf_value *v = cf_config_value(c, (enum cf_cfg)id);
	char buf[32];

	if (row->type == CF_CFG_BOOL)
		must(cf_value_number(v) <= 1);
	if (row->type == CF_CFG_SIZE)
		must(cf_row_size_ok(row, cf_value_number(v)));
	if (row->type == CF_CFG_STRING)
		must(v->text && cf_row_choice(row, v->text, buf, sizeof(buf)));
	must(row->type != CF_CFG_SIZES || v->nr <= CF_CFG_MAX_SLABS);
	for (size_t i = 0; row->type == CF_CFG_SIZES && i < v->nr; i++)
		must(cf_row_size_ok(row, v->sizes[i]));
	for (size_t i = 0; row->type == CF_CFG_STRINGS && i < v->nr; i++)
		must(v->strings[i]);
}

static char *print(const struct cf_config *c, int id)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	must(f);
	cf_value_print(cf_config_value(c, (enum cf_cfg)id), &cf_config_rows[id],
		       f);
	must(!fclose(f));
	must(strlen(text) == size);
	return text;
}

static void check_same(const struct cf_config *a, const struct cf_config *b)
{
	for (int id = 0; id < CF_CFG_NR; id++) {
		char *of_a = print(a, id), *of_b = print(b, id);

		if (strcmp(of_a, of_b))
			wrong("%s: %s, then %s", cf_config_rows[id].key, of_a,
			      of_b);
		free(of_a);
		free(of_b);
	}
}

static struct cf_config *load(void)
{
	struct cf_config *c = cf_config_new();
	int err;

	must(c);
	err = cf_config_load(c, NULL);
	must(!err || err == -CU_FILE_DRIVER_INVALID_PROPS);
	for (int id = 0; id < CF_CFG_NR; id++)
		check_value(c, id);
	must(c->nr_notes <= CF_CFG_MAX_NOTES);
	return c;
}

/* {"section": {"key": value}}, for a key with one dot or two */
static void write_row(FILE *f, const char *key, const char *value)
{
	unsigned depth = 0;

	for (const char *dot; (dot = strchr(key, '.')); key = dot + 1) {
		fprintf(f, "{\"%.*s\": ", (int)(dot - key), key);
		depth++;
	}
	fprintf(f, "{\"%s\": %s}", key, value);
	while (depth--)
		fputc('}', f);
}

/* What is printed of a value is read as that value. */
static void check_round_trip(const struct cf_config *c, int id)
{
	const struct cf_config_row *row = &cf_config_rows[id];
	struct cf_config *again;
	char *value, *text = NULL, *longer, *after;
	size_t size = 0;
	FILE *f;

	if (!cf_row_has_json_key(row) ||
	    cf_value_source(cf_config_value(c, (enum cf_cfg)id)) !=
		    CF_CFG_FROM_JSON)
		return; /* a variable need not be UTF-8 */
	value = print(c, id);
	f = open_memstream(&text, &size);
	must(f);
	write_row(f, row->key, value);
	must(!fclose(f));
	longer = realloc(text, size + CF_JSON_PADDING);
	again = cf_config_new();
	must(longer && again);
	if (cf_config_apply_json(again, "again", longer, size))
		wrong("%s does not parse as printed: %s", row->key, value);
	after = print(again, id);
	if (strcmp(value, after))
		wrong("%s: %s is read again as %s", row->key, value, after);
	free(after);
	free(value);
	free(longer);
	cf_config_free(again);
}

/* --------------------------------------------------------------- input */

static bool has_variable(int id)
{
	return cf_config_rows[id].env;
}

static void add_variable(const uint8_t *at, size_t size)
{
	int id = size ? at[0] % CF_CFG_NR : 0;
	char *value = world.values[world.nr_env];

	while (!has_variable(id))
		id = (id + 1) % CF_CFG_NR;
	size = size ? size - 1 : 0;
	if (size > sizeof(world.values[0]) - 1)
		size = sizeof(world.values[0]) - 1;
	memcpy(value, at + 1, size);
	value[size] = '\0';
	world.env[world.nr_env++] = id;
}

static void take_apart(const uint8_t *data, size_t size)
{
	const uint8_t *end = data + size;
	const uint8_t *at = memchr(data, 0xff, size);

	world.text = (const char *)data;
	world.size = at ? (size_t)(at - data) : size;
	world.portion = size % 7 ? size + 1 : 3;
	world.nr_env = 0;
	while (at && world.nr_env < MAX_ENV) {
		const uint8_t *next =
			memchr(at + 1, 0xff, (size_t)(end - at - 1));

		add_variable(at + 1, (size_t)((next ? next : end) - at - 1));
		at = next;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t nothing[1];
	struct cf_config *first, *second;

	take_apart(data ? data : nothing, size);
	first = load();
	second = load();
	check_same(first, second);
	for (int id = 0; id < CF_CFG_NR; id++)
		check_round_trip(first, id);
	cf_config_free(first);
	cf_config_free(second);
	return 0;
}

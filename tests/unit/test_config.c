// SPDX-License-Identifier: Apache-2.0
/*
 * Every row of the configuration, from every source, in and out of bounds.
 *
 * The environment and /etc/cufile.json are replaced through the seam, so the
 * machine's own do not matter. One argument: the path of the shipped file.
 */
#include <ctype.h>
#include <cufile.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/config_value.h"
#include "core/log.h"
#include "seam/os.h"

#define SYSTEM_FILE "/etc/cufile.json"

static const char *shipped_file;
static char named_file[] = "/tmp/test_config_named_XXXXXX";
static char system_file[] = "/tmp/test_config_system_XXXXXX";
static bool system_file_exists;

/* ---- the seam ---- */

#define MAX_ENV 8

static struct {
	const char *name;
	const char *value;
} fake_env[MAX_ENV];

static void set_env(const char *name, const char *value)
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
	if (strcmp(path, SYSTEM_FILE))
		return cf_os_real.open(path, flags, mode);
	return system_file_exists ? cf_os_real.open(system_file, flags, mode) :
				    -ENOENT;
}

/* ---- helpers ---- */

static void write_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static struct cf_config *load(const struct cf_config_staged *staged)
{
	struct cf_config *c = cf_config_new();

	assert_non_null(c);
	assert_int_equal(cf_config_load(c, staged), 0);
	return c;
}

static struct cf_config *load_text(const char *text)
{
	write_text(named_file, text);
	set_env("CUFILE_ENV_PATH_JSON", named_file);
	return load(NULL);
}

/* "a.b" and "1" become {"a":{"b":1}}. */
static const char *nest(const char *key, const char *value)
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

static struct cf_config *load_row(const struct cf_config_row *row,
				  const char *value)
{
	return load_text(nest(row->key, value));
}

static const char *printed(const struct cf_config *c, int id)
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

static const char *default_of(int id)
{
	struct cf_config *c = cf_config_new();
	const char *text = printed(c, id);

	cf_config_free(c);
	return text;
}

#define assert_row(c, id, value, source) \
	do { \
		assert_string_equal(printed(c, id), value); \
		assert_int_equal(cf_config_source(c, (enum cf_cfg)(id)), \
				 source); \
	} while (0)

static void assert_no_notes(const struct cf_config *c)
{
	if (cf_config_note_text(c, 0))
		fail_msg("unexpected note: %s", cf_config_note_text(c, 0));
}

static void assert_note(const struct cf_config *c, size_t index,
			const char *part)
{
	const char *text = cf_config_note_text(c, index);

	if (!text || !strstr(text, part))
		fail_msg("note %zu is \"%s\", not with \"%s\"", index,
			 text ? text : "-", part);
}

/* A default value kept, with one note that names file, position and key. */
static void assert_refused(const struct cf_config_row *row, int id,
			   const char *value)
{
	struct cf_config *c = load_row(row, value);

	assert_row(c, id, default_of(id), CF_CFG_FROM_DEFAULT);
	assert_note(c, 0, row->key);
	assert_note(c, 0, ":1:");
	assert_note(c, 0, named_file);
	assert_null(cf_config_note_text(c, 1));
	cf_config_free(c);
}

static void assert_taken(const struct cf_config_row *row, int id,
			 const char *value)
{
	struct cf_config *c = load_row(row, value);

	assert_no_notes(c);
	assert_row(c, id, value, CF_CFG_FROM_JSON);
	cf_config_free(c);
}

static const char *number_text(uint64_t number)
{
	static char text[4][32];
	static int turn;
	char *buf = text[turn++ % 4];

	snprintf(buf, 32, "%" PRIu64, number);
	return buf;
}

/* Some value that is allowed and is not the default. */
static const char *other_value(const struct cf_config_row *row)
{
	static char text[64];
	uint64_t low = (row->min + row->multiple - 1) /
		       (row->multiple ? row->multiple : 1) * row->multiple;

	switch (row->type) {
	case CF_CFG_BOOL:
		return row->number ? "false" : "true";
	case CF_CFG_SIZE:
		return number_text(low == row->number ? low + row->multiple :
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

/* The same as the environment has it: without quotes. */
static const char *bare(const char *value)
{
	static char text[64];
	size_t n = strcspn(value + 1, "\"");

	if (value[0] != '"')
		return value;
	memcpy(text, value + 1, n);
	text[n] = '\0';
	return text;
}

static void stage_other(int id)
{
	static const uint64_t sizes[] = { 12, 20, 32 };
	const struct cf_config_row *row = &cf_config_rows[id];
	struct cf_config_staged *s = cf_config_staged();
	const char *value = bare(other_value(row));

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

static int setup(void **state)
{
	static struct cf_os fake;

	(void)state;
	fake = cf_os_real;
	fake.getenv = fake_getenv;
	fake.environment = fake_environment;
	fake.open = fake_open;
	cf_os = &fake;
	memset(fake_env, 0, sizeof(fake_env));
	system_file_exists = false;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	cf_staged_reset(cf_config_staged());
	cf_os = &cf_os_real;
	return 0;
}

#define for_each_row(row, id) \
	for (int id = 0; id < CF_CFG_NR; id++) \
		for (const struct cf_config_row *row = &cf_config_rows[id]; \
		     row; row = NULL)

/* ---- the table ---- */

static void every_row_is_named_once_and_has_a_valid_default(void **state)
{
	char buf[32];

	(void)state;
	for_each_row(row, id)
	{
		assert_non_null(row->key);
		assert_non_null(row->help);
		assert_int_equal(cf_config_by_key(row->key), id);
		if (row->type == CF_CFG_SIZE)
			assert_true(cf_row_size_ok(row, row->number));
		if (row->type == CF_CFG_STRING)
			assert_non_null(cf_row_choice(row, row->text, buf,
						      sizeof(buf)));
		if (row->family != CF_PARAM_NONE)
			assert_int_equal(
				cf_config_by_param(row->family, row->param),
				id);
		if (!cf_row_has_json_key(row))
			assert_string_equal(row->key, row->env);
	}
}

/* reference record, section a */
static void parameter_bounds_are_those_of_the_reference(void **state)
{
	static const struct {
		int param;
		uint64_t min, max, number;
	} rows[] = {
		{ CUFILE_PARAM_PROFILE_STATS, 0, 3, 0 },
		{ CUFILE_PARAM_EXECUTION_MAX_IO_QUEUE_DEPTH, 1, 256, 128 },
		{ CUFILE_PARAM_EXECUTION_MAX_IO_THREADS, 0, 32, 4 },
		{ CUFILE_PARAM_EXECUTION_MIN_IO_THRESHOLD_SIZE_KB, 4,
		  4294967295, 8192 },
		{ CUFILE_PARAM_EXECUTION_MAX_REQUEST_PARALLELISM, 0, 8, 4 },
		{ CUFILE_PARAM_PROPERTIES_MAX_DIRECT_IO_SIZE_KB, 64, 16384,
		  16384 },
		{ CUFILE_PARAM_PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB, 0,
		  268435456, 131072 },
		{ CUFILE_PARAM_PROPERTIES_PER_BUFFER_CACHE_SIZE_KB, 64, 16384,
		  1024 },
		{ CUFILE_PARAM_PROPERTIES_MAX_DEVICE_PINNED_MEM_SIZE_KB, 64,
		  268435456, 33554432 },
		{ CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, 1, 256, 128 },
		{ CUFILE_PARAM_POLLTHRESHOLD_SIZE_KB, 4, 18014398509481980, 4 },
		{ CUFILE_PARAM_PROPERTIES_BATCH_IO_TIMEOUT_MS, 1, 1000, 5 },
	};

	(void)state;
	for (int i = 0; i < 12; i++) {
		int id = cf_config_by_param(CF_PARAM_SIZET, i);

		assert_int_equal(rows[i].param, i);
		assert_true(id >= 0);
		assert_int_equal(cf_config_rows[id].min, rows[i].min);
		assert_int_equal(cf_config_rows[id].max, rows[i].max);
		assert_int_equal(cf_config_rows[id].number, rows[i].number);
	}
	assert_int_equal(cf_config_by_param(CF_PARAM_SIZET, 12), -1);
	assert_int_equal(cf_config_by_param(CF_PARAM_SIZET, -1), -1);
	assert_int_equal(
		cf_config_by_param(CF_PARAM_BOOL, CUFILE_PARAM_PROFILE_NVTX),
		-1);
	assert_int_equal(cf_config_by_param(CF_PARAM_BOOL, 14), -1);
	assert_int_equal(cf_config_by_param(CF_PARAM_STRING, 4), -1);
}

/* ---- the file ---- */

static void without_a_file_every_value_is_the_default(void **state)
{
	struct cf_config *c = load(NULL);

	(void)state;
	assert_no_notes(c);
	assert_null(cf_config_file(c));
	for_each_row(row, id)
		assert_row(c, id, default_of(id), CF_CFG_FROM_DEFAULT);
	assert_int_equal(cf_config_size(c, CF_CFG_MAX_DIRECT_IO_SIZE_KB),
			 16384);
	assert_true(cf_config_bool(c, CF_CFG_ALLOW_COMPAT_MODE));
	assert_string_equal(cf_config_string(c, CF_CFG_LOGGING_LEVEL), "ERROR");
	cf_config_free(c);
}

static void every_key_of_the_file_is_taken(void **state)
{
	(void)state;
	for_each_row(row, id)
	{
		if (cf_row_has_json_key(row) && row->type != CF_CFG_SIZES)
			assert_taken(row, id, other_value(row));
	}
}

static void a_list_of_slabs_is_taken_with_its_counts(void **state)
{
	const uint64_t *sizes, *counts;
	struct cf_config *c = load_text(
		"{\"properties\":{\"posix_pool_slab_size_kb\":[4,8],"
		"\"posix_pool_slab_count\":[7,9],"
		"\"gpu_bounce_buffer_slab_config\":{\"slab_size_kb\":[64],"
		"\"slab_count\":[3]}}}");

	(void)state;
	assert_no_notes(c);
	assert_int_equal(
		cf_config_sizes(c, CF_CFG_POSIX_POOL_SLAB_SIZE_KB, &sizes), 2);
	assert_int_equal(
		cf_config_sizes(c, CF_CFG_POSIX_POOL_SLAB_COUNT, &counts), 2);
	assert_int_equal(sizes[1], 8);
	assert_int_equal(counts[1], 9);
	assert_int_equal(
		cf_config_sizes(c, CF_CFG_GPU_BOUNCE_SLAB_SIZE_KB, &sizes), 1);
	assert_int_equal(sizes[0], 64);
	cf_config_free(c);
}

static void slab_lists_of_unequal_length_give_way_to_the_defaults(void **state)
{
	struct cf_config *c = load_text(
		"{\"properties\":{\"posix_pool_slab_size_kb\":[4,8]}}");

	(void)state;
	assert_note(c, 0, "properties.posix_pool_slab_size_kb");
	assert_row(c, CF_CFG_POSIX_POOL_SLAB_SIZE_KB, "[4, 1024, 16384]",
		   CF_CFG_FROM_DEFAULT);
	assert_row(c, CF_CFG_POSIX_POOL_SLAB_COUNT, "[128, 64, 64]",
		   CF_CFG_FROM_DEFAULT);
	cf_config_free(c);
}

static void numbers_at_their_bounds_are_taken(void **state)
{
	(void)state;
	for_each_row(row, id)
	{
		if (row->type != CF_CFG_SIZE || !cf_row_has_json_key(row))
			continue;
		assert_int_equal(row->min % row->multiple, 0);
		assert_taken(row, id, number_text(row->min));
		assert_taken(
			row, id,
			number_text(row->max / row->multiple * row->multiple));
	}
}

static void numbers_past_their_bounds_are_refused(void **state)
{
	(void)state;
	for_each_row(row, id)
	{
		if (row->type != CF_CFG_SIZE || !cf_row_has_json_key(row))
			continue;
		if (row->min)
			assert_refused(row, id, number_text(row->min - 1));
		assert_refused(row, id, number_text(row->max + 1));
		assert_refused(row, id, "-2");
		if (row->multiple > 1)
			assert_refused(row, id, number_text(row->min + 1));
	}
}

static void minus_one_means_no_limit_where_the_row_says_so(void **state)
{
	(void)state;
	for_each_row(row, id)
	{
		if (row->type != CF_CFG_SIZE || !cf_row_has_json_key(row))
			continue;
		if (row->flags & CF_CFG_NO_LIMIT)
			assert_taken(row, id, "-1");
		else
			assert_refused(row, id, "-1");
	}
}

static void a_value_of_the_wrong_type_is_refused(void **state)
{
	static const char *const wrong[] = {
		[CF_CFG_BOOL] = "\"true\"", [CF_CFG_SIZE] = "\"64\"",
		[CF_CFG_STRING] = "64",	    [CF_CFG_SIZES] = "[\"4\"]",
		[CF_CFG_STRINGS] = "[1]",
	};

	(void)state;
	for_each_row(row, id)
	{
		if (!cf_row_has_json_key(row))
			continue;
		assert_refused(row, id, wrong[row->type]);
		assert_refused(row, id, "null");
		assert_refused(row, id, "64.5");
		assert_refused(row, id, "{}");
	}
}

/* Seen from outside, or the linker of a sanitizer does not find them. */
#pragma GCC visibility push(default)
int __wrap_strcasecmp(const char *a, const char *b);
int __wrap_strncasecmp(const char *a, const char *b, size_t len);
#pragma GCC visibility pop

/* As in a Turkish locale, where i and I are two letters. */
int __wrap_strncasecmp(const char *a, const char *b, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		int x = a[i] == 'i' ? 0 : toupper((unsigned char)a[i]);
		int y = b[i] == 'i' ? 0 : toupper((unsigned char)b[i]);

		if (x != y || !x)
			return a[i] - b[i];
	}
	return 0;
}

int __wrap_strcasecmp(const char *a, const char *b)
{
	return __wrap_strncasecmp(a, b, strlen(a) + 1);
}

static void no_locale_has_other_words(void **state)
{
	struct cf_config *c = load_text("{\"logging\":{\"level\":\"info\"}}");

	(void)state;
	assert_row(c, CF_CFG_LOGGING_LEVEL, "\"INFO\"", CF_CFG_FROM_JSON);
	cf_config_free(c);
	assert_int_equal(cf_log_level_by_name("Info"), CF_LOG_INFO);
	assert_int_equal(cf_log_level_by_name("info "), -1);
}

static void a_choice_that_is_none_is_refused_and_case_does_not_matter(
	void **state)
{
	struct cf_config *c = load_text("{\"logging\":{\"level\":\"debug\"}}");

	(void)state;
	assert_row(c, CF_CFG_LOGGING_LEVEL, "\"DEBUG\"", CF_CFG_FROM_JSON);
	cf_config_free(c);
	for_each_row(row, id)
	{
		if (row->choices) {
			assert_refused(row, id, "\"bogus\"");
			assert_refused(row, id, "\"a\\u0000b\"");
		}
	}
}

static void a_bad_value_is_reported_with_line_column_and_key(void **state)
{
	struct cf_config *c =
		load_text("// a comment\n"
			  "{\n"
			  "\t\"execution\": { /* \"max_io_threads\": 99 */\n"
			  "\t\t\"max_io_queue_depth\": 5,\n"
			  "\t\t\"parallel_io\": true, \"max_io_threads\": 99,\n"
			  "\t},\n"
			  "}\n");
	char head[128];

	(void)state;
	snprintf(
		head, sizeof(head),
		"%s:5:24: execution.max_io_threads: 99 ignored: expected an integer from 0 to 32",
		named_file);
	assert_string_equal(cf_config_note_text(c, 0), head);
	assert_null(cf_config_note_text(c, 1));
	assert_row(c, CF_CFG_MAX_IO_QUEUE_DEPTH, "5", CF_CFG_FROM_JSON);
	assert_string_equal(cf_config_file(c), named_file);
	cf_config_free(c);
}

/* As editors of other systems write it; it has no column. */
static void a_byte_order_mark_is_passed_over(void **state)
{
	struct cf_config *c = load_text("\xef\xbb\xbf{\"execution\": {"
					"\"max_io_threads\": 99,"
					"\"max_io_queue_depth\": 5}}");
	char head[64];

	(void)state;
	assert_row(c, CF_CFG_MAX_IO_QUEUE_DEPTH, "5", CF_CFG_FROM_JSON);
	snprintf(head, sizeof(head), "%s:1:16: ", named_file);
	assert_memory_equal(cf_config_note_text(c, 0), head, strlen(head));
	cf_config_free(c);
	c = load_text("\xef\xbb\xbf");
	assert_non_null(cf_config_note_text(c, 0));
	cf_config_free(c);
}

static void a_malformed_file_is_reported_with_line_and_column(void **state)
{
	struct cf_config *c = load_text(
		"{\n  \"execution\": {\n    \"max_io_threads\": x7\n");
	char head[64];

	(void)state;
	snprintf(head, sizeof(head), "%s:3:23: ", named_file);
	assert_note(c, 0, head);
	assert_note(c, 0, "the defaults are used");
	assert_null(cf_config_note_text(c, 1));
	assert_null(cf_config_file(c));
	for_each_row(row, id) assert_int_equal(
		cf_config_source(c, (enum cf_cfg)id), CF_CFG_FROM_DEFAULT);
	cf_config_free(c);
}

static void files_that_are_no_object_leave_the_defaults(void **state)
{
	static const char *const texts[] = {
		"",    " ",    "[]",   "7",	     "{\"a\":1} x",
		"{,}", "\"\"", "null", "{\"fs\":1}", "\xff"
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct cf_config *c = load_text(texts[i]);

		assert_non_null(cf_config_note_text(c, 0));
		assert_row(c, CF_CFG_MAX_IO_THREADS, "4", CF_CFG_FROM_DEFAULT);
		cf_config_free(c);
	}
}

static int load_result(const char *text, const struct cf_config_staged *staged)
{
	struct cf_config *c = cf_config_new();
	int err;

	write_text(named_file, text);
	set_env("CUFILE_ENV_PATH_JSON", named_file);
	err = cf_config_load(c, staged);
	assert_row(c, CF_CFG_MAX_IO_THREADS, "4", CF_CFG_FROM_DEFAULT);
	cf_config_free(c);
	return err;
}

static void a_malformed_file_fails_the_open_under_api_check_aggressive(
	void **state)
{
	const char *strict =
		"{\"miscellaneous\":{\"api_check_aggressive\" : true}";
	const char *lax =
		"{\"miscellaneous\":{\"api_check_aggressive\": false, true";
	struct cf_config_staged *s = cf_config_staged();

	(void)state;
	assert_int_equal(load_result(strict, NULL),
			 -CU_FILE_DRIVER_INVALID_PROPS);
	assert_int_equal(load_result(lax, NULL), 0);
	assert_int_equal(load_result("{\"api_check_aggressive\"", NULL), 0);
	cf_staged_set_bool(s, CF_CFG_API_CHECK_AGGRESSIVE, false);
	assert_int_equal(load_result(strict, s), 0);
	cf_staged_set_bool(s, CF_CFG_API_CHECK_AGGRESSIVE, true);
	assert_int_equal(load_result("{", s), -CU_FILE_DRIVER_INVALID_PROPS);
	assert_int_equal(load_result("{}", s), 0);
}

static void unknown_keys_are_reported_once_each_and_ignored(void **state)
{
	struct cf_config *c =
		load_text("{\"new\": {\"a\": 1, \"b\": 2},\n"
			  "\"properties\": {\"max_direct_io_size\": 64},\n"
			  "\"fs\": {\"block\": {\"nvme\": {}}},\n"
			  "\"properties.io_batchsize\": 7,\n"
			  "\"CUFILE_CQ_DEPTH\": 3,\n"
			  "\"execution\": {\"max_io_threads\": 2}}");

	(void)state;
	assert_note(c, 0, ":1:2: new: unknown key");
	assert_note(c, 1, ":2:16: properties.max_direct_io_size: unknown key");
	assert_note(c, 2, ":3:8: fs.block: unknown key");
	assert_note(c, 3, ":4:1: top level: unknown key");
	assert_note(c, 4, ":5:1: CUFILE_CQ_DEPTH: unknown key");
	assert_null(cf_config_note_text(c, 5));
	assert_row(c, CF_CFG_MAX_IO_THREADS, "2", CF_CFG_FROM_JSON);
	assert_row(c, CF_CFG_CQ_DEPTH, "0", CF_CFG_FROM_DEFAULT);
	cf_config_free(c);
}

/* Loads a file with one unknown key; the note ends so. */
static void assert_meant(const char *text, const char *meant)
{
	struct cf_config *c = load_text(text);
	const char *note = cf_config_note_text(c, 0);
	const char *end = note ? strstr(note, "unknown key, ignored") : NULL;
	char want[128] = "unknown key, ignored";

	if (meant)
		snprintf(want, sizeof(want),
			 "unknown key, ignored; did you mean %s?", meant);
	assert_non_null(end);
	assert_string_equal(end, want);
	assert_null(cf_config_note_text(c, 1));
	cf_config_free(c);
}

static void a_name_that_gdscheck_shows_is_told_the_key(void **state)
{
	(void)state;
	assert_meant("{\"properties\": {\"use_compat_mode\": true}}",
		     "properties.allow_compat_mode");
	assert_meant("{\"properties\": {\"max_batch_io_size\": 64}}",
		     "properties.io_batchsize");
}

static void a_value_that_is_ignored_is_told(void **state)
{
	static const char *const values[][2] = {
		{ "99", "99" },
		{ "-3", "-3" },
		{ "1.5", "1.5" },
		{ "\"4\"", "\"4\"" },
		{ "true", "true" },
		{ "null", "null" },
		{ "[4]", "this list" },
		{ "{}", "this object" },
		{ "\"0123456789012345678901234567890123456789012345\"",
		  "\"0123456789012345678901234567890123456789\"" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		char text[128], want[128];
		struct cf_config *c;

		snprintf(text, sizeof(text),
			 "{\"execution\": {\"max_io_threads\": %s}}",
			 values[i][0]);
		c = load_text(text);
		snprintf(want, sizeof(want), ": %s ignored: expected an ",
			 values[i][1]);
		assert_non_null(strstr(cf_config_note_text(c, 0), want));
		assert_row(c, CF_CFG_MAX_IO_THREADS, "4", CF_CFG_FROM_DEFAULT);
		cf_config_free(c);
	}
}

static void a_key_that_looks_like_another_is_told_which(void **state)
{
	char text[512];

	(void)state;
	assert_meant("{\"logging\": {\"levelx\": \"INFO\"}}", "logging.level");
	assert_meant("{\"propertiez\": {}}", "properties");
	assert_meant("{\"properties\": {\"max_direct_io_size\": 64}}",
		     "properties.max_direct_io_size_kb");
	/* the right name at the wrong place */
	assert_meant("{\"fs\": {\"block\": {\"nvme\": {}}}}", "block");
	assert_meant("{\"execution\": {\"allow_compat_mode\": true}}",
		     "properties.allow_compat_mode");
	assert_meant("{\"io_uring\": true}", "opencufile.io_uring");
	assert_meant("{\"oops\": 1}", NULL);
	assert_meant("{\"fs\": {\"xfs\": {}}}", NULL); /* and not nfs */
	memset(text, 'e', sizeof(text));
	memcpy(text, "{\"", 2);
	snprintf(text + 100, sizeof(text) - 100, "\": 1}");
	assert_meant(text, NULL);
}

static void a_variable_that_looks_like_another_is_told_which(void **state)
{
	char longer[300] = "CUFILE_";
	struct cf_config *c;

	(void)state;
	memset(longer + 7, 'X', sizeof(longer) - 8);
	set_env("CUFILE_LOG_LEVEL", "INFO");
	set_env("CUFILE_MINE", "1");
	set_env("OCF_HYBRIDE", "off");
	set_env("OCF_ROOT", "/usr/lib/ocf"); /* Pacemaker's */
	set_env(longer, "1");
	c = load_text("{}");
	assert_note(c, 0,
		    "environment: CUFILE_LOG_LEVEL: unknown, ignored; did you "
		    "mean CUFILE_LOGGING_LEVEL?");
	assert_note(c, 1, "environment: CUFILE_MINE: unknown, ignored");
	assert_null(strstr(cf_config_note_text(c, 1), "mean"));
	assert_note(c, 2,
		    "environment: OCF_HYBRIDE: unknown, ignored; did you "
		    "mean OCF_HYBRID?");
	assert_note(c, 3, "X: unknown, ignored");
	assert_null(strstr(cf_config_note_text(c, 3), "mean"));
	assert_null(cf_config_note_text(c, 4));
	cf_config_free(c);
}

static void the_last_of_duplicate_keys_wins_and_is_reported(void **state)
{
	struct cf_config *c =
		load_text("{\"execution\": {\"max_io_threads\": 2},\n"
			  " \"execution\": {\"max_io_threads\": 3}}");

	(void)state;
	assert_row(c, CF_CFG_MAX_IO_THREADS, "3", CF_CFG_FROM_JSON);
	assert_note(c, 0, ":2:2: execution: given twice");
	assert_note(c, 1, ":2:16: execution.max_io_threads: given twice");
	assert_null(cf_config_note_text(c, 2));
	cf_config_free(c);
}

/* Notes are lines of the log, and gdscheck prints them. */
static void a_note_of_what_was_read_is_one_plain_line(void **state)
{
	struct cf_config *c = load_text(
		"{\"a\\nb\": 1, \"logging\": {\"level\": \"\\u001b[2J\"}}");

	(void)state;
	assert_note(c, 0, ":1:2: a?b: unknown key, ignored");
	assert_note(c, 1, "logging.level: \"?[2J\" ignored: expected one of");
	assert_null(cf_config_note_text(c, 2));
	cf_config_free(c);
}

static void old_spellings_are_understood(void **state)
{
	const char *const *names;
	struct cf_config *c =
		load_text("{\"blacklist\": {\"mounts\": [\"/a\", \"/b\"]},"
			  "\"profile\": {\"io_batchsize\": 9}}");

	(void)state;
	assert_no_notes(c);
	assert_int_equal(cf_config_strings(c, CF_CFG_DENYLIST_MOUNTS, &names),
			 2);
	assert_string_equal(names[1], "/b");
	assert_row(c, CF_CFG_IO_BATCHSIZE, "9", CF_CFG_FROM_JSON);
	cf_config_free(c);
}

static void mount_tables_are_accepted_in_silence(void **state)
{
	struct cf_config *c =
		load_text("{\"fs\":{\"lustre\":{\"mount_table\":{\"/l\":"
			  "{\"rdma_dev_addr_list\":[\"10.0.0.1\"]}}}}}");

	(void)state;
	assert_no_notes(c);
	cf_config_free(c);
}

static void a_mount_table_of_another_form_is_reported(void **state)
{
	static const struct {
		const char *text, *note;
	} cases[] = {
		{ "3", "fs.nfs.mount_table: ignored: expected an object" },
		{ "{\"/a\": []}",
		  "fs.nfs.mount_table: ignored: expected an object" },
		{ "{\"/a\": {\"rdma_dev_addr_list\": [\"1\", 2]}}",
		  "fs.nfs.mount_table: ignored: expected a list of strings" },
		{ "{\"/a\": {\"rdma\": []}}",
		  "fs.nfs.mount_table: unknown key, ignored" },
	};

	(void)state;
	for (int i = 0; i < 4; i++) {
		char text[256];
		struct cf_config *c;

		snprintf(text, sizeof(text),
			 "{\"fs\":{\"nfs\":{\"mount_table\":%s}}}",
			 cases[i].text);
		c = load_text(text);
		assert_non_null(cf_config_note_text(c, 0));
		assert_non_null(
			strstr(cf_config_note_text(c, 0), cases[i].note));
		assert_null(cf_config_note_text(c, 1));
		cf_config_free(c);
	}
}

static void keys_that_are_hexadecimal_numbers_are_bounded(void **state)
{
	static const char *const bad[] = { "",	   "0x",  "31", "0x123456789",
					   "0x1g", "0x1 " };
	struct cf_config *c;
	char text[128];

	(void)state;
	for (int i = 0; i < 6; i++) {
		snprintf(text, sizeof(text),
			 "{\"properties\":{\"rdma_dc_key\":\"%s\"}}", bad[i]);
		c = load_text(text);
		assert_row(c, CF_CFG_RDMA_DC_KEY, "\"0xffeeddcc\"",
			   CF_CFG_FROM_DEFAULT);
		assert_non_null(cf_config_note_text(c, 0));
		assert_non_null(strstr(cf_config_note_text(c, 0),
				       "expected a hexadecimal number"));
		cf_config_free(c);
	}
	set_env("CUFILE_RDMA_DC_KEY", "0xBeef");
	c = load_text("{\"properties\":{\"rdma_access_mask\":\"0X3\"}}");
	assert_no_notes(c);
	assert_row(c, CF_CFG_RDMA_ACCESS_MASK, "\"0X3\"", CF_CFG_FROM_JSON);
	assert_row(c, CF_CFG_RDMA_DC_KEY, "\"0xBeef\"", CF_CFG_FROM_ENV);
	cf_config_free(c);
}

static void a_file_wrong_everywhere_does_not_fill_the_log(void **state)
{
	static char text[1 << 16];
	size_t n = (size_t)snprintf(text, sizeof(text), "{");
	struct cf_config *c;

	(void)state;
	for (int i = 0; i < 4000; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "\"k%d\":1,",
				      i);
	snprintf(text + n, sizeof(text) - n, "}");
	c = load_text(text);
	assert_non_null(cf_config_note_text(c, 63));
	assert_null(cf_config_note_text(c, 64));
	cf_config_free(c);
}

/* What nobody is told is not searched for: that took 7 s of CPU time. */
static void a_file_full_of_misspelt_keys_is_read_at_once(void **state)
{
	static char text[1 << 20];
	size_t n = (size_t)snprintf(text, sizeof(text), "{\"properties\":{");
	clock_t start = clock();

	(void)state;
	for (int i = 0; n < sizeof(text) - 60; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
				      "\"rdma_dynamic_routing_ordes%d\":1,", i);
	snprintf(text + n, sizeof(text) - n, "}}");
	cf_config_free(load_text(text));
	assert_in_range(clock() - start, 0, 3 * CLOCKS_PER_SEC);
}

static void the_shipped_file_loads_silently_and_equals_the_defaults(
	void **state)
{
	struct cf_config *c;

	(void)state;
	assert_non_null(shipped_file);
	set_env("CUFILE_ENV_PATH_JSON", shipped_file);
	c = load(NULL);
	assert_no_notes(c);
	assert_string_equal(cf_config_file(c), shipped_file);
	for_each_row(row, id)
	{
		/* naming these two would start a log; the slabs replace two
		 * keys */
		bool left_out = id == CF_CFG_LOGGING_LEVEL ||
				id == CF_CFG_LOGGING_DIR ||
				id == CF_CFG_GPU_BOUNCE_SLAB_SIZE_KB ||
				id == CF_CFG_GPU_BOUNCE_SLAB_COUNT ||
				!cf_row_has_json_key(row);

		assert_row(c, id, default_of(id),
			   left_out ? CF_CFG_FROM_DEFAULT : CF_CFG_FROM_JSON);
	}
	cf_config_free(c);
}

/* ---- which file ---- */

static void the_system_file_is_read_when_the_environment_names_none(
	void **state)
{
	struct cf_config *c;

	(void)state;
	write_text(system_file, "{\"execution\": {\"max_io_threads\": 7}}");
	system_file_exists = true;
	c = load(NULL);
	assert_row(c, CF_CFG_MAX_IO_THREADS, "7", CF_CFG_FROM_JSON);
	assert_string_equal(cf_config_file(c), SYSTEM_FILE);
	cf_config_free(c);

	c = load_text("{\"execution\": {\"max_io_queue_depth\": 5}}");
	assert_row(c, CF_CFG_MAX_IO_THREADS, "4", CF_CFG_FROM_DEFAULT);
	assert_row(c, CF_CFG_MAX_IO_QUEUE_DEPTH, "5", CF_CFG_FROM_JSON);
	cf_config_free(c);
}

static void a_missing_named_file_gives_the_defaults_and_one_note(void **state)
{
	struct cf_config *c;

	(void)state;
	write_text(system_file, "{\"execution\": {\"max_io_threads\": 7}}");
	system_file_exists = true;
	set_env("CUFILE_ENV_PATH_JSON", "/nonexistent/cufile.json");
	c = load(NULL);
	assert_row(c, CF_CFG_MAX_IO_THREADS, "4", CF_CFG_FROM_DEFAULT);
	assert_note(c, 0, "/nonexistent/cufile.json: No such file");
	assert_null(cf_config_note_text(c, 1));
	cf_config_free(c);
}

static void a_directory_or_a_device_is_no_configuration(void **state)
{
	static const char *const paths[] = { "/tmp", "/dev/zero" };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct cf_config *c;

		set_env("CUFILE_ENV_PATH_JSON", paths[i]);
		c = load(NULL);
		assert_note(c, 0, paths[i]);
		assert_null(cf_config_file(c));
		cf_config_free(c);
	}
}

/* ---- the environment ---- */

static void every_variable_is_taken_and_wins_over_the_file(void **state)
{
	(void)state;
	for_each_row(row, id)
	{
		const char *value = other_value(row);
		struct cf_config *c;

		if (!row->env)
			continue;
		write_text(named_file, cf_row_has_json_key(row) ?
					       nest(row->key, default_of(id)) :
					       "{}");
		set_env("CUFILE_ENV_PATH_JSON", named_file);
		set_env(row->env, bare(value));
		c = load(NULL);
		assert_no_notes(c);
		assert_row(c, id, value, CF_CFG_FROM_ENV);
		cf_config_free(c);
		memset(fake_env, 0, sizeof(fake_env));
	}
}

static void a_bad_variable_is_reported_and_the_file_stands(void **state)
{
	(void)state;
	for_each_row(row, id)
	{
		struct cf_config *c;

		if (!row->env || (row->type == CF_CFG_STRING && !row->choices))
			continue;
		set_env("CUFILE_ENV_PATH_JSON", named_file);
		write_text(named_file,
			   cf_row_has_json_key(row) ?
				   nest(row->key, other_value(row)) :
				   "{}");
		set_env(row->env, "7x");
		c = load(NULL);
		assert_note(c, 0, row->env);
		assert_null(cf_config_note_text(c, 1));
		if (cf_row_has_json_key(row))
			assert_row(c, id, other_value(row), CF_CFG_FROM_JSON);
		else
			assert_row(c, id, default_of(id), CF_CFG_FROM_DEFAULT);
		cf_config_free(c);
		memset(fake_env, 0, sizeof(fake_env));
	}
}

static void variables_are_parsed_strictly(void **state)
{
	static const struct {
		const char *name, *value, *result;
		enum cf_cfg id;
	} cases[] = {
		{ "CUFILE_ALLOW_COMPAT_MODE", "off", "false",
		  CF_CFG_ALLOW_COMPAT_MODE },
		{ "CUFILE_ALLOW_COMPAT_MODE", "No", "false",
		  CF_CFG_ALLOW_COMPAT_MODE },
		{ "CUFILE_ALLOW_COMPAT_MODE", "0", "false",
		  CF_CFG_ALLOW_COMPAT_MODE },
		{ "CUFILE_FORCE_COMPAT_MODE", "TRUE", "true",
		  CF_CFG_FORCE_COMPAT_MODE },
		{ "CUFILE_FORCE_COMPAT_MODE", "on", "true",
		  CF_CFG_FORCE_COMPAT_MODE },
		{ "CUFILE_FORCE_COMPAT_MODE", "yes", "true",
		  CF_CFG_FORCE_COMPAT_MODE },
		{ "CUFILE_FORCE_COMPAT_MODE", "2", NULL,
		  CF_CFG_FORCE_COMPAT_MODE },
		{ "CUFILE_FORCE_COMPAT_MODE", "truly", NULL,
		  CF_CFG_FORCE_COMPAT_MODE },
		{ "CUFILE_LOGFILE_MAX_SIZE_MB", "-1", "-1",
		  CF_CFG_LOGGING_MAX_FILE_SIZE_MB },
		{ "CUFILE_LOGFILE_MAX_SIZE_MB", " 5", NULL,
		  CF_CFG_LOGGING_MAX_FILE_SIZE_MB },
		{ "CUFILE_LOGFILE_MAX_SIZE_MB", "+5", NULL,
		  CF_CFG_LOGGING_MAX_FILE_SIZE_MB },
		{ "CUFILE_LOGFILE_MAX_SIZE_MB", "0", NULL,
		  CF_CFG_LOGGING_MAX_FILE_SIZE_MB },
		{ "CUFILE_LOGFILE_MAX_SIZE_MB", "4097", NULL,
		  CF_CFG_LOGGING_MAX_FILE_SIZE_MB },
		{ "CUFILE_LOGFILE_MAX_SIZE_MB", "99999999999999999999", NULL,
		  CF_CFG_LOGGING_MAX_FILE_SIZE_MB },
		{ "CUFILE_CQ_DEPTH", "-1", NULL, CF_CFG_CQ_DEPTH },
		{ "CUFILE_CQ_DEPTH", "2147483648", NULL, CF_CFG_CQ_DEPTH },
		{ "CUFILE_MIN_RNR_TIMER", "31", "31", CF_CFG_MIN_RNR_TIMER },
		{ "CUFILE_MIN_RNR_TIMER", "32", NULL, CF_CFG_MIN_RNR_TIMER },
		{ "CUFILE_RDMA_HOP_LIMIT", "255", "255",
		  CF_CFG_RDMA_HOP_LIMIT },
		{ "CUFILE_RDMA_HOP_LIMIT", "256", NULL, CF_CFG_RDMA_HOP_LIMIT },
		{ "CUFILE_RDMA_PKEY_INDEX", "65535", "65535",
		  CF_CFG_RDMA_PKEY_INDEX },
		{ "CUFILE_RDMA_PKEY_INDEX", "65536", NULL,
		  CF_CFG_RDMA_PKEY_INDEX },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cf_config *c;

		memset(fake_env, 0, sizeof(fake_env));
		set_env(cases[i].name, cases[i].value);
		c = load(NULL);
		if (cases[i].result)
			assert_row(c, cases[i].id, cases[i].result,
				   CF_CFG_FROM_ENV);
		else
			assert_note(c, 0, cases[i].name);
		cf_config_free(c);
	}
}

static void an_empty_variable_counts_only_for_the_log_path(void **state)
{
	(void)state;
	for_each_row(row, id)
	{
		struct cf_config *c;

		if (!row->env)
			continue;
		memset(fake_env, 0, sizeof(fake_env));
		set_env(row->env, "");
		c = load(NULL);
		assert_no_notes(c);
		assert_row(c, id, default_of(id),
			   id == CF_CFG_LOGFILE_PATH ? CF_CFG_FROM_ENV :
						       CF_CFG_FROM_DEFAULT);
		cf_config_free(c);
	}
}

/* ---- staged and runtime values ---- */

static void a_staged_value_wins_over_environment_and_file(void **state)
{
	(void)state;
	for_each_row(row, id)
	{
		struct cf_config *c;

		if (row->family == CF_PARAM_NONE)
			continue;
		memset(fake_env, 0, sizeof(fake_env));
		if (cf_row_has_json_key(row)) {
			write_text(named_file, nest(row->key, default_of(id)));
			set_env("CUFILE_ENV_PATH_JSON", named_file);
		}
		if (row->env)
			set_env(row->env, bare(default_of(id)));
		stage_other(id);
		c = load(cf_config_staged());
		assert_no_notes(c);
		assert_row(c, id, other_value(row), CF_CFG_FROM_STAGED);
		cf_config_free(c);
		cf_staged_clear(cf_config_staged());
	}
}

static void a_staged_value_out_of_range_gives_way_to_the_default(void **state)
{
	(void)state;
	for_each_row(row, id)
	{
		struct cf_config *c;

		if (row->family != CF_PARAM_SIZET)
			continue;
		write_text(named_file, nest(row->key, other_value(row)));
		set_env("CUFILE_ENV_PATH_JSON", named_file);
		cf_staged_set_size(cf_config_staged(), (enum cf_cfg)id,
				   row->max + 1);
		c = load(cf_config_staged());
		assert_note(c, 0, row->key);
		assert_row(c, id, default_of(id), CF_CFG_FROM_DEFAULT);
		cf_config_free(c);
		cf_staged_clear(cf_config_staged());
	}
}

/* contract 3.13: the array that NVIDIA's Python tests stage */
static void staged_slabs_of_gigabytes_are_taken(void **state)
{
	static const uint64_t sizes[] = { 4096, 65536, 1048576, 16777216 };
	static const uint64_t counts[] = { 10, 5, 3, 2 };
	struct cf_config_staged *s = cf_config_staged();
	struct cf_config *c;

	(void)state;
	cf_staged_set_sizes(s, CF_CFG_POSIX_POOL_SLAB_SIZE_KB, sizes, 4);
	cf_staged_set_sizes(s, CF_CFG_POSIX_POOL_SLAB_COUNT, counts, 4);
	c = load(s);
	assert_no_notes(c);
	assert_row(c, CF_CFG_POSIX_POOL_SLAB_SIZE_KB,
		   "[4096, 65536, 1048576, 16777216]", CF_CFG_FROM_STAGED);
	assert_row(c, CF_CFG_POSIX_POOL_SLAB_COUNT, "[10, 5, 3, 2]",
		   CF_CFG_FROM_STAGED);
	cf_config_free(c);
}

static void staged_slabs_that_are_no_pages_give_way_to_the_defaults(
	void **state)
{
	static const uint64_t sizes[] = { 4, 6, 64 };
	struct cf_config *c;

	(void)state;
	cf_staged_set_sizes(cf_config_staged(), CF_CFG_POSIX_POOL_SLAB_SIZE_KB,
			    sizes, 3);
	c = load(cf_config_staged());
	assert_note(c, 0, "posix_pool_slab_size_kb");
	assert_row(c, CF_CFG_POSIX_POOL_SLAB_SIZE_KB, "[4, 1024, 16384]",
		   CF_CFG_FROM_DEFAULT);
	cf_config_free(c);
}

static void clearing_forgets_staged_values_except_the_gpu_slabs(void **state)
{
	struct cf_config_staged *s = cf_config_staged();

	(void)state;
	for_each_row(row, id)
	{
		if (row->type != CF_CFG_STRINGS)
			stage_other(id);
	}
	cf_staged_clear(s);
	for_each_row(row, id)
	{
		bool stays = id == CF_CFG_GPU_BOUNCE_SLAB_SIZE_KB ||
			     id == CF_CFG_GPU_BOUNCE_SLAB_COUNT;

		assert_int_equal(cf_staged_find(s, (enum cf_cfg)id) != NULL,
				 stays);
	}
	cf_staged_reset(s);
	assert_null(cf_staged_find(s, CF_CFG_GPU_BOUNCE_SLAB_COUNT));
}

static void a_runtime_setter_replaces_value_and_source(void **state)
{
	struct cf_config *c = load(NULL);

	(void)state;
	cf_config_set_runtime_size(c, CF_CFG_MAX_DIRECT_IO_SIZE_KB, 64);
	cf_config_set_runtime_bool(c, CF_CFG_USE_POLL_MODE, true);
	assert_row(c, CF_CFG_MAX_DIRECT_IO_SIZE_KB, "64", CF_CFG_FROM_RUNTIME);
	assert_row(c, CF_CFG_USE_POLL_MODE, "true", CF_CFG_FROM_RUNTIME);
	cf_config_free(c);
}

static const char *origin(const struct cf_config *c, enum cf_cfg id)
{
	static char text[300];

	cf_config_origin(c, id, text, sizeof(text));
	return text;
}

static void every_value_knows_where_it_came_from(void **state)
{
	struct cf_config_staged *staged = cf_config_staged();
	struct cf_config *c;
	char want[300];

	(void)state;
	write_text(named_file, "{\"profile\": {\"cufile_stats\": 1},\n"
			       " \"logging\": {\n\n"
			       "  \"max_file_size_mb\": 7}}");
	set_env("CUFILE_ENV_PATH_JSON", named_file);
	set_env("CUFILE_FORCE_COMPAT_MODE", "1");
	cf_staged_set_size(staged, CF_CFG_IO_BATCHSIZE, 64);
	c = load(staged);
	cf_staged_reset(staged);
	snprintf(want, sizeof(want), "%s:4", named_file);
	assert_string_equal(origin(c, CF_CFG_LOGGING_MAX_FILE_SIZE_MB), want);
	snprintf(want, sizeof(want), "%s:1", named_file);
	assert_string_equal(origin(c, CF_CFG_STATS_LEVEL), want);
	assert_string_equal(origin(c, CF_CFG_FORCE_COMPAT_MODE),
			    "environment CUFILE_FORCE_COMPAT_MODE");
	assert_string_equal(origin(c, CF_CFG_IO_BATCHSIZE), "API");
	assert_string_equal(origin(c, CF_CFG_NVTX), "default");
	cf_config_set_runtime_bool(c, CF_CFG_USE_POLL_MODE, true);
	assert_string_equal(origin(c, CF_CFG_USE_POLL_MODE), "API");
	cf_config_free(c);
}

#define test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		test(every_row_is_named_once_and_has_a_valid_default),
		test(parameter_bounds_are_those_of_the_reference),
		test(without_a_file_every_value_is_the_default),
		test(every_key_of_the_file_is_taken),
		test(a_list_of_slabs_is_taken_with_its_counts),
		test(slab_lists_of_unequal_length_give_way_to_the_defaults),
		test(numbers_at_their_bounds_are_taken),
		test(numbers_past_their_bounds_are_refused),
		test(minus_one_means_no_limit_where_the_row_says_so),
		test(a_value_of_the_wrong_type_is_refused),
		test(a_choice_that_is_none_is_refused_and_case_does_not_matter),
		test(no_locale_has_other_words),
		test(a_bad_value_is_reported_with_line_column_and_key),
		test(a_byte_order_mark_is_passed_over),
		test(a_malformed_file_is_reported_with_line_and_column),
		test(files_that_are_no_object_leave_the_defaults),
		test(a_malformed_file_fails_the_open_under_api_check_aggressive),
		test(unknown_keys_are_reported_once_each_and_ignored),
		test(a_name_that_gdscheck_shows_is_told_the_key),
		test(a_value_that_is_ignored_is_told),
		test(a_key_that_looks_like_another_is_told_which),
		test(a_variable_that_looks_like_another_is_told_which),
		test(the_last_of_duplicate_keys_wins_and_is_reported),
		test(a_note_of_what_was_read_is_one_plain_line),
		test(old_spellings_are_understood),
		test(mount_tables_are_accepted_in_silence),
		test(a_mount_table_of_another_form_is_reported),
		test(keys_that_are_hexadecimal_numbers_are_bounded),
		test(a_file_wrong_everywhere_does_not_fill_the_log),
		test(a_file_full_of_misspelt_keys_is_read_at_once),
		test(the_shipped_file_loads_silently_and_equals_the_defaults),
		test(the_system_file_is_read_when_the_environment_names_none),
		test(a_missing_named_file_gives_the_defaults_and_one_note),
		test(a_directory_or_a_device_is_no_configuration),
		test(every_variable_is_taken_and_wins_over_the_file),
		test(a_bad_variable_is_reported_and_the_file_stands),
		test(variables_are_parsed_strictly),
		test(an_empty_variable_counts_only_for_the_log_path),
		test(a_staged_value_wins_over_environment_and_file),
		test(a_staged_value_out_of_range_gives_way_to_the_default),
		test(staged_slabs_of_gigabytes_are_taken),
		test(staged_slabs_that_are_no_pages_give_way_to_the_defaults),
		test(clearing_forgets_staged_values_except_the_gpu_slabs),
		test(a_runtime_setter_replaces_value_and_source),
		test(every_value_knows_where_it_came_from),
	};
	int failed;

	shipped_file = argc > 1 ? argv[1] : NULL;
	close(mkstemp(named_file));
	close(mkstemp(system_file));
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(named_file);
	unlink(system_file);
	return failed;
}

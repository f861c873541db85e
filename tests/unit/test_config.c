// SPDX-License-Identifier: Apache-2.0
/*
 * Every row of the configuration, of the table and of the file, in and out of
 * bounds. One argument: the path of the shipped file.
 */
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include "config_world.h"
#include "core/log.h"

static const char *shipped_file;

/* ---- the table ---- */

static void every_row_is_named_once_and_has_a_valid_default(void **state)
{
	char buf[32];

	(void)state;
	cw_for_each_row(row, id)
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
	struct cf_config *c = cw_load(NULL);

	(void)state;
	cw_assert_no_notes(c);
	assert_null(cf_config_file(c));
	cw_for_each_row(row, id)
		cw_assert_row(c, id, cw_default_of(id), CF_CFG_FROM_DEFAULT);
	assert_int_equal(cf_config_size(c, CF_CFG_MAX_DIRECT_IO_SIZE_KB),
			 16384);
	assert_true(cf_config_bool(c, CF_CFG_ALLOW_COMPAT_MODE));
	assert_string_equal(cf_config_string(c, CF_CFG_LOGGING_LEVEL), "ERROR");
	cf_config_free(c);
}

static void every_key_of_the_file_is_taken(void **state)
{
	(void)state;
	cw_for_each_row(row, id)
	{
		if (cf_row_has_json_key(row) && row->type != CF_CFG_SIZES)
			cw_assert_taken(row, id, cw_other_value(row));
	}
}

static void a_list_of_slabs_is_taken_with_its_counts(void **state)
{
	const uint64_t *sizes, *counts;
	struct cf_config *c = cw_load_text(
		"{\"properties\":{\"posix_pool_slab_size_kb\":[4,8],"
		"\"posix_pool_slab_count\":[7,9],"
		"\"gpu_bounce_buffer_slab_config\":{\"slab_size_kb\":[64],"
		"\"slab_count\":[3]}}}");

	(void)state;
	cw_assert_no_notes(c);
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
	struct cf_config *c = cw_load_text(
		"{\"properties\":{\"posix_pool_slab_size_kb\":[4,8]}}");

	(void)state;
	cw_assert_note(c, 0, "properties.posix_pool_slab_size_kb");
	cw_assert_row(c, CF_CFG_POSIX_POOL_SLAB_SIZE_KB, "[4, 1024, 16384]",
		      CF_CFG_FROM_DEFAULT);
	cw_assert_row(c, CF_CFG_POSIX_POOL_SLAB_COUNT, "[128, 64, 64]",
		      CF_CFG_FROM_DEFAULT);
	cf_config_free(c);
}

static void numbers_at_their_bounds_are_taken(void **state)
{
	(void)state;
	cw_for_each_row(row, id)
	{
		if (row->type != CF_CFG_SIZE || !cf_row_has_json_key(row))
			continue;
		assert_int_equal(row->min % row->multiple, 0);
		cw_assert_taken(row, id, cw_number_text(row->min));
		cw_assert_taken(row, id,
				cw_number_text(row->max / row->multiple *
					       row->multiple));
	}
}

static void numbers_past_their_bounds_are_refused(void **state)
{
	(void)state;
	cw_for_each_row(row, id)
	{
		if (row->type != CF_CFG_SIZE || !cf_row_has_json_key(row))
			continue;
		if (row->min)
			cw_assert_refused(row, id,
					  cw_number_text(row->min - 1));
		cw_assert_refused(row, id, cw_number_text(row->max + 1));
		cw_assert_refused(row, id, "-2");
		if (row->multiple > 1)
			cw_assert_refused(row, id,
					  cw_number_text(row->min + 1));
	}
}

static void minus_one_means_no_limit_where_the_row_says_so(void **state)
{
	(void)state;
	cw_for_each_row(row, id)
	{
		if (row->type != CF_CFG_SIZE || !cf_row_has_json_key(row))
			continue;
		if (row->flags & CF_CFG_NO_LIMIT)
			cw_assert_taken(row, id, "-1");
		else
			cw_assert_refused(row, id, "-1");
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
	cw_for_each_row(row, id)
	{
		if (!cf_row_has_json_key(row))
			continue;
		cw_assert_refused(row, id, wrong[row->type]);
		cw_assert_refused(row, id, "null");
		cw_assert_refused(row, id, "64.5");
		cw_assert_refused(row, id, "{}");
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
	struct cf_config *c =
		cw_load_text("{\"logging\":{\"level\":\"info\"}}");

	(void)state;
	cw_assert_row(c, CF_CFG_LOGGING_LEVEL, "\"INFO\"", CF_CFG_FROM_JSON);
	cf_config_free(c);
	assert_int_equal(cf_log_level_by_name("Info"), CF_LOG_INFO);
	assert_int_equal(cf_log_level_by_name("info "), -1);
}

static void a_choice_that_is_none_is_refused_and_case_does_not_matter(
	void **state)
{
	struct cf_config *c =
		cw_load_text("{\"logging\":{\"level\":\"debug\"}}");

	(void)state;
	cw_assert_row(c, CF_CFG_LOGGING_LEVEL, "\"DEBUG\"", CF_CFG_FROM_JSON);
	cf_config_free(c);
	cw_for_each_row(row, id)
	{
		if (row->choices) {
			cw_assert_refused(row, id, "\"bogus\"");
			cw_assert_refused(row, id, "\"a\\u0000b\"");
		}
	}
}

static void a_bad_value_is_reported_with_line_column_and_key(void **state)
{
	struct cf_config *c = cw_load_text(
		"// a comment\n"
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
		cw_named_file);
	assert_string_equal(cf_config_note_text(c, 0), head);
	assert_null(cf_config_note_text(c, 1));
	cw_assert_row(c, CF_CFG_MAX_IO_QUEUE_DEPTH, "5", CF_CFG_FROM_JSON);
	assert_string_equal(cf_config_file(c), cw_named_file);
	cf_config_free(c);
}

/* As editors of other systems write it; it has no column. */
static void a_byte_order_mark_is_passed_over(void **state)
{
	struct cf_config *c = cw_load_text("\xef\xbb\xbf{\"execution\": {"
					   "\"max_io_threads\": 99,"
					   "\"max_io_queue_depth\": 5}}");
	char head[64];

	(void)state;
	cw_assert_row(c, CF_CFG_MAX_IO_QUEUE_DEPTH, "5", CF_CFG_FROM_JSON);
	snprintf(head, sizeof(head), "%s:1:16: ", cw_named_file);
	assert_memory_equal(cf_config_note_text(c, 0), head, strlen(head));
	cf_config_free(c);
	c = cw_load_text("\xef\xbb\xbf");
	assert_non_null(cf_config_note_text(c, 0));
	cf_config_free(c);
}

static void a_malformed_file_is_reported_with_line_and_column(void **state)
{
	struct cf_config *c = cw_load_text(
		"{\n  \"execution\": {\n    \"max_io_threads\": x7\n");
	char head[64];

	(void)state;
	snprintf(head, sizeof(head), "%s:3:23: ", cw_named_file);
	cw_assert_note(c, 0, head);
	cw_assert_note(c, 0, "the defaults are used");
	assert_null(cf_config_note_text(c, 1));
	assert_null(cf_config_file(c));
	cw_for_each_row(row, id) assert_int_equal(
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
		struct cf_config *c = cw_load_text(texts[i]);

		assert_non_null(cf_config_note_text(c, 0));
		cw_assert_row(c, CF_CFG_MAX_IO_THREADS, "4",
			      CF_CFG_FROM_DEFAULT);
		cf_config_free(c);
	}
}

static void the_shipped_file_loads_silently_and_equals_the_defaults(
	void **state)
{
	struct cf_config *c;

	(void)state;
	assert_non_null(shipped_file);
	cw_set_env("CUFILE_ENV_PATH_JSON", shipped_file);
	c = cw_load(NULL);
	cw_assert_no_notes(c);
	assert_string_equal(cf_config_file(c), shipped_file);
	cw_for_each_row(row, id)
	{
		/* naming these two would start a log; the slabs replace two
		 * keys */
		bool left_out = id == CF_CFG_LOGGING_LEVEL ||
				id == CF_CFG_LOGGING_DIR ||
				id == CF_CFG_GPU_BOUNCE_SLAB_SIZE_KB ||
				id == CF_CFG_GPU_BOUNCE_SLAB_COUNT ||
				!cf_row_has_json_key(row);

		cw_assert_row(c, id, cw_default_of(id),
			      left_out ? CF_CFG_FROM_DEFAULT :
					 CF_CFG_FROM_JSON);
	}
	cf_config_free(c);
}

#define test(name) cmocka_unit_test_setup_teardown(name, cw_setup, cw_teardown)

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
		test(the_shipped_file_loads_silently_and_equals_the_defaults),
	};

	shipped_file = argc > 1 ? argv[1] : NULL;
	return cmocka_run_group_tests(tests, cw_begin, cw_end);
}

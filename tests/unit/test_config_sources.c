// SPDX-License-Identifier: Apache-2.0
/*
 * Which source a value comes from: the file, the environment, what was set
 * before the open, what is set later.
 */
#include <string.h>
#include "config_world.h"
#include "core/config_value.h"

/* ---- which file ---- */

static void the_system_file_is_read_when_the_environment_names_none(
	void **state)
{
	struct cf_config *c;

	(void)state;
	cw_write_text(cw_system_file,
		      "{\"execution\": {\"max_io_threads\": 7}}");
	cw_system_file_exists = true;
	c = cw_load(NULL);
	cw_assert_row(c, CF_CFG_MAX_IO_THREADS, "7", CF_CFG_FROM_JSON);
	assert_string_equal(cf_config_file(c), CW_SYSTEM_FILE);
	cf_config_free(c);

	c = cw_load_text("{\"execution\": {\"max_io_queue_depth\": 5}}");
	cw_assert_row(c, CF_CFG_MAX_IO_THREADS, "4", CF_CFG_FROM_DEFAULT);
	cw_assert_row(c, CF_CFG_MAX_IO_QUEUE_DEPTH, "5", CF_CFG_FROM_JSON);
	cf_config_free(c);
}

static void a_missing_named_file_gives_the_defaults_and_one_note(void **state)
{
	struct cf_config *c;

	(void)state;
	cw_write_text(cw_system_file,
		      "{\"execution\": {\"max_io_threads\": 7}}");
	cw_system_file_exists = true;
	cw_set_env("CUFILE_ENV_PATH_JSON", "/nonexistent/cufile.json");
	c = cw_load(NULL);
	cw_assert_row(c, CF_CFG_MAX_IO_THREADS, "4", CF_CFG_FROM_DEFAULT);
	cw_assert_note(c, 0, "/nonexistent/cufile.json: No such file");
	assert_null(cf_config_note_text(c, 1));
	cf_config_free(c);
}

static void a_directory_or_a_device_is_no_configuration(void **state)
{
	static const char *const paths[] = { "/tmp", "/dev/zero" };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct cf_config *c;

		cw_set_env("CUFILE_ENV_PATH_JSON", paths[i]);
		c = cw_load(NULL);
		cw_assert_note(c, 0, paths[i]);
		assert_null(cf_config_file(c));
		cf_config_free(c);
	}
}

/* ---- the environment ---- */

static void every_variable_is_taken_and_wins_over_the_file(void **state)
{
	(void)state;
	cw_for_each_row(row, id)
	{
		const char *value = cw_other_value(row);
		struct cf_config *c;

		if (!row->env)
			continue;
		cw_write_text(cw_named_file,
			      cf_row_has_json_key(row) ?
				      cw_nest(row->key, cw_default_of(id)) :
				      "{}");
		cw_set_env("CUFILE_ENV_PATH_JSON", cw_named_file);
		cw_set_env(row->env, cw_bare(value));
		c = cw_load(NULL);
		cw_assert_no_notes(c);
		cw_assert_row(c, id, value, CF_CFG_FROM_ENV);
		cf_config_free(c);
		cw_clear_env();
	}
}

static void a_bad_variable_is_reported_and_the_file_stands(void **state)
{
	(void)state;
	cw_for_each_row(row, id)
	{
		struct cf_config *c;

		if (!row->env || (row->type == CF_CFG_STRING && !row->choices))
			continue;
		cw_set_env("CUFILE_ENV_PATH_JSON", cw_named_file);
		cw_write_text(cw_named_file,
			      cf_row_has_json_key(row) ?
				      cw_nest(row->key, cw_other_value(row)) :
				      "{}");
		cw_set_env(row->env, "7x");
		c = cw_load(NULL);
		cw_assert_note(c, 0, row->env);
		assert_null(cf_config_note_text(c, 1));
		if (cf_row_has_json_key(row))
			cw_assert_row(c, id, cw_other_value(row),
				      CF_CFG_FROM_JSON);
		else
			cw_assert_row(c, id, cw_default_of(id),
				      CF_CFG_FROM_DEFAULT);
		cf_config_free(c);
		cw_clear_env();
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

		cw_clear_env();
		cw_set_env(cases[i].name, cases[i].value);
		c = cw_load(NULL);
		if (cases[i].result)
			cw_assert_row(c, cases[i].id, cases[i].result,
				      CF_CFG_FROM_ENV);
		else
			cw_assert_note(c, 0, cases[i].name);
		cf_config_free(c);
	}
}

static void an_empty_variable_counts_only_for_the_log_path(void **state)
{
	(void)state;
	cw_for_each_row(row, id)
	{
		struct cf_config *c;

		if (!row->env)
			continue;
		cw_clear_env();
		cw_set_env(row->env, "");
		c = cw_load(NULL);
		cw_assert_no_notes(c);
		cw_assert_row(c, id, cw_default_of(id),
			      id == CF_CFG_LOGFILE_PATH ? CF_CFG_FROM_ENV :
							  CF_CFG_FROM_DEFAULT);
		cf_config_free(c);
	}
}

/* ---- staged and runtime values ---- */

static void a_staged_value_wins_over_environment_and_file(void **state)
{
	(void)state;
	cw_for_each_row(row, id)
	{
		struct cf_config *c;

		if (row->family == CF_PARAM_NONE)
			continue;
		cw_clear_env();
		if (cf_row_has_json_key(row)) {
			cw_write_text(cw_named_file,
				      cw_nest(row->key, cw_default_of(id)));
			cw_set_env("CUFILE_ENV_PATH_JSON", cw_named_file);
		}
		if (row->env)
			cw_set_env(row->env, cw_bare(cw_default_of(id)));
		cw_stage_other(id);
		c = cw_load(cf_config_staged());
		cw_assert_no_notes(c);
		cw_assert_row(c, id, cw_other_value(row), CF_CFG_FROM_STAGED);
		cf_config_free(c);
		cf_staged_clear(cf_config_staged());
	}
}

static void a_staged_value_out_of_range_gives_way_to_the_default(void **state)
{
	(void)state;
	cw_for_each_row(row, id)
	{
		struct cf_config *c;

		if (row->family != CF_PARAM_SIZET)
			continue;
		cw_write_text(cw_named_file,
			      cw_nest(row->key, cw_other_value(row)));
		cw_set_env("CUFILE_ENV_PATH_JSON", cw_named_file);
		cf_staged_set_size(cf_config_staged(), (enum cf_cfg)id,
				   row->max + 1);
		c = cw_load(cf_config_staged());
		cw_assert_note(c, 0, row->key);
		cw_assert_row(c, id, cw_default_of(id), CF_CFG_FROM_DEFAULT);
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
	c = cw_load(s);
	cw_assert_no_notes(c);
	cw_assert_row(c, CF_CFG_POSIX_POOL_SLAB_SIZE_KB,
		      "[4096, 65536, 1048576, 16777216]", CF_CFG_FROM_STAGED);
	cw_assert_row(c, CF_CFG_POSIX_POOL_SLAB_COUNT, "[10, 5, 3, 2]",
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
	c = cw_load(cf_config_staged());
	cw_assert_note(c, 0, "posix_pool_slab_size_kb");
	cw_assert_row(c, CF_CFG_POSIX_POOL_SLAB_SIZE_KB, "[4, 1024, 16384]",
		      CF_CFG_FROM_DEFAULT);
	cf_config_free(c);
}

static void clearing_forgets_staged_values_except_the_gpu_slabs(void **state)
{
	struct cf_config_staged *s = cf_config_staged();

	(void)state;
	cw_for_each_row(row, id)
	{
		if (row->type != CF_CFG_STRINGS)
			cw_stage_other(id);
	}
	cf_staged_clear(s);
	cw_for_each_row(row, id)
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
	struct cf_config *c = cw_load(NULL);

	(void)state;
	cf_config_set_runtime_size(c, CF_CFG_MAX_DIRECT_IO_SIZE_KB, 64);
	cf_config_set_runtime_bool(c, CF_CFG_USE_POLL_MODE, true);
	cw_assert_row(c, CF_CFG_MAX_DIRECT_IO_SIZE_KB, "64",
		      CF_CFG_FROM_RUNTIME);
	cw_assert_row(c, CF_CFG_USE_POLL_MODE, "true", CF_CFG_FROM_RUNTIME);
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
	cw_write_text(cw_named_file, "{\"profile\": {\"cufile_stats\": 1},\n"
				     " \"logging\": {\n\n"
				     "  \"max_file_size_mb\": 7}}");
	cw_set_env("CUFILE_ENV_PATH_JSON", cw_named_file);
	cw_set_env("CUFILE_FORCE_COMPAT_MODE", "1");
	cf_staged_set_size(staged, CF_CFG_IO_BATCHSIZE, 64);
	c = cw_load(staged);
	cf_staged_reset(staged);
	snprintf(want, sizeof(want), "%s:4", cw_named_file);
	assert_string_equal(origin(c, CF_CFG_LOGGING_MAX_FILE_SIZE_MB), want);
	snprintf(want, sizeof(want), "%s:1", cw_named_file);
	assert_string_equal(origin(c, CF_CFG_STATS_LEVEL), want);
	assert_string_equal(origin(c, CF_CFG_FORCE_COMPAT_MODE),
			    "environment CUFILE_FORCE_COMPAT_MODE");
	assert_string_equal(origin(c, CF_CFG_IO_BATCHSIZE), "API");
	assert_string_equal(origin(c, CF_CFG_NVTX), "default");
	cf_config_set_runtime_bool(c, CF_CFG_USE_POLL_MODE, true);
	assert_string_equal(origin(c, CF_CFG_USE_POLL_MODE), "API");
	cf_config_free(c);
}

#define test(name) cmocka_unit_test_setup_teardown(name, cw_setup, cw_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
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

	return cmocka_run_group_tests(tests, cw_begin, cw_end);
}

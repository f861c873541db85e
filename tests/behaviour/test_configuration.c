// SPDX-License-Identifier: Apache-2.0
/* configuration - what a program can ask about it (opencufile.h). */
#include "fresh.h"

#include <opencufile.h>
#include <stdlib.h>
#include <string.h>

#define BAD CU_FILE_INVALID_VALUE

/* The row of this key. */
static ocf_config_t row(const char *key)
{
	ocf_config_t config = { .struct_size = sizeof(config) };

	for (unsigned i = 0; !ocf_config_get(i, &config).err; i++)
		if (!strcmp(config.key, key))
			return config;
	fail_msg("there is no key %s", key);
	return config;
}

static void assert_value(const char *key, const char *value, const char *origin)
{
	ocf_config_t config = row(key);

	assert_string_equal(config.value, value);
	assert_string_equal(config.origin, origin);
}

static void every_value_is_told_with_its_origin(void **state)
{
	const char *file = fresh_text_file(
		"cufile.json", "{\n\"execution\": {\n\"max_io_threads\": 3},\n"
			       "\"fs\": {\"nfs\": {\"rdma_dev_addr_list\":"
			       " [\"10.0.0.1\", \"10.0.0.2\"]}},\n"
			       "\"properties\": {\"posix_pool_slab_size_kb\":"
			       " [4, 64], \"posix_pool_slab_count\": [1, 2]}}");
	char origin[512];

	setenv("CUFILE_ENV_PATH_JSON", file, 1);
	setenv("CUFILE_ALLOW_COMPAT_MODE", "true", 1);
	assert_ok(cuFileSetParameterSizeT(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE,
					  77));
	assert_ok(cuFileDriverOpen());
	assert_ok(cuFileDriverSetMaxDirectIOSize(1024));

	snprintf(origin, sizeof(origin), "%s:3", file);
	assert_value("execution.max_io_threads", "3", origin);
	snprintf(origin, sizeof(origin), "%s:4", file);
	assert_value("fs.nfs.rdma_dev_addr_list",
		     "[\"10.0.0.1\", \"10.0.0.2\"]", origin);
	snprintf(origin, sizeof(origin), "%s:5", file);
	assert_value("properties.posix_pool_slab_size_kb", "[4, 64]", origin);
	assert_value("properties.allow_compat_mode", "true",
		     "environment CUFILE_ALLOW_COMPAT_MODE");
	assert_value("properties.io_batchsize", "77", "API");
	assert_value("properties.max_direct_io_size_kb", "1024", "API");
	assert_value("execution.parallel_io", "true", "default");
	assert_value("logging.level", "\"ERROR\"", "default");
	assert_ok(cuFileDriverClose());
}

static void every_row_has_a_help_and_what_does_nothing_says_why(void **state)
{
	ocf_config_t config = { .struct_size = sizeof(config) };
	unsigned nr = 0, idle = 0;

	for (; !ocf_config_get(nr, &config).err; nr++) {
		assert_true(strlen(config.help) > 3);
		if (config.no_effect)
			assert_true(strlen(config.no_effect) > 10);
		idle += config.no_effect != NULL;
	}
	assert_true(nr > 100);
	assert_true(idle > 0 && idle < nr);
	assert_string_equal(row("fs.weka.rdma_write_support").no_effect,
			    "there is no RDMA transport");
	assert_null(row("properties.allow_compat_mode").no_effect);
	assert_string_equal(row("properties.allow_compat_mode").env,
			    "CUFILE_ALLOW_COMPAT_MODE");
	assert_int_equal(ocf_config_get(nr, &config).err, BAD);
}

static void asking_opens_the_driver_and_is_no_use(void **state)
{
	assert_value("profile.nvtx", "false", "default");
	assert_int_equal(cuFileUseCount(), 0);
	assert_code(cuFileSetParameterSizeT(
			    CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, 77),
		    CU_FILE_DRIVER_ALREADY_OPEN);
}

static void what_the_file_has_wrong_is_told_line_by_line(void **state)
{
	const char *file = fresh_text_file(
		"cufile.json", "{\"profile\": {\"cufile_stats\": 1,\n"
			       "  \"cufile_stats\": 2},\n"
			       " \"nonsense\": 1,\n"
			       " \"execution\": {\"max_io_threads\": 99}}");
	char text[512], want[512];

	setenv("CUFILE_ENV_PATH_JSON", file, 1);
	snprintf(want, sizeof(want),
		 "%s:2:3: profile.cufile_stats: given twice, the last one "
		 "counts",
		 file);
	assert_ok(ocf_config_note(0, text, sizeof(text)));
	assert_string_equal(text, want);
	snprintf(want, sizeof(want), "%s:3:2: nonsense: unknown key, ignored",
		 file);
	assert_ok(ocf_config_note(1, text, sizeof(text)));
	assert_string_equal(text, want);
	assert_ok(ocf_config_note(2, text, sizeof(text)));
	assert_non_null(strstr(text, ":4:16: execution.max_io_threads: "
				     "ignored: expected an integer from 0"));
	assert_int_equal(ocf_config_note(3, text, sizeof(text)).err, BAD);
	assert_ok(ocf_config_note(0, text, 4));
	assert_int_equal(strlen(text), 3);
}

static void bad_arguments_are_refused(void **state)
{
	ocf_config_t config = { .struct_size = sizeof(config) - 1 };
	char text[8];

	assert_code(ocf_config_get(0, NULL), BAD);
	assert_code(ocf_config_get(0, &config), BAD);
	config.struct_size = sizeof(config);
	assert_code(ocf_config_get((unsigned)-1, &config), BAD);
	assert_code(ocf_config_note(0, NULL, 8), BAD);
	assert_code(ocf_config_note(0, text, 0), BAD);
	assert_code(ocf_config_note((unsigned)-1, text, sizeof(text)), BAD);
}

static const struct fresh_test tests[] = {
	FRESH(every_value_is_told_with_its_origin),
	FRESH(every_row_has_a_help_and_what_does_nothing_says_why),
	FRESH(asking_opens_the_driver_and_is_no_use),
	FRESH(what_the_file_has_wrong_is_told_line_by_line),
	FRESH(bad_arguments_are_refused),
};

FRESH_MAIN(tests, 60)

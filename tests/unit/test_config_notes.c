// SPDX-License-Identifier: Apache-2.0
/* What reading the configuration has to say: of files, keys and variables. */
#include <string.h>
#include <time.h>
#include "config_world.h"

static int load_result(const char *text, const struct cf_config_staged *staged)
{
	struct cf_config *c = cf_config_new();
	int err;

	cw_write_text(cw_named_file, text);
	cw_set_env("CUFILE_ENV_PATH_JSON", cw_named_file);
	err = cf_config_load(c, staged);
	cw_assert_row(c, CF_CFG_MAX_IO_THREADS, "4", CF_CFG_FROM_DEFAULT);
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
		cw_load_text("{\"new\": {\"a\": 1, \"b\": 2},\n"
			     "\"properties\": {\"max_direct_io_size\": 64},\n"
			     "\"fs\": {\"block\": {\"nvme\": {}}},\n"
			     "\"properties.io_batchsize\": 7,\n"
			     "\"CUFILE_CQ_DEPTH\": 3,\n"
			     "\"execution\": {\"max_io_threads\": 2}}");

	(void)state;
	cw_assert_note(c, 0, ":1:2: new: unknown key");
	cw_assert_note(c, 1,
		       ":2:16: properties.max_direct_io_size: unknown key");
	cw_assert_note(c, 2, ":3:8: fs.block: unknown key");
	cw_assert_note(c, 3, ":4:1: top level: unknown key");
	cw_assert_note(c, 4, ":5:1: CUFILE_CQ_DEPTH: unknown key");
	assert_null(cf_config_note_text(c, 5));
	cw_assert_row(c, CF_CFG_MAX_IO_THREADS, "2", CF_CFG_FROM_JSON);
	cw_assert_row(c, CF_CFG_CQ_DEPTH, "0", CF_CFG_FROM_DEFAULT);
	cf_config_free(c);
}

/* Loads a file with one unknown key; the note ends so. */
static void assert_meant(const char *text, const char *meant)
{
	struct cf_config *c = cw_load_text(text);
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
		c = cw_load_text(text);
		snprintf(want, sizeof(want), ": %s ignored: expected an ",
			 values[i][1]);
		assert_non_null(strstr(cf_config_note_text(c, 0), want));
		cw_assert_row(c, CF_CFG_MAX_IO_THREADS, "4",
			      CF_CFG_FROM_DEFAULT);
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
	cw_set_env("CUFILE_LOG_LEVEL", "INFO");
	cw_set_env("CUFILE_MINE", "1");
	cw_set_env("OCF_HYBRIDE", "off");
	cw_set_env("OCF_ROOT", "/usr/lib/ocf"); /* Pacemaker's */
	cw_set_env(longer, "1");
	c = cw_load_text("{}");
	cw_assert_note(
		c, 0,
		"environment: CUFILE_LOG_LEVEL: unknown, ignored; did you "
		"mean CUFILE_LOGGING_LEVEL?");
	cw_assert_note(c, 1, "environment: CUFILE_MINE: unknown, ignored");
	assert_null(strstr(cf_config_note_text(c, 1), "mean"));
	cw_assert_note(c, 2,
		       "environment: OCF_HYBRIDE: unknown, ignored; did you "
		       "mean OCF_HYBRID?");
	cw_assert_note(c, 3, "X: unknown, ignored");
	assert_null(strstr(cf_config_note_text(c, 3), "mean"));
	assert_null(cf_config_note_text(c, 4));
	cf_config_free(c);
}

static void the_last_of_duplicate_keys_wins_and_is_reported(void **state)
{
	struct cf_config *c =
		cw_load_text("{\"execution\": {\"max_io_threads\": 2},\n"
			     " \"execution\": {\"max_io_threads\": 3}}");

	(void)state;
	cw_assert_row(c, CF_CFG_MAX_IO_THREADS, "3", CF_CFG_FROM_JSON);
	cw_assert_note(c, 0, ":2:2: execution: given twice");
	cw_assert_note(c, 1, ":2:16: execution.max_io_threads: given twice");
	assert_null(cf_config_note_text(c, 2));
	cf_config_free(c);
}

/* Notes are lines of the log, and gdscheck prints them. */
static void a_note_of_what_was_read_is_one_plain_line(void **state)
{
	struct cf_config *c = cw_load_text(
		"{\"a\\nb\": 1, \"logging\": {\"level\": \"\\u001b[2J\"}}");

	(void)state;
	cw_assert_note(c, 0, ":1:2: a?b: unknown key, ignored");
	cw_assert_note(c, 1,
		       "logging.level: \"?[2J\" ignored: expected one of");
	assert_null(cf_config_note_text(c, 2));
	cf_config_free(c);
}

static void old_spellings_are_understood(void **state)
{
	const char *const *names;
	struct cf_config *c =
		cw_load_text("{\"blacklist\": {\"mounts\": [\"/a\", \"/b\"]},"
			     "\"profile\": {\"io_batchsize\": 9}}");

	(void)state;
	cw_assert_no_notes(c);
	assert_int_equal(cf_config_strings(c, CF_CFG_DENYLIST_MOUNTS, &names),
			 2);
	assert_string_equal(names[1], "/b");
	cw_assert_row(c, CF_CFG_IO_BATCHSIZE, "9", CF_CFG_FROM_JSON);
	cf_config_free(c);
}

static void mount_tables_are_accepted_in_silence(void **state)
{
	struct cf_config *c =
		cw_load_text("{\"fs\":{\"lustre\":{\"mount_table\":{\"/l\":"
			     "{\"rdma_dev_addr_list\":[\"10.0.0.1\"]}}}}}");

	(void)state;
	cw_assert_no_notes(c);
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
		c = cw_load_text(text);
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
		c = cw_load_text(text);
		cw_assert_row(c, CF_CFG_RDMA_DC_KEY, "\"0xffeeddcc\"",
			      CF_CFG_FROM_DEFAULT);
		assert_non_null(cf_config_note_text(c, 0));
		assert_non_null(strstr(cf_config_note_text(c, 0),
				       "expected a hexadecimal number"));
		cf_config_free(c);
	}
	cw_set_env("CUFILE_RDMA_DC_KEY", "0xBeef");
	c = cw_load_text("{\"properties\":{\"rdma_access_mask\":\"0X3\"}}");
	cw_assert_no_notes(c);
	cw_assert_row(c, CF_CFG_RDMA_ACCESS_MASK, "\"0X3\"", CF_CFG_FROM_JSON);
	cw_assert_row(c, CF_CFG_RDMA_DC_KEY, "\"0xBeef\"", CF_CFG_FROM_ENV);
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
	c = cw_load_text(text);
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
	cf_config_free(cw_load_text(text));
	assert_in_range(clock() - start, 0, 3 * CLOCKS_PER_SEC);
}

#define test(name) cmocka_unit_test_setup_teardown(name, cw_setup, cw_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
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
	};

	return cmocka_run_group_tests(tests, cw_begin, cw_end);
}

// SPDX-License-Identifier: Apache-2.0
/* params - parameters by call, by file and by environment. */
#include "fresh.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BAD CU_FILE_INVALID_VALUE
#define OPEN CU_FILE_DRIVER_ALREADY_OPEN

#define NR_SIZES 12
#define NR_BOOLS 14
#define NR_STRINGS 4

static size_t get_size(int param)
{
	size_t value = 0xeeeeeeee;

	assert_ok(cuFileGetParameterSizeT((CUFileSizeTConfigParameter_t)param,
					  &value));
	return value;
}

static bool get_bool(int param)
{
	bool value;

	assert_ok(cuFileGetParameterBool((CUFileBoolConfigParameter_t)param,
					 &value));
	return value;
}

static const char *get_string(int param)
{
	static char text[256];

	assert_ok(cuFileGetParameterString((CUFileStringConfigParameter_t)param,
					   text, sizeof(text)));
	return text;
}

static CUfileError_t set_size(int param, size_t value)
{
	return cuFileSetParameterSizeT((CUFileSizeTConfigParameter_t)param,
				       value);
}

static CUfileError_t set_bool(int param, bool value)
{
	return cuFileSetParameterBool((CUFileBoolConfigParameter_t)param,
				      value);
}

static CUfileError_t set_slabs(void)
{
	static const size_t sizes[] = { 4, 64 }, counts[] = { 3, 2 };

	return cuFileSetParameterPosixPoolSlabArray(sizes, counts, 2);
}

static CUfileError_t set_gpu_slabs(void)
{
	static const size_t sizes[] = { 64 }, counts[] = { 2 };

	return cuFileSetParameterGpuBounceBufferSlabArray(sizes, counts, 1);
}

/* Every family of SetParameter answers the same. */
static void assert_sets(int code)
{
	assert_code(set_size(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, 64), code);
	assert_code(set_bool(CUFILE_PARAM_FORCE_ODIRECT_MODE, true), code);
	assert_code(
		cuFileSetParameterString(CUFILE_PARAM_LOGGING_LEVEL, "ERROR"),
		code);
	assert_code(set_slabs(), code);
	assert_code(set_gpu_slabs(), code);
}

/* "SetParameter after open"; contract 3.13. */
static void set_parameter_after_open_is_refused_5026(void **state)
{
	assert_ok(cuFileDriverOpen());
	assert_sets(OPEN);
	assert_int_equal(get_size(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE), 128);
	assert_ok(cuFileDriverClose_v2());
	assert_sets(0);
}

/* "5026 once GetProperties ... has opened implicitly". */
static void set_parameter_after_an_implicit_open_by_properties_is_refused_5026(
	void **state)
{
	CUfileDrvProps_t props;

	assert_ok(cuFileDriverGetProperties(&props));
	assert_sets(OPEN);
}

/* "5026 once ... a Driver setter ... has opened implicitly". */
static void set_parameter_after_an_implicit_open_by_a_setter_is_refused_5026(
	void **state)
{
	assert_ok(cuFileDriverSetPollMode(false, 4));
	assert_sets(OPEN);
}

/* "also after an implicit open": a buffer, contract 3.7. */
static void set_parameter_after_an_implicit_open_by_a_buffer_is_refused_5026(
	void **state)
{
	static char buf[64];

	assert_ok(cuFileBufRegister(buf, sizeof(buf), 0));
	assert_sets(OPEN);
}

/* "works, also after GetParameter, MinMax, slab get, GetVersion". */
static void set_parameter_works_in_a_fresh_process_after_gets(void **state)
{
	size_t sizes[3], counts[3], low, high;
	int version, level;
	char text[64];

	(void)get_size(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE);
	(void)get_bool(CUFILE_PARAM_FORCE_ODIRECT_MODE);
	assert_ok(cuFileGetParameterString(CUFILE_PARAM_LOGGING_LEVEL, text,
					   sizeof(text)));
	assert_ok(cuFileGetParameterMinMaxValue(
		CUFILE_PARAM_POLLTHRESHOLD_SIZE_KB, &low, &high));
	assert_ok(cuFileGetParameterPosixPoolSlabArray(sizes, counts, 3));
	assert_ok(cuFileGetVersion(&version));
	assert_ok(cuFileSetStatsLevel(1));
	assert_ok(cuFileGetStatsLevel(&level));
	assert_sets(0);
}

/* "an applied value shows in GetParameter and in GetProperties alike". */
static void a_staged_value_shows_in_the_parameter_and_in_the_properties(
	void **state)
{
	CUfileDrvProps_t props;

	assert_ok(set_size(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, 64));
	assert_ok(
		set_size(CUFILE_PARAM_PROPERTIES_MAX_DIRECT_IO_SIZE_KB, 1024));
	assert_ok(set_size(CUFILE_PARAM_PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB,
			   65536));
	assert_ok(set_size(CUFILE_PARAM_PROPERTIES_PER_BUFFER_CACHE_SIZE_KB,
			   512));
	assert_ok(set_size(
		CUFILE_PARAM_PROPERTIES_MAX_DEVICE_PINNED_MEM_SIZE_KB, 2048));
	assert_ok(set_size(CUFILE_PARAM_PROPERTIES_BATCH_IO_TIMEOUT_MS, 7));
	assert_ok(set_size(CUFILE_PARAM_POLLTHRESHOLD_SIZE_KB, 16));
	assert_ok(set_bool(CUFILE_PARAM_PROPERTIES_USE_POLL_MODE, true));
	assert_ok(set_bool(CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE, false));
	assert_ok(set_bool(CUFILE_PARAM_EXECUTION_PARALLEL_IO, false));
	assert_int_equal(get_size(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE), 64);

	assert_ok(cuFileDriverOpen());
	assert_int_equal(get_size(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE), 64);
	assert_true(get_bool(CUFILE_PARAM_PROPERTIES_USE_POLL_MODE));
	assert_ok(cuFileDriverGetProperties(&props));
	assert_int_equal(props.max_batch_io_size, 64);
	assert_int_equal(props.nvfs.max_direct_io_size, 1024);
	assert_int_equal(props.max_device_cache_size, 65536);
	assert_int_equal(props.max_device_pinned_mem_size, 2048);
	assert_int_equal(props.max_batch_io_timeout_msecs, 7);
	assert_int_equal(props.nvfs.poll_thresh_size, 16);
	assert_int_equal(props.nvfs.dcontrolflags, 0x1);
	assert_int_equal(props.fflags, 1u << CU_FILE_BATCH_IO_SUPPORTED);
	assert_ok(cuFileDriverClose_v2());
}

/* A runtime setter is seen by both too; contract 3.5. */
static void a_runtime_setter_shows_in_the_parameter(void **state)
{
	assert_ok(cuFileDriverSetMaxDirectIOSize(64));
	assert_ok(cuFileDriverSetPollMode(true, 12));
	assert_int_equal(
		get_size(CUFILE_PARAM_PROPERTIES_MAX_DIRECT_IO_SIZE_KB), 64);
	assert_int_equal(get_size(CUFILE_PARAM_POLLTHRESHOLD_SIZE_KB), 12);
	assert_true(get_bool(CUFILE_PARAM_PROPERTIES_USE_POLL_MODE));
}

/* Contract 3.13: the last wins; applied and cleared at the next open. */
static void staged_values_are_used_by_one_open(void **state)
{
	assert_ok(set_size(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, 32));
	assert_ok(set_size(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, 64));
	assert_ok(cuFileDriverOpen());
	assert_int_equal(get_size(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE), 64);
	assert_ok(cuFileDriverClose_v2());
	assert_ok(cuFileDriverOpen());
	assert_int_equal(get_size(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE), 128);
	assert_ok(cuFileDriverClose_v2());
}

/* Contract 3.13: Set does not check; the open logs and takes the default. */
static void a_staged_value_out_of_range_gives_way_to_the_default(void **state)
{
	assert_ok(set_size(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, 100000));
	assert_int_equal(get_size(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE),
			 100000);
	assert_ok(cuFileDriverOpen());
	assert_int_equal(get_size(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE), 128);
	assert_non_null(strstr(fresh_log(), "properties.io_batchsize"));
}

/* "parameter id out of range, NULL". */
static void a_parameter_that_does_not_exist_is_refused_5022(void **state)
{
	static const int off[] = { -1, 1000, INT32_MAX, INT32_MIN };
	size_t size, other;
	char text[64];
	bool flag;

	for (size_t i = 0; i < 8; i++) {
		int far = off[i % 4];
		int s = i < 4 ? NR_SIZES : far, b = i < 4 ? NR_BOOLS : far;
		int t = i < 4 ? NR_STRINGS : far;

		assert_code(cuFileGetParameterSizeT(
				    (CUFileSizeTConfigParameter_t)s, &size),
			    BAD);
		assert_code(set_size(s, 1), BAD);
		assert_code(
			cuFileGetParameterMinMaxValue(
				(CUFileSizeTConfigParameter_t)s, &size, &other),
			BAD);
		assert_code(cuFileGetParameterBool(
				    (CUFileBoolConfigParameter_t)b, &flag),
			    BAD);
		assert_code(set_bool(b, true), BAD);
		assert_code(cuFileGetParameterString(
				    (CUFileStringConfigParameter_t)t, text, 64),
			    BAD);
		assert_code(cuFileSetParameterString(
				    (CUFileStringConfigParameter_t)t, "x"),
			    BAD);
	}
}

/* "parameter id out of range, NULL". */
static void a_null_argument_of_a_parameter_call_is_refused_5022(void **state)
{
	const int size = CUFILE_PARAM_POLLTHRESHOLD_SIZE_KB;
	size_t value = 4;
	char text[8];

	assert_code(cuFileGetParameterSizeT(size, NULL), BAD);
	assert_code(cuFileGetParameterBool(CUFILE_PARAM_PROFILE_NVTX, NULL),
		    BAD);
	assert_code(
		cuFileGetParameterString(CUFILE_PARAM_LOGGING_LEVEL, NULL, 64),
		BAD);
	assert_code(
		cuFileGetParameterString(CUFILE_PARAM_LOGGING_LEVEL, text, 0),
		BAD);
	assert_code(
		cuFileGetParameterString(CUFILE_PARAM_LOGGING_LEVEL, text, -1),
		BAD);
	assert_code(cuFileSetParameterString(CUFILE_PARAM_LOGGING_LEVEL, NULL),
		    BAD);
	assert_code(cuFileGetParameterMinMaxValue(size, NULL, &value), BAD);
	assert_code(cuFileGetParameterMinMaxValue(size, &value, NULL), BAD);
	assert_code(cuFileSetParameterPosixPoolSlabArray(NULL, &value, 1), BAD);
	assert_code(cuFileSetParameterPosixPoolSlabArray(&value, NULL, 1), BAD);
	assert_code(cuFileSetParameterPosixPoolSlabArray(&value, &value, 0),
		    BAD);
	assert_code(cuFileSetParameterPosixPoolSlabArray(&value, &value, -1),
		    BAD);
	assert_code(cuFileGetParameterPosixPoolSlabArray(NULL, &value, 3), BAD);
	assert_code(cuFileGetParameterPosixPoolSlabArray(&value, NULL, 3), BAD);
	assert_code(cuFileSetParameterGpuBounceBufferSlabArray(NULL, &value, 1),
		    BAD);
	assert_code(cuFileGetParameterGpuBounceBufferSlabArray(NULL, &value, 1),
		    BAD);
}

/* "MinMax of profile.stats". */
static void bounds_of_the_statistics_level_are_refused_5022(void **state)
{
	size_t low, high;

	assert_code(cuFileGetParameterMinMaxValue(CUFILE_PARAM_PROFILE_STATS,
						  &low, &high),
		    BAD);
}

/* "values and bounds"; record section a. */
static void bounds_are_those_of_the_record(void **state)
{
	static const size_t bounds[NR_SIZES][2] = {
		[1] = { 1, 256 },	 [2] = { 0, 32 },
		[3] = { 4, 4294967295 }, [4] = { 0, 8 },
		[5] = { 64, 16384 },	 [6] = { 0, 268435456 },
		[7] = { 64, 16384 },	 [8] = { 64, 268435456 },
		[9] = { 1, 256 },	 [10] = { 4, 18014398509481980 },
		[11] = { 1, 1000 },
	};

	for (int param = 1; param < NR_SIZES; param++) {
		size_t low = 0, high = 0, value;

		assert_ok(cuFileGetParameterMinMaxValue(
			(CUFileSizeTConfigParameter_t)param, &low, &high));
		assert_int_equal(low, bounds[param][0]);
		assert_int_equal(high, bounds[param][1]);
		value = get_size(param);
		assert_in_range(value, low, high);
	}
}

static bool is_on(int param)
{
	return param == CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE ||
	       param == CUFILE_PARAM_EXECUTION_PARALLEL_IO ||
	       param == CUFILE_PARAM_PROPERTIES_ALLOW_SYSTEM_MEMORY;
}

/* Contract 3.13: since 1.16 there is no such parameter any more. */
static void the_parameter_for_nvtx_is_refused_5022(void **state)
{
	bool value;

	assert_code(cuFileGetParameterBool(CUFILE_PARAM_PROFILE_NVTX, &value),
		    BAD);
	assert_code(set_bool(CUFILE_PARAM_PROFILE_NVTX, false), BAD);
}

/* Record, section a: what does not depend on the machine's own file. */
static void defaults_are_those_of_the_record(void **state)
{
	assert_int_equal(get_size(CUFILE_PARAM_PROFILE_STATS), 0);
	assert_int_equal(get_size(CUFILE_PARAM_EXECUTION_MAX_IO_QUEUE_DEPTH),
			 128);
	assert_int_equal(
		get_size(CUFILE_PARAM_PROPERTIES_MAX_DEVICE_PINNED_MEM_SIZE_KB),
		33554432);
	assert_int_equal(get_size(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE), 128);
	assert_int_equal(get_size(CUFILE_PARAM_POLLTHRESHOLD_SIZE_KB), 4);
	assert_int_equal(get_size(CUFILE_PARAM_PROPERTIES_BATCH_IO_TIMEOUT_MS),
			 5);
	for (int param = 0; param < NR_BOOLS; param++)
		if (param != CUFILE_PARAM_PROFILE_NVTX)
			assert_int_equal(get_bool(param), is_on(param));
	assert_string_equal(get_string(CUFILE_PARAM_LOGGING_LEVEL), "ERROR");
}

/* Record, section a; contract 3.13. */
static void slabs_are_told_only_for_their_exact_number(void **state)
{
	static const size_t want[2][3] = { { 4, 1024, 16384 },
					   { 128, 64, 64 } };
	size_t sizes[4] = { 0 }, counts[4] = { 0 };

	for (int len = 0; len < 5; len++)
		assert_code(cuFileGetParameterPosixPoolSlabArray(sizes, counts,
								 len),
			    len == 3 ? 0 : BAD);
	assert_ok(cuFileGetParameterPosixPoolSlabArray(sizes, counts, 3));
	assert_memory_equal(sizes, want[0], sizeof(want[0]));
	assert_memory_equal(counts, want[1], sizeof(want[1]));
	/* and not more than that is written */
	assert_int_equal(sizes[3], 0);
	assert_int_equal(counts[3], 0);
	/* none before somebody sets some */
	assert_code(
		cuFileGetParameterGpuBounceBufferSlabArray(sizes, counts, 1),
		BAD);
	assert_ok(set_gpu_slabs());
	assert_ok(cuFileGetParameterGpuBounceBufferSlabArray(sizes, counts, 1));
	assert_int_equal(sizes[0], 64);
	assert_int_equal(counts[0], 2);
}

/* Contract 3.13: "survives close". */
static void gpu_slabs_survive_a_close(void **state)
{
	size_t size = 0, count = 0;

	assert_ok(set_gpu_slabs());
	assert_ok(cuFileDriverOpen());
	assert_ok(cuFileDriverClose_v2());
	assert_ok(cuFileGetParameterGpuBounceBufferSlabArray(&size, &count, 1));
	assert_int_equal(size, 64);
	assert_ok(cuFileDriverOpen());
	assert_ok(cuFileGetParameterGpuBounceBufferSlabArray(&size, &count, 1));
	assert_int_equal(count, 2);
}

/* Contract 3.13: the buffer must take the text and its NUL. */
static void a_string_goes_into_a_buffer_that_just_fits(void **state)
{
	char text[16];

	assert_ok(
		cuFileSetParameterString(CUFILE_PARAM_LOGGING_LEVEL, "DEBUG"));
	assert_code(
		cuFileGetParameterString(CUFILE_PARAM_LOGGING_LEVEL, text, 5),
		BAD);
	assert_ok(
		cuFileGetParameterString(CUFILE_PARAM_LOGGING_LEVEL, text, 6));
	assert_string_equal(text, "DEBUG");
}

/* Contract 3.13: string set. */
static void an_empty_string_and_a_level_there_is_not_are_refused(void **state)
{
	assert_code(cuFileSetParameterString(CUFILE_PARAM_LOGGING_LEVEL, ""),
		    BAD);
	assert_code(cuFileSetParameterString(CUFILE_PARAM_LOG_DIR, ""), BAD);
	assert_code(
		cuFileSetParameterString(CUFILE_PARAM_LOGGING_LEVEL, "LOUD"),
		BAD);
	assert_string_equal(get_string(CUFILE_PARAM_LOGGING_LEVEL), "ERROR");
}

/* Contract 3.13: 5022 if it was never set; empty where set empty. */
static void the_log_path_is_told_only_where_there_is_one(void **state)
{
	char text[64];

	unsetenv("CUFILE_LOGFILE_PATH");
	assert_code(cuFileGetParameterString(CUFILE_PARAM_ENV_LOGFILE_PATH,
					     text, sizeof(text)),
		    BAD);
	setenv("CUFILE_LOGFILE_PATH", "", 1);
	assert_string_equal(get_string(CUFILE_PARAM_ENV_LOGFILE_PATH), "");
	assert_ok(cuFileSetParameterString(CUFILE_PARAM_ENV_LOGFILE_PATH,
					   "/nowhere/x.log"));
	assert_string_equal(get_string(CUFILE_PARAM_ENV_LOGFILE_PATH),
			    "/nowhere/x.log");
}

static const char *use_json(const char *text)
{
	const char *path = fresh_text_file("test.json", text);

	assert_int_equal(setenv("CUFILE_ENV_PATH_JSON", path, 1), 0);
	return path;
}

/* Contract 4.1, 3.13: staged over environment over file over default. */
static void a_staged_value_beats_environment_beats_file(void **state)
{
	use_json("{\"properties\": {\"io_batchsize\": 17,"
		 " \"allow_compat_mode\": true, \"use_pci_p2pdma\": true},"
		 " \"logging\": {\"level\": \"WARN\"}}");
	setenv("CUFILE_LOGGING_LEVEL", "INFO", 1);
	setenv("CUFILE_ALLOW_COMPAT_MODE", "false", 1);
	assert_ok(set_size(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, 19));
	assert_ok(cuFileDriverOpen());
	assert_int_equal(get_size(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE), 19);
	assert_false(get_bool(CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE));
	assert_string_equal(get_string(CUFILE_PARAM_LOGGING_LEVEL), "INFO");
	assert_true(get_bool(CUFILE_PARAM_USE_PCIP2PDMA));
	assert_ok(cuFileDriverClose_v2());
	/* the file's value is back once the staged one is used up */
	assert_ok(cuFileDriverOpen());
	assert_int_equal(get_size(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE), 17);
}

/* "broken JSON". */
static void a_broken_file_opens_with_the_defaults_and_one_log_line(void **state)
{
	const char *path = use_json("{\n  \"properties\": {\n"
				    "    \"io_batchsize\": 17,,\n  }\n}\n");
	char place[300];
	const char *line;

	assert_ok(cuFileDriverOpen());
	assert_int_equal(get_size(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE), 128);
	snprintf(place, sizeof(place), "%s:3:", path);
	line = strstr(fresh_log(), place);
	assert_non_null(line);
	/* the second comma is the 24th character */
	assert_int_equal(atoi(line + strlen(place)), 24);
	assert_null(strstr(line + 1, path));
}

/* "with api_check_aggressive 5002". */
static void a_broken_file_is_refused_5002_under_aggressive_checks(void **state)
{
	use_json("{\"miscellaneous\": {\"api_check_aggressive\": true},, }");
	assert_code(cuFileDriverOpen(), CU_FILE_DRIVER_INVALID_PROPS);
	assert_int_equal(cuFileUseCount(), 0);
	assert_code(cuFileDriverClose_v2(), CU_FILE_DRIVER_NOT_INITIALIZED);
	use_json("{}");
	assert_ok(cuFileDriverOpen());
}

/* The same by parameter: it is kept until an open has used it. */
static void aggressive_checks_may_be_asked_for_by_parameter(void **state)
{
	use_json("{\"logging\": ");
	assert_ok(set_bool(CUFILE_PARAM_FS_MISC_API_CHECK_AGGRESSIVE, true));
	assert_code(cuFileDriverOpen(), CU_FILE_DRIVER_INVALID_PROPS);
	assert_code(cuFileDriverOpen(), CU_FILE_DRIVER_INVALID_PROPS);
	assert_ok(set_bool(CUFILE_PARAM_FS_MISC_API_CHECK_AGGRESSIVE, false));
	assert_ok(cuFileDriverOpen());
}

/* "CUFILE_ENV_PATH_JSON names no file". */
static void a_missing_file_opens_with_the_defaults_and_one_log_line(
	void **state)
{
	static const char path[] = "/nonexistent/cufile.json";
	const char *line;

	setenv("CUFILE_ENV_PATH_JSON", path, 1);
	assert_ok(cuFileDriverOpen());
	assert_int_equal(get_size(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE), 128);
	line = strstr(fresh_log(), path);
	assert_non_null(line);
	assert_null(strstr(line + 1, path));
}

/* "duplicate keys". */
static void of_duplicate_keys_the_last_wins_and_it_is_reported(void **state)
{
	use_json("{\"logging\": {\"level\": \"INFO\"},\n"
		 " \"properties\": {\"io_batchsize\": 17,\n"
		 " \"io_batchsize\": 18}}");
	assert_ok(cuFileDriverOpen());
	assert_int_equal(get_size(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE), 18);
	assert_non_null(strstr(fresh_log(), "io_batchsize"));
}

/* Contract 4: an unknown key stays harmless. */
static void an_unknown_key_changes_nothing(void **state)
{
	use_json("{\"no_such\": {\"key\": [1, 2]},"
		 " \"properties\": {\"io_batchsize\": 17}}");
	assert_ok(cuFileDriverOpen());
	assert_int_equal(get_size(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE), 17);
}

/* An open that fails has used nothing up, and a get still answers. */
static void gets_answer_while_the_file_is_broken(void **state)
{
	static const char *const files[] = {
		"]", "{\"miscellaneous\": {\"api_check_aggressive\": true},, }"
	};

	for (int i = 0; i < 2; i++) {
		use_json(files[i]);
		assert_int_equal(get_size(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE),
				 128);
	}
	assert_ok(set_size(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, 20));
	assert_code(cuFileDriverOpen(), CU_FILE_DRIVER_INVALID_PROPS);
	assert_int_equal(get_size(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE), 20);
}

static const struct fresh_test tests[] = {
	FRESH(set_parameter_after_open_is_refused_5026),
	FRESH(set_parameter_after_an_implicit_open_by_properties_is_refused_5026),
	FRESH(set_parameter_after_an_implicit_open_by_a_setter_is_refused_5026),
	FRESH(set_parameter_after_an_implicit_open_by_a_buffer_is_refused_5026),
	FRESH(set_parameter_works_in_a_fresh_process_after_gets),
	FRESH(a_staged_value_shows_in_the_parameter_and_in_the_properties),
	FRESH(a_runtime_setter_shows_in_the_parameter),
	FRESH(staged_values_are_used_by_one_open),
	FRESH(a_staged_value_out_of_range_gives_way_to_the_default),
	FRESH(a_parameter_that_does_not_exist_is_refused_5022),
	FRESH(a_null_argument_of_a_parameter_call_is_refused_5022),
	FRESH(bounds_of_the_statistics_level_are_refused_5022),
	FRESH(bounds_are_those_of_the_record),
	FRESH(the_parameter_for_nvtx_is_refused_5022),
	FRESH(defaults_are_those_of_the_record),
	FRESH(slabs_are_told_only_for_their_exact_number),
	FRESH(gpu_slabs_survive_a_close),
	FRESH(a_string_goes_into_a_buffer_that_just_fits),
	FRESH(an_empty_string_and_a_level_there_is_not_are_refused),
	FRESH(the_log_path_is_told_only_where_there_is_one),
	FRESH(a_staged_value_beats_environment_beats_file),
	FRESH(a_broken_file_opens_with_the_defaults_and_one_log_line),
	FRESH(a_broken_file_is_refused_5002_under_aggressive_checks),
	FRESH(aggressive_checks_may_be_asked_for_by_parameter),
	FRESH(a_missing_file_opens_with_the_defaults_and_one_log_line),
	FRESH(of_duplicate_keys_the_last_wins_and_it_is_reported),
	FRESH(an_unknown_key_changes_nothing),
	FRESH(gets_answer_while_the_file_is_broken),
};

FRESH_MAIN(tests, 30)

// SPDX-License-Identifier: Apache-2.0
/*
 * cuda_python - what cuda-python's own tests of its cuFile binding assert
 * (contract 3.19), in their order: driver, handles, buffers, data, params,
 * statistics. Batch and stream calls stand with their own tests.
 */
#include "fresh.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Their fixtures: one open and close before anything, then one a test. */
static void begin(void)
{
	th_need_gpu();
	assert_ok(cuFileDriverOpen());
	assert_ok(cuFileDriverClose_v2());
	assert_ok(cuFileDriverOpen());
}

static void end(void)
{
	assert_ok(cuFileDriverClose_v2());
}

static void file_make(struct th_file *file, const void *bytes, size_t size)
{
	th_file_make(file, TH_ODIRECT, O_RDWR, bytes, size);
}

/* handle_register */
static void a_direct_file_of_34_bytes_registers(void **state)
{
	struct th_file file;
	CUfileHandle_t fh;

	begin();
	file_make(&file, "The quick brown fox jumps over it.", 34);
	assert_ok(fresh_register(file.fd, &fh));
	cuFileHandleDeregister(fh);
	th_file_end(&file);
	end();
}

static void register_buffer(enum th_mem_kind kind, size_t size, int flags)
{
	struct th_mem mem;

	th_mem_alloc(&mem, kind, size);
	assert_ok(cuFileBufRegister(mem.ptr, size, flags));
	assert_ok(cuFileBufDeregister(mem.ptr));
	th_mem_free(&mem);
}

/* buf_register_simple, _host_memory, _large_buffer, _invalid_flags */
static void buffers_of_all_sizes_and_kinds_register(void **state)
{
	begin();
	register_buffer(TH_DEVICE, 4096, 0);
	register_buffer(TH_PINNED, 4096, 0);
	register_buffer(TH_DEVICE, TH_MIB, 0);
	register_buffer(TH_DEVICE, 65536, 999);
	end();
}

/* buf_register_multiple_buffers */
static void several_buffers_are_registered_together(void **state)
{
	static const size_t sizes[] = { 4096, 16384, 65536 };
	struct th_mem mem[3];

	begin();
	for (int i = 0; i < 3; i++) {
		th_mem_alloc(&mem[i], TH_DEVICE, sizes[i]);
		assert_ok(cuFileBufRegister(mem[i].ptr, sizes[i], 0));
	}
	for (int i = 0; i < 3; i++) {
		assert_ok(cuFileBufDeregister(mem[i].ptr));
		th_mem_free(&mem[i]);
	}
	end();
}

/* buf_register_already_registered: an error, then one deregister works */
static void a_second_registration_fails_and_one_deregister_works(void **state)
{
	struct th_mem mem;

	begin();
	th_mem_alloc(&mem, TH_DEVICE, 4096);
	assert_ok(cuFileBufRegister(mem.ptr, 4096, 0));
	assert_code(cuFileBufRegister(mem.ptr, 4096, 0),
		    CU_FILE_MEMORY_ALREADY_REGISTERED);
	assert_ok(cuFileBufDeregister(mem.ptr));
	th_mem_free(&mem);
	end();
}

/* read_write, read_write_host_memory, read_write_large */
static void write_and_read_back(enum th_mem_kind kind, size_t size)
{
	unsigned char *bytes = th_bytes(size), *got = malloc(size);
	struct th_mem from, to;
	struct th_file file;
	CUfileHandle_t fh;

	begin();
	file_make(&file, NULL, 0);
	th_mem_alloc(&from, kind, size);
	th_mem_alloc(&to, kind, size);
	th_mem_put(&from, 0, bytes, size);
	assert_ok(cuFileBufRegister(from.ptr, size, 0));
	assert_ok(cuFileBufRegister(to.ptr, size, 0));
	fh = th_handle(file.fd);
	assert_int_equal(cuFileWrite(fh, from.ptr, size, 0, 0), size);
	assert_int_equal(fsync(file.fd), 0);
	assert_int_equal(cuFileRead(fh, to.ptr, size, 0, 0), size);
	th_mem_get(&to, 0, got, size);
	th_equal("read back", got, bytes, size);
	cuFileHandleDeregister(fh);
	assert_ok(cuFileBufDeregister(from.ptr));
	assert_ok(cuFileBufDeregister(to.ptr));
	th_mem_free(&from);
	th_mem_free(&to);
	th_file_end(&file);
	end();
	free(got);
	free(bytes);
}

static void what_is_written_is_read_back(void **state)
{
	write_and_read_back(TH_DEVICE, 65536);
}

static void what_is_written_is_read_back_in_host_memory(void **state)
{
	write_and_read_back(TH_PINNED, 65536);
}

static void a_large_write_is_read_back(void **state)
{
	write_and_read_back(TH_DEVICE, TH_MIB);
}

/* Their configuration file. */
static void use_their_file(void)
{
	const char *path = fresh_text_file(
		"theirs.json",
		"{\"execution\": {\"max_io_queue_depth\": 128,"
		" \"max_io_threads\": 4, \"parallel_io\": true,"
		" \"min_io_threshold_size_kb\": 8192,"
		" \"max_request_parallelism\": 4},"
		" \"properties\": {\"allow_compat_mode\": true}}");

	assert_int_equal(setenv("CUFILE_ENV_PATH_JSON", path, 1), 0);
}

/* set_get_parameter_size_t */
static void size_parameters_read_back_as_set_and_are_restored(void **state)
{
	static const struct {
		CUFileSizeTConfigParameter_t param;
		size_t value;
	} rows[] = {
		{ CUFILE_PARAM_POLLTHRESHOLD_SIZE_KB, 64 },
		{ CUFILE_PARAM_PROPERTIES_MAX_DIRECT_IO_SIZE_KB, 1024 },
		{ CUFILE_PARAM_PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB, 512 },
		{ CUFILE_PARAM_PROPERTIES_PER_BUFFER_CACHE_SIZE_KB, 128 },
		{ CUFILE_PARAM_PROPERTIES_MAX_DEVICE_PINNED_MEM_SIZE_KB, 2048 },
		{ CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, 16 },
		{ CUFILE_PARAM_PROPERTIES_BATCH_IO_TIMEOUT_MS, 5000 },
		{ CUFILE_PARAM_EXECUTION_MAX_IO_QUEUE_DEPTH, 32 },
		{ CUFILE_PARAM_EXECUTION_MAX_IO_THREADS, 8 },
		{ CUFILE_PARAM_EXECUTION_MIN_IO_THRESHOLD_SIZE_KB, 4 },
		{ CUFILE_PARAM_EXECUTION_MAX_REQUEST_PARALLELISM, 4 },
	};
	enum { NR = sizeof(rows) / sizeof(rows[0]) };
	size_t originals[NR], got;

	use_their_file();
	assert_ok(cuFileDriverOpen());
	for (int i = 0; i < NR; i++)
		assert_ok(
			cuFileGetParameterSizeT(rows[i].param, &originals[i]));
	assert_ok(cuFileDriverClose_v2());
	for (int i = 0; i < NR; i++) {
		assert_ok(
			cuFileSetParameterSizeT(rows[i].param, rows[i].value));
		assert_ok(cuFileGetParameterSizeT(rows[i].param, &got));
		assert_int_equal(got, rows[i].value);
	}
	for (int i = 0; i < NR; i++)
		assert_ok(cuFileSetParameterSizeT(rows[i].param, originals[i]));
	begin();
	end();
}

/* They leave PROFILE_NVTX out since 1.16. */
static bool is_there(int param)
{
	return param != CUFILE_PARAM_PROFILE_NVTX;
}

/* set_get_parameter_bool */
static void bool_parameters_read_back_as_set_and_are_restored(void **state)
{
	static const bool values[] = {
		[CUFILE_PARAM_PROPERTIES_USE_POLL_MODE] = true,
		[CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE] = false,
		[CUFILE_PARAM_FORCE_COMPAT_MODE] = false,
		[CUFILE_PARAM_FS_MISC_API_CHECK_AGGRESSIVE] = true,
		[CUFILE_PARAM_EXECUTION_PARALLEL_IO] = true,
		[CUFILE_PARAM_PROPERTIES_ALLOW_SYSTEM_MEMORY] = true,
		[CUFILE_PARAM_USE_PCIP2PDMA] = true,
		[CUFILE_PARAM_PREFER_IO_URING] = false,
		[CUFILE_PARAM_FORCE_ODIRECT_MODE] = true,
		[CUFILE_PARAM_SKIP_TOPOLOGY_DETECTION] = false,
		[CUFILE_PARAM_STREAM_MEMOPS_BYPASS] = true,
	};
	enum { NR = sizeof(values) / sizeof(values[0]) };
	bool originals[NR], got;

	use_their_file();
	assert_ok(cuFileDriverOpen());
	for (int i = 0; i < NR; i++)
		if (is_there(i))
			assert_ok(cuFileGetParameterBool(
				(CUFileBoolConfigParameter_t)i, &originals[i]));
	assert_ok(cuFileDriverClose_v2());
	for (int i = 0; i < NR; i++) {
		CUFileBoolConfigParameter_t id = (CUFileBoolConfigParameter_t)i;

		if (!is_there(i))
			continue;
		assert_ok(cuFileSetParameterBool(id, values[i]));
		assert_ok(cuFileGetParameterBool(id, &got));
		assert_int_equal(got, values[i]);
		assert_ok(cuFileSetParameterBool(id, originals[i]));
	}
}

/* set_get_parameter_string */
static void string_parameters_read_back_as_set(void **state)
{
	static const char *const values[] = {
		[CUFILE_PARAM_LOGGING_LEVEL] = "INFO",
		[CUFILE_PARAM_ENV_LOGFILE_PATH] = "/tmp/x/cufile.log",
		[CUFILE_PARAM_LOG_DIR] = "/tmp/x/cufile_logs",
	};
	char got[256];

	use_their_file();
	setenv("CUFILE_LOGFILE_PATH", "", 1);
	assert_ok(cuFileDriverOpen());
	for (int i = 0; i < 3; i++)
		assert_ok(cuFileGetParameterString(
			(CUFileStringConfigParameter_t)i, got, sizeof(got)));
	assert_ok(cuFileDriverClose_v2());
	for (int i = 0; i < 3; i++) {
		assert_ok(cuFileSetParameterString(
			(CUFileStringConfigParameter_t)i, values[i]));
		assert_ok(cuFileGetParameterString(
			(CUFileStringConfigParameter_t)i, got, sizeof(got)));
		assert_string_equal(got, values[i]);
	}
}

/* set_stats_level */
static void statistics_levels_are_set_while_open_and_reset_works(void **state)
{
	int original, got;

	begin();
	assert_ok(cuFileGetStatsLevel(&original));
	for (int level = 0; level < 4; level++) {
		assert_ok(cuFileSetStatsLevel(level));
		assert_ok(cuFileGetStatsLevel(&got));
		assert_int_equal(got, level);
	}
	assert_code(cuFileSetStatsLevel(-1), CU_FILE_INVALID_VALUE);
	assert_code(cuFileSetStatsLevel(4), CU_FILE_INVALID_VALUE);
	assert_ok(cuFileStatsReset());
	assert_ok(cuFileSetStatsLevel(original));
	end();
}

/* get_parameter_min_max_value */
static void bounds_of_the_poll_threshold_make_sense(void **state)
{
	size_t low, high;

	begin();
	assert_ok(cuFileGetParameterMinMaxValue(
		CUFILE_PARAM_POLLTHRESHOLD_SIZE_KB, &low, &high));
	assert_true(high >= low && high > 0);
	end();
}

/* stats_start_stop, get_stats_l1, _l2, _l3 */
static void statistics_are_there_before_the_stop(void **state)
{
	static CUfileStatsLevel3_t l3;
	uint64_t sum = 0;
	struct th_file file;
	struct th_mem mem;
	CUfileHandle_t fh;

	begin();
	assert_ok(cuFileSetStatsLevel(3));
	assert_ok(cuFileStatsStart());
	file_make(&file, NULL, 0);
	fh = th_handle(file.fd);
	th_mem_alloc(&mem, TH_DEVICE, 16384);
	assert_ok(cuFileBufRegister(mem.ptr, mem.size, 0));
	assert_int_equal(cuFileWrite(fh, mem.ptr, 16384, 0, 0), 16384);
	assert_int_equal(cuFileWrite(fh, mem.ptr, 8192, 16384, 0), 8192);
	assert_int_equal(cuFileRead(fh, mem.ptr, 16384, 0, 0), 16384);
	assert_int_equal(cuFileRead(fh, mem.ptr, 8192, 16384, 0), 8192);
	assert_ok(cuFileGetStatsL1(&l3.detailed.basic));
	assert_int_equal(l3.detailed.basic.read_ops.ok, 2);
	assert_int_equal(l3.detailed.basic.write_ops.ok, 2);
	assert_int_equal(l3.detailed.basic.read_bytes, 24576);
	assert_int_equal(l3.detailed.basic.write_bytes, 24576);
	assert_ok(cuFileGetStatsL2(&l3.detailed));
	for (int i = 0; i < 32; i++)
		sum += l3.detailed.read_size_kb_hist[i];
	assert_int_equal(sum, 2);
	assert_ok(cuFileGetStatsL3(&l3));
	assert_int_equal(l3.num_gpus, 1);
	assert_ok(cuFileStatsStop());
	assert_ok(cuFileBufDeregister(mem.ptr));
	cuFileHandleDeregister(fh);
	th_mem_free(&mem);
	th_file_end(&file);
	end();
}

/* set_parameter_posix_pool_slab_array */
static void slabs_of_gibibytes_are_kept_over_two_opens(void **state)
{
	static const size_t sizes[] = { 4096, 65536, 1048576, 16777216 };
	static const size_t counts[] = { 10, 5, 3, 2 };
	size_t got_sizes[4], got_counts[4];

	th_need_gpu();
	assert_ok(cuFileSetParameterPosixPoolSlabArray(sizes, counts, 4));
	assert_ok(cuFileDriverOpen());
	assert_ok(cuFileDriverOpen());
	assert_ok(
		cuFileGetParameterPosixPoolSlabArray(got_sizes, got_counts, 4));
	assert_memory_equal(got_sizes, sizes, sizeof(sizes));
	assert_memory_equal(got_counts, counts, sizeof(counts));
	assert_ok(cuFileDriverClose_v2());
	assert_ok(cuFileDriverClose_v2());
}

static const struct fresh_test tests[] = {
	FRESH(a_direct_file_of_34_bytes_registers),
	FRESH(buffers_of_all_sizes_and_kinds_register),
	FRESH(several_buffers_are_registered_together),
	FRESH(a_second_registration_fails_and_one_deregister_works),
	FRESH(what_is_written_is_read_back),
	FRESH(what_is_written_is_read_back_in_host_memory),
	FRESH(a_large_write_is_read_back),
	FRESH(size_parameters_read_back_as_set_and_are_restored),
	FRESH(bool_parameters_read_back_as_set_and_are_restored),
	FRESH(string_parameters_read_back_as_set),
	FRESH(statistics_levels_are_set_while_open_and_reset_works),
	FRESH(bounds_of_the_poll_threshold_make_sense),
	FRESH(statistics_are_there_before_the_stop),
	FRESH(slabs_of_gibibytes_are_kept_over_two_opens),
};

FRESH_MAIN(tests, 30)

// SPDX-License-Identifier: Apache-2.0
/*
 * nvtx - profile.nvtx: what a profiler is told, and what happens where there
 * is none. Paths of our two tools are in TEST_NVTX_TOOL and TEST_NVTX_OLD.
 */
#include "fresh.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "fake_nvtx.h"

#define SIZE (64 * TH_KIB)

static void want_ranges(const char *tool)
{
	setenv("CUFILE_NVTX", "true", 1);
	if (tool)
		setenv("NVTX_INJECTION64_PATH", tool, 1);
	else
		unsetenv("NVTX_INJECTION64_PATH");
}

/* What the tool has been told; NULL: it is not loaded. */
static struct fake_nvtx *told_by(const char *path)
{
	void *lib = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);

	return lib ? dlsym(lib, "fake_nvtx") : NULL;
}

static struct fake_nvtx *told(void)
{
	return told_by(getenv("TEST_NVTX_TOOL"));
}

static unsigned nr_of(const struct fake_nvtx *nvtx, const char *message,
		      uint64_t payload)
{
	unsigned nr = 0;

	for (unsigned i = 0; i < nvtx->pushes && i < FAKE_NVTX_MAX; i++)
		nr += !strcmp(nvtx->messages[i], message) &&
		      nvtx->payloads[i] == payload;
	return nr;
}

static void check_pairs(const struct fake_nvtx *nvtx)
{
	assert_int_equal(nvtx->misuses, 0);
	assert_int_equal(nvtx->pushes, nvtx->pops);
}

/* Writes and reads back bytes of that memory. */
static void write_and_read(enum th_mem_kind kind)
{
	unsigned char *bytes = th_bytes(SIZE), *got = th_bytes(SIZE);
	struct th_file file;
	struct th_mem mem;
	CUfileHandle_t fh;

	th_mem_alloc(&mem, kind, SIZE);
	th_mem_put(&mem, 0, bytes, SIZE);
	th_file_make(&file, TH_BUFFERED, O_RDWR, got, SIZE);
	assert_ok(fresh_register(file.fd, &fh));
	assert_int_equal(cuFileWrite(fh, mem.ptr, SIZE, 0, 0), SIZE);
	th_mem_set(&mem, 0x11);
	assert_int_equal(cuFileRead(fh, mem.ptr, SIZE, 0, 0), SIZE);
	th_mem_get(&mem, 0, got, SIZE);
	th_equal("read back", got, bytes, SIZE);
	cuFileHandleDeregister(fh);
	th_file_end(&file);
	th_mem_free(&mem);
	free(bytes);
	free(got);
}

static void close_all(void)
{
	while (!cuFileDriverClose().err)
		continue;
}

static void requests_are_ranges_with_their_path_and_size(void **state)
{
	struct fake_nvtx *nvtx;

	want_ranges(getenv("TEST_NVTX_TOOL"));
	assert_ok(cuFileDriverOpen());
	nvtx = told();
	assert_non_null(nvtx);
	assert_string_equal(nvtx->domain, "opencufile");
	write_and_read(TH_MALLOC);
	assert_int_equal(nr_of(nvtx, "write host", SIZE), 1);
	assert_int_equal(nr_of(nvtx, "read host", SIZE), 1);
	assert_int_equal(nr_of(nvtx, "file write", SIZE), 1);
	assert_int_equal(nr_of(nvtx, "file read", SIZE), 1);
	assert_int_equal(nvtx->pushes, 4);
	check_pairs(nvtx);
}

static void gpu_memory_has_ranges_too(void **state)
{
	th_need_gpu();
	want_ranges(getenv("TEST_NVTX_TOOL"));
	assert_ok(cuFileDriverOpen());
	write_and_read(TH_DEVICE);
	assert_int_equal(nr_of(told(), "write staged", SIZE), 1);
	assert_int_equal(nr_of(told(), "read staged", SIZE), 1);
	assert_true(nr_of(told(), "file read", SIZE) >= 1);
	close_all();
	check_pairs(told());
}

static void batches_have_ranges_on_the_threads_that_carry_them(void **state)
{
	enum { NR = 8 };
	CUfileIOParams_t params[NR] = { 0 };
	CUfileIOEvents_t events[NR];
	unsigned char *bytes = th_bytes(NR * 4096), *got = th_bytes(NR * 4096);
	CUfileBatchHandle_t batch;
	struct th_file file;
	CUfileHandle_t fh;
	unsigned nr = NR, carried = 0;

	want_ranges(getenv("TEST_NVTX_TOOL"));
	assert_ok(cuFileDriverOpen());
	th_file_make(&file, TH_BUFFERED, O_RDWR, bytes, NR * 4096);
	assert_ok(fresh_register(file.fd, &fh));
	for (int i = 0; i < NR; i++) {
		params[i].mode = CUFILE_BATCH;
		params[i].fh = fh;
		params[i].opcode = CUFILE_READ;
		params[i].u.batch.devPtr_base = got;
		params[i].u.batch.devPtr_offset = i * 4096;
		params[i].u.batch.file_offset = i * 4096;
		params[i].u.batch.size = 4096;
	}
	assert_ok(cuFileBatchIOSetUp(&batch, NR));
	assert_ok(cuFileBatchIOSubmit(batch, NR, params, 0));
	assert_ok(cuFileBatchIOGetStatus(batch, NR, &nr, events, NULL));
	assert_int_equal(nr, NR);
	th_equal("the batch", got, bytes, NR * 4096);
	cuFileBatchIODestroy(batch);
	cuFileHandleDeregister(fh);
	close_all();
	for (unsigned i = 0; i < told()->pushes; i++)
		if (!strcmp(told()->messages[i], "batch entries"))
			carried += (unsigned)told()->payloads[i];
	assert_int_equal(carried, NR);
	check_pairs(told());
	th_file_end(&file);
	free(bytes);
	free(got);
}

static void a_tool_is_begun_once_and_hears_only_sessions_that_want_it(
	void **state)
{
	unsigned before;

	want_ranges(getenv("TEST_NVTX_TOOL"));
	write_and_read(TH_MALLOC); /* the registration opens */
	assert_int_equal(told()->begins, 1);
	before = told()->pushes;
	assert_int_equal(before, 4);
	close_all();
	setenv("CUFILE_NVTX", "false", 1);
	write_and_read(TH_MALLOC);
	assert_int_equal(told()->pushes, before);
	close_all();
	setenv("CUFILE_NVTX", "true", 1);
	write_and_read(TH_MALLOC);
	assert_int_equal(told()->pushes, 2 * before);
	assert_int_equal(told()->begins, 1);
	assert_int_equal(told()->domains, 1);
	check_pairs(told());
}

static void nothing_is_loaded_where_nobody_asks(void **state)
{
	setenv("NVTX_INJECTION64_PATH", getenv("TEST_NVTX_TOOL"), 1);
	write_and_read(TH_MALLOC);
	assert_null(told());
}

static void the_old_library_is_taken_where_no_tool_is_named(void **state)
{
	/* the loader finds it by its name from now on */
	assert_non_null(dlopen(getenv("TEST_NVTX_OLD"), RTLD_LAZY));
	want_ranges(NULL);
	write_and_read(TH_MALLOC);
	assert_int_equal(told_by(getenv("TEST_NVTX_OLD"))->pushes, 4);
	assert_int_equal(
		nr_of(told_by(getenv("TEST_NVTX_OLD")), "read host", SIZE), 1);
	check_pairs(told_by(getenv("TEST_NVTX_OLD")));
}

static void a_tool_without_domains_is_told_all_the_same(void **state)
{
	setenv("FAKE_NVTX", "plain", 1);
	want_ranges(getenv("TEST_NVTX_TOOL"));
	write_and_read(TH_MALLOC);
	assert_int_equal(told()->pushes, 4);
	assert_int_equal(told()->domains, 0);
	check_pairs(told());
}

/* One that collects for a while may begin when the library is long open. */
static void a_tool_is_told_while_it_takes_ranges(void **state)
{
	void (*take)(bool takes);

	setenv("FAKE_NVTX", "late", 1);
	setenv("CUFILE_LOGGING_LEVEL", "INFO", 1);
	want_ranges(getenv("TEST_NVTX_TOOL"));
	write_and_read(TH_MALLOC);
	assert_non_null(told());
	assert_int_equal(told()->pushes, 0);
	assert_non_null(strstr(fresh_log(), ", when it takes them"));
	*(void **)&take =
		dlsym(dlopen(getenv("TEST_NVTX_TOOL"), RTLD_LAZY | RTLD_NOLOAD),
		      "fake_nvtx_take");
	for (unsigned i = 1; i <= 3; i++) {
		take(true);
		write_and_read(TH_MALLOC);
		assert_int_equal(told()->pushes, 4 * i);
		take(false);
		write_and_read(TH_MALLOC);
		assert_int_equal(told()->pushes, 4 * i);
	}
	assert_int_equal(told()->begins, 1);
	assert_int_equal(told()->domains, 1);
	check_pairs(told());
}

static void a_tool_that_fails_is_a_line_in_the_log_and_io_goes_on(void **state)
{
	static const struct {
		const char *mode, *path, *words;
	} rows[] = {
		{ "", "/nonexistent.so",
		  "nvtx: no ranges: /nonexistent.so: it cannot be loaded" },
		{ "", "libc.so.6", "it has no InitializeInjectionNvtx2" },
		{ "refuse", NULL, "it refused to begin" },
		{ "", "", "names no tool, and there is no libnvToolsExt.so.1" },
	};
	void *old = dlopen("libnvToolsExt.so.1", RTLD_LAZY);

	setenv("CUFILE_LOGGING_LEVEL", "WARN", 1);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (old && rows[i].path && !*rows[i].path)
			continue; /* this machine has it */
		setenv("FAKE_NVTX", rows[i].mode, 1);
		want_ranges(rows[i].path ? rows[i].path :
					   getenv("TEST_NVTX_TOOL"));
		write_and_read(TH_MALLOC);
		if (!strstr(fresh_log(), rows[i].words))
			fail_msg("%s is not in the log", rows[i].words);
		close_all();
		assert_null(told());
	}
	/* each open tries again */
	setenv("FAKE_NVTX", "", 1);
	want_ranges(getenv("TEST_NVTX_TOOL"));
	write_and_read(TH_MALLOC);
	assert_int_equal(told()->pushes, 4);
}

static void hammer(void *arg, unsigned i)
{
	for (int n = 0; n < 20; n++) {
		assert_ok(cuFileDriverOpen());
		write_and_read(TH_MALLOC);
		assert_ok(cuFileDriverClose());
	}
}

static void ranges_are_pairs_also_while_sessions_come_and_go(void **state)
{
	want_ranges(getenv("TEST_NVTX_TOOL"));
	th_threads(4, hammer, NULL);
	assert_true(told()->pushes > 0);
	assert_int_equal(told()->begins, 1);
	check_pairs(told());
}

static const struct fresh_test tests[] = {
	FRESH(requests_are_ranges_with_their_path_and_size),
	FRESH(gpu_memory_has_ranges_too),
	FRESH(batches_have_ranges_on_the_threads_that_carry_them),
	FRESH(a_tool_is_begun_once_and_hears_only_sessions_that_want_it),
	FRESH(nothing_is_loaded_where_nobody_asks),
	FRESH(the_old_library_is_taken_where_no_tool_is_named),
	FRESH(a_tool_without_domains_is_told_all_the_same),
	FRESH(a_tool_is_told_while_it_takes_ranges),
	FRESH(a_tool_that_fails_is_a_line_in_the_log_and_io_goes_on),
	FRESH(ranges_are_pairs_also_while_sessions_come_and_go),
};

FRESH_MAIN(tests, 60)

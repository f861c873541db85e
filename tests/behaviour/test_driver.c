// SPDX-License-Identifier: Apache-2.0
/* driver - open, close, count, version, properties, runtime setters, BAR. */
#include "fresh.h"

#include <errno.h>
#include <fcntl.h>
#include <opencufile.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIMIT CU_FILE_DRIVER_UNSUPPORTED_LIMIT
#define BAD CU_FILE_INVALID_VALUE

/* The symbol that programs built before 1.4 call; the header maps it away. */
#undef cuFileDriverClose
CUfileError_t cuFileDriverClose(void);

static CUfileDrvProps_t properties(void)
{
	CUfileDrvProps_t props;

	memset(&props, 0xee, sizeof(props));
	assert_ok(cuFileDriverGetProperties(&props));
	return props;
}

/* "GetVersion"; contract 3.4. */
static void version_is_told_before_an_open_and_does_not_open(void **state)
{
	int version = 0;

	assert_ok(cuFileGetVersion(&version));
	assert_int_equal(version, 1190);
	assert_int_equal(cuFileUseCount(), 0);
	/* still closed: a parameter may be staged */
	assert_ok(cuFileSetParameterSizeT(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE,
					  64));
	assert_ok(cuFileDriverOpen());
	version = 0;
	assert_ok(cuFileGetVersion(&version));
	assert_int_equal(version, 1190);
}

/* "GetVersion"; contract 3.4. */
static void version_into_null_is_refused_5022(void **state)
{
	assert_code(cuFileGetVersion(NULL), BAD);
}

/* "open with no CUDA context current"; contract 3.0, 3.1. */
static void open_works_with_no_context_current(void **state)
{
	CUcontext ctx = (CUcontext)1;

	assert_int_equal(cuFileUseCount(), 0);
	assert_ok(cuFileDriverOpen());
	assert_int_equal(cuFileUseCount(), 1);
	if (th_gpu(NULL)) {
		assert_int_equal(cuCtxGetCurrent(&ctx), CF_CU_SUCCESS);
		assert_null(ctx);
	}
	assert_ok(cuFileDriverClose_v2());
	assert_int_equal(cuFileUseCount(), 0);
}

/* "open twice"; contract 3.1, 3.3. */
static void open_twice_counts_two_uses(void **state)
{
	assert_ok(cuFileDriverOpen());
	assert_ok(cuFileDriverOpen());
	assert_int_equal(cuFileUseCount(), 2);
	assert_ok(cuFileDriverClose_v2());
	assert_int_equal(cuFileUseCount(), 1);
	/* still open */
	assert_code(cuFileSetParameterSizeT(
			    CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, 64),
		    CU_FILE_DRIVER_ALREADY_OPEN);
	assert_ok(cuFileDriverClose_v2());
	assert_code(cuFileDriverClose_v2(), CU_FILE_DRIVER_NOT_INITIALIZED);
}

/* "close when not open"; contract 3.2. */
static void close_when_not_open_is_refused_5001(void **state)
{
	assert_code(cuFileDriverClose_v2(), CU_FILE_DRIVER_NOT_INITIALIZED);
	assert_int_equal(cuFileUseCount(), 0);
	assert_ok(cuFileDriverOpen());
	assert_ok(cuFileDriverClose_v2());
	assert_code(cuFileDriverClose_v2(), CU_FILE_DRIVER_NOT_INITIALIZED);
	assert_int_equal(cuFileUseCount(), 0);
}

/* "old cuFileDriverClose symbol"; contract 3.2. */
static void the_old_close_symbol_does_what_v2_does(void **state)
{
	assert_code(cuFileDriverClose(), CU_FILE_DRIVER_NOT_INITIALIZED);
	assert_ok(cuFileDriverOpen());
	assert_ok(cuFileDriverOpen());
	assert_ok(cuFileDriverClose());
	assert_int_equal(cuFileUseCount(), 1);
	assert_ok(cuFileDriverClose_v2());
	assert_int_equal(cuFileUseCount(), 0);
}

/* "properties ... before open"; contract 3.5. */
static void properties_before_open_open_without_counting_a_use(void **state)
{
	CUfileDrvProps_t props = properties();

	assert_int_equal(cuFileUseCount(), 0);
	assert_int_equal(props.nvfs.poll_thresh_size, 4);
	assert_int_equal(props.nvfs.max_direct_io_size, 16384);
	assert_int_equal(props.nvfs.dcontrolflags, 0x2);
	assert_int_equal(props.fflags,
			 1u << CU_FILE_BATCH_IO_SUPPORTED |
				 1u << CU_FILE_STREAMS_SUPPORTED |
				 1u << CU_FILE_PARALLEL_IO_SUPPORTED);
	assert_int_equal(props.max_device_cache_size, 131072);
	assert_int_equal(props.max_device_pinned_mem_size, 33554432);
	assert_int_equal(props.max_batch_io_size, 128);
	assert_int_equal(props.max_batch_io_timeout_msecs, 5);
	assert_code(cuFileDriverClose_v2(), CU_FILE_DRIVER_NOT_INITIALIZED);
	/* an explicit open counts from there */
	assert_ok(cuFileDriverOpen());
	assert_int_equal(cuFileUseCount(), 1);
	assert_ok(cuFileDriverClose_v2());
}

/* contract 3.5: the version pair says that no nvidia-fs stands behind us. */
static void properties_name_no_kernel_driver(void **state)
{
	CUfileDrvProps_t props = properties();

	assert_int_equal(props.nvfs.major_version, 0);
	assert_int_equal(props.nvfs.minor_version, 0);
	assert_int_equal(props.nvfs.dstatusflags, 0);
}

/* Record, section c. */
static void properties_into_null_are_refused_5022(void **state)
{
	assert_code(cuFileDriverGetProperties(NULL), BAD);
	/* and have opened nothing */
	assert_ok(cuFileSetParameterBool(CUFILE_PARAM_PROPERTIES_USE_POLL_MODE,
					 true));
}

/* "properties, poll mode, max sizes before open"; contract 3.5, samples 012. */
static void runtime_setters_before_open_open_without_a_use(void **state)
{
	assert_ok(cuFileDriverSetPollMode(true, 8));
	assert_int_equal(cuFileUseCount(), 0);
	assert_code(cuFileSetParameterBool(
			    CUFILE_PARAM_PROPERTIES_USE_POLL_MODE, true),
		    CU_FILE_DRIVER_ALREADY_OPEN);
	assert_ok(cuFileDriverSetMaxDirectIOSize(1024));
	assert_ok(cuFileDriverSetMaxCacheSize(2048));
	assert_ok(cuFileDriverSetMaxPinnedMemSize(4096));
	assert_int_equal(cuFileUseCount(), 0);
}

/* "Driver setters while closed". */
static void driver_setters_while_closed_take_effect(void **state)
{
	CUfileDrvProps_t props;

	assert_ok(cuFileDriverSetPollMode(true, 8));
	assert_ok(cuFileDriverSetMaxDirectIOSize(1024));
	assert_ok(cuFileDriverSetMaxCacheSize(2048));
	assert_ok(cuFileDriverSetMaxPinnedMemSize(4096));
	assert_ok(cuFileDriverOpen());
	props = properties();
	assert_int_equal(props.nvfs.dcontrolflags, 0x3);
	assert_int_equal(props.nvfs.poll_thresh_size, 8);
	assert_int_equal(props.nvfs.max_direct_io_size, 1024);
	assert_int_equal(props.max_device_cache_size, 2048);
	assert_int_equal(props.max_device_pinned_mem_size, 4096);
	assert_ok(cuFileDriverClose_v2());
}

/* Contract 3.5: "override for this process" ends with the session. */
static void driver_setters_while_open_take_effect_until_the_close(void **state)
{
	assert_ok(cuFileDriverOpen());
	assert_ok(cuFileDriverSetMaxDirectIOSize(64));
	assert_int_equal(properties().nvfs.max_direct_io_size, 64);
	assert_ok(cuFileDriverClose_v2());
	assert_ok(cuFileDriverOpen());
	assert_int_equal(properties().nvfs.max_direct_io_size, 16384);
	assert_ok(cuFileDriverClose_v2());
}

/* "SetPollMode / ... out of range"; record, section c. */
static void runtime_setters_keep_the_recorded_bounds(void **state)
{
	static const struct {
		size_t kib;
		int poll, direct, cache, pinned;
	} rows[] = {
		{ 0, LIMIT, LIMIT, 0, 0 },
		{ 1, LIMIT, LIMIT, LIMIT, LIMIT },
		{ 4, 0, LIMIT, 0, LIMIT },
		{ 5, LIMIT, LIMIT, LIMIT, LIMIT },
		{ 8, 0, LIMIT, 0, LIMIT },
		{ 64, 0, 0, 0, 0 },
		{ 1024, 0, 0, 0, 0 },
		{ 4096, 0, 0, 0, 0 },
		{ 16384, 0, 0, 0, 0 },
		{ 16388, 0, LIMIT, 0, 0 },
		{ 1048576, 0, LIMIT, 0, 0 },
		/* pinned: no limit, where the reference says 5022 */
		{ SIZE_MAX, LIMIT, LIMIT, BAD, 0 },
	};

	assert_ok(cuFileDriverOpen());
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_code(cuFileDriverSetPollMode(true, rows[i].kib),
			    rows[i].poll);
		assert_code(cuFileDriverSetMaxDirectIOSize(rows[i].kib),
			    rows[i].direct);
		assert_code(cuFileDriverSetMaxCacheSize(rows[i].kib),
			    rows[i].cache);
		assert_code(cuFileDriverSetMaxPinnedMemSize(rows[i].kib),
			    rows[i].pinned);
	}
}

/* Contract 3.0: a call that fails has no side effect. */
static void a_refused_setter_changes_nothing_and_opens_nothing(void **state)
{
	CUfileDrvProps_t before, after;

	assert_code(cuFileDriverSetPollMode(true, 5), LIMIT);
	assert_code(cuFileDriverSetMaxDirectIOSize(0), LIMIT);
	assert_ok(cuFileSetParameterSizeT(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE,
					  64));
	before = properties();
	assert_code(cuFileDriverSetPollMode(true, 5), LIMIT);
	assert_code(cuFileDriverSetMaxDirectIOSize(16388), LIMIT);
	assert_code(cuFileDriverSetMaxCacheSize(1), LIMIT);
	assert_code(cuFileDriverSetMaxPinnedMemSize(4), LIMIT);
	after = properties();
	assert_memory_equal(&before, &after, sizeof(before));
}

/* "UINT64_MAX for pin = no limit"; contract 3.5. */
static void no_limit_on_pinned_memory_shows_as_the_largest_number(void **state)
{
	assert_ok(cuFileDriverOpen());
	assert_ok(cuFileDriverSetMaxPinnedMemSize(UINT64_MAX));
	assert_int_equal(properties().max_device_pinned_mem_size, UINT32_MAX);
}

/* "BAR size gpu 0 / 99 / -1 / NULL"; contract 3.15. */
static void bar_size_of_a_gpu_there_is_and_of_others(void **state)
{
	size_t kib = SIZE_MAX;

	th_need_gpu();
	assert_ok(cuFileGetBARSizeInKB(0, &kib));
	assert_true(kib < SIZE_MAX);
	assert_code(cuFileGetBARSizeInKB(99, &kib), BAD);
	assert_code(cuFileGetBARSizeInKB(-1, &kib), BAD);
	assert_code(cuFileGetBARSizeInKB(0, NULL), BAD);
}

/* "5026 once ... GetBARSize has opened implicitly". */
static void bar_size_before_open_opens_without_a_use(void **state)
{
	size_t kib;

	th_need_gpu();
	assert_ok(cuFileGetBARSizeInKB(0, &kib));
	assert_int_equal(cuFileUseCount(), 0);
	assert_code(cuFileSetParameterBool(
			    CUFILE_PARAM_PROPERTIES_USE_POLL_MODE, true),
		    CU_FILE_DRIVER_ALREADY_OPEN);
}

static int text_fd(void)
{
	int fd = open(fresh_text_file("data", "some bytes in a file"), O_RDWR);

	assert_true(fd >= 0);
	return fd;
}

/* "1 after a handle register"; contract 3.3, record section c. */
static void a_handle_register_before_open_counts_one_use(void **state)
{
	CUfileHandle_t fh;

	assert_ok(fresh_register(text_fd(), &fh));
	assert_int_equal(cuFileUseCount(), 1);
	assert_ok(cuFileDriverClose_v2());
	assert_code(cuFileDriverClose_v2(), CU_FILE_DRIVER_NOT_INITIALIZED);
}

/* The same for the other call that registers; contract 3.3. */
static void a_buffer_register_before_open_counts_one_use(void **state)
{
	static char buf[4096];

	assert_ok(cuFileBufRegister(buf, sizeof(buf), 0));
	assert_int_equal(cuFileUseCount(), 1);
	assert_ok(cuFileBufRegister(buf + 1, 1, 0));
	assert_int_equal(cuFileUseCount(), 1);
	assert_ok(cuFileDriverClose_v2());
	assert_int_equal(cuFileUseCount(), 0);
}

/* Contract 3.3: the reference is added only if the call succeeds. */
static void a_failed_register_before_open_counts_no_use(void **state)
{
	CUfileHandle_t fh;
	static char buf[64];

	assert_code(fresh_register(-1, &fh), BAD);
	assert_int_equal(cuFileUseCount(), 0);
	assert_code(cuFileBufRegister(buf, 0, 0), BAD);
	assert_int_equal(cuFileUseCount(), 0);
	assert_code(cuFileDriverClose_v2(), CU_FILE_DRIVER_NOT_INITIALIZED);
}

/* What setters, parameters and batches without a use have left is kept. */
static void a_failed_register_leaves_what_is_open(void **state)
{
	CUfileBatchHandle_t batch;
	CUfileIOEvents_t event;
	unsigned nr = 1;
	CUfileHandle_t fh;

	assert_ok(cuFileSetParameterSizeT(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE,
					  64));
	assert_ok(cuFileDriverSetMaxDirectIOSize(1024));
	assert_ok(cuFileBatchIOSetUp(&batch, 1));
	assert_code(fresh_register(-1, &fh), BAD);
	assert_int_equal(cuFileUseCount(), 0);
	assert_ok(cuFileBatchIOGetStatus(batch, 0, &nr, &event, NULL));
	assert_ok(cuFileDriverOpen());
	assert_int_equal(cuFileUseCount(), 1);
	assert_int_equal(properties().max_batch_io_size, 64);
	assert_int_equal(properties().nvfs.max_direct_io_size, 1024);
	cuFileBatchIODestroy(batch);
	assert_ok(cuFileDriverClose_v2());
	assert_code(cuFileDriverClose_v2(), CU_FILE_DRIVER_NOT_INITIALIZED);
}

/* As if the first call of a process had not been made. */
static void a_failed_first_register_leaves_the_driver_closed(void **state)
{
	CUfileHandle_t fh;
	static char buf[64];

	assert_ok(cuFileSetParameterSizeT(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE,
					  64));
	assert_code(fresh_register(-1, &fh), BAD);
	assert_code(cuFileBufRegister(buf, 0, 0), BAD);
	assert_ok(cuFileSetParameterBool(CUFILE_PARAM_PROPERTIES_USE_POLL_MODE,
					 true));
	assert_ok(cuFileDriverOpen());
	assert_int_equal(properties().max_batch_io_size, 64);
	assert_int_equal(properties().nvfs.dcontrolflags, 0x3);
	assert_ok(cuFileDriverClose_v2());
}

/* Contract 3.3: deregistering gives no use back. */
static void deregistering_keeps_the_use_of_an_implicit_open(void **state)
{
	CUfileHandle_t fh;

	assert_ok(fresh_register(text_fd(), &fh));
	cuFileHandleDeregister(fh);
	assert_int_equal(cuFileUseCount(), 1);
	assert_errno(cuFileRead(fh, &fh, 1, 0, 0), EINVAL);
	assert_int_equal(cuFileUseCount(), 1);
	assert_ok(cuFileDriverClose_v2());
}

/* Record, section b. */
static void buffer_deregister_while_closed_is_refused_5006(void **state)
{
	static char buf[64];

	assert_code(cuFileBufDeregister(buf), CU_FILE_DRIVER_CLOSING);
	assert_ok(cuFileDriverOpen());
	assert_ok(cuFileBufRegister(buf, sizeof(buf), 0));
	assert_ok(cuFileDriverClose_v2());
	assert_code(cuFileBufDeregister(buf), CU_FILE_DRIVER_CLOSING);
}

/* Record, section c. */
static void reads_before_any_open_are_refused(void **state)
{
	char byte;

	assert_errno(cuFileRead(NULL, &byte, 1, 0, 0), EINVAL);
	assert_errno(cuFileWrite(NULL, &byte, 1, 0, 0), EINVAL);
}

/* "close with handles and buffers left registered"; record section j. */
static void a_close_frees_handles_and_buffers_left_registered(void **state)
{
	static char buf[4096];
	CUfileHandle_t fh, again;
	int fd = text_fd();

	assert_ok(cuFileDriverOpen());
	assert_ok(fresh_register(fd, &fh));
	assert_ok(cuFileBufRegister(buf, sizeof(buf), 0));
	assert_ok(cuFileDriverClose_v2());
	assert_int_equal(cuFileUseCount(), 0);
	assert_code(cuFileDriverClose_v2(), CU_FILE_DRIVER_NOT_INITIALIZED);
	assert_errno(cuFileRead(fh, buf, 4, 0, 0), EINVAL);

	assert_ok(cuFileDriverOpen());
	assert_errno(cuFileRead(fh, buf, 4, 0, 0), EINVAL);
	assert_code(cuFileBufDeregister(buf), CU_FILE_MEMORY_NOT_REGISTERED);
	assert_ok(fresh_register(fd, &again));
	assert_ptr_not_equal(again, fh);
	assert_int_equal(cuFileRead(again, buf, 4, 0, 0), 4);
	assert_memory_equal(buf, "some", 4);
	assert_ok(cuFileDriverClose_v2());
}

/* The same with GPU memory and its context, streams and slots. */
static void a_close_gives_back_all_that_the_gpu_lent(void **state)
{
	const struct th_fake *fake = th_need_fake();
	long before = fake->leaks(NULL);
	struct th_file file;
	struct th_mem mem;
	unsigned char *bytes = th_bytes(TH_MIB);

	th_file_make(&file, TH_BUFFERED, O_RDWR, bytes, TH_MIB);
	th_mem_alloc(&mem, TH_DEVICE, TH_MIB);
	for (int i = 0; i < 3; i++) {
		assert_ok(cuFileDriverOpen());
		assert_ok(cuFileBufRegister(mem.ptr, mem.size, 0));
		assert_int_equal(
			cuFileRead(th_handle(file.fd), mem.ptr, mem.size, 0, 0),
			TH_MIB);
		assert_ok(cuFileDriverClose_v2());
	}
	th_mem_get(&mem, 0, bytes, 1);
	th_mem_free(&mem);
	assert_int_equal(fake->leaks(NULL), before);
	th_file_end(&file);
	free(bytes);
}

/* "hung on a second close in a run with failed registrations". */
static void closes_after_failed_registrations_do_not_hang(void **state)
{
	static char buf[4096];
	CUfileHandle_t fh;
	int fd = text_fd();

	for (int i = 0; i < 20; i++) {
		assert_ok(cuFileDriverOpen());
		assert_code(fresh_register(9999, &fh), BAD);
		assert_ok(fresh_register(fd, &fh));
		assert_code(fresh_register(fd, &fh),
			    CU_FILE_HANDLE_ALREADY_REGISTERED);
		assert_ok(cuFileBufRegister(buf, sizeof(buf), 0));
		assert_code(cuFileBufRegister(buf, sizeof(buf), 0),
			    CU_FILE_MEMORY_ALREADY_REGISTERED);
		assert_code(cuFileBufRegister(NULL, 1, 0), BAD);
		assert_ok(cuFileDriverClose_v2());
		assert_code(cuFileDriverClose_v2(),
			    CU_FILE_DRIVER_NOT_INITIALIZED);
	}
}

static void open_and_close(void *arg, unsigned i)
{
	struct th_bad *bad = arg;

	for (int n = 0; n < TH_SCALE(2000); n++) {
		if (cuFileDriverOpen().err)
			th_bad_note(bad, "open failed");
		if (cuFileUseCount() < 1)
			th_bad_note(bad, "open, and no use is counted");
		if (cuFileDriverClose_v2().err)
			th_bad_note(bad, "close failed");
	}
}

/* Contract 3.0: any thread. */
static void opens_and_closes_of_many_threads_balance(void **state)
{
	struct th_bad bad = { 0 };

	th_threads(8, open_and_close, &bad);
	th_bad_check(&bad);
	assert_int_equal(cuFileUseCount(), 0);
}

static void close_or_ask(void *arg, unsigned i)
{
	struct th_bad *bad = arg;
	ocf_config_t row = { .struct_size = sizeof(row) };
	CUfileDrvProps_t props;

	for (int n = 0; n < TH_SCALE(2000); n++) {
		if (i < 2)
			(void)(cuFileDriverOpen().err ||
			       cuFileDriverClose_v2().err);
		else if (cuFileDriverGetProperties(&props).err)
			th_bad_note(bad, "properties failed");
		else if (cuFileDriverSetMaxCacheSize(1 << 20).err)
			th_bad_note(bad, "setter failed");
		else if (cuFileDriverSetPollMode(true, 4).err)
			th_bad_note(bad, "poll mode failed");
		else if (ocf_config_get(0, &row).err)
			th_bad_note(bad, "row failed");
	}
}

/* "ok, opens implicitly": also if a close comes just then. */
static void who_asks_while_others_close_opens_the_driver(void **state)
{
	struct th_bad bad = { 0 };

	th_threads(6, close_or_ask, &bad);
	th_bad_check(&bad);
	assert_int_equal(cuFileUseCount(), 0);
}

/* "a forked child can use host memory"; record section k. */
static void a_forked_child_uses_host_memory(void **state)
{
	CUfileHandle_t fh;
	char buf[5] = "";
	pid_t pid;
	int status;

	assert_ok(cuFileDriverOpen());
	assert_ok(fresh_register(text_fd(), &fh));
	pid = fork();
	if (!pid) {
		alarm(100);
		_exit(!(cuFileRead(fh, buf, 4, 5, 0) == 4 &&
			!memcmp(buf, "byte", 4) &&
			cuFileWrite(fh, "more", 4, 0, 0) == 4 &&
			!cuFileBufRegister(buf, sizeof(buf), 0).err &&
			!cuFileDriverClose_v2().err &&
			!cuFileDriverOpen().err));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	/* the parent is as it was, but for the file */
	assert_int_equal(cuFileUseCount(), 1);
	assert_int_equal(cuFileRead(fh, buf, 4, 0, 0), 4);
	assert_memory_equal(buf, "more", 4);
}

/* "a clear error for GPU memory of the parent". */
static void a_forked_child_is_told_that_gpu_memory_is_not_its_own(void **state)
{
	struct th_mem mem;
	CUfileHandle_t fh;
	pid_t pid;
	int status;

	th_need_gpu();
	th_mem_alloc(&mem, TH_DEVICE, 65536);
	assert_ok(cuFileDriverOpen());
	assert_ok(fresh_register(text_fd(), &fh));
	assert_int_equal(cuFileRead(fh, mem.ptr, 4, 0, 0), 4);
	pid = fork();
	if (!pid) {
		alarm(100);
		_exit(!(cuFileRead(fh, mem.ptr, 4, 0, 0) == -1 &&
			errno == CU_FILE_CUDA_DRIVER_ERROR &&
			cuFileWrite(fh, mem.ptr, 4, 0, 0) == -1 &&
			errno == CU_FILE_CUDA_DRIVER_ERROR));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(cuFileRead(fh, mem.ptr, 4, 0, 0), 4);
	assert_ok(cuFileDriverClose_v2());
	th_mem_free(&mem);
}

static const struct fresh_test tests[] = {
	FRESH(version_is_told_before_an_open_and_does_not_open),
	FRESH(version_into_null_is_refused_5022),
	FRESH(open_works_with_no_context_current),
	FRESH(open_twice_counts_two_uses),
	FRESH(close_when_not_open_is_refused_5001),
	FRESH(the_old_close_symbol_does_what_v2_does),
	FRESH(properties_before_open_open_without_counting_a_use),
	FRESH(properties_name_no_kernel_driver),
	FRESH(properties_into_null_are_refused_5022),
	FRESH(runtime_setters_before_open_open_without_a_use),
	FRESH(driver_setters_while_closed_take_effect),
	FRESH(driver_setters_while_open_take_effect_until_the_close),
	FRESH(runtime_setters_keep_the_recorded_bounds),
	FRESH(a_refused_setter_changes_nothing_and_opens_nothing),
	FRESH(no_limit_on_pinned_memory_shows_as_the_largest_number),
	FRESH(bar_size_of_a_gpu_there_is_and_of_others),
	FRESH(bar_size_before_open_opens_without_a_use),
	FRESH(a_handle_register_before_open_counts_one_use),
	FRESH(a_buffer_register_before_open_counts_one_use),
	FRESH(a_failed_register_before_open_counts_no_use),
	FRESH(a_failed_register_leaves_what_is_open),
	FRESH(a_failed_first_register_leaves_the_driver_closed),
	FRESH(deregistering_keeps_the_use_of_an_implicit_open),
	FRESH(buffer_deregister_while_closed_is_refused_5006),
	FRESH(reads_before_any_open_are_refused),
	FRESH(a_close_frees_handles_and_buffers_left_registered),
	FRESH(a_close_gives_back_all_that_the_gpu_lent),
	FRESH(closes_after_failed_registrations_do_not_hang),
	FRESH(opens_and_closes_of_many_threads_balance),
	FRESH(who_asks_while_others_close_opens_the_driver),
	FRESH(a_forked_child_uses_host_memory),
	FRESH(a_forked_child_is_told_that_gpu_memory_is_not_its_own),
};

FRESH_MAIN(tests, 30)

// SPDX-License-Identifier: Apache-2.0
/*
 * Reads that would go through the GPU's own seats, while each call that makes
 * these fails once, or from then on: the bytes that are said to be there are
 * right, nothing is left, and the next life is well. Either way that there is
 * to such memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "fake_rm.h"
#include "fault.h"
#include "harness.h"
#include "leases.h"
#include "seam/os.h"

#define SIZE (300 * TH_KIB)
#define WARM 40
#define IN_STREAM (100 * TH_KIB)
#define STREAMED_READS 3
#define MANY 25	   /* orders, more than small reads alone can be */
#define LOOK_NS 50 /* by which each look at the clock lets time go on */

static struct th_file file;
static struct th_mem mem;
static CUstream stream;
static unsigned char *bytes, *got;

/* ---------------------------------------------------------------- world */

static struct cf_os timed;

static int setup(void **state)
{
	th_need_fake();
	(void)state;
	timed = cf_os_real;
	timed.clock_gettime = th_clock;
	th_clock_look_ns = LOOK_NS;
	cf_os = &timed;
	bytes = th_bytes(SIZE);
	got = th_bytes(SIZE);
	th_file_make(&file, TH_BUFFERED, O_RDWR, bytes, SIZE);
	th_mem_alloc(&mem, TH_DEVICE, SIZE);
	assert_int_equal(cuStreamCreate(&stream, CF_CU_STREAM_NON_BLOCKING), 0);
	return 0;
}

static int teardown(void **state)
{
	th_fake()->plan_clear();
	assert_int_equal(cuStreamDestroy(stream), 0);
	th_mem_free(&mem);
	th_file_end(&file);
	free(bytes);
	free(got);
	cf_os = &cf_os_real;
	return 0;
}

/* ----------------------------------------------------------- what is there */

static const char *const kinds[] = { "vmm_handle",    "vmm_map", "vmm_reserve",
				     "host_register", "stream",	 "event",
				     "module" };
#define NR_KINDS (sizeof(kinds) / sizeof(*kinds))
static long live[NR_KINDS];
static int fds;

static void note_all(void)
{
	for (size_t i = 0; i < NR_KINDS; i++)
		live[i] = th_fake()->live(kinds[i]);
	fds = th_count_fds();
}

static void nothing_is_left(const char *what)
{
	for (size_t i = 0; i < NR_KINDS; i++)
		if (th_fake()->live(kinds[i]) != live[i])
			fail_msg("%s: %ld of %s", what,
				 th_fake()->live(kinds[i]) - live[i], kinds[i]);
	if (th_count_fds() != fds)
		fail_msg("%s: %d descriptors", what, th_count_fds() - fds);
}

/* ------------------------------------------------------------------ a life */

/* Whether all of it came; what is said to have come is right. */
static bool read_some(CUfileHandle_t fh, const char *what, size_t size)
{
	size_t at = th_below(SIZE - size + 1);
	ssize_t n;

	if (th_fake()->write((CUdeviceptr)(uintptr_t)mem.ptr, bytes + SIZE / 2,
			     SIZE / 2))
		fail_msg("%s: no memory", what);
	n = cuFileRead(fh, mem.ptr, size, (off_t)at, 0);
	if (n > (ssize_t)size || n == 0)
		fail_msg("%s: %zd of %zu", what, n, size);
	if (n > 0 &&
	    th_fake()->read((CUdeviceptr)(uintptr_t)mem.ptr, got, (size_t)n))
		fail_msg("%s: no memory", what);
	if (n > 0)
		th_equal(what, got, bytes + at, (size_t)n);
	return n == (ssize_t)size;
}

/*
 * In a stream, which reads into slots that are idle, and near ones beside them;
 * a read in the stream has need of both.
 */
static bool read_in_stream(CUfileHandle_t fh, const char *what)
{
	const ssize_t waiting = -777777;
	off_t at = (off_t)th_below(SIZE - IN_STREAM + 1), mem_off = 0;
	size_t size = IN_STREAM;
	ssize_t n = waiting;

	if (cuFileReadAsync(fh, mem.ptr, &size, &at, &mem_off, &n, stream).err)
		return false;
	while (__atomic_load_n(&n, __ATOMIC_ACQUIRE) == waiting)
		th_sleep_ms(0);
	if (n > (ssize_t)IN_STREAM || n == 0)
		fail_msg("%s: %zd in a stream", what, n);
	while (cuStreamQuery(stream) == CF_CU_NOT_READY)
		th_sleep_ms(0);
	if (n > 0 &&
	    th_fake()->read((CUdeviceptr)(uintptr_t)mem.ptr, got, (size_t)n))
		fail_msg("%s: no memory", what);
	if (n > 0)
		th_equal(what, got, bytes + at, (size_t)n);
	return n == (ssize_t)IN_STREAM;
}

static bool live_once(const char *what)
{
	bool well = true;
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD,
				.handle.fd = file.fd };
	CUfileHandle_t fh;

	if (cuFileDriverOpen().err)
		return false;
	if (cuFileHandleRegister(&fh, &descr).err) {
		leases_check(what);
		cuFileDriverClose();
		return false;
	}
	for (int i = 0; i < WARM; i++)
		well &= read_some(fh, what, 4 * TH_KIB);
	for (size_t size = 16 * TH_KIB; size <= 256 * TH_KIB; size *= 4)
		well &= read_some(fh, what, size);
	for (int i = 0; i < STREAMED_READS; i++)
		well &= read_in_stream(fh, what);
	cuFileHandleDeregister(fh);
	leases_check(what);
	cuFileDriverClose();
	return well;
}

static void begin(void)
{
	fake_rm_begin();
	note_all();
}

static void end(const char *what, bool may_leave)
{
	if (!may_leave)
		nothing_is_left(what);
	fake_rm_end();
}

/*
 * Nothing fails any more: its larger reads are many orders, in parts. On a busy
 * machine launches may look as if they waited for their end, and then it rests.
 */
static void the_next_life_is_well(void)
{
	unsigned long orders = 0;

	for (int i = 0; i < 8 && orders < MANY; i++) {
		orders = th_shuttle_orders();
		begin();
		assert_true(live_once("afterwards"));
		end("afterwards", false);
		orders = th_shuttle_orders() - orders;
	}
	assert_true(orders >= MANY);
}

/* ----------------------------------------------------------- system calls */

static bool os_fails(enum fault_call call, unsigned nth, bool persist, int err)
{
	const struct fault fault = {
		.call = call, .nth = nth, .persist = persist, .err = err
	};
	char what[96];
	bool fired, well;

	snprintf(what, sizeof(what), "%s call %u%s: %s", fault_name(call), nth,
		 persist ? " and later" : "", strerror(err));
	begin();
	fault_begin(&fault);
	well = live_once(what);
	fired = fault_fired();
	fault_end();
	if (!fired)
		assert_true(well);
	/* a descriptor whose close failed is closed all the same */
	end(what, call == FAULT_UNMAP);
	return fired;
}

static void any_system_call_may_fail(void **state)
{
	static const struct {
		enum fault_call call;
		int err;
	} rows[] = {
		{ FAULT_PIPE, EMFILE },	     { FAULT_MAP_SHARED, ENOMEM },
		{ FAULT_READ, EFAULT },	     { FAULT_WRITE, EIO },
		{ FAULT_IOCTL, EINVAL },     { FAULT_CLOSE, EIO },
		{ FAULT_DUP_ABOVE, EMFILE }, { FAULT_OPEN, ENOENT },
		{ FAULT_MAP_ANON, ENOMEM },
	};
	unsigned failures = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		for (int persist = 0; persist < 2; persist++)
			for (unsigned nth = 1;
			     nth < 40 &&
			     os_fails(rows[i].call, nth, persist, rows[i].err);
			     nth++)
				failures++;
	print_message("%u failures\n", failures);
	assert_true(failures > 20);
	the_next_life_is_well();
}

/* The last small ones, and all others. */
static void any_read_of_the_file_may_fail(void **state)
{
	unsigned failures = 0;

	(void)state;
	for (int persist = 0; persist < 2; persist++)
		for (unsigned nth = WARM - 2;
		     os_fails(FAULT_PREAD, nth, persist, EIO); nth++)
			failures++;
	print_message("%u failures\n", failures);
	assert_true(failures > 20);
	the_next_life_is_well();
}

/* ----------------------------------------------------------- driver calls */

/* What fails to end something leaves it. */
static bool ends(const char *name)
{
	return strstr(name, "Unmap") || strstr(name, "Free") ||
	       strstr(name, "Release") || strstr(name, "Destroy") ||
	       strstr(name, "Unload") || strstr(name, "Unregister");
}

static bool cuda_fails(const char *name, unsigned nth, bool persist)
{
	char plan[96];
	unsigned long calls;

	snprintf(plan, sizeof(plan), "%s:%u%s=801", name, nth,
		 persist ? "+" : "");
	begin();
	assert_int_equal(th_fake()->plan(plan), 0);
	calls = th_fake()->calls(name);
	live_once(plan);
	calls = th_fake()->calls(name) - calls;
	th_fake()->plan_clear();
	end(plan, ends(name));
	return calls >= nth;
}

static void any_call_of_the_driver_may_fail(void **state)
{
	static const char *const names[] = {
		"cuDriverGetVersion",
		"cuDeviceGetAttribute",
		"cuDeviceGet",
		"cuDeviceGetPCIBusId",
		"cuMemCreate",
		"cuMemAddressReserve",
		"cuMemMap",
		"cuMemSetAccess",
		"cuMemGetHandleForAddressRange",
		"cuMemExportToShareableHandle",
		"cuMemcpyDtoHAsync_v2",
		"cuStreamSynchronize",
		"cuLaunchKernel",
		"cuModuleLoadData",
		"cuStreamCreateWithPriority",
		"cuMemHostRegister_v2",
		"cuMemUnmap",
		"cuMemAddressFree",
	};
	unsigned failures = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		for (int persist = 0; persist < 2; persist++)
			for (unsigned nth = 1;
			     nth < 12 && cuda_fails(names[i], nth, persist);
			     nth++)
				failures++;
	print_message("%u failures\n", failures);
	assert_true(failures > 20);
	the_next_life_is_well();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(any_system_call_may_fail, setup,
						teardown),
		cmocka_unit_test_setup_teardown(any_read_of_the_file_may_fail,
						setup, teardown),
		cmocka_unit_test_setup_teardown(any_call_of_the_driver_may_fail,
						setup, teardown),
	};

	th_start(280);
	return th_finish(
		cmocka_run_group_tests_name("near", tests, NULL, NULL));
}

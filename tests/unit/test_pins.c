// SPDX-License-Identifier: Apache-2.0
/*
 * pins - pages of a file, read-only to us, are what a GPU has at the addresses
 * of a pin, until that ends, whatever the GPU does meanwhile; where one step
 * fails there are none, and nothing is left of it.
 */
#include "core/pins.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "core/device.h"
#include "core/rm_pages.h"
#include "fake_rm.h"
#include "harness.h"
#include "seam/os.h"

#define SIZE (2 * CF_PIN_GRANULE)

static struct cf_cuda cuda; /* the driver, as a test wants it */
static CUstream stream;
static CUdeviceptr device; /* SIZE bytes */
static unsigned char *bytes, *got;
static char *mem; /* the file's, mapped read-only */

/* ------------------------------------------------- what there was, and is */

static const char *const kinds[] = { "vmm_handle", "vmm_map", "vmm_reserve" };
#define NR_KINDS (sizeof(kinds) / sizeof(*kinds))
static long live[NR_KINDS];
static int fds;

static void note_all(void)
{
	for (size_t i = 0; i < NR_KINDS; i++)
		live[i] = th_fake()->live(kinds[i]);
	fds = th_count_fds();
}

static void libcuda_has_as_before(void)
{
	for (size_t i = 0; i < NR_KINDS; i++)
		assert_int_equal(th_fake()->live(kinds[i]), live[i]);
}

static void is_as_before(void)
{
	libcuda_has_as_before();
	assert_int_equal(th_count_fds(), fds);
	assert_int_equal(fake_rm_descriptors(), 0);
	assert_int_equal(fake_rm_clients(), 0);
	assert_int_equal(fake_rm_pages(), 0);
	assert_int_equal(fake_rm_exports(), 0);
}

/* ---------------------------------------------------------------- world */

static void make_file(void)
{
	char path[] = "/tmp/pins-XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	unlink(path);
	bytes = th_bytes(SIZE);
	got = th_bytes(SIZE);
	assert_int_equal(pwrite(fd, bytes, SIZE, 0), SIZE);
	mem = mmap(NULL, SIZE, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
	assert_ptr_not_equal(mem, MAP_FAILED);
	close(fd);
}

static int begin(void **state)
{
	(void)state;
	th_need_fake();
	assert_non_null(cf_cuda_open());
	cuda = *cf_cuda_loaded();
	cf_cuda_replace(&cuda);
	assert_int_equal(cuStreamCreate(&stream, 1), 0);
	assert_int_equal(cuMemAlloc(&device, SIZE), 0);
	make_file();
	fake_rm_begin();
	note_all();
	return 0;
}

static int end(void **state)
{
	(void)state;
	th_fake()->plan_clear();
	cf_pins_close();
	is_as_before();
	fake_rm_end();
	cf_cuda_replace(NULL);
	munmap(mem, SIZE);
	free(bytes);
	free(got);
	assert_int_equal(cuMemFree(device), 0);
	assert_int_equal(cuStreamDestroy(stream), 0);
	return 0;
}

/* ---------------------------------------------------------------- words */

static void try_them(void)
{
	cf_pins_try(0, stream);
}

static void are_good(void)
{
	try_them();
	assert_int_equal(cf_pins_state(), CF_PINS_GOOD);
	libcuda_has_as_before();
}

/* None, nothing is left, and nobody asks again before the close. */
static void are_none(void)
{
	unsigned asked;

	try_them();
	assert_int_equal(cf_pins_state(), CF_PINS_NONE);
	is_as_before();
	asked = fake_rm_asked(FAKE_RM_CTL);
	try_them();
	assert_int_equal(fake_rm_asked(FAKE_RM_CTL), asked);
	cf_pins_close();
}

static void gpu_reads(const struct cf_pin *pin, size_t at, size_t n)
{
	memset(got, 0, SIZE);
	assert_int_equal(cuMemcpyDtoDAsync(device, pin->gpu + at, n, stream),
			 0);
	assert_int_equal(cuStreamSynchronize(stream), 0);
	assert_int_equal(th_fake()->read(device, got, n), 0);
	th_equal("by the GPU", got, bytes + at, n);
}

static void pin_is(struct cf_pin *pin)
{
	assert_int_equal(cf_pin_make(pin, mem, SIZE, 0), 0);
	assert_int_equal(pin->size, SIZE);
}

static void pin_is_refused(int err)
{
	struct cf_pin pin;

	assert_int_equal(cf_pin_make(&pin, mem, SIZE, 0), err);
	assert_int_equal(pin.gpu, 0);
	libcuda_has_as_before();
	assert_int_equal(fake_rm_pages(), 0);
}

/* ------------------------------------------------------------ well and so */

static void a_gpu_reads_the_pages_of_the_file(void **state)
{
	struct cf_pin pin;

	(void)state;
	are_good();
	pin_is(&pin);
	gpu_reads(&pin, 0, SIZE);
	gpu_reads(&pin, CF_PIN_GRANULE - 5, 4096);
	gpu_reads(&pin, SIZE - 1, 1);
	assert_true(cf_pin_end(&pin));
	assert_int_equal(pin.gpu, 0);
	libcuda_has_as_before();
	assert_true(cf_pin_end(&pin));
}

static void nothing_of_ours_holds_them_but_what_is_mapped(void **state)
{
	struct cf_pin pin;

	(void)state;
	are_good();
	assert_int_equal(fake_rm_pages(), 0);
	assert_int_equal(fake_rm_exports(), 1); /* the page that is kept */
	pin_is(&pin);
	assert_int_equal(fake_rm_pages(), 0);
	assert_int_equal(fake_rm_exports(), 1);
	assert_int_equal(th_fake()->live("vmm_handle"), live[0]);
	assert_true(cf_pin_end(&pin));
}

static void pins_are_beside_each_other(void **state)
{
	struct cf_pin first, second;

	(void)state;
	are_good();
	pin_is(&first);
	pin_is(&second);
	assert_true(first.gpu != second.gpu);
	assert_true(cf_pin_end(&first));
	gpu_reads(&second, 0, SIZE);
	assert_true(cf_pin_end(&second));
}

static void a_gpu_that_is_busy_holds_up_nobody(void **state)
{
	CUstream other;
	struct cf_pin pin;
	uint32_t *flag;

	(void)state;
	are_good();
	assert_int_equal(cuMemHostAlloc((void **)&flag, 4096, 0), 0);
	*flag = 0;
	assert_int_equal(cuStreamCreate(&other, 1), 0);
	assert_int_equal(
		cuStreamWaitValue32(other, (CUdeviceptr)(uintptr_t)flag, 1, 0),
		0);
	pin_is(&pin);
	gpu_reads(&pin, 0, SIZE);
	assert_true(cf_pin_end(&pin));
	assert_int_equal(cuStreamQuery(other), CF_CU_NOT_READY);
	__atomic_store_n(flag, 1, __ATOMIC_RELEASE);
	assert_int_equal(cuStreamSynchronize(other), 0);
	assert_int_equal(cuStreamDestroy(other), 0);
	assert_int_equal(cuMemFreeHost(flag), 0);
}

/* What is in use is made known as the first request to it does. */
static void use(int ordinal)
{
	struct cf_memory where = { .kind = CF_MEMORY_DEVICE,
				   .ordinal = ordinal };
	struct cf_device *dev;
	CUcontext ctx;
	CUdevice d;

	assert_int_equal(cuDeviceGet(&d, ordinal), 0);
	assert_int_equal(cuDevicePrimaryCtxRetain(&ctx, d), 0);
	where.ctx = ctx;
	assert_int_equal(cf_device_find(&where, &dev), 0);
	assert_int_equal(cuDevicePrimaryCtxRelease(d), 0);
}

static void all_gpus_in_use_reach_them_and_no_later_ones(void **state)
{
	struct cf_pin first, second;

	(void)state;
	are_good();
	use(0);
	pin_is(&first);
	assert_true(cf_pin_is_reached(&first, 0));
	assert_false(cf_pin_is_reached(&first, 1));
	use(1);
	assert_false(cf_pin_is_reached(&first, 1));
	pin_is(&second);
	assert_true(cf_pin_is_reached(&second, 0));
	assert_true(cf_pin_is_reached(&second, 1));
	assert_false(cf_pin_is_reached(&second, 63));
	assert_false(cf_pin_is_reached(&second, 64));
	assert_true(cf_pin_end(&first));
	assert_true(cf_pin_end(&second));
	cf_devices_close();
}

static void before_they_are_tried_nothing_is_pinned(void **state)
{
	(void)state;
	assert_int_equal(cf_pins_state(), CF_PINS_UNTRIED);
	pin_is_refused(-ENOTSUP);
}

/* ------------------------------------------------------------ other machines
 */

static void a_driver_535_pins_too(void **state)
{
	struct cf_pin pin;

	(void)state;
	fake_rm.is_535 = true;
	are_good();
	pin_is(&pin);
	gpu_reads(&pin, 0, SIZE);
	assert_true(cf_pin_end(&pin));
}

static void a_machine_without_the_driver_s_nodes_has_none(void **state)
{
	(void)state;
	fake_rm.refusal[FAKE_RM_CTL] = -ENOENT;
	are_none();
}

static void a_libcuda_without_a_call_has_none(void **state)
{
	const struct cf_cuda was = cuda;

#define WITHOUT(call) \
	do { \
		cuda.call = NULL; \
		are_none(); \
		cuda.call = was.call; \
	} while (0)
	WITHOUT(mem_create);
	WITHOUT(mem_release);
	WITHOUT(mem_address_reserve);
	WITHOUT(mem_address_free);
	WITHOUT(mem_map);
	WITHOUT(mem_unmap);
	WITHOUT(mem_set_access);
	WITHOUT(mem_export_to_handle);
	WITHOUT(mem_import_from_handle);
	WITHOUT(memcpy_dtod_async);
#undef WITHOUT
	are_good();
}

static CUresult lies(void *dst, CUdeviceptr src, size_t size, CUstream s)
{
	CUresult res = cuMemcpyDtoHAsync(dst, src, size, s);

	((char *)dst)[size - 1] ^= 1;
	return res;
}

static void pages_that_show_other_bytes_are_found_out(void **state)
{
	(void)state;
	cuda.memcpy_dtoh_async = lies;
	are_none();
}

/* ---------------------------------------------------------------- refusals */

static void refuse(const char *call)
{
	char plan[96];

	snprintf(plan, sizeof(plan), "%s:*=2", call);
	assert_int_equal(th_fake()->plan(plan), 0);
}

static void a_call_that_fails_at_the_trial_leaves_nothing(void **state)
{
	static const char *const calls[] = {
		"cuDeviceGet",
		"cuDeviceGetPCIBusId",
		"cuMemCreate",
		"cuMemExportToShareableHandle",
		"cuMemImportFromShareableHandle",
		"cuMemAddressReserve",
		"cuMemMap",
		"cuMemSetAccess",
		"cuMemcpyDtoHAsync_v2",
		"cuStreamSynchronize",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		refuse(calls[i]);
		are_none();
		th_fake()->plan_clear();
	}
	are_good();
}

static void a_call_that_fails_later_leaves_nothing(void **state)
{
	static const char *const calls[] = {
		"cuMemImportFromShareableHandle",
		"cuMemAddressReserve",
		"cuMemMap",
		"cuMemSetAccess",
	};
	struct cf_pin pin;

	(void)state;
	are_good();
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		refuse(calls[i]);
		pin_is_refused(CF_ECUDA(2));
		th_fake()->plan_clear();
	}
	pin_is(&pin);
	assert_true(cf_pin_end(&pin));
}

static void a_step_that_is_refused_at_the_trial_leaves_nothing(void **state)
{
	static const int with[] = { -EACCES, -EINVAL, 0x56 };
	static const enum fake_rm_step steps[] = {
		FAKE_RM_CTL,	  FAKE_RM_CLIENT, FAKE_RM_INFO,
		FAKE_RM_DEVICE,	  FAKE_RM_PROC,	  FAKE_RM_NODE,
		FAKE_RM_REGISTER, FAKE_RM_PAGES,  FAKE_RM_EXPORT,
	};

	(void)state;
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		for (size_t k = 0; k < sizeof(with) / sizeof(*with); k++) {
			bool opens = steps[i] == FAKE_RM_CTL ||
				     steps[i] == FAKE_RM_PROC ||
				     steps[i] == FAKE_RM_NODE;

			if (opens && with[k] > 0)
				continue;
			fake_rm.refusal[steps[i]] = with[k];
			are_none();
			fake_rm.refusal[steps[i]] = 0;
		}
	}
	are_good();
}

/* A driver that has copied, and is not done yet. */
static CUresult copy_and_work_on(void *dst, CUdeviceptr src, size_t size,
				 CUstream on)
{
	CUresult res = cuMemcpyDtoHAsync(dst, src, size, on);

	return res ? res : cuMemsetD8Async(device, 0, SIZE, on);
}

static void nothing_is_under_way_when_a_wait_has_failed(void **state)
{
	(void)state;
	cuda.memcpy_dtoh_async = copy_and_work_on;
	th_fake()->copy_delay_us(20000);
	assert_int_equal(th_fake()->plan("cuStreamSynchronize:*=999"), 0);
	try_them();
	assert_int_equal(cf_pins_state(), CF_PINS_NONE);
	assert_int_equal(cuStreamQuery(stream), 0);
	th_fake()->copy_delay_us(0);
	th_fake()->plan_clear();
	is_as_before();
}

static void a_driver_short_of_memory_says_so(void **state)
{
	struct cf_pin pin;

	(void)state;
	are_good();
	fake_rm.refusal[FAKE_RM_PAGES] = 0x51;
	pin_is_refused(-ENOMEM);
	fake_rm.refusal[FAKE_RM_PAGES] = 0x1a;
	pin_is_refused(-ENOMEM);
	fake_rm.refusal[FAKE_RM_PAGES] = 0x1e;
	pin_is_refused(-ENOTSUP);
	fake_rm.refusal[FAKE_RM_PAGES] = 0;
	fake_rm.refusal[FAKE_RM_EXPORT] = 0x1a;
	pin_is_refused(-ENOTSUP);
	fake_rm.refusal[FAKE_RM_EXPORT] = 0;
	pin_is(&pin);
	assert_true(cf_pin_end(&pin));
}

static void what_is_no_whole_granule_is_refused(void **state)
{
	struct cf_pin pin;

	(void)state;
	are_good();
	assert_int_equal(cf_pin_make(&pin, mem, SIZE - th_page(), 0),
			 CF_ECUDA(1));
	assert_int_equal(pin.gpu, 0);
	libcuda_has_as_before();
	assert_int_equal(fake_rm_pages(), 0);
}

/* It stays: somebody may still read it. */
static void what_libcuda_does_not_unmap_is_not_let_go(void **state)
{
	struct cf_pin pin;

	(void)state;
	are_good();
	pin_is(&pin);
	refuse("cuMemUnmap");
	assert_false(cf_pin_end(&pin));
	th_fake()->plan_clear();
	gpu_reads(&pin, 0, SIZE);
	assert_true(cf_pin_end(&pin));
}

/* While libcuda has the trial's pages they are not let go, either. */
static void a_trial_asks_twice_to_unmap_what_it_could_not_use(void **state)
{
	(void)state;
	assert_int_equal(th_fake()->plan("cuMemSetAccess:1=2,cuMemUnmap:1=2"),
			 0);
	are_none();
}

/* ---------------------------------------------------------------- threads */

struct side {
	struct th_bad *bad;
	_Atomic unsigned made;
};

static void make_and_end(void *arg, unsigned i)
{
	struct side *side = arg;

	for (int round = 0; round < TH_SCALE(100); round++) {
		struct cf_pin pin;
		int err = cf_pin_make(&pin, mem, SIZE, 0);

		if (!err) {
			side->made++;
			if (!cf_pin_end(&pin))
				th_bad_note(side->bad, "thread %u: end", i);
		} else if (err != -EBUSY) {
			th_bad_note(side->bad, "thread %u: %d", i, err);
		}
	}
}

static void who_comes_while_another_pins_does_without(void **state)
{
	static struct th_bad bad;
	struct side side = { .bad = &bad };

	(void)state;
	are_good();
	th_threads(4, make_and_end, &side);
	th_bad_check(&bad);
	assert_true(side.made > 0);
	libcuda_has_as_before();
	assert_int_equal(fake_rm_pages(), 0);
	assert_int_equal(fake_rm_exports(), 1);
}

#define test(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(a_gpu_reads_the_pages_of_the_file),
		test(nothing_of_ours_holds_them_but_what_is_mapped),
		test(pins_are_beside_each_other),
		test(a_gpu_that_is_busy_holds_up_nobody),
		test(all_gpus_in_use_reach_them_and_no_later_ones),
		test(before_they_are_tried_nothing_is_pinned),
		test(a_driver_535_pins_too),
		test(a_machine_without_the_driver_s_nodes_has_none),
		test(a_libcuda_without_a_call_has_none),
		test(pages_that_show_other_bytes_are_found_out),
		test(a_call_that_fails_at_the_trial_leaves_nothing),
		test(a_call_that_fails_later_leaves_nothing),
		test(a_step_that_is_refused_at_the_trial_leaves_nothing),
		test(nothing_is_under_way_when_a_wait_has_failed),
		test(a_driver_short_of_memory_says_so),
		test(what_is_no_whole_granule_is_refused),
		test(what_libcuda_does_not_unmap_is_not_let_go),
		test(a_trial_asks_twice_to_unmap_what_it_could_not_use),
		test(who_comes_while_another_pins_does_without),
	};

	th_start(60);
	return th_finish(cmocka_run_group_tests(tests, NULL, NULL));
}

// SPDX-License-Identifier: Apache-2.0
/*
 * aperture - what the CPU writes there the GPU has, by either of the two ways
 * that there are; where one step of both fails, or the address is of something
 * else, there is none, and nothing is left when it is ended.
 */
#include "core/aperture.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include "core/arrival.h"
#include "fake_rm.h"
#include "harness.h"
#include "seam/os.h"

#define GRANULE (2 * TH_MIB)
#define PAGE ((size_t)4096)

enum way { BY_DMA_BUF, BY_RM, NR_WAYS };

static struct cf_cuda cuda; /* the driver, as a test wants it */
static struct cf_os os;
static const struct cf_os *os_behind;
static struct cf_aperture a;
static CUstream stream;

/* ------------------------------------------------- what there was, and is */

static const char *const kinds[] = { "vmm_handle", "vmm_map", "vmm_reserve" };
#define NR_KINDS (sizeof(kinds) / sizeof(*kinds))
static long live[NR_KINDS];
static int fds;
static size_t mapped; /* bytes, by us */

static int count_map(int fd, size_t size, void **mem)
{
	int err = os_behind->map_shared(fd, size, mem);

	mapped += err ? 0 : size;
	return err;
}

static int count_unmap(void *mem, size_t size)
{
	int err = os_behind->unmap(mem, size);

	mapped -= err ? 0 : size;
	return err;
}

static void note_all(void)
{
	for (size_t i = 0; i < NR_KINDS; i++)
		live[i] = th_fake()->live(kinds[i]);
	fds = th_count_fds();
}

static void is_as_before(void)
{
	for (size_t i = 0; i < NR_KINDS; i++)
		assert_int_equal(th_fake()->live(kinds[i]), live[i]);
	assert_int_equal(th_count_fds(), fds);
	assert_int_equal(mapped, 0);
	assert_int_equal(fake_rm_descriptors(), 0);
	assert_int_equal(fake_rm_maps(), 0);
}

/* ---------------------------------------------------------------- world */

static CUresult can_map_dma_buf(int *version)
{
	*version = 13030;
	return CF_CU_SUCCESS;
}

static CUresult cannot(int *version)
{
	*version = 13020;
	return CF_CU_SUCCESS;
}

/* By that way, and by no other. */
static void let_go_by(enum way way)
{
	cuda.driver_get_version = way == BY_RM ? cannot : can_map_dma_buf;
	fake_rm.refusal[FAKE_RM_CTL] = way == BY_RM ? 0 : -ENOENT;
}

static int begin(void **state)
{
	(void)state;
	th_need_fake();
	assert_non_null(cf_cuda_open());
	cuda = *cf_cuda_loaded();
	cf_cuda_replace(&cuda);
	cf_arrival_forget();
	assert_int_equal(cuStreamCreate(&stream, 1), 0);
	fake_rm_begin();
	os_behind = cf_os;
	os = *cf_os;
	os.map_shared = count_map;
	os.unmap = count_unmap;
	cf_os = &os;
	let_go_by(BY_DMA_BUF);
	note_all();
	return 0;
}

static int end(void **state)
{
	(void)state;
	th_fake()->plan_clear();
	th_fake()->writes_ordering(100, 1);
	cf_arrival_forget();
	cf_aperture_allow(true);
	cf_cuda_replace(NULL);
	cf_os = os_behind;
	fake_rm_end();
	assert_int_equal(cuStreamDestroy(stream), 0);
	is_as_before();
	return 0;
}

static bool make(size_t size)
{
	return cf_aperture_make(&a, 0, size, stream);
}

/* There is none, and nothing to be seen of it once it is ended. */
static void is_refused(void)
{
	assert_false(make(GRANULE));
	assert_null(a.mem);
	assert_int_equal(mapped, 0);
	assert_int_equal(fake_rm_maps(), 0);
	cf_aperture_end(&a);
	is_as_before();
}

static void is_had(void)
{
	assert_true(make(GRANULE));
	cf_aperture_end(&a);
	is_as_before();
}

/* ------------------------------------------------------------ it is there */

/* All of it, from either end. */
static void cpu_and_gpu_see_the_same(void)
{
	unsigned char *bytes = th_bytes(a.size), *got = th_bytes(a.size);

	memcpy(a.mem, bytes, a.size);
	cf_aperture_fence();
	assert_int_equal(cuMemcpyDtoH(got, a.gpu, a.size), 0);
	th_equal("of the CPU", got, bytes, a.size);
	th_fill(bytes, a.size);
	assert_int_equal(cuMemcpyHtoD(a.gpu, bytes, a.size), 0);
	memcpy(got, a.mem, a.size);
	th_equal("of the GPU", got, bytes, a.size);
	free(bytes);
	free(got);
}

static void what_the_cpu_writes_the_gpu_has(void **state)
{
	(void)state;
	for (int way = 0; way < NR_WAYS; way++) {
		let_go_by(way);
		assert_true(make(2 * GRANULE));
		assert_int_equal(fake_rm_maps(), way == BY_RM);
		assert_int_equal(mapped, 2 * GRANULE);
		/* which holds the memory, and so does nothing else */
		assert_int_equal(th_fake()->live("vmm_handle"), live[0]);
		cpu_and_gpu_see_the_same();
		cf_aperture_end(&a);
		is_as_before();
	}
}

/* For compute-sanitizer; older drivers have no such call. */
static void the_driver_has_written_all_of_it(void **state)
{
	unsigned long before = th_fake()->calls("cuMemsetD8Async");

	(void)state;
	is_had();
	assert_int_equal(th_fake()->calls("cuMemsetD8Async"), before + 1);
	assert_int_equal(th_fake()->plan("cuMemsetD8Async:*=700"), 0);
	is_refused();
	cuda.memset_d8_async = NULL;
	is_had();
}

static void it_has_whole_granules(void **state)
{
	static const size_t sizes[] = { 1, GRANULE - 1, GRANULE, GRANULE + 1 };

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		assert_true(make(sizes[i]));
		assert_true(a.size >= sizes[i]);
		assert_int_equal(a.size,
				 sizes[i] > GRANULE ? 2 * GRANULE : GRANULE);
		cf_aperture_end(&a);
	}
}

static void several_are_apart(void **state)
{
	struct cf_aperture other;

	(void)state;
	for (int way = 0; way < NR_WAYS; way++) {
		let_go_by(way);
		assert_true(make(GRANULE));
		assert_true(cf_aperture_make(&other, 0, GRANULE, stream));
		memset(a.mem, 0x11, GRANULE);
		memset(other.mem, 0x22, GRANULE);
		th_all("the first", a.mem, 0x11, GRANULE);
		cf_aperture_end(&a);
		th_all("the second", other.mem, 0x22, GRANULE);
		cf_aperture_end(&other);
		is_as_before();
	}
}

static void where_a_dma_buf_cannot_be_had_the_kernel_driver_is_asked(
	void **state)
{
	(void)state;
	fake_rm.refusal[FAKE_RM_CTL] = 0;
	assert_true(make(GRANULE));
	assert_int_equal(fake_rm_asked(FAKE_RM_CTL), 0);
	cf_aperture_end(&a);
	assert_int_equal(th_fake()->plan("cuMemGetHandleForAddressRange:*=801"),
			 0);
	assert_true(make(GRANULE));
	assert_int_equal(fake_rm_maps(), 1);
	cpu_and_gpu_see_the_same();
	cf_aperture_end(&a);
}

static void to_end_it_twice_is_harmless(void **state)
{
	const struct cf_aperture none = { 0 };

	(void)state;
	for (int way = 0; way < NR_WAYS; way++) {
		let_go_by(way);
		assert_true(make(GRANULE));
		cf_aperture_end(&a);
		assert_memory_equal(&a, &none, sizeof(a));
		cf_aperture_end(&a);
		is_as_before();
	}
}

/* The real driver lets other memory be no dma-buf. */
static CUmemAllocationProp asked_for;

static CUresult note_prop(CUmemGenericAllocationHandle *handle, size_t size,
			  const CUmemAllocationProp *prop,
			  unsigned long long flags)
{
	asked_for = *prop;
	return cuMemCreate(handle, size, prop, flags);
}

static void its_memory_is_for_other_devices_where_there_are_dma_bufs(
	void **state)
{
	(void)state;
	cuda.mem_create = note_prop;
	is_had();
	assert_int_equal(asked_for.allocFlags.gpuDirectRDMACapable, 1);
	let_go_by(BY_RM);
	cuda.mem_get_handle_for_range = NULL;
	is_had();
	assert_int_equal(asked_for.allocFlags.gpuDirectRDMACapable, 0);
}

static CUresult for_nobody_else(CUmemGenericAllocationHandle *handle,
				size_t size, const CUmemAllocationProp *prop,
				unsigned long long flags)
{
	if (prop->allocFlags.gpuDirectRDMACapable)
		return CF_CU_NOT_SUPPORTED;
	return cuMemCreate(handle, size, prop, flags);
}

static void a_gpu_that_keeps_others_out_has_one_by_the_kernel_driver(
	void **state)
{
	(void)state;
	cuda.mem_create = for_nobody_else;
	let_go_by(BY_RM);
	is_had();
}

/* --------------------------------------------------------- there is none */

static void nobody_wants_it(void **state)
{
	(void)state;
	cf_aperture_allow(false);
	is_refused();
	assert_int_equal(th_fake()->live("vmm_map"), live[1]);
	cf_aperture_allow(true);
	is_had();
}

/* Nothing orders what the CPU has put there before what the GPU does next. */
static void writes_in_no_order_have_none(void **state)
{
	unsigned long made;

	(void)state;
	for (int flush = 0; flush < 2; flush++) {
		th_fake()->writes_ordering(0, flush);
		cf_arrival_forget();
		made = th_fake()->calls("cuMemCreate");
		is_refused();
		assert_int_equal(th_fake()->calls("cuMemCreate"), made);
	}
	th_fake()->writes_ordering(200, 0);
	cf_arrival_forget();
	is_had();
}

static void a_driver_without_a_call_has_none(void **state)
{
	const struct cf_cuda all = cuda;

	(void)state;
#define WITHOUT(row) \
	do { \
		cuda.row = NULL; \
		is_refused(); \
		cuda = all; \
	} while (0)
	WITHOUT(mem_create);
	WITHOUT(mem_release);
	WITHOUT(mem_address_reserve);
	WITHOUT(mem_address_free);
	WITHOUT(mem_map);
	WITHOUT(mem_unmap);
	WITHOUT(mem_set_access);
	WITHOUT(mem_get_handle_for_range);
	WITHOUT(driver_get_version);
	WITHOUT(device_get_attribute);
	is_had();
	let_go_by(BY_RM);
	cuda.mem_export_to_handle = NULL;
	is_refused();
#undef WITHOUT
}

static void refused_by(const char *call)
{
	char plan[96];

	snprintf(plan, sizeof(plan), "%s:*=2", call);
	assert_int_equal(th_fake()->plan(plan), 0);
	is_refused();
	th_fake()->plan_clear();
	is_had();
}

static void a_driver_that_refuses_a_call_has_none(void **state)
{
	static const char *const both[] = {
		"cuMemCreate",	  "cuMemAddressReserve",  "cuMemMap",
		"cuMemSetAccess", "cuMemcpyDtoHAsync_v2", "cuStreamSynchronize",
	};

	(void)state;
	(void)cf_arrival_of(0);
	for (int way = 0; way < NR_WAYS; way++) {
		let_go_by(way);
		for (size_t i = 0; i < sizeof(both) / sizeof(*both); i++)
			refused_by(both[i]);
	}
	refused_by("cuMemExportToShareableHandle");
	refused_by("cuDeviceGetPCIBusId");
	refused_by("cuDeviceGet");
	let_go_by(BY_DMA_BUF);
	refused_by("cuMemGetHandleForAddressRange");
	refused_by("cuDeviceGet");
}

static const struct cf_cuda *driver; /* behind what a test puts there */
static unsigned long long flags_of[2];
static unsigned nr_asked;

static CUresult note_flags(void *handle, CUdeviceptr ptr, size_t size, int type,
			   unsigned long long flags)
{
	if (nr_asked < 2)
		flags_of[nr_asked] = flags;
	nr_asked++;
	return driver->mem_get_handle_for_range(handle, ptr, size, type, flags);
}

/* Some drivers make none that the bus could be told of, but one without. */
static void a_dma_buf_is_one_for_the_bus_if_there_are_such(void **state)
{
	const struct cf_cuda real = cuda;

	(void)state;
	driver = &real;
	nr_asked = 0;
	cuda.mem_get_handle_for_range = note_flags;
	is_had();
	assert_int_equal(nr_asked, 2);
	assert_int_equal(flags_of[0], CF_CU_MEM_RANGE_PCIE);
	assert_int_equal(flags_of[1], 0);
}

static CUresult knows_no_dma_buf(int *value, int attribute, CUdevice dev)
{
	if (attribute != CF_CU_DEVICE_DMA_BUF)
		return driver->device_get_attribute(value, attribute, dev);
	*value = 0;
	return CF_CU_SUCCESS;
}

static void a_gpu_without_dma_bufs_is_asked_for_none(void **state)
{
	const struct cf_cuda real = cuda;

	(void)state;
	driver = &real;
	nr_asked = 0;
	cuda.mem_get_handle_for_range = note_flags;
	cuda.device_get_attribute = knows_no_dma_buf;
	is_refused();
	assert_int_equal(nr_asked, 0);
}

/* Whoever ends the aperture next may not be able to ask the stream any more. */
static void nothing_is_under_way_when_a_wait_has_failed(void **state)
{
	(void)state;
	th_fake()->copy_delay_us(20000);
	assert_int_equal(th_fake()->plan("cuStreamSynchronize:*=999"), 0);
	assert_false(make(GRANULE));
	assert_int_equal(cuStreamQuery(stream), 0);
	th_fake()->copy_delay_us(0);
	th_fake()->plan_clear();
	cf_aperture_end(&a);
	is_as_before();
}

static void a_kernel_driver_that_refuses_a_step_has_none(void **state)
{
	(void)state;
	let_go_by(BY_RM);
	for (int step = 0; step <= FAKE_RM_SHOW; step++) {
		fake_rm.refusal[step] = -EACCES;
		is_refused();
		fake_rm.refusal[step] = 0;
	}
	is_had();
}

/* ------------------------------------------------- the trial, and its wants */

static size_t other_at; /* where other memory lies in the mapping */

static int map_other(int fd, size_t size, void **mem)
{
	int err = count_map(fd, size, mem);

	if (!err)
		assert_ptr_not_equal(
			mmap((char *)*mem + other_at, PAGE,
			     PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
			MAP_FAILED);
	return err;
}

static int map_none(int fd, size_t size, void **mem)
{
	return -ENOMEM;
}

/* Mapped anew behind what the fake has shown, which then is no memory's. */
static void an_address_of_something_else_is_found_out(void **state)
{
	static const size_t ats[] = { 0, GRANULE / 2, GRANULE - PAGE };

	(void)state;
	for (int way = 0; way < NR_WAYS; way++) {
		let_go_by(way);
		os.map_shared = map_other;
		for (size_t i = 0; i < sizeof(ats) / sizeof(*ats); i++) {
			other_at = ats[i];
			is_refused();
		}
		os.map_shared = map_none;
		is_refused();
		os.map_shared = count_map;
		is_had();
	}
}

static uint64_t words[6];
static unsigned nr_words;

static ssize_t note_first(int fd, const void *buf, size_t size)
{
	uint64_t word;

	memcpy(&word, buf, sizeof(word));
	if (word && nr_words < 6) /* the others are written for their time */
		words[nr_words++] = word;
	return os_behind->write(fd, buf, size);
}

/* Memory may hold what an earlier one has left there. */
static void each_trial_has_bytes_of_its_own(void **state)
{
	(void)state;
	os.write = note_first;
	is_had();
	is_had();
	assert_int_equal(nr_words, 6);
	for (int i = 0; i < 6; i++)
		for (int k = 0; k < i; k++)
			assert_true(words[i] != words[k]);
}

/* Nothing of it is left to anybody until the end: a kernel may look there. */
static void memory_of_no_use_is_kept_until_the_end(void **state)
{
	(void)state;
	assert_int_equal(th_fake()->plan("cuMemcpyDtoHAsync_v2:*=700"), 0);
	assert_false(make(GRANULE));
	assert_int_equal(th_fake()->live("vmm_map"), live[1] + 1);
	assert_int_equal(th_fake()->live("vmm_reserve"), live[2] + 1);
	assert_int_equal(mapped, 0);
	cf_aperture_end(&a);
}

static int no_pipe(int pipe[2])
{
	return -EMFILE;
}

static ssize_t write_half(int fd, const void *buf, size_t size)
{
	return os_behind->write(fd, buf, size / 2);
}

static ssize_t read_half(int fd, void *buf, size_t size)
{
	return os_behind->read(fd, buf, size / 2);
}

/* As of memory that the kernel does not copy to. */
static ssize_t read_not(int fd, void *buf, size_t size)
{
	return (char *)buf >= a.mem && a.mem && (char *)buf < a.mem + a.size ?
		       -EFAULT :
		       os_behind->read(fd, buf, size);
}

/* As where each word crosses the bus by itself. */
static ssize_t read_slowly(int fd, void *buf, size_t size)
{
	ssize_t n = os_behind->read(fd, buf, size);

	if (a.mem && (char *)buf >= a.mem && (char *)buf < a.mem + a.size)
		th_sleep_ms(1);
	return n;
}

static ssize_t write_not(int fd, const void *buf, size_t size)
{
	return -EIO;
}

static void a_kernel_that_cannot_read_into_it_has_none(void **state)
{
	(void)state;
	os.pipe = no_pipe;
	is_refused();
	os.pipe = os_behind->pipe;
	os.write = write_half;
	is_refused();
	os.write = write_not;
	is_refused();
	os.write = os_behind->write;
	os.read = read_half;
	is_refused();
	os.read = read_not;
	is_refused();
	os.read = read_slowly;
	is_refused();
	os.read = os_behind->read;
	is_had();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_the_cpu_writes_the_gpu_has),
		TEST(the_driver_has_written_all_of_it),
		TEST(it_has_whole_granules),
		TEST(several_are_apart),
		TEST(where_a_dma_buf_cannot_be_had_the_kernel_driver_is_asked),
		TEST(to_end_it_twice_is_harmless),
		TEST(its_memory_is_for_other_devices_where_there_are_dma_bufs),
		TEST(a_gpu_that_keeps_others_out_has_one_by_the_kernel_driver),
		TEST(nobody_wants_it),
		TEST(writes_in_no_order_have_none),
		TEST(a_driver_without_a_call_has_none),
		TEST(a_driver_that_refuses_a_call_has_none),
		TEST(a_dma_buf_is_one_for_the_bus_if_there_are_such),
		TEST(a_gpu_without_dma_bufs_is_asked_for_none),
		TEST(nothing_is_under_way_when_a_wait_has_failed),
		TEST(a_kernel_driver_that_refuses_a_step_has_none),
		TEST(an_address_of_something_else_is_found_out),
		TEST(each_trial_has_bytes_of_its_own),
		TEST(memory_of_no_use_is_kept_until_the_end),
		TEST(a_kernel_that_cannot_read_into_it_has_none),
	};

	th_start(60);
	return th_finish(
		cmocka_run_group_tests_name("aperture", tests, NULL, NULL));
}

// SPDX-License-Identifier: Apache-2.0
/* The GPU's slot pool at its bound, and slots that cannot be pinned. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "core/gpu.h"
#include "fault.h"
#include "harness.h"

#define SLOT_KIB 64
#define PART (5 * SLOT_KIB * TH_KIB + 123)

static void open_with_slots(size_t nr)
{
	assert_int_equal(
		cuFileSetParameterSizeT(
			CUFILE_PARAM_PROPERTIES_PER_BUFFER_CACHE_SIZE_KB,
			SLOT_KIB)
			.err,
		0);
	assert_int_equal(
		cuFileSetParameterSizeT(
			CUFILE_PARAM_PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB,
			nr * SLOT_KIB)
			.err,
		0);
	th_open();
}

static void open_with_one_slot(void)
{
	open_with_slots(1);
}

struct crowd {
	struct th_bad bad;
	struct th_file file;
	CUfileHandle_t fh;
};

static void there_and_back(struct crowd *c, const struct th_mem *mem,
			   off_t start)
{
	unsigned char *bytes = th_bytes(PART), *got = th_bytes(PART);
	ssize_t n;

	th_mem_put(mem, 0, bytes, PART);
	n = cuFileWrite(c->fh, mem->ptr, PART, start, 0);
	if (n != (ssize_t)PART)
		th_bad_note(&c->bad, "write: %zd, errno %d", n, errno);
	n = cuFileRead(c->fh, mem->ptr, PART, start, PART);
	if (n != (ssize_t)PART)
		th_bad_note(&c->bad, "read: %zd, errno %d", n, errno);
	th_mem_get(mem, PART, got, PART);
	if (memcmp(got, bytes, PART))
		th_bad_note(&c->bad, "other bytes came back");
	free(bytes);
	free(got);
}

static void use_own_part(void *arg, unsigned i)
{
	struct crowd *c = arg;
	struct th_mem mem;

	/* pool and second-context memory: several devices, one GPU's pool */
	th_mem_alloc(&mem,
		     i % 3 == 1 ? TH_POOL :
		     i % 3 == 2 ? TH_SECOND :
				  TH_DEVICE,
		     2 * PART);
	for (int r = 0; r < TH_SCALE(12); r++)
		there_and_back(c, &mem, (off_t)(i * PART));
	th_mem_free(&mem);
}

static void all_slots_are_back(size_t most_bytes)
{
	const struct cf_gpu *gpu = cf_gpu_at(0);
	size_t bytes, leased;

	assert_non_null(gpu);
	cf_pool_usage(gpu->pool, &bytes, &leased);
	assert_int_equal(leased, 0);
	assert_true(bytes <= most_bytes);
}

/* Many threads with small requests do not pin, or wait for, the large ones. */
static void a_small_request_pins_small_slots_only(void **state)
{
	struct th_file file;
	const struct cf_gpu *gpu;
	struct th_mem mem;
	size_t bytes, leased;
	CUfileHandle_t fh;

	th_mem_need(TH_DEVICE);
	th_open();
	th_file_make(&file, TH_BUFFERED, O_RDWR, NULL, PART);
	th_mem_alloc(&mem, TH_DEVICE, 65536);
	fh = th_handle(file.fd);
	assert_int_equal(cuFileRead(fh, mem.ptr, 65536, 0, 0), 65536);
	gpu = cf_gpu_at(0);
	assert_non_null(gpu);
	cf_pool_usage(gpu->pool, &bytes, &leased);
	assert_int_equal(bytes, 0);
	cf_pool_usage(gpu->small, &bytes, &leased);
	assert_int_equal(leased, 0);
	assert_true(bytes > 0 && bytes <= 4 * CF_SMALL_SLOT);
	cuFileHandleDeregister(fh);
	th_mem_free(&mem);
	th_file_end(&file);
	th_close();
}

static size_t most_at_once(struct cf_pool *pool)
{
	struct cf_slot *slots[256];
	size_t nr = 0;

	while (nr < 256 && (slots[nr] = cf_slot_try_lease(pool)))
		nr++;
	for (size_t i = 0; i < nr; i++)
		cf_slot_give_back(pool, slots[i]);
	return nr;
}

/* What was pinned before stays; of what was not there is one. */
static void a_bound_of_nothing_is_one_for_small_slots_too(void **state)
{
	struct th_pair p;
	const struct cf_gpu *gpu;
	size_t bytes, leased;

	(void)state;
	th_mem_need(TH_DEVICE);
	th_pair_make(&p, TH_BUFFERED, 65536, 0);
	assert_int_equal(cuFileRead(p.fh, p.mem.ptr, p.size, 0, 0),
			 (ssize_t)p.size);
	assert_int_equal(cuFileDriverSetMaxCacheSize(0).err, 0);
	gpu = cf_gpu_at(0);
	assert_non_null(gpu);
	cf_pool_usage(gpu->small, &bytes, &leased);
	assert_int_equal(most_at_once(gpu->small), bytes / CF_SMALL_SLOT);
	assert_int_equal(most_at_once(gpu->pool), 1);
	th_pair_end(&p);
}

static void eight_threads_share_one_slot(void **state)
{
	enum th_file_kind kind = *(enum th_file_kind *)*state;
	struct crowd c = { 0 };

	th_mem_need(TH_POOL);
	(void)th_second_ctx();
	open_with_one_slot();
	th_file_make(&c.file, kind, O_RDWR, NULL, 8 * PART);
	c.fh = th_handle(c.file.fd);
	th_threads(8, use_own_part, &c);
	th_bad_check(&c.bad);
	all_slots_are_back(SLOT_KIB * TH_KIB);
	cuFileHandleDeregister(c.fh);
	th_file_end(&c.file);
	th_close();
}

#define COPY_US 3000

/* A disk is quicker than the copies: who does not wait for them is seen. */
static void move_by_slow_copies(enum th_file_kind kind, size_t slots)
{
	struct crowd c = { 0 };
	struct th_mem mem;

	/* small enough that a ring carries it, where there is one */
	assert_int_equal(
		cuFileSetParameterSizeT(
			CUFILE_PARAM_EXECUTION_MIN_IO_THRESHOLD_SIZE_KB,
			2 * SLOT_KIB)
			.err,
		0);
	open_with_slots(slots);
	th_file_make(&c.file, kind, O_RDWR, NULL, PART);
	c.fh = th_handle(c.file.fd);
	th_mem_alloc(&mem, TH_DEVICE, 2 * PART);
	th_need_fake()->copy_delay_us(COPY_US);
	for (int r = 0; r < 2; r++)
		there_and_back(&c, &mem, 0);
	th_need_fake()->copy_delay_us(0);
	th_bad_check(&c.bad);
	th_mem_free(&mem);
	cuFileHandleDeregister(c.fh);
	th_file_end(&c.file);
	th_close();
}

static void a_slot_is_used_again_when_its_copy_is_done(void **state)
{
	enum th_file_kind kind = *(enum th_file_kind *)*state;

	(void)th_need_fake();
	for (size_t slots = 1; slots <= 4; slots++)
		for (int way = 0; way < 4; way++) {
			setenv("OCF_IO_URING", way & 1 ? "1" : "0", 1);
			assert_int_equal(
				cuFileSetParameterBool(
					CUFILE_PARAM_EXECUTION_PARALLEL_IO,
					way & 2)
					.err,
				0);
			move_by_slow_copies(kind, slots);
		}
}

/* Nobody who fails keeps the one slot. */
static void failures_give_the_only_slot_back(void **state)
{
	const struct th_fake *fake = th_need_fake();
	static const char *const plans[] = {
		"cuMemcpyHtoDAsync_v2:%u=999", "cuMemcpyDtoHAsync_v2:%u=999",
		"cuEventRecord:%u=999",	       "cuEventSynchronize:%u=999",
		"cuStreamSynchronize:%u=999",
	};
	struct crowd c = { 0 };
	struct th_mem mem;
	char plan[64];

	(void)state;
	open_with_one_slot();
	th_file_make(&c.file, TH_ODIRECT, O_RDWR, NULL, PART);
	c.fh = th_handle(c.file.fd);
	th_mem_alloc(&mem, TH_DEVICE, 2 * PART);
	for (unsigned i = 0; i < 5 * 3; i++) {
		snprintf(plan, sizeof(plan), plans[i / 3], i % 3 + 1);
		assert_int_equal(fake->plan(plan), 0);
		(void)cuFileRead(c.fh, mem.ptr, PART, 0, 0);
		(void)cuFileWrite(c.fh, mem.ptr, PART, 0, 0);
		fake->plan_clear();
		all_slots_are_back(SLOT_KIB * TH_KIB);
		there_and_back(&c, &mem, 0);
		th_bad_check(&c.bad);
	}
	th_mem_free(&mem);
	cuFileHandleDeregister(c.fh);
	th_file_end(&c.file);
	th_close();
}

static void unpinned_slots_carry_the_right_bytes(void **state)
{
	const struct th_fake *fake = th_need_fake();
	struct crowd c = { 0 };
	struct th_mem mem;
	long before = fake->live("host_register");

	(void)state;
	th_open();
	assert_int_equal(fake->plan("cuMemHostRegister_v2:*=2"), 0);
	th_file_make(&c.file, TH_ODIRECT, O_RDWR, NULL, PART);
	c.fh = th_handle(c.file.fd);
	th_mem_alloc(&mem, TH_DEVICE, 2 * PART);
	for (int r = 0; r < 10; r++)
		there_and_back(&c, &mem, 0);
	th_bad_check(&c.bad);
	assert_int_equal(fake->live("host_register"), before);
	th_mem_free(&mem);
	cuFileHandleDeregister(c.fh);
	th_file_end(&c.file);
	th_close();
}

static void without_slot_memory_a_request_answers_enomem(void **state)
{
	const struct fault fault = {
		.call = FAULT_MAP_ANON, .nth = 1, .persist = true, .err = ENOMEM
	};
	struct crowd c = { 0 };
	struct th_mem mem;

	(void)state;
	th_need_gpu();
	th_open();
	th_file_make(&c.file, TH_BUFFERED, O_RDWR, NULL, PART);
	c.fh = th_handle(c.file.fd);
	th_mem_alloc(&mem, TH_DEVICE, 2 * PART);
	fault_begin(&fault);
	for (int r = 0; r < 3; r++) {
		assert_int_equal(cuFileRead(c.fh, mem.ptr, PART, 0, 0), -1);
		assert_int_equal(errno, ENOMEM);
	}
	fault_end();
	there_and_back(&c, &mem, 0);
	th_bad_check(&c.bad);
	th_mem_free(&mem);
	cuFileHandleDeregister(c.fh);
	th_file_end(&c.file);
	th_close();
}

static int teardown(void **state)
{
	if (th_fake())
		th_fake()->copy_delay_us(0);
	unsetenv("OCF_IO_URING");
	fault_end();
	return th_teardown_close(state);
}

int main(void)
{
	static enum th_file_kind buffered = TH_BUFFERED, direct = TH_ODIRECT;
	const struct CMUnitTest tests[] = {
		{ .name = "eight_threads_share_one_slot (buffered)",
		  .test_func = eight_threads_share_one_slot,
		  .teardown_func = teardown,
		  .initial_state = &buffered },
		{ .name = "eight_threads_share_one_slot (O_DIRECT)",
		  .test_func = eight_threads_share_one_slot,
		  .teardown_func = teardown,
		  .initial_state = &direct },
		{ .name = "a_slot_is_used_again_when_its_copy_is_done "
			  "(buffered)",
		  .test_func = a_slot_is_used_again_when_its_copy_is_done,
		  .teardown_func = teardown,
		  .initial_state = &buffered },
		{ .name = "a_slot_is_used_again_when_its_copy_is_done "
			  "(O_DIRECT)",
		  .test_func = a_slot_is_used_again_when_its_copy_is_done,
		  .teardown_func = teardown,
		  .initial_state = &direct },
		cmocka_unit_test(a_small_request_pins_small_slots_only),
		cmocka_unit_test_teardown(
			a_bound_of_nothing_is_one_for_small_slots_too,
			teardown),
		cmocka_unit_test_teardown(failures_give_the_only_slot_back,
					  teardown),
		cmocka_unit_test_teardown(unpinned_slots_carry_the_right_bytes,
					  teardown),
		cmocka_unit_test_teardown(
			without_slot_memory_a_request_answers_enomem, teardown),
	};

	th_start(60);
	return th_finish(
		cmocka_run_group_tests_name("pool", tests, NULL, NULL));
}

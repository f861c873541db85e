// SPDX-License-Identifier: Apache-2.0
/*
 * memory - the facts of an address are those of this moment, however few
 * questions they took. The driver is one function that answers by a script.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>
#include "core/memory.h"

#define ADDR ((uintptr_t)0x7f0012345000)
#define ELSEWHERE ((uintptr_t)0x302000000)

/* What lies at any address, and how it was asked for. */
static struct {
	int type, managed;
	void *host;
	int ordinal;
	uint64_t id;
	CUresult result;
	unsigned calls, most; /* attributes in one call */
} driver;

static void put(int attribute, void *to)
{
	uint64_t start = ADDR, size = 4096;

	switch (attribute) {
	case CF_CU_POINTER_MEMORY_TYPE:
		memcpy(to, &driver.type, sizeof(driver.type));
		return;
	case CF_CU_POINTER_IS_MANAGED:
		memcpy(to, &driver.managed, sizeof(driver.managed));
		return;
	case CF_CU_POINTER_HOST_POINTER:
		memcpy(to, &driver.host, sizeof(driver.host));
		return;
	case CF_CU_POINTER_DEVICE_ORDINAL:
		memcpy(to, &driver.ordinal, sizeof(driver.ordinal));
		return;
	case CF_CU_POINTER_BUFFER_ID:
		memcpy(to, &driver.id, sizeof(driver.id));
		return;
	case CF_CU_POINTER_RANGE_START_ADDR:
		memcpy(to, &start, sizeof(start));
		return;
	case CF_CU_POINTER_RANGE_SIZE:
		memcpy(to, &size, sizeof(size));
		return;
	}
}

static CUresult get_attributes(unsigned nr, int *attributes, void **data,
			       CUdeviceptr addr)
{
	driver.calls++;
	driver.most = nr > driver.most ? nr : driver.most;
	if (driver.result != CF_CU_SUCCESS)
		return driver.result;
	for (unsigned i = 0; i < nr; i++)
		put(attributes[i], data[i]);
	return CF_CU_SUCCESS;
}

static const struct cf_cuda table = { .pointer_get_attributes =
					      get_attributes };

static struct cf_memory facts(uintptr_t addr)
{
	struct cf_memory mem;

	memset(&mem, 0xff, sizeof(mem));
	driver.calls = driver.most = 0;
	cf_memory_facts(addr, &mem);
	return mem;
}

static void there_is_nothing_of_a_gpu(void)
{
	memset(&driver, 0, sizeof(driver));
	(void)facts(ADDR); /* whatever was there before */
}

static void there_is_device_memory(uint64_t id)
{
	memset(&driver, 0, sizeof(driver));
	driver.type = CF_CU_MEMORYTYPE_DEVICE;
	driver.ordinal = 3;
	driver.id = id;
}

static void assert_device(const struct cf_memory *mem, uint64_t id)
{
	assert_int_equal(mem->kind, CF_MEMORY_DEVICE);
	assert_int_equal(mem->addr, ADDR);
	assert_int_equal(mem->ordinal, 3);
	assert_int_equal(mem->buffer_id, id);
	assert_int_equal(mem->end, ADDR + 4096);
}

static void of_host_memory_little_is_asked(void **state)
{
	struct cf_memory mem;

	there_is_nothing_of_a_gpu();
	mem = facts(ADDR);
	assert_int_equal(mem.kind, CF_MEMORY_HOST);
	assert_int_equal(mem.addr, ADDR);
	assert_int_equal(mem.end, 0);
	assert_int_equal(driver.calls, 1);
	assert_in_range(driver.most, 1, 3);
}

static void a_gpus_memory_is_seen_where_there_was_none(void **state)
{
	struct cf_memory mem;

	there_is_nothing_of_a_gpu();
	there_is_device_memory(7);
	mem = facts(ADDR);
	assert_device(&mem, 7);
	/* and from now on by one question */
	there_is_device_memory(8);
	mem = facts(ADDR);
	assert_device(&mem, 8);
	assert_int_equal(driver.calls, 1);
}

static void host_memory_is_seen_where_a_gpus_was(void **state)
{
	struct cf_memory mem;

	there_is_device_memory(7);
	(void)facts(ADDR);
	(void)facts(ADDR);
	memset(&driver, 0, sizeof(driver));
	mem = facts(ADDR);
	assert_int_equal(mem.kind, CF_MEMORY_HOST);
	assert_int_equal(mem.addr, ADDR);
	assert_int_equal(mem.ordinal, 0);
	assert_null(mem.ctx);
	mem = facts(ADDR);
	assert_int_equal(mem.kind, CF_MEMORY_HOST);
	assert_in_range(driver.most, 1, 3);
}

static void managed_memory_is_seen_by_the_first_question(void **state)
{
	struct cf_memory mem;

	there_is_nothing_of_a_gpu();
	driver.managed = 1;
	driver.type = CF_CU_MEMORYTYPE_HOST;
	driver.id = 9;
	mem = facts(ADDR);
	assert_int_equal(mem.kind, CF_MEMORY_MANAGED);
	assert_int_equal(mem.buffer_id, 9);
	assert_int_equal(mem.end, ADDR + 4096);
}

static void pinned_memory_has_the_address_of_the_cpu(void **state)
{
	for (int before = 0; before < 2; before++) {
		struct cf_memory mem;

		if (before)
			there_is_device_memory(7);
		else
			there_is_nothing_of_a_gpu();
		(void)facts(ELSEWHERE);
		memset(&driver, 0, sizeof(driver));
		driver.type = CF_CU_MEMORYTYPE_HOST;
		driver.host = (void *)ADDR;
		mem = facts(ELSEWHERE);
		assert_int_equal(mem.kind, CF_MEMORY_HOST);
		assert_int_equal(mem.addr, ADDR);
	}
}

static void what_the_driver_does_not_tell_is_host_memory(void **state)
{
	for (int before = 0; before < 2; before++) {
		struct cf_memory mem;

		there_is_nothing_of_a_gpu();
		if (before) {
			there_is_device_memory(7);
			(void)facts(ADDR);
		}
		driver.result = CF_CU_DEINITIALIZED;
		mem = facts(ADDR);
		assert_int_equal(mem.kind, CF_MEMORY_HOST);
		assert_int_equal(mem.addr, ADDR);
	}
}

static int set_up(void **state)
{
	cf_cuda_replace(&table);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_host_memory_little_is_asked),
		cmocka_unit_test(a_gpus_memory_is_seen_where_there_was_none),
		cmocka_unit_test(host_memory_is_seen_where_a_gpus_was),
		cmocka_unit_test(managed_memory_is_seen_by_the_first_question),
		cmocka_unit_test(pinned_memory_has_the_address_of_the_cpu),
		cmocka_unit_test(what_the_driver_does_not_tell_is_host_memory),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}

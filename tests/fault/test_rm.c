// SPDX-License-Identifier: Apache-2.0
/*
 * A mapping of device memory by the kernel driver, and pages of ours that it
 * pins, with each of their system calls failing once, or from then on: there is
 * one that shows the memory, or none, and nothing is left of either.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/pins.h"
#include "core/rm.h"
#include "fake_rm.h"
#include "fault.h"
#include "harness.h"

#define SIZE (2 * TH_MIB)

static CUmemGenericAllocationHandle memory;
static int exported;
static CUstream stream;

static int setup(void **state)
{
	CUmemAllocationProp prop = {
		.type = CF_CU_MEM_ALLOCATION_PINNED,
		.requestedHandleTypes = CF_CU_MEM_HANDLE_FD,
		.location = { .type = CF_CU_MEM_LOCATION_DEVICE },
	};

	th_need_fake();
	assert_non_null(cf_cuda_open());
	assert_int_equal(cuMemCreate(&memory, SIZE, &prop, 0), 0);
	assert_int_equal(cuMemExportToShareableHandle(&exported, memory,
						      CF_CU_MEM_HANDLE_FD, 0),
			 0);
	assert_int_equal(cuStreamCreate(&stream, 1), 0);
	return 0;
}

static int teardown(void **state)
{
	fault_end();
	close(exported);
	assert_int_equal(cuMemRelease(memory), 0);
	assert_int_equal(cuStreamDestroy(stream), 0);
	return 0;
}

static bool shows_memory(const struct cf_rm_map *map)
{
	unsigned char bytes[64], got[64];

	th_fill(bytes, sizeof(bytes));
	memcpy(map->mem + SIZE - sizeof(bytes), bytes, sizeof(bytes));
	return pread(exported, got, sizeof(got), SIZE - sizeof(bytes)) ==
		       sizeof(got) &&
	       !memcmp(got, bytes, sizeof(bytes));
}

/* What a GPU has at the pin's addresses. */
static bool shows_pages(const struct cf_pin *pin, const char *mem)
{
	unsigned char got[64];
	size_t at = SIZE - sizeof(got);

	return !cuMemcpyDtoH(got, pin->gpu + at, sizeof(got)) &&
	       !memcmp(got, mem + at, sizeof(got));
}

/* The trial, and a pin where that went well. */
static void pin(const char *mem)
{
	struct cf_pin pin;

	cf_pins_try(0, stream);
	assert_true(cf_pins_state() != CF_PINS_UNTRIED);
	if (cf_pin_make(&pin, mem, SIZE, 0))
		assert_int_equal(pin.gpu, 0);
	else if (!shows_pages(&pin, mem))
		fail_msg("other pages");
	assert_true(cf_pin_end(&pin));
	cf_pins_close();
}

static bool pin_fails(const struct fault *fault, int fds)
{
	unsigned char *mem = aligned_alloc(4096, SIZE);
	bool fired;

	assert_non_null(mem);
	th_fill(mem, SIZE);
	fake_rm_begin();
	fault_begin(fault);
	pin((const char *)mem);
	fired = fault_fired();
	fault_end();
	assert_int_equal(th_count_fds(), fds);
	fake_rm_end();
	free(mem);
	return fired;
}

/* False: there is no nth call. */
static bool map_fails(const struct fault *fault, int fds)
{
	struct cf_rm_map map;
	bool fired;
	int err;

	fake_rm_begin();
	fault_begin(fault);
	err = cf_rm_map(exported, "0000:01:00.0", SIZE, &map);
	if (!err && !shows_memory(&map))
		fail_msg("%s call %u: other memory", fault_name(fault->call),
			 fault->nth);
	cf_rm_unmap(&map);
	fired = fault_fired();
	fault_end();
	assert_true(err <= 0 && (fired || !err));
	assert_int_equal(th_count_fds(), fds);
	fake_rm_end();
	return fired;
}

static void sweep(bool (*fails)(const struct fault *fault, int fds),
		  enum fault_call call, int err, unsigned least)
{
	int fds = th_count_fds();

	for (int persist = 0; persist < 2; persist++) {
		struct fault fault = { .call = call,
				       .persist = persist,
				       .err = err };

		do
			fault.nth++;
		while (fails(&fault, fds));
		if (fault.nth <= least)
			fail_msg("%s: %u calls", fault_name(call),
				 fault.nth - 1);
	}
}

static void each_call_of_a_mapping_fails(void **state)
{
	sweep(map_fails, FAULT_OPEN, EMFILE, 3);
	sweep(map_fails, FAULT_CLOSE, EIO, 3);
	sweep(map_fails, FAULT_READ, EIO, 1);
	sweep(map_fails, FAULT_IOCTL, EINVAL, 6);
	sweep(map_fails, FAULT_IOCTL, EINTR, 6);
	sweep(map_fails, FAULT_DUP_ABOVE, EMFILE, 2);
	sweep(map_fails, FAULT_MAP_SHARED, ENOMEM, 1);
}

static void each_call_of_a_pin_fails(void **state)
{
	sweep(pin_fails, FAULT_OPEN, EMFILE, 5);
	sweep(pin_fails, FAULT_CLOSE, EIO, 5);
	sweep(pin_fails, FAULT_READ, EIO, 1);
	sweep(pin_fails, FAULT_IOCTL, EINVAL, 15);
	sweep(pin_fails, FAULT_IOCTL, EINTR, 15);
	sweep(pin_fails, FAULT_DUP_ABOVE, EMFILE, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_call_of_a_mapping_fails,
						setup, teardown),
		cmocka_unit_test_setup_teardown(each_call_of_a_pin_fails, setup,
						teardown),
	};

	th_start(60);
	return th_finish(cmocka_run_group_tests(tests, NULL, NULL));
}

// SPDX-License-Identifier: Apache-2.0
/*
 * A mapping of device memory by the kernel driver, with each of its system
 * calls failing once, or from then on: there is one that shows the memory, or
 * none, and nothing is left of either.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "core/rm.h"
#include "fake_rm.h"
#include "fault.h"
#include "harness.h"

#define SIZE (2 * TH_MIB)

static CUmemGenericAllocationHandle memory;
static int exported;

static int setup(void **state)
{
	CUmemAllocationProp prop = {
		.type = CF_CU_MEM_ALLOCATION_PINNED,
		.requestedHandleTypes = CF_CU_MEM_HANDLE_FD,
		.location = { .type = CF_CU_MEM_LOCATION_DEVICE },
	};

	th_need_fake();
	assert_int_equal(cuMemCreate(&memory, SIZE, &prop, 0), 0);
	assert_int_equal(cuMemExportToShareableHandle(&exported, memory,
						      CF_CU_MEM_HANDLE_FD, 0),
			 0);
	return 0;
}

static int teardown(void **state)
{
	fault_end();
	close(exported);
	assert_int_equal(cuMemRelease(memory), 0);
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

/* False: there is no nth call. */
static bool fails(const struct fault *fault, int fds)
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

static void sweep(enum fault_call call, int err, unsigned least)
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
	sweep(FAULT_OPEN, EMFILE, 3);
	sweep(FAULT_CLOSE, EIO, 3);
	sweep(FAULT_READ, EIO, 1);
	sweep(FAULT_IOCTL, EINVAL, 6);
	sweep(FAULT_IOCTL, EINTR, 6);
	sweep(FAULT_DUP_ABOVE, EMFILE, 2);
	sweep(FAULT_MAP_SHARED, ENOMEM, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_call_of_a_mapping_fails,
						setup, teardown),
	};

	th_start(60);
	return th_finish(cmocka_run_group_tests(tests, NULL, NULL));
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Peer-to-peer flags, as contract 3.11 and 3.16 tell of them. Every test is
 * the first thing its process does with the library.
 */
#include <unistd.h>
#include "fresh.h"

#define BAD CU_FILE_INVALID_VALUE
#if defined(__aarch64__)
#define CHOICE CU_FILE_P2P_FLAG_C2C
#else
#define CHOICE CU_FILE_P2P_FLAG_PCI_P2PDMA
#endif

static CUfileError_t set(int target, int flags)
{
	return cuFileDriverSetP2PFlags((CUfileDriverStatusFlags_t)target,
				       (CUfileP2PFlags_t)flags);
}

static int get(int target)
{
	CUfileP2PFlags_t flags = (CUfileP2PFlags_t)77;

	assert_ok(cuFileDriverGetP2PFlags((CUfileDriverStatusFlags_t)target,
					  &flags));
	return (int)flags;
}

static void flags_are_none_at_first(void **state)
{
	for (int target = 0; target < CU_FILE_MAX_TARGET_TYPES; target++)
		if (target != 10)
			assert_int_equal(get(target), 0);
}

static void a_flag_is_read_back_for_its_target_only(void **state)
{
	assert_ok(set(CU_FILE_NVME_SUPPORTED, CHOICE));
	for (int target = 0; target < CU_FILE_MAX_TARGET_TYPES; target++)
		if (target != 10)
			assert_int_equal(
				get(target),
				target == CU_FILE_NVME_SUPPORTED ? CHOICE : 0);
	/* 0 changes nothing */
	assert_ok(set(CU_FILE_NVME_SUPPORTED, 0));
	assert_int_equal(get(CU_FILE_NVME_SUPPORTED), CHOICE);
}

static void transports_that_cannot_be_chosen_are_refused(void **state)
{
	for (int flags = -1; flags <= 32; flags++)
		if (flags && flags != CHOICE)
			assert_code(set(CU_FILE_NVME_SUPPORTED, flags), BAD);
	assert_int_equal(get(CU_FILE_NVME_SUPPORTED), 0);
}

static void what_is_no_target_is_refused(void **state)
{
	static const int targets[] = { -1, 10, 15, 16, 99, 1 << 30 };
	CUfileP2PFlags_t flags = (CUfileP2PFlags_t)77;

	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
		assert_code(set(targets[i], CHOICE), BAD);
		assert_code(
			cuFileDriverGetP2PFlags(
				(CUfileDriverStatusFlags_t)targets[i], &flags),
			BAD);
		assert_int_equal(flags, 77);
	}
	assert_code(cuFileDriverGetP2PFlags(CU_FILE_NVME_SUPPORTED, NULL), BAD);
}

static void the_calls_open_the_driver_and_count_as_no_use(void **state)
{
	assert_int_equal(get(CU_FILE_NVME_SUPPORTED), 0);
	assert_int_equal(cuFileUseCount(), 0);
	assert_code(cuFileSetParameterSizeT(
			    CUFILE_PARAM_PROPERTIES_MAX_DIRECT_IO_SIZE_KB, 128),
		    CU_FILE_DRIVER_ALREADY_OPEN);
}

static void the_last_close_forgets(void **state)
{
	assert_ok(cuFileDriverOpen());
	assert_ok(cuFileDriverOpen());
	assert_ok(set(CU_FILE_NFS_SUPPORTED, CHOICE));
	assert_ok(cuFileDriverClose());
	assert_int_equal(get(CU_FILE_NFS_SUPPORTED), CHOICE);
	assert_ok(cuFileDriverClose());
	assert_int_equal(get(CU_FILE_NFS_SUPPORTED), 0);
}

static void an_export_forgets_and_one_that_fails_does_not(void **state)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/topology.json", th_disk_dir());
	assert_ok(set(CU_FILE_NVME_SUPPORTED, CHOICE));
	assert_code(cuFileExportPCIeTopology("/no/such/folder/file"), BAD);
	assert_int_equal(get(CU_FILE_NVME_SUPPORTED), CHOICE);
	assert_ok(cuFileExportPCIeTopology(path));
	assert_int_equal(get(CU_FILE_NVME_SUPPORTED), 0);
	assert_int_equal(unlink(path), 0);
}

static const struct fresh_test tests[] = {
	FRESH(flags_are_none_at_first),
	FRESH(a_flag_is_read_back_for_its_target_only),
	FRESH(transports_that_cannot_be_chosen_are_refused),
	FRESH(what_is_no_target_is_refused),
	FRESH(the_calls_open_the_driver_and_count_as_no_use),
	FRESH(the_last_close_forgets),
	FRESH(an_export_forgets_and_one_that_fails_does_not),
};

FRESH_MAIN(tests, 20)

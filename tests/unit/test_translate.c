// SPDX-License-Identifier: Apache-2.0
/* translate - what callers are told of an internal code. */
#include "api/translate.h"

#include <errno.h>
#include "harness.h"
#include "seam/cuda.h"

static void is_told_as(int code, CUfileOpError err, int cuda)
{
	CUfileError_t told = cf_error(code);

	assert_int_equal(told.err, err);
	assert_int_equal(told.cu_err, cuda);
}

static void codes_are_told_as_they_are(void **state)
{
	(void)state;
	is_told_as(0, CU_FILE_SUCCESS, 0);
	is_told_as(-CU_FILE_DRIVER_NOT_INITIALIZED,
		   CU_FILE_DRIVER_NOT_INITIALIZED, 0);
	is_told_as(-CU_FILE_INTERNAL_BATCH_GETSTATUS_ERROR,
		   CU_FILE_INTERNAL_BATCH_GETSTATUS_ERROR, 0);
	is_told_as(CF_ECUDA(CF_CU_UNKNOWN), CU_FILE_CUDA_DRIVER_ERROR,
		   CF_CU_UNKNOWN);
}

static void errors_of_the_system_have_a_code(void **state)
{
	static const struct {
		int err;
		CUfileOpError code;
	} rows[] = {
		{ ENOMEM, CU_FILE_NOMEM_ERROR },
		{ EACCES, CU_FILE_PERMISSION_DENIED },
		{ EPERM, CU_FILE_PERMISSION_DENIED },
		{ EIO, CU_FILE_IO_ERROR },
		{ EINVAL, CU_FILE_INVALID_VALUE },
		{ EBADF, CU_FILE_INVALID_VALUE },
		{ EFAULT, CU_FILE_INVALID_VALUE },
		{ ESTALE, CU_FILE_INTERNAL_ERROR },
		{ EMFILE, CU_FILE_INTERNAL_ERROR },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		is_told_as(-rows[i].err, rows[i].code, 0);
}

static void fails_with(ssize_t n, int err)
{
	errno = 0;
	assert_int_equal(cf_result(n), -1);
	assert_int_equal(errno, err);
}

static void a_result_is_bytes_or_errno(void **state)
{
	(void)state;
	errno = 0;
	assert_int_equal(cf_result(0), 0);
	assert_int_equal(cf_result((ssize_t)5 << 40), (ssize_t)5 << 40);
	assert_int_equal(errno, 0);
	fails_with(-EIO, EIO);
	fails_with(-CU_FILE_INVALID_MAPPING_RANGE,
		   CU_FILE_INVALID_MAPPING_RANGE);
	fails_with(CF_ECUDA(CF_CU_UNKNOWN), CU_FILE_CUDA_DRIVER_ERROR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(codes_are_told_as_they_are),
		cmocka_unit_test(errors_of_the_system_have_a_code),
		cmocka_unit_test(a_result_is_bytes_or_errno),
	};

	return cmocka_run_group_tests_name("translate", tests, NULL, NULL);
}

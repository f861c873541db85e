// SPDX-License-Identifier: Apache-2.0
/* translate - turns internal codes into those of the API, for all calls. */
#include "api/translate.h"

#include <errno.h>
#include "seam/cuda.h"

static CUfileOpError from_errno(int err)
{
	switch (err) {
	case ENOMEM:
		return CU_FILE_NOMEM_ERROR;
	case EACCES:
	case EPERM:
		return CU_FILE_PERMISSION_DENIED;
	case EIO:
		return CU_FILE_IO_ERROR;
	case EINVAL:
	case EBADF:
	case EFAULT:
		return CU_FILE_INVALID_VALUE;
	default:
		return CU_FILE_INTERNAL_ERROR;
	}
}

CUfileError_t cf_error(int code)
{
	CUfileError_t error = { CU_FILE_SUCCESS, (CUresult)0 };

	if (cf_is_cuda_error(code)) {
		error.err = CU_FILE_CUDA_DRIVER_ERROR;
		error.cu_err = (CUresult)cf_cuda_result(code);
	} else if (code <= -CUFILEOP_BASE_ERR) {
		error.err = (CUfileOpError)-code;
	} else if (code < 0) {
		error.err = from_errno(-code);
	}
	return error;
}

ssize_t cf_result(ssize_t n)
{
	if (n >= 0)
		return n;
	errno = cf_is_cuda_error((int)n) ? CU_FILE_CUDA_DRIVER_ERROR : (int)-n;
	return -1;
}

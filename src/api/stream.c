// SPDX-License-Identifier: Apache-2.0
/*
 * stream - the stream-ordered calls (contract 3.10). Their engine is not
 * built yet: bad arguments and the rest answer documented errors
 * (docs/status.md).
 */
#include <cufile.h>

#include <stdbool.h>
#include "api/translate.h"

static CUfileError_t refuse(bool complete)
{
	return cf_error(complete ? -CU_FILE_ASYNC_NOT_SUPPORTED :
				   -CU_FILE_INVALID_VALUE);
}

CUfileError_t cuFileReadAsync(CUfileHandle_t fh, void *bufPtr_base,
			      size_t *size_p, off_t *file_offset_p,
			      off_t *bufPtr_offset_p, ssize_t *bytes_read_p,
			      CUstream stream)
{
	return refuse(fh && bufPtr_base && size_p && file_offset_p &&
		      bufPtr_offset_p && bytes_read_p);
}

CUfileError_t cuFileWriteAsync(CUfileHandle_t fh, void *bufPtr_base,
			       size_t *size_p, off_t *file_offset_p,
			       off_t *bufPtr_offset_p, ssize_t *bytes_written_p,
			       CUstream stream)
{
	return refuse(fh && bufPtr_base && size_p && file_offset_p &&
		      bufPtr_offset_p && bytes_written_p);
}

CUfileError_t cuFileStreamRegister(CUstream stream, unsigned flags)
{
	if (flags > 0xf)
		return cf_error(-CU_FILE_INVALID_VALUE);
	return cf_error(-CU_FILE_PLATFORM_NOT_SUPPORTED);
}

CUfileError_t cuFileStreamDeregister(CUstream stream)
{
	return cf_error(-CU_FILE_PLATFORM_NOT_SUPPORTED);
}

// SPDX-License-Identifier: Apache-2.0
/* stream - the stream-ordered calls (contract 3.10). */
#include <opencufile.h>

#include "api/translate.h"
#include "engine/stream.h"

#define FIXED_OFFSETS \
	(CU_FILE_STREAM_FIXED_BUF_OFFSET | CU_FILE_STREAM_FIXED_FILE_OFFSET)

static CUfileError_t submit(CUstream stream, const struct cf_errand *errand)
{
	if (!errand->call.handle || !errand->call.base || !errand->size_p ||
	    !errand->file_off_p || !errand->buf_off_p ||
	    (!errand->bytes_p && !errand->int_p))
		return cf_error(-CU_FILE_INVALID_VALUE);
	return cf_error(cf_stream_submit(
		&(struct cf_sop_call){ .errand = *errand, .stream = stream }));
}

CUfileError_t cuFileReadAsync(CUfileHandle_t fh, void *bufPtr_base,
			      size_t *size_p, off_t *file_offset_p,
			      off_t *bufPtr_offset_p, ssize_t *bytes_read_p,
			      CUstream stream)
{
	return submit(stream, &(struct cf_errand){ .call.op = CF_READ,
						   .call.handle = fh,
						   .call.base = bufPtr_base,
						   .size_p = size_p,
						   .file_off_p = file_offset_p,
						   .buf_off_p = bufPtr_offset_p,
						   .bytes_p = bytes_read_p });
}

CUfileError_t cuFileWriteAsync(CUfileHandle_t fh, void *bufPtr_base,
			       size_t *size_p, off_t *file_offset_p,
			       off_t *bufPtr_offset_p, ssize_t *bytes_written_p,
			       CUstream stream)
{
	return submit(stream,
		      &(struct cf_errand){ .call.op = CF_WRITE,
					   .call.handle = fh,
					   .call.base = bufPtr_base,
					   .size_p = size_p,
					   .file_off_p = file_offset_p,
					   .buf_off_p = bufPtr_offset_p,
					   .bytes_p = bytes_written_p });
}

CUfileError_t ocf_read_async(CUfileHandle_t fh, void *bufPtr_base,
			     size_t *size_p, off_t file_offset,
			     off_t bufPtr_offset, int *bytes_read_p,
			     CUstream stream)
{
	return submit(stream, &(struct cf_errand){ .call.op = CF_READ,
						   .call.handle = fh,
						   .call.base = bufPtr_base,
						   .size_p = size_p,
						   .file_off_p = &file_offset,
						   .buf_off_p = &bufPtr_offset,
						   .int_p = bytes_read_p,
						   .fixed = FIXED_OFFSETS });
}

CUfileError_t ocf_write_async(CUfileHandle_t fh, void *bufPtr_base,
			      size_t *size_p, off_t file_offset,
			      off_t bufPtr_offset, int *bytes_written_p,
			      CUstream stream)
{
	return submit(stream, &(struct cf_errand){ .call.op = CF_WRITE,
						   .call.handle = fh,
						   .call.base = bufPtr_base,
						   .size_p = size_p,
						   .file_off_p = &file_offset,
						   .buf_off_p = &bufPtr_offset,
						   .int_p = bytes_written_p,
						   .fixed = FIXED_OFFSETS });
}

CUfileError_t cuFileStreamRegister(CUstream stream, unsigned flags)
{
	return cf_error(cf_stream_register(stream, flags));
}

CUfileError_t cuFileStreamDeregister(CUstream stream)
{
	return cf_error(cf_stream_deregister(stream));
}

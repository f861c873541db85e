// SPDX-License-Identifier: Apache-2.0
/* copy_in - makes rows (2D copies) of small copies. */
#include "core/copy_in.h"

/* Not in VMM memory: the driver promises no rows across two mappings. */
bool cf_copy_in_is_small(const struct cf_memory *mem, size_t size)
{
	return size > 1 && size < CF_COPY_IN_SMALL &&
	       mem->kind == CF_MEMORY_DEVICE && !mem->chained;
}

static CUresult copy_rows(const struct cf_cuda *cuda, CUdeviceptr dst,
			  const char *from, size_t width, CUstream stream)
{
	const CUDA_MEMCPY2D copy = {
		.srcMemoryType = CF_CU_MEMORYTYPE_HOST,
		.srcHost = from,
		.srcPitch = width,
		.dstMemoryType = CF_CU_MEMORYTYPE_DEVICE,
		.dstDevice = dst,
		.dstPitch = width,
		.WidthInBytes = width,
		.Height = 2,
	};

	return cuda->memcpy_2d_async(&copy, stream);
}

/* An odd last byte and the one before it are two rows of their own. */
static CUresult copy_small(const struct cf_cuda *cuda, CUdeviceptr dst,
			   const char *from, size_t size, CUstream stream)
{
	CUresult res = copy_rows(cuda, dst, from, size / 2, stream);

	if (res == CF_CU_SUCCESS && size % 2)
		res = copy_rows(cuda, dst + size - 2, from + size - 2, 1,
				stream);
	return res;
}

/* If the driver refuses rows, the answer is that of a plain copy. */
CUresult cf_copy_in(const struct cf_cuda *cuda, const struct cf_memory *mem,
		    size_t at, const char *from, size_t size, CUstream stream)
{
	CUdeviceptr dst = (CUdeviceptr)mem->addr + at;

	if (cuda->memcpy_2d_async && cf_copy_in_is_small(mem, size) &&
	    copy_small(cuda, dst, from, size, stream) == CF_CU_SUCCESS)
		return CF_CU_SUCCESS;
	return cuda->memcpy_htod_async(dst, from, size, stream);
}

/* One byte cannot be two rows. */
bool cf_copy_in_goes_unread(const struct cf_cuda *cuda,
			    const struct cf_memory *mem, size_t at, size_t size)
{
	return size >= CF_COPY_IN_SMALL ||
	       (size > 1 && cuda->memcpy_2d_async &&
		mem->kind == CF_MEMORY_DEVICE &&
		cf_memory_is_one_mapping(mem, at, size));
}

CUresult cf_copy_in_unread(const struct cf_cuda *cuda,
			   const struct cf_memory *mem, size_t at,
			   const char *from, size_t size, CUstream stream)
{
	CUdeviceptr dst = (CUdeviceptr)mem->addr + at;

	return size < CF_COPY_IN_SMALL ?
		       copy_small(cuda, dst, from, size, stream) :
		       cuda->memcpy_htod_async(dst, from, size, stream);
}

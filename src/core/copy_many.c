// SPDX-License-Identifier: Apache-2.0
/* copy_many - see copy_many.h. */
#include "core/copy_many.h"

#include <stdatomic.h>

static atomic_bool refused; /* some drivers have the call and refuse; relaxed */

CUresult cf_copy_many(const struct cf_cuda *cuda, CUdeviceptr *to,
		      CUdeviceptr *from, size_t *sizes, size_t nr,
		      CUstream stream)
{
	CUmemcpyAttributes attrs = {
		.srcAccessOrder = CF_CU_MEMCPY_SRC_ORDER_STREAM,
	};
	size_t first = 0, failed;
	CUresult res;

	if (!cuda->memcpy_batch_async ||
	    atomic_load_explicit(&refused, memory_order_relaxed))
		return CF_CU_NOT_SUPPORTED;
	res = cuda->memcpy_batch_async(to, from, sizes, nr, &attrs, &first, 1,
				       &failed, stream);
	if (res == CF_CU_NOT_SUPPORTED)
		atomic_store_explicit(&refused, true, memory_order_relaxed);
	return res;
}

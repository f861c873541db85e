// SPDX-License-Identifier: Apache-2.0
/*
 * copy_many - copies that follow each other, by one call of the driver.
 *
 * A copy engine pauses for 2 us between copies that are asked for one by one.
 */
#ifndef CF_CORE_COPY_MANY_H
#define CF_CORE_COPY_MANY_H

#include <stddef.h>
#include "seam/cuda.h"

/*
 * cuMemcpyBatchAsync (CUDA 12.8) of nr copies between addresses that the
 * stream's context knows; none in managed memory. CF_CU_NOT_SUPPORTED: the
 * driver has no such call, and no copy was begun; after another error any of
 * them may have been. Any thread.
 */
CUresult cf_copy_many(const struct cf_cuda *cuda, CUdeviceptr *to,
		      CUdeviceptr *from, size_t *sizes, size_t nr,
		      CUstream stream);

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * copy_many - copies that follow each other, in one call of the driver.
 *
 * Between two that are asked for one by one a copy engine pauses for 2 us.
 */
#ifndef CF_CORE_COPY_MANY_H
#define CF_CORE_COPY_MANY_H

#include <stddef.h>
#include "seam/cuda.h"

/*
 * cuMemcpyBatchAsync (CUDA 12.8) of nr copies between addresses that the
 * stream's context knows; none in managed memory. CF_CU_NOT_SUPPORTED: the
 * driver has no such call, and nothing was begun; after another error nothing
 * is known of what was. Any thread.
 */
CUresult cf_copy_many(const struct cf_cuda *cuda, CUdeviceptr *to,
		      CUdeviceptr *from, size_t *sizes, size_t nr,
		      CUstream stream);

#endif

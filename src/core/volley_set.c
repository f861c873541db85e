// SPDX-License-Identifier: Apache-2.0
/* volley_set - makes and frees what a launch needs. */
#include "core/volley_set.h"

#include <stdlib.h>
#include "core/lane.h"

#define FLAGS_SIZE ((1 + CF_VOLLEY_ROWS) * sizeof(uint32_t))

static CUresult make_shared(struct cf_volley_set *set)
{
	if (cf_pinned_make(&set->pinned, sizeof(*set->shared), NULL, -1))
		return CF_CU_OUT_OF_MEMORY;
	set->shared = (struct cf_volley_shared *)set->pinned.mem;
	return set->pinned.gpu_addr ? CF_CU_SUCCESS : CF_CU_NOT_SUPPORTED;
}

/* Zero in flags means no launch: seq begins at 1. */
static CUresult make_flags(const struct cf_cuda *cuda,
			   struct cf_volley_set *set)
{
	CUresult res = cuda->mem_alloc(&set->flags, FLAGS_SIZE);

	if (res != CF_CU_SUCCESS)
		return res;
	res = cuda->memcpy_htod_async(set->flags, set->shared, FLAGS_SIZE,
				      set->side);
	return res == CF_CU_SUCCESS ? cuda->stream_synchronize(set->side) : res;
}

struct cf_volley_set *cf_volley_set_new(const struct cf_cuda *cuda,
					CUresult *res)
{
	struct cf_volley_set *set = calloc(1, sizeof(*set));

	*res = CF_CU_OUT_OF_MEMORY;
	if (!set)
		return NULL;
	*res = cf_lane_stream(cuda, &set->stream);
	if (*res == CF_CU_SUCCESS)
		*res = cuda->stream_create(&set->side,
					   CF_CU_STREAM_NON_BLOCKING);
	if (*res == CF_CU_SUCCESS)
		*res = make_shared(set);
	if (*res == CF_CU_SUCCESS)
		*res = make_flags(cuda, set);
	if (*res == CF_CU_SUCCESS)
		return set;
	cf_volley_set_free(set, true);
	return NULL;
}

void cf_volley_set_free(struct cf_volley_set *set, bool alive)
{
	const struct cf_cuda *cuda = alive ? cf_cuda_loaded() : NULL;

	if (cuda && set->stream)
		cuda->stream_destroy(set->stream);
	if (cuda && set->side)
		cuda->stream_destroy(set->side);
	if (cuda && set->flags)
		cuda->mem_free(set->flags);
	if (set->shared)
		cf_pinned_end(&set->pinned, alive);
	free(set);
}

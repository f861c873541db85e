// SPDX-License-Identifier: Apache-2.0
/* volley_set - makes and frees what a launch needs. */
#include "core/volley_set.h"

#include <stdlib.h>
#include "core/lane.h"
#include "core/pinned.h"
#include "seam/os.h"

#define FLAGS_SIZE ((1 + CF_VOLLEY_ROWS) * sizeof(uint32_t))

static CUresult make_shared(const struct cf_cuda *cuda,
			    struct cf_volley_set *set)
{
	CUresult res;

	set->shared = cf_os->map_anon(sizeof(*set->shared));
	if (!set->shared)
		return CF_CU_OUT_OF_MEMORY;
	res = cuda->mem_host_register(set->shared, sizeof(*set->shared),
				      CF_CU_MEMHOSTREGISTER_PORTABLE);
	if (res != CF_CU_SUCCESS)
		return res;
	set->pinned = true;
	set->shared_addr = cf_pinned_gpu_addr(set->shared);
	return set->shared_addr ? CF_CU_SUCCESS : CF_CU_NOT_SUPPORTED;
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
		*res = make_shared(cuda, set);
	if (*res == CF_CU_SUCCESS)
		*res = make_flags(cuda, set);
	if (*res == CF_CU_SUCCESS)
		return set;
	cf_volley_set_free(set, true);
	return NULL;
}

/* Memory that the driver may still hold stays mapped; see cf_pinned_end. */
static void shared_free(const struct cf_cuda *cuda, struct cf_volley_set *set)
{
	if (!set->pinned ||
	    (cuda && cuda->mem_host_unregister(set->shared) == CF_CU_SUCCESS))
		cf_os->unmap(set->shared, sizeof(*set->shared));
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
		shared_free(cuda, set);
	free(set);
}

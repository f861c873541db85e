// SPDX-License-Identifier: Apache-2.0
/* place - asks the driver, and for a default stream perhaps the memory. */
#include "engine/place.h"

#include "core/device.h"

bool cf_is_default_stream(CUstream stream)
{
	return stream == CF_CU_STREAM_LEGACY ||
	       stream == CF_CU_STREAM_PER_THREAD;
}

static int context_of(const struct cf_cuda *cuda, CUstream stream,
		      const void *base, CUcontext *ctx)
{
	CUresult res = cuda->stream_get_ctx(stream, ctx);
	struct cf_memory mem;
	struct cf_device *dev;
	int err;

	if (res != CF_CU_INVALID_CONTEXT || !cf_is_default_stream(stream) ||
	    !base)
		return cf_cuda_code(res);
	cf_memory_facts((uintptr_t)base, &mem);
	if (mem.kind == CF_MEMORY_HOST)
		return CF_ECUDA(res);
	err = cf_device_find(&mem, &dev);
	if (!err)
		*ctx = dev->ctx;
	return err;
}

int cf_place_find(const struct cf_cuda *cuda, CUstream stream, const void *base,
		  struct cf_place *at)
{
	int err;

	at->stream = stream ? stream : CF_CU_STREAM_LEGACY;
	at->id = 0;
	err = context_of(cuda, at->stream, base, &at->ctx);
	if (err)
		return err;
	at->ctx_id = cf_context_id(cuda, at->ctx);
	return at->ctx_id ? 0 : CF_ECUDA(CF_CU_CONTEXT_IS_DESTROYED);
}

/* Where there are ids, a per-thread default stream has one a thread. */
void cf_place_ask_id(const struct cf_cuda *cuda, struct cf_place *at)
{
	if (cuda && cuda->stream_get_id &&
	    cuda->stream_get_id(at->stream, &at->id) != CF_CU_SUCCESS)
		at->id = 0;
}

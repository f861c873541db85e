// SPDX-License-Identifier: Apache-2.0
/* context - asks the driver for a context's id, and makes it current. */
#include "core/context.h"

/*
 * Called before a lane is touched: the driver refuses a dead context here, but
 * would crash on its streams.
 */
unsigned long long cf_context_id(const struct cf_cuda *cuda, CUcontext ctx)
{
	unsigned long long id = 0;
	unsigned version;

	if (!cuda->ctx_get_id)
		return cuda->ctx_get_api_version(ctx, &version) ==
		       CF_CU_SUCCESS;
	return cuda->ctx_get_id(ctx, &id) == CF_CU_SUCCESS ? id : 0;
}

bool cf_context_is_gone(const struct cf_cuda *cuda, CUcontext ctx,
			unsigned long long id)
{
	unsigned long long now = id;
	unsigned version;
	CUresult res = cuda->ctx_get_id ?
			       cuda->ctx_get_id(ctx, &now) :
			       cuda->ctx_get_api_version(ctx, &version);

	return res == CF_CU_CONTEXT_IS_DESTROYED ||
	       res == CF_CU_INVALID_CONTEXT ||
	       (res == CF_CU_SUCCESS && now != id);
}

int cf_context_ordinal(const struct cf_cuda *cuda)
{
	CUdevice dev, other;
	int ordinal = 0;

	if (!cuda->ctx_get_device ||
	    cuda->ctx_get_device(&dev) != CF_CU_SUCCESS)
		return -1;
	while (cuda->device_get(&other, ordinal) == CF_CU_SUCCESS) {
		if (other == dev)
			return ordinal;
		ordinal++;
	}
	return -1;
}

bool cf_stream_is_captured(const struct cf_cuda *cuda, CUstream stream)
{
	int status = CF_CU_STREAM_CAPTURE_STATUS_NONE;

	return cuda->stream_is_capturing &&
	       (cuda->stream_is_capturing(stream, &status) != CF_CU_SUCCESS ||
		status != CF_CU_STREAM_CAPTURE_STATUS_NONE);
}

int cf_context_enter(CUcontext ctx, struct cf_scope *scope)
{
	const struct cf_cuda *cuda = cf_cuda_loaded();
	CUresult res;

	if (!cuda)
		return CF_ECUDA(CF_CU_DEINITIALIZED);
	res = cuda->ctx_push(ctx);
	if (res != CF_CU_SUCCESS)
		return CF_ECUDA(res);
	scope->capture_mode = CF_CU_STREAM_CAPTURE_MODE_RELAXED;
	if (cuda->exchange_capture_mode)
		cuda->exchange_capture_mode(&scope->capture_mode);
	return 0;
}

void cf_context_leave(struct cf_scope *scope)
{
	const struct cf_cuda *cuda = cf_cuda_loaded();
	CUcontext popped;

	if (!cuda)
		return;
	if (cuda->exchange_capture_mode)
		cuda->exchange_capture_mode(&scope->capture_mode);
	cuda->ctx_pop(&popped);
}

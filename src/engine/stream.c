// SPDX-License-Identifier: Apache-2.0
/* stream - checks what is asked of a stream, and opens and closes stream IO. */
#include "engine/stream.h"

#include "core/context.h"
#include "core/log.h"
#include "core/log_tag.h"
#include "core/quiet.h"
#include "engine/batch.h"
#include "engine/depth.h"
#include "engine/parcel.h"
#include "engine/session.h"
#include "engine/sops.h"
#include "engine/stream_ref.h"
#include "engine/uncalled.h"
#include "engine/watch.h"

#define ALL_FLAGS \
	(CU_FILE_STREAM_FIXED_BUF_OFFSET | CU_FILE_STREAM_FIXED_FILE_OFFSET | \
	 CU_FILE_STREAM_FIXED_FILE_SIZE | CU_FILE_STREAM_PAGE_ALIGNED_INPUTS)

bool cf_streams_allowed(const struct cf_config *config)
{
	return cf_config_bool(config, CF_CFG_PARALLEL_IO) &&
	       cf_config_size(config, CF_CFG_MAX_IO_THREADS);
}

/* The place's context is current. */
static int register_at(struct cf_place *at, unsigned flags)
{
	int err;

	cf_place_ask_id(cf_cuda_loaded(), at);
	err = cf_dock_warm(at->ctx, at->ctx_id);
	return err ? err : cf_stream_ref_list(at, flags);
}

/* Configuration must allow stream IO, and there must be a driver for it. */
static int find_driver(int unsupported, const struct cf_cuda **cuda)
{
	if (!cf_streams_allowed(cf_session_config()))
		return unsupported;
	*cuda = cf_cuda_look_again();
	if (!*cuda || !(*cuda)->stream_get_ctx || !(*cuda)->launch_host_func)
		return unsupported;
	return 0;
}

static int do_register(CUstream stream, unsigned flags)
{
	const struct cf_cuda *cuda;
	struct cf_scope scope;
	struct cf_place at;
	int err = find_driver(-CU_FILE_PLATFORM_NOT_SUPPORTED, &cuda);

	if (err)
		return err;
	err = cf_place_find(cuda, stream, NULL, &at);
	if (err) {
		cf_log(CF_LOG_ERROR, "stream register stream " CF_TAG ": %s",
		       cf_tag(stream), cf_cuda_name_in(err));
		return -CU_FILE_INVALID_VALUE;
	}
	err = cf_context_enter(at.ctx, &scope);
	if (err)
		return err;
	err = register_at(&at, flags);
	cf_context_leave(&scope);
	return err;
}

int cf_stream_register(CUstream stream, unsigned flags)
{
	int err;

	if (flags & ~ALL_FLAGS)
		return -CU_FILE_INVALID_VALUE;
	err = cf_session_open_implicit();
	if (!err)
		err = cf_sops_enter();
	if (err)
		return err;
	err = do_register(stream, flags);
	cf_sops_leave();
	return err;
}

/*
 * The stream may be gone already, and the driver crashes on one that is. So
 * unless it is a default stream it is looked for by its handle alone.
 */
static struct cf_stream_ref *find_to_forget(CUstream stream)
{
	const struct cf_cuda *cuda = cf_cuda_loaded();
	struct cf_place at = { .stream = stream };

	if (!stream)
		at.stream = CF_CU_STREAM_LEGACY;
	if (cf_is_default_stream(at.stream)) {
		if (!cuda || !cuda->stream_get_ctx ||
		    cf_place_find(cuda, stream, NULL, &at))
			return NULL;
		cf_place_ask_id(cuda, &at);
	}
	return cf_stream_ref_unlist(&at);
}

int cf_stream_deregister(CUstream stream)
{
	struct cf_stream_ref *ref;
	int err = cf_sops_enter();

	if (err)
		return err;
	ref = find_to_forget(stream);
	if (ref)
		cf_stream_ref_wait(ref);
	else
		err = -CU_FILE_INVALID_VALUE;
	cf_sops_leave();
	return err;
}

/* ------------------------------------------------------------ readiness */

/* after a context was busy: registrations of files do not look at one */
static struct cf_rest busy;

static void prepare(const struct cf_cuda *cuda)
{
	struct cf_scope scope;
	unsigned long long id;
	CUcontext ctx;

	if (cuda->ctx_get_current(&ctx) != CF_CU_SUCCESS || !ctx)
		return;
	id = cf_context_id(cuda, ctx);
	if (!id || !cf_dock_may_prepare(ctx, id) ||
	    cf_context_enter(ctx, &scope))
		return;
	/* the second question is for drivers that cannot answer the first */
	if (cf_quiet_after(cuda, &busy, CF_QUIET_PATIENCE_NS) &&
	    cuda->stream_query(CF_CU_STREAM_LEGACY) == CF_CU_SUCCESS)
		cf_dock_prepare(cuda, ctx, id);
	cf_context_leave(&scope);
}

void cf_streams_prepare(void)
{
	const struct cf_cuda *cuda = cf_cuda_loaded();

	if (!cuda || !cuda->stream_get_ctx || cf_sops_enter())
		return;
	if (cf_streams_allowed(cf_session_config()))
		prepare(cuda);
	cf_sops_leave();
}

/* ------------------------------------------------------------ operations */

static int check_handle(CUfileHandle_t value)
{
	struct cf_handle *handle = cf_handle_get(value);

	if (!handle)
		return -CU_FILE_HANDLE_NOT_REGISTERED;
	cf_handle_put(handle);
	return 0;
}

static struct cf_stream_ref *find_ref(const struct cf_cuda *cuda,
				      struct cf_place *at)
{
	if (!cf_stream_refs_any())
		return NULL;
	if (!cf_stream_is_captured(cuda, at->stream))
		cf_place_ask_id(cuda, at);
	return cf_stream_ref_get(at);
}

static int submit(const struct cf_cuda *cuda, const struct cf_sop_call *call)
{
	struct cf_stream_ref *ref;
	struct cf_scope scope;
	struct cf_place at;
	int err =
		cf_place_find(cuda, call->stream, call->errand.call.base, &at);

	if (!err && cf_workers_reserve(CF_TEAM_STREAM))
		err = -CU_FILE_NOMEM_ERROR;
	if (!err)
		err = cf_context_enter(at.ctx, &scope);
	if (err)
		return err;
	ref = find_ref(cuda, &at);
	err = cf_sop_submit(call, &at, ref);
	if (ref)
		cf_stream_ref_put(ref);
	cf_context_leave(&scope);
	return err;
}

static int check_and_submit(const struct cf_sop_call *call)
{
	const struct cf_cuda *cuda;
	int err = find_driver(-CU_FILE_ASYNC_NOT_SUPPORTED, &cuda);

	if (!err)
		err = check_handle(call->errand.call.handle);
	return err ? err : submit(cuda, call);
}

int cf_stream_submit(const struct cf_sop_call *call)
{
	int err = cf_sops_enter();

	if (!err) {
		err = check_and_submit(call);
		cf_sops_leave();
	}
	if (err)
		cf_log(CF_LOG_ERROR,
		       "%s in stream " CF_TAG ", handle %s buf " CF_TAG
		       ": refused, code %d%s%s",
		       cf_op_name(call->errand.call.op), cf_tag(call->stream),
		       cf_handle_words(call->errand.call.handle),
		       cf_tag(call->errand.call.base), err,
		       cf_is_cuda_error(err) ? " " : "", cf_cuda_name_in(err));
	return err;
}

static int pack(CUfileBatchHandle_t value, unsigned nr,
		const CUfileIOParams_t *params, struct cf_parcel **parcel)
{
	struct cf_batch *batch = cf_batch_get(value);
	int err = -CU_FILE_INTERNAL_BATCH_SUBMIT_ERROR;

	if (batch) {
		err = cf_batch_pack(batch, nr, params, parcel);
		cf_batch_put(batch);
	}
	return err;
}

static int pack_and_submit(CUfileBatchHandle_t batch, unsigned nr,
			   const CUfileIOParams_t *params, CUstream stream)
{
	struct cf_sop_call call = { .stream = stream };
	const struct cf_cuda *cuda;
	int err = find_driver(-CU_FILE_ASYNC_NOT_SUPPORTED, &cuda);

	if (!err)
		err = pack(batch, nr, params, &call.parcel);
	if (err)
		return err;
	call.errand.call.base = params->u.batch.devPtr_base;
	err = submit(cuda, &call);
	if (err)
		cf_parcel_free(call.parcel);
	return err;
}

int cf_stream_submit_batch(CUfileBatchHandle_t batch, unsigned nr,
			   const CUfileIOParams_t *params, CUstream stream)
{
	int err = cf_sops_enter();

	if (!err) {
		err = pack_and_submit(batch, nr, params, stream);
		cf_sops_leave();
	}
	if (err)
		cf_log(CF_LOG_ERROR,
		       "batch " CF_TAG " of %u in stream " CF_TAG
		       ": refused, code %d%s%s",
		       cf_tag(batch), nr, cf_tag(stream), err,
		       cf_is_cuda_error(err) ? " " : "", cf_cuda_name_in(err));
	return err;
}

/* ------------------------------------------------------- open and close */

void cf_streams_open(const struct cf_config *config)
{
	cf_docks_configure(!cf_config_bool(config, CF_CFG_STREAM_MEMOPS_BYPASS),
			   cf_config_bool(config, CF_CFG_STREAM_BELLS),
			   cf_config_bool(config, CF_CFG_STREAM_FERRY));
	cf_rest_init(&busy, CF_QUIET_REST_NS, CF_QUIET_MAX_REST_NS);
	cf_sops_open();
}

void cf_streams_close(void)
{
	cf_sops_shut();
	cf_bells_silence(cf_sop_shut);
	cf_sops_drain();
	cf_uncalled_close();
	cf_watch_close();
	cf_stream_refs_close();
	cf_docks_close();
}

void cf_streams_fork_prepare(void)
{
	cf_sops_fork_prepare();
	cf_docks_fork_prepare();
	cf_depths_fork_prepare();
	cf_watch_fork_prepare();
	cf_bells_fork_prepare();
}

void cf_streams_fork_parent(void)
{
	cf_bells_fork_parent();
	cf_watch_fork_parent();
	cf_depths_fork_parent();
	cf_docks_fork_parent();
	cf_sops_fork_parent();
}

void cf_streams_fork_child(void)
{
	cf_stream_refs_fork_child();
	cf_bells_fork_child();
	cf_watch_fork_child();
	cf_depths_fork_child();
	cf_docks_fork_child();
	cf_uncalled_fork_child();
	cf_sops_fork_child();
}

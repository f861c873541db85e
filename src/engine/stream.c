// SPDX-License-Identifier: Apache-2.0
/*
 * stream - which streams are registered, and in which context a stream is.
 *
 * Default streams are known by their context too. A handle that the driver
 * gave away anew names another stream: its id tells, where there are ids.
 *
 * Lock: that of sop.c guards the list.
 */
#include "engine/stream.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include "core/device.h"
#include "core/log.h"
#include "core/log_tag.h"
#include "engine/batch.h"
#include "engine/depth.h"
#include "engine/parcel.h"
#include "engine/session.h"

#define ALL_FLAGS \
	(CU_FILE_STREAM_FIXED_BUF_OFFSET | CU_FILE_STREAM_FIXED_FILE_OFFSET | \
	 CU_FILE_STREAM_FIXED_FILE_SIZE | CU_FILE_STREAM_PAGE_ALIGNED_INPUTS)
#define BUCKETS 64

static struct cf_stream_ref *buckets[BUCKETS];
static _Atomic unsigned nr_refs; /* relaxed: 0 spares a question */

/* A stream, and where it is. */
struct place {
	CUstream stream; /* never NULL */
	CUcontext ctx;
	unsigned long long ctx_id;
	unsigned long long id; /* of the stream, 0: not known */
};

bool cf_streams_allowed(const struct cf_config *config)
{
	return cf_config_bool(config, CF_CFG_PARALLEL_IO) &&
	       cf_config_size(config, CF_CFG_MAX_IO_THREADS);
}

static bool is_default(CUstream stream)
{
	return stream == CF_CU_STREAM_LEGACY ||
	       stream == CF_CU_STREAM_PER_THREAD;
}

/*
 * A thread that has no context yet means the default stream of the context
 * that owns the memory; base may be NULL.
 */
static int context_of(const struct cf_cuda *cuda, CUstream stream,
		      const void *base, CUcontext *ctx)
{
	CUresult res = cuda->stream_get_ctx(stream, ctx);
	struct cf_memory mem;
	struct cf_device *dev;
	int err;

	if (res != CF_CU_INVALID_CONTEXT || !is_default(stream) || !base)
		return cf_cuda_code(res);
	cf_memory_facts((uintptr_t)base, &mem);
	if (mem.kind == CF_MEMORY_HOST)
		return CF_ECUDA(res);
	err = cf_device_find(&mem, &dev);
	if (!err)
		*ctx = dev->ctx;
	return err;
}

static int find_place(const struct cf_cuda *cuda, CUstream stream,
		      const void *base, struct place *at)
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

/*
 * Where the driver gives ids, a per-thread default stream has one for each
 * thread. The place's context is current.
 */
static void ask_id(const struct cf_cuda *cuda, struct place *at)
{
	if (cuda && cuda->stream_get_id &&
	    cuda->stream_get_id(at->stream, &at->id) != CF_CU_SUCCESS)
		at->id = 0;
}

static struct cf_stream_ref **bucket_of(CUstream stream)
{
	uintptr_t bits = (uintptr_t)stream;

	return &buckets[(bits >> 4 ^ bits >> 12) % BUCKETS];
}

static bool is_at(const struct cf_stream_ref *ref, const struct place *at)
{
	return ref->stream == at->stream && ref->ctx == at->ctx &&
	       ref->id == at->id;
}

/* A place whose id is not known could be any of its name. */
static bool may_be_at(const struct cf_stream_ref *ref, const struct place *at)
{
	return ref->stream == at->stream && ref->ctx == at->ctx &&
	       (!at->id || ref->id == at->id);
}

static struct cf_stream_ref *find_locked(const struct place *at)
{
	struct cf_stream_ref *ref = *bucket_of(at->stream);

	while (ref && !may_be_at(ref, at))
		ref = ref->next;
	return ref;
}

static void unlist_locked(struct cf_stream_ref *ref)
{
	struct cf_stream_ref **p = bucket_of(ref->stream);

	while (*p != ref)
		p = &(*p)->next;
	*p = ref->next;
	ref->listed = false;
	atomic_fetch_sub_explicit(&nr_refs, 1, memory_order_relaxed);
}

/* One that bears the name of another stream, now gone, is of no use. */
static void drop_namesake_locked(const struct place *at)
{
	struct cf_stream_ref *ref = *bucket_of(at->stream);

	if (is_default(at->stream))
		return;
	while (ref && (ref->stream != at->stream || is_at(ref, at)))
		ref = ref->next;
	if (!ref)
		return;
	unlist_locked(ref);
	if (!ref->out)
		free(ref);
}

static int list(struct cf_stream_ref *ref, const struct place *at)
{
	struct cf_stream_ref **bucket = bucket_of(at->stream);
	int err = 0;

	cf_sops_lock();
	drop_namesake_locked(at);
	if (find_locked(at)) {
		err = -CU_FILE_INVALID_VALUE;
	} else {
		ref->listed = true;
		ref->next = *bucket;
		*bucket = ref;
		atomic_fetch_add_explicit(&nr_refs, 1, memory_order_relaxed);
	}
	cf_sops_unlock();
	return err;
}

/* The place's context is current. */
static int register_at(struct place *at, unsigned flags)
{
	struct cf_stream_ref *ref = calloc(1, sizeof(*ref));
	int err;

	if (!ref)
		return -ENOMEM;
	ask_id(cf_cuda_loaded(), at);
	ref->stream = at->stream;
	ref->ctx = at->ctx;
	ref->id = at->id;
	ref->flags = flags;
	err = cf_dock_warm(at->ctx, at->ctx_id);
	if (!err)
		err = list(ref, at);
	if (err)
		free(ref);
	return err;
}

/* What all calls want: a configuration that allows it, and a driver. */
static int find_driver(int unsupported, const struct cf_cuda **cuda)
{
	if (!cf_streams_allowed(cf_session_config()))
		return unsupported;
	*cuda = cf_cuda_look_again();
	if (!*cuda || !(*cuda)->stream_get_ctx || !(*cuda)->launch_host_func)
		return unsupported;
	return 0;
}

static int bad_stream(CUstream stream, const char *what, int err)
{
	cf_log(CF_LOG_ERROR, "stream %s stream " CF_TAG ": %s", what,
	       cf_tag(stream),
	       cf_is_cuda_error(err) ? cf_cuda_error_name(cf_cuda_result(err)) :
				       "not possible");
	return err;
}

static int do_register(CUstream stream, unsigned flags)
{
	const struct cf_cuda *cuda;
	struct cf_scope scope;
	struct place at;
	int err = find_driver(-CU_FILE_PLATFORM_NOT_SUPPORTED, &cuda);

	if (err)
		return err;
	err = find_place(cuda, stream, NULL, &at);
	if (err) {
		bad_stream(stream, "register", err);
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
	err = cf_sops_enter();
	if (err)
		return err;
	err = do_register(stream, flags);
	cf_sops_leave();
	return err;
}

/*
 * The stream may be gone already, and the driver crashes on those that are:
 * so one with a handle of its own is looked for by that alone.
 */
static struct cf_stream_ref *find_to_forget(CUstream stream)
{
	const struct cf_cuda *cuda = cf_cuda_loaded();
	struct cf_stream_ref *ref;
	struct place at = { .stream = stream ? stream : CF_CU_STREAM_LEGACY };

	if (is_default(at.stream)) {
		if (!cuda || !cuda->stream_get_ctx ||
		    find_place(cuda, stream, NULL, &at))
			return NULL;
		ask_id(cuda, &at);
	}
	cf_sops_lock();
	ref = *bucket_of(at.stream);
	while (ref && (is_default(at.stream) ? !is_at(ref, &at) :
					       ref->stream != at.stream))
		ref = ref->next;
	if (ref) {
		unlist_locked(ref);
		ref->out++; /* ours: nobody frees it while we wait */
	}
	cf_sops_unlock();
	return ref;
}

int cf_stream_deregister(CUstream stream)
{
	struct cf_stream_ref *ref;
	int err = cf_sops_enter();

	if (err)
		return err;
	ref = find_to_forget(stream);
	if (ref)
		cf_sops_wait_for(ref);
	else
		err = -CU_FILE_INVALID_VALUE;
	cf_sops_leave();
	return err;
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

/* To ask a stream that is recorded for its id would end the recording. */
static bool is_captured(const struct cf_cuda *cuda, CUstream stream)
{
	int status = CF_CU_STREAM_CAPTURE_STATUS_NONE;

	return cuda->stream_is_capturing &&
	       (cuda->stream_is_capturing(stream, &status) != CF_CU_SUCCESS ||
		status != CF_CU_STREAM_CAPTURE_STATUS_NONE);
}

static struct cf_stream_ref *find_ref(const struct cf_cuda *cuda,
				      struct place *at)
{
	struct cf_stream_ref *ref;

	if (!atomic_load_explicit(&nr_refs, memory_order_relaxed))
		return NULL;
	if (!is_captured(cuda, at->stream))
		ask_id(cuda, at);
	cf_sops_lock();
	ref = find_locked(at);
	if (ref)
		ref->out++; /* until the submission is over */
	cf_sops_unlock();
	return ref;
}

static void put_ref(struct cf_stream_ref *ref)
{
	if (ref)
		cf_sops_put_ref(ref);
}

static int submit(const struct cf_cuda *cuda, const struct cf_sop_call *call)
{
	struct cf_stream_ref *ref;
	struct cf_scope scope;
	struct place at;
	int err = find_place(cuda, call->stream, call->errand.call.base, &at);

	if (!err)
		err = cf_workers_reserve();
	if (!err)
		err = cf_context_enter(at.ctx, &scope);
	if (err)
		return err;
	ref = find_ref(cuda, &at);
	err = cf_sop_submit(call, at.ctx, at.ctx_id, ref);
	put_ref(ref);
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
		       cf_is_cuda_error(err) ? " " : "",
		       cf_is_cuda_error(err) ?
			       cf_cuda_error_name(cf_cuda_result(err)) :
			       "");
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
		       cf_is_cuda_error(err) ? " " : "",
		       cf_is_cuda_error(err) ?
			       cf_cuda_error_name(cf_cuda_result(err)) :
			       "");
	return err;
}

/* ------------------------------------------------------- open and close */

void cf_streams_open(const struct cf_config *config)
{
	cf_docks_configure(!cf_config_bool(config, CF_CFG_STREAM_MEMOPS_BYPASS),
			   cf_config_bool(config, CF_CFG_STREAM_BELLS));
	cf_sops_open();
}

static void forget_all(void)
{
	cf_sops_lock();
	for (size_t i = 0; i < BUCKETS; i++)
		while (buckets[i]) {
			struct cf_stream_ref *ref = buckets[i];

			unlist_locked(ref);
			if (!ref->out)
				free(ref);
		}
	cf_sops_unlock();
}

void cf_streams_close(void)
{
	cf_sops_close();
	forget_all();
	cf_docks_close();
}

void cf_streams_fork_prepare(void)
{
	cf_sops_fork_prepare();
	cf_docks_fork_prepare();
	cf_depths_fork_prepare();
	cf_bells_fork_prepare();
}

void cf_streams_fork_parent(void)
{
	cf_bells_fork_parent();
	cf_depths_fork_parent();
	cf_docks_fork_parent();
	cf_sops_fork_parent();
}

void cf_streams_fork_child(void)
{
	for (size_t i = 0; i < BUCKETS; i++)
		buckets[i] = NULL;
	atomic_store(&nr_refs, 0);
	cf_bells_fork_child();
	cf_depths_fork_child();
	cf_docks_fork_child();
	cf_sops_fork_child();
}

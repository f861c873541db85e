// SPDX-License-Identifier: Apache-2.0
/*
 * cuda - finds libcuda.so.1 and fills the table.
 *
 * The table is filled on the side, verified, and published with one store.
 * "There is none" is remembered for a few milliseconds only, because the
 * application may open the driver at any time. From the first exit handler
 * on the driver counts as gone: its own teardown may have begun.
 *
 * Lock: load_lock, innermost; guards the filling of the table. dlopen and
 * dlsym run without it: they take the loader's own lock, which a constructor
 * that calls us holds already.
 */
#include "seam/cuda.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#define LIBCUDA "libcuda.so.1"
#define LOOK_AGAIN_NS (4 * 1000 * 1000)

struct row {
	size_t slot;
	bool required;
	const char *name; /* the versioned name today's cuda.h maps to */
};

#define NEED(member, name) \
	{ \
		offsetof(struct cf_cuda, member), true, name \
	}
#define MAY(member, name) \
	{ \
		offsetof(struct cf_cuda, member), false, name \
	}

static const struct row rows[] = {
	NEED(init, "cuInit"),
	NEED(device_get_count, "cuDeviceGetCount"),
	NEED(device_get, "cuDeviceGet"),
	NEED(device_get_uuid, "cuDeviceGetUuid"),
	NEED(device_get_pci_bus_id, "cuDeviceGetPCIBusId"),
	NEED(primary_ctx_retain, "cuDevicePrimaryCtxRetain"),
	NEED(primary_ctx_release, "cuDevicePrimaryCtxRelease_v2"),
	NEED(ctx_push, "cuCtxPushCurrent_v2"),
	NEED(ctx_pop, "cuCtxPopCurrent_v2"),
	NEED(ctx_get_current, "cuCtxGetCurrent"),
	NEED(ctx_get_api_version, "cuCtxGetApiVersion"),
	NEED(pointer_get_attributes, "cuPointerGetAttributes"),
	NEED(mem_host_register, "cuMemHostRegister_v2"),
	NEED(mem_host_unregister, "cuMemHostUnregister"),
	NEED(memcpy_htod_async, "cuMemcpyHtoDAsync_v2"),
	NEED(memcpy_dtoh_async, "cuMemcpyDtoHAsync_v2"),
	NEED(stream_create, "cuStreamCreate"),
	NEED(stream_destroy, "cuStreamDestroy_v2"),
	NEED(stream_query, "cuStreamQuery"),
	NEED(stream_synchronize, "cuStreamSynchronize"),
	NEED(stream_wait_event, "cuStreamWaitEvent"),
	NEED(event_create, "cuEventCreate"),
	NEED(event_destroy, "cuEventDestroy_v2"),
	NEED(event_record, "cuEventRecord"),
	NEED(event_query, "cuEventQuery"),
	NEED(event_synchronize, "cuEventSynchronize"),
	MAY(get_error_name, "cuGetErrorName"),
	MAY(ctx_get_id, "cuCtxGetId"),
	MAY(ctx_get_device, "cuCtxGetDevice"),
	MAY(ctx_record_event, "cuCtxRecordEvent"),
	MAY(exchange_capture_mode, "cuThreadExchangeStreamCaptureMode"),
	MAY(stream_create_with_priority, "cuStreamCreateWithPriority"),
	MAY(memset_d8_async, "cuMemsetD8Async"),
	MAY(memcpy_dtod_async, "cuMemcpyDtoDAsync_v2"),
	/* the form of CUDA 12.8, with fail_idx; later ones have another name */
	MAY(memcpy_batch_async, "cuMemcpyBatchAsync"),
	MAY(memcpy_2d_async, "cuMemcpy2DAsync_v2"),
	MAY(mem_alloc, "cuMemAlloc_v2"),
	MAY(mem_free, "cuMemFree_v2"),
	MAY(module_load_data, "cuModuleLoadData"),
	MAY(module_unload, "cuModuleUnload"),
	MAY(module_get_function, "cuModuleGetFunction"),
	MAY(launch_kernel, "cuLaunchKernel"),
	MAY(launch_kernel_ex, "cuLaunchKernelEx"),
	MAY(ctx_get_stream_priority_range, "cuCtxGetStreamPriorityRange"),
	MAY(driver_get_version, "cuDriverGetVersion"),
	MAY(device_get_attribute, "cuDeviceGetAttribute"),
	MAY(mem_get_handle_for_range, "cuMemGetHandleForAddressRange"),
	MAY(mem_create, "cuMemCreate"),
	MAY(mem_release, "cuMemRelease"),
	MAY(mem_address_reserve, "cuMemAddressReserve"),
	MAY(mem_address_free, "cuMemAddressFree"),
	MAY(mem_map, "cuMemMap"),
	MAY(mem_unmap, "cuMemUnmap"),
	MAY(mem_set_access, "cuMemSetAccess"),
	MAY(mem_export_to_handle, "cuMemExportToShareableHandle"),
	MAY(mem_import_from_handle, "cuMemImportFromShareableHandle"),
	MAY(flush_writes, "cuFlushGPUDirectRDMAWrites"),
	MAY(stream_get_ctx, "cuStreamGetCtx"),
	MAY(stream_get_id, "cuStreamGetId"),
	MAY(launch_host_func, "cuLaunchHostFunc"),
	MAY(stream_wait_value32, "cuStreamWaitValue32_v2"),
	MAY(stream_write_value32, "cuStreamWriteValue32_v2"),
	MAY(stream_batch_mem_op, "cuStreamBatchMemOp_v2"),
	MAY(mem_host_get_device_pointer, "cuMemHostGetDevicePointer_v2"),
	MAY(stream_is_capturing, "cuStreamIsCapturing"),
	MAY(stream_get_capture_info, "cuStreamGetCaptureInfo_v2"),
	MAY(user_object_create, "cuUserObjectCreate"),
	MAY(user_object_release, "cuUserObjectRelease"),
	MAY(graph_retain_user_object, "cuGraphRetainUserObject"),
};

static pthread_mutex_t load_lock = PTHREAD_MUTEX_INITIALIZER;
static struct cf_cuda table;
static bool exit_watched; /* load_lock */
/* published: the release store makes the filled table visible to readers */
static const struct cf_cuda *_Atomic published;
static atomic_bool exiting;
static _Atomic uint64_t looked_ns; /* relaxed: only spaces out searches */

static void note_exit(void)
{
	atomic_store(&exiting, true);
}

static bool fill(struct cf_cuda *cuda, void *lib)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		void *sym = dlsym(lib, rows[i].name);

		if (!sym && rows[i].required)
			return false;
		*(void **)((char *)cuda + rows[i].slot) = sym;
	}
	return true;
}

/* The first table that is published stays. True if it is this one. */
static bool publish(const struct cf_cuda *cuda)
{
	bool first;

	pthread_mutex_lock(&load_lock);
	first = !atomic_load_explicit(&published, memory_order_relaxed);
	if (first) {
		table = *cuda;
		if (!exit_watched)
			exit_watched = atexit(note_exit) == 0;
		atomic_store_explicit(&published, &table, memory_order_release);
	}
	pthread_mutex_unlock(&load_lock);
	return first;
}

static const struct cf_cuda *look(int flags)
{
	void *lib = dlopen(LIBCUDA, RTLD_NOW | flags);
	struct cf_cuda filled;

	/* The winner's reference is kept: the table points into the library. */
	if (lib && (!fill(&filled, lib) || !publish(&filled)))
		dlclose(lib);
	return atomic_load_explicit(&published, memory_order_acquire);
}

static uint64_t coarse_ns(void)
{
	struct timespec ts = { 0 };

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

const struct cf_cuda *cf_cuda_look_again(void)
{
	const struct cf_cuda *found =
		atomic_load_explicit(&published, memory_order_acquire);

	if (atomic_load_explicit(&exiting, memory_order_relaxed))
		return NULL;
	return found ? found : look(RTLD_NOLOAD);
}

const struct cf_cuda *cf_cuda_loaded(void)
{
	const struct cf_cuda *found =
		atomic_load_explicit(&published, memory_order_acquire);
	uint64_t now;

	if (found)
		return atomic_load_explicit(&exiting, memory_order_relaxed) ?
			       NULL :
			       found;
	now = coarse_ns();
	if (now - atomic_load_explicit(&looked_ns, memory_order_relaxed) <
	    LOOK_AGAIN_NS)
		return NULL;
	atomic_store_explicit(&looked_ns, now, memory_order_relaxed);
	return cf_cuda_look_again();
}

const struct cf_cuda *cf_cuda_entered(void)
{
	return atomic_load_explicit(&published, memory_order_acquire);
}

const struct cf_cuda *cf_cuda_open(void)
{
	const struct cf_cuda *cuda = cf_cuda_look_again();

	if (!cuda && !atomic_load_explicit(&exiting, memory_order_relaxed))
		cuda = look(0);
	if (cuda && cuda->init(0) != CF_CU_SUCCESS)
		return NULL;
	return cuda;
}

CUresult cf_cuda_attribute(int ordinal, int attribute, int *value)
{
	const struct cf_cuda *cuda = cf_cuda_loaded();
	CUdevice dev;
	CUresult res;

	*value = 0;
	if (!cuda || !cuda->device_get_attribute)
		return CF_CU_INVALID_VALUE;
	res = cuda->device_get(&dev, ordinal);
	return res == CF_CU_SUCCESS ?
		       cuda->device_get_attribute(value, attribute, dev) :
		       res;
}

const char *cf_cuda_error_name(int result)
{
	const struct cf_cuda *cuda = cf_cuda_loaded();
	const char *name = NULL;

	if (cuda && cuda->get_error_name)
		cuda->get_error_name((CUresult)result, &name);
	return name ? name : "unknown";
}

void cf_cuda_fork_prepare(void)
{
	pthread_mutex_lock(&load_lock);
}

void cf_cuda_fork_release(void)
{
	pthread_mutex_unlock(&load_lock);
}

void cf_cuda_replace(const struct cf_cuda *replacement)
{
	atomic_store_explicit(&published, replacement, memory_order_release);
	atomic_store_explicit(&looked_ns, 0, memory_order_relaxed);
}

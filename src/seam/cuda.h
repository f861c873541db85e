// SPDX-License-Identifier: Apache-2.0
/*
 * cuda - every driver call the library makes, as one replaceable table.
 *
 * libcuda.so.1 is a guest: it is opened at run time or not at all. Optional
 * calls are NULL where the driver lacks them; the rest are there whenever
 * the table is. A CUresult travels through our int results as CF_ECUDA().
 */
#ifndef CF_SEAM_CUDA_H
#define CF_SEAM_CUDA_H

#include <stdbool.h>
#include "seam/cuda_abi.h"

struct cf_cuda {
	CUresult (*init)(unsigned flags);
	CUresult (*device_get_count)(int *count);
	CUresult (*device_get)(CUdevice *dev, int ordinal);
	CUresult (*device_get_uuid)(CUuuid *uuid, CUdevice dev);
	CUresult (*device_get_pci_bus_id)(char *id, int len, CUdevice dev);
	CUresult (*primary_ctx_retain)(CUcontext *ctx, CUdevice dev);
	CUresult (*primary_ctx_release)(CUdevice dev);
	CUresult (*ctx_push)(CUcontext ctx);
	CUresult (*ctx_pop)(CUcontext *ctx);
	CUresult (*ctx_get_current)(CUcontext *ctx); /* NULL: none is */
	CUresult (*ctx_get_api_version)(CUcontext ctx, unsigned *version);
	CUresult (*pointer_get_attributes)(unsigned nr, int *attributes,
					   void **data, CUdeviceptr ptr);
	CUresult (*mem_host_register)(void *mem, size_t size, unsigned flags);
	CUresult (*mem_host_unregister)(void *mem);
	CUresult (*memcpy_htod_async)(CUdeviceptr dst, const void *src,
				      size_t size, CUstream stream);
	CUresult (*memcpy_dtoh_async)(void *dst, CUdeviceptr src, size_t size,
				      CUstream stream);
	CUresult (*stream_create)(CUstream *stream, unsigned flags);
	CUresult (*stream_destroy)(CUstream stream);
	CUresult (*stream_query)(CUstream stream);
	CUresult (*stream_synchronize)(CUstream stream);
	CUresult (*stream_wait_event)(CUstream stream, CUevent event,
				      unsigned flags);
	CUresult (*event_create)(CUevent *event, unsigned flags);
	CUresult (*event_destroy)(CUevent event);
	CUresult (*event_record)(CUevent event, CUstream stream);
	CUresult (*event_query)(CUevent event);
	CUresult (*event_synchronize)(CUevent event);
	/* optional */
	CUresult (*get_error_name)(CUresult res, const char **name);
	CUresult (*ctx_get_id)(CUcontext ctx, unsigned long long *id);
	CUresult (*ctx_get_device)(CUdevice *dev);
	CUresult (*ctx_record_event)(CUcontext ctx, CUevent event);
	CUresult (*exchange_capture_mode)(int *mode);
	CUresult (*stream_create_with_priority)(CUstream *stream,
						unsigned flags, int priority);
	CUresult (*memset_d8_async)(CUdeviceptr dst, unsigned char byte,
				    size_t size, CUstream stream);
	CUresult (*memcpy_dtod_async)(CUdeviceptr dst, CUdeviceptr src,
				      size_t size, CUstream stream);
	CUresult (*memcpy_batch_async)(CUdeviceptr *dsts, CUdeviceptr *srcs,
				       size_t *sizes, size_t count,
				       CUmemcpyAttributes *attrs,
				       size_t *attr_idxs, size_t nr_attrs,
				       size_t *fail_idx, CUstream stream);
	CUresult (*memcpy_2d_async)(const CUDA_MEMCPY2D *copy, CUstream stream);
	CUresult (*mem_alloc)(CUdeviceptr *ptr, size_t size);
	CUresult (*mem_free)(CUdeviceptr ptr);
	CUresult (*module_load_data)(CUmodule *module, const void *image);
	CUresult (*module_unload)(CUmodule module);
	CUresult (*module_get_function)(CUfunction *function, CUmodule module,
					const char *name);
	CUresult (*launch_kernel)(CUfunction function, unsigned grid_x,
				  unsigned grid_y, unsigned grid_z,
				  unsigned block_x, unsigned block_y,
				  unsigned block_z, unsigned shared_bytes,
				  CUstream stream, void **params, void **extra);
	CUresult (*launch_kernel_ex)(const CUlaunchConfig *config,
				     CUfunction function, void **params,
				     void **extra);
	CUresult (*ctx_get_stream_priority_range)(int *least, int *greatest);
	/* optional: an address by which the CPU reaches device memory */
	CUresult (*driver_get_version)(int *version);
	CUresult (*device_get_attribute)(int *value, int attribute,
					 CUdevice dev);
	CUresult (*mem_get_handle_for_range)(void *handle, CUdeviceptr ptr,
					     size_t size, int type,
					     unsigned long long flags);
	/* optional: addresses and memory apart, and memory as a descriptor */
	CUresult (*mem_create)(CUmemGenericAllocationHandle *handle,
			       size_t size, const CUmemAllocationProp *prop,
			       unsigned long long flags);
	CUresult (*mem_release)(CUmemGenericAllocationHandle handle);
	CUresult (*mem_address_reserve)(CUdeviceptr *ptr, size_t size,
					size_t alignment, CUdeviceptr addr,
					unsigned long long flags);
	CUresult (*mem_address_free)(CUdeviceptr ptr, size_t size);
	CUresult (*mem_map)(CUdeviceptr ptr, size_t size, size_t offset,
			    CUmemGenericAllocationHandle handle,
			    unsigned long long flags);
	CUresult (*mem_unmap)(CUdeviceptr ptr, size_t size);
	CUresult (*mem_set_access)(CUdeviceptr ptr, size_t size,
				   const CUmemAccessDesc *desc, size_t count);
	CUresult (*mem_export_to_handle)(void *out,
					 CUmemGenericAllocationHandle handle,
					 int type, unsigned long long flags);
	CUresult (*mem_import_from_handle)(CUmemGenericAllocationHandle *handle,
					   void *os_handle, int type);
	/* optional: makes the GPU see what came over the bus */
	CUresult (*flush_writes)(int target, int scope);
	/* optional: work in the application's streams */
	CUresult (*stream_get_ctx)(CUstream stream, CUcontext *ctx);
	CUresult (*stream_get_id)(CUstream stream, unsigned long long *id);
	CUresult (*launch_host_func)(CUstream stream, CUhostFn fn, void *arg);
	CUresult (*stream_wait_value32)(CUstream stream, CUdeviceptr addr,
					uint32_t value, unsigned flags);
	CUresult (*stream_write_value32)(CUstream stream, CUdeviceptr addr,
					 uint32_t value, unsigned flags);
	CUresult (*stream_batch_mem_op)(CUstream stream, unsigned nr,
					CUstreamBatchMemOpParams *ops,
					unsigned flags);
	CUresult (*mem_host_get_device_pointer)(CUdeviceptr *dev, void *host,
						unsigned flags);
	CUresult (*stream_is_capturing)(CUstream stream, int *status);
	/* graph, deps and nr_deps may be NULL: not asked for */
	CUresult (*stream_get_capture_info)(CUstream stream, int *status,
					    uint64_t *id, CUgraph *graph,
					    void ***deps, size_t *nr_deps);
	CUresult (*user_object_create)(CUuserObject *object, void *ptr,
				       CUhostFn destroy, unsigned refs,
				       unsigned flags);
	CUresult (*user_object_release)(CUuserObject object, unsigned count);
	CUresult (*graph_retain_user_object)(CUgraph graph, CUuserObject object,
					     unsigned count, unsigned flags);
};

#define CF_ECUDA_BASE 0x10000
#define CF_ECUDA(res) (-(CF_ECUDA_BASE + (int)(res)))

static inline bool cf_is_cuda_error(int code)
{
	return code <= -CF_ECUDA_BASE;
}

/* The CUresult inside a CF_ECUDA code. */
static inline int cf_cuda_result(int code)
{
	return -code - CF_ECUDA_BASE;
}

/* 0, or the failure as one of our codes. */
static inline int cf_cuda_code(CUresult res)
{
	return res == CF_CU_SUCCESS ? 0 : CF_ECUDA(res);
}

/*
 * The table if the process has a driver in it, else NULL. Never loads it:
 * if libcuda was not opened there is no device memory to ask about, and a
 * program that moves host memory should not pay for a GPU.
 */
const struct cf_cuda *cf_cuda_loaded(void);

/*
 * For a caller that enters a context or is in one: answers the table also while
 * the process ends, when the driver itself answers CUDA_ERROR_DEINITIALIZED.
 */
const struct cf_cuda *cf_cuda_entered(void);

/* As cf_cuda_loaded, but searches again instead of trusting a recent "no". */
const struct cf_cuda *cf_cuda_look_again(void);

/* Opens the driver if it must and initialises it; NULL if there is none. */
const struct cf_cuda *cf_cuda_open(void);

/*
 * *value: an attribute of a GPU, 0 after a failure. CUDA_ERROR_INVALID_VALUE
 * where the driver knows no such attribute, or none at all.
 */
CUresult cf_cuda_attribute(int ordinal, int attribute, int *value);

/* The driver's name of a result, or "unknown". */
const char *cf_cuda_error_name(int result);

/* The same for the result inside a code; "" for a code that has none. */
static inline const char *cf_cuda_name_in(int code)
{
	return cf_is_cuda_error(code) ?
		       cf_cuda_error_name(cf_cuda_result(code)) :
		       "";
}

/* fork: no thread may be in the middle of filling the table. */
void cf_cuda_fork_prepare(void);
void cf_cuda_fork_release(void); /* in parent and child */

/* Tests: use this table from now on (NULL: forget the driver's). */
void cf_cuda_replace(const struct cf_cuda *table);

#endif

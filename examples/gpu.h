// SPDX-License-Identifier: Apache-2.0
/*
 * gpu.h - the CUDA driver calls of the examples, so that they build where no
 * toolkit is. A program of yours includes <cuda.h> instead.
 */
#ifndef EXAMPLES_GPU_H
#define EXAMPLES_GPU_H

#include <cufile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef CUFILE_HAVE_CUDA_H
typedef struct CUctx_st *CUcontext;
typedef struct CUevent_st *CUevent;
typedef unsigned long long CUdeviceptr;
#define cuMemAlloc cuMemAlloc_v2
#define cuMemFree cuMemFree_v2
#define cuMemcpyDtoH cuMemcpyDtoH_v2
#define cuMemcpyDtoHAsync cuMemcpyDtoHAsync_v2
#define cuMemsetD8 cuMemsetD8_v2
#define cuStreamDestroy cuStreamDestroy_v2
#define cuEventDestroy cuEventDestroy_v2
#define CU_STREAM_NON_BLOCKING 1
#define CU_EVENT_DISABLE_TIMING 2
CUresult cuInit(unsigned flags);
CUresult cuDevicePrimaryCtxRetain(CUcontext *ctx, int dev);
CUresult cuCtxSetCurrent(CUcontext ctx);
CUresult cuMemAlloc(CUdeviceptr *mem, size_t size);
CUresult cuMemFree(CUdeviceptr mem);
CUresult cuMemHostAlloc(void **mem, size_t size, unsigned flags);
CUresult cuMemFreeHost(void *mem);
CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t size);
CUresult cuMemsetD8(CUdeviceptr mem, unsigned char byte, size_t size);
CUresult cuMemsetD8Async(CUdeviceptr mem, unsigned char byte, size_t size,
			 CUstream stream);
CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t size,
			   CUstream stream);
CUresult cuStreamCreate(CUstream *stream, unsigned flags);
CUresult cuStreamDestroy(CUstream stream);
CUresult cuStreamSynchronize(CUstream stream);
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags);
CUresult cuEventCreate(CUevent *event, unsigned flags);
CUresult cuEventDestroy(CUevent event);
CUresult cuEventRecord(CUevent event, CUstream stream);
CUresult cuEventSynchronize(CUevent event);
#endif

static inline void gpu(CUresult result, const char *what)
{
	if (result == CUDA_SUCCESS)
		return;
	fprintf(stderr, "%s: CUDA answers %d\n", what, (int)result);
	exit(1);
}
#define GPU(call) gpu(call, #call)

static inline void file_io(CUfileError_t error, const char *what)
{
	if (error.err == CU_FILE_SUCCESS)
		return;
	fprintf(stderr, "%s: %s (%d, CUDA %d)\n", what,
		cufileop_status_error(error.err), (int)error.err,
		(int)error.cu_err);
	exit(1);
}
#define CUFILE(call) file_io(call, #call)

/* What a request that failed says: errno has a POSIX value or a cuFile code. */
static inline const char *io_text(long code)
{
	return IS_CUFILE_ERR(code) ? CUFILE_ERRSTR(code) : strerror((int)code);
}

/* GPU 0 is current on this thread from here on. */
static inline void gpu_begin(void)
{
	CUcontext ctx;

	GPU(cuInit(0));
	GPU(cuDevicePrimaryCtxRetain(&ctx, 0));
	GPU(cuCtxSetCurrent(ctx));
}

/* An open file, registered. */
static inline CUfileHandle_t file_handle(int fd)
{
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD,
				.handle.fd = fd };
	CUfileHandle_t handle;

	CUFILE(cuFileHandleRegister(&handle, &descr));
	return handle;
}

#endif

// SPDX-License-Identifier: Apache-2.0
/* rows - see rows.h. */
#include "rows.h"

#include <errno.h>
#include "harness.h"

const struct os_row os_rows[] = {
	{ FAULT_OPEN, OS_ROW_SAME, 0, { EMFILE, ENFILE, ENOENT, EACCES } },
	{ FAULT_CLOSE, 0, 0, { EIO, EINTR, EDQUOT } },
	{ FAULT_READ, 0, 0, { EIO, EISDIR } },
	{ FAULT_WRITE, 0, 0, { ENOSPC, EIO, EPIPE } },
	{ FAULT_PREAD,
	  OS_ROW_SAME,
	  0,
	  { EIO, EAGAIN, ENOMEM, ESTALE, ENODATA } },
	{ FAULT_PWRITE,
	  OS_ROW_SAME,
	  0,
	  { ENOSPC, EDQUOT, EFBIG, EIO, EAGAIN, EROFS } },
	{ FAULT_FSTAT, EBADF, 0, { EIO, EOVERFLOW } },
	{ FAULT_STATX, EINVAL, CU_FILE_IO_ERROR, { EIO } },
	{ FAULT_STATX, EINVAL, CU_FILE_INTERNAL_ERROR, { ESTALE, ENOSYS } },
	{ FAULT_STATX, EINVAL, CU_FILE_PERMISSION_DENIED, { EACCES } },
	{ FAULT_FSTATFS, 0, 0, { EIO, ENOSYS, EINTR } },
	{ FAULT_GET_FLAGS, EINVAL, CU_FILE_INVALID_VALUE, { EBADF } },
	{ FAULT_DUP_ABOVE, 0, 0, { EMFILE, EINVAL } },
	{ FAULT_FD_TABLE, 0, 0, { ENOENT, EMFILE } },
	{ FAULT_MAP_ANON, ENOMEM, 0, { ENOMEM } },
	{ FAULT_MAP_SHARED, 0, 0, { ENOMEM, EACCES } },
	{ FAULT_MAP_FILE, 0, 0, { ENODEV, ENOMEM, EACCES } },
	{ FAULT_MAP_NOTHING, 0, 0, { ENOMEM } },
	{ FAULT_FORBID, 0, 0, { ENOMEM, EACCES } },
	{ FAULT_MADVISE, 0, 0, { EINVAL, ENOMEM, EAGAIN } },
	{ FAULT_UNMAP, 0, 0, { EINVAL, ENOMEM } },
	{ FAULT_CACHESTAT, 0, 0, { ENOSYS, EBADF, EOPNOTSUPP } },
	{ FAULT_GET_AFFINITY, 0, 0, { EINVAL, ESRCH } },
	{ FAULT_SET_AFFINITY, 0, 0, { EPERM, EINVAL } },
	{ FAULT_SET_TIMER_SLACK, 0, 0, { EPERM, EINVAL } },
	{ FAULT_GET_DENTS, 0, 0, { EIO, ENOENT } },
	{ FAULT_PIPE, 0, 0, { EMFILE, ENFILE } },
	{ FAULT_SPLICE_PAGES, 0, 0, { EFAULT, EAGAIN, EINVAL } },
	{ FAULT_MEMFD, 0, 0, { EMFILE, ENOSYS, ENOMEM } },
	{ FAULT_SET_MODE, 0, 0, { EPERM, EIO } },
	{ FAULT_RESIZE, 0, 0, { ENOSPC, EPERM } },
	{ FAULT_SEAL, 0, 0, { EINVAL, EPERM, EBUSY } },
	{ FAULT_MAP_FILE_AT, 0, 0, { ENOMEM, EPERM } },
	{ FAULT_MAP_ANON_AT, 0, 0, { ENOMEM } },
	{ FAULT_CLOCK, 0, 0, { EINVAL, EPERM } },
	{ FAULT_GETENV, 0, 0, { ENOENT } },
	{ FAULT_ENVIRONMENT, 0, 0, { ENOENT } },
	{ FAULT_RING_MAKE, 0, 0, { EPERM, EMFILE, ENOSYS, ENOMEM } },
	{ FAULT_RING_SUBMIT, 0, 0, { EBUSY, EAGAIN, EBADF } },
	{ FAULT_RING_WAIT, 0, 0, { EBADF } },
	{ FAULT_RING_DONE, EIO, 0, { EIO, EAGAIN } },
};
const size_t nr_os_rows = sizeof(os_rows) / sizeof(os_rows[0]);

int os_row_err(const struct os_row *row, unsigned turn)
{
	unsigned nr = 0;

	while (nr < OS_ROW_ERRS && row->errs[nr])
		nr++;
	return row->errs[turn % nr];
}

#define IN_CONTEXT "stream event host_register mem module"

const struct cuda_row cuda_rows[] = {
	{ "cuInit", NULL },
	{ "cuDeviceGetCount", NULL },
	{ "cuDeviceGet", NULL },
	{ "cuDeviceGetName", NULL },
	{ "cuDeviceGetUuid", NULL },
	{ "cuDeviceGetUuid_v2", NULL },
	{ "cuDeviceGetPCIBusId", NULL },
	{ "cuDevicePrimaryCtxRetain", NULL },
	{ "cuDevicePrimaryCtxRelease_v2", "primary_retain" },
	/* a context that cannot be entered or named may be gone, and all in it
	 */
	{ "cuCtxPushCurrent_v2", IN_CONTEXT },
	{ "cuCtxPopCurrent_v2", "current" },
	{ "cuPointerGetAttributes", NULL },
	{ "cuMemHostRegister_v2", NULL },
	{ "cuMemHostUnregister", "host_register" },
	{ "cuMemcpyHtoDAsync_v2", NULL },
	{ "cuMemcpy2DAsync_v2", NULL },
	{ "cuMemcpyDtoHAsync_v2", NULL },
	{ "cuStreamCreate", NULL },
	{ "cuStreamDestroy_v2", "stream" },
	{ "cuStreamQuery", NULL },
	{ "cuStreamSynchronize", NULL },
	{ "cuStreamWaitEvent", NULL },
	{ "cuEventCreate", NULL },
	{ "cuEventDestroy_v2", "event" },
	{ "cuEventRecord", NULL },
	{ "cuEventQuery", NULL },
	{ "cuEventSynchronize", NULL },
	{ "cuGetErrorName", NULL },
	{ "cuCtxGetId", IN_CONTEXT " primary_retain" },
	{ "cuCtxRecordEvent", NULL },
	{ "cuCtxGetApiVersion", IN_CONTEXT " primary_retain" },
	{ "cuThreadExchangeStreamCaptureMode", NULL },
	{ "cuDriverGetVersion", NULL },
	{ "cuDeviceGetAttribute", NULL },
	{ "cuMemGetHandleForAddressRange", NULL },
	{ "cuFlushGPUDirectRDMAWrites", NULL },
	{ "cuMemAlloc_v2", NULL },
	{ "cuMemFree_v2", "mem" },
	{ "cuStreamGetCtx", NULL },
	{ "cuStreamGetCaptureInfo_v2", NULL },
	{ "cuMemHostGetDevicePointer_v2", NULL },
	{ "cuLaunchHostFunc", NULL },
	{ "cuStreamWaitValue32_v2", NULL },
	{ "cuStreamBatchMemOp_v2", NULL },
	{ "cuModuleLoadData", NULL },
	{ "cuModuleGetFunction", NULL },
	{ "cuModuleUnload", "module" },
	{ "cuLaunchKernel", NULL },
	{ "cuLaunchKernelEx", NULL },
	{ "cuCtxGetStreamPriorityRange", NULL },
};
const size_t nr_cuda_rows = sizeof(cuda_rows) / sizeof(cuda_rows[0]);

/* CUDA_ERROR_OPERATING_SYSTEM, which the library has no name for. */
#define OPERATING_SYSTEM 304

const int cuda_results[CUDA_RESULTS] = {
	CF_CU_OUT_OF_MEMORY, CF_CU_UNKNOWN,	  CF_CU_INVALID_VALUE,
	CF_CU_NOT_SUPPORTED, CF_CU_LAUNCH_FAILED, OPERATING_SYSTEM,
};

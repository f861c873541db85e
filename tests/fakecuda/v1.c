// SPDX-License-Identifier: Apache-2.0
/*
 * v1 - base names whose call has a newer version.
 *
 * Some are the same call under an old name. The others have another ABI, 32-bit
 * pointers mostly: whoever ends up here took the wrong symbol, which on a real
 * driver corrupts memory; here it is a complaint and an error.
 */
#include "internal.h"

#undef cuDeviceTotalMem
#undef cuDeviceGetUuid
#undef cuDevicePrimaryCtxRelease
#undef cuDevicePrimaryCtxReset
#undef cuDevicePrimaryCtxSetFlags
#undef cuCtxDestroy
#undef cuCtxPushCurrent
#undef cuCtxPopCurrent
#undef cuMemGetInfo
#undef cuMemAlloc
#undef cuMemFree
#undef cuMemGetAddressRange
#undef cuMemAllocHost
#undef cuMemHostGetDevicePointer
#undef cuMemHostRegister
#undef cuMemcpyHtoD
#undef cuMemcpyDtoH
#undef cuMemcpyDtoD
#undef cuMemcpyHtoDAsync
#undef cuMemcpyDtoHAsync
#undef cuMemcpyDtoDAsync
#undef cuMemcpy2DAsync
#undef cuMemsetD8
#undef cuMemsetD32
#undef cuStreamDestroy
#undef cuStreamWaitValue32
#undef cuStreamWriteValue32
#undef cuStreamWaitValue64
#undef cuStreamWriteValue64
#undef cuStreamBeginCapture
#undef cuEventDestroy
#undef cuEventElapsedTime
#undef cuGetProcAddress

#pragma GCC visibility push(default)

/* --- the same call under its old name */

#define SAME(name, newer, params, args) \
	CUresult name params; \
	CUresult name params \
	{ \
		return newer args; \
	}

SAME(cuDeviceGetUuid, cuDeviceGetUuid_v2, (CUuuid * u, CUdevice d), (u, d))
SAME(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, (CUdevice d), (d))
SAME(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2, (CUdevice d), (d))
SAME(cuDevicePrimaryCtxSetFlags, cuDevicePrimaryCtxSetFlags_v2,
     (CUdevice d, unsigned int f), (d, f))
SAME(cuCtxCreate, cuCtxCreate_v2, (CUcontext * c, unsigned int f, CUdevice d),
     (c, f, d))
SAME(cuCtxDestroy, cuCtxDestroy_v2, (CUcontext c), (c))
SAME(cuCtxPushCurrent, cuCtxPushCurrent_v2, (CUcontext c), (c))
SAME(cuCtxPopCurrent, cuCtxPopCurrent_v2, (CUcontext * c), (c))
SAME(cuMemHostRegister, cuMemHostRegister_v2,
     (void *p, size_t n, unsigned int f), (p, n, f))
SAME(cuStreamDestroy, cuStreamDestroy_v2, (CUstream s), (s))
SAME(cuEventDestroy, cuEventDestroy_v2, (CUevent e), (e))
SAME(cuEventElapsedTime, cuEventElapsedTime_v2,
     (float *ms, CUevent a, CUevent b), (ms, a, b))
SAME(cuGetProcAddress, cuGetProcAddress_v2,
     (const char *n, void **fn, int v, uint64_t f), (n, fn, v, f, NULL))

/* --- another call altogether */

#define WRONG(name) \
	CUresult name(void); \
	CUresult name(void) \
	{ \
		FC_ENTER(FC_NORMAL); \
		fc_complain("%s: the old ABI, want a _v2", __func__); \
		return (int)CF_CU_NOT_SUPPORTED; \
	}

WRONG(cuDeviceTotalMem)
WRONG(cuMemGetInfo)
WRONG(cuMemAlloc)
WRONG(cuMemFree)
WRONG(cuMemGetAddressRange)
WRONG(cuMemAllocHost)
WRONG(cuMemHostGetDevicePointer)
WRONG(cuMemcpyHtoD)
WRONG(cuMemcpyDtoH)
WRONG(cuMemcpyDtoD)
WRONG(cuMemcpyHtoDAsync)
WRONG(cuMemcpyDtoHAsync)
WRONG(cuMemcpyDtoDAsync)
WRONG(cuMemcpy2DAsync)
WRONG(cuMemsetD8)
WRONG(cuMemsetD32)
WRONG(cuStreamWaitValue32)
WRONG(cuStreamWriteValue32)
WRONG(cuStreamWaitValue64)
WRONG(cuStreamWriteValue64)
WRONG(cuStreamBeginCapture)

#pragma GCC visibility pop

// SPDX-License-Identifier: Apache-2.0
/*
 * cuda_layout - sizes and offsets of the CUDA types we have stand-ins for.
 *
 * Expanded once over the stand-ins and once over the real types.
 */
#ifndef ABI_CUDA_LAYOUT_H
#define ABI_CUDA_LAYOUT_H

#include <stddef.h>

struct measure {
	const char *what;
	size_t number;
};

extern const struct measure standin_types[];

#define SIZE(type) { "sizeof " #type, sizeof(type) },
#define AT(type, field) { #type "." #field, offsetof(type, field) },

/* clang-format off */
#define MEASURES \
	SIZE(CUresult) \
	SIZE(CUstream) \
	SIZE(CUdevice) \
	SIZE(CUdeviceptr) \
	SIZE(CUcontext) \
	SIZE(CUevent) \
	SIZE(CUmodule) \
	SIZE(CUfunction) \
	SIZE(CUgraph) \
	SIZE(CUgraphExec) \
	SIZE(CUmemoryPool) \
	SIZE(CUhostFn) \
	SIZE(CUpointer_attribute) \
	SIZE(CUdevice_attribute) \
	SIZE(CUstreamCaptureMode) \
	SIZE(CUstreamCaptureStatus) \
	SIZE(CUmemGenericAllocationHandle) \
	SIZE(CUuuid) \
	AT(CUuuid, bytes) \
	SIZE(CUmemLocation) \
	AT(CUmemLocation, type) \
	AT(CUmemLocation, id) \
	SIZE(CUmemAllocationProp) \
	AT(CUmemAllocationProp, type) \
	AT(CUmemAllocationProp, requestedHandleTypes) \
	AT(CUmemAllocationProp, location) \
	AT(CUmemAllocationProp, win32HandleMetaData) \
	AT(CUmemAllocationProp, allocFlags.compressionType) \
	AT(CUmemAllocationProp, allocFlags.gpuDirectRDMACapable) \
	AT(CUmemAllocationProp, allocFlags.usage) \
	SIZE(CUmemAccessDesc) \
	AT(CUmemAccessDesc, location) \
	AT(CUmemAccessDesc, flags) \
	SIZE(CUmemPoolProps) \
	AT(CUmemPoolProps, allocType) \
	AT(CUmemPoolProps, handleTypes) \
	AT(CUmemPoolProps, location) \
	AT(CUmemPoolProps, win32SecurityAttributes) \
	AT(CUmemPoolProps, maxSize) \
	AT(CUmemPoolProps, usage) \
	SIZE(CUmemcpyAttributes) \
	AT(CUmemcpyAttributes, srcAccessOrder) \
	AT(CUmemcpyAttributes, srcLocHint) \
	AT(CUmemcpyAttributes, dstLocHint) \
	AT(CUmemcpyAttributes, flags) \
	SIZE(CUlaunchAttributeID) \
	SIZE(CUlaunchAttributeValue) \
	SIZE(CUlaunchAttribute) \
	AT(CUlaunchAttribute, value) \
	AT(CUlaunchAttribute, value.priority) \
	AT(CUlaunchAttribute, value.programmaticStreamSerializationAllowed) \
	SIZE(CUDA_MEMCPY2D) \
	AT(CUDA_MEMCPY2D, srcMemoryType) \
	AT(CUDA_MEMCPY2D, srcHost) \
	AT(CUDA_MEMCPY2D, srcPitch) \
	AT(CUDA_MEMCPY2D, dstMemoryType) \
	AT(CUDA_MEMCPY2D, dstDevice) \
	AT(CUDA_MEMCPY2D, dstPitch) \
	AT(CUDA_MEMCPY2D, WidthInBytes) \
	AT(CUDA_MEMCPY2D, Height) \
	SIZE(CUlaunchConfig) \
	AT(CUlaunchConfig, gridDimX) \
	AT(CUlaunchConfig, blockDimX) \
	AT(CUlaunchConfig, sharedMemBytes) \
	AT(CUlaunchConfig, hStream) \
	AT(CUlaunchConfig, attrs) \
	AT(CUlaunchConfig, numAttrs) \
	SIZE(CUuserObject) \
	SIZE(CUstreamBatchMemOpParams) \
	AT(CUstreamBatchMemOpParams, waitValue.address) \
	AT(CUstreamBatchMemOpParams, waitValue.value) \
	AT(CUstreamBatchMemOpParams, waitValue.flags) \
	AT(CUstreamBatchMemOpParams, writeValue.address) \
	AT(CUstreamBatchMemOpParams, writeValue.value) \
	AT(CUstreamBatchMemOpParams, writeValue.flags)
/* clang-format on */

#endif

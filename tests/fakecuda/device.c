// SPDX-License-Identifier: Apache-2.0
/*
 * device - the GPUs as such, and what needs no context: versions, error
 * texts, entry points by name.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* 0, or what a call with a bad ordinal answers. */
int fc_device(CUdevice dev)
{
	return dev >= 0 && dev < fc.nr_gpus ? 0 : CF_CU_INVALID_DEVICE;
}

CUresult cuDriverGetVersion(int *version)
{
	FC_ENTER(FC_BEFORE_INIT);
	if (!version)
		return (int)CF_CU_INVALID_VALUE;
	*version = fc.version;
	return 0;
}

CUresult cuDeviceGetCount(int *count)
{
	FC_ENTER(FC_PASS);
	if (!count)
		return (int)CF_CU_INVALID_VALUE;
	*count = fc.nr_gpus;
	return 0;
}

CUresult cuDeviceGet(CUdevice *dev, int ordinal)
{
	FC_ENTER(FC_PASS);
	if (!dev)
		return (int)CF_CU_INVALID_VALUE;
	if (fc_device(ordinal))
		return (int)CF_CU_INVALID_DEVICE;
	*dev = ordinal;
	return 0;
}

CUresult cuDeviceGetName(char *name, int len, CUdevice dev)
{
	FC_ENTER(FC_PASS);
	if (!name || len <= 0)
		return (int)CF_CU_INVALID_VALUE;
	if (fc_device(dev))
		return (int)CF_CU_INVALID_DEVICE;
	snprintf(name, (size_t)len, "Fake GPU %d", dev);
	return 0;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev)
{
	FC_ENTER(FC_PASS);
	if (!uuid)
		return (int)CF_CU_INVALID_VALUE;
	if (fc_device(dev))
		return (int)CF_CU_INVALID_DEVICE;
	memcpy(uuid->bytes, "fakecuda-device", 15);
	uuid->bytes[15] = (char)dev;
	return 0;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
	FC_ENTER(FC_NORMAL);
	if (!bytes)
		return (int)CF_CU_INVALID_VALUE;
	if (fc_device(dev))
		return (int)CF_CU_INVALID_DEVICE;
	*bytes = fc.gpu_mem;
	return 0;
}

CUresult cuDeviceGetPCIBusId(char *id, int len, CUdevice dev)
{
	FC_ENTER(FC_PASS);
	if (!id || len < 13)
		return (int)CF_CU_INVALID_VALUE;
	if (fc_device(dev))
		return (int)CF_CU_INVALID_DEVICE;
	snprintf(id, (size_t)len, "0000:%02X:00.0", dev + 1);
	return 0;
}

CUresult cuDeviceGetByPCIBusId(CUdevice *dev, const char *id)
{
	unsigned int domain = 0, bus = 0;

	FC_ENTER(FC_PASS);
	if (!dev || !id || sscanf(id, "%x:%x:", &domain, &bus) != 2)
		return (int)CF_CU_INVALID_VALUE;
	if (domain || bus == 0 || fc_device((int)bus - 1))
		return (int)CF_CU_INVALID_DEVICE;
	*dev = (int)bus - 1;
	return 0;
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice dev, CUdevice peer)
{
	FC_ENTER(FC_NORMAL);
	if (!can)
		return (int)CF_CU_INVALID_VALUE;
	if (fc_device(dev) || fc_device(peer))
		return (int)CF_CU_INVALID_DEVICE;
	*can = dev != peer;
	return 0;
}

/* Attribute numbers are those of the driver's interface. */
static int attribute(int attr, int dev)
{
	switch (attr) {
	case 1: /* threads per block */
	case 2: /* block dimensions */
	case 3:
		return 1024;
	case 4:
		return 64;
	case 5: /* grid dimensions */
		return 0x7fffffff;
	case 6:
	case 7:
		return 65535;
	case 10: /* warp size */
		return 32;
	case 13: /* clock, kHz */
		return 1980000;
	case 15:  /* copy and compute overlap */
	case 19:  /* can map host memory */
	case 31:  /* concurrent kernels */
	case 41:  /* unified addressing */
	case 83:  /* managed memory */
	case 89:  /* concurrent managed access */
	case 91:  /* host pointer usable for registered memory */
	case 99:  /* host register */
	case 102: /* virtual memory management */
	case 103: /* file descriptor handles */
	case 110: /* GPUDirect RDMA with VMM */
	case 113: /* read-only host register */
	case 115: /* memory pools */
	case 116: /* GPUDirect RDMA */
	case 122: /* 64-bit stream memory operations */
	case 123: /* wait value NOR */
		return 1;
	case 101: /* the CPU reaches managed memory on the device */
		return fc.coherent;
	case 124: /* dma-buf */
		return !fc.no_dmabuf;
	case 16: /* multiprocessors */
		return 132;
	case 33: /* PCI bus */
		return dev + 1;
	case 39: /* threads per multiprocessor */
		return 2048;
	case 40: /* copy engines */
		return 3;
	case CF_CU_DEVICE_COMPUTE_MAJOR:
		return fc.compute / 10;
	case CF_CU_DEVICE_COMPUTE_MINOR:
		return fc.compute % 10;
	case CF_CU_DEVICE_FLUSH_OPTIONS:
		return atomic_load(&fc.flush_options);
	case CF_CU_DEVICE_WRITES_ORDERING:
		return atomic_load(&fc.writes_ordering);
	case 134: /* host NUMA node */
		return 0;
	default: /* everything else is a capability that we lack */
		return 0;
	}
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attr, CUdevice dev)
{
	FC_ENTER(FC_PASS);
	if (!value || attr <= 0 || attr > 200)
		return (int)CF_CU_INVALID_VALUE;
	if (fc_device(dev))
		return (int)CF_CU_INVALID_DEVICE;
	*value = attribute(attr, dev);
	return 0;
}

/* --- errors */

struct error_text {
	int result;
	const char *name;
	const char *text;
};
static const struct error_text error_texts[] = {
	{ 0, "CUDA_SUCCESS", "no error" },
	{ 1, "CUDA_ERROR_INVALID_VALUE", "invalid argument" },
	{ 2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory" },
	{ 3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error" },
	{ 4, "CUDA_ERROR_DEINITIALIZED", "driver shutting down" },
	{ 100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected" },
	{ 101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal" },
	{ 200, "CUDA_ERROR_INVALID_IMAGE", "kernel image is invalid" },
	{ 201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context" },
	{ 218, "CUDA_ERROR_INVALID_PTX", "PTX that cannot be compiled" },
	{ 400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle" },
	{ 401, "CUDA_ERROR_ILLEGAL_STATE", "illegal state" },
	{ 500, "CUDA_ERROR_NOT_FOUND", "named symbol not found" },
	{ 600, "CUDA_ERROR_NOT_READY", "device not ready" },
	{ 700, "CUDA_ERROR_ILLEGAL_ADDRESS", "illegal memory access" },
	{ 709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed" },
	{ 712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
	  "memory is already registered" },
	{ 713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
	  "memory is not registered" },
	{ 719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure" },
	{ 800, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted" },
	{ 801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported" },
	{ 900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
	  "not permitted when a stream is capturing" },
	{ 901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
	  "an earlier error invalidated the capture" },
	{ 903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
	  "not the stream that began the capture" },
	{ 904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED",
	  "a forked stream was not joined" },
	{ 905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION",
	  "dependency on work outside of the capture" },
	{ 906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
	  "implicit dependency on a capturing stream" },
	{ 907, "CUDA_ERROR_CAPTURED_EVENT", "event was recorded in a capture" },
	{ 908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD",
	  "another thread began the capture" },
	{ 999, "CUDA_ERROR_UNKNOWN", "unknown error" },
};

static const struct error_text *error_find(int result)
{
	for (size_t i = 0; i < sizeof(error_texts) / sizeof(*error_texts); i++)
		if (error_texts[i].result == result)
			return &error_texts[i];
	return NULL;
}

CUresult cuGetErrorName(CUresult error, const char **str)
{
	const struct error_text *e = error_find((int)error);

	FC_ENTER(FC_BEFORE_INIT);
	if (!str)
		return (int)CF_CU_INVALID_VALUE;
	*str = e ? e->name : NULL;
	return e ? 0 : (int)CF_CU_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **str)
{
	const struct error_text *e = error_find((int)error);

	FC_ENTER(FC_BEFORE_INIT);
	if (!str)
		return (int)CF_CU_INVALID_VALUE;
	*str = e ? e->text : NULL;
	return e ? 0 : (int)CF_CU_INVALID_VALUE;
}

/* --- entry points by name */

/* Symbols whose newest form is not the right one for older callers. */
static const struct {
	const char *base;
	int since;
	const char *name;
} versions[] = {
	{ "cuCtxCreate", 13000, "cuCtxCreate_v4" },
	{ "cuCtxCreate", 3020, "cuCtxCreate_v2" },
	{ "cuMemcpyBatchAsync", 13000, "cuMemcpyBatchAsync_v2" },
	{ "cuMemcpyBatchAsync", 12080, "cuMemcpyBatchAsync" },
	{ "cuStreamGetCaptureInfo", 11030, "cuStreamGetCaptureInfo_v2" },
	{ "cuStreamGetCaptureInfo", 10010, "cuStreamGetCaptureInfo" },
	{ "cuGraphInstantiate", 12000, "cuGraphInstantiateWithFlags" },
	{ "cuFlushGPUDirectRDMAWrites", 11030, "cuFlushGPUDirectRDMAWrites" },
	{ "cuMemGetHandleForAddressRange", 11070,
	  "cuMemGetHandleForAddressRange" },
	{ "cuGetProcAddress", 12000, "cuGetProcAddress_v2" },
};

static void *self_symbol(const char *name)
{
	static void *self;
	Dl_info info;

	if (!self && dladdr((void *)&fc, &info))
		self = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	return self ? dlsym(self, name) : NULL;
}

/* Returns CUdriverProcAddressQueryResult: 0 found, 1 unknown, 2 too new. */
static int proc_address(const char *symbol, void **fn, int version)
{
	char name[80];
	int too_new = 0;

	*fn = NULL;
	for (size_t i = 0; i < sizeof(versions) / sizeof(*versions); i++) {
		if (strcmp(versions[i].base, symbol))
			continue;
		if (version >= versions[i].since) {
			*fn = self_symbol(versions[i].name);
			return *fn ? 0 : 1;
		}
		too_new = 2;
	}
	if (too_new)
		return too_new;
	if (strncmp(symbol, "cu", 2) || strlen(symbol) > 64 ||
	    strstr(symbol, "_v"))
		return 1;
	snprintf(name, sizeof(name), "%s_v2", symbol);
	*fn = self_symbol(name);
	if (!*fn)
		*fn = self_symbol(symbol);
	return *fn ? 0 : 1;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **fn, int version,
			     uint64_t flags, int *status)
{
	int found;

	FC_ENTER(FC_BEFORE_INIT);
	if (!symbol || !fn || flags > 2)
		return (int)CF_CU_INVALID_VALUE;
	found = FC_LOCKED(proc_address(symbol, fn, version));
	if (status)
		*status = found;
	return found ? (int)CF_CU_NOT_FOUND : 0;
}

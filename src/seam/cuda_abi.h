// SPDX-License-Identifier: Apache-2.0
/*
 * cuda_abi - the slice of the CUDA driver ABI that we speak.
 *
 * Types carry CUDA's names and are written so that cuda.h may be included in
 * the same file (tests/abi checks every value against it where it exists).
 * Values carry the prefix CF_CU_. Nothing here needs the toolkit.
 */
#ifndef CF_SEAM_CUDA_ABI_H
#define CF_SEAM_CUDA_ABI_H

#include <cufile.h> /* CUresult, CUstream */
#include <stddef.h>
#include <stdint.h>

#ifndef CUFILE_HAVE_CUDA_H
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUevent_st *CUevent;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef struct CUuserObject_st *CUuserObject;
typedef void (*CUhostFn)(void *user_data);
typedef struct CUuuid_st {
	char bytes[16];
} CUuuid;

/* enums of CUDA, held as the ints that they are in the binary interface */
typedef int CUpointer_attribute;
typedef int CUdevice_attribute;
typedef int CUstreamCaptureMode;
typedef int CUstreamCaptureStatus;

typedef union CUstreamBatchMemOpParams_union {
	int operation;
	struct {
		int operation;
		CUdeviceptr address;
		union {
			uint32_t value;
			uint64_t value64;
		};
		unsigned int flags;
		CUdeviceptr alias;
	} waitValue;
	struct {
		int operation;
		CUdeviceptr address;
		union {
			uint32_t value;
			uint64_t value64;
		};
		unsigned int flags;
		CUdeviceptr alias;
	} writeValue;
	uint64_t pad[6];
} CUstreamBatchMemOpParams;

typedef unsigned long long CUmemGenericAllocationHandle;
typedef struct CUmemLocation_st {
	int type;
	int id;
} CUmemLocation;
typedef struct CUmemAllocationProp_st {
	int type;
	int requestedHandleTypes;
	CUmemLocation location;
	void *win32HandleMetaData;
	struct {
		unsigned char compressionType;
		unsigned char gpuDirectRDMACapable;
		unsigned short usage;
		unsigned char reserved[4];
	} allocFlags;
} CUmemAllocationProp;
typedef struct CUmemAccessDesc_st {
	CUmemLocation location;
	int flags;
} CUmemAccessDesc;
typedef struct CUmemPoolProps_st {
	int allocType;
	int handleTypes;
	CUmemLocation location;
	void *win32SecurityAttributes;
	size_t maxSize;
	unsigned short usage;
	unsigned char reserved[54];
} CUmemPoolProps;
typedef int CUlaunchAttributeID;
typedef union CUlaunchAttributeValue_union {
	char pad[64];
	int programmaticStreamSerializationAllowed;
	int priority;
} CUlaunchAttributeValue;
typedef struct CUlaunchAttribute_st {
	CUlaunchAttributeID id;
	char pad[4];
	CUlaunchAttributeValue value;
} CUlaunchAttribute;
typedef struct CUlaunchConfig_st {
	unsigned int gridDimX, gridDimY, gridDimZ;
	unsigned int blockDimX, blockDimY, blockDimZ;
	unsigned int sharedMemBytes;
	CUstream hStream;
	CUlaunchAttribute *attrs;
	unsigned int numAttrs;
} CUlaunchConfig;
typedef struct CUDA_MEMCPY2D_st {
	size_t srcXInBytes, srcY;
	int srcMemoryType;
	const void *srcHost;
	CUdeviceptr srcDevice;
	struct CUarray_st *srcArray;
	size_t srcPitch;
	size_t dstXInBytes, dstY;
	int dstMemoryType;
	void *dstHost;
	CUdeviceptr dstDevice;
	struct CUarray_st *dstArray;
	size_t dstPitch;
	size_t WidthInBytes;
	size_t Height;
} CUDA_MEMCPY2D;
typedef struct CUmemcpyAttributes_st {
	int srcAccessOrder;
	CUmemLocation srcLocHint;
	CUmemLocation dstLocHint;
	unsigned int flags;
} CUmemcpyAttributes;
#endif

/* results; macros, because a CUresult may be the toolkit's own enum */
#define CF_CU_SUCCESS 0
#define CF_CU_INVALID_VALUE 1
#define CF_CU_OUT_OF_MEMORY 2
#define CF_CU_NOT_INITIALIZED 3
#define CF_CU_DEINITIALIZED 4
#define CF_CU_NO_DEVICE 100
#define CF_CU_INVALID_DEVICE 101
#define CF_CU_INVALID_IMAGE 200
#define CF_CU_INVALID_CONTEXT 201
#define CF_CU_NO_BINARY_FOR_GPU 209
#define CF_CU_INVALID_HANDLE 400
#define CF_CU_NOT_FOUND 500
#define CF_CU_NOT_READY 600
#define CF_CU_ILLEGAL_ADDRESS 700
#define CF_CU_CONTEXT_IS_DESTROYED 709
#define CF_CU_HOST_MEMORY_ALREADY_REGISTERED 712
#define CF_CU_HOST_MEMORY_NOT_REGISTERED 713
#define CF_CU_LAUNCH_FAILED 719
#define CF_CU_NOT_PERMITTED 800
#define CF_CU_NOT_SUPPORTED 801
#define CF_CU_STREAM_CAPTURE_UNSUPPORTED 900
#define CF_CU_STREAM_CAPTURE_INVALIDATED 901
#define CF_CU_STREAM_CAPTURE_UNMATCHED 903
#define CF_CU_STREAM_CAPTURE_UNJOINED 904
#define CF_CU_STREAM_CAPTURE_ISOLATION 905
#define CF_CU_STREAM_CAPTURE_IMPLICIT 906
#define CF_CU_CAPTURED_EVENT 907
#define CF_CU_STREAM_CAPTURE_WRONG_THREAD 908
#define CF_CU_UNKNOWN 999

/* stream handles with a meaning of their own */
#define CF_CU_STREAM_LEGACY ((CUstream)0x1)
#define CF_CU_STREAM_PER_THREAD ((CUstream)0x2)

/* pointer attributes, and what CF_CU_POINTER_MEMORY_TYPE answers */
enum {
	CF_CU_POINTER_CONTEXT = 1,
	CF_CU_POINTER_MEMORY_TYPE = 2,
	CF_CU_POINTER_DEVICE_POINTER = 3,
	CF_CU_POINTER_HOST_POINTER = 4,
	CF_CU_POINTER_SYNC_MEMOPS = 6,
	CF_CU_POINTER_BUFFER_ID = 7,
	CF_CU_POINTER_IS_MANAGED = 8,
	CF_CU_POINTER_DEVICE_ORDINAL = 9,
	CF_CU_POINTER_RANGE_START_ADDR = 11,
	CF_CU_POINTER_RANGE_SIZE = 12,
	CF_CU_POINTER_MAPPED = 13,
	CF_CU_POINTER_MEMPOOL_HANDLE = 17,
	CF_CU_POINTER_MAPPING_SIZE = 18,
	CF_CU_POINTER_MAPPING_BASE = 19,
};
enum {
	CF_CU_MEMORYTYPE_HOST = 1,
	CF_CU_MEMORYTYPE_DEVICE = 2,
	CF_CU_MEMORYTYPE_UNIFIED = 4,
};

/* flags */
enum {
	CF_CU_MEMHOSTREGISTER_PORTABLE = 0x01,
	CF_CU_MEMHOSTREGISTER_DEVICEMAP = 0x02,
	CF_CU_MEMHOSTREGISTER_READ_ONLY = 0x08,
	CF_CU_MEMHOSTALLOC_PORTABLE = 0x01,
	CF_CU_STREAM_NON_BLOCKING = 0x1,
	CF_CU_EVENT_BLOCKING_SYNC = 0x1,
	CF_CU_EVENT_DISABLE_TIMING = 0x2,
	CF_CU_STREAM_CAPTURE_MODE_GLOBAL = 0,
	CF_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
	CF_CU_STREAM_CAPTURE_MODE_RELAXED = 2,
	CF_CU_STREAM_CAPTURE_STATUS_NONE = 0,
	CF_CU_STREAM_CAPTURE_STATUS_ACTIVE = 1,
	CF_CU_STREAM_CAPTURE_STATUS_INVALIDATED = 2,
	CF_CU_STREAM_WAIT_VALUE_GEQ = 0x0,
	CF_CU_STREAM_WAIT_VALUE_EQ = 0x1,
	CF_CU_STREAM_WAIT_VALUE_AND = 0x2,
	CF_CU_STREAM_WAIT_VALUE_NOR = 0x3,
	CF_CU_STREAM_MEM_OP_WAIT_VALUE_32 = 1,
	CF_CU_STREAM_MEM_OP_WRITE_VALUE_32 = 2,
	CF_CU_LAUNCH_PROGRAMMATIC_SERIALIZATION = 6,
	CF_CU_LAUNCH_PRIORITY = 8,
	CF_CU_USER_OBJECT_NO_DESTRUCTOR_SYNC = 1,
	CF_CU_GRAPH_USER_OBJECT_MOVE = 1,
	CF_CU_MEM_ATTACH_GLOBAL = 0x1,
	CF_CU_MEM_LOCATION_DEVICE = 1,
	CF_CU_MEM_ALLOCATION_PINNED = 1,
	CF_CU_MEM_HANDLE_FD = 1,
	CF_CU_MEM_ACCESS_READ = 1,
	CF_CU_MEM_ACCESS_READWRITE = 3,
	CF_CU_MEM_RANGE_HANDLE_DMA_BUF_FD = 1,
	CF_CU_MEM_RANGE_PCIE = 1,
	CF_CU_FLUSH_CURRENT_CTX = 0,
	CF_CU_FLUSH_TO_OWNER = 100,
	CF_CU_FLUSH_OPTION_HOST = 1,
	CF_CU_WRITES_ORDERED_FOR_OWNER = 100,
	CF_CU_MEMCPY_SRC_ORDER_STREAM = 1,
	CF_CU_MEMCPY_SRC_ORDER_DURING_CALL = 2,
	CF_CU_MEMCPY_SRC_ORDER_ANY = 3,
};

/* device attributes */
enum {
	CF_CU_DEVICE_COMPUTE_MAJOR = 75,
	CF_CU_DEVICE_COMPUTE_MINOR = 76,
	CF_CU_DEVICE_DIRECT_MANAGED_FROM_HOST = 101,
	CF_CU_DEVICE_FLUSH_OPTIONS = 117,
	CF_CU_DEVICE_WRITES_ORDERING = 118,
	CF_CU_DEVICE_DMA_BUF = 124,
};

#endif

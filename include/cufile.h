// SPDX-License-Identifier: Apache-2.0
/*
 * cufile.h - move bytes between files and GPU memory.
 *
 * The public interface of libcufile, API level 1.19. It is binary compatible
 * with every program built for 1.0 to 1.20 (whose header has five names more
 * than that of 1.19, and no call). Only programs built for 1.19 and 1.20 that
 * ask for statistics need a word in the configuration, see
 * CUfileStatsLevel1_t. The header has four parts: includes, types, the layout
 * guard, functions. "Contract n.m" in a comment names the clause of the
 * project's API contract that a call keeps.
 *
 * Rules for all calls (contract 3.0): any thread may call any function, but
 * not from device code. A CUfileError_t has cu_err = 0 unless err is 5011. When
 * a call fails, its output arguments are undefined and nothing else has
 * changed. Calls that say so, such as registrations, open the driver if it is
 * closed. A call that needs memory may answer 5043. Data is durable after
 * fsync, as in POSIX.
 *
 * GPU driver types come from <cuda.h> when the compiler finds it; define
 * CUFILE_NO_CUDA_H to use the small stand-ins below instead. Where both are
 * in play, include <cuda.h> first.
 */
#ifndef CUFILE_H
#define CUFILE_H

#if !defined(__LP64__)
#error "cufile.h describes the LP64 ABI only"
#endif

#include <arpa/inet.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <time.h>

struct timespec; /* strict C99 has none */

#if defined(CUDA_VERSION)
#define CUFILE_HAVE_CUDA_H 1 /* the program has included <cuda.h> already */
#elif !defined(CUFILE_NO_CUDA_H) && defined(__has_include)
#if __has_include(<cuda.h>)
#include <cuda.h>
#define CUFILE_HAVE_CUDA_H 1
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

#ifndef CUFILE_HAVE_CUDA_H
/* Result of a GPU driver call; any value of the driver's list may appear. */
typedef enum cudaError_enum {
	CUDA_SUCCESS = 0,
	CUDA_ERROR_UNKNOWN = 999
} CUresult;

/* A GPU stream; NULL is the default stream. */
typedef struct CUstream_st *CUstream;
#endif

/* ------------------------------------------------------------- errors */

#define CUFILEOP_BASE_ERR 5000

/*
 * Every status: CUFILE_OP(code, name, text). The enum and the text function
 * are both made from this list; a program may expand it for its own tables.
 */
/* clang-format off */
#define CUFILEOP_STATUS_ENTRIES                                               \
	CUFILE_OP(0, CU_FILE_SUCCESS, "no error")                             \
	CUFILE_OP(5001, CU_FILE_DRIVER_NOT_INITIALIZED,                       \
		  "the cuFile driver is not open")                            \
	CUFILE_OP(5002, CU_FILE_DRIVER_INVALID_PROPS,                         \
		  "the configuration is not valid")                           \
	CUFILE_OP(5003, CU_FILE_DRIVER_UNSUPPORTED_LIMIT,                     \
		  "a property is out of its range")                           \
	CUFILE_OP(5004, CU_FILE_DRIVER_VERSION_MISMATCH,                      \
		  "library and kernel driver do not fit together")            \
	CUFILE_OP(5005, CU_FILE_DRIVER_VERSION_READ_ERROR,                    \
		  "the kernel driver's version cannot be read")               \
	CUFILE_OP(5006, CU_FILE_DRIVER_CLOSING,                               \
		  "the cuFile driver is closing")                             \
	CUFILE_OP(5007, CU_FILE_PLATFORM_NOT_SUPPORTED,                       \
		  "GPUDirect Storage not supported on current platform")      \
	CUFILE_OP(5008, CU_FILE_IO_NOT_SUPPORTED,                             \
		  "this file cannot be used for the request")                 \
	CUFILE_OP(5009, CU_FILE_DEVICE_NOT_SUPPORTED,                         \
		  "this GPU cannot be used")                                  \
	CUFILE_OP(5010, CU_FILE_NVFS_DRIVER_ERROR,                            \
		  "a call into the nvidia-fs kernel driver failed")           \
	CUFILE_OP(5011, CU_FILE_CUDA_DRIVER_ERROR,                            \
		  "CUDA Driver API error")                                    \
	CUFILE_OP(5012, CU_FILE_CUDA_POINTER_INVALID,                         \
		  "this is no device pointer")                                \
	CUFILE_OP(5013, CU_FILE_CUDA_MEMORY_TYPE_INVALID,                     \
		  "this kind of memory does not work here")                   \
	CUFILE_OP(5014, CU_FILE_CUDA_POINTER_RANGE_ERROR,                     \
		  "the range leaves its GPU allocation")                      \
	CUFILE_OP(5015, CU_FILE_CUDA_CONTEXT_MISMATCH,                        \
		  "another GPU context owns this memory")                     \
	CUFILE_OP(5016, CU_FILE_INVALID_MAPPING_SIZE,                         \
		  "more memory than may be pinned")                           \
	CUFILE_OP(5017, CU_FILE_INVALID_MAPPING_RANGE,                        \
		  "the range leaves its registration")                        \
	CUFILE_OP(5018, CU_FILE_INVALID_FILE_TYPE, "unsupported file type")   \
	CUFILE_OP(5019, CU_FILE_INVALID_FILE_OPEN_FLAG,                       \
		  "the file was opened with a flag that does not work here")  \
	CUFILE_OP(5020, CU_FILE_DIO_NOT_SET,                                  \
		  "the file was opened without O_DIRECT")                     \
	CUFILE_OP(5022, CU_FILE_INVALID_VALUE, "invalid arguments")           \
	CUFILE_OP(5023, CU_FILE_MEMORY_ALREADY_REGISTERED,                    \
		  "a buffer is registered at this address already")           \
	CUFILE_OP(5024, CU_FILE_MEMORY_NOT_REGISTERED,                        \
		  "no buffer is registered at this address")                  \
	CUFILE_OP(5025, CU_FILE_PERMISSION_DENIED,                            \
		  "no permission for the file or the kernel driver")          \
	CUFILE_OP(5026, CU_FILE_DRIVER_ALREADY_OPEN,                          \
		  "only possible before the cuFile driver is open")           \
	CUFILE_OP(5027, CU_FILE_HANDLE_NOT_REGISTERED,                        \
		  "this is no registered file handle")                        \
	CUFILE_OP(5028, CU_FILE_HANDLE_ALREADY_REGISTERED,                    \
		  "this file descriptor is registered already")               \
	CUFILE_OP(5029, CU_FILE_DEVICE_NOT_FOUND, "there is no such GPU")     \
	CUFILE_OP(5030, CU_FILE_INTERNAL_ERROR,                               \
		  "something failed inside the library, see its log")         \
	CUFILE_OP(5031, CU_FILE_GETNEWFD_FAILED,                              \
		  "the file could not be opened a second time")               \
	CUFILE_OP(5033, CU_FILE_NVFS_SETUP_ERROR,                             \
		  "the nvidia-fs kernel driver could not be set up")          \
	CUFILE_OP(5034, CU_FILE_IO_DISABLED,                                  \
		  "the configuration forbids IO on this file")                \
	CUFILE_OP(5035, CU_FILE_BATCH_SUBMIT_FAILED,                          \
		  "the batch was not submitted")                              \
	CUFILE_OP(5036, CU_FILE_GPU_MEMORY_PINNING_FAILED,                    \
		  "GPU memory could not be pinned")                           \
	CUFILE_OP(5037, CU_FILE_BATCH_FULL,                                   \
		  "the batch has too little free room")                       \
	CUFILE_OP(5038, CU_FILE_ASYNC_NOT_SUPPORTED,                          \
		  "stream IO is not available")                               \
	CUFILE_OP(5039, CU_FILE_INTERNAL_BATCH_SETUP_ERROR,                   \
		  "the batch could not be set up")                            \
	CUFILE_OP(5040, CU_FILE_INTERNAL_BATCH_SUBMIT_ERROR,                  \
		  "the batch refused its entries")                            \
	CUFILE_OP(5041, CU_FILE_INTERNAL_BATCH_GETSTATUS_ERROR,               \
		  "the batch has no status to give")                          \
	CUFILE_OP(5042, CU_FILE_INTERNAL_BATCH_CANCEL_ERROR,                  \
		  "the batch could not be cancelled")                         \
	CUFILE_OP(5043, CU_FILE_NOMEM_ERROR, "out of memory")                 \
	CUFILE_OP(5044, CU_FILE_IO_ERROR, "reading or writing failed")        \
	CUFILE_OP(5045, CU_FILE_INTERNAL_BUF_REGISTER_ERROR,                  \
		  "the buffer could not be registered")                       \
	CUFILE_OP(5046, CU_FILE_HASH_OPR_ERROR,                               \
		  "an internal table could not be changed")                   \
	CUFILE_OP(5047, CU_FILE_INVALID_CONTEXT_ERROR,                        \
		  "there is no usable GPU context")                           \
	CUFILE_OP(5048, CU_FILE_NVFS_INTERNAL_DRIVER_ERROR,                   \
		  "the nvidia-fs kernel driver failed inside")                \
	CUFILE_OP(5049, CU_FILE_BATCH_NOCOMPAT_ERROR,                         \
		  "an entry needs compatibility mode, which is off")          \
	CUFILE_OP(5050, CU_FILE_IO_MAX_ERROR, "the end of the error list")
/* clang-format on */

typedef enum CUfileOpError {
#define CUFILE_OP(code, name, text) name = code,
	CUFILEOP_STATUS_ENTRIES
#undef CUFILE_OP
} CUfileOpError;

/* The text of a status. Never NULL, never to be freed. Not an export. */
static inline const char *cufileop_status_error(CUfileOpError status)
{
	switch (status) {
/* clang-format off */
#define CUFILE_OP(code, name, text) case name: return text;
	CUFILEOP_STATUS_ENTRIES
#undef CUFILE_OP
	/* clang-format on */
	default:
		return "not a cuFile error code";
	}
}

/* What most calls return: a cuFile code, and if it is 5011 the GPU driver's. */
typedef struct CUfileError {
	CUfileOpError err;
	CUresult cu_err;
} CUfileError_t;

/* For return values of data calls, where an error is negative. */
#define IS_CUFILE_ERR(err) (abs((int)(err)) > CUFILEOP_BASE_ERR)
#define CUFILE_ERRSTR(err) cufileop_status_error((CUfileOpError)abs((int)(err)))

/* For a CUfileError_t. */
#define IS_CUDA_ERR(status) ((status).err == CU_FILE_CUDA_DRIVER_ERROR)
#define CU_FILE_CUDA_ERR(status) ((status).cu_err)

/* -------------------------------------------------- driver properties */

/* Bit numbers in nvfs.dstatusflags: storage that reaches GPUs directly. */
typedef enum CUfileDriverStatusFlags {
	CU_FILE_LUSTRE_SUPPORTED = 0,
	CU_FILE_WEKAFS_SUPPORTED = 1,
	CU_FILE_NFS_SUPPORTED = 2,
	CU_FILE_GPFS_SUPPORTED = 3,
	CU_FILE_NVME_SUPPORTED = 4,
	CU_FILE_NVMEOF_SUPPORTED = 5,
	CU_FILE_SCSI_SUPPORTED = 6,
	CU_FILE_SCALEFLUX_CSD_SUPPORTED = 7,
	CU_FILE_NVMESH_SUPPORTED = 8,
	CU_FILE_BEEGFS_SUPPORTED = 9,
	/* 10 is reserved */
	CU_FILE_NVME_P2P_SUPPORTED = 11, /* deprecated */
	CU_FILE_SCATEFS_SUPPORTED = 12,
	CU_FILE_VIRTIOFS_SUPPORTED = 13,
	CU_FILE_PANFS_SUPPORTED = 14,
	CU_FILE_MAX_TARGET_TYPES = 15
} CUfileDriverStatusFlags_t;

/* Bit numbers in nvfs.dcontrolflags. This library sets the first two only. */
typedef enum CUfileDriverControlFlags {
	CU_FILE_USE_POLL_MODE = 0,
	CU_FILE_ALLOW_COMPAT_MODE = 1,
	CU_FILE_VANILLA_POSIX_IO_MODE = 2,
	CU_FILE_POSIX_IO_MODE = CU_FILE_VANILLA_POSIX_IO_MODE, /* 1.18 name */
	CU_FILE_FALLBACK_IO_MODE = 4
} CUfileDriverControlFlags_t;

/* Bit numbers in fflags: what the library can do. */
typedef enum CUfileFeatureFlags {
	CU_FILE_DYN_ROUTING_SUPPORTED = 0,
	CU_FILE_BATCH_IO_SUPPORTED = 1,
	CU_FILE_STREAMS_SUPPORTED = 2,
	CU_FILE_PARALLEL_IO_SUPPORTED = 3,
	CU_FILE_P2P_SUPPORTED = 4
} CUfileFeatureFlags_t;

/* Sizes are in KiB. */
typedef struct CUfileDrvProps {
	struct {
		unsigned int major_version; /* nvidia-fs; 0.0 without it */
		unsigned int minor_version;
		size_t poll_thresh_size;
		size_t max_direct_io_size;
		unsigned int dstatusflags;
		unsigned int dcontrolflags;
	} nvfs;
	unsigned int fflags;
	unsigned int max_device_cache_size;
	unsigned int per_buffer_cache_size;
	unsigned int max_device_pinned_mem_size;
	unsigned int max_batch_io_size; /* entries */
	unsigned int max_batch_io_timeout_msecs;
} CUfileDrvProps_t;

/* Peer-to-peer transports. Functions take masks: 1 << one of these. */
typedef enum CUfileP2PFlags {
	CUFILE_P2PDMA = 0,
	CUFILE_NVFS = 1,
	CUFILE_DMABUF = 2,
	CUFILE_C2C = 3,
	CUFILE_NVIDIA_PEERMEM = 4
} CUfileP2PFlags_t;

#define CU_FILE_P2P_FLAG_PCI_P2PDMA ((CUfileP2PFlags_t)(1 << CUFILE_P2PDMA))
#define CU_FILE_P2P_FLAG_NVFS ((CUfileP2PFlags_t)(1 << CUFILE_NVFS))
#define CU_FILE_P2P_FLAG_DMABUF ((CUfileP2PFlags_t)(1 << CUFILE_DMABUF))
#define CU_FILE_P2P_FLAG_C2C ((CUfileP2PFlags_t)(1 << CUFILE_C2C))

/* -------------------------------------------------------------- files */

typedef struct sockaddr sockaddr_t;

typedef struct cufileRDMAInfo {
	int version;
	int desc_len;
	const char *desc_str;
} cufileRDMAInfo_t;

/*
 * The calls of a user-space file system. Each may be NULL. The file offset is
 * a loff_t, which strict C11 hides; on LP64 off_t is the same type.
 */
typedef struct CUfileFSOps {
	/*
	 * Returns the name of the file system, for denylist.filesystems; NULL:
	 * none. Called once, at registration; must not call cuFile, nor fork.
	 */
	const char *(*fs_type)(const void *handle);
	/*
	 * Gives the addresses of this machine's NICs that the server may use:
	 * *hostaddrs is an array that belongs to the file system, the return
	 * value their number (IPv4; eight count). No function or no array: all
	 * NICs; negative: none. Called once, like fs_type, if
	 * properties.rdma_dev_addr_list names any.
	 */
	int (*getRDMADeviceList)(const void *handle, sockaddr_t **hostaddrs);
	/* Rank of a NIC for a range; the highest wins, -1: no preference. */
	int (*getRDMADevicePriority)(const void *handle, char *buf, size_t size,
				     off_t file_offset,
				     const sockaddr_t *hostaddr);
	/*
	 * Move bytes; return their number, or a negative errno. If one is NULL,
	 * its requests fail with ENOSYS. If info is NULL, buf is host memory.
	 * Otherwise buf is GPU memory, which the CPU must not touch, and
	 * info->desc_str tells a server how to reach it by RDMA:
	 * address:size:rkey:lid:queue pair:1:GID in 16, 8, 8, 4, 6, 1 and 32
	 * hexadecimal digits, with info->version 1; valid during the call.
	 * After -ENOTSUP the file gets host memory. Called on any thread, for
	 * several requests at a time, except those of one batch. They may read
	 * and write other files by cuFile, but must not open or close the
	 * driver, set parameters or register: a close waits for them.
	 */
	ssize_t (*read)(const void *handle, char *buf, size_t size,
			off_t file_offset, const cufileRDMAInfo_t *info);
	ssize_t (*write)(const void *handle, const char *buf, size_t size,
			 off_t file_offset, const cufileRDMAInfo_t *info);
} CUfileFSOps_t;

/*
 * Names of 1.20 that no public text explains. A function above that returns the
 * negative of one has failed with EIO.
 */
#define CU_FILE_RDMA_SUCCESS 0
#define CU_FILE_RDMA_ERR_BASE 6000
#define CU_FILE_RDMA_RESET_TOKEN (CU_FILE_RDMA_ERR_BASE + 1)
#define CU_FILE_RDMA_RESET_TOKEN_FAILED (CU_FILE_RDMA_ERR_BASE + 2)

enum CUfileFileHandleType {
	CU_FILE_HANDLE_TYPE_OPAQUE_FD = 1,
	CU_FILE_HANDLE_TYPE_OPAQUE_WIN32 = 2, /* always refused */
	CU_FILE_HANDLE_TYPE_USERSPACE_FS = 3
};

/* What to register; this and fs_ops are needed only during the call. */
typedef struct CUfileDescr_t {
	enum CUfileFileHandleType type;
	union {
		int fd;	      /* OPAQUE_FD */
		void *handle; /* USERSPACE_FS: passed to fs_ops */
	} handle;
	const CUfileFSOps_t *fs_ops;
} CUfileDescr_t;

/* A registered file. */
typedef void *CUfileHandle_t;

/* Flags of cuFileBufRegister. */
#define CU_FILE_RDMA_REGISTER 1
#define CU_FILE_RDMA_RELAXED_ORDERING (1 << 1)

/* One element of a vector for cuFileReadv and cuFileWritev. */
typedef struct CUfileIOVec {
	void *base;
	size_t len;
} CUfileIOVec_t;

/* -------------------------------------------------------------- batch */

typedef enum CUfileOpcode { CUFILE_READ = 0, CUFILE_WRITE = 1 } CUfileOpcode_t;

/* State of a batch entry, one bit each. */
typedef enum CUFILEStatus_enum {
	CUFILE_WAITING = 0x01,
	CUFILE_PENDING = 0x02,
	CUFILE_INVALID = 0x04,
	CUFILE_CANCELED = 0x08,
	CUFILE_COMPLETE = 0x10,
	CUFILE_TIMEOUT = 0x20,
	CUFILE_FAILED = 0x40
} CUfileStatus_t;

typedef enum cufileBatchMode { CUFILE_BATCH = 1 } CUfileBatchMode_t;

typedef void *CUfileBatchHandle_t;

/* One entry of a batch, as submitted. */
typedef struct CUfileIOParams {
	CUfileBatchMode_t mode; /* CUFILE_BATCH */
	union {
		struct {
			void *devPtr_base;
			off_t file_offset;
			off_t devPtr_offset;
			size_t size;
		} batch;
	} u;
	CUfileHandle_t fh;
	CUfileOpcode_t opcode;
	void *cookie; /* comes back in the event */
} CUfileIOParams_t;

/* One entry of a batch, as it ended. */
typedef struct CUfileIOEvents {
	void *cookie;
	CUfileStatus_t status;
	/* bytes moved; when status is FAILED -errno or -(cuFile code), cast */
	size_t ret;
} CUfileIOEvents_t;

/* ------------------------------------------------------------ streams */

/*
 * What the caller promises for a registered stream: these arguments have
 * their final values when an operation is submitted, and the last one, that
 * size and both offsets are multiples of 4096.
 */
#define CU_FILE_STREAM_FIXED_BUF_OFFSET 1
#define CU_FILE_STREAM_FIXED_FILE_OFFSET 2
#define CU_FILE_STREAM_FIXED_FILE_SIZE 4
#define CU_FILE_STREAM_PAGE_ALIGNED_INPUTS 8

/* --------------------------------------------------------- parameters */

typedef enum CUFileSizeTConfigParameter_t {
	CUFILE_PARAM_PROFILE_STATS = 0,
	CUFILE_PARAM_EXECUTION_MAX_IO_QUEUE_DEPTH = 1,
	CUFILE_PARAM_EXECUTION_MAX_IO_THREADS = 2,
	CUFILE_PARAM_EXECUTION_MIN_IO_THRESHOLD_SIZE_KB = 3,
	CUFILE_PARAM_EXECUTION_MAX_REQUEST_PARALLELISM = 4,
	CUFILE_PARAM_PROPERTIES_MAX_DIRECT_IO_SIZE_KB = 5,
	CUFILE_PARAM_PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB = 6,
	CUFILE_PARAM_PROPERTIES_PER_BUFFER_CACHE_SIZE_KB = 7,
	CUFILE_PARAM_PROPERTIES_MAX_DEVICE_PINNED_MEM_SIZE_KB = 8,
	CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE = 9,
	CUFILE_PARAM_POLLTHRESHOLD_SIZE_KB = 10,
	CUFILE_PARAM_PROPERTIES_BATCH_IO_TIMEOUT_MS = 11
} CUFileSizeTConfigParameter_t;

typedef enum CUFileBoolConfigParameter_t {
	CUFILE_PARAM_PROPERTIES_USE_POLL_MODE = 0,
	CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE = 1,
	CUFILE_PARAM_FORCE_COMPAT_MODE = 2,
	CUFILE_PARAM_FS_MISC_API_CHECK_AGGRESSIVE = 3,
	CUFILE_PARAM_EXECUTION_PARALLEL_IO = 4,
	CUFILE_PARAM_PROFILE_NVTX = 5,
	CUFILE_PARAM_PROPERTIES_ALLOW_SYSTEM_MEMORY = 6,
	CUFILE_PARAM_USE_PCIP2PDMA = 7,
	CUFILE_PARAM_PREFER_IO_URING = 8,
	CUFILE_PARAM_FORCE_ODIRECT_MODE = 9,
	CUFILE_PARAM_SKIP_TOPOLOGY_DETECTION = 10,
	CUFILE_PARAM_STREAM_MEMOPS_BYPASS = 11,
	CUFILE_PARAM_PROPERTIES_POSIX_IO_MODE = 12,
	CUFILE_PARAM_GDS_FALLBACK_IO = 13
} CUFileBoolConfigParameter_t;

typedef enum CUFileStringConfigParameter_t {
	CUFILE_PARAM_LOGGING_LEVEL = 0,
	CUFILE_PARAM_ENV_LOGFILE_PATH = 1,
	CUFILE_PARAM_LOG_DIR = 2,
	CUFILE_PARAM_RDMA_TRANSPORT = 3
} CUFileStringConfigParameter_t;

/* No function takes these: each array pair has two calls of its own. */
typedef enum CUFileArrayConfigParameter_t {
	CUFILE_PARAM_POSIX_POOL_SLAB_SIZE_KB = 0,
	CUFILE_PARAM_POSIX_POOL_SLAB_COUNT = 1,
	CUFILE_PARAM_GPU_BOUNCE_BUFFER_SLAB_SIZE_KB = 2,
	CUFILE_PARAM_GPU_BOUNCE_BUFFER_SLAB_COUNT = 3
} CUFileArrayConfigParameter_t;

/* --------------------------------------------------------- statistics */

#define CUFILE_GPU_UUID_LEN 16

typedef struct CUfileOpCounter {
	uint64_t ok;
	uint64_t err;
} CUfileOpCounter_t;

/*
 * Counters and averages of the whole process. Every request is counted; of
 * quick ones with host memory, one in 16 is timed for all of them
 * (cuFileStatsStart(3)). The layout is that of 1.15 to 1.18: 1.19 made it
 * longer under the same symbol, and filling the longer one would write past
 * the end of what an older program passes. One built for 1.19 finds its readv
 * and writev numbers untouched, and those of levels 2 and 3 in wrong places,
 * unless opencufile.stats_layout is 1.19.
 */
typedef struct CUfileStatsLevel1 {
	CUfileOpCounter_t read_ops;
	CUfileOpCounter_t write_ops;
	CUfileOpCounter_t hdl_register_ops;
	CUfileOpCounter_t hdl_deregister_ops;
	CUfileOpCounter_t buf_register_ops;
	CUfileOpCounter_t buf_deregister_ops;
	uint64_t read_bytes;
	uint64_t write_bytes;
	uint64_t read_bw_bytes_per_sec;
	uint64_t write_bw_bytes_per_sec;
	uint64_t read_lat_avg_us;
	uint64_t write_lat_avg_us;
	uint64_t read_ops_per_sec;
	uint64_t write_ops_per_sec;
	uint64_t read_lat_sum_us;
	uint64_t write_lat_sum_us;
	CUfileOpCounter_t batch_submit_ops;
	CUfileOpCounter_t batch_complete_ops;
	CUfileOpCounter_t batch_setup_ops;
	CUfileOpCounter_t batch_cancel_ops;
	CUfileOpCounter_t batch_destroy_ops;
	CUfileOpCounter_t batch_enqueued_ops;
	CUfileOpCounter_t batch_posix_enqueued_ops;
	CUfileOpCounter_t batch_processed_ops;
	CUfileOpCounter_t batch_posix_processed_ops;
	CUfileOpCounter_t batch_nvfs_submit_ops;
	CUfileOpCounter_t batch_p2p_submit_ops;
	CUfileOpCounter_t batch_aio_submit_ops;
	CUfileOpCounter_t batch_iouring_submit_ops;
	CUfileOpCounter_t batch_mixed_io_submit_ops;
	CUfileOpCounter_t batch_total_submit_ops;
	uint64_t batch_read_bytes;
	uint64_t batch_write_bytes;
	uint64_t batch_read_bw_bytes;
	uint64_t batch_write_bw_bytes;
	uint64_t batch_submit_lat_avg_us;
	uint64_t batch_completion_lat_avg_us;
	uint64_t batch_submit_ops_per_sec;
	uint64_t batch_complete_ops_per_sec;
	uint64_t batch_submit_lat_sum_us;
	uint64_t batch_completion_lat_sum_us;
	uint64_t last_batch_read_bytes;
	uint64_t last_batch_write_bytes;
} CUfileStatsLevel1_t;

/* Level 1 and how many requests had which size: bin 0 is below 4 KiB, every
 * further bin twice as far. */
typedef struct CUfileStatsLevel2 {
	CUfileStatsLevel1_t basic;
	uint64_t read_size_kb_hist[32];
	uint64_t write_size_kb_hist[32];
} CUfileStatsLevel2_t;

typedef struct CUfilePerGpuStats {
	char uuid[CUFILE_GPU_UUID_LEN]; /* raw bytes, no terminator */
	uint64_t read_bytes;
	uint64_t read_bw_bytes_per_sec;
	uint64_t read_utilization;
	uint64_t read_duration_us;
	uint64_t n_total_reads;
	uint64_t n_p2p_reads;
	uint64_t n_nvfs_reads;
	uint64_t n_posix_reads;
	uint64_t n_unaligned_reads;
	uint64_t n_dr_reads;
	uint64_t n_sparse_regions;
	uint64_t n_inline_regions;
	uint64_t n_reads_err;
	uint64_t writes_bytes; /* spelled so since 1.15 */
	uint64_t write_bw_bytes_per_sec;
	uint64_t write_utilization;
	uint64_t write_duration_us;
	uint64_t n_total_writes;
	uint64_t n_p2p_writes;
	uint64_t n_nvfs_writes;
	uint64_t n_posix_writes;
	uint64_t n_unaligned_writes;
	uint64_t n_dr_writes;
	uint64_t n_writes_err;
	uint64_t n_mmap;
	uint64_t n_mmap_ok;
	uint64_t n_mmap_err;
	uint64_t n_mmap_free;
	uint64_t reg_bytes;
} CUfilePerGpuStats_t;

/* Level 2 and the first sixteen GPUs one by one. */
typedef struct CUfileStatsLevel3 {
	CUfileStatsLevel2_t detailed;
	uint32_t num_gpus;
	CUfilePerGpuStats_t per_gpu_stats[16];
} CUfileStatsLevel3_t;

/* ------------------------------------------------------- layout guard */

#if defined(__cplusplus) && __cplusplus >= 201103L
#define CUFILE_SAME(have, want) static_assert((have) == (want), #have);
#elif !defined(__cplusplus) && defined(__STDC_VERSION__) && \
	__STDC_VERSION__ >= 201112L
#define CUFILE_SAME(have, want) _Static_assert((have) == (want), #have);
#else
#define CUFILE_SAME(have, want)
#endif
#define CUFILE_SIZE(type, size) CUFILE_SAME(sizeof(type), size)
#define CUFILE_AT(type, field, off) CUFILE_SAME(offsetof(type, field), off)

/* clang-format off */
CUFILE_SIZE(void *, 8)
CUFILE_SIZE(size_t, 8)
CUFILE_SIZE(ssize_t, 8)
CUFILE_SIZE(off_t, 8)
CUFILE_SIZE(bool, 1)
CUFILE_SIZE(struct timespec, 16)
CUFILE_SIZE(CUresult, 4)
CUFILE_SIZE(CUstream, 8)
CUFILE_SIZE(CUfileHandle_t, 8)
CUFILE_SIZE(CUfileBatchHandle_t, 8)

CUFILE_SIZE(CUfileOpError, 4)
CUFILE_SIZE(CUfileDriverStatusFlags_t, 4)
CUFILE_SIZE(CUfileDriverControlFlags_t, 4)
CUFILE_SIZE(CUfileFeatureFlags_t, 4)
CUFILE_SIZE(CUfileP2PFlags_t, 4)
CUFILE_SIZE(enum CUfileFileHandleType, 4)
CUFILE_SIZE(CUfileOpcode_t, 4)
CUFILE_SIZE(CUfileStatus_t, 4)
CUFILE_SIZE(CUfileBatchMode_t, 4)
CUFILE_SIZE(CUFileSizeTConfigParameter_t, 4)
CUFILE_SIZE(CUFileBoolConfigParameter_t, 4)
CUFILE_SIZE(CUFileStringConfigParameter_t, 4)
CUFILE_SIZE(CUFileArrayConfigParameter_t, 4)

CUFILE_SIZE(CUfileError_t, 8)
CUFILE_AT(CUfileError_t, err, 0)
CUFILE_AT(CUfileError_t, cu_err, 4)

CUFILE_SIZE(CUfileDrvProps_t, 56)
CUFILE_AT(CUfileDrvProps_t, nvfs, 0)
CUFILE_AT(CUfileDrvProps_t, nvfs.major_version, 0)
CUFILE_AT(CUfileDrvProps_t, nvfs.minor_version, 4)
CUFILE_AT(CUfileDrvProps_t, nvfs.poll_thresh_size, 8)
CUFILE_AT(CUfileDrvProps_t, nvfs.max_direct_io_size, 16)
CUFILE_AT(CUfileDrvProps_t, nvfs.dstatusflags, 24)
CUFILE_AT(CUfileDrvProps_t, nvfs.dcontrolflags, 28)
CUFILE_AT(CUfileDrvProps_t, fflags, 32)
CUFILE_AT(CUfileDrvProps_t, max_device_cache_size, 36)
CUFILE_AT(CUfileDrvProps_t, per_buffer_cache_size, 40)
CUFILE_AT(CUfileDrvProps_t, max_device_pinned_mem_size, 44)
CUFILE_AT(CUfileDrvProps_t, max_batch_io_size, 48)
CUFILE_AT(CUfileDrvProps_t, max_batch_io_timeout_msecs, 52)

CUFILE_SIZE(cufileRDMAInfo_t, 16)
CUFILE_AT(cufileRDMAInfo_t, version, 0)
CUFILE_AT(cufileRDMAInfo_t, desc_len, 4)
CUFILE_AT(cufileRDMAInfo_t, desc_str, 8)

CUFILE_SIZE(CUfileFSOps_t, 40)
CUFILE_AT(CUfileFSOps_t, fs_type, 0)
CUFILE_AT(CUfileFSOps_t, getRDMADeviceList, 8)
CUFILE_AT(CUfileFSOps_t, getRDMADevicePriority, 16)
CUFILE_AT(CUfileFSOps_t, read, 24)
CUFILE_AT(CUfileFSOps_t, write, 32)

CUFILE_SIZE(CUfileDescr_t, 24)
CUFILE_AT(CUfileDescr_t, type, 0)
CUFILE_AT(CUfileDescr_t, handle, 8)
CUFILE_AT(CUfileDescr_t, handle.fd, 8)
CUFILE_AT(CUfileDescr_t, handle.handle, 8)
CUFILE_AT(CUfileDescr_t, fs_ops, 16)

CUFILE_SIZE(CUfileIOVec_t, 16)
CUFILE_AT(CUfileIOVec_t, base, 0)
CUFILE_AT(CUfileIOVec_t, len, 8)

CUFILE_SIZE(CUfileIOParams_t, 64)
CUFILE_AT(CUfileIOParams_t, mode, 0)
CUFILE_AT(CUfileIOParams_t, u, 8)
CUFILE_AT(CUfileIOParams_t, u.batch.devPtr_base, 8)
CUFILE_AT(CUfileIOParams_t, u.batch.file_offset, 16)
CUFILE_AT(CUfileIOParams_t, u.batch.devPtr_offset, 24)
CUFILE_AT(CUfileIOParams_t, u.batch.size, 32)
CUFILE_AT(CUfileIOParams_t, fh, 40)
CUFILE_AT(CUfileIOParams_t, opcode, 48)
CUFILE_AT(CUfileIOParams_t, cookie, 56)

CUFILE_SIZE(CUfileIOEvents_t, 24)
CUFILE_AT(CUfileIOEvents_t, cookie, 0)
CUFILE_AT(CUfileIOEvents_t, status, 8)
CUFILE_AT(CUfileIOEvents_t, ret, 16)

CUFILE_SIZE(CUfileOpCounter_t, 16)
CUFILE_AT(CUfileOpCounter_t, ok, 0)
CUFILE_AT(CUfileOpCounter_t, err, 8)

CUFILE_SIZE(CUfileStatsLevel1_t, 512)
CUFILE_AT(CUfileStatsLevel1_t, read_ops, 0)
CUFILE_AT(CUfileStatsLevel1_t, write_ops, 16)
CUFILE_AT(CUfileStatsLevel1_t, hdl_register_ops, 32)
CUFILE_AT(CUfileStatsLevel1_t, hdl_deregister_ops, 48)
CUFILE_AT(CUfileStatsLevel1_t, buf_register_ops, 64)
CUFILE_AT(CUfileStatsLevel1_t, buf_deregister_ops, 80)
CUFILE_AT(CUfileStatsLevel1_t, read_bytes, 96)
CUFILE_AT(CUfileStatsLevel1_t, write_bytes, 104)
CUFILE_AT(CUfileStatsLevel1_t, read_bw_bytes_per_sec, 112)
CUFILE_AT(CUfileStatsLevel1_t, write_bw_bytes_per_sec, 120)
CUFILE_AT(CUfileStatsLevel1_t, read_lat_avg_us, 128)
CUFILE_AT(CUfileStatsLevel1_t, write_lat_avg_us, 136)
CUFILE_AT(CUfileStatsLevel1_t, read_ops_per_sec, 144)
CUFILE_AT(CUfileStatsLevel1_t, write_ops_per_sec, 152)
CUFILE_AT(CUfileStatsLevel1_t, read_lat_sum_us, 160)
CUFILE_AT(CUfileStatsLevel1_t, write_lat_sum_us, 168)
CUFILE_AT(CUfileStatsLevel1_t, batch_submit_ops, 176)
CUFILE_AT(CUfileStatsLevel1_t, batch_complete_ops, 192)
CUFILE_AT(CUfileStatsLevel1_t, batch_setup_ops, 208)
CUFILE_AT(CUfileStatsLevel1_t, batch_cancel_ops, 224)
CUFILE_AT(CUfileStatsLevel1_t, batch_destroy_ops, 240)
CUFILE_AT(CUfileStatsLevel1_t, batch_enqueued_ops, 256)
CUFILE_AT(CUfileStatsLevel1_t, batch_posix_enqueued_ops, 272)
CUFILE_AT(CUfileStatsLevel1_t, batch_processed_ops, 288)
CUFILE_AT(CUfileStatsLevel1_t, batch_posix_processed_ops, 304)
CUFILE_AT(CUfileStatsLevel1_t, batch_nvfs_submit_ops, 320)
CUFILE_AT(CUfileStatsLevel1_t, batch_p2p_submit_ops, 336)
CUFILE_AT(CUfileStatsLevel1_t, batch_aio_submit_ops, 352)
CUFILE_AT(CUfileStatsLevel1_t, batch_iouring_submit_ops, 368)
CUFILE_AT(CUfileStatsLevel1_t, batch_mixed_io_submit_ops, 384)
CUFILE_AT(CUfileStatsLevel1_t, batch_total_submit_ops, 400)
CUFILE_AT(CUfileStatsLevel1_t, batch_read_bytes, 416)
CUFILE_AT(CUfileStatsLevel1_t, batch_write_bytes, 424)
CUFILE_AT(CUfileStatsLevel1_t, batch_read_bw_bytes, 432)
CUFILE_AT(CUfileStatsLevel1_t, batch_write_bw_bytes, 440)
CUFILE_AT(CUfileStatsLevel1_t, batch_submit_lat_avg_us, 448)
CUFILE_AT(CUfileStatsLevel1_t, batch_completion_lat_avg_us, 456)
CUFILE_AT(CUfileStatsLevel1_t, batch_submit_ops_per_sec, 464)
CUFILE_AT(CUfileStatsLevel1_t, batch_complete_ops_per_sec, 472)
CUFILE_AT(CUfileStatsLevel1_t, batch_submit_lat_sum_us, 480)
CUFILE_AT(CUfileStatsLevel1_t, batch_completion_lat_sum_us, 488)
CUFILE_AT(CUfileStatsLevel1_t, last_batch_read_bytes, 496)
CUFILE_AT(CUfileStatsLevel1_t, last_batch_write_bytes, 504)

CUFILE_SIZE(CUfileStatsLevel2_t, 1024)
CUFILE_AT(CUfileStatsLevel2_t, basic, 0)
CUFILE_AT(CUfileStatsLevel2_t, read_size_kb_hist, 512)
CUFILE_AT(CUfileStatsLevel2_t, write_size_kb_hist, 768)

CUFILE_SIZE(CUfilePerGpuStats_t, 248)
CUFILE_AT(CUfilePerGpuStats_t, uuid, 0)
CUFILE_AT(CUfilePerGpuStats_t, read_bytes, 16)
CUFILE_AT(CUfilePerGpuStats_t, read_bw_bytes_per_sec, 24)
CUFILE_AT(CUfilePerGpuStats_t, read_utilization, 32)
CUFILE_AT(CUfilePerGpuStats_t, read_duration_us, 40)
CUFILE_AT(CUfilePerGpuStats_t, n_total_reads, 48)
CUFILE_AT(CUfilePerGpuStats_t, n_p2p_reads, 56)
CUFILE_AT(CUfilePerGpuStats_t, n_nvfs_reads, 64)
CUFILE_AT(CUfilePerGpuStats_t, n_posix_reads, 72)
CUFILE_AT(CUfilePerGpuStats_t, n_unaligned_reads, 80)
CUFILE_AT(CUfilePerGpuStats_t, n_dr_reads, 88)
CUFILE_AT(CUfilePerGpuStats_t, n_sparse_regions, 96)
CUFILE_AT(CUfilePerGpuStats_t, n_inline_regions, 104)
CUFILE_AT(CUfilePerGpuStats_t, n_reads_err, 112)
CUFILE_AT(CUfilePerGpuStats_t, writes_bytes, 120)
CUFILE_AT(CUfilePerGpuStats_t, write_bw_bytes_per_sec, 128)
CUFILE_AT(CUfilePerGpuStats_t, write_utilization, 136)
CUFILE_AT(CUfilePerGpuStats_t, write_duration_us, 144)
CUFILE_AT(CUfilePerGpuStats_t, n_total_writes, 152)
CUFILE_AT(CUfilePerGpuStats_t, n_p2p_writes, 160)
CUFILE_AT(CUfilePerGpuStats_t, n_nvfs_writes, 168)
CUFILE_AT(CUfilePerGpuStats_t, n_posix_writes, 176)
CUFILE_AT(CUfilePerGpuStats_t, n_unaligned_writes, 184)
CUFILE_AT(CUfilePerGpuStats_t, n_dr_writes, 192)
CUFILE_AT(CUfilePerGpuStats_t, n_writes_err, 200)
CUFILE_AT(CUfilePerGpuStats_t, n_mmap, 208)
CUFILE_AT(CUfilePerGpuStats_t, n_mmap_ok, 216)
CUFILE_AT(CUfilePerGpuStats_t, n_mmap_err, 224)
CUFILE_AT(CUfilePerGpuStats_t, n_mmap_free, 232)
CUFILE_AT(CUfilePerGpuStats_t, reg_bytes, 240)

CUFILE_SIZE(CUfileStatsLevel3_t, 5000)
CUFILE_AT(CUfileStatsLevel3_t, detailed, 0)
CUFILE_AT(CUfileStatsLevel3_t, num_gpus, 1024)
CUFILE_AT(CUfileStatsLevel3_t, per_gpu_stats, 1032)
/* clang-format on */

#undef CUFILE_AT
#undef CUFILE_SIZE
#undef CUFILE_SAME

/* ---------------------------------------------------------- functions */

#pragma GCC visibility push(default)

/* driver */

/**
 * cuFileDriverOpen - open the driver, or count one more user of it.
 *
 * Reads the configuration and applies what cuFileSetParameter* left. Works
 * without a GPU, a current context or nvidia-fs: host memory can be used then.
 * Errors: 5002 (broken configuration and api_check_aggressive).
 * Contract 3.1; since 1.0.
 */
CUfileError_t cuFileDriverOpen(void);

/**
 * cuFileDriverClose - the symbol that programs built before 1.4 call.
 *
 * Same as cuFileDriverClose_v2, which is what the name means from here on.
 * To reach the old symbol, undefine the macro. Contract 3.2; since 1.0.
 */
CUfileError_t cuFileDriverClose(void);
#define cuFileDriverClose cuFileDriverClose_v2

/**
 * cuFileDriverClose_v2 - count one user less; the last one closes.
 *
 * The last close waits for running IO, deregisters all handles, buffers and
 * streams that are left, and lets the driver be opened again.
 * Errors: 5001 when it is not open. Contract 3.2; since 1.4.
 */
CUfileError_t cuFileDriverClose_v2(void);

/**
 * cuFileUseCount - how many users the driver has; 0 when it is closed.
 *
 * An open by a registration counts as one. Never fails. Contract 3.3; since
 * 1.4.
 */
long cuFileUseCount(void);

/**
 * cuFileGetVersion - API level of the library, 1000 * major + 10 * minor.
 * @version: receives it.
 *
 * Opens nothing. Errors: 5022 (NULL). Contract 3.4; since 1.8.
 */
CUfileError_t cuFileGetVersion(int *version);

/**
 * cuFileDriverGetProperties - the properties the driver runs with.
 * @props: the caller's, filled; sizes in KiB.
 *
 * Opens the driver if need be. Errors: 5022 (NULL), and those of an open.
 * Contract 3.5; since 1.0.
 */
CUfileError_t cuFileDriverGetProperties(CUfileDrvProps_t *props);

/**
 * cuFileDriverSetPollMode - wait for small requests by polling.
 * @poll: on or off.
 * @poll_threshold_size: largest request polled for, KiB, multiple of 4.
 *
 * Opens the driver if need be, as the three setters after it.
 * Errors: 5003 (out of range), and those of cuFileDriverGetProperties.
 * Contract 3.5; since 1.0.
 */
CUfileError_t cuFileDriverSetPollMode(bool poll, size_t poll_threshold_size);

/**
 * cuFileDriverSetMaxDirectIOSize - largest single transfer, KiB.
 * @max_direct_io_size: multiple of 4, 64 to 16384.
 *
 * Larger requests are cut into pieces of this size.
 * Errors: 5003 (out of range), and those of cuFileDriverGetProperties.
 * Contract 3.5; since 1.0.
 */
CUfileError_t cuFileDriverSetMaxDirectIOSize(size_t max_direct_io_size);

/**
 * cuFileDriverSetMaxCacheSize - limit of bounce memory for each GPU, KiB.
 * @max_cache_size: multiple of 4; at least one slot is always kept.
 *
 * Errors: 5003 (out of range), 5022 ((size_t)-1), and those of
 * cuFileDriverGetProperties. Contract 3.5; since 1.0.
 */
CUfileError_t cuFileDriverSetMaxCacheSize(size_t max_cache_size);

/**
 * cuFileDriverSetMaxPinnedMemSize - limit of pinned GPU memory, KiB.
 * @max_pinned_size: multiple of 4, at least 64, or 0; UINT64_MAX: no limit.
 *
 * Errors: 5003 (out of range), and those of cuFileDriverGetProperties.
 * Contract 3.5; since 1.0.
 */
CUfileError_t cuFileDriverSetMaxPinnedMemSize(size_t max_pinned_size);

/**
 * cuFileDriverSetP2PFlags - allow transports for one kind of storage.
 * @status_flag: the kind of storage, a number, not a mask.
 * @p2p_flags: a mask of CU_FILE_P2P_FLAG_*: on x86 PCI_P2PDMA, on arm64 C2C;
 * 0 changes nothing.
 *
 * Opens the driver if need be. The last close forgets all flags, and so does
 * cuFileExportPCIeTopology(). Errors: 5022 (no such target, a transport that
 * cannot be chosen), and those of an open. Contract 3.11; since 1.16.
 */
CUfileError_t cuFileDriverSetP2PFlags(CUfileDriverStatusFlags_t status_flag,
				      CUfileP2PFlags_t p2p_flags);

/**
 * cuFileDriverGetP2PFlags - the transports of one kind of storage.
 * @status_flag: the kind of storage, a number, not a mask.
 * @p2p_flags: receives a mask of CU_FILE_P2P_FLAG_*, 0 at first.
 *
 * Opens the driver if need be. Errors: 5022 (no such target, NULL), and those
 * of an open. Contract 3.11; since 1.16.
 */
CUfileError_t cuFileDriverGetP2PFlags(CUfileDriverStatusFlags_t status_flag,
				      CUfileP2PFlags_t *p2p_flags);

/**
 * cuFileExportPCIeTopology - write GPUs, storage and their distances to a file.
 * @filename: the file to make or replace: a comment, then JSON.
 *
 * Opens the driver if need be, and forgets the flags of
 * cuFileDriverSetP2PFlags(). Errors: 5022 (NULL, "", not writable), 5030 and
 * 5044 (reading the machine, writing the file), and those of an open.
 * Contract 3.16; since 1.17.
 */
CUfileError_t cuFileExportPCIeTopology(const char *filename);

/**
 * cuFileGetBARSizeInKB - how much of a GPU's memory the PCI bus can reach.
 * @gpuIndex: number of the GPU as the driver counts.
 * @barSize: receives KiB; 0 where it cannot be known.
 *
 * Opens the driver if need be. Errors: 5022 (no such GPU, NULL), 5029 (no GPU
 * at all), 5011, and those of an open. Contract 3.15; since 1.15.
 */
CUfileError_t cuFileGetBARSizeInKB(int gpuIndex, size_t *barSize);

/* files and buffers */

/**
 * cuFileHandleRegister - make a file known for IO.
 * @fh: receives the handle.
 * @descr: the open file; needed only during the call.
 *
 * Opens the driver if need be. The descriptor stays the caller's; keep it open
 * until the handle is deregistered. Register each descriptor once; threads
 * share the handle. O_DIRECT is not necessary.
 * Errors: 5008 (type of @descr; in strict mode, only host memory could carry
 * it), 5018 (not a regular file or block device), 5019 (O_APPEND,
 * O_PATH), 5022 (NULL, bad descriptor), 5025, 5030 and 5044 (examining the
 * file), 5028 (registered already), 5034 (in strict mode, on a denylist), and
 * those of an open. Contract 3.6; since 1.0.
 */
CUfileError_t cuFileHandleRegister(CUfileHandle_t *fh, CUfileDescr_t *descr);

/**
 * cuFileHandleDeregister - forget a file.
 * @fh: the handle; NULL and stale values are harmless.
 *
 * Waits for running IO on the file. Does not close the caller's descriptor.
 * Contract 3.6; since 1.0.
 */
void cuFileHandleDeregister(CUfileHandle_t fh);

/**
 * cuFileBufRegister - make a buffer known for IO.
 * @bufPtr_base: first byte, in device, managed, pinned or plain host memory.
 * @length: bytes; any number and alignment.
 * @flags: CU_FILE_RDMA_* or 0; unknown bits are ignored.
 *
 * Never necessary; makes IO quicker only where files reach the memory without a
 * copy. Opens the driver if need be. The memory stays the caller's: deregister
 * before freeing it. Ranges may overlap. Errors: 5014 (leaves the allocation),
 * 5022 (NULL, 0), 5023 (same base twice), and those of an open. Contract 3.7;
 * since 1.0.
 */
CUfileError_t cuFileBufRegister(const void *bufPtr_base, size_t length,
				int flags);

/**
 * cuFileBufDeregister - forget a buffer.
 * @bufPtr_base: the address it was registered with.
 *
 * Errors: 5006 (driver closed), 5022 (NULL), 5024 (no such registration).
 * Contract 3.7; since 1.0.
 */
CUfileError_t cuFileBufDeregister(const void *bufPtr_base);

/* synchronous IO */

/**
 * cuFileRead - read from a file into a buffer, and wait for it.
 * @fh: a registered handle.
 * @bufPtr_base: a registered base, or any address in usable memory.
 * @size: bytes; any number.
 * @file_offset: byte in the file to start at.
 * @bufPtr_offset: byte from @bufPtr_base to start at.
 *
 * Returns the bytes read, fewer than @size only at end of file or before an
 * error, which a call for the rest reports; or -1 with errno set to a POSIX
 * value or a cuFile code: EINVAL (handle, NULL, negative offset), EBADF (write
 * only), EFAULT, 5008 (no path may carry it), 5011, 5014 (leaves the
 * allocation), 5017 (leaves the registration), EIO and its kin. When it
 * returns, every stream sees the bytes. Contract 3.8; since 1.0.
 */
ssize_t cuFileRead(CUfileHandle_t fh, void *bufPtr_base, size_t size,
		   off_t file_offset, off_t bufPtr_offset);

/**
 * cuFileWrite - write to a file from a buffer, and wait for it.
 * @fh, @bufPtr_base, @size, @file_offset, @bufPtr_offset: as for cuFileRead.
 *
 * Returns the bytes written, or -1 with errno as for cuFileRead. The bytes
 * written are those that earlier plain copies and work on the default streams
 * left in the buffer. A whole write lets the file grow to exactly its end,
 * whatever the alignment. Contract 3.8; since 1.0.
 */
ssize_t cuFileWrite(CUfileHandle_t fh, const void *bufPtr_base, size_t size,
		    off_t file_offset, off_t bufPtr_offset);

/**
 * cuFileReadv - read one range of a file into several buffers.
 * @fh: a registered handle.
 * @iov: the buffers, filled in order; memory kinds may be mixed.
 * @iovcnt: how many.
 * @file_offset: byte in the file to start at.
 * @flags: 0.
 *
 * Returns the bytes read in all, or -1 with errno, as cuFileRead does.
 * Contract 3.9; since 1.19.
 */
ssize_t cuFileReadv(CUfileHandle_t fh, const CUfileIOVec_t *iov, size_t iovcnt,
		    off_t file_offset, unsigned flags);

/**
 * cuFileWritev - write several buffers to one range of a file.
 * @fh, @iov, @iovcnt, @file_offset, @flags: as for cuFileReadv.
 *
 * Returns the bytes written in all, or -1 with errno, as cuFileWrite does.
 * Contract 3.9; since 1.19.
 */
ssize_t cuFileWritev(CUfileHandle_t fh, const CUfileIOVec_t *iov, size_t iovcnt,
		     off_t file_offset, unsigned flags);

/* batches */

/**
 * cuFileBatchIOSetUp - make a batch.
 * @batch_idp: receives the batch; destroy it with cuFileBatchIODestroy.
 * @nr: how many entries it can hold at once.
 *
 * Errors: 5022 (NULL, 0, above 65536, driver not open), 5039 (no thread can be
 * made). Contract 3.12; since 1.2.
 */
CUfileError_t cuFileBatchIOSetUp(CUfileBatchHandle_t *batch_idp, unsigned nr);

/**
 * cuFileBatchIOSubmit - start all of the entries, or none of them.
 * @batch_idp: the batch.
 * @nr: how many.
 * @iocbp: the entries; needed only during the call.
 * @flags: 0.
 *
 * Entries start and end in any order; their buffers stay in use until their
 * events are taken. Errors: 5011 (waiting for the default streams), 5037 (too
 * little free room), 5040 (batch or an entry not valid), 5049 (strict mode, and
 * an entry needs a fallback). Contract 3.12; since 1.2.
 */
CUfileError_t cuFileBatchIOSubmit(CUfileBatchHandle_t batch_idp, unsigned nr,
				  CUfileIOParams_t *iocbp, unsigned int flags);

/**
 * cuFileBatchIOGetStatus - take the events of entries that have ended.
 * @batch_idp: the batch.
 * @min_nr: wait for so many events, if so many entries are outstanding.
 * @nr: in: room in @iocbp; out: events written.
 * @iocbp: receives the events; each entry has one.
 * @timeout: longest wait; NULL: no limit.
 *
 * Errors: 5022 (NULL, @min_nr above *@nr, driver not open), 5041 (no such
 * batch). Contract 3.12; since 1.2.
 */
CUfileError_t cuFileBatchIOGetStatus(CUfileBatchHandle_t batch_idp,
				     unsigned min_nr, unsigned *nr,
				     CUfileIOEvents_t *iocbp,
				     struct timespec *timeout);

/**
 * cuFileBatchIOCancel - drop what has not begun, wait for what has.
 * @batch_idp: the batch; NULL is harmless.
 *
 * When it returns no buffer is in use, no event is left, and the batch can be
 * used again. Contract 3.12; since 1.2.
 */
CUfileError_t cuFileBatchIOCancel(CUfileBatchHandle_t batch_idp);

/**
 * cuFileBatchIODestroy - cancel, then free.
 * @batch_idp: the batch; NULL is harmless.
 *
 * Contract 3.12; since 1.2.
 */
void cuFileBatchIODestroy(CUfileBatchHandle_t batch_idp);

/* stream IO */

/**
 * cuFileStreamRegister - prepare a stream for IO.
 * @stream: the stream; NULL: the default stream.
 * @flags: promises, CU_FILE_STREAM_* or 0.
 *
 * Never necessary. Opens the driver. Errors: 5007 (no stream IO here), 5022
 * (registered already, unknown flags, not a stream), 5011. Contract 3.10; since
 * 1.7.
 */
CUfileError_t cuFileStreamRegister(CUstream stream, unsigned flags);

/**
 * cuFileStreamDeregister - forget a stream; before it is destroyed.
 * @stream: the stream.
 *
 * Waits for the stream's IO. Errors: 5001, 5022 (not registered).
 * Contract 3.10; since 1.7.
 */
CUfileError_t cuFileStreamDeregister(CUstream stream);

/**
 * cuFileReadAsync - read in stream order.
 * @fh: a registered handle.
 * @bufPtr_base: as for cuFileRead.
 * @size_p: bytes; at submission the largest value it can have.
 * @file_offset_p: byte in the file to start at.
 * @bufPtr_offset_p: byte from @bufPtr_base to start at.
 * @bytes_read_p: receives bytes, or -errno, or -(cuFile code).
 * @stream: the stream; NULL: the default stream.
 *
 * Returns at once. All five pointers must stay valid until the stream has
 * passed the operation. The values behind them are read when the stream comes
 * to it, except for those that the stream's registration promised not to
 * change. Errors: 5001, 5006 (closed while it waited for room in the stream),
 * 5022 (NULL), 5027 (not a handle), 5038 (no stream IO here), 5011; and in the
 * count those of cuFileRead, 5006 and 5027 (closed, deregistered before the
 * stream came to it), 5019 (a read, open for writing only). Contract 3.10;
 * since 1.7.
 */
CUfileError_t cuFileReadAsync(CUfileHandle_t fh, void *bufPtr_base,
			      size_t *size_p, off_t *file_offset_p,
			      off_t *bufPtr_offset_p, ssize_t *bytes_read_p,
			      CUstream stream);

/**
 * cuFileWriteAsync - write in stream order.
 * @fh, @bufPtr_base, @size_p, @file_offset_p, @bufPtr_offset_p, @stream: as
 * for cuFileReadAsync.
 * @bytes_written_p: receives bytes, or -errno, or -(cuFile code).
 *
 * Everything else is as for cuFileReadAsync. Contract 3.10; since 1.7.
 */
CUfileError_t cuFileWriteAsync(CUfileHandle_t fh, void *bufPtr_base,
			       size_t *size_p, off_t *file_offset_p,
			       off_t *bufPtr_offset_p, ssize_t *bytes_written_p,
			       CUstream stream);

/* parameters: set before the driver opens, in force from then on */

/**
 * cuFileGetParameterSizeT - value of a number.
 * @param: which one.
 * @value: receives it.
 *
 * While the driver is closed: what the next open would use.
 * Errors: 5022 (unknown, NULL). Contract 3.13; since 1.14, as the five after.
 */
CUfileError_t cuFileGetParameterSizeT(CUFileSizeTConfigParameter_t param,
				      size_t *value);

/**
 * cuFileGetParameterBool - value of a switch.
 * @param: which one.
 * @value: receives it.
 *
 * Errors: 5022 (unknown, NULL). Contract 3.13.
 */
CUfileError_t cuFileGetParameterBool(CUFileBoolConfigParameter_t param,
				     bool *value);

/**
 * cuFileGetParameterString - value of a text.
 * @param: which one.
 * @desc_str: receives it with its terminator.
 * @len: room in @desc_str, bytes.
 *
 * Errors: 5022 (unknown, NULL, too little room, never set). Contract 3.13.
 */
CUfileError_t cuFileGetParameterString(CUFileStringConfigParameter_t param,
				       char *desc_str, int len);

/**
 * cuFileSetParameterSizeT - give a number for the next open.
 * @param: which one.
 * @value: the value; checked at the open, where a bad one is logged and left.
 *
 * Goes before environment and file. Errors: 5022 (unknown), 5026 (driver
 * open). Contract 3.13.
 */
CUfileError_t cuFileSetParameterSizeT(CUFileSizeTConfigParameter_t param,
				      size_t value);

/**
 * cuFileSetParameterBool - give a switch for the next open.
 * @param: which one.
 * @value: the value.
 *
 * Errors: 5022 (unknown), 5026 (driver open). Contract 3.13.
 */
CUfileError_t cuFileSetParameterBool(CUFileBoolConfigParameter_t param,
				     bool value);

/**
 * cuFileSetParameterString - give a text for the next open.
 * @param: which one.
 * @desc_str: the text; copied.
 *
 * Errors: 5022 (unknown, NULL, empty, not a possible value), 5026 (driver
 * open). Contract 3.13.
 */
CUfileError_t cuFileSetParameterString(CUFileStringConfigParameter_t param,
				       const char *desc_str);

/**
 * cuFileGetParameterMinMaxValue - bounds of a number.
 * @param: which one.
 * @min_value, @max_value: receive them; a maximum of 0 means none.
 *
 * Errors: 5022 (unknown, without bounds, NULL). Contract 3.13; since 1.15.
 */
CUfileError_t cuFileGetParameterMinMaxValue(CUFileSizeTConfigParameter_t param,
					    size_t *min_value,
					    size_t *max_value);

/**
 * cuFileSetParameterPosixPoolSlabArray - host bounce memory, size by size.
 * @size_values: sizes of the slabs, KiB.
 * @count_values: how many of each size.
 * @len: elements of either array.
 *
 * Errors: 5022 (NULL, @len below 1), 5026 (driver open).
 * Contract 3.13; since 1.15.
 */
CUfileError_t cuFileSetParameterPosixPoolSlabArray(const size_t *size_values,
						   const size_t *count_values,
						   int len);

/**
 * cuFileGetParameterPosixPoolSlabArray - what was set there.
 * @size_values, @count_values: receive @len elements each.
 * @len: exactly the number configured; 3 unless changed.
 *
 * Errors: 5022 (NULL, another @len). Contract 3.13; since 1.15.
 */
CUfileError_t cuFileGetParameterPosixPoolSlabArray(size_t *size_values,
						   size_t *count_values,
						   int len);

/**
 * cuFileSetParameterGpuBounceBufferSlabArray - the same for GPU memory.
 * @size_values: sizes of the slabs, KiB.
 * @count_values: how many of each size.
 * @len: elements of either array.
 *
 * Errors: 5022 (NULL, @len below 1), 5026 (driver open).
 * Contract 3.13; since 1.17.
 */
CUfileError_t cuFileSetParameterGpuBounceBufferSlabArray(
	const size_t *size_values, const size_t *count_values, int len);

/**
 * cuFileGetParameterGpuBounceBufferSlabArray - what was set there.
 * @size_values, @count_values: receive @len elements each.
 * @len: exactly the number configured.
 *
 * Errors: 5022 (NULL, another @len, never set). Contract 3.13; since 1.17.
 */
CUfileError_t cuFileGetParameterGpuBounceBufferSlabArray(size_t *size_values,
							 size_t *count_values,
							 int len);

/* statistics */

/**
 * cuFileSetStatsLevel - how much to count from now on.
 * @level: 0 nothing, 1 totals, 2 and sizes, 3 and each GPU.
 *
 * Errors: 5022 (another level). Contract 3.14; since 1.15, as all after it.
 */
CUfileError_t cuFileSetStatsLevel(int level);

/**
 * cuFileGetStatsLevel - what was set there.
 * @level: receives it.
 *
 * Errors: 5022 (NULL). Contract 3.14.
 */
CUfileError_t cuFileGetStatsLevel(int *level);

/**
 * cuFileStatsStart - begin to count.
 *
 * Errors: 5001 (driver closed). Contract 3.14.
 */
CUfileError_t cuFileStatsStart(void);

/**
 * cuFileStatsStop - stop counting; the numbers stay readable.
 *
 * Errors: 5001 (driver closed). Contract 3.14.
 */
CUfileError_t cuFileStatsStop(void);

/**
 * cuFileStatsReset - put all numbers back to zero.
 *
 * Errors: 5001 (driver closed). Contract 3.14.
 */
CUfileError_t cuFileStatsReset(void);

/**
 * cuFileGetStatsL1 - totals.
 * @stats: the caller's, filled.
 *
 * Errors: 5001 (driver closed), 5022 (NULL, level below 1). Contract 3.14.
 */
CUfileError_t cuFileGetStatsL1(CUfileStatsLevel1_t *stats);

/**
 * cuFileGetStatsL2 - totals and sizes.
 * @stats: the caller's, filled.
 *
 * Errors: 5001 (driver closed), 5022 (NULL, level below 2). Contract 3.14.
 */
CUfileError_t cuFileGetStatsL2(CUfileStatsLevel2_t *stats);

/**
 * cuFileGetStatsL3 - totals, sizes and each GPU.
 * @stats: the caller's, filled up to the last of its num_gpus.
 *
 * Errors: 5001 (driver closed), 5022 (NULL, level below 3). Contract 3.14.
 */
CUfileError_t cuFileGetStatsL3(CUfileStatsLevel3_t *stats);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif

// SPDX-License-Identifier: Apache-2.0
/*
 * test_layout - the public header against the contract's numbers.
 *
 * The tables below were typed from contract 2.1 to 2.3, not from the header,
 * so that a header whose own asserts are wrong fails here.
 */
#include <cufile.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

struct row {
	const char *what;
	long have;
	long want;
};

#define SIZE(type, want) \
	{ \
		"sizeof " #type, sizeof(type), want \
	}
#define AT(type, field, want) \
	{ \
#type "." #field, offsetof(type, field), want \
	}
#define WIDTH(type, field, want) \
	{ \
		"sizeof " #type "." #field, sizeof(((type *)0)->field), want \
	}
#define VALUE(name, want) \
	{ \
#name, name, want \
	}

/* clang-format off */
static const struct row sizes[] = {
	SIZE(void *, 8),
	SIZE(bool, 1),
	SIZE(size_t, 8),
	SIZE(ssize_t, 8),
	SIZE(off_t, 8),
	SIZE(struct timespec, 16),
	SIZE(sockaddr_t, 16),
	SIZE(CUresult, 4),
	SIZE(CUstream, 8),
	SIZE(CUfileHandle_t, 8),
	SIZE(CUfileBatchHandle_t, 8),
	SIZE(CUfileOpError, 4),
	SIZE(CUfileDriverStatusFlags_t, 4),
	SIZE(CUfileDriverControlFlags_t, 4),
	SIZE(CUfileFeatureFlags_t, 4),
	SIZE(enum CUfileFileHandleType, 4),
	SIZE(CUfileOpcode_t, 4),
	SIZE(CUfileStatus_t, 4),
	SIZE(CUfileBatchMode_t, 4),
	SIZE(CUFileSizeTConfigParameter_t, 4),
	SIZE(CUFileBoolConfigParameter_t, 4),
	SIZE(CUFileStringConfigParameter_t, 4),
	SIZE(CUFileArrayConfigParameter_t, 4),
	SIZE(CUfileP2PFlags_t, 4),
	SIZE(CUfileError_t, 8),
	SIZE(CUfileDrvProps_t, 56),
	SIZE(cufileRDMAInfo_t, 16),
	SIZE(CUfileFSOps_t, 40),
	SIZE(CUfileDescr_t, 24),
	SIZE(CUfileIOParams_t, 64),
	SIZE(CUfileIOEvents_t, 24),
	SIZE(CUfileIOVec_t, 16),
	SIZE(CUfileOpCounter_t, 16),
	SIZE(CUfileStatsLevel1_t, 512),
	SIZE(CUfileStatsLevel2_t, 1024),
	SIZE(CUfilePerGpuStats_t, 248),
	SIZE(CUfileStatsLevel3_t, 5000),
	WIDTH(CUfileStatsLevel2_t, read_size_kb_hist, 256),
	WIDTH(CUfileStatsLevel2_t, write_size_kb_hist, 256),
	WIDTH(CUfilePerGpuStats_t, uuid, 16),
	WIDTH(CUfileStatsLevel3_t, num_gpus, 4),
	WIDTH(CUfileStatsLevel3_t, per_gpu_stats, 16 * 248),
	WIDTH(CUfileDrvProps_t, nvfs, 32),
};

static const struct row offsets[] = {
	AT(CUfileError_t, err, 0),
	AT(CUfileError_t, cu_err, 4),
	AT(CUfileDrvProps_t, nvfs.major_version, 0),
	AT(CUfileDrvProps_t, nvfs.minor_version, 4),
	AT(CUfileDrvProps_t, nvfs.poll_thresh_size, 8),
	AT(CUfileDrvProps_t, nvfs.max_direct_io_size, 16),
	AT(CUfileDrvProps_t, nvfs.dstatusflags, 24),
	AT(CUfileDrvProps_t, nvfs.dcontrolflags, 28),
	AT(CUfileDrvProps_t, fflags, 32),
	AT(CUfileDrvProps_t, max_device_cache_size, 36),
	AT(CUfileDrvProps_t, per_buffer_cache_size, 40),
	AT(CUfileDrvProps_t, max_device_pinned_mem_size, 44),
	AT(CUfileDrvProps_t, max_batch_io_size, 48),
	AT(CUfileDrvProps_t, max_batch_io_timeout_msecs, 52),
	AT(cufileRDMAInfo_t, version, 0),
	AT(cufileRDMAInfo_t, desc_len, 4),
	AT(cufileRDMAInfo_t, desc_str, 8),
	AT(CUfileFSOps_t, fs_type, 0),
	AT(CUfileFSOps_t, getRDMADeviceList, 8),
	AT(CUfileFSOps_t, getRDMADevicePriority, 16),
	AT(CUfileFSOps_t, read, 24),
	AT(CUfileFSOps_t, write, 32),
	AT(CUfileDescr_t, type, 0),
	AT(CUfileDescr_t, handle.fd, 8),
	AT(CUfileDescr_t, handle.handle, 8),
	AT(CUfileDescr_t, fs_ops, 16),
	AT(CUfileIOParams_t, mode, 0),
	AT(CUfileIOParams_t, u.batch.devPtr_base, 8),
	AT(CUfileIOParams_t, u.batch.file_offset, 16),
	AT(CUfileIOParams_t, u.batch.devPtr_offset, 24),
	AT(CUfileIOParams_t, u.batch.size, 32),
	AT(CUfileIOParams_t, fh, 40),
	AT(CUfileIOParams_t, opcode, 48),
	AT(CUfileIOParams_t, cookie, 56),
	AT(CUfileIOEvents_t, cookie, 0),
	AT(CUfileIOEvents_t, status, 8),
	AT(CUfileIOEvents_t, ret, 16),
	AT(CUfileIOVec_t, base, 0),
	AT(CUfileIOVec_t, len, 8),
	AT(CUfileOpCounter_t, ok, 0),
	AT(CUfileOpCounter_t, err, 8),
	AT(CUfileStatsLevel1_t, read_ops, 0),
	AT(CUfileStatsLevel1_t, write_ops, 16),
	AT(CUfileStatsLevel1_t, hdl_register_ops, 32),
	AT(CUfileStatsLevel1_t, hdl_deregister_ops, 48),
	AT(CUfileStatsLevel1_t, buf_register_ops, 64),
	AT(CUfileStatsLevel1_t, buf_deregister_ops, 80),
	AT(CUfileStatsLevel1_t, read_bytes, 96),
	AT(CUfileStatsLevel1_t, write_bytes, 104),
	AT(CUfileStatsLevel1_t, read_bw_bytes_per_sec, 112),
	AT(CUfileStatsLevel1_t, write_bw_bytes_per_sec, 120),
	AT(CUfileStatsLevel1_t, read_lat_avg_us, 128),
	AT(CUfileStatsLevel1_t, write_lat_avg_us, 136),
	AT(CUfileStatsLevel1_t, read_ops_per_sec, 144),
	AT(CUfileStatsLevel1_t, write_ops_per_sec, 152),
	AT(CUfileStatsLevel1_t, read_lat_sum_us, 160),
	AT(CUfileStatsLevel1_t, write_lat_sum_us, 168),
	AT(CUfileStatsLevel1_t, batch_submit_ops, 176),
	AT(CUfileStatsLevel1_t, batch_complete_ops, 192),
	AT(CUfileStatsLevel1_t, batch_setup_ops, 208),
	AT(CUfileStatsLevel1_t, batch_cancel_ops, 224),
	AT(CUfileStatsLevel1_t, batch_destroy_ops, 240),
	AT(CUfileStatsLevel1_t, batch_enqueued_ops, 256),
	AT(CUfileStatsLevel1_t, batch_posix_enqueued_ops, 272),
	AT(CUfileStatsLevel1_t, batch_processed_ops, 288),
	AT(CUfileStatsLevel1_t, batch_posix_processed_ops, 304),
	AT(CUfileStatsLevel1_t, batch_nvfs_submit_ops, 320),
	AT(CUfileStatsLevel1_t, batch_p2p_submit_ops, 336),
	AT(CUfileStatsLevel1_t, batch_aio_submit_ops, 352),
	AT(CUfileStatsLevel1_t, batch_iouring_submit_ops, 368),
	AT(CUfileStatsLevel1_t, batch_mixed_io_submit_ops, 384),
	AT(CUfileStatsLevel1_t, batch_total_submit_ops, 400),
	AT(CUfileStatsLevel1_t, batch_read_bytes, 416),
	AT(CUfileStatsLevel1_t, batch_write_bytes, 424),
	AT(CUfileStatsLevel1_t, batch_read_bw_bytes, 432),
	AT(CUfileStatsLevel1_t, batch_write_bw_bytes, 440),
	AT(CUfileStatsLevel1_t, batch_submit_lat_avg_us, 448),
	AT(CUfileStatsLevel1_t, batch_completion_lat_avg_us, 456),
	AT(CUfileStatsLevel1_t, batch_submit_ops_per_sec, 464),
	AT(CUfileStatsLevel1_t, batch_complete_ops_per_sec, 472),
	AT(CUfileStatsLevel1_t, batch_submit_lat_sum_us, 480),
	AT(CUfileStatsLevel1_t, batch_completion_lat_sum_us, 488),
	AT(CUfileStatsLevel1_t, last_batch_read_bytes, 496),
	AT(CUfileStatsLevel1_t, last_batch_write_bytes, 504),
	AT(CUfileStatsLevel2_t, basic, 0),
	AT(CUfileStatsLevel2_t, read_size_kb_hist, 512),
	AT(CUfileStatsLevel2_t, write_size_kb_hist, 768),
	AT(CUfilePerGpuStats_t, uuid, 0),
	AT(CUfilePerGpuStats_t, read_bytes, 16),
	AT(CUfilePerGpuStats_t, read_bw_bytes_per_sec, 24),
	AT(CUfilePerGpuStats_t, read_utilization, 32),
	AT(CUfilePerGpuStats_t, read_duration_us, 40),
	AT(CUfilePerGpuStats_t, n_total_reads, 48),
	AT(CUfilePerGpuStats_t, n_p2p_reads, 56),
	AT(CUfilePerGpuStats_t, n_nvfs_reads, 64),
	AT(CUfilePerGpuStats_t, n_posix_reads, 72),
	AT(CUfilePerGpuStats_t, n_unaligned_reads, 80),
	AT(CUfilePerGpuStats_t, n_dr_reads, 88),
	AT(CUfilePerGpuStats_t, n_sparse_regions, 96),
	AT(CUfilePerGpuStats_t, n_inline_regions, 104),
	AT(CUfilePerGpuStats_t, n_reads_err, 112),
	AT(CUfilePerGpuStats_t, writes_bytes, 120),
	AT(CUfilePerGpuStats_t, write_bw_bytes_per_sec, 128),
	AT(CUfilePerGpuStats_t, write_utilization, 136),
	AT(CUfilePerGpuStats_t, write_duration_us, 144),
	AT(CUfilePerGpuStats_t, n_total_writes, 152),
	AT(CUfilePerGpuStats_t, n_p2p_writes, 160),
	AT(CUfilePerGpuStats_t, n_nvfs_writes, 168),
	AT(CUfilePerGpuStats_t, n_posix_writes, 176),
	AT(CUfilePerGpuStats_t, n_unaligned_writes, 184),
	AT(CUfilePerGpuStats_t, n_dr_writes, 192),
	AT(CUfilePerGpuStats_t, n_writes_err, 200),
	AT(CUfilePerGpuStats_t, n_mmap, 208),
	AT(CUfilePerGpuStats_t, n_mmap_ok, 216),
	AT(CUfilePerGpuStats_t, n_mmap_err, 224),
	AT(CUfilePerGpuStats_t, n_mmap_free, 232),
	AT(CUfilePerGpuStats_t, reg_bytes, 240),
	AT(CUfileStatsLevel3_t, detailed, 0),
	AT(CUfileStatsLevel3_t, num_gpus, 1024),
	AT(CUfileStatsLevel3_t, per_gpu_stats, 1032),
	AT(CUfileStatsLevel3_t, per_gpu_stats[1], 1280),
};

static const struct row values[] = {
	/* CUfileOpError */
	VALUE(CU_FILE_SUCCESS, 0),
	VALUE(CU_FILE_DRIVER_NOT_INITIALIZED, 5001),
	VALUE(CU_FILE_DRIVER_INVALID_PROPS, 5002),
	VALUE(CU_FILE_DRIVER_UNSUPPORTED_LIMIT, 5003),
	VALUE(CU_FILE_DRIVER_VERSION_MISMATCH, 5004),
	VALUE(CU_FILE_DRIVER_VERSION_READ_ERROR, 5005),
	VALUE(CU_FILE_DRIVER_CLOSING, 5006),
	VALUE(CU_FILE_PLATFORM_NOT_SUPPORTED, 5007),
	VALUE(CU_FILE_IO_NOT_SUPPORTED, 5008),
	VALUE(CU_FILE_DEVICE_NOT_SUPPORTED, 5009),
	VALUE(CU_FILE_NVFS_DRIVER_ERROR, 5010),
	VALUE(CU_FILE_CUDA_DRIVER_ERROR, 5011),
	VALUE(CU_FILE_CUDA_POINTER_INVALID, 5012),
	VALUE(CU_FILE_CUDA_MEMORY_TYPE_INVALID, 5013),
	VALUE(CU_FILE_CUDA_POINTER_RANGE_ERROR, 5014),
	VALUE(CU_FILE_CUDA_CONTEXT_MISMATCH, 5015),
	VALUE(CU_FILE_INVALID_MAPPING_SIZE, 5016),
	VALUE(CU_FILE_INVALID_MAPPING_RANGE, 5017),
	VALUE(CU_FILE_INVALID_FILE_TYPE, 5018),
	VALUE(CU_FILE_INVALID_FILE_OPEN_FLAG, 5019),
	VALUE(CU_FILE_DIO_NOT_SET, 5020),
	VALUE(CU_FILE_INVALID_VALUE, 5022),
	VALUE(CU_FILE_MEMORY_ALREADY_REGISTERED, 5023),
	VALUE(CU_FILE_MEMORY_NOT_REGISTERED, 5024),
	VALUE(CU_FILE_PERMISSION_DENIED, 5025),
	VALUE(CU_FILE_DRIVER_ALREADY_OPEN, 5026),
	VALUE(CU_FILE_HANDLE_NOT_REGISTERED, 5027),
	VALUE(CU_FILE_HANDLE_ALREADY_REGISTERED, 5028),
	VALUE(CU_FILE_DEVICE_NOT_FOUND, 5029),
	VALUE(CU_FILE_INTERNAL_ERROR, 5030),
	VALUE(CU_FILE_GETNEWFD_FAILED, 5031),
	VALUE(CU_FILE_NVFS_SETUP_ERROR, 5033),
	VALUE(CU_FILE_IO_DISABLED, 5034),
	VALUE(CU_FILE_BATCH_SUBMIT_FAILED, 5035),
	VALUE(CU_FILE_GPU_MEMORY_PINNING_FAILED, 5036),
	VALUE(CU_FILE_BATCH_FULL, 5037),
	VALUE(CU_FILE_ASYNC_NOT_SUPPORTED, 5038),
	VALUE(CU_FILE_INTERNAL_BATCH_SETUP_ERROR, 5039),
	VALUE(CU_FILE_INTERNAL_BATCH_SUBMIT_ERROR, 5040),
	VALUE(CU_FILE_INTERNAL_BATCH_GETSTATUS_ERROR, 5041),
	VALUE(CU_FILE_INTERNAL_BATCH_CANCEL_ERROR, 5042),
	VALUE(CU_FILE_NOMEM_ERROR, 5043),
	VALUE(CU_FILE_IO_ERROR, 5044),
	VALUE(CU_FILE_INTERNAL_BUF_REGISTER_ERROR, 5045),
	VALUE(CU_FILE_HASH_OPR_ERROR, 5046),
	VALUE(CU_FILE_INVALID_CONTEXT_ERROR, 5047),
	VALUE(CU_FILE_NVFS_INTERNAL_DRIVER_ERROR, 5048),
	VALUE(CU_FILE_BATCH_NOCOMPAT_ERROR, 5049),
	VALUE(CU_FILE_IO_MAX_ERROR, 5050),
	/* CUfileDriverStatusFlags_t */
	VALUE(CU_FILE_LUSTRE_SUPPORTED, 0),
	VALUE(CU_FILE_WEKAFS_SUPPORTED, 1),
	VALUE(CU_FILE_NFS_SUPPORTED, 2),
	VALUE(CU_FILE_GPFS_SUPPORTED, 3),
	VALUE(CU_FILE_NVME_SUPPORTED, 4),
	VALUE(CU_FILE_NVMEOF_SUPPORTED, 5),
	VALUE(CU_FILE_SCSI_SUPPORTED, 6),
	VALUE(CU_FILE_SCALEFLUX_CSD_SUPPORTED, 7),
	VALUE(CU_FILE_NVMESH_SUPPORTED, 8),
	VALUE(CU_FILE_BEEGFS_SUPPORTED, 9),
	VALUE(CU_FILE_NVME_P2P_SUPPORTED, 11),
	VALUE(CU_FILE_SCATEFS_SUPPORTED, 12),
	VALUE(CU_FILE_VIRTIOFS_SUPPORTED, 13),
	VALUE(CU_FILE_PANFS_SUPPORTED, 14),
	VALUE(CU_FILE_MAX_TARGET_TYPES, 15),
	/* CUfileDriverControlFlags_t */
	VALUE(CU_FILE_USE_POLL_MODE, 0),
	VALUE(CU_FILE_ALLOW_COMPAT_MODE, 1),
	VALUE(CU_FILE_POSIX_IO_MODE, 2),
	VALUE(CU_FILE_VANILLA_POSIX_IO_MODE, 2),
	VALUE(CU_FILE_FALLBACK_IO_MODE, 4),
	/* CUfileFeatureFlags_t */
	VALUE(CU_FILE_DYN_ROUTING_SUPPORTED, 0),
	VALUE(CU_FILE_BATCH_IO_SUPPORTED, 1),
	VALUE(CU_FILE_STREAMS_SUPPORTED, 2),
	VALUE(CU_FILE_PARALLEL_IO_SUPPORTED, 3),
	VALUE(CU_FILE_P2P_SUPPORTED, 4),
	/* enum CUfileFileHandleType */
	VALUE(CU_FILE_HANDLE_TYPE_OPAQUE_FD, 1),
	VALUE(CU_FILE_HANDLE_TYPE_OPAQUE_WIN32, 2),
	VALUE(CU_FILE_HANDLE_TYPE_USERSPACE_FS, 3),
	/* CUfileOpcode_t */
	VALUE(CUFILE_READ, 0),
	VALUE(CUFILE_WRITE, 1),
	/* CUfileStatus_t */
	VALUE(CUFILE_WAITING, 0x01),
	VALUE(CUFILE_PENDING, 0x02),
	VALUE(CUFILE_INVALID, 0x04),
	VALUE(CUFILE_CANCELED, 0x08),
	VALUE(CUFILE_COMPLETE, 0x10),
	VALUE(CUFILE_TIMEOUT, 0x20),
	VALUE(CUFILE_FAILED, 0x40),
	/* CUfileBatchMode_t */
	VALUE(CUFILE_BATCH, 1),
	/* CUFileSizeTConfigParameter_t */
	VALUE(CUFILE_PARAM_PROFILE_STATS, 0),
	VALUE(CUFILE_PARAM_EXECUTION_MAX_IO_QUEUE_DEPTH, 1),
	VALUE(CUFILE_PARAM_EXECUTION_MAX_IO_THREADS, 2),
	VALUE(CUFILE_PARAM_EXECUTION_MIN_IO_THRESHOLD_SIZE_KB, 3),
	VALUE(CUFILE_PARAM_EXECUTION_MAX_REQUEST_PARALLELISM, 4),
	VALUE(CUFILE_PARAM_PROPERTIES_MAX_DIRECT_IO_SIZE_KB, 5),
	VALUE(CUFILE_PARAM_PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB, 6),
	VALUE(CUFILE_PARAM_PROPERTIES_PER_BUFFER_CACHE_SIZE_KB, 7),
	VALUE(CUFILE_PARAM_PROPERTIES_MAX_DEVICE_PINNED_MEM_SIZE_KB, 8),
	VALUE(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, 9),
	VALUE(CUFILE_PARAM_POLLTHRESHOLD_SIZE_KB, 10),
	VALUE(CUFILE_PARAM_PROPERTIES_BATCH_IO_TIMEOUT_MS, 11),
	/* CUFileBoolConfigParameter_t */
	VALUE(CUFILE_PARAM_PROPERTIES_USE_POLL_MODE, 0),
	VALUE(CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE, 1),
	VALUE(CUFILE_PARAM_FORCE_COMPAT_MODE, 2),
	VALUE(CUFILE_PARAM_FS_MISC_API_CHECK_AGGRESSIVE, 3),
	VALUE(CUFILE_PARAM_EXECUTION_PARALLEL_IO, 4),
	VALUE(CUFILE_PARAM_PROFILE_NVTX, 5),
	VALUE(CUFILE_PARAM_PROPERTIES_ALLOW_SYSTEM_MEMORY, 6),
	VALUE(CUFILE_PARAM_USE_PCIP2PDMA, 7),
	VALUE(CUFILE_PARAM_PREFER_IO_URING, 8),
	VALUE(CUFILE_PARAM_FORCE_ODIRECT_MODE, 9),
	VALUE(CUFILE_PARAM_SKIP_TOPOLOGY_DETECTION, 10),
	VALUE(CUFILE_PARAM_STREAM_MEMOPS_BYPASS, 11),
	VALUE(CUFILE_PARAM_PROPERTIES_POSIX_IO_MODE, 12),
	VALUE(CUFILE_PARAM_GDS_FALLBACK_IO, 13),
	/* CUFileStringConfigParameter_t */
	VALUE(CUFILE_PARAM_LOGGING_LEVEL, 0),
	VALUE(CUFILE_PARAM_ENV_LOGFILE_PATH, 1),
	VALUE(CUFILE_PARAM_LOG_DIR, 2),
	VALUE(CUFILE_PARAM_RDMA_TRANSPORT, 3),
	/* CUFileArrayConfigParameter_t */
	VALUE(CUFILE_PARAM_POSIX_POOL_SLAB_SIZE_KB, 0),
	VALUE(CUFILE_PARAM_POSIX_POOL_SLAB_COUNT, 1),
	VALUE(CUFILE_PARAM_GPU_BOUNCE_BUFFER_SLAB_SIZE_KB, 2),
	VALUE(CUFILE_PARAM_GPU_BOUNCE_BUFFER_SLAB_COUNT, 3),
	/* CUfileP2PFlags_t */
	VALUE(CUFILE_P2PDMA, 0),
	VALUE(CUFILE_NVFS, 1),
	VALUE(CUFILE_DMABUF, 2),
	VALUE(CUFILE_C2C, 3),
	VALUE(CUFILE_NVIDIA_PEERMEM, 4),
	/* macros */
	VALUE(CUFILEOP_BASE_ERR, 5000),
	VALUE(CU_FILE_RDMA_SUCCESS, 0),
	VALUE(CU_FILE_RDMA_ERR_BASE, 6000),
	VALUE(CU_FILE_RDMA_RESET_TOKEN, 6001),
	VALUE(CU_FILE_RDMA_RESET_TOKEN_FAILED, 6002),
	VALUE(CU_FILE_RDMA_REGISTER, 1),
	VALUE(CU_FILE_RDMA_RELAXED_ORDERING, 2),
	VALUE(CU_FILE_STREAM_FIXED_BUF_OFFSET, 1),
	VALUE(CU_FILE_STREAM_FIXED_FILE_OFFSET, 2),
	VALUE(CU_FILE_STREAM_FIXED_FILE_SIZE, 4),
	VALUE(CU_FILE_STREAM_PAGE_ALIGNED_INPUTS, 8),
	VALUE(CUFILE_GPU_UUID_LEN, 16),
	VALUE(CU_FILE_P2P_FLAG_PCI_P2PDMA, 1),
	VALUE(CU_FILE_P2P_FLAG_NVFS, 2),
	VALUE(CU_FILE_P2P_FLAG_DMABUF, 4),
	VALUE(CU_FILE_P2P_FLAG_C2C, 8),
};
/* clang-format on */

static void check(const struct row *rows, size_t nr)
{
	size_t wrong = 0;

	for (size_t i = 0; i < nr; i++) {
		if (rows[i].have == rows[i].want)
			continue;
		fprintf(stderr, "%s: header %ld, contract %ld\n", rows[i].what,
			rows[i].have, rows[i].want);
		wrong++;
	}
	assert_int_equal(wrong, 0);
}

static void every_type_has_the_size_of_the_contract(void **state)
{
	check(sizes, sizeof(sizes) / sizeof(*sizes));
}

static void every_field_lies_where_the_contract_says(void **state)
{
	check(offsets, sizeof(offsets) / sizeof(*offsets));
}

static void every_constant_has_the_value_of_the_contract(void **state)
{
	check(values, sizeof(values) / sizeof(*values));
}

/* NVIDIA's sample 008 compares these four; all other texts are our own. */
static void four_error_texts_are_those_the_contract_names(void **state)
{
	assert_string_equal(
		CUFILE_ERRSTR(-5007),
		"GPUDirect Storage not supported on current platform");
	assert_string_equal(CUFILE_ERRSTR(-5022), "invalid arguments");
	assert_string_equal(CUFILE_ERRSTR(5018), "unsupported file type");
	/* with a point and the driver's own name of it behind */
	assert_string_equal(CUFILE_ERRSTR(5011), "CUDA Driver API error");
}

static void every_code_has_a_text_and_others_have_one_in_common(void **state)
{
	const char *unknown = CUFILE_ERRSTR(4999);

	assert_non_null(unknown);
	assert_ptr_equal(CUFILE_ERRSTR(5021), unknown);
	assert_ptr_equal(CUFILE_ERRSTR(5032), unknown);
	assert_ptr_equal(CUFILE_ERRSTR(5051), unknown);
	for (int code = 5001; code <= 5050; code++) {
		if (code == 5021 || code == 5032)
			continue;
		assert_string_not_equal(CUFILE_ERRSTR(code), unknown);
		assert_int_not_equal(strlen(CUFILE_ERRSTR(code)), 0);
	}
}

static void error_macros_tell_cufile_from_posix_from_cuda(void **state)
{
	CUfileError_t cuda = { CU_FILE_CUDA_DRIVER_ERROR, CUDA_ERROR_UNKNOWN };
	CUfileError_t plain = { CU_FILE_INVALID_VALUE, CUDA_SUCCESS };

	assert_true(IS_CUFILE_ERR(-5001));
	assert_true(IS_CUFILE_ERR(5001));
	assert_false(IS_CUFILE_ERR(-5000));
	assert_false(IS_CUFILE_ERR(-22));
	assert_true(IS_CUDA_ERR(cuda));
	assert_false(IS_CUDA_ERR(plain));
	assert_int_equal(CU_FILE_CUDA_ERR(cuda), 999);
}

/* Contract 1.1 row 9: the name every newer program is compiled with. */
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
static void driver_close_means_the_counted_close(void **state)
{
	assert_string_equal(TEXT(cuFileDriverClose), "cuFileDriverClose_v2");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_type_has_the_size_of_the_contract),
		cmocka_unit_test(every_field_lies_where_the_contract_says),
		cmocka_unit_test(every_constant_has_the_value_of_the_contract),
		cmocka_unit_test(four_error_texts_are_those_the_contract_names),
		cmocka_unit_test(
			every_code_has_a_text_and_others_have_one_in_common),
		cmocka_unit_test(error_macros_tell_cufile_from_posix_from_cuda),
		cmocka_unit_test(driver_close_means_the_counted_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

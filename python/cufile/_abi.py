# SPDX-License-Identifier: Apache-2.0
"""Types and numbers of cufile.h and opencufile.h, as ctypes sees them.

tests/python/test_abi.py compares the layouts, codes and numbers here with the
headers, so nothing in this file is right by memory.
"""
import ctypes
from ctypes import (c_bool, c_char, c_char_p, c_int, c_int64, c_size_t, c_ssize_t,
                    c_uint, c_uint32, c_uint64, c_void_p)
from typing import Any, Dict, List, SupportsIndex, Tuple

ERROR_BASE = 5000

HANDLE_TYPE_OPAQUE_FD = 1
BATCH_MODE = 1
OPCODE_READ = 0
OPCODE_WRITE = 1

STATUS_NAMES = {0x01: "WAITING", 0x02: "PENDING", 0x04: "INVALID",
                0x08: "CANCELED", 0x10: "COMPLETE", 0x20: "TIMEOUT",
                0x40: "FAILED"}

SIZE_PARAMETERS = [
    "PROFILE_STATS", "EXECUTION_MAX_IO_QUEUE_DEPTH", "EXECUTION_MAX_IO_THREADS",
    "EXECUTION_MIN_IO_THRESHOLD_SIZE_KB", "EXECUTION_MAX_REQUEST_PARALLELISM",
    "PROPERTIES_MAX_DIRECT_IO_SIZE_KB", "PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB",
    "PROPERTIES_PER_BUFFER_CACHE_SIZE_KB",
    "PROPERTIES_MAX_DEVICE_PINNED_MEM_SIZE_KB", "PROPERTIES_IO_BATCHSIZE",
    "POLLTHRESHOLD_SIZE_KB", "PROPERTIES_BATCH_IO_TIMEOUT_MS"]
BOOL_PARAMETERS = [
    "PROPERTIES_USE_POLL_MODE", "PROPERTIES_ALLOW_COMPAT_MODE",
    "FORCE_COMPAT_MODE", "FS_MISC_API_CHECK_AGGRESSIVE",
    "EXECUTION_PARALLEL_IO", "PROFILE_NVTX",
    "PROPERTIES_ALLOW_SYSTEM_MEMORY", "USE_PCIP2PDMA", "PREFER_IO_URING",
    "FORCE_ODIRECT_MODE", "SKIP_TOPOLOGY_DETECTION", "STREAM_MEMOPS_BYPASS",
    "PROPERTIES_POSIX_IO_MODE", "GDS_FALLBACK_IO"]
STRING_PARAMETERS = ["LOGGING_LEVEL", "ENV_LOGFILE_PATH", "LOG_DIR",
                     "RDMA_TRANSPORT"]


class Error(ctypes.Structure):
    """CUfileError_t"""
    _fields_ = [("err", c_int), ("cu_err", c_int)]


class DescrHandle(ctypes.Union):
    _fields_ = [("fd", c_int), ("handle", c_void_p)]


class Descr(ctypes.Structure):
    """CUfileDescr_t"""
    _fields_ = [("type", c_int), ("handle", DescrHandle), ("fs_ops", c_void_p)]


class Nvfs(ctypes.Structure):
    _fields_ = [("major_version", c_uint), ("minor_version", c_uint),
                ("poll_thresh_size", c_size_t), ("max_direct_io_size", c_size_t),
                ("dstatusflags", c_uint), ("dcontrolflags", c_uint)]


class DrvProps(ctypes.Structure):
    """CUfileDrvProps_t"""
    _fields_ = [("nvfs", Nvfs), ("fflags", c_uint),
                ("max_device_cache_size", c_uint),
                ("per_buffer_cache_size", c_uint),
                ("max_device_pinned_mem_size", c_uint),
                ("max_batch_io_size", c_uint),
                ("max_batch_io_timeout_msecs", c_uint)]


class BatchRange(ctypes.Structure):
    _fields_ = [("devPtr_base", c_void_p), ("file_offset", c_int64),
                ("devPtr_offset", c_int64), ("size", c_size_t)]


class IOParamsUnion(ctypes.Union):
    _fields_ = [("batch", BatchRange)]


class IOParams(ctypes.Structure):
    """CUfileIOParams_t"""
    _fields_ = [("mode", c_int), ("u", IOParamsUnion), ("fh", c_void_p),
                ("opcode", c_int), ("cookie", c_void_p)]


class IOEvents(ctypes.Structure):
    """CUfileIOEvents_t; ret is negative for an entry that failed"""
    _fields_ = [("cookie", c_void_p), ("status", c_int), ("ret", c_ssize_t)]


class Timespec(ctypes.Structure):
    _fields_ = [("tv_sec", c_int64), ("tv_nsec", c_int64)]


class OpCounter(ctypes.Structure):
    """CUfileOpCounter_t"""
    _fields_ = [("ok", c_uint64), ("err", c_uint64)]


def _fields(kind: Any, names: str) -> List[Tuple[str, Any]]:
    return [(name, kind) for name in names.split()]


class StatsLevel1(ctypes.Structure):
    """CUfileStatsLevel1_t"""
    _fields_ = (
        _fields(OpCounter, "read_ops write_ops hdl_register_ops "
                "hdl_deregister_ops buf_register_ops buf_deregister_ops")
        + _fields(c_uint64, "read_bytes write_bytes read_bw_bytes_per_sec "
                  "write_bw_bytes_per_sec read_lat_avg_us write_lat_avg_us "
                  "read_ops_per_sec write_ops_per_sec read_lat_sum_us "
                  "write_lat_sum_us")
        + _fields(OpCounter, "batch_submit_ops batch_complete_ops "
                  "batch_setup_ops batch_cancel_ops batch_destroy_ops "
                  "batch_enqueued_ops batch_posix_enqueued_ops "
                  "batch_processed_ops batch_posix_processed_ops "
                  "batch_nvfs_submit_ops batch_p2p_submit_ops "
                  "batch_aio_submit_ops batch_iouring_submit_ops "
                  "batch_mixed_io_submit_ops batch_total_submit_ops")
        + _fields(c_uint64, "batch_read_bytes batch_write_bytes "
                  "batch_read_bw_bytes batch_write_bw_bytes "
                  "batch_submit_lat_avg_us batch_completion_lat_avg_us "
                  "batch_submit_ops_per_sec batch_complete_ops_per_sec "
                  "batch_submit_lat_sum_us batch_completion_lat_sum_us "
                  "last_batch_read_bytes last_batch_write_bytes"))


class StatsLevel2(ctypes.Structure):
    """CUfileStatsLevel2_t"""
    _fields_ = [("basic", StatsLevel1), ("read_size_kb_hist", c_uint64 * 32),
                ("write_size_kb_hist", c_uint64 * 32)]


class PerGpuStats(ctypes.Structure):
    """CUfilePerGpuStats_t"""
    _fields_ = [("uuid", c_char * 16)] + _fields(
        c_uint64, "read_bytes read_bw_bytes_per_sec read_utilization "
        "read_duration_us n_total_reads n_p2p_reads n_nvfs_reads n_posix_reads "
        "n_unaligned_reads n_dr_reads n_sparse_regions n_inline_regions "
        "n_reads_err writes_bytes write_bw_bytes_per_sec write_utilization "
        "write_duration_us n_total_writes n_p2p_writes n_nvfs_writes "
        "n_posix_writes n_unaligned_writes n_dr_writes n_writes_err n_mmap "
        "n_mmap_ok n_mmap_err n_mmap_free reg_bytes")


class StatsLevel3(ctypes.Structure):
    """CUfileStatsLevel3_t"""
    _fields_ = [("detailed", StatsLevel2), ("num_gpus", c_uint32),
                ("per_gpu_stats", PerGpuStats * 16)]


# 1.19 has the same, with numbers of vectored calls behind those of level 1


class StatsLevel1Of119(StatsLevel1):
    """CUfileStatsLevel1_t"""
    _fields_ = (_fields(OpCounter, "readv_ops writev_ops")
                + _fields(c_uint64, "readv_bytes writev_bytes "
                          "readv_bw_bytes_per_sec writev_bw_bytes_per_sec "
                          "readv_lat_avg_us writev_lat_avg_us readv_ops_per_sec "
                          "writev_ops_per_sec readv_lat_sum_us writev_lat_sum_us"))


class StatsLevel2Of119(ctypes.Structure):
    """CUfileStatsLevel2_t"""
    _fields_ = [("basic", StatsLevel1Of119), ("read_size_kb_hist", c_uint64 * 32),
                ("write_size_kb_hist", c_uint64 * 32)]


class StatsLevel3Of119(ctypes.Structure):
    """CUfileStatsLevel3_t"""
    _fields_ = [("detailed", StatsLevel2Of119), ("num_gpus", c_uint32),
                ("per_gpu_stats", PerGpuStats * 16)]


class Refusal(ctypes.Structure):
    """ocf_refusal_t"""
    _fields_ = [("path", c_char_p), ("reason", c_char_p), ("remedy", c_char_p)]


MAX_REFUSALS = 16
UNKNOWN = (1 << 64) - 1


class Explain(ctypes.Structure):
    """ocf_explain_t"""
    _fields_ = [("struct_size", c_size_t), ("code", c_int), ("op", c_int),
                ("memory", c_int), ("gpu", c_int), ("handle", c_uint),
                ("block", c_uint), ("path", c_char_p), ("problem", c_char_p),
                ("page_cache", c_char_p), ("page_cache_remedy", c_char_p),
                ("aligned", c_uint), ("registered", c_uint), ("size", c_uint64),
                ("direct_bytes", c_uint64), ("buffered_bytes", c_uint64),
                ("cached_bytes", c_uint64), ("carriers", c_uint),
                ("nr_refusals", c_uint), ("parts", c_uint64),
                ("part_size", c_uint64), ("refusals", Refusal * MAX_REFUSALS)]


def whole(number: Any, kind: Any) -> Any:
    """A number for this ctypes type. Of one that does not fit ctypes would take
    the last bits: it is the top bit alone instead, which every call refuses."""
    if isinstance(number, SupportsIndex) and kind(number).value != number:
        return 1 << 8 * ctypes.sizeof(kind) - 1
    return number


class _Whole:
    """A number of this type, in what a call takes."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind

    def from_param(self, number: Any) -> Any:
        return self._kind.from_param(whole(number, self._kind))


# Not for what File checks already: it costs some of a small request's time.
_INT, _UINT, _SIZE, _OFFSET = map(_Whole, (c_int, c_uint, c_size_t, c_int64))
_P = ctypes.POINTER
_IO = [c_void_p, c_void_p, c_size_t, c_int64, c_int64]
_ASYNC = [c_void_p, c_void_p, _P(c_size_t), _P(c_int64), _P(c_int64),
          _P(c_ssize_t), c_void_p]

# Every call that the package makes: what it answers, what it takes.
CALLS: Dict[str, Tuple[Any, List[Any]]] = {
    "cuFileGetVersion": (Error, [_P(c_int)]),
    "cuFileDriverOpen": (Error, []),
    "cuFileDriverClose_v2": (Error, []),
    "cuFileUseCount": (ctypes.c_long, []),
    "cuFileDriverGetProperties": (Error, [_P(DrvProps)]),
    "cuFileDriverSetPollMode": (Error, [c_bool, _SIZE]),
    "cuFileDriverSetMaxDirectIOSize": (Error, [_SIZE]),
    "cuFileDriverSetMaxCacheSize": (Error, [_SIZE]),
    "cuFileDriverSetMaxPinnedMemSize": (Error, [_SIZE]),
    "cuFileHandleRegister": (Error, [_P(c_void_p), _P(Descr)]),
    "cuFileHandleDeregister": (None, [c_void_p]),
    "cuFileBufRegister": (Error, [c_void_p, c_size_t, c_int]),
    "cuFileBufDeregister": (Error, [c_void_p]),
    "cuFileRead": (c_ssize_t, _IO),
    "cuFileWrite": (c_ssize_t, _IO),
    "cuFileReadAsync": (Error, _ASYNC),
    "cuFileWriteAsync": (Error, _ASYNC),
    "cuFileStreamRegister": (Error, [c_void_p, _UINT]),
    "cuFileStreamDeregister": (Error, [c_void_p]),
    "cuFileBatchIOSetUp": (Error, [_P(c_void_p), _UINT]),
    "cuFileBatchIOSubmit": (Error, [c_void_p, c_uint, _P(IOParams), c_uint]),
    "cuFileBatchIOGetStatus": (Error, [c_void_p, c_uint, _P(c_uint),
                                       _P(IOEvents), _P(Timespec)]),
    "cuFileBatchIOCancel": (Error, [c_void_p]),
    "cuFileBatchIODestroy": (None, [c_void_p]),
    "cuFileGetParameterSizeT": (Error, [c_int, _P(c_size_t)]),
    "cuFileGetParameterBool": (Error, [c_int, _P(c_bool)]),
    "cuFileGetParameterString": (Error, [c_int, c_char_p, c_int]),
    "cuFileSetParameterSizeT": (Error, [c_int, c_size_t]),
    "cuFileSetParameterBool": (Error, [c_int, c_bool]),
    "cuFileSetParameterString": (Error, [c_int, c_char_p]),
    "cuFileGetParameterMinMaxValue": (Error, [c_int, _P(c_size_t), _P(c_size_t)]),
    "cuFileSetStatsLevel": (Error, [_INT]),
    "cuFileGetStatsLevel": (Error, [_P(c_int)]),
    "cuFileStatsStart": (Error, []),
    "cuFileStatsStop": (Error, []),
    "cuFileStatsReset": (Error, []),
    "cuFileGetStatsL1": (Error, [c_void_p]),
    "cuFileGetStatsL2": (Error, [c_void_p]),
    "cuFileGetStatsL3": (Error, [c_void_p]),
    # opencufile.h, of this library alone
    "ocf_explain_read": (Error, _IO + [_P(Explain)]),
    "ocf_explain_write": (Error, _IO + [_P(Explain)]),
    "ocf_explain_memory": (Error, [c_void_p, c_int, c_int, _SIZE, _OFFSET, _OFFSET,
                                   _P(Explain)]),
    "ocf_explain_text": (c_size_t, [_P(Explain), c_char_p, c_size_t]),
}

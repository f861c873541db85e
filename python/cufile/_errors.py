# SPDX-License-Identifier: Apache-2.0
"""What is raised when a cuFile call fails."""
import errno as _errno
import os
from typing import Any, Optional, Tuple, Union

from . import _abi

# code: (name, text), the list of cufile.h
CODES = {
    5001: ("CU_FILE_DRIVER_NOT_INITIALIZED", "the cuFile driver is not open"),
    5002: ("CU_FILE_DRIVER_INVALID_PROPS", "the configuration is not valid"),
    5003: ("CU_FILE_DRIVER_UNSUPPORTED_LIMIT", "a property is out of its range"),
    5004: ("CU_FILE_DRIVER_VERSION_MISMATCH",
           "library and kernel driver do not fit together"),
    5005: ("CU_FILE_DRIVER_VERSION_READ_ERROR",
           "the kernel driver's version cannot be read"),
    5006: ("CU_FILE_DRIVER_CLOSING", "the cuFile driver is closing"),
    5007: ("CU_FILE_PLATFORM_NOT_SUPPORTED",
           "GPUDirect Storage not supported on current platform"),
    5008: ("CU_FILE_IO_NOT_SUPPORTED", "this file cannot be used for the request"),
    5009: ("CU_FILE_DEVICE_NOT_SUPPORTED", "this GPU cannot be used"),
    5010: ("CU_FILE_NVFS_DRIVER_ERROR",
           "a call into the nvidia-fs kernel driver failed"),
    5011: ("CU_FILE_CUDA_DRIVER_ERROR", "CUDA Driver API error"),
    5012: ("CU_FILE_CUDA_POINTER_INVALID", "this is no device pointer"),
    5013: ("CU_FILE_CUDA_MEMORY_TYPE_INVALID",
           "this kind of memory does not work here"),
    5014: ("CU_FILE_CUDA_POINTER_RANGE_ERROR", "the range leaves its GPU allocation"),
    5015: ("CU_FILE_CUDA_CONTEXT_MISMATCH", "another GPU context owns this memory"),
    5016: ("CU_FILE_INVALID_MAPPING_SIZE", "more memory than may be pinned"),
    5017: ("CU_FILE_INVALID_MAPPING_RANGE", "the range leaves its registration"),
    5018: ("CU_FILE_INVALID_FILE_TYPE", "unsupported file type"),
    5019: ("CU_FILE_INVALID_FILE_OPEN_FLAG",
           "the file was opened with a flag that does not work here"),
    5020: ("CU_FILE_DIO_NOT_SET", "the file was opened without O_DIRECT"),
    5022: ("CU_FILE_INVALID_VALUE", "invalid arguments"),
    5023: ("CU_FILE_MEMORY_ALREADY_REGISTERED",
           "a buffer is registered at this address already"),
    5024: ("CU_FILE_MEMORY_NOT_REGISTERED", "no buffer is registered at this address"),
    5025: ("CU_FILE_PERMISSION_DENIED",
           "no permission for the file or the kernel driver"),
    5026: ("CU_FILE_DRIVER_ALREADY_OPEN",
           "only possible before the cuFile driver is open"),
    5027: ("CU_FILE_HANDLE_NOT_REGISTERED", "this is no registered file handle"),
    5028: ("CU_FILE_HANDLE_ALREADY_REGISTERED",
           "this file descriptor is registered already"),
    5029: ("CU_FILE_DEVICE_NOT_FOUND", "there is no such GPU"),
    5030: ("CU_FILE_INTERNAL_ERROR",
           "something failed inside the library, see its log"),
    5031: ("CU_FILE_GETNEWFD_FAILED", "the file could not be opened a second time"),
    5033: ("CU_FILE_NVFS_SETUP_ERROR",
           "the nvidia-fs kernel driver could not be set up"),
    5034: ("CU_FILE_IO_DISABLED", "the configuration forbids IO on this file"),
    5035: ("CU_FILE_BATCH_SUBMIT_FAILED", "the batch was not submitted"),
    5036: ("CU_FILE_GPU_MEMORY_PINNING_FAILED", "GPU memory could not be pinned"),
    5037: ("CU_FILE_BATCH_FULL", "the batch has too little free room"),
    5038: ("CU_FILE_ASYNC_NOT_SUPPORTED", "stream IO is not available"),
    5039: ("CU_FILE_INTERNAL_BATCH_SETUP_ERROR", "the batch could not be set up"),
    5040: ("CU_FILE_INTERNAL_BATCH_SUBMIT_ERROR", "the batch refused its entries"),
    5041: ("CU_FILE_INTERNAL_BATCH_GETSTATUS_ERROR", "the batch has no status to give"),
    5042: ("CU_FILE_INTERNAL_BATCH_CANCEL_ERROR", "the batch could not be cancelled"),
    5043: ("CU_FILE_NOMEM_ERROR", "out of memory"),
    5044: ("CU_FILE_IO_ERROR", "reading or writing failed"),
    5045: ("CU_FILE_INTERNAL_BUF_REGISTER_ERROR", "the buffer could not be registered"),
    5046: ("CU_FILE_HASH_OPR_ERROR", "an internal table could not be changed"),
    5047: ("CU_FILE_INVALID_CONTEXT_ERROR", "there is no usable GPU context"),
    5048: ("CU_FILE_NVFS_INTERNAL_DRIVER_ERROR",
           "the nvidia-fs kernel driver failed inside"),
    5049: ("CU_FILE_BATCH_NOCOMPAT_ERROR",
           "an entry needs compatibility mode, which is off"),
    5050: ("CU_FILE_IO_MAX_ERROR", "the end of the error list"),
}

Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]", int]


def name_of(number: int) -> str:
    """The name of a cuFile code or of a POSIX error number."""
    if number in CODES:
        return CODES[number][0]
    return _errno.errorcode.get(number, str(number))


def text_of(number: int) -> str:
    """A sentence for a cuFile code or a POSIX error number."""
    if number in CODES:
        return CODES[number][1]
    return os.strerror(number)


class CuFileError(OSError, RuntimeError):
    """A cuFile call failed.

    name      of the code: "CU_FILE_INVALID_VALUE", or "EIO" for a POSIX error
    code      the cuFile code, 5001 and up; 0 for a POSIX error
    errno     what the C call leaves in errno: a POSIX error or the code
    cu_err    the GPU driver's result if code is 5011, else 0
    filename  the path it was about, or None
    operation what was tried, with its numbers

    It is an OSError, and a RuntimeError for those who come from cufile-python.
    """

    def __init__(self, operation: str, number: int, cu_err: int = 0,
                 path: Optional[Path] = None) -> None:
        self.operation = operation
        self.code = number if number > _abi.ERROR_BASE else 0
        self.cu_err = cu_err
        self.name = name_of(number)
        super().__init__(number, text_of(number), path)

    def __str__(self) -> str:
        cuda = f", CUDA error {self.cu_err}" if self.cu_err else ""
        number = self.code or self.errno
        return f"{self.operation}: {self.name} ({number}{cuda}): {self.strerror}"

    def __reduce__(self) -> Tuple[Any, ...]:
        return (type(self), (self.operation, self.errno, self.cu_err,
                             self.filename))


class FormatError(ValueError):
    """A file is not of its format, or not one that can be loaded.

    The message names the file, and what is wrong with it where.
    """

    def __init__(self, path: Path, what: str) -> None:
        # names and numbers in it are the file's, which may be a stranger's
        if len(what) > 1000:
            what = f"{what[:700]} ... {what[-280:]}"
        name = path if isinstance(path, int) else os.fsdecode(path)
        super().__init__(f"{name}: {what}")
        self.path = path
        self.what = what

    def __reduce__(self) -> Tuple[Any, ...]:
        return (type(self), (self.path, self.what))


def check(status: _abi.Error, operation: str, path: Optional[Path] = None) -> None:
    """Raises if a CUfileError_t says that a call failed."""
    if status.err:
        raise CuFileError(operation, status.err, status.cu_err, path)

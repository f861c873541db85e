# SPDX-License-Identifier: Apache-2.0
"""The C calls by their names, as cufile-python's module of this name has them.

Calls that answer a CUfileError_t raise CuFileError, the data calls answer as
in C. Addresses are taken on trust; cufile.open checks.
"""
import ctypes
from typing import Any

from . import _abi, _library
from ._errors import check

libcufile = _library.get()
CUfileError = _abi.Error
CUfileHandle_t = ctypes.c_void_p
CUfileDescr = _abi.Descr
DescrUnion = _abi.DescrHandle


def cuFileDriverOpen() -> None:
    check(libcufile.cuFileDriverOpen(), "cuFileDriverOpen")


def cuFileDriverClose() -> None:
    check(libcufile.cuFileDriverClose_v2(), "cuFileDriverClose")


def cuFileHandleRegister(fd: int) -> ctypes.c_void_p:
    """A handle for a descriptor, which stays the caller's."""
    handle = CUfileHandle_t()
    descr = CUfileDescr(_abi.HANDLE_TYPE_OPAQUE_FD,
                        DescrUnion(fd=_abi.whole(fd, ctypes.c_int)), None)
    check(libcufile.cuFileHandleRegister(ctypes.byref(handle),
                                         ctypes.byref(descr)),
          f"cuFileHandleRegister of descriptor {fd}")
    return handle


def cuFileHandleDeregister(handle: Any) -> None:
    libcufile.cuFileHandleDeregister(handle)


def cuFileBufRegister(buf: Any, size: int, flags: int) -> None:
    check(libcufile.cuFileBufRegister(buf, size, flags), "cuFileBufRegister")


def cuFileBufDeregister(buf: Any) -> None:
    check(libcufile.cuFileBufDeregister(buf), "cuFileBufDeregister")


def cuFileRead(handle: Any, buf: Any, size: int, file_offset: int,
               dev_offset: int) -> int:
    """Bytes read, or -1 with ctypes.get_errno()."""
    return int(libcufile.cuFileRead(handle, buf, size, file_offset, dev_offset))


def cuFileWrite(handle: Any, buf: Any, size: int, file_offset: int,
                dev_offset: int) -> int:
    """Bytes written, or -1 with ctypes.get_errno()."""
    return int(libcufile.cuFileWrite(handle, buf, size, file_offset, dev_offset))

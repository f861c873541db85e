# SPDX-License-Identifier: Apache-2.0
"""Finds and loads the library, once.

The order: OPENCUFILE_LIBRARY names a file; else an opencufile that the process
has loaded already, as ocf-run makes it; else the copy beside this package, in
a wheel; else what the loader finds as libcufile.so.0. That would be another
one's where PyTorch brings it, so what the wheel carries goes first: two that
never see each other's handles can live in one process.

errno of the data calls is read by ctypes right after the call, in the thread
that made it. ctypes lets go of the interpreter's lock during a call.
"""
import ctypes
import os
import threading
from typing import Any, Callable, Optional

from . import _abi

SONAME = "libcufile.so.0"
ENVIRONMENT = "OPENCUFILE_LIBRARY"
BUNDLED = os.path.join(os.path.dirname(os.path.abspath(__file__)), SONAME)

_lock = threading.Lock()
_library: Optional["Library"] = None


class Library:
    """The loaded library; its calls are attributes, bound at first use."""

    def __init__(self, handle: ctypes.CDLL) -> None:
        self.handle = handle

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in _abi.CALLS:
            raise AttributeError(name)
        try:
            call: Callable[..., Any] = getattr(self.handle, name)
        except AttributeError:
            raise NotImplementedError(
                f"{path()} has no {name}") from None
        call.restype, call.argtypes = _abi.CALLS[name]  # type: ignore
        setattr(self, name, call)
        return call


def _loaded() -> Optional[ctypes.CDLL]:
    """The libcufile of this process, if it is an opencufile."""
    try:
        handle = ctypes.CDLL(SONAME, mode=os.RTLD_NOW | os.RTLD_NOLOAD,
                             use_errno=True)
    except OSError:
        return None
    return handle if hasattr(handle, "ocf_explain_read") else None


def _load() -> ctypes.CDLL:
    chosen = os.environ.get(ENVIRONMENT)
    if chosen:
        try:
            return ctypes.CDLL(chosen, use_errno=True)
        except OSError as error:
            raise ImportError(f"{ENVIRONMENT}={chosen}: {error}") from None
    loaded = _loaded()
    if loaded is not None:
        return loaded
    if os.path.exists(BUNDLED):
        return ctypes.CDLL(BUNDLED, use_errno=True)
    try:
        return ctypes.CDLL(SONAME, use_errno=True)
    except OSError as error:
        raise ImportError(
            f"no {SONAME}: {error}; neither the loader nor this package has "
            f"it, so set {ENVIRONMENT} to the file") from None


def get() -> Library:
    """The library, loaded by the first caller."""
    global _library
    if _library is None:
        with _lock:
            if _library is None:
                _library = Library(_load())
    return _library


class _DlInfo(ctypes.Structure):
    _fields_ = [("dli_fname", ctypes.c_char_p), ("dli_fbase", ctypes.c_void_p),
                ("dli_sname", ctypes.c_char_p), ("dli_saddr", ctypes.c_void_p)]


def path() -> str:
    """The file that the library was loaded from."""
    handle = get().handle
    info = _DlInfo()
    dladdr = ctypes.CDLL(None).dladdr
    dladdr.argtypes = [ctypes.c_void_p, ctypes.POINTER(_DlInfo)]
    address = ctypes.cast(handle.cuFileRead, ctypes.c_void_p)
    if dladdr(address, ctypes.byref(info)) and info.dli_fname:
        return os.fsdecode(info.dli_fname)
    return str(handle._name)


def version() -> int:
    """What cuFileGetVersion says: 1190 is 1.19."""
    number = ctypes.c_int()
    status = get().cuFileGetVersion(ctypes.byref(number))
    if status.err:
        from ._errors import CuFileError
        raise CuFileError("version", status.err, status.cu_err)
    return number.value

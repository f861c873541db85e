# SPDX-License-Identifier: Apache-2.0
"""The few calls of the GPU driver that the package makes itself.

Only for arrays that name a stream, and for streams: the driver is there then.
"""
import ctypes
import threading
from typing import Any, Optional, Tuple

from ._errors import CuFileError

_CUDA_DRIVER_ERROR = 5011
_INVALID_CONTEXT = 201
_POINTER_CONTEXT = 1
_PER_THREAD_STREAM = 2
_driver: Optional[Any] = None


def _get() -> Any:
    global _driver
    if _driver is None:
        driver = ctypes.CDLL("libcuda.so.1")
        driver.cuStreamSynchronize.argtypes = [ctypes.c_void_p]
        driver.cuStreamQuery.argtypes = [ctypes.c_void_p]
        driver.cuStreamIsCapturing.argtypes = [
            ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)]
        driver.cuPointerGetAttribute.argtypes = [
            ctypes.POINTER(ctypes.c_void_p), ctypes.c_int, ctypes.c_uint64]
        driver.cuCtxGetCurrent.argtypes = [ctypes.POINTER(ctypes.c_void_p)]
        driver.cuCtxPushCurrent_v2.argtypes = [ctypes.c_void_p]
        driver.cuCtxPopCurrent_v2.argtypes = [ctypes.POINTER(ctypes.c_void_p)]
        _driver = driver
    return _driver


def is_there() -> bool:
    """Is there a driver to be asked?"""
    try:
        return _get() is not None
    except OSError:
        return False


def _synchronize_in_context_of(address: int, stream: int) -> int:
    """A thread without a context: the default streams are the pointer's."""
    driver = _get()
    context = ctypes.c_void_p()
    result = driver.cuPointerGetAttribute(ctypes.byref(context),
                                          _POINTER_CONTEXT, address)
    if result or not context.value:
        return int(result or _INVALID_CONTEXT)
    result = driver.cuCtxPushCurrent_v2(context)
    if result:
        return int(result)
    result = driver.cuStreamSynchronize(stream)
    driver.cuCtxPopCurrent_v2(ctypes.byref(context))
    return int(result)


def is_recording(stream: int) -> Optional[bool]:
    """Does what is queued become part of a graph? None: it cannot be known."""
    status = ctypes.c_int()
    if _get().cuStreamIsCapturing(stream, ctypes.byref(status)):
        return None
    return bool(status.value)


def is_idle(stream: int) -> bool:
    """Is nothing queued on the stream? Also no where it cannot be known: a query
    would be the end of a graph that is being recorded."""
    return is_recording(stream) is False and int(_get().cuStreamQuery(stream)) == 0


def place_of(stream: int) -> Tuple[int, ...]:
    """Equal for what is the same stream: the default streams are others in other
    contexts, one of them in other threads too."""
    if stream > _PER_THREAD_STREAM:
        return (stream,)
    context = ctypes.c_void_p()
    _get().cuCtxGetCurrent(ctypes.byref(context))
    thread = threading.get_ident() if stream == _PER_THREAD_STREAM else 0
    return stream, context.value or 0, thread


def synchronize(stream: Optional[int], address: int = 0) -> None:
    """Waits for all work queued on a stream; address is where it belongs."""
    result = int(_get().cuStreamSynchronize(stream))
    if result == _INVALID_CONTEXT and address:
        result = _synchronize_in_context_of(address, stream or 0)
    if result:
        raise CuFileError(f"waiting for stream {stream or 0:#x}",
                          _CUDA_DRIVER_ERROR, result)

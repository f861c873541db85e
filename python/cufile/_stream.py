# SPDX-License-Identifier: Apache-2.0
"""Reads and writes in stream order.

    stream = cufile.Stream(torch.cuda.current_stream())
    operation = stream.read(file, tensor)
    ...                             # kernels on the same stream see the bytes
    operation.result()              # waits for the stream, gives the count

A Stream keeps the arguments and arrays of its operations alive until the GPU's
stream has passed them, and stays alive itself until then. Operations that a graph
recorded are kept for as long as somebody holds the Stream, or one of them.
"""
import ctypes
import threading
from types import TracebackType
from typing import Any, List, Optional, Set, Tuple, Type

from . import _cuda, _library
from ._errors import CuFileError, check
from ._file import File
from ._memory import Buffer, Memory, describe, kind_of

# Those with operations that may not have been passed: nobody else need hold them.
_busy: Set["Stream"] = set()


def _handle_of(stream: Any) -> int:
    """The CUstream of a stream of PyTorch, CuPy, Numba, or of a number."""
    if stream is None:
        return 0
    if isinstance(stream, int):
        return stream
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        return int((protocol() if callable(protocol) else protocol)[1])
    for name in ("cuda_stream", "ptr", "handle"):
        value = getattr(stream, name, None)
        if value is not None:
            return int(getattr(value, "value", value) or 0)
    raise TypeError(f"{kind_of(stream)} is no stream: it has neither "
                    "__cuda_stream__ nor cuda_stream nor ptr nor handle")


class Operation:
    """A request on a stream; call result() to wait for it."""

    def __init__(self, stream: "Stream", verb: str, file: File, memory: Memory,
                 size: int, file_offset: int, offset: int) -> None:
        self._stream = stream
        self._file = file
        self._memory = memory
        self._text = f"{verb} of {size} bytes at {file_offset} of {file._name}"
        # the GPU's stream reads and writes these when it gets there
        self._size = ctypes.c_size_t(size)
        self._file_offset = ctypes.c_int64(file_offset)
        self._offset = ctypes.c_int64(offset)
        self._done = ctypes.c_ssize_t(0)

    def _start(self, call: Any, stream: int) -> None:
        check(call(self._file.handle, self._memory.address,
                   ctypes.byref(self._size), ctypes.byref(self._file_offset),
                   ctypes.byref(self._offset), ctypes.byref(self._done), stream),
              f"{self._text} on a stream", self._file.name)

    def result(self) -> int:
        """Waits for the stream; returns the bytes moved, or raises."""
        self._stream.synchronize()
        done = self._done.value
        if done < 0:
            raise CuFileError(f"{self._text} on a stream", -done,
                              path=self._file.name)
        return done


class Stream:
    """A GPU stream that takes requests.

    stream  of PyTorch, CuPy or Numba, a CUstream as a number, or None for the
            default stream
    flags   promises about the arguments with which to register the stream, of
            those below; None: do not register it

    FIXED, that the numbers of an operation stay as they are, always holds here,
    and lets reads begin ahead of the stream.
    """
    FIXED_BUF_OFFSET = 1
    FIXED_FILE_OFFSET = 2
    FIXED_FILE_SIZE = 4
    FIXED = FIXED_BUF_OFFSET | FIXED_FILE_OFFSET | FIXED_FILE_SIZE
    PAGE_ALIGNED_INPUTS = 8

    def __init__(self, stream: Any = None, flags: Optional[int] = None) -> None:
        self._library = _library.get()
        self._owner = stream
        self.handle = _handle_of(stream)
        self._registered = flags is not None
        self._running: List[Operation] = []
        self._recorded: List[Operation] = []
        self._place: Tuple[int, ...] = ()
        self._lock = threading.Lock()
        if flags is not None:
            check(self._library.cuFileStreamRegister(self.handle, flags),
                  f"registering the stream {self.handle:#x}")

    def read(self, file: File, dst: Buffer, size: Optional[int] = None,
             file_offset: int = 0, dst_offset: int = 0) -> Operation:
        """Queues a read; arguments are those of File.read."""
        memory = describe(dst, True, "destination")
        return self._queue("read", self._library.cuFileReadAsync, file, memory,
                           size, file_offset, dst_offset)

    def write(self, file: File, src: Buffer, size: Optional[int] = None,
              file_offset: int = 0, src_offset: int = 0) -> Operation:
        """Queues a write; arguments are those of File.write."""
        memory = describe(src, False, "source")
        return self._queue("write", self._library.cuFileWriteAsync, file, memory,
                           size, file_offset, src_offset)

    def _queue(self, verb: str, call: Any, file: File, memory: Memory,
               size: Optional[int], file_offset: int, offset: int) -> Operation:
        size = file._check(verb, memory, size, file_offset, offset)
        operation = Operation(self, verb, file, memory, size, file_offset, offset)
        if not _cuda.is_there():
            operation._start(call, self.handle)  # the library says so
            return operation
        # who never waits still lets go of what is over
        place = _cuda.place_of(self.handle)
        for stream in _busy.copy():  # others come and go
            if stream._place == place and not stream._let_go():
                break
        recorded = _cuda.is_recording(self.handle)
        with self._lock:
            operation._start(call, self.handle)
            if recorded:
                self._recorded.append(operation)
                return operation
            self._running.append(operation)
            _busy.add(self)
            self._place = place
        return operation

    def _let_go(self) -> bool:
        """Forgets the operations if the GPU's stream has passed them."""
        with self._lock:
            over = self._running
            idle = _cuda.is_idle(self.handle)
            if idle:
                self._running = []
                _busy.discard(self)
        # here and not under the lock: arrays may do anything when they go
        del over
        return idle

    def synchronize(self) -> None:
        """Waits for everything queued on the stream."""
        with self._lock:
            running = set(self._running)
        if running:
            _cuda.synchronize(self.handle, next(iter(running))._memory.address)
        with self._lock:
            self._running = [each for each in self._running if each not in running]
            if not self._running:
                _busy.discard(self)

    def close(self) -> None:
        """Waits, and deregisters the stream if it was registered."""
        self.synchronize()
        if self._registered:
            self._registered = False
            check(self._library.cuFileStreamDeregister(self.handle),
                  f"deregistering the stream {self.handle:#x}")

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]],
                 error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

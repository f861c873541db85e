# SPDX-License-Identifier: Apache-2.0
"""open() and the file object.

A File owns its descriptor and its registration. Any thread may use it; close()
waits for running requests and for futures. It has no position: each request has
an offset.
"""
import ctypes
import errno
import operator
import os
import stat
import threading
import weakref
from concurrent.futures import Future, wait as wait_for
from types import TracebackType
from typing import Any, Callable, Optional, Set, Type, Union

from . import _abi, _library, _pool
from ._errors import CuFileError, Path, check
from ._memory import Buffer, Memory, describe

_MODES = {
    "r": os.O_RDONLY,
    "r+": os.O_RDWR,
    "w": os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
    "w+": os.O_RDWR | os.O_CREAT | os.O_TRUNC,
    "x": os.O_WRONLY | os.O_CREAT | os.O_EXCL,
    "x+": os.O_RDWR | os.O_CREAT | os.O_EXCL,
}
_MAX_OFFSET = (1 << 63) - 1
INVALID_FILE_TYPE = 5018
_Name = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]


def _flags(mode: str, direct: bool) -> int:
    plain = mode.replace("b", "", 1) if isinstance(mode, str) else mode
    if plain not in _MODES:
        known = ", ".join(repr(name) for name in _MODES)
        raise ValueError(f"mode {mode!r} is none of {known}")
    return _MODES[plain] | os.O_CLOEXEC | (os.O_DIRECT if direct else 0)


def _is_pipe(path: _Name) -> bool:
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode)
    except OSError:  # which os.open will raise, too
        return False


def open_descriptor(path: _Name, flags: int, permissions: int) -> int:
    """As os.open, but for a pipe, which would wait for its other end."""
    if _is_pipe(path):
        raise CuFileError(f"opening {os.fsdecode(path)}, which is a pipe",
                          INVALID_FILE_TYPE, path=path)
    return os.open(path, flags, permissions)


def open(path: Path, mode: str = "r", direct: bool = False) -> "File":
    """Opens a file for reads and writes of host and GPU memory.

    path    a name, or a descriptor, which stays the caller's
    mode    "r", "r+", "w", "w+", "x" or "x+", as for the built-in open; a "b"
            changes nothing
    direct  open with O_DIRECT: whole blocks bypass the page cache. Any offset
            and size still works.

    Raises OSError if the file cannot be opened, CuFileError if it cannot be
    registered.
    """
    flags = _flags(mode, direct)
    if isinstance(path, int):
        return File(path, path, mode, owned=False)
    fd = open_descriptor(path, flags, 0o666)
    try:
        return File(fd, path, mode, owned=True)
    except BaseException:
        os.close(fd)
        raise


def _release(handle: int, fd: int, owned: bool) -> None:
    _library.get().cuFileHandleDeregister(handle)
    if owned:
        os.close(fd)


class File:
    """A file that is registered with cuFile; made by cufile.open."""

    def __init__(self, fd: int, path: Path, mode: str, owned: bool) -> None:
        self._library = _library.get()
        self._path = path
        self._name = os.fsdecode(path) if not isinstance(path, int) \
            else f"descriptor {path}"
        self._mode = mode
        self._fd = fd
        self._own()
        handle = ctypes.c_void_p()
        descr = _abi.Descr(_abi.HANDLE_TYPE_OPAQUE_FD,
                           _abi.DescrHandle(fd=_abi.whole(fd, ctypes.c_int)), None)
        check(self._library.cuFileHandleRegister(ctypes.byref(handle),
                                                 ctypes.byref(descr)),
              f"registering {self._name}", path)
        self._handle: Optional[int] = handle.value or 0
        # also when the object is forgotten, and at exit
        self._finalizer = weakref.finalize(self, _release, self._handle, fd, owned)

    # ------------------------------------------------------------- facts

    @property
    def name(self) -> Path:
        """What was opened."""
        return self._path

    @property
    def mode(self) -> str:
        """How it was opened."""
        return self._mode

    @property
    def closed(self) -> bool:
        return self._handle is None

    @property
    def handle(self) -> int:
        """The CUfileHandle_t, for calls that this package does not make."""
        return self._open_handle("handle")

    def fileno(self) -> int:
        """The descriptor."""
        self._open_handle("fileno")
        return self._fd

    def size(self) -> int:
        """Bytes in the file now."""
        return os.fstat(self.fileno()).st_size

    def __repr__(self) -> str:
        state = "closed" if self.closed else "open"
        return f"<cufile.File {self._name!r}, mode {self._mode!r}, {state}>"

    def _open_handle(self, operation: str) -> int:
        handle = self._handle
        if handle is None:
            raise ValueError(f"{operation} of {self._name}: the file is closed")
        return handle

    # ---------------------------------------------------------- requests

    def read(self, dst: Buffer, size: Optional[int] = None, file_offset: int = 0,
             dst_offset: int = 0, *, exact: bool = False, wait: bool = True) -> int:
        """Reads into an array and returns the bytes read.

        size         bytes; by default as many as fit behind dst_offset
        file_offset  byte in the file to start at
        dst_offset   byte in dst to start at
        exact        return size bytes or raise: EOFError if the file ends
                     before them, else the error that came in between
        wait         first wait for the GPU work that is queued on the array's
                     stream, which might still use or overwrite it

        Fewer bytes than size means the end of the file, or an error after
        these bytes, which a read of the rest then raises.
        """
        memory = describe(dst, True, "destination")
        size = self._check("read", memory, size, file_offset, dst_offset)
        if wait:
            memory.wait()
        return self._read(memory, size, file_offset, dst_offset, exact)

    def write(self, src: Buffer, size: Optional[int] = None, file_offset: int = 0,
              src_offset: int = 0, *, wait: bool = True) -> int:
        """Writes from an array and returns the bytes written.

        size         bytes; by default all behind src_offset
        file_offset  byte in the file to start at
        src_offset   byte in src to start at
        wait         first wait for the GPU work that is queued on the array's
                     stream, so that its results are written
        """
        memory = describe(src, False, "source")
        size = self._check("write", memory, size, file_offset, src_offset)
        if wait:
            memory.wait()
        return self._write(memory, size, file_offset, src_offset)

    def pread(self, dst: Buffer, size: Optional[int] = None, file_offset: int = 0,
              dst_offset: int = 0, *, exact: bool = False,
              wait: bool = True) -> "Future[int]":
        """read() in another thread; returns a future of its result."""
        memory = describe(dst, True, "destination")
        size = self._check("read", memory, size, file_offset, dst_offset)
        if wait:
            memory.wait()
        return self._submit(self._read, memory, size, file_offset, dst_offset,
                            exact)

    def pwrite(self, src: Buffer, size: Optional[int] = None, file_offset: int = 0,
               src_offset: int = 0, *, wait: bool = True) -> "Future[int]":
        """write() in another thread; returns a future of its result."""
        memory = describe(src, False, "source")
        size = self._check("write", memory, size, file_offset, src_offset)
        if wait:
            memory.wait()
        return self._submit(self._write, memory, size, file_offset, src_offset)

    def _check(self, operation: str, memory: Memory, size: Optional[int],
               file_offset: int, offset: int) -> int:
        """The size in bytes, after everything that can be checked here."""
        self._open_handle(operation)
        offset, file_offset = operator.index(offset), operator.index(file_offset)
        if not 0 <= file_offset <= _MAX_OFFSET:
            raise ValueError(f"{operation} of {self._name}: file offset "
                             f"{file_offset} is not in a file")
        if not 0 <= offset <= memory.nbytes:
            raise ValueError(f"{operation} of {self._name}: offset {offset} is "
                             f"not in the array, which has {memory.nbytes} bytes")
        if size is None:
            return memory.nbytes - offset
        size = operator.index(size)
        if size < 0 or size > memory.nbytes - offset:
            raise ValueError(
                f"{operation} of {self._name}: {size} bytes at offset {offset} "
                f"are not in the array, which has {memory.nbytes} bytes")
        return size

    def _read(self, memory: Memory, size: int, file_offset: int, offset: int,
              exact: bool) -> int:
        done = self._read_some(memory, size, file_offset, offset)
        while exact and done < size:  # the next read raises what cut this short
            more = self._read_some(memory, size - done, file_offset + done,
                                   offset + done)
            if not more:
                raise EOFError(
                    f"read of {self._name}: {done} bytes at offset "
                    f"{file_offset} instead of {size}, the file ends there")
            done += more
        return done

    def _read_some(self, memory: Memory, size: int, file_offset: int,
                   offset: int) -> int:
        done = self._library.cuFileRead(self._open_handle("read"), memory.address,
                                        size, file_offset, offset)
        if done < 0:
            raise self._failure("read", done, size, file_offset)
        return int(done)

    def _write(self, memory: Memory, size: int, file_offset: int,
               offset: int) -> int:
        done = self._library.cuFileWrite(self._open_handle("write"),
                                         memory.address, size, file_offset, offset)
        if done < 0:
            raise self._failure("write", done, size, file_offset)
        return int(done)

    def _failure(self, operation: str, result: int, size: int,
                 file_offset: int) -> CuFileError:
        number = ctypes.get_errno() if result == -1 else -result
        # the usual cause: a write to what was opened for reading
        mode = f", opened with mode {self._mode!r}" if number == errno.EBADF else ""
        return CuFileError(f"{operation} of {size} bytes at {file_offset} of "
                           f"{self._name}{mode}", number, path=self._path)

    # ------------------------------------------------------------ futures

    def _own(self) -> None:
        """Futures and lock of this process; a forked child begins anew."""
        self._pid = os.getpid()
        self._futures: Set["Future[int]"] = set()
        self._lock = threading.Lock()

    def _submit(self, call: Callable[..., int], *arguments: Any) -> "Future[int]":
        if self._pid != os.getpid():
            self._own()
        with self._lock:
            self._open_handle("request")
            future = _pool.submit(call, *arguments)
            self._futures.add(future)
        future.add_done_callback(self._forget)
        return future

    def _forget(self, future: "Future[int]") -> None:
        with self._lock:
            self._futures.discard(future)

    # ---------------------------------------------------------------- end

    def close(self) -> None:
        """Waits for running requests, deregisters the file, and closes it.

        In a callback of a future it waits in a thread of the pool. There are 16
        of them: so many callbacks that do so wait for ever if their files have
        requests that no thread has begun.
        """
        if self._pid != os.getpid():
            self._own()
        while True:
            with self._lock:
                if not self._futures:
                    self._handle = None
                    break
                running = list(self._futures)
            wait_for(running)
        self._finalizer()

    def __enter__(self) -> "File":
        self._open_handle("with")
        return self

    def __exit__(self, kind: Optional[Type[BaseException]],
                 error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

# SPDX-License-Identifier: Apache-2.0
"""CuFile and CuFileDriver, the classes of the package cufile-python.

Its programs run as they are. Two things are better: a request that fails
raises, where a huge number came back, and arrays are taken beside addresses.
"""
import ctypes
import os
import threading
import weakref
from types import TracebackType
from typing import Any, Optional, Type, Union

from . import _abi, _library, driver
from ._errors import CuFileError
from ._file import File, open_descriptor
from ._memory import describe

_MODES = {
    "r": os.O_RDONLY,
    "r+": os.O_RDWR,
    "w": os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
    "w+": os.O_RDWR | os.O_CREAT | os.O_TRUNC,
    "a": os.O_WRONLY | os.O_CREAT | os.O_APPEND,
    "a+": os.O_RDWR | os.O_CREAT | os.O_APPEND,
}


def _close_driver(process: int) -> None:
    # a forked child did not open it
    if process == os.getpid():
        driver.close()


class CuFileDriver:
    """Keeps the driver open; there is one, and it lives until the end."""
    _only: Optional["CuFileDriver"] = None
    _lock = threading.Lock()

    def __new__(cls) -> "CuFileDriver":
        with cls._lock:
            if cls._only is None:
                driver.open()
                only = super().__new__(cls)
                weakref.finalize(only, _close_driver, os.getpid())
                cls._only = only
            return cls._only


class CuFile:
    """A file by name, opened by open() or a with."""

    def __init__(self, path: str, mode: str = "r",
                 use_direct_io: bool = False) -> None:
        self._file: Optional[File] = None
        if mode not in _MODES:
            raise KeyError(mode)
        self._driver = CuFileDriver()
        self._path = path
        self._mode = mode
        self._flags = _MODES[mode] | (os.O_DIRECT if use_direct_io else 0)

    @property
    def is_open(self) -> bool:
        return self._file is not None

    def open(self) -> None:
        """Opens and registers; an open one stays as it is."""
        if self._file is not None:
            return
        fd = open_descriptor(self._path, self._flags | os.O_CLOEXEC, 0o777)
        try:
            self._file = File(fd, self._path, self._mode, owned=True)
        except BaseException:
            os.close(fd)
            raise

    def close(self) -> None:
        """Deregisters and closes; a closed one stays as it is."""
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def __enter__(self) -> "CuFile":
        self.open()
        return self

    def __exit__(self, kind: Optional[Type[BaseException]],
                 error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    def read(self, dest: Any, size: int, file_offset: int = 0,
             dev_offset: int = 0) -> int:
        """Reads to dest + dev_offset; dest is an address or an array."""
        return self._move("read", _library.get().cuFileRead, dest, size,
                          file_offset, dev_offset)

    def write(self, src: Any, size: int, file_offset: int = 0,
              dev_offset: int = 0) -> int:
        """Writes from src + dev_offset; src is an address or an array."""
        return self._move("write", _library.get().cuFileWrite, src, size,
                          file_offset, dev_offset)

    def _move(self, verb: str, call: Any, where: Any, size: int,
              file_offset: int, dev_offset: int) -> int:
        file = self._file
        if file is None:
            raise IOError("File is not open.")
        address = _address(where, verb, file, size, file_offset, dev_offset)
        done = call(file.handle, address, _abi.whole(size, ctypes.c_size_t),
                    _abi.whole(file_offset, ctypes.c_int64),
                    _abi.whole(dev_offset, ctypes.c_int64))
        if done < 0:
            number = ctypes.get_errno() if done == -1 else -done
            raise CuFileError(f"{verb} of {size} bytes at {file_offset} of "
                              f"{self._path}", number, path=self._path)
        return int(done)

    def get_handle(self) -> Optional[int]:
        """The descriptor, or None."""
        return None if self._file is None else self._file.fileno()


def _address(where: Union[int, ctypes.c_void_p, Any], verb: str, file: File,
             size: int, file_offset: int, offset: int) -> Optional[int]:
    """An address is taken on trust, an array is checked."""
    if isinstance(where, ctypes.c_void_p):
        return where.value
    if isinstance(where, int) or where is None:
        return where
    memory = describe(where, verb == "read")
    file._check(verb, memory, size, file_offset, offset)
    memory.wait()
    return memory.address

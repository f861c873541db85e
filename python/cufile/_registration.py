# SPDX-License-Identifier: Apache-2.0
"""Registered buffers: never necessary, and quicker only where files reach GPU
memory without a copy."""
import threading
import weakref
from types import TracebackType
from typing import Optional, Type

from . import _library
from ._errors import CuFileError, check
from ._memory import Buffer, describe

_INVALID_VALUE = 5022

# Who registered what is at an address: after the driver's last close, somebody else.
_newest: "weakref.WeakValueDictionary[int, Registration]" = weakref.WeakValueDictionary()


class Registration:
    """A registered range. It keeps its array alive until it is closed, which
    also happens when nobody holds it any more."""

    def __init__(self, buffer: Buffer, flags: int = 0) -> None:
        self._library = _library.get()
        memory = describe(buffer)
        operation = f"registering {memory.nbytes} bytes at {memory.address:#x}"
        # the library ignores flags that it does not know; ctypes would cut them
        if not -1 << 31 <= flags < 1 << 31:
            raise CuFileError(f"{operation} with flags {flags:#x}", _INVALID_VALUE)
        check(self._library.cuFileBufRegister(memory.address, memory.nbytes, flags),
              operation)
        self._memory: Optional[object] = memory
        self.address = memory.address
        self.nbytes = memory.nbytes
        self._lock = threading.Lock()
        _newest[self.address] = self

    @property
    def closed(self) -> bool:
        return self._memory is None

    def close(self) -> None:
        """Deregisters the range; a second call does nothing."""
        with self._lock:
            memory, self._memory = self._memory, None
        if memory is None:
            return
        check(self._library.cuFileBufDeregister(self.address),
              f"deregistering the buffer at {self.address:#x}")

    def __enter__(self) -> "Registration":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]],
                 error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_memory", None) is None:
            return
        if _newest.get(self.address, self) is self:
            # where it fails, as after the driver's last close, nothing is left
            self._library.cuFileBufDeregister(self.address)


def register(buffer: Buffer, flags: int = 0) -> Registration:
    """Registers an array; use it in a with block, or close() the result."""
    return Registration(buffer, flags)

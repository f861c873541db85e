# SPDX-License-Identifier: Apache-2.0
"""Registered buffers: never necessary, and quicker where requests repeat."""
import threading
from types import TracebackType
from typing import Optional, Type

from . import _library
from ._errors import check
from ._memory import Buffer, describe


class Registration:
    """A registered range. Keeps its array alive until it is closed."""

    def __init__(self, buffer: Buffer, flags: int = 0) -> None:
        memory = describe(buffer)
        check(_library.get().cuFileBufRegister(memory.address, memory.nbytes,
                                               flags),
              f"registering {memory.nbytes} bytes at {memory.address:#x}")
        self._memory: Optional[object] = memory
        self.address = memory.address
        self.nbytes = memory.nbytes
        self._lock = threading.Lock()

    @property
    def closed(self) -> bool:
        return self._memory is None

    def close(self) -> None:
        """Deregisters; a second time does nothing."""
        with self._lock:
            memory, self._memory = self._memory, None
        if memory is None:
            return
        check(_library.get().cuFileBufDeregister(self.address),
              f"deregistering the buffer at {self.address:#x}")

    def __enter__(self) -> "Registration":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]],
                 error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()


def register(buffer: Buffer, flags: int = 0) -> Registration:
    """Registers an array; use it in a with, or close() the result."""
    return Registration(buffer, flags)

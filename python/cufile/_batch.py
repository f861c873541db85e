# SPDX-License-Identifier: Apache-2.0
"""Batches: many requests, one call.

    with cufile.Batch(64) as batch:
        for number, tensor in enumerate(tensors):
            batch.read(file, tensor, file_offset=number * size, cookie=number)
        batch.submit()
        for event in batch.wait():
            print(event.cookie, event.nbytes)

A batch keeps the arrays and files of its entries alive until their events are
taken. Any thread may call its methods.
"""
import ctypes
import threading
from types import TracebackType
from typing import Any, Dict, List, NamedTuple, Optional, Set, Type

from . import _abi, _library
from ._errors import CuFileError, check
from ._file import File
from ._memory import Buffer, Memory, describe

_LONGEST = 1 << 31  # seconds


class Event(NamedTuple):
    """How an entry ended.

    cookie  what was given with the entry
    status  "COMPLETE", "FAILED", "CANCELED" ..., the names of CUfileStatus_t
    nbytes  bytes moved; 0 if it failed
    error   the failure, or None
    """
    cookie: Any
    status: str
    nbytes: int
    error: Optional[CuFileError]


class _Entry(NamedTuple):
    opcode: int
    file: File
    memory: Memory
    size: int
    file_offset: int
    offset: int
    cookie: Any

    def fill(self, params: _abi.IOParams, number: int) -> None:
        params.mode = _abi.BATCH_MODE
        params.opcode = self.opcode
        params.fh = self.file.handle
        params.cookie = number
        place = params.u.batch
        place.devPtr_base = self.memory.address
        place.devPtr_offset = self.offset
        place.file_offset = self.file_offset
        place.size = self.size

    def event(self, status: int, result: int) -> Event:
        name = _abi.STATUS_NAMES.get(status, str(status))
        if name == "COMPLETE" and result >= 0:
            return Event(self.cookie, name, result, None)
        verb = "read" if self.opcode == _abi.OPCODE_READ else "write"
        error = CuFileError(f"{verb} of {self.size} bytes at {self.file_offset} of "
                            f"{self.file._name} in a batch", max(-result, 0),
                            path=self.file.name) if result < 0 else None
        return Event(self.cookie, name, 0, error)


class Batch:
    """A batch of at most `capacity` requests at a time."""

    def __init__(self, capacity: int) -> None:
        self._library = _library.get()
        batch = ctypes.c_void_p()
        # a batch needs an open driver, and does not open it itself
        check(self._library.cuFileDriverOpen(), "opening the driver for a batch")
        status = self._library.cuFileBatchIOSetUp(ctypes.byref(batch), capacity)
        if status.err:
            self._library.cuFileDriverClose_v2()
            check(status, f"setting up a batch of {capacity}")
        self.capacity = capacity
        self._batch: Optional[int] = batch.value
        self._queued: List[_Entry] = []
        self._running: Dict[int, _Entry] = {}
        self._next = 1
        # held over the calls that submit, cancel and destroy: what the library
        # has and the tables above change together. Taking an event needs it not.
        self._lock = threading.Lock()

    def _open_batch(self) -> int:
        if self._batch is None:
            raise ValueError("the batch is closed")
        return self._batch

    def read(self, file: File, dst: Buffer, size: Optional[int] = None,
             file_offset: int = 0, dst_offset: int = 0, cookie: Any = None) -> None:
        """Adds a read, which the next submit() starts."""
        memory = describe(dst, True, "destination")
        self._add(_abi.OPCODE_READ, "read", file, memory, size, file_offset,
                  dst_offset, cookie)

    def write(self, file: File, src: Buffer, size: Optional[int] = None,
              file_offset: int = 0, src_offset: int = 0, cookie: Any = None) -> None:
        """Adds a write, which the next submit() starts."""
        memory = describe(src, False, "source")
        self._add(_abi.OPCODE_WRITE, "write", file, memory, size, file_offset,
                  src_offset, cookie)

    def _add(self, opcode: int, verb: str, file: File, memory: Memory,
             size: Optional[int], file_offset: int, offset: int,
             cookie: Any) -> None:
        self._open_batch()
        size = file._check(verb, memory, size, file_offset, offset)
        with self._lock:
            self._queued.append(_Entry(opcode, file, memory, size, file_offset,
                                       offset, cookie))

    def submit(self, *, wait: bool = True) -> int:
        """Starts all entries that were added, or none, and returns their number.

        wait  first wait for the GPU work that is queued on the arrays' streams

        If it raises, the entries stay and can be submitted again, for
        instance after CU_FILE_BATCH_FULL when wait() has made room; cancel()
        drops them.
        """
        with self._lock:
            self._open_batch()
            chosen = list(self._queued)
        if wait:
            for entry in chosen:
                entry.memory.wait()
        return self._start({id(entry) for entry in chosen})

    def _start(self, chosen: Set[int]) -> int:
        with self._lock:
            batch, first = self._open_batch(), self._next
            # a cancel() may have dropped some since
            entries = [each for each in self._queued if id(each) in chosen]
            if not entries:
                return 0
            params = (_abi.IOParams * len(entries))()
            for number, entry in enumerate(entries):
                entry.fill(params[number], first + number)
            self._next += len(entries)
            # their events may come before the call is back
            self._running.update(enumerate(entries, first))
            status = self._library.cuFileBatchIOSubmit(batch, len(entries), params, 0)
            if status.err:
                for number in range(first, self._next):
                    del self._running[number]
            else:
                self._queued = [each for each in self._queued
                                if id(each) not in chosen]
        check(status, f"submitting {len(entries)} entries to a batch of "
                      f"{self.capacity} that has {self.outstanding}")
        return len(entries)

    @property
    def outstanding(self) -> int:
        """How many entries were submitted whose events were not yet taken."""
        return len(self._running)

    def wait(self, min_nr: Optional[int] = None,
             timeout: Optional[float] = None) -> List[Event]:
        """Takes the events of entries that have ended.

        min_nr   wait for so many events; by default for all outstanding ones
        timeout  seconds; below 0: do not wait; None: no limit
        """
        batch, room = self._open_batch(), self.outstanding
        if not room:
            return []
        least = room if min_nr is None else min(min_nr, room)
        taken = ctypes.c_uint(room)
        events = (_abi.IOEvents * room)()
        limit = None
        if timeout is not None:
            # what is left until a time that has passed is below 0
            seconds = min(max(timeout, 0.0), _LONGEST)
            limit = ctypes.byref(_abi.Timespec(int(seconds),
                                               int(seconds % 1 * 1e9)))
        check(self._library.cuFileBatchIOGetStatus(
            batch, least, ctypes.byref(taken), events, limit),
            f"waiting for {least} of {room} entries")
        ended = [(self._running.pop(event.cookie, None), event)
                 for event in events[:taken.value]]
        # None: a cancel() forgot it since
        return [entry.event(event.status, event.ret)
                for entry, event in ended if entry is not None]

    def cancel(self) -> None:
        """Drops entries that have not begun or were not submitted, and waits for
        those that have. No events are left."""
        with self._lock:
            check(self._library.cuFileBatchIOCancel(self._open_batch()),
                  "cancelling a batch")
            dropped = self._forget()
        # not under the lock: arrays may do anything when they go
        del dropped

    def _forget(self) -> Any:
        dropped = self._running, self._queued
        self._running, self._queued = {}, []
        return dropped

    def close(self) -> None:
        """Cancels and frees the batch; a second call does nothing."""
        with self._lock:
            batch, self._batch = self._batch, None
            if batch is None:
                return
            self._library.cuFileBatchIODestroy(batch)
            self._library.cuFileDriverClose_v2()
            dropped = self._forget()
        del dropped

    def __enter__(self) -> "Batch":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]],
                 error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_batch", None) is not None:
            self.close()

# SPDX-License-Identifier: Apache-2.0
"""save_file."""
import os
import struct
import sys
import zlib
from typing import Any, Dict, List, NamedTuple, Optional

from .. import _bulk, _pieces
from .._bulk import ALIGNMENT, THREADS
from .._errors import Path
from .._file import File
from .._memory import Memory, describe
from .._progress import Progress
from ._archive import (END, END64, ENTRY, LOCAL, LOCATOR, MAX_DIRECTORY,
                       MAX_PICKLE)
from ._errors import CheckpointError
from ._leaves import collect, place
from ._write_pickle import Writer

_PREFIX = "archive/"
_LARGE = 0xffffffff
_SMALL_ALIGNMENT = 64
_BLOCK = 8 << 20
_MADE_BY, _NEEDS, _UTF8 = 45, 45, 0x0800


class _Record(NamedTuple):
    """A record of the new file: its header, its first byte."""
    name: bytes
    memory: Memory
    header: int
    begin: int

    def head(self, crc: int) -> bytes:
        nbytes = self.memory.nbytes
        wide = b""
        if nbytes >= _LARGE:
            wide = struct.pack("<HHQQ", 1, 16, nbytes, nbytes)
        # what is left up to the first byte is an extra field of zeros
        room = self.begin - self.header - LOCAL.size - len(self.name) - len(wide)
        fill = struct.pack("<HH", 0x4246, room - 4) + bytes(room - 4)
        small = min(nbytes, _LARGE)
        return LOCAL.pack(b"PK\x03\x04", _NEEDS, _UTF8, 0, 0, 0, crc, small, small,
                           len(self.name), len(wide) + room) + self.name + wide + fill

    def entry(self, crc: int) -> bytes:
        nbytes = self.memory.nbytes
        small, at = min(nbytes, _LARGE), min(self.header, _LARGE)
        wide = struct.pack("<QQ", nbytes, nbytes) if nbytes >= _LARGE else b""
        if self.header >= _LARGE:
            wide += struct.pack("<Q", self.header)
        if wide:
            wide = struct.pack("<HH", 1, len(wide)) + wide
        return ENTRY.pack(b"PK\x01\x02", _MADE_BY, _NEEDS, _UTF8, 0, 0, 0, crc, small,
                           small, len(self.name), len(wide), 0, 0, 0, 0, at
                           ) + self.name + wide


def save_file(value: Any, path: Path, *, crc: bool = True,
              progress: Optional[bool] = None) -> None:
    """Writes tensors in plain containers, in the format of torch.save.

    value  tensors and parameters of PyTorch, arrays of CuPy and NumPy, in
           dicts, OrderedDicts, lists and tuples, with numbers, texts, bytes,
           dtypes, sizes and devices, and sets. Keys, and members of sets, are
           numbers, texts, bytes, None, and tuples of these nested up to eight
           deep. load_file reads all of this; anything else raises
           CheckpointError.
    crc    write checksums, which unzip and its kin verify. PyTorch does not;
           without them the file need not be read back.

    Tensors that overlap share memory again when they are loaded. Memory that no
    tensor shows is not written. torch.load reads the file, with arrays as
    tensors. It is written beside the path and takes its place when it is
    complete, so a failure leaves what was there. It is durable after fsync.
    """
    leaves = collect(value, path)
    pieces, where = place(leaves)
    text = Writer(leaves, where, path).whole(value)
    contents: Dict[str, Any] = {"data.pkl": describe(text),
                                "byteorder": describe(sys.byteorder.encode())}
    contents.update((f"data/{piece.key}", piece.memory) for piece in pieces)
    contents["version"] = describe(b"3\n")
    if len(contents) > 0xffffff:
        raise CheckpointError(path, f"{len(pieces)} tensors are too many")
    records = _places(contents)
    _check_sizes(len(text), records, path)
    with _bulk.replacing(path) as file:
        _bulk.write(file, [_bulk.Source(record.memory, 0, record.memory.nbytes,
                                        record.begin) for record in records], progress)
        sums = _sums(file, records) if crc else [0] * len(records)
        _bulk.write(file, _heads(records, sums), False)


def _check_sizes(pickle: int, records: List[_Record], path: Path) -> None:
    """Only what load_file would take."""
    if pickle > MAX_PICKLE:
        raise CheckpointError(path, f"{pickle} bytes of numbers, texts and bytes are "
                                    f"more than the {MAX_PICKLE} that are allowed")
    directory = sum(len(record.entry(0)) for record in records)
    if directory > MAX_DIRECTORY:
        raise CheckpointError(path, f"{len(records)} records have a directory of "
                                    f"{directory} bytes, longer than the "
                                    f"{MAX_DIRECTORY} that are allowed")


def _places(contents: Dict[str, Memory]) -> List[_Record]:
    records, at = [], 0
    for name, memory in contents.items():
        raw = (_PREFIX + name).encode()
        # room for both extra fields, the shortest of which has four bytes
        begin = at + LOCAL.size + len(raw) + 20 + 4
        unit = ALIGNMENT if memory.nbytes >= ALIGNMENT else _SMALL_ALIGNMENT
        begin += -begin % unit
        records.append(_Record(raw, memory, at, begin))
        at = begin + memory.nbytes
    return records


def _sums(file: File, records: List[_Record]) -> List[int]:
    """The checksums of what was written, read back side by side."""
    sums = [0] * len(records)

    def add(number: int) -> int:
        at = records[number].begin
        stop = at + records[number].memory.nbytes
        while at < stop:
            block = os.pread(file.fileno(), min(_BLOCK, stop - at), at)
            if not block:
                raise CheckpointError(file.name, "became shorter while it was written")
            sums[number] = zlib.crc32(block, sums[number])
            at += len(block)
        return 0

    _pieces.run([lambda number=number: add(number)  # type: ignore[misc]
                 for number in range(len(records))], THREADS, Progress("", 0, False))
    return sums


def _heads(records: List[_Record], sums: List[int]) -> List[_bulk.Source]:
    """Everything that is not the records themselves."""
    heads = [(record.header, record.head(crc)) for record, crc in zip(records, sums)]
    directory = b"".join(record.entry(crc) for record, crc in zip(records, sums))
    begin = records[-1].begin + records[-1].memory.nbytes
    count, size = len(records), len(directory)
    end64 = begin + size
    tail = END64.pack(b"PK\x06\x06", END64.size - 12, _MADE_BY, _NEEDS, 0, 0, count,
                       count, size, begin)
    tail += LOCATOR.pack(b"PK\x06\x07", 0, end64, 1)
    tail += END.pack(b"PK\x05\x06", 0, 0, min(count, 0xffff), min(count, 0xffff),
                      min(size, _LARGE), min(begin, _LARGE), 0)
    heads.append((begin, directory + tail))
    return [_bulk.Source(describe(text), 0, len(text), at) for at, text in heads]

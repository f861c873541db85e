# SPDX-License-Identifier: Apache-2.0
"""The archive that torch.save writes: a zip file whose records are stored as
they are, so that each is a range of the file.

Only the directory at the end is read, and the header in front of each record
that is wanted. Files come from strangers: every number is checked against the
file and its neighbours before it is used.
"""
import struct
from typing import Dict, Iterable, List, NamedTuple, NoReturn, Optional, Tuple

from .. import _bulk, _pieces
from .._file import File
from .._progress import Progress
from ._errors import CheckpointError

MAX_DIRECTORY = 100_000_000
MAX_PICKLE = 256 << 20
END = struct.Struct("<4sHHHHIIH")        # end of the central directory
LOCATOR = struct.Struct("<4sIQI")        # where the 64-bit end stands
END64 = struct.Struct("<4sQHHIIQQQQ")
ENTRY = struct.Struct("<4sHHHHHHIIIHHHHHII")
LOCAL = struct.Struct("<4sHHHHHIIIHH")
_EXTRA = struct.Struct("<HH")
_ENCRYPTED = 0x0001 | 0x0040 | 0x2000
_OLD_FORMAT = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."


class Record(NamedTuple):
    """A record as the directory tells of it; header is where its own header
    begins, limit the end of the room that it has."""
    name: str
    nbytes: int
    header: int
    method: int
    flags: int
    limit: int


class Archive:
    """The directory of an open file."""

    def __init__(self, file: File) -> None:
        self.file, self.path = file, file.name
        self.size = file.size()
        entries, begin = self._directory()
        self.records = self._parse(entries, begin)
        self.prefix = self._find_prefix()

    def _wrong(self, what: str) -> NoReturn:
        raise CheckpointError(self.path, what)

    def _bytes_at(self, count: int, offset: int) -> bytes:
        return _bulk.bytes_at(self.file, count, offset, CheckpointError)

    # --------------------------------------------------------- directory

    def _directory(self) -> Tuple[bytes, int]:
        """The bytes of the directory, and where it begins."""
        tail_at = max(self.size - END.size - 0xffff - LOCATOR.size, 0)
        tail = self._bytes_at(self.size - tail_at, tail_at)
        at = tail.rfind(b"PK\x05\x06")
        while at >= 0 and not self._ends_here(tail, at):
            at = tail.rfind(b"PK\x05\x06", 0, at)
        if at < 0:
            self._no_archive()
        end, stop = END.unpack_from(tail, at), tail_at + at
        disks, count, size, begin = end[1:3], end[4], end[5], end[6]
        large = count == 0xffff or size == 0xffffffff or begin == 0xffffffff
        # PyTorch writes the 64-bit end also where it is not needed
        if large or tail[max(at - LOCATOR.size, 0):at][:4] == b"PK\x06\x07":
            disks, count, size, begin, stop = self._end64(tail, at, stop)
        if disks != (0, 0):
            self._wrong("the archive has parts in other files")
        if size > MAX_DIRECTORY:
            self._wrong(f"a directory of {size} bytes is longer than the "
                        f"{MAX_DIRECTORY} that are allowed")
        if begin + size != stop:
            self._wrong(f"the directory of {size} bytes at {begin} does not end "
                        f"at {stop}, where its own end stands")
        self._count = count
        return self._bytes_at(size, begin), begin

    @staticmethod
    def _ends_here(tail: bytes, at: int) -> bool:
        return (at + END.size <= len(tail) and
                at + END.size + END.unpack_from(tail, at)[7] == len(tail))

    def _no_archive(self) -> NoReturn:
        head = self._bytes_at(min(self.size, 16), 0)
        if head.startswith(_OLD_FORMAT[:14]):
            self._wrong("is in the format before PyTorch 1.6; load it with "
                        "torch.load and save it again")
        if head.startswith(b"PK\x03\x04"):
            self._wrong(f"is cut off: {self.size} bytes without the end of the "
                        "archive")
        self._wrong("is no zip archive, and so no checkpoint of torch.save")

    def _end64(self, tail: bytes, at: int,
               stop: int) -> Tuple[Tuple[int, int], int, int, int, int]:
        at -= LOCATOR.size
        if at < 0 or tail[at:at + 4] != b"PK\x06\x07":
            self._wrong("the directory is said to be large, but no 64-bit end "
                        f"stands before byte {stop}")
        _, disk, place, disks = LOCATOR.unpack_from(tail, at)
        stop -= LOCATOR.size
        if disk != 0 or disks > 1 or place + END64.size > stop:
            self._wrong(f"the 64-bit end of the directory is said to be at "
                        f"{place}, which is not before {stop}")
        end = END64.unpack(self._bytes_at(END64.size, place))
        if end[0] != b"PK\x06\x06" or place + 12 + end[1] != stop:
            self._wrong(f"at {place} there is no 64-bit end of the directory")
        return (end[4], end[5]), end[7], end[8], end[9], place

    def _parse(self, text: bytes, begin: int) -> Dict[str, Record]:
        at, found = 0, []
        while at < len(text):
            record, at = self._entry(text, at, begin)
            found.append(record)
        if len(found) & 0xffff != self._count & 0xffff:
            self._wrong(f"the directory has {len(found)} records, and says that "
                        f"it has {self._count}")
        found.sort(key=lambda record: record.header)
        records: Dict[str, Record] = {}
        limits = [record.header for record in found[1:]] + [begin]
        for record, limit in zip(found, limits):
            if record.name in records:
                self._wrong(f"the record {record.name!r} stands twice")
            if record.header + LOCAL.size + record.nbytes > limit:
                self._wrong(f"record {record.name!r}: its {record.nbytes} bytes "
                            f"at {record.header} reach into what begins at {limit}")
            records[record.name] = record._replace(limit=limit)
        return records

    def _entry(self, text: bytes, at: int, begin: int) -> Tuple[Record, int]:
        if len(text) - at < ENTRY.size or text[at:at + 4] != b"PK\x01\x02":
            self._wrong(f"at {begin + at} there is no entry of the directory")
        row = ENTRY.unpack_from(text, at)
        flags, method, packed, nbytes, header = row[3], row[4], row[8], row[9], row[16]
        name_at = at + ENTRY.size
        extra_at = name_at + row[10]
        comment_at = extra_at + row[11]
        stop = comment_at + row[12]
        if stop > len(text):
            self._wrong(f"the entry at {begin + at} leaves the directory")
        raw = text[name_at:extra_at]
        try:
            name = raw.decode("utf-8")
        except UnicodeDecodeError:
            self._wrong(f"the name {raw!r} is not UTF-8")
        wide = iter(self._wide(name, text[extra_at:comment_at]))
        try:
            nbytes = next(wide) if nbytes == 0xffffffff else nbytes
            packed = next(wide) if packed == 0xffffffff else packed
            header = next(wide) if header == 0xffffffff else header
        except StopIteration:
            self._wrong(f"record {name!r}: has no 64-bit numbers where it needs them")
        if method == 0 and packed != nbytes:
            self._wrong(f"record {name!r}: {packed} bytes are stored of {nbytes}")
        return Record(name, packed, header, method, flags, 0), stop

    def _wide(self, name: str, extra: bytes) -> Tuple[int, ...]:
        at = 0
        while at + _EXTRA.size <= len(extra):
            kind, length = _EXTRA.unpack_from(extra, at)
            at += _EXTRA.size
            if kind == 1 and at + length <= len(extra):
                count = min(length // 8, 3)
                return struct.unpack_from(f"<{count}Q", extra, at)
            at += length
        return ()

    def _find_prefix(self) -> str:
        found = [name for name in self.records
                 if name.endswith("/data.pkl") and name.count("/") == 1]
        if len(found) != 1:
            self._wrong("is a zip archive, but not of torch.save: "
                        f"{len(found)} records are called data.pkl")
        prefix = found[0][:-len("data.pkl")]
        if prefix + "constants.pkl" in self.records:
            self._wrong("is a TorchScript program; torch.jit.load knows it")
        return prefix

    # ----------------------------------------------------------- records

    def find(self, name: str) -> Optional[Record]:
        """The record <prefix>name, stored as it is; None: there is none."""
        record = self.records.get(self.prefix + name)
        if record is None:
            return None
        if record.flags & _ENCRYPTED:
            self._wrong(f"record {record.name!r}: is encrypted")
        if record.method != 0:
            self._wrong(f"record {record.name!r}: is compressed (method "
                        f"{record.method}); torch.save stores records as they are")
        return record

    def start(self, record: Record) -> int:
        """Where the record's bytes begin in the file."""
        head = self._bytes_at(LOCAL.size, record.header)
        row = LOCAL.unpack(head)
        if row[0] != b"PK\x03\x04":
            self._wrong(f"record {record.name!r}: no header at {record.header}")
        begin = record.header + LOCAL.size + int(row[9]) + int(row[10])
        if begin + record.nbytes > record.limit:
            self._wrong(f"record {record.name!r}: its {record.nbytes} bytes at "
                        f"{begin} reach into what begins at {record.limit}")
        return begin

    def starts(self, records: Iterable[Record], threads: int) -> Dict[str, int]:
        """The same for many, side by side: {name: place}."""
        places: Dict[str, int] = {}

        def find(group: List[Record]) -> int:
            for record in group:
                places[record.name] = self.start(record)
            return 0

        wanted = list(records)
        groups = [wanted[i:i + 64] for i in range(0, len(wanted), 64)]
        _pieces.run([lambda group=group: find(group)  # type: ignore[misc]
                     for group in groups], threads, Progress("", 0, False))
        return places

    def content(self, record: Record, at_most: int) -> bytes:
        """All bytes of a small record."""
        if record.nbytes > at_most:
            self._wrong(f"record {record.name!r}: {record.nbytes} bytes are more "
                        f"than the {at_most} that are allowed")
        return self._bytes_at(record.nbytes, self.start(record))

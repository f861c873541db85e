# SPDX-License-Identifier: Apache-2.0
"""Much data between files and blocks of memory, in large pieces side by side.

What the loaders of model files and checkpoints have in common. A span begins
at a multiple of 4096 in its file, so that file and memory have the same
alignment everywhere and a piece needs no copy to put it right.
"""
import contextlib
import errno
import operator
import os
import secrets
import stat
from functools import partial
from typing import (Any, Callable, Iterator, List, Mapping, NamedTuple, Optional,
                    Sequence, Tuple)

from . import _pieces
from ._errors import CuFileError, Path
from ._file import INVALID_FILE_TYPE, File, open as open_file
from ._memory import Memory, describe
from ._progress import Progress

ALIGNMENT = 4096
PIECE = 64 << 20
THREADS = 4


class Span(NamedTuple):
    """Bytes of a file that become a block; shorter(text) makes the error for
    a file that ends before them."""
    file: File
    begin: int
    nbytes: int
    shorter: Callable[[str], Exception]


class Source(NamedTuple):
    """Bytes of memory, and where in the file they go."""
    memory: Memory
    offset: int
    nbytes: int
    place: int


def check_numbers(threads: Any, piece: Any) -> Tuple[int, int]:
    """The two as integers that make sense."""
    threads, piece = operator.index(threads), operator.index(piece)
    if threads < 1 or piece < ALIGNMENT or piece % ALIGNMENT:
        raise ValueError(f"threads={threads} and piece={piece}: at least one "
                         f"thread, and pieces of a multiple of {ALIGNMENT} bytes")
    return threads, piece


def wanted(files: Any, device: Any) -> List[Tuple[Path, Any]]:
    """(path, device) of what load_files is given: paths, or a mapping of paths
    to devices."""
    if isinstance(files, (str, bytes, os.PathLike)):
        raise TypeError("files is one path; load_file takes one")
    if isinstance(files, Mapping):
        return list(files.items())
    return [(path, device) for path in files]


def bytes_at(file: File, count: int, offset: int,
             wrong: Callable[[Path, str], Exception]) -> bytes:
    """Bytes of the file that must be there."""
    # not by os.pread: the file may be open with O_DIRECT
    text = bytearray(count)
    try:
        file.read(text, file_offset=offset, exact=True)
    except EOFError as error:
        raise wrong(file.name, f"became shorter: {error}") from None
    return bytes(text)


def _read_piece(span: Span, memory: Memory, offset: int, size: int) -> int:
    try:
        return span.file.read(memory, size, span.begin + offset, offset,
                              exact=True, wait=False)
    except EOFError as error:
        raise span.shorter(f"became shorter: {error}") from None


def _ranges(nbytes: int, piece: int) -> Iterator[Tuple[int, int]]:
    for offset in range(0, nbytes, piece):
        yield offset, min(piece, nbytes - offset)


def read(spans: Sequence[Span], blocks: Sequence[Any], threads: int, piece: int,
         progress: Optional[bool]) -> None:
    """Reads each span into its block."""
    queues: List[List[_pieces.Piece]] = []
    for span, block in zip(spans, blocks):
        memory = describe(block, True, "block")
        memory.wait()
        queues.append([partial(_read_piece, span, memory, offset, size)
                       for offset, size in _ranges(span.nbytes, piece)])
    total = sum(span.nbytes for span in spans)
    # the spans take turns, so that all devices are busy from the start
    turns = [queue[i] for i in range(max(map(len, queues), default=0))
             for queue in queues if i < len(queue)]
    _pieces.run(turns, threads, Progress("loading", total, progress))


def _write_piece(file: File, memory: Memory, size: int, file_offset: int,
                 offset: int) -> int:
    left = size
    while left:
        done = file.write(memory, left, file_offset, offset, wait=False)
        if not done:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), file.name)
        left, file_offset, offset = left - done, file_offset + done, offset + done
    return size


def write(file: File, sources: Sequence[Source], progress: Optional[bool]) -> None:
    """Writes each source to its place in the file."""
    pieces: List[_pieces.Piece] = []
    end = max((source.place + source.nbytes for source in sources), default=0)
    if os.fstat(file.fileno()).st_size < end:
        # within a file on tmpfs several threads write at once; why it cannot
        # be so long is for the writes to say
        with contextlib.suppress(OSError):
            os.ftruncate(file.fileno(), end)
    for source in sources:
        source.memory.wait()
        pieces += [partial(_write_piece, file, source.memory, size,
                           source.place + offset, source.offset + offset)
                   for offset, size in _ranges(source.nbytes, PIECE)]
    total = sum(source.nbytes for source in sources)
    _pieces.run(pieces, THREADS, Progress("saving", total, progress))


def _stat(target: str) -> Optional[os.stat_result]:
    """Of the file that is to be replaced, if there is one. What is no regular
    file, /dev/null for instance, would be gone for all."""
    try:
        found = os.stat(target)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        raise CuFileError(f"replacing {target}, which is no regular file",
                          INVALID_FILE_TYPE, path=target)
    return found


def _pass_on(found: os.stat_result, path: str) -> None:
    """Owner and permissions of the old file to the new one, as far as one may."""
    with contextlib.suppress(OSError):
        os.chown(path, found.st_uid, found.st_gid)
    with contextlib.suppress(OSError):
        os.chmod(path, found.st_mode & 0o777)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[File]:
    """A file beside the path, which takes its place if the body succeeds."""
    if isinstance(path, int):
        raise TypeError("save_file needs a path, not a descriptor")
    target = os.path.realpath(os.fsdecode(path))
    found = _stat(target)
    # a name of its own, also where others save to this path, and a short one
    partial_path = os.path.join(os.path.dirname(target),
                                f"{secrets.token_hex(8)}.partial")
    # what was not for all to read is not for a moment
    os.close(os.open(partial_path, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC,
                     0o600 if found else 0o666))
    try:
        with open_file(partial_path, "r+") as file:
            yield file
        if found:
            _pass_on(found, partial_path)
        os.replace(partial_path, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(partial_path)
        raise

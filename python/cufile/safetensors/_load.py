# SPDX-License-Identifier: Apache-2.0
"""load_file and load_files.

Each file becomes one block of memory, and its tensors are views of it. A
block begins at a multiple of 4096 in the file, so that file and memory have
the same alignment everywhere and a piece needs no copy to put it right.
"""
import contextlib
import operator
from functools import partial
from typing import (Any, Dict, Iterable, Iterator, List, Mapping, NamedTuple,
                    Optional, Sequence, Tuple, Union)

from .._errors import Path
from .._file import File, open as open_file
from .._memory import Memory, describe
from .._progress import Progress
from . import _pieces
from ._frameworks import Framework, choose
from ._header import Header, SafetensorsError, read_header

ALIGNMENT = 4096
PIECE = 64 << 20
THREADS = 4


class _Part(NamedTuple):
    """A file that is being loaded."""
    path: Path
    file: File
    header: Header
    device: Any

    @property
    def begin(self) -> int:
        """Where the block begins in the file."""
        return self.header.data_start // ALIGNMENT * ALIGNMENT

    @property
    def nbytes(self) -> int:
        return self.header.data_start + self.header.data_bytes - self.begin


def load_file(path: Path, device: Any = "cpu", *, framework: Any = None,
              direct: bool = False, threads: int = THREADS, piece: int = PIECE,
              progress: Optional[bool] = None) -> Dict[str, Any]:
    """The tensors of a safetensors file by name, on a device.

    device     of PyTorch, as "cuda:0"; NumPy has "cpu" alone
    framework  "torch" or "numpy"; by default PyTorch where it is installed
    direct     with O_DIRECT: the page cache stays as it is
    threads    how many pieces are read at a time
    piece      bytes of a request
    progress   a bar on standard error; by default on a terminal, for long work

    The tensors are views of one block of memory, which lives as long as one of
    them. Raises SafetensorsError for a file that is not right, before anything
    is allocated, and OSError where reading fails.
    """
    return load_files([path], device, framework=framework, direct=direct,
                      threads=threads, piece=piece, progress=progress)


def load_files(files: Union[Sequence[Path], Mapping[Path, Any]],
               device: Any = "cpu", *, framework: Any = None,
               direct: bool = False, threads: int = THREADS, piece: int = PIECE,
               progress: Optional[bool] = None) -> Dict[str, Any]:
    """The tensors of several files by name, all files read side by side.

    files   paths, which all go to `device`; or a mapping of paths to devices,
            for several GPUs

    Everything else is as for load_file. A name that two files have is an error.
    """
    if isinstance(files, (str, bytes)):
        raise TypeError("files is one path; load_file takes one")
    devices = dict(files) if isinstance(files, Mapping) else None
    wanted = (list(devices.items()) if devices is not None
              else [(path, device) for path in files])
    threads, piece = operator.index(threads), operator.index(piece)
    if threads < 1 or piece < ALIGNMENT or piece % ALIGNMENT:
        raise ValueError(f"threads={threads} and piece={piece}: at least one "
                         f"thread, and pieces of a multiple of {ALIGNMENT} bytes")
    maker = choose(framework)
    with contextlib.ExitStack() as stack:
        parts = [_open(stack, path, where, direct) for path, where in wanted]
        _check(parts, maker)
        blocks = [maker.empty(part.nbytes, part.device) for part in parts]
        _read(parts, blocks, threads, piece, progress)
    return dict(_views(parts, blocks, maker))


def _open(stack: contextlib.ExitStack, path: Path, device: Any,
          direct: bool) -> _Part:
    file = stack.enter_context(open_file(path, direct=direct))
    return _Part(path, file, read_header(file), device)


def _check(parts: Iterable[_Part], maker: Framework) -> None:
    """What is wrong with the files together, before there is any block."""
    seen: Dict[str, Path] = {}
    for part in parts:
        for tensor in part.header.tensors:
            reason = maker.check(tensor)
            if reason:
                raise SafetensorsError(part.path,
                                       f"tensor {tensor.name!r}: {reason}")
            if tensor.name in seen:
                raise SafetensorsError(part.path, f"tensor {tensor.name!r}: is in "
                                                  f"{seen[tensor.name]!r} too")
            seen[tensor.name] = part.path


def _read_piece(part: _Part, memory: Memory, offset: int, size: int) -> int:
    try:
        return part.file.read(memory, size, part.begin + offset, offset,
                              exact=True, wait=False)
    except EOFError as error:
        raise SafetensorsError(part.path, f"became shorter: {error}") from None


def _ranges(nbytes: int, piece: int) -> Iterator[Tuple[int, int]]:
    for offset in range(0, nbytes, piece):
        yield offset, min(piece, nbytes - offset)


def _read(parts: List[_Part], blocks: List[Any], threads: int, piece: int,
          progress: Optional[bool]) -> None:
    queues: List[List[_pieces.Piece]] = []
    for part, block in zip(parts, blocks):
        memory = describe(block, True, "block")
        memory.wait()
        queues.append([partial(_read_piece, part, memory, offset, size)
                       for offset, size in _ranges(part.nbytes, piece)])
    total = sum(part.nbytes for part in parts)
    # the files take turns, so that all devices are busy from the start
    turns = [queue[i] for i in range(max(map(len, queues), default=0))
             for queue in queues if i < len(queue)]
    _pieces.run(turns, threads, Progress("loading", total, progress))


def _views(parts: List[_Part], blocks: List[Any],
           maker: Framework) -> Iterator[Tuple[str, Any]]:
    for part, block in zip(parts, blocks):
        skip = part.header.data_start - part.begin
        for tensor in part.header.tensors:
            yield tensor.name, maker.view(block, skip + tensor.start, tensor)

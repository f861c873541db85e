# SPDX-License-Identifier: Apache-2.0
"""load_file and load_files: each file becomes one block of memory, and its
tensors are views of it."""
import contextlib
from functools import partial
from typing import (Any, Dict, Iterable, Iterator, List, Mapping, NamedTuple,
                    Optional, Sequence, Tuple, Union)

from .. import _bulk
from .._bulk import ALIGNMENT, PIECE, THREADS
from .._errors import Path
from .._file import File, open as open_file
from ._frameworks import Framework, choose
from ._header import Header, SafetensorsError, read_header


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

    device     a device of PyTorch, such as "cuda:0"; NumPy has only "cpu"
    framework  "torch" or "numpy"; by default PyTorch if it is installed
    direct     read with O_DIRECT, which leaves the page cache as it is
    threads    how many pieces are read at a time
    piece      bytes of a request
    progress   a bar on standard error; by default on a terminal, for long work

    The tensors are views of one block of memory, which lives as long as any of
    them. Raises SafetensorsError for an invalid file, before anything is
    allocated, and OSError if reading fails.
    """
    return load_files([path], device, framework=framework, direct=direct,
                      threads=threads, piece=piece, progress=progress)


def load_files(files: Union[Sequence[Path], Mapping[Path, Any]],
               device: Any = "cpu", *, framework: Any = None,
               direct: bool = False, threads: int = THREADS, piece: int = PIECE,
               progress: Optional[bool] = None,
               expected: Optional[Mapping[Path, Iterable[str]]] = None
               ) -> Dict[str, Any]:
    """The tensors of several files by name, all files read side by side.

    files     paths, all for `device`; or a mapping of paths to devices, for
              several GPUs
    expected  {path: names of tensors} that the files must have

    Everything else is as for load_file. Two files with a tensor of the same name
    are an error.
    """
    wanted = _bulk.wanted(files, device)
    threads, piece = _bulk.check_numbers(threads, piece)
    maker = choose(framework)
    with contextlib.ExitStack() as stack:
        parts = [_open(stack, path, where, direct) for path, where in wanted]
        _check(parts, maker)
        _check_expected(parts, expected or {})
        blocks = [maker.empty(part.nbytes, part.device) for part in parts]
        spans = [_bulk.Span(part.file, part.begin, part.nbytes,
                            partial(SafetensorsError, part.path)) for part in parts]
        _bulk.read(spans, blocks, threads, piece, progress)
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


def _check_expected(parts: Iterable[_Part],
                    expected: Mapping[Path, Iterable[str]]) -> None:
    for part in parts:
        there = {tensor.name for tensor in part.header.tensors}
        for name in expected.get(part.path, ()):
            if name not in there:
                raise SafetensorsError(part.path, f"tensor {name!r}: is not there, "
                                                  "but should be")


def _views(parts: List[_Part], blocks: List[Any],
           maker: Framework) -> Iterator[Tuple[str, Any]]:
    for part, block in zip(parts, blocks):
        skip = part.header.data_start - part.begin
        for tensor in part.header.tensors:
            yield tensor.name, maker.view(block, skip + tensor.start, tensor)

# SPDX-License-Identifier: Apache-2.0
"""load_file and load_files: each file becomes one block of memory, or as many as
it takes to hold those tensors that are wanted, and these are views of it."""
import contextlib
from functools import partial
from typing import (Any, Callable, Collection, Dict, Iterable, Iterator, List, Mapping,
                    NamedTuple, Optional, Sequence, Tuple, Union)

from .. import _bulk
from .._bulk import ALIGNMENT, PIECE, THREADS
from .._errors import Path
from .._file import File, open as open_file
from ._frameworks import Framework, choose
from ._header import Header, SafetensorsError, Tensor, read_header

Only = Union[None, Collection[str], Callable[[str], bool]]
_GAP = 64 << 10  # bytes that nobody wants and that are read along


class _Source(NamedTuple):
    """A file that is being loaded."""
    path: Path
    file: File
    header: Header
    device: Any


class _Part(NamedTuple):
    """Tensors of a file side by side, and where their bytes are in it."""
    source: _Source
    tensors: List[Tensor]
    start: int
    stop: int

    @property
    def begin(self) -> int:
        """Where the block begins in the file."""
        return self.start // ALIGNMENT * ALIGNMENT

    @property
    def nbytes(self) -> int:
        return self.stop - self.begin


def load_file(path: Path, device: Any = "cpu", *, only: Only = None,
              framework: Any = None,
              direct: bool = False, threads: int = THREADS, piece: int = PIECE,
              progress: Optional[bool] = None) -> Dict[str, Any]:
    """The tensors of a safetensors file by name, on a device.

    device     a device of PyTorch, such as "cuda:0"; NumPy has only "cpu"
    only       the names of the tensors to load, or a function that tells whether
               to load the one of a name; by default all
    framework  "torch" or "numpy"; by default PyTorch if it is installed
    direct     read with O_DIRECT, which leaves the page cache as it is
    threads    how many pieces are read at a time
    piece      bytes of a request
    progress   a bar on standard error; by default on a terminal, for long work

    The tensors are views of one block of memory, which lives as long as any of
    them; with `only`, of one block for those that are side by side. Raises SafetensorsError for an invalid file, before anything is
    allocated, and OSError if reading fails.
    """
    return load_files([path], device, only=only, framework=framework, direct=direct,
                      threads=threads, piece=piece, progress=progress)


def load_files(files: Union[Sequence[Path], Mapping[Path, Any]],
               device: Any = "cpu", *, only: Only = None, framework: Any = None,
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
    chosen = choice(only)
    maker = choose(framework)
    with contextlib.ExitStack() as stack:
        sources = [_open(stack, path, where, direct) for path, where in wanted]
        _check_expected(sources, expected or {})
        if only is not None and not callable(only):
            _check_all_there(sources, only)
        parts = [part for source in sources for part in _parts(source, chosen)]
        _check(parts, maker)
        blocks = [maker.empty(part.nbytes, part.source.device) for part in parts]
        spans = [_bulk.Span(part.source.file, part.begin, part.nbytes,
                            partial(SafetensorsError, part.source.path))
                 for part in parts]
        _bulk.read(spans, blocks, threads, piece, progress)
    return dict(_views(parts, blocks, maker))


def choice(only: Only) -> Optional[Callable[[str], bool]]:
    """The function that `only` is or stands for; None: all are wanted."""
    if only is None or callable(only):
        return only
    if isinstance(only, (str, bytes)):
        raise TypeError("only is one name; give a list of names")
    return frozenset(only).__contains__


def _open(stack: contextlib.ExitStack, path: Path, device: Any,
          direct: bool) -> _Source:
    file = stack.enter_context(open_file(path, direct=direct))
    return _Source(path, file, read_header(file), device)


def _parts(source: _Source,
           chosen: Optional[Callable[[str], bool]]) -> Iterator[_Part]:
    """All of the file; or the chosen tensors, in runs of neighbours."""
    header = source.header
    if chosen is None:
        yield _Part(source, header.tensors, header.data_start,
                    header.data_start + header.data_bytes)
        return
    run: List[Tensor] = []
    for tensor in [each for each in header.tensors if chosen(each.name)]:
        if run and tensor.start - run[-1].stop > _GAP:
            yield _run(source, run)
            run = []
        run.append(tensor)
    if run:
        yield _run(source, run)


def _run(source: _Source, tensors: List[Tensor]) -> _Part:
    start = source.header.data_start
    return _Part(source, tensors, start + tensors[0].start, start + tensors[-1].stop)


def _check(parts: Iterable[_Part], maker: Framework) -> None:
    """What is wrong with the files together, before there is any block."""
    seen: Dict[str, Path] = {}
    for part in parts:
        path = part.source.path
        for tensor in part.tensors:
            reason = maker.check(tensor)
            if reason:
                raise SafetensorsError(path, f"tensor {tensor.name!r}: {reason}")
            if tensor.name in seen:
                raise SafetensorsError(path, f"tensor {tensor.name!r}: is in "
                                             f"{seen[tensor.name]!r} too")
            seen[tensor.name] = path


def _check_expected(sources: Iterable[_Source],
                    expected: Mapping[Path, Iterable[str]]) -> None:
    for source in sources:
        there = {tensor.name for tensor in source.header.tensors}
        for name in expected.get(source.path, ()):
            if name not in there:
                raise SafetensorsError(source.path, f"tensor {name!r}: is not there, "
                                                    "but should be")


def _check_all_there(sources: Sequence[_Source], names: Collection[str]) -> None:
    there = {tensor.name for source in sources for tensor in source.header.tensors}
    for name in names:
        if name not in there:
            path = sources[0].path if sources else ""
            raise SafetensorsError(path, f"tensor {name!r}: is in none of "
                                         f"{len(sources)} files, but wanted")


def _views(parts: List[_Part], blocks: List[Any],
           maker: Framework) -> Iterator[Tuple[str, Any]]:
    for part, block in zip(parts, blocks):
        skip = part.source.header.data_start - part.begin
        for tensor in part.tensors:
            yield tensor.name, maker.view(block, skip + tensor.start, tensor)

# SPDX-License-Identifier: Apache-2.0
"""load_file and load_files: the records of a file become a few blocks of
memory, mostly one, and its tensors are views of them."""
import contextlib
import sys
from functools import partial
from typing import (Any, Dict, Iterator, List, Mapping, NamedTuple, NoReturn,
                    Optional, Sequence, Tuple, Union)

from .. import _bulk
from .._bulk import ALIGNMENT, PIECE, THREADS
from .._errors import Path
from .._file import File, open as open_file
from ._archive import MAX_PICKLE, Archive, Record
from ._errors import CheckpointError
from ._frameworks import Framework, choose
from ._pickle import Machine
from ._plan import Plan, Values
from ._values import Builder

# records with less between them are read together
_NEAR = 1 << 20


class _Run(NamedTuple):
    """Records that follow each other: {key: (first byte, byte behind)} of the
    file. A block for them begins at a multiple of 4096."""
    begin: int
    stop: int
    places: Dict[str, Tuple[int, int]]


class _Checkpoint:
    """A file that is being loaded."""

    def __init__(self, file: File, device: Any, maker: Framework,
                 threads: int) -> None:
        self.file, self.path, self.device, self.maker = file, file.name, device, maker
        archive = Archive(file)
        self._check_order(archive)
        self._name = f"{archive.prefix}data.pkl"
        record = archive.find("data.pkl")
        assert record is not None
        self._text = archive.content(record, MAX_PICKLE)
        plan = Plan(archive, maker)
        self._run(plan)
        starts = archive.starts(plan.records.values(), threads)
        self.runs = list(_runs(plan.records, starts))

    def _check_order(self, archive: Archive) -> None:
        record = archive.find("byteorder")
        order = b"little" if record is None else archive.content(record, 100)
        if order.decode("latin1") != sys.byteorder:
            raise CheckpointError(self.path, f"has numbers of byte order {order!r}, "
                                             f"this machine has {sys.byteorder}")

    def _wrong(self, at: int, what: str) -> NoReturn:
        raise CheckpointError(self.path, f"{self._name}, byte {at}: {what}")

    def _run(self, builder: Builder) -> Any:
        return Machine(self._text, builder, self._wrong).load()

    def spans(self) -> List[_bulk.Span]:
        return [_bulk.Span(self.file, run.begin, run.stop - run.begin,
                           partial(CheckpointError, self.path)) for run in self.runs]

    def values(self, blocks: Sequence[Any]) -> Any:
        """What was saved, out of the blocks of the runs."""
        where = {key: (block, run.begin, place)
                 for run, block in zip(self.runs, blocks)
                 for key, place in run.places.items()}

        def bytes_of(key: str) -> Any:
            block, begin, (first, stop) = where[key]
            return self.maker.storage(block, first - begin, stop - begin)

        return self._run(Values(self.maker, bytes_of))


def _runs(records: Dict[str, Record], starts: Dict[str, int]) -> Iterator[_Run]:
    places = sorted((starts[record.name], starts[record.name] + record.nbytes, key)
                    for key, record in records.items())
    run = None
    for first, stop, key in places:
        if run is None or first > run.stop + _NEAR:
            if run is not None:
                yield run
            run = _Run(first // ALIGNMENT * ALIGNMENT, stop, {})
        run.places[key] = (first, stop)
        run = run._replace(stop=stop)
    if run is not None:
        yield run


def load_file(path: Path, device: Any = "cpu", *, framework: Any = None,
              direct: bool = False, threads: int = THREADS, piece: int = PIECE,
              progress: Optional[bool] = None) -> Any:
    """What torch.save put into a file, with its tensors on a device.

    device     a device of PyTorch, such as "cuda:0"; NumPy has only "cpu"
    framework  "torch" or "numpy"; by default PyTorch if it is installed
    direct     read with O_DIRECT, which leaves the page cache as it is
    threads    how many pieces are read at a time
    piece      bytes of a request
    progress   a bar on standard error; by default on a terminal, for long work

    No code in the file is run. It may only contain tensors and parameters in
    dicts, lists, tuples and sets, with numbers, texts, bytes, dtypes, sizes and
    devices. Anything else raises CheckpointError, before anything is allocated.
    Raises OSError if reading fails. Tensors that shared memory share it again,
    and all are views of one block, which lives as long as any of them.
    """
    return load_files([path], device, framework=framework, direct=direct,
                      threads=threads, piece=piece, progress=progress)[0]


def load_files(files: Union[Sequence[Path], Mapping[Path, Any]],
               device: Any = "cpu", *, framework: Any = None,
               direct: bool = False, threads: int = THREADS, piece: int = PIECE,
               progress: Optional[bool] = None) -> List[Any]:
    """The contents of several files, in their order, all read side by side.

    files   paths, all for `device`; or a mapping of paths to devices, for
            several GPUs

    Everything else is as for load_file.
    """
    wanted = _bulk.wanted(files, device)
    threads, piece = _bulk.check_numbers(threads, piece)
    maker = choose(framework)
    stack = contextlib.ExitStack()
    with stack:
        parts = [_Checkpoint(stack.enter_context(open_file(path, direct=direct)),
                             where, maker, threads) for path, where in wanted]
        blocks = [[maker.empty(span.nbytes, part.device) for span in part.spans()]
                  for part in parts]
        _bulk.read([span for part in parts for span in part.spans()],
                   [block for each in blocks for block in each], threads, piece,
                   progress)
    return [part.values(each) for part, each in zip(parts, blocks)]

# SPDX-License-Identifier: Apache-2.0
"""Statistics of the process, as dictionaries.

    with cufile.stats.counting() as counts:
        ...
    print(counts()["read_bytes"])
"""
import contextlib
import ctypes
from typing import Any, Callable, Dict, Iterator

from . import _abi, _library
from ._errors import check


def start(level: int = 1) -> None:
    """Begins to count: 1 totals, 2 and sizes, 3 and each GPU."""
    check(_library.get().cuFileSetStatsLevel(level),
          f"setting the statistics' level to {level}")
    check(_library.get().cuFileStatsStart(), "starting the statistics")


def stop() -> None:
    """Stops counting; the numbers stay readable."""
    check(_library.get().cuFileStatsStop(), "stopping the statistics")


def reset() -> None:
    """Puts all numbers back to zero."""
    check(_library.get().cuFileStatsReset(), "resetting the statistics")


def level() -> int:
    """How much is counted."""
    got = ctypes.c_int()
    check(_library.get().cuFileGetStatsLevel(ctypes.byref(got)),
          "reading the statistics' level")
    return got.value


def _plain(value: Any) -> Any:
    if isinstance(value, _abi.OpCounter):
        return {"ok": value.ok, "err": value.err}
    if isinstance(value, ctypes.Array):
        return [_plain(element) for element in value]
    if isinstance(value, _abi.PerGpuStats):
        gpu = _fields_of(value)
        # the field ends at a zero byte for ctypes, the identity does not
        gpu["uuid"] = ctypes.string_at(ctypes.addressof(value), 16).hex()
        return gpu
    return value


def _fields_of(structure: ctypes.Structure) -> Dict[str, Any]:
    return {field[0]: _plain(getattr(structure, field[0]))
            for field in structure._fields_}


def read() -> Dict[str, Any]:
    """The numbers so far, as many as the level has."""
    library, depth = _library.get(), level()
    got = _abi.StatsLevel3()
    detailed, basic = got.detailed, got.detailed.basic
    calls: Dict[int, Any] = {3: (library.cuFileGetStatsL3, got),
                             2: (library.cuFileGetStatsL2, detailed)}
    call, structure = calls.get(depth, (library.cuFileGetStatsL1, basic))
    check(call(ctypes.byref(structure)), "reading the statistics")
    numbers = _fields_of(basic)
    if depth >= 2:
        for name in ("read_size_kb_hist", "write_size_kb_hist"):
            numbers[name] = _plain(getattr(detailed, name))
    if depth >= 3:
        gpus = min(got.num_gpus, len(got.per_gpu_stats))
        numbers["gpus"] = [_plain(got.per_gpu_stats[i]) for i in range(gpus)]
    return numbers


@contextlib.contextmanager
def counting(level: int = 1) -> Iterator[Callable[[], Dict[str, Any]]]:
    """Counts from zero inside a with; what it gives reads the numbers."""
    start(level)
    reset()
    try:
        yield read
    finally:
        stop()

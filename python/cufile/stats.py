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
    """Starts counting: 1 totals, 2 also sizes, 3 also each GPU."""
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
    names = [field[0] for kind in reversed(type(structure).__mro__)
             for field in vars(kind).get("_fields_", ())]
    return {name: _plain(getattr(structure, name)) for name in names}


_UNTOUCHED = b"\xff" * ctypes.sizeof(_abi.StatsLevel1Of119)


def _fills_119() -> bool:
    """Nothing but what a call fills tells which structs a library has."""
    room = ctypes.create_string_buffer(_UNTOUCHED, len(_UNTOUCHED))
    check(_library.get().cuFileGetStatsL1(room), "reading the statistics")
    known = ctypes.sizeof(_abi.StatsLevel1)
    return room.raw[known:] != _UNTOUCHED[known:]


def read() -> Dict[str, Any]:
    """The numbers so far, as many as the level has."""
    library, depth = _library.get(), level()
    got = _abi.StatsLevel3Of119() if _fills_119() else _abi.StatsLevel3()
    calls = {3: library.cuFileGetStatsL3, 2: library.cuFileGetStatsL2}
    call = calls.get(depth, library.cuFileGetStatsL1)
    check(call(ctypes.byref(got)), "reading the statistics")
    numbers = _fields_of(got.detailed.basic)
    if depth >= 2:
        for name in ("read_size_kb_hist", "write_size_kb_hist"):
            numbers[name] = _plain(getattr(got.detailed, name))
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

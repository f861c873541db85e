# SPDX-License-Identifier: Apache-2.0
"""The driver: open and close, properties, parameters.

The library opens the driver when it is first used, so none of this is necessary.
"""
import ctypes
import os
from typing import Any, Dict, Iterator, MutableMapping, NamedTuple, Tuple, Union

from . import _abi, _library
from ._errors import CuFileError, check

Value = Union[int, bool, str]
_TEXT_BYTES = 4096


class Properties(NamedTuple):
    """cuFileDriverGetProperties; sizes in KiB."""
    nvfs_version: Tuple[int, int]
    poll_thresh_size: int
    max_direct_io_size: int
    storage_flags: int
    control_flags: int
    feature_flags: int
    max_device_cache_size: int
    per_buffer_cache_size: int
    max_device_pinned_mem_size: int
    max_batch_io_size: int
    max_batch_io_timeout_msecs: int

    @property
    def has_batches(self) -> bool:
        return bool(self.feature_flags & 1 << 1)

    @property
    def has_streams(self) -> bool:
        return bool(self.feature_flags & 1 << 2)


def open() -> None:
    """Opens the driver, or counts one more user."""
    check(_library.get().cuFileDriverOpen(), "opening the driver")


def close() -> None:
    """Counts one user less; the last one closes the driver."""
    check(_library.get().cuFileDriverClose_v2(), "closing the driver")


def use_count() -> int:
    """The number of users of the driver."""
    return int(_library.get().cuFileUseCount())


def properties() -> Properties:
    """The properties in force."""
    got = _abi.DrvProps()
    check(_library.get().cuFileDriverGetProperties(ctypes.byref(got)),
          "reading the driver's properties")
    nvfs = got.nvfs
    return Properties(
        (nvfs.major_version, nvfs.minor_version), nvfs.poll_thresh_size,
        nvfs.max_direct_io_size, nvfs.dstatusflags, nvfs.dcontrolflags,
        got.fflags, got.max_device_cache_size, got.per_buffer_cache_size,
        got.max_device_pinned_mem_size, got.max_batch_io_size,
        got.max_batch_io_timeout_msecs)


def set_poll_mode(poll: bool, threshold_kib: int) -> None:
    check(_library.get().cuFileDriverSetPollMode(poll, threshold_kib),
          f"setting the poll mode to {poll}, {threshold_kib} KiB")


def set_max_direct_io_size(kib: int) -> None:
    check(_library.get().cuFileDriverSetMaxDirectIOSize(kib),
          f"setting the largest direct request to {kib} KiB")


def set_max_cache_size(kib: int) -> None:
    check(_library.get().cuFileDriverSetMaxCacheSize(kib),
          f"setting the cache of a GPU to {kib} KiB")


def set_max_pinned_mem_size(kib: int) -> None:
    check(_library.get().cuFileDriverSetMaxPinnedMemSize(kib),
          f"setting the pinned memory of a GPU to {kib} KiB")


class Parameters(MutableMapping[str, Value]):
    """The parameters by name: the names of cufile.h without CUFILE_PARAM_, in any
    case. Set them before the driver is opened; they hold for the next open. A
    loop skips those for which the library has no value."""

    _kinds: Dict[str, Tuple[str, int]] = {
        name: (kind, number)
        for kind, names in (("SizeT", _abi.SIZE_PARAMETERS),
                            ("Bool", _abi.BOOL_PARAMETERS),
                            ("String", _abi.STRING_PARAMETERS))
        for number, name in enumerate(names)}

    def _find(self, name: str) -> Tuple[str, str, int]:
        plain = name.upper()
        if plain.startswith("CUFILE_PARAM_"):
            plain = plain[len("CUFILE_PARAM_"):]
        if plain not in self._kinds:
            raise KeyError(name)
        return (plain, *self._kinds[plain])

    def __getitem__(self, name: str) -> Value:
        plain, kind, number = self._find(name)
        call = getattr(_library.get(), f"cuFileGetParameter{kind}")
        what = f"reading the parameter {plain}"
        if kind == "String":
            text = ctypes.create_string_buffer(_TEXT_BYTES)
            check(call(number, text, _TEXT_BYTES), what)
            return os.fsdecode(text.value)
        value: Any = ctypes.c_size_t() if kind == "SizeT" else ctypes.c_bool()
        check(call(number, ctypes.byref(value)), what)
        got: Value = value.value
        return got

    def __setitem__(self, name: str, value: Value) -> None:
        plain, kind, number = self._find(name)
        wanted: Any = {"SizeT": int, "Bool": bool, "String": str}[kind]
        if type(value) is not wanted:
            raise TypeError(f"the parameter {plain} is of type "
                            f"{wanted.__name__}, not {type(value).__name__}")
        if ("\0" in value if isinstance(value, str)
                else not 0 <= value < 1 << 64):
            raise ValueError(f"the parameter {plain} cannot be {value!r}")
        call = getattr(_library.get(), f"cuFileSetParameter{kind}")
        # some are names of files
        check(call(number, os.fsencode(value) if isinstance(value, str) else value),
              f"setting the parameter {plain} to {value!r}")

    def __delitem__(self, name: str) -> None:
        raise TypeError("a parameter can be set, not removed")

    def __iter__(self) -> Iterator[str]:
        for name in self._kinds:
            try:
                self[name]
            except CuFileError:
                continue
            yield name

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def bounds(self, name: str) -> Tuple[int, int]:
        """Least and greatest value of a number; 0 as the greatest: no limit."""
        plain, kind, number = self._find(name)
        if kind != "SizeT":
            raise TypeError(f"the parameter {plain} is no number")
        least, greatest = ctypes.c_size_t(), ctypes.c_size_t()
        check(_library.get().cuFileGetParameterMinMaxValue(
            number, ctypes.byref(least), ctypes.byref(greatest)),
            f"reading the bounds of {plain}")
        return least.value, greatest.value


parameters = Parameters()

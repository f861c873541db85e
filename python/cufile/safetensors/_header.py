# SPDX-License-Identifier: Apache-2.0
"""The header of a safetensors file, and everything that can be wrong with it.

A file is eight bytes with the header's length (little end first), the header
(JSON: a name to dtype, shape and data_offsets), and the data. Files come from
strangers, so the header is checked whole before anything is allocated: every
tensor has the bytes that its shape needs, inside the data, and together they
cover the data without gap or overlap.
"""
import json
from typing import Any, Dict, List, NamedTuple, Tuple

from .. import _dtypes
from .._bulk import bytes_at
from .._errors import FormatError, Path
from .._file import File

MAX_HEADER = 100_000_000
MAX_DIMENSIONS = 32
_MAX_DIGITS = 19
_MAX_ROOM = (1 << 63) - 1

# dtype: its name in _dtypes.py
NAMES = {"BOOL": "bool", "U8": "uint8", "I8": "int8", "I16": "int16",
         "U16": "uint16", "F16": "float16", "BF16": "bfloat16", "I32": "int32",
         "U32": "uint32", "F32": "float32", "I64": "int64", "U64": "uint64",
         "F64": "float64", "C64": "complex64", "F8_E5M2": "float8_e5m2",
         "F8_E4M3": "float8_e4m3fn", "F8_E8M0": "float8_e8m0fnu",
         "F8_E4M3FNUZ": "float8_e4m3fnuz", "F8_E5M2FNUZ": "float8_e5m2fnuz"}

# dtype: bytes of an element
DTYPES = {dtype: _dtypes.DTYPES[name] for dtype, name in NAMES.items()}


class SafetensorsError(FormatError):
    """A file is no safetensors file, or not one that can be loaded.

    The message names the file, the tensor if it is about one, and the numbers.
    """


class Tensor(NamedTuple):
    """A tensor in a file; start and stop count from the file's data."""
    name: str
    dtype: str
    shape: Tuple[int, ...]
    start: int
    stop: int


class Header(NamedTuple):
    """tensors in the order of their bytes; data_start is a file offset."""
    tensors: List[Tensor]
    metadata: Dict[str, str]
    data_start: int
    data_bytes: int


def read_header(file: File) -> Header:
    """The header of an open file, checked against the file's size."""
    path, size = file.name, file.size()
    if size < 8:
        raise SafetensorsError(path, f"{size} bytes are too few for a header")
    length = int.from_bytes(bytes_at(file, 8, 0, SafetensorsError), "little")
    if length > MAX_HEADER:
        raise SafetensorsError(path, f"a header of {length} bytes is longer than "
                                     f"the {MAX_HEADER} that are allowed")
    if length > size - 8:
        raise SafetensorsError(path, f"a header of {length} bytes does not fit "
                                     f"into the file, which has {size}")
    text = bytes_at(file, length, 8, SafetensorsError)
    return parse(text, size - 8 - length, path)


def parse(text: bytes, data_bytes: int, path: Path) -> Header:
    """The header in these bytes, before so many bytes of data."""
    entries = parse_json(text, path)
    metadata = _metadata(entries.pop("__metadata__", {}), path)
    tensors = [_tensor(name, entry, data_bytes, path)
               for name, entry in entries.items()]
    tensors.sort(key=lambda tensor: (tensor.start, tensor.stop))
    _check_cover(tensors, data_bytes, path)
    return Header(tensors, metadata, 8 + len(text), data_bytes)


# --------------------------------------------------------------------- JSON

def _once(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    entries: Dict[str, Any] = {}
    for name, value in pairs:
        if name in entries:
            raise ValueError(f"the key {name!r} stands twice")
        entries[name] = value
    return entries


def _whole_number(digits: str) -> int:
    # a number of a million digits would take as long as its author likes
    if len(digits) > _MAX_DIGITS:
        raise ValueError(f"a number of {len(digits)} digits")
    return int(digits)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no number")


def parse_json(text: bytes, path: Path, what: str = "the header") -> Dict[str, Any]:
    """A table whose names are each there once."""
    if not text.startswith(b"{"):
        raise SafetensorsError(path, f"{what} does not begin with a brace")
    try:
        entries = json.loads(text.decode("utf-8"), object_pairs_hook=_once,
                             parse_int=_whole_number, parse_constant=_no_constant)
    except RecursionError:
        raise SafetensorsError(path, f"{what} is nested too deep") from None
    except ValueError as error:
        raise SafetensorsError(path, f"{what} is no JSON: {error}") from None
    assert isinstance(entries, dict)
    return entries


def _metadata(entries: Any, path: Path) -> Dict[str, str]:
    if not isinstance(entries, dict) or not all(
            isinstance(value, str) for value in entries.values()):
        raise SafetensorsError(path, "__metadata__ is no table of texts")
    return entries


# ------------------------------------------------------------------ tensors

def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _tensor(name: str, entry: Any, data_bytes: int, path: Path) -> Tensor:
    def wrong(what: str) -> SafetensorsError:
        return SafetensorsError(path, f"tensor {name!r}: {what}")

    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape",
                                                     "data_offsets"}:
        raise wrong("has not exactly dtype, shape and data_offsets")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise wrong(f"the dtype {dtype!r} is not known")
    if not isinstance(shape, list) or not all(map(_is_count, shape)):
        raise wrong(f"the shape {shape!r} is no list of extents")
    if len(shape) > MAX_DIMENSIONS:
        raise wrong(f"{len(shape)} dimensions are more than {MAX_DIMENSIONS}")
    if (not isinstance(offsets, list) or len(offsets) != 2
            or not all(map(_is_count, offsets))):
        raise wrong(f"the data_offsets {offsets!r} are no pair of offsets")
    start, stop = offsets
    if not start <= stop <= data_bytes:
        raise wrong(f"the bytes {start} to {stop} are not in the data, which "
                    f"has {data_bytes}")
    needed = room = DTYPES[dtype]
    for extent in shape:
        needed *= extent
        room *= extent or 1
    if needed != stop - start:
        raise wrong(f"the bytes {start} to {stop} are {stop - start}, but shape "
                    f"{shape} of {dtype} needs {needed}")
    # an array of no bytes has strides all the same, which have to be counted
    if room > _MAX_ROOM:
        raise wrong(f"the shape {shape} of {dtype} is more than can be counted")
    return Tensor(name, dtype, tuple(shape), start, stop)


def _check_cover(tensors: List[Tensor], data_bytes: int, path: Path) -> None:
    covered, before = 0, "the header"
    for tensor in tensors:
        if tensor.start < covered:
            raise SafetensorsError(
                path, f"tensor {tensor.name!r}: begins at {tensor.start}, inside "
                      f"{before}, which ends at {covered}")
        if tensor.start > covered:
            raise SafetensorsError(
                path, f"tensor {tensor.name!r}: begins at {tensor.start}, after a "
                      f"gap of {tensor.start - covered} bytes behind {before}")
        covered, before = tensor.stop, f"tensor {tensor.name!r}"
    if covered != data_bytes:
        raise SafetensorsError(path, f"{data_bytes - covered} bytes of data "
                                     f"belong to no tensor, behind {before}")

# SPDX-License-Identifier: Apache-2.0
"""save_file."""
import json
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple

from .. import _bulk, _dtypes
from .._bulk import ALIGNMENT
from .._errors import Path
from .._memory import Memory, describe, kind_of
from ._header import DTYPES, MAX_HEADER, NAMES, SafetensorsError

_OF_NAMES = {name: dtype for dtype, name in NAMES.items()}


class _Source(NamedTuple):
    name: str
    dtype: str
    shape: Tuple[int, ...]
    memory: Memory


def save_file(tensors: Mapping[str, Any], path: Path,
              metadata: Optional[Mapping[str, str]] = None, *,
              progress: Optional[bool] = None) -> None:
    """Writes tensors of PyTorch, CuPy or NumPy to a safetensors file.

    The file is written beside the path and takes its place when it is whole,
    so a failure leaves what was there. It is durable after fsync.
    """
    sources = [_source(name, value, path) for name, value in tensors.items()]
    # large elements first, so that each tensor is aligned to its elements
    sources.sort(key=lambda source: (-DTYPES[source.dtype], source.name))
    head = _head(sources, metadata, path)
    with _bulk.replacing(path) as file:
        _bulk.write(file, list(_places(head, sources)), progress)


def _source(name: Any, value: Any, path: Path) -> _Source:
    if not isinstance(name, str) or name == "__metadata__":
        raise SafetensorsError(path, f"{name!r} is no name for a tensor")
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    if dtype is None or shape is None:
        raise TypeError(f"tensor {name!r}: {kind_of(value)} has no dtype and shape")
    known = _OF_NAMES.get(_dtypes.name_of(dtype) or "")
    if known is None:
        raise SafetensorsError(path, f"tensor {name!r}: the format has no dtype "
                                     f"for {dtype!r}")
    try:
        memory = describe(value, False, "tensor")
    except (TypeError, ValueError) as error:
        raise type(error)(f"tensor {name!r}: {error}") from None
    return _Source(name, known, tuple(int(extent) for extent in shape), memory)


def _head(sources: List[_Source], metadata: Optional[Mapping[str, str]],
          path: Path) -> bytes:
    entries: Dict[str, Any] = {}
    if metadata:
        if not all(isinstance(text, str) for pair in metadata.items()
                   for text in pair):
            raise SafetensorsError(path, "the metadata are no table of texts")
        entries["__metadata__"] = dict(metadata)
    end = 0
    for source in sources:
        begin, end = end, end + source.memory.nbytes
        entries[source.name] = {"dtype": source.dtype, "shape": source.shape,
                                "data_offsets": [begin, end]}
    text = json.dumps(entries, separators=(",", ":"), ensure_ascii=False).encode()
    # spaces are allowed there, and put the data where whole blocks begin
    text += b" " * (-(8 + len(text)) % ALIGNMENT)
    if len(text) > MAX_HEADER:
        raise SafetensorsError(path, f"a header of {len(text)} bytes is longer "
                                     f"than the {MAX_HEADER} that are allowed")
    return len(text).to_bytes(8, "little") + text


def _places(head: bytes, sources: List[_Source]) -> Iterator[_bulk.Source]:
    place = 0
    for memory in [describe(head)] + [source.memory for source in sources]:
        yield _bulk.Source(memory, 0, memory.nbytes, place)
        place += memory.nbytes

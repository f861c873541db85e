# SPDX-License-Identifier: Apache-2.0
"""Which way a request would go, and why not another.

    print(cufile.explain(file, tensor))

A call of this library alone: with another libcufile it is a
NotImplementedError.
"""
import ctypes
from typing import NamedTuple, Optional, Tuple, Union

from . import _abi, _library
from ._errors import check, name_of
from ._file import File
from ._memory import Buffer, describe

_OPERATIONS = {"read": 0, "write": 1}
_KINDS = {"host": 0, "device": 1, "managed": 2}
_KIND_NAMES = {number: name for name, number in _KINDS.items()}


class Refusal(NamedTuple):
    """A path that would not be taken; remedy says what would change it."""
    path: str
    reason: str
    remedy: Optional[str]


class Explanation(NamedTuple):
    """What would become of a request; str() is the line of the log.

    problem is None, or the name of the error that the request would be, with
    what is wrong. path is None if none can take it. page_cache is why bytes go
    through the page cache, or None. cached_bytes is None if it is not known.
    """
    text: str
    problem: Optional[Tuple[str, str]]
    path: Optional[str]
    memory: str
    gpu: Optional[int]
    block: int
    aligned: bool
    registered: bool
    page_cache: Optional[str]
    page_cache_remedy: Optional[str]
    size: int
    direct_bytes: int
    buffered_bytes: int
    cached_bytes: Optional[int]
    carriers: int
    parts: int
    part_size: int
    refusals: Tuple[Refusal, ...]

    def __str__(self) -> str:
        return self.text


def explain(file: File, array: Union[Buffer, str], size: Optional[int] = None,
            file_offset: int = 0, offset: int = 0, op: str = "read") -> Explanation:
    """Asks what a read or write would do; no byte moves.

    array  as for File.read; or "host", "device" or "managed" for memory that
           need not exist, with a size
    """
    if op not in _OPERATIONS:
        raise ValueError(f"op {op!r} is neither 'read' nor 'write'")
    got = _abi.Explain()
    got.struct_size = ctypes.sizeof(got)
    library = _library.get()
    if isinstance(array, str):
        if array not in _KINDS or size is None:
            raise ValueError(f"memory {array!r}: 'host', 'device' or 'managed', "
                             "and a size")
        status = library.ocf_explain_memory(
            file.handle, _OPERATIONS[op], _KINDS[array], size, file_offset, offset,
            ctypes.byref(got))
    else:
        memory = describe(array)
        size = file._check(op, memory, size, file_offset, offset)
        call = library.ocf_explain_read if op == "read" else library.ocf_explain_write
        status = call(file.handle, memory.address, size, file_offset, offset,
                      ctypes.byref(got))
    check(status, f"explaining a {op} of {file._name}", file.name)
    return _plain(got)


def _text(value: Optional[bytes]) -> Optional[str]:
    return None if value is None else value.decode(errors="replace")


def _line(got: _abi.Explain) -> str:
    call = _library.get().ocf_explain_text
    room = call(ctypes.byref(got), None, 0) + 1
    text = ctypes.create_string_buffer(room)
    call(ctypes.byref(got), text, room)
    return text.value.decode(errors="replace")


def _plain(got: _abi.Explain) -> Explanation:
    problem = None
    if got.code:
        problem = (name_of(abs(got.code)), _text(got.problem) or "")
    refusals = tuple(
        Refusal(_text(row.path) or "", _text(row.reason) or "", _text(row.remedy))
        for row in got.refusals[:got.nr_refusals])
    return Explanation(
        _line(got), problem, _text(got.path), _KIND_NAMES[got.memory],
        got.gpu if got.gpu >= 0 else None, got.block, bool(got.aligned),
        bool(got.registered), _text(got.page_cache), _text(got.page_cache_remedy),
        got.size, got.direct_bytes, got.buffered_bytes,
        None if got.cached_bytes == _abi.UNKNOWN else got.cached_bytes,
        got.carriers, got.parts, got.part_size, refusals)

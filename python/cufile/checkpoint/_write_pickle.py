# SPDX-License-Identifier: Apache-2.0
"""Writes the pickle of a checkpoint: what _pickle.py reads, as torch.save
does, for torch.load with weights_only=True too."""
import struct
from collections import OrderedDict
from typing import Any, Callable, Dict, List, Tuple

from .._dtypes import DTYPES, name_of
from .._errors import Path
from .._memory import kind_of
from ._dtypes import STORAGES
from ._errors import CheckpointError
from ._leaves import Leaf, Piece, is_leaf, is_named
from ._values import is_key

_STORAGE_OF = {dtype: name for name, dtype in STORAGES.items() if dtype}


class Writer:
    """write() adds a value to `text`; the same object is written once."""

    def __init__(self, leaves: Dict[int, Leaf],
                 where: Dict[int, Tuple[Piece, int]], path: Path) -> None:
        self.text = bytearray(b"\x80\x02")
        self._leaves, self._where, self._path = leaves, where, path
        self._memo: Dict[int, int] = {}
        # an id is that of one object only while it lives
        self._kept: List[Any] = []

    def whole(self, value: Any) -> bytes:
        try:
            self.write(value)
        except RecursionError:
            raise CheckpointError(self._path, "is nested too deep, or a tuple holds "
                                              "itself") from None
        return bytes(self.text + b".")

    def write(self, value: Any) -> None:
        number = self._memo.get(id(value))
        if number is not None:
            self.text += b"j" + struct.pack("<I", number)
            return
        step = _STEPS.get(type(value))
        if step is not None:
            step(self, value)
        elif is_leaf(value):
            self._leaf(value)
        elif is_named(value, "dtype") and name_of(value):
            self._global("torch", str(name_of(value)))
        elif is_named(value, "Size"):
            self._call("torch", "Size", tuple(value))
        elif is_named(value, "device"):
            self._call("torch", "device", str(value))
        else:
            raise CheckpointError(self._path, f"{kind_of(value)} is no tensor, plain "
                                              "container, number or text")

    def _remember(self, value: Any) -> None:
        number = len(self._memo)
        self._memo[id(value)] = number
        self._kept.append(value)
        self.text += b"r" + struct.pack("<I", number)

    def _global(self, module: str, name: str) -> None:
        self.text += f"c{module}\n{name}\n".encode()

    def _call(self, module: str, name: str, *arguments: Any) -> None:
        self._global(module, name)
        self.text += b"("
        for argument in arguments:
            self.write(argument)
        self.text += b"tR"

    # ------------------------------------------------------------- plain

    def _none(self, value: None) -> None:
        self.text += b"N"

    def _bool(self, value: bool) -> None:
        self.text += b"\x88" if value else b"\x89"

    def _int(self, value: int) -> None:
        if -(1 << 31) <= value < 1 << 31:
            self.text += b"J" + struct.pack("<i", value)
            return
        raw = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
        if len(raw) > 255:
            raise CheckpointError(self._path, f"a number of {len(raw)} bytes")
        self.text += b"\x8a" + bytes([len(raw)]) + raw

    def _float(self, value: float) -> None:
        self.text += b"G" + struct.pack(">d", value)

    def _str(self, value: str) -> None:
        raw = value.encode("utf-8", "surrogatepass")
        self.text += b"X" + struct.pack("<I", len(raw)) + raw

    def _bytes(self, value: bytes) -> None:
        self._call("_codecs", "encode", value.decode("latin1"), "latin1")

    # -------------------------------------------------------- containers

    def _dict(self, value: Dict[Any, Any]) -> None:
        self.text += b"}"
        self._remember(value)
        self._items(value)

    def _items(self, value: Dict[Any, Any]) -> None:
        self.text += b"("
        for key, each in value.items():
            self._check_key(key)
            self.write(key)
            self.write(each)
        self.text += b"u"

    def _check_key(self, key: Any) -> None:
        """Only what load_file would take."""
        if not is_key(key):
            raise CheckpointError(self._path, f"a {kind_of(key)} as a key or in a set, "
                                              "where numbers, texts, bytes and tuples "
                                              "of them, up to eight deep, may be")

    def _ordered(self, value: Any) -> None:
        more = getattr(value, "__dict__", {})
        if set(more) - {"_metadata"}:
            raise CheckpointError(self._path, "an OrderedDict with the attributes "
                                              f"{sorted(more)}")
        self._call("collections", "OrderedDict")
        self._remember(value)
        self._items(value)
        if more:
            self.write(dict(more))
            self.text += b"b"

    def _list(self, value: Any) -> None:
        self.text += b"]"
        self._remember(value)
        self.text += b"("
        for each in value:
            self.write(each)
        self.text += b"e"

    def _tuple(self, value: Any) -> None:
        self.text += b"("
        for each in value:
            self.write(each)
        self.text += b"t"

    def _set(self, value: Any) -> None:
        for each in value:
            self._check_key(each)
        # an order that is the same in each process
        self._call("__builtin__", "set", sorted(value, key=repr))
        self._remember(value)

    # ------------------------------------------------------------ tensors

    def _storage(self, piece: Piece, kind: Tuple[str, str], numel: int) -> None:
        self.text += b"("
        self._str("storage")
        self._global(*kind)
        self._str(piece.key)
        self._str(piece.location)
        self._int(numel)
        self.text += b"tQ"

    def _leaf(self, value: Any) -> None:
        leaf, (piece, offset) = self._leaves[id(value)], self._where[id(value)]
        named = _STORAGE_OF.get(leaf.dtype)
        nbytes = piece.memory.nbytes
        if leaf.is_parameter:
            self._global("torch._utils", "_rebuild_parameter")
            self.text += b"("
        self._global("torch._utils", "_rebuild_tensor_v2" if named
                     else "_rebuild_tensor_v3")
        self.text += b"("
        self._storage(piece, ("torch", named) if named
                      else ("torch.storage", "UntypedStorage"),
                      nbytes // DTYPES[leaf.dtype] if named else nbytes)
        self._int(offset)
        self._tuple(leaf.shape)
        self._tuple(leaf.strides)
        self._bool(leaf.requires_grad and not leaf.is_parameter)
        self._call("collections", "OrderedDict")
        if not named:
            self._global("torch", leaf.dtype)
        self.text += b"tR"
        if leaf.is_parameter:
            self._bool(leaf.requires_grad)
            self._call("collections", "OrderedDict")
            self.text += b"tR"
        self._remember(value)


_STEPS: Dict[type, Callable[[Writer, Any], None]] = {
    type(None): Writer._none, bool: Writer._bool, int: Writer._int,
    float: Writer._float, str: Writer._str, bytes: Writer._bytes,
    dict: Writer._dict, OrderedDict: Writer._ordered, list: Writer._list,
    tuple: Writer._tuple, set: Writer._set}

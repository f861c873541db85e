# SPDX-License-Identifier: Apache-2.0
"""What the names in a checkpoint's pickle stand for. They are no functions that
are looked up somewhere: each is a method here, and there are no others."""
from collections import OrderedDict
from typing import Any, Callable, Dict, Tuple

from .._dtypes import DTYPES
from ._values import (Bad, Builder, Keys, Storage, Word, count, counts, is_empty,
                      shown, truth)

_CONTAINERS = (list, tuple, dict, set, frozenset)


class Calls:
    """call() does what a name stands for; room bounds what it may copy, for a
    few bytes of a pickle could ask for it often."""

    def __init__(self, builder: Builder, keys: Keys, room: int) -> None:
        self._builder, self._keys, self._left = builder, keys, room

    def call(self, word: Word, arguments: Tuple[Any, ...]) -> Any:
        call = _CALLS.get(word.name)  # a storage's class is none
        if call is None:
            raise Bad(f"a call of {word.name}")
        try:
            return call(self, *arguments)
        except TypeError as error:
            raise Bad(f"{word.name} with {len(arguments)} arguments: "
                      f"{error}") from None

    def _spend(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise Bad("the pickle makes much more than it holds")

    def _tensor(self, storage: Any, offset: Any, shape: Any, strides: Any,
                requires_grad: Any = False, hooks: Any = None,
                metadata: Any = None) -> Any:
        if type(storage) is not Storage or storage.dtype is None:
            raise Bad("a tensor of no typed storage")
        return self._any_tensor(storage, storage.dtype, offset, shape, strides,
                                requires_grad, hooks, metadata)

    def _tensor_v3(self, storage: Any, offset: Any, shape: Any, strides: Any,
                   requires_grad: Any, hooks: Any, dtype: Any,
                   metadata: Any = None) -> Any:
        if type(storage) is not Storage or storage.dtype is not None:
            raise Bad("a tensor of no untyped storage")
        # a container could be nested too deep for a text
        name = "" if isinstance(dtype, _CONTAINERS) else str(dtype).rsplit(".", 1)[-1]
        if name not in DTYPES:
            raise Bad(f"{shown(dtype)} is no dtype")
        return self._any_tensor(storage, name, offset, shape, strides,
                                requires_grad, hooks, metadata)

    def _any_tensor(self, storage: Storage, dtype: str, offset: Any, shape: Any,
                    strides: Any, requires_grad: Any, hooks: Any,
                    metadata: Any) -> Any:
        if not is_empty(hooks) or not is_empty(metadata):
            raise Bad("a tensor with hooks, or a view that is conjugated or "
                      "negated")
        shape, strides = counts(shape, "shape"), counts(strides, "strides")
        if len(shape) != len(strides):
            raise Bad(f"shape {shape} and strides {strides} do not fit together")
        return self._builder.tensor(storage, dtype, count(offset, "offset"), shape,
                                    strides, truth(requires_grad, "requires_grad"))

    def _parameter(self, tensor: Any, requires_grad: Any, hooks: Any) -> Any:
        if not self._builder.is_tensor(tensor) or not is_empty(hooks):
            raise Bad("a parameter of no tensor, or with hooks")
        return self._builder.parameter(tensor, truth(requires_grad, "requires_grad"))

    def _set(self, values: Any = ()) -> Any:
        if type(values) not in (list, tuple):
            raise Bad("a set of no list")
        self._spend(len(values))
        return set(map(self._keys.check, values))

    def _frozenset(self, values: Any = ()) -> Any:
        return frozenset(self._set(values))

    def _encode(self, text: Any, how: Any) -> bytes:
        if type(text) is not str or how != "latin1":
            raise Bad("bytes that are no latin1")
        self._spend(len(text))
        return text.encode("latin1")

    def _bytearray(self, content: Any = b"", *more: Any) -> bytearray:
        if type(content) is str and more == ("latin-1",):
            content = self._encode(content, "latin1")
        elif type(content) is not bytes or more:
            raise Bad("a bytearray of no bytes")
        self._spend(len(content))
        return bytearray(content)

    def _complex(self, real: Any, imaginary: Any) -> complex:
        if type(real) is not float or type(imaginary) is not float:
            raise Bad("a complex number of no numbers")
        return complex(real, imaginary)

    def _size(self, shape: Any) -> Any:
        if isinstance(shape, list):
            shape = tuple(shape[:65])
        return self._builder.size(counts(shape, "shape"))

    def _device(self, kind: Any, number: Any = None) -> Any:
        if type(kind) is not str or not (number is None or type(number) is int):
            raise Bad("a device without a name")
        return self._builder.device(kind if number is None else f"{kind}:{number}")

    def _ordered(self, pairs: Any = ()) -> Any:
        if type(pairs) not in (tuple, list) or pairs:
            raise Bad("an OrderedDict that is filled as it is made")
        return OrderedDict()

    def _bytes(self) -> bytes:
        return b""


_CALLS: Dict[str, Callable[..., Any]] = {
    "collections.OrderedDict": Calls._ordered,
    "torch._utils._rebuild_tensor": Calls._tensor,
    "torch._utils._rebuild_tensor_v2": Calls._tensor,
    "torch._utils._rebuild_tensor_v3": Calls._tensor_v3,
    "torch._utils._rebuild_parameter": Calls._parameter,
    "torch.Size": Calls._size, "torch.device": Calls._device,
    "_codecs.encode": Calls._encode}
_BUILTINS: Dict[str, Callable[..., Any]] = {
    "set": Calls._set, "frozenset": Calls._frozenset, "complex": Calls._complex,
    "bytearray": Calls._bytearray, "bytes": Calls._bytes}
# up to protocol 2 their module has the name that it had in Python 2
for _module in ("builtins", "__builtin__"):
    _CALLS.update((f"{_module}.{name}", call) for name, call in _BUILTINS.items())
NAMES = frozenset(_CALLS)

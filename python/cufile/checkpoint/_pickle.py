# SPDX-License-Identifier: Apache-2.0
"""Reads the pickle of a checkpoint, and runs nothing that it names.

A pickle is a program for a machine with a stack. This machine knows the
instructions that torch.save writes for containers, numbers, texts and tensors,
and the few names in NAMES; those are no functions here but words that
`_reduce` understands. Everything else ends it with a CheckpointError that has
the byte and the name.
"""
import struct
from collections import OrderedDict
from typing import Any, Callable, Dict, List, NamedTuple, NoReturn, Protocol, Tuple

from ._dtypes import DTYPES, STORAGES

_MAX_KEY_DEPTH = 8


class Word(NamedTuple):
    """A name of the pickle; only _reduce and a storage's id may have it."""
    name: str


class Arguments(tuple):  # type: ignore[type-arg]
    """A tuple with words or storages in it, which is no value of its own."""


class Storage(NamedTuple):
    """Bytes that tensors share: the record data/<key>. dtype None: untyped,
    and numel counts bytes."""
    key: str
    dtype: Any
    numel: int
    location: str


class Builder(Protocol):
    """Makes the values that are not plain; ValueError: it cannot."""

    def tensor(self, storage: Storage, dtype: str, offset: int,
               shape: Tuple[int, ...], strides: Tuple[int, ...],
               requires_grad: bool) -> Any: ...

    def parameter(self, tensor: Any, requires_grad: bool) -> Any: ...

    def is_tensor(self, value: Any) -> bool: ...

    def dtype(self, name: str) -> Any: ...

    def size(self, shape: Tuple[int, ...]) -> Any: ...

    def device(self, name: str) -> Any: ...


NAMES = {"collections.OrderedDict", "torch._utils._rebuild_tensor",
         "torch._utils._rebuild_tensor_v2", "torch._utils._rebuild_tensor_v3",
         "torch._utils._rebuild_parameter", "torch.Size", "torch.device",
         "_codecs.encode", "__builtin__.set", "builtins.set",
         "__builtin__.frozenset", "builtins.frozenset", "__builtin__.complex",
         "builtins.complex", "__builtin__.bytearray", "builtins.bytearray",
         "__builtin__.bytes", "builtins.bytes"}
_TOKENS = (Word, Storage, Arguments)
_MARK = Word("a mark")


class _Bad(Exception):
    """What is wrong at the byte that is being looked at."""


def _is_key(value: Any, depth: int = 0) -> bool:
    # a hash of what is nested deep would end the process
    if value is None or type(value) in (str, int, float, bool, bytes, complex):
        return True
    return (type(value) is tuple and depth < _MAX_KEY_DEPTH
            and all(_is_key(each, depth + 1) for each in value))


def _shown(value: Any) -> str:
    # what is nested deep cannot be shown whole
    if _is_key(value, _MAX_KEY_DEPTH):
        return f"{value!r:.80}"
    return f"a {type(value).__name__}"


def _count(value: Any, what: str) -> int:
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise _Bad(f"{_shown(value)} is no {what}")
    return value


def _counts(value: Any, what: str) -> Tuple[int, ...]:
    if not isinstance(value, tuple) or isinstance(value, _TOKENS):
        raise _Bad(f"{_shown(value)} is no {what}")
    if len(value) > 64:
        raise _Bad(f"{len(value)} dimensions are more than 64")
    for each in value:
        _count(each, what)
    return tuple(value)


def _truth(value: Any, what: str) -> bool:
    if type(value) is not bool:
        raise _Bad(f"{_shown(value)} is no answer to {what}")
    return value


def _is_empty(value: Any) -> bool:
    return value is None or isinstance(value, dict) and not value


class Machine:
    """load() runs the program once; `wrong` raises the error for a byte."""

    def __init__(self, text: bytes, builder: Builder,
                 wrong: Callable[[int, str], NoReturn]) -> None:
        self._text, self._builder, self._wrong = text, builder, wrong
        self._at = 0
        self._stack: List[Any] = []
        self._memo: Dict[int, Any] = {}
        self._stopped = False
        # what calls may copy: a few bytes of a program could ask for it often
        self._left = 2 * len(text) + 1000

    def load(self) -> Any:
        begin, text = 0, self._text
        try:
            while not self._stopped:
                begin = self._at
                if begin == len(text):
                    raise _Bad("the pickle ends without an end")
                self._at = begin + 1
                step = _TABLE[text[begin]]
                if step is None:
                    raise _Bad(f"the instruction {text[begin]:#04x} is not known")
                step(self)
            value = self._pop_value()
            if self._stack:
                raise _Bad(f"{len(self._stack)} values are left over")
            return value
        except _Bad as error:
            self._wrong(begin, str(error))
        except (ValueError, OverflowError) as error:
            self._wrong(begin, f"{error}")

    # ------------------------------------------------------ bytes and stack

    def _take(self, count: int) -> bytes:
        piece = self._text[self._at:self._at + count]
        if len(piece) != count:
            raise _Bad(f"{count} bytes are wanted of {len(piece)} that are left")
        self._at += count
        return piece

    def _byte(self) -> int:
        at = self._at
        if at == len(self._text):
            raise _Bad("1 bytes are wanted of 0 that are left")
        self._at = at + 1
        return self._text[at]

    def _number(self, count: int) -> int:
        return int.from_bytes(self._take(count), "little")

    def _line(self) -> str:
        end = self._text.find(b"\n", self._at, self._at + 1000)
        if end < 0:
            raise _Bad("a name without an end")
        return self._take(end + 1 - self._at)[:-1].decode("utf-8")

    def _push(self, value: Any) -> None:
        self._stack.append(value)

    def _pop(self) -> Any:
        if not self._stack or self._stack[-1] is _MARK:
            raise _Bad("the stack has no value for it")
        return self._stack.pop()

    def _plain(self, value: Any) -> Any:
        if isinstance(value, _TOKENS):
            raise _Bad("a bare storage" if isinstance(value, Storage) else
                       f"{getattr(value, 'name', 'what a name belongs to')}, which "
                       "is no value")
        return value

    def _pop_value(self) -> Any:
        return self._plain(self._pop())

    def _pop_mark(self) -> List[Any]:
        place = len(self._stack) - 1
        while place >= 0 and self._stack[place] is not _MARK:
            place -= 1
        if place < 0:
            raise _Bad("the stack has no mark for it")
        values = self._stack[place + 1:]
        del self._stack[place:]
        return values

    def _top(self, kinds: Any, what: str) -> Any:
        if not self._stack or not isinstance(self._stack[-1], kinds):
            raise _Bad(f"what is to be filled is no {what}")
        return self._stack[-1]

    # --------------------------------------------------------- containers

    def _tuple(self, values: List[Any]) -> None:
        for value in values:
            if isinstance(value, _TOKENS):
                self._stack.append(Arguments(values))
                return
        self._stack.append(tuple(values))

    def _tuple_of(self, count: int) -> None:
        values = self._stack[-count:]
        if len(values) != count or any(value is _MARK for value in values):
            raise _Bad("the stack has no value for it")
        del self._stack[-count:]
        self._tuple(values)

    def _append(self, values: List[Any]) -> None:
        self._top(list, "list").extend(map(self._plain, values))

    def _set_items(self, values: List[Any]) -> None:
        target = self._top(dict, "dict")
        if len(values) % 2:
            raise _Bad("a key without a value")
        for key, value in zip(values[::2], values[1::2]):
            target[self._key(key)] = self._plain(value)

    def _key(self, key: Any) -> Any:
        if not _is_key(key):
            raise _Bad(f"a {type(key).__name__} as a key")
        return key

    def _add_items(self) -> None:
        values = self._pop_mark()
        self._top(set, "set").update(map(self._key, values))

    # --------------------------------------------------------------- memo

    def _put(self, number: int) -> None:
        if not self._stack or self._stack[-1] is _MARK:
            raise _Bad("there is no value to remember")
        self._memo[number] = self._stack[-1]

    def _get(self, number: int) -> None:
        if number not in self._memo:
            raise _Bad(f"nothing was remembered as {number}")
        self._push(self._memo[number])

    # -------------------------------------------------------------- names

    def _global(self, module: str, name: str) -> None:
        whole = f"{module}.{name}"
        if module in ("torch", "torch.storage") and name in STORAGES:
            self._push(Word(name))
        elif module == "torch" and name in DTYPES:
            self._push(self._builder.dtype(name))
        elif whole in NAMES:
            self._push(Word(whole.rsplit(".", 1)[-1] if "builtin" in module
                            else whole))
        else:
            raise _Bad(f"wants {whole[:200]}, which only torch.load may run; "
                       "loaded are tensors in plain containers")

    def _stack_global(self) -> None:
        name, module = self._pop(), self._pop()
        if type(name) is not str or type(module) is not str:
            raise _Bad("a name that is no text")
        self._global(module, name)

    def _persistent(self) -> None:
        given = self._pop()
        if type(given) is not Arguments or len(given) != 5 or given[0] != "storage":
            raise _Bad("a reference that is no storage of five parts")
        _, kind, key, location, numel = given
        if type(kind) is not Word or kind.name not in STORAGES:
            raise _Bad(f"a storage of the kind {_shown(kind)}")
        if type(key) is not str or type(location) is not str:
            raise _Bad("a storage whose key or location is no text")
        self._push(Storage(key, STORAGES[kind.name], _count(numel, "length"),
                           location))

    def _reduce(self) -> None:
        arguments, word = self._pop(), self._pop()
        if type(word) is not Word or type(arguments) not in (tuple, Arguments):
            raise _Bad(f"a call of {_shown(word)}, with {_shown(arguments)}")
        call = _CALLS.get(word.name)
        if call is None:
            raise _Bad(f"a call of {word.name}")
        try:
            self._push(call(self, *arguments))
        except TypeError as error:
            raise _Bad(f"{word.name} with {len(arguments)} arguments: "
                       f"{error}") from None

    def _build(self) -> None:
        state = self._pop_value()
        target = self._top(OrderedDict, "OrderedDict")
        if type(state) is not dict or set(state) - {"_metadata"}:
            raise _Bad("attributes other than _metadata")
        target.__dict__.update(state)

    # -------------------------------------------------------------- calls

    def _spend(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise _Bad("the pickle makes much more than it holds")

    def _tensor(self, storage: Any, offset: Any, shape: Any, strides: Any,
                requires_grad: Any = False, hooks: Any = None,
                metadata: Any = None) -> Any:
        if type(storage) is not Storage or storage.dtype is None:
            raise _Bad("a tensor of no typed storage")
        return self._any_tensor(storage, storage.dtype, offset, shape, strides,
                                requires_grad, hooks, metadata)

    def _tensor_v3(self, storage: Any, offset: Any, shape: Any, strides: Any,
                   requires_grad: Any, hooks: Any, dtype: Any,
                   metadata: Any = None) -> Any:
        if type(storage) is not Storage or storage.dtype is not None:
            raise _Bad("a tensor of no untyped storage")
        name = str(dtype).rsplit(".", 1)[-1]
        if name not in DTYPES:
            raise _Bad(f"{_shown(dtype)} is no dtype")
        return self._any_tensor(storage, name, offset, shape, strides,
                                requires_grad, hooks, metadata)

    def _any_tensor(self, storage: Storage, dtype: str, offset: Any, shape: Any,
                    strides: Any, requires_grad: Any, hooks: Any,
                    metadata: Any) -> Any:
        if not _is_empty(hooks) or not _is_empty(metadata):
            raise _Bad("a tensor with hooks, or a view that is conjugated or "
                       "negated")
        shape, strides = _counts(shape, "shape"), _counts(strides, "strides")
        if len(shape) != len(strides):
            raise _Bad(f"shape {shape} and strides {strides} do not fit together")
        return self._builder.tensor(storage, dtype, _count(offset, "offset"), shape,
                                    strides, _truth(requires_grad, "requires_grad"))

    def _parameter(self, tensor: Any, requires_grad: Any, hooks: Any) -> Any:
        if not self._builder.is_tensor(tensor) or not _is_empty(hooks):
            raise _Bad("a parameter of no tensor, or with hooks")
        return self._builder.parameter(tensor, _truth(requires_grad, "requires_grad"))

    def _set(self, values: Any = ()) -> Any:
        if type(values) not in (list, tuple):
            raise _Bad("a set of no list")
        self._spend(len(values))
        return set(map(self._key, values))

    def _frozenset(self, values: Any = ()) -> Any:
        return frozenset(self._set(values))

    def _encode(self, text: Any, how: Any) -> bytes:
        if type(text) is not str or how != "latin1":
            raise _Bad("bytes that are no latin1")
        self._spend(len(text))
        return text.encode("latin1")

    def _bytearray(self, content: Any = b"", *more: Any) -> bytearray:
        if type(content) is str and more == ("latin-1",):
            content = self._encode(content, "latin1")
        elif type(content) is not bytes or more:
            raise _Bad("a bytearray of no bytes")
        self._spend(len(content))
        return bytearray(content)

    def _complex(self, real: Any, imaginary: Any) -> complex:
        if type(real) is not float or type(imaginary) is not float:
            raise _Bad("a complex number of no numbers")
        return complex(real, imaginary)

    def _size(self, shape: Any) -> Any:
        if isinstance(shape, list):
            shape = tuple(shape)
        return self._builder.size(_counts(shape, "shape"))

    def _device(self, kind: Any, number: Any = None) -> Any:
        if type(kind) is not str or not (number is None or type(number) is int):
            raise _Bad("a device without a name")
        return self._builder.device(kind if number is None else f"{kind}:{number}")

    def _ordered(self, pairs: Any = ()) -> Any:
        if type(pairs) not in (tuple, list) or pairs:
            raise _Bad("an OrderedDict that is filled as it is made")
        return OrderedDict()

    def _bytes(self) -> bytes:
        return b""

    def _protocol(self) -> None:
        version = self._byte()
        if not 2 <= version <= 5:
            raise _Bad(f"a pickle of protocol {version}, not 2 to 5")

    def _stop(self) -> None:
        self._stopped = True

    def _text_of(self, width: int) -> None:
        self._push(self._take(self._number(width)).decode("utf-8", "surrogatepass"))


_CALLS: Dict[str, Callable[..., Any]] = {
    "collections.OrderedDict": Machine._ordered,
    "torch._utils._rebuild_tensor": Machine._tensor,
    "torch._utils._rebuild_tensor_v2": Machine._tensor,
    "torch._utils._rebuild_tensor_v3": Machine._tensor_v3,
    "torch._utils._rebuild_parameter": Machine._parameter,
    "torch.Size": Machine._size, "torch.device": Machine._device,
    "_codecs.encode": Machine._encode, "set": Machine._set,
    "frozenset": Machine._frozenset, "bytearray": Machine._bytearray,
    "complex": Machine._complex, "bytes": Machine._bytes}

_Step = Callable[[Machine], Any]
_STEPS: Dict[int, _Step] = {ord(code): step for code, step in {
    ".": Machine._stop, "\x80": Machine._protocol,
    "\x95": lambda m: m._take(8),
    "(": lambda m: m._push(_MARK), "0": Machine._pop, "1": Machine._pop_mark,
    "N": lambda m: m._push(None), "\x88": lambda m: m._push(True),
    "\x89": lambda m: m._push(False),
    "K": lambda m: m._push(m._byte()), "M": lambda m: m._push(m._number(2)),
    "J": lambda m: m._push(struct.unpack("<i", m._take(4))[0]),
    "\x8a": lambda m: m._push(int.from_bytes(m._take(m._byte()), "little",
                                             signed=True)),
    "G": lambda m: m._push(struct.unpack(">d", m._take(8))[0]),
    "X": lambda m: m._text_of(4), "\x8c": lambda m: m._text_of(1),
    "\x8d": lambda m: m._text_of(8),
    "C": lambda m: m._push(m._take(m._byte())),
    "B": lambda m: m._push(m._take(m._number(4))),
    "\x8e": lambda m: m._push(m._take(m._number(8))),
    "\x96": lambda m: m._push(bytearray(m._take(m._number(8)))),
    ")": lambda m: m._push(()), "t": lambda m: m._tuple(m._pop_mark()),
    "\x85": lambda m: m._tuple_of(1), "\x86": lambda m: m._tuple_of(2),
    "\x87": lambda m: m._tuple_of(3),
    "]": lambda m: m._push([]), "a": lambda m: m._append([m._pop()]),
    "e": lambda m: m._append(m._pop_mark()),
    "}": lambda m: m._push({}), "u": lambda m: m._set_items(m._pop_mark()),
    "s": lambda m: m._set_items([m._pop(), m._pop()][::-1]),
    "\x8f": lambda m: m._push(set()), "\x90": Machine._add_items,
    "\x91": lambda m: m._push(frozenset(map(m._key, m._pop_mark()))),
    "q": lambda m: m._put(m._byte()), "r": lambda m: m._put(m._number(4)),
    "h": lambda m: m._get(m._byte()), "j": lambda m: m._get(m._number(4)),
    "\x94": lambda m: m._put(len(m._memo)),
    "c": lambda m: m._global(m._line(), m._line()),
    "\x93": Machine._stack_global, "R": Machine._reduce, "b": Machine._build,
    "Q": Machine._persistent}.items()}
_TABLE = [_STEPS.get(code) for code in range(256)]

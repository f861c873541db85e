# SPDX-License-Identifier: Apache-2.0
"""Reads the pickle of a checkpoint, and runs nothing that it names.

A pickle is a program for a machine with a stack. This machine knows the
instructions that torch.save writes for containers, numbers, texts and tensors,
and the few names of _calls.py. Everything else ends it with a CheckpointError
that has the byte and the name.
"""
import struct
from collections import OrderedDict
from typing import Any, Callable, Dict, List, NoReturn

from ._calls import NAMES, Calls
from .._dtypes import DTYPES
from ._dtypes import STORAGES
from ._values import (MARK, TOKENS, Arguments, Bad, Builder, Keys, Storage, Word, count,
                      shown)


class Machine:
    """load() runs the program once; `wrong` raises the error for a byte."""

    def __init__(self, text: bytes, builder: Builder,
                 wrong: Callable[[int, str], NoReturn]) -> None:
        self._text, self._builder, self._wrong = text, builder, wrong
        self._at = 0
        self._stack: List[Any] = []
        self._memo: Dict[int, Any] = {}
        self._stopped = False
        # PyTorch writes a tuple once, and may then name it by two bytes
        self._keys = Keys(16 * len(text) + 1000)
        self._calls = Calls(builder, self._keys, 2 * len(text) + 1000)

    def load(self) -> Any:
        begin, text = 0, self._text
        try:
            while not self._stopped:
                begin = self._at
                if begin == len(text):
                    raise Bad("the pickle ends without an end")
                self._at = begin + 1
                step = _TABLE[text[begin]]
                if step is None:
                    raise Bad(f"the instruction {text[begin]:#04x} is not known")
                step(self)
            value = self._pop_value()
            if self._stack:
                raise Bad(f"{len(self._stack)} values are left over")
            return value
        except Bad as error:
            self._wrong(begin, str(error))
        except (ValueError, OverflowError) as error:
            self._wrong(begin, f"{error}")

    # ------------------------------------------------------ bytes and stack

    def _take(self, count: int) -> bytes:
        piece = self._text[self._at:self._at + count]
        if len(piece) != count:
            raise Bad(f"{count} bytes are wanted of {len(piece)} that are left")
        self._at += count
        return piece

    def _byte(self) -> int:
        at = self._at
        if at == len(self._text):
            raise Bad("1 bytes are wanted of 0 that are left")
        self._at = at + 1
        return self._text[at]

    def _number(self, count: int) -> int:
        return int.from_bytes(self._take(count), "little")

    def _line(self) -> str:
        end = self._text.find(b"\n", self._at, self._at + 1000)
        if end < 0:
            raise Bad("a name without an end")
        return self._take(end + 1 - self._at)[:-1].decode("utf-8")

    def _push(self, value: Any) -> None:
        self._stack.append(value)

    def _pop(self) -> Any:
        if not self._stack or self._stack[-1] is MARK:
            raise Bad("the stack has no value for it")
        return self._stack.pop()

    def _plain(self, value: Any) -> Any:
        if isinstance(value, TOKENS):
            raise Bad("a bare storage" if isinstance(value, Storage) else
                       f"{getattr(value, 'name', 'what a name belongs to')}, which "
                       "is no value")
        return value

    def _pop_value(self) -> Any:
        return self._plain(self._pop())

    def _pop_mark(self) -> List[Any]:
        place = len(self._stack) - 1
        while place >= 0 and self._stack[place] is not MARK:
            place -= 1
        if place < 0:
            raise Bad("the stack has no mark for it")
        values = self._stack[place + 1:]
        del self._stack[place:]
        return values

    def _top(self, kinds: Any, what: str) -> Any:
        if not self._stack or not isinstance(self._stack[-1], kinds):
            raise Bad(f"what is to be filled is no {what}")
        return self._stack[-1]

    # --------------------------------------------------------- containers

    def _tuple(self, values: List[Any]) -> None:
        for value in values:
            if isinstance(value, TOKENS):
                self._stack.append(Arguments(values))
                return
        self._stack.append(tuple(values))

    def _tuple_of(self, count: int) -> None:
        values = self._stack[-count:]
        if len(values) != count or any(value is MARK for value in values):
            raise Bad("the stack has no value for it")
        del self._stack[-count:]
        self._tuple(values)

    def _append(self, values: List[Any]) -> None:
        self._top(list, "list").extend(map(self._plain, values))

    def _set_items(self, values: List[Any]) -> None:
        target = self._top(dict, "dict")
        if len(values) % 2:
            raise Bad("a key without a value")
        for key, value in zip(values[::2], values[1::2]):
            target[self._keys.check(key)] = self._plain(value)

    def _add_items(self) -> None:
        values = self._pop_mark()
        self._top(set, "set").update(map(self._keys.check, values))

    # --------------------------------------------------------------- memo

    def _put(self, number: int) -> None:
        if not self._stack or self._stack[-1] is MARK:
            raise Bad("there is no value to remember")
        self._memo[number] = self._stack[-1]

    def _get(self, number: int) -> None:
        if number not in self._memo:
            raise Bad(f"nothing was remembered as {number}")
        self._push(self._memo[number])

    # -------------------------------------------------------------- names

    def _global(self, module: str, name: str) -> None:
        whole = f"{module}.{name}"
        if module in ("torch", "torch.storage") and name in STORAGES:
            self._push(Word(name))
        elif module == "torch" and name in DTYPES:
            self._push(self._builder.dtype(name))
        elif whole in NAMES:
            self._push(Word(whole))
        else:
            raise Bad(f"wants {whole[:200]}, which only torch.load may run; "
                      "loaded are tensors in plain containers")

    def _stack_global(self) -> None:
        name, module = self._pop(), self._pop()
        if type(name) is not str or type(module) is not str:
            raise Bad("a name that is no text")
        self._global(module, name)

    def _persistent(self) -> None:
        given = self._pop()
        if type(given) is not Arguments or len(given) != 5 or given[0] != "storage":
            raise Bad("a reference that is no storage of five parts")
        _, kind, key, location, numel = given
        if type(kind) is not Word or kind.name not in STORAGES:
            raise Bad(f"a storage of the kind {shown(kind)}")
        if type(key) is not str or type(location) is not str:
            raise Bad("a storage whose key or location is no text")
        self._push(Storage(key, STORAGES[kind.name], count(numel, "length"),
                           location))

    def _reduce(self) -> None:
        arguments, word = self._pop(), self._pop()
        if type(word) is not Word or type(arguments) not in (tuple, Arguments):
            raise Bad(f"a call of {shown(word)}, with {shown(arguments)}")
        self._push(self._calls.call(word, arguments))

    def _build(self) -> None:
        state = self._pop_value()
        target = self._top(OrderedDict, "OrderedDict")
        if type(state) is not dict or set(state) - {"_metadata"}:
            raise Bad("attributes other than _metadata")
        target.__dict__.update(state)

    def _protocol(self) -> None:
        version = self._byte()
        if not 2 <= version <= 5:
            raise Bad(f"a pickle of protocol {version}, not 2 to 5")

    def _stop(self) -> None:
        self._stopped = True

    def _text_of(self, width: int) -> None:
        self._push(self._take(self._number(width)).decode("utf-8", "surrogatepass"))


_Step = Callable[[Machine], Any]
_STEPS: Dict[int, _Step] = {ord(code): step for code, step in {
    ".": Machine._stop, "\x80": Machine._protocol,
    "\x95": lambda m: m._take(8),
    "(": lambda m: m._push(MARK), "0": Machine._pop, "1": Machine._pop_mark,
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
    "\x91": lambda m: m._push(frozenset(map(m._keys.check, m._pop_mark()))),
    "q": lambda m: m._put(m._byte()), "r": lambda m: m._put(m._number(4)),
    "h": lambda m: m._get(m._byte()), "j": lambda m: m._get(m._number(4)),
    "\x94": lambda m: m._put(len(m._memo)),
    "c": lambda m: m._global(m._line(), m._line()),
    "\x93": Machine._stack_global, "R": Machine._reduce, "b": Machine._build,
    "Q": Machine._persistent}.items()}
_TABLE = [_STEPS.get(code) for code in range(256)]

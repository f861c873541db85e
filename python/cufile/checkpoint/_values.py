# SPDX-License-Identifier: Apache-2.0
"""What a checkpoint's pickle is made of, and what its values may be."""
from typing import Any, Callable, NamedTuple, Protocol, Tuple

_MAX_KEY_DEPTH = 8


class Word(NamedTuple):
    """A name of the pickle; only a call and a storage's id may have it."""
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


TOKENS = (Word, Storage, Arguments)
MARK = Word("a mark")


class Bad(Exception):
    """What is wrong at the byte that is being looked at."""


def is_key(value: Any, depth: int = 0,
           spend: Callable[[int], None] = lambda number: None) -> bool:
    """spend is told of the values in each tuple before they are looked at."""
    # a hash of what is nested deep would end the process
    if value is None or type(value) in (str, int, float, bool, bytes, complex):
        return True
    if type(value) is not tuple or depth >= _MAX_KEY_DEPTH:
        return False
    spend(len(value))
    return all(is_key(each, depth + 1, spend) for each in value)


class Keys:
    """Tells what may be a key or in a set; room bounds the values of all of them
    together, for a few bytes of a pickle make a tuple of tuples, each the same
    one many times, and a hash goes through every one of them."""

    def __init__(self, room: int) -> None:
        self._left = room

    def check(self, key: Any) -> Any:
        """The key."""
        if not is_key(key, spend=self._spend):
            raise Bad(f"a {type(key).__name__} as a key")
        return key

    def _spend(self, number: int) -> None:
        self._left -= number
        if self._left < 0:
            raise Bad("the keys have many more values than the pickle has bytes")


def shown(value: Any) -> str:
    # what is nested deep cannot be shown whole
    if is_key(value, _MAX_KEY_DEPTH):
        return f"{value!r:.80}"
    return f"a {type(value).__name__}"


def count(value: Any, what: str) -> int:
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise Bad(f"{shown(value)} is no {what}")
    return value


def counts(value: Any, what: str) -> Tuple[int, ...]:
    if not isinstance(value, tuple) or isinstance(value, TOKENS):
        raise Bad(f"{shown(value)} is no {what}")
    if len(value) > 64:
        raise Bad(f"{len(value)} dimensions are more than 64")
    for each in value:
        count(each, what)
    return tuple(value)


def truth(value: Any, what: str) -> bool:
    if type(value) is not bool:
        raise Bad(f"{shown(value)} is no answer to {what}")
    return value


def is_empty(value: Any) -> bool:
    return value is None or isinstance(value, dict) and not value

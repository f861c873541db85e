# SPDX-License-Identifier: Apache-2.0
"""The tensors of an object that is to be saved, and the storages for them."""
import sys
from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

from .._dtypes import DTYPES, name_of
from .._errors import Path
from .._memory import Memory, describe, kind_of
from ._errors import CheckpointError

PLAIN = (str, int, float, bool, bytes, type(None))


class Leaf(NamedTuple):
    """A tensor: where it is, and what has to be said of it."""
    memory: Memory
    address: int
    nbytes: int
    dtype: str
    shape: Tuple[int, ...]
    strides: Tuple[int, ...]
    requires_grad: bool
    is_parameter: bool
    location: str


class Piece(NamedTuple):
    """A storage to be written: data/<key>; its memory is that of tensors that
    overlap, from the first byte of any to the last."""
    key: str
    dtype: str
    memory: Memory
    location: str


def _torch() -> Any:
    return sys.modules.get("torch")


def is_named(value: Any, name: str) -> bool:
    """Is it a torch.<name>? Without importing it."""
    torch = _torch()
    return torch is not None and type(value) is getattr(torch, name)


def is_leaf(value: Any) -> bool:
    """Has it the bytes of a tensor?"""
    torch, numpy = _torch(), sys.modules.get("numpy")
    if torch is not None and isinstance(value, torch.Tensor):
        return True
    if numpy is not None and isinstance(value, numpy.ndarray):
        return True
    return hasattr(value, "__cuda_array_interface__")


def _dtype(value: Any, path: Path) -> str:
    name = name_of(getattr(value, "dtype", None))
    if name is None:
        raise CheckpointError(path, f"{kind_of(value)}: the format has no dtype for "
                                    f"{getattr(value, 'dtype', None)!r}")
    return name


def _torch_leaf(torch: Any, value: Any, dtype: str, path: Path) -> Leaf:
    is_parameter = type(value) is torch.nn.Parameter
    if type(value) is not torch.Tensor and not is_parameter:
        raise CheckpointError(path, f"{kind_of(value)} is more than a tensor")
    if value.layout is not torch.strided or value.is_quantized:
        raise CheckpointError(path, f"a tensor of layout {value.layout} or quantized "
                                    "is not one piece of memory")
    if value.is_conj() or value.is_neg():
        raise CheckpointError(path, "a conjugated or negated view of a tensor has "
                                    "not the bytes that it shows; resolve it first")
    memory = describe(value.untyped_storage(), False, "tensor")
    elements = 1 + sum((extent - 1) * stride
                       for extent, stride in zip(value.shape, value.stride()))
    nbytes = elements * DTYPES[dtype] if value.numel() else 0
    return Leaf(memory, value.data_ptr(), nbytes, dtype, tuple(value.shape),
                tuple(value.stride()), value.requires_grad, is_parameter,
                str(value.device))


def leaf_of(value: Any, path: Path) -> Leaf:
    """Everything about a tensor or an array that is to be saved."""
    dtype, torch = _dtype(value, path), _torch()
    if torch is not None and isinstance(value, torch.Tensor):
        return _torch_leaf(torch, value, dtype, path)
    memory = describe(value, False, "array")
    shape = tuple(int(extent) for extent in value.shape)
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    device = getattr(getattr(value, "device", None), "id", 0)
    location = (f"cuda:{device}" if hasattr(value, "__cuda_array_interface__")
                else "cpu")
    return Leaf(memory, memory.address, memory.nbytes, dtype, shape,
                tuple(strides[::-1]), False, False, location)


def collect(value: Any, path: Path) -> Dict[int, Leaf]:
    """{id of the tensor: leaf} of everything in the containers."""
    found: Dict[int, Leaf] = {}
    seen, waiting = set(), [value]
    while waiting:
        value = waiting.pop()
        if type(value) in PLAIN or id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, dict):
            waiting += list(value.values())
            # what an OrderedDict has beside: _metadata
            waiting += list(getattr(value, "__dict__", {}).values())
        elif isinstance(value, (list, tuple)):
            waiting += list(value)
        elif is_leaf(value):
            found[id(value)] = leaf_of(value, path)
    return found


def _groups(leaves: Dict[int, Leaf]) -> Iterator[List[int]]:
    """Tensors that overlap, and can be views of one storage."""
    order = sorted(leaves, key=lambda name: (leaves[name].dtype,
                                             leaves[name].address))
    group: List[int] = []
    low = high = 0
    for name in order:
        leaf = leaves[name]
        if (group and leaf.nbytes and leaf.dtype == leaves[group[0]].dtype
                and leaf.address < high
                and (leaf.address - low) % DTYPES[leaf.dtype] == 0):
            group.append(name)
            high = max(high, leaf.address + leaf.nbytes)
            continue
        if group:
            yield group
        group, low, high = [name], leaf.address, leaf.address + leaf.nbytes
    if group:
        yield group


def _wait_for(memories: List[Memory]) -> None:
    for memory in memories:
        memory.wait()


def place(leaves: Dict[int, Leaf]) -> Tuple[List[Piece], Dict[int, Tuple[Piece, int]]]:
    """The storages, and for each tensor its storage and offset in elements."""
    pieces: List[Piece] = []
    where: Dict[int, Tuple[Piece, int]] = {}
    for group in _groups(leaves):
        members = [leaves[name] for name in group]
        first = members[0]
        stop = max(leaf.address + leaf.nbytes for leaf in members)
        memories = [leaf.memory for leaf in members]
        nbytes = stop - first.address
        memory = Memory(first.address if nbytes else 0, nbytes, True, memories,
                        lambda memories=memories: _wait_for(memories))  # type: ignore
        piece = Piece(str(len(pieces)), first.dtype, memory, first.location)
        pieces.append(piece)
        for name in group:
            offset = leaves[name].address - first.address
            where[name] = piece, offset // DTYPES[first.dtype]
    return pieces, where

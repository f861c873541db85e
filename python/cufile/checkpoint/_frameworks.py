# SPDX-License-Identifier: Apache-2.0
"""PyTorch and NumPy, as far as checkpoints need them."""
from typing import Any, Callable, Dict, Optional, Protocol, Tuple

from .. import _frameworks
from .._dtypes import DTYPES

_WIDEST = 16


class Framework(Protocol):
    """What load_file uses; pass one of your own as `framework`."""

    def lacks(self, dtype: str) -> Optional[str]:
        """Why tensors of this dtype cannot be had, or None."""

    def empty(self, nbytes: int, device: Any) -> Any:
        """A block of bytes on a device, which cufile can read into."""

    def storage(self, block: Any, start: int, stop: int) -> Any:
        """These bytes of a block, for tensors of any dtype."""

    def tensor(self, storage: Any, dtype: str, offset: int, shape: Tuple[int, ...],
               strides: Tuple[int, ...], requires_grad: bool) -> Any:
        """A view of a storage; offset and strides count elements."""

    def parameter(self, tensor: Any, requires_grad: bool) -> Any:
        """The tensor as a parameter of a model."""

    def dtype(self, name: str) -> Any: ...

    def size(self, shape: Tuple[int, ...]) -> Any: ...

    def device(self, name: str) -> Any: ...


class Torch(_frameworks.Torch):
    def storage(self, block: Any, start: int, stop: int) -> Any:
        part = block[start:stop]
        # elements of a storage begin at multiples of their size
        return part.clone() if part.storage_offset() % _WIDEST else part

    def tensor(self, storage: Any, dtype: str, offset: int, shape: Tuple[int, ...],
               strides: Tuple[int, ...], requires_grad: bool) -> Any:
        first = storage.storage_offset() // DTYPES[dtype]
        tensor = self.torch.empty(0, dtype=self.find(dtype), device=storage.device)
        tensor.set_(storage.untyped_storage(), first + offset, shape, strides)
        tensor.requires_grad = requires_grad
        return tensor

    def parameter(self, tensor: Any, requires_grad: bool) -> Any:
        return self.torch.nn.Parameter(tensor, requires_grad)

    def dtype(self, name: str) -> Any:
        return self.find(name)

    def size(self, shape: Tuple[int, ...]) -> Any:
        return self.torch.Size(shape)

    def device(self, name: str) -> Any:
        return self.torch.device(name)


class NumPy(_frameworks.NumPy):
    """Parameters and gradients it has none: they are plain arrays."""

    def storage(self, block: Any, start: int, stop: int) -> Any:
        part = block[start:stop]
        return part.copy() if start % _WIDEST else part

    def tensor(self, storage: Any, dtype: str, offset: int, shape: Tuple[int, ...],
               strides: Tuple[int, ...], requires_grad: bool) -> Any:
        unit = DTYPES[dtype]
        return self.numpy.ndarray(shape, self.find(dtype), storage, offset * unit,
                                  [stride * unit for stride in strides])

    def parameter(self, tensor: Any, requires_grad: bool) -> Any:
        return tensor

    def dtype(self, name: str) -> Any:
        found = self.find(name)
        if found is None:
            raise ValueError(f"NumPy has no dtype {name}")
        return found

    def size(self, shape: Tuple[int, ...]) -> Any:
        return shape

    def device(self, name: str) -> Any:
        return name


_MAKERS: Dict[str, Callable[[], Framework]] = {"torch": Torch, "numpy": NumPy}


def choose(framework: Any) -> Framework:
    return _frameworks.choose(framework, _MAKERS)

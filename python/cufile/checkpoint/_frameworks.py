# SPDX-License-Identifier: Apache-2.0
"""PyTorch and NumPy, as far as checkpoints need them."""
import importlib.util
from typing import Any, Optional, Protocol, Tuple

from ..safetensors import _frameworks as _models
from ._dtypes import DTYPES

_WIDEST = 16


class Framework(Protocol):
    """What load_file uses; pass one of your own as `framework`."""

    def check(self, dtype: str) -> Optional[str]:
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


class Torch(_models.Torch):
    """torch.Tensor on any device of torch that has memory."""

    def check(self, dtype: Any) -> Optional[str]:
        if hasattr(self.torch, dtype):
            return None
        return f"this PyTorch has no dtype {dtype}"

    def storage(self, block: Any, start: int, stop: int) -> Any:
        part = block[start:stop]
        # elements of a storage begin at multiples of their size
        return part.clone() if part.storage_offset() % _WIDEST else part

    def tensor(self, storage: Any, dtype: str, offset: int, shape: Tuple[int, ...],
               strides: Tuple[int, ...], requires_grad: bool) -> Any:
        first = storage.storage_offset() // DTYPES[dtype]
        tensor = self.torch.empty(0, dtype=self.dtype(dtype), device=storage.device)
        tensor.set_(storage.untyped_storage(), first + offset, shape, strides)
        tensor.requires_grad = requires_grad
        return tensor

    def parameter(self, tensor: Any, requires_grad: bool) -> Any:
        return self.torch.nn.Parameter(tensor, requires_grad)

    def dtype(self, name: str) -> Any:
        return getattr(self.torch, name)

    def size(self, shape: Tuple[int, ...]) -> Any:
        return self.torch.Size(shape)

    def device(self, name: str) -> Any:
        return self.torch.device(name)


class NumPy(_models.NumPy):
    """numpy.ndarray, on "cpu"; bfloat16 and float8 by ml_dtypes if it is
    there. Parameters and gradients it has none: they are plain arrays."""

    def _named(self, name: str) -> Any:
        if name not in self._NAMES.values() and name != "complex128":
            found = getattr(self.extra, name, None)
            return None if found is None else self.numpy.dtype(found)
        return self.numpy.dtype(name)

    def check(self, dtype: Any) -> Optional[str]:
        if self._named(dtype) is not None:
            return None
        return (f"NumPy has no dtype {dtype}; PyTorch, or the package ml_dtypes, "
                "has")

    def storage(self, block: Any, start: int, stop: int) -> Any:
        part = block[start:stop]
        return part.copy() if start % _WIDEST else part

    def tensor(self, storage: Any, dtype: str, offset: int, shape: Tuple[int, ...],
               strides: Tuple[int, ...], requires_grad: bool) -> Any:
        unit = DTYPES[dtype]
        return self.numpy.ndarray(shape, self._named(dtype), storage, offset * unit,
                                  [stride * unit for stride in strides])

    def parameter(self, tensor: Any, requires_grad: bool) -> Any:
        return tensor

    def dtype(self, name: str) -> Any:
        found = self._named(name)
        if found is None:
            raise ValueError(f"NumPy has no dtype {name}")
        return found

    def size(self, shape: Tuple[int, ...]) -> Any:
        return shape

    def device(self, name: str) -> Any:
        return name


def choose(framework: Any) -> Framework:
    """The framework of this name; None: PyTorch where it is installed."""
    if framework is None:
        framework = "torch" if importlib.util.find_spec("torch") else "numpy"
    if framework == "torch":
        return Torch()
    if framework == "numpy":
        return NumPy()
    if isinstance(framework, str):
        raise ValueError(f"framework {framework!r} is neither 'torch' nor 'numpy'")
    chosen: Framework = framework
    return chosen

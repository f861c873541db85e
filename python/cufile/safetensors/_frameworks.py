# SPDX-License-Identifier: Apache-2.0
"""PyTorch and NumPy, as far as safetensors files need them."""
from typing import Any, Callable, Dict, Optional, Protocol

from .. import _frameworks
from ._header import DTYPES, NAMES, Tensor


class Framework(Protocol):
    """What load_file uses; pass one of your own as `framework`."""

    def check(self, tensor: Tensor) -> Optional[str]:
        """Why this tensor cannot be had, or None."""

    def empty(self, nbytes: int, device: Any) -> Any:
        """A block of bytes on a device, which cufile can read into."""

    def view(self, block: Any, start: int, tensor: Tensor) -> Any:
        """The tensor whose bytes begin at `start` in the block."""


class Torch(_frameworks.Torch):
    def check(self, tensor: Tensor) -> Optional[str]:
        return self.lacks(NAMES[tensor.dtype])

    def view(self, block: Any, start: int, tensor: Tensor) -> Any:
        dtype = self.find(NAMES[tensor.dtype])
        if tensor.start == tensor.stop:
            return self.torch.empty(tensor.shape, dtype=dtype, device=block.device)
        part = block[start:start + tensor.stop - tensor.start]
        if start % DTYPES[tensor.dtype]:
            part = part.clone()
        return part.view(dtype).view(tensor.shape)


class NumPy(_frameworks.NumPy):
    def check(self, tensor: Tensor) -> Optional[str]:
        return self.lacks(NAMES[tensor.dtype])

    def view(self, block: Any, start: int, tensor: Tensor) -> Any:
        part = block[start:start + tensor.stop - tensor.start]
        if start % DTYPES[tensor.dtype]:
            part = part.copy()
        return part.view(self.find(NAMES[tensor.dtype])).reshape(tensor.shape)


_MAKERS: Dict[str, Callable[[], Framework]] = {"torch": Torch, "numpy": NumPy}


def choose(framework: Any) -> Framework:
    return _frameworks.choose(framework, _MAKERS)

# SPDX-License-Identifier: Apache-2.0
"""PyTorch and NumPy, as far as loading needs them.

A framework says whether it has a dtype, makes a block of bytes on a device,
and shows a part of a block as a tensor.
"""
import importlib
import importlib.util
from typing import Any, Optional, Protocol

from ._header import DTYPES, Tensor

_ALIGNMENT = 4096


class Framework(Protocol):
    """What load_file uses; pass one of your own as `framework`."""

    def check(self, tensor: Tensor) -> Optional[str]:
        """Why this tensor cannot be had, or None."""

    def empty(self, nbytes: int, device: Any) -> Any:
        """A block of bytes on a device, which cufile can read into."""

    def view(self, block: Any, start: int, tensor: Tensor) -> Any:
        """The tensor whose bytes begin at `start` in the block."""


class Torch:
    """torch.Tensor on any device of torch that has memory."""
    _NAMES = {"BOOL": "bool", "U8": "uint8", "I8": "int8", "I16": "int16",
              "U16": "uint16", "F16": "float16", "BF16": "bfloat16",
              "I32": "int32", "U32": "uint32", "F32": "float32", "I64": "int64",
              "U64": "uint64", "F64": "float64", "C64": "complex64",
              "F8_E5M2": "float8_e5m2", "F8_E4M3": "float8_e4m3fn",
              "F8_E8M0": "float8_e8m0fnu", "F8_E4M3FNUZ": "float8_e4m3fnuz",
              "F8_E5M2FNUZ": "float8_e5m2fnuz"}

    def __init__(self) -> None:
        self.torch: Any = importlib.import_module("torch")

    def check(self, tensor: Tensor) -> Optional[str]:
        if hasattr(self.torch, self._NAMES[tensor.dtype]):
            return None
        return f"this PyTorch has no dtype for {tensor.dtype}"

    def empty(self, nbytes: int, device: Any) -> Any:
        return self.torch.empty(nbytes, dtype=self.torch.uint8, device=device)

    def view(self, block: Any, start: int, tensor: Tensor) -> Any:
        dtype = getattr(self.torch, self._NAMES[tensor.dtype])
        if tensor.start == tensor.stop:
            return self.torch.empty(tensor.shape, dtype=dtype, device=block.device)
        part = block[start:start + tensor.stop - tensor.start]
        if start % DTYPES[tensor.dtype]:
            part = part.clone()
        return part.view(dtype).view(tensor.shape)


class NumPy:
    """numpy.ndarray, on "cpu"; BF16 and F8 by ml_dtypes if it is there."""
    _NAMES = {"BOOL": "bool", "U8": "uint8", "I8": "int8", "I16": "int16",
              "U16": "uint16", "F16": "float16", "I32": "int32", "U32": "uint32",
              "F32": "float32", "I64": "int64", "U64": "uint64",
              "F64": "float64", "C64": "complex64"}
    _EXTRA = {"BF16": "bfloat16", "F8_E5M2": "float8_e5m2",
              "F8_E4M3": "float8_e4m3fn", "F8_E8M0": "float8_e8m0fnu",
              "F8_E4M3FNUZ": "float8_e4m3fnuz", "F8_E5M2FNUZ": "float8_e5m2fnuz"}

    def __init__(self) -> None:
        self.numpy: Any = importlib.import_module("numpy")
        self.extra: Any = None
        if importlib.util.find_spec("ml_dtypes"):
            self.extra = importlib.import_module("ml_dtypes")

    def _dtype(self, tensor: Tensor) -> Any:
        if tensor.dtype in self._NAMES:
            return self.numpy.dtype(self._NAMES[tensor.dtype])
        extra = getattr(self.extra, self._EXTRA[tensor.dtype], None)
        return None if extra is None else self.numpy.dtype(extra)

    def check(self, tensor: Tensor) -> Optional[str]:
        if self._dtype(tensor) is None:
            return (f"NumPy has no dtype for {tensor.dtype}; PyTorch, or the "
                    "package ml_dtypes, has")
        return None

    def empty(self, nbytes: int, device: Any) -> Any:
        if str(device) != "cpu":
            raise ValueError(f"NumPy has no device {str(device)!r}, only 'cpu'; "
                             "PyTorch is not installed or was not chosen")
        whole = self.numpy.empty(nbytes + _ALIGNMENT, dtype="uint8")
        skip = -whole.ctypes.data % _ALIGNMENT
        return whole[skip:skip + nbytes]

    def view(self, block: Any, start: int, tensor: Tensor) -> Any:
        part = block[start:start + tensor.stop - tensor.start]
        if start % DTYPES[tensor.dtype]:
            part = part.copy()
        return part.view(self._dtype(tensor)).reshape(tensor.shape)


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

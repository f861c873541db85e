# SPDX-License-Identifier: Apache-2.0
"""PyTorch and NumPy, as far as every loader needs them.

A framework has dtypes, by the names of _dtypes.py, and makes blocks of bytes
on a device; how tensors are made of a block is a matter of each format.
"""
import importlib
import importlib.util
from typing import Any, Callable, Mapping, Optional, TypeVar

from ._bulk import ALIGNMENT

F = TypeVar("F")


class Torch:
    """torch.Tensor on any device of torch that has memory."""

    def __init__(self) -> None:
        self.torch: Any = importlib.import_module("torch")

    def find(self, dtype: str) -> Any:
        """The dtype of this name, or None."""
        return getattr(self.torch, dtype, None)

    def lacks(self, dtype: str) -> Optional[str]:
        """Why there is no such dtype, or None."""
        if self.find(dtype) is not None:
            return None
        return f"this PyTorch has no dtype {dtype}"

    def empty(self, nbytes: int, device: Any) -> Any:
        try:
            return self.torch.empty(nbytes, dtype=self.torch.uint8, device=device)
        except NotImplementedError:
            # PyTorch tells a hundred lines of what it can do instead
            raise ValueError("this PyTorch has no memory on device "
                             f"{str(device)!r}") from None


class NumPy:
    """numpy.ndarray, on "cpu"; bfloat16 and float8 by ml_dtypes if it is there."""

    def __init__(self) -> None:
        self.numpy: Any = importlib.import_module("numpy")
        self.extra: Any = None
        if importlib.util.find_spec("ml_dtypes"):
            self.extra = importlib.import_module("ml_dtypes")

    def find(self, dtype: str) -> Any:
        """The dtype of this name, or None."""
        try:
            return self.numpy.dtype(dtype)
        except TypeError:
            extra = getattr(self.extra, dtype, None)
            return None if extra is None else self.numpy.dtype(extra)

    def lacks(self, dtype: str) -> Optional[str]:
        """Why there is no such dtype, or None."""
        if self.find(dtype) is not None:
            return None
        return (f"NumPy has no dtype {dtype}; PyTorch, or the package ml_dtypes, "
                "has")

    def empty(self, nbytes: int, device: Any) -> Any:
        if str(device) != "cpu":
            raise ValueError(f"NumPy has no device {str(device)!r}, only 'cpu'; "
                             "PyTorch is not installed or was not chosen")
        whole = self.numpy.empty(nbytes + ALIGNMENT, dtype="uint8")
        skip = -whole.ctypes.data % ALIGNMENT
        return whole[skip:skip + nbytes]


def choose(framework: Any, makers: Mapping[str, Callable[[], F]]) -> F:
    """The framework of this name, of those in `makers`, or `framework` itself;
    None: PyTorch where it is installed."""
    if framework is None:
        framework = "torch" if importlib.util.find_spec("torch") else "numpy"
    if isinstance(framework, str):
        if framework not in makers:
            raise ValueError(f"framework {framework!r} is none of {list(makers)}")
        return makers[framework]()
    chosen: F = framework
    return chosen

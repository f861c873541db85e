# SPDX-License-Identifier: Apache-2.0
"""The two that a checkpoint's pickle is run for.

Plan looks at every tensor before anything is allocated, and finds out which
records are needed. Values makes the tensors when the records have been read.
"""
from typing import Any, Callable, Dict, Tuple

from .._dtypes import DTYPES
from ._archive import Archive, Record
from ._dtypes import MAY_HAVE_GRADIENTS
from ._frameworks import Framework
from ._values import Storage


class Planned:
    """Stands for a tensor while there is none."""
    __slots__ = ()


class Plan:
    """A Builder that checks; records: {key: record} of the storages used."""

    def __init__(self, archive: Archive, maker: Framework) -> None:
        self._archive, self._maker = archive, maker
        self.records: Dict[str, Record] = {}

    def _storage(self, storage: Storage) -> int:
        """Bytes of a storage, whose record has as many."""
        name = f"data/{storage.key}"
        record = self.records.get(storage.key) or self._archive.find(name)
        if record is None:
            raise ValueError(f"there is no record {name!r}")
        nbytes = storage.numel * DTYPES[storage.dtype or "uint8"]
        if nbytes != record.nbytes:
            raise ValueError(f"a storage of {nbytes} bytes, but record {name!r} has "
                             f"{record.nbytes}")
        self.records[storage.key] = record
        return nbytes

    def tensor(self, storage: Storage, dtype: str, offset: int,
               shape: Tuple[int, ...], strides: Tuple[int, ...],
               requires_grad: bool) -> Planned:
        room, unit = self._storage(storage), DTYPES[dtype]
        reason = self._maker.lacks(dtype)
        if reason:
            raise ValueError(reason)
        elements, last = 1, offset
        for extent, stride in zip(shape, strides):
            elements *= extent
            last += (extent - 1) * stride
        stop = (last + 1 if elements else offset) * unit
        if stop > room or elements * unit >= 1 << 63:
            raise ValueError(f"a tensor of shape {shape}, strides {strides} and "
                             f"offset {offset} of {dtype} needs {stop} bytes of "
                             f"storage {storage.key!r}, which has {room}")
        if requires_grad:
            self._check_gradient(dtype)
        return Planned()

    @staticmethod
    def _check_gradient(dtype: str) -> None:
        if not dtype.startswith(MAY_HAVE_GRADIENTS):
            raise ValueError(f"a tensor of {dtype} has no gradient")

    def is_tensor(self, value: Any) -> bool:
        return type(value) is Planned

    def parameter(self, tensor: Any, requires_grad: bool) -> Planned:
        return Planned()

    def dtype(self, name: str) -> Any:
        return self._maker.dtype(name)

    def size(self, shape: Tuple[int, ...]) -> Any:
        return self._maker.size(shape)

    def device(self, name: str) -> Any:
        try:
            return self._maker.device(name)
        except RuntimeError as error:
            raise ValueError(str(error)) from None


class Values:
    """A Builder of real tensors; bytes_of(key) are those of a storage."""

    def __init__(self, maker: Framework, bytes_of: Callable[[str], Any]) -> None:
        self._maker, self._bytes_of = maker, bytes_of
        self._storages: Dict[str, Any] = {}
        self.dtype, self.size, self.device = maker.dtype, maker.size, maker.device

    def tensor(self, storage: Storage, dtype: str, offset: int,
               shape: Tuple[int, ...], strides: Tuple[int, ...],
               requires_grad: bool) -> Any:
        if storage.key not in self._storages:
            self._storages[storage.key] = self._bytes_of(storage.key)
        return self._maker.tensor(self._storages[storage.key], dtype, offset, shape,
                                  strides, requires_grad)

    def is_tensor(self, value: Any) -> bool:
        return True

    def parameter(self, tensor: Any, requires_grad: bool) -> Any:
        return self._maker.parameter(tensor, requires_grad)

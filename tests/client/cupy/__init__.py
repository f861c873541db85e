# SPDX-License-Identifier: Apache-2.0
"""Stands for CuPy where there is no GPU: as much of it as KvikIO's own tests
use, in memory of whatever libcuda.so.1 there is, so that they run on the fake
driver. CuPy itself asks the CUDA runtime, and that the driver for private
tables which the fake one has not. Put its folder on PYTHONPATH.
"""
import numpy
from numpy import dtype, float64  # noqa: F401

from . import _memory as cuda

__all__ = ["cuda", "dtype", "float64", "ndarray", "testing"]


class ndarray:  # pylint: disable=invalid-name
    """Elements that follow each other in device memory; slices are views."""

    def __init__(self, shape, dtype=float64, memptr=None):
        shape = tuple(shape) if hasattr(shape, "__iter__") else (shape,)
        self.shape, self.dtype = shape, numpy.dtype(dtype)
        self.size = int(numpy.prod(shape))
        self.nbytes = self.size * self.itemsize
        self.memptr = memptr or cuda.allocator(self.nbytes)

    itemsize = property(lambda self: self.dtype.itemsize)

    @property
    def __cuda_array_interface__(self):
        return {"shape": self.shape, "typestr": self.dtype.str, "version": 3,
                "data": (self.memptr.ptr, False), "strides": None}

    def __len__(self):
        return self.shape[0]

    def __bytes__(self):
        return self.get().tobytes()

    def get(self):
        return numpy.frombuffer(self.memptr.get(self.nbytes),
                                self.dtype).reshape(self.shape)

    def set(self, values):
        values = numpy.ascontiguousarray(values, self.dtype)
        self.memptr.put(numpy.broadcast_to(values, self.shape).tobytes())

    def copy(self):
        return array(self.get())

    def tofile(self, file):
        self.get().tofile(file)

    def __getitem__(self, index):
        start, stop, step = index.indices(len(self))
        assert step == 1 and len(self.shape) == 1
        return ndarray(max(stop - start, 0), self.dtype,
                       self.memptr.at(start * self.itemsize))

    def __setitem__(self, index, value):
        self[index].set(value)


def array(values):
    made = ndarray(values.shape, values.dtype)
    made.set(values)
    return made


def arange(*arguments, **options):
    return array(numpy.arange(*arguments, **options))


def linspace(*arguments, **options):
    return array(numpy.linspace(*arguments, **options))


def zeros(shape, dtype=float64):
    return array(numpy.zeros(shape, dtype))


def zeros_like(other):
    return zeros(other.shape, other.dtype)


def empty(shape, dtype=float64):
    return ndarray(shape, dtype)


def empty_like(other):
    return empty(other.shape, other.dtype)


def copyto(target, source):
    target.set(source.get())


def host(value):
    return value.get() if isinstance(value, ndarray) else value


def array_equal(first, second):
    return numpy.array_equal(host(first), host(second))


class testing:  # pylint: disable=invalid-name
    @staticmethod
    def assert_array_equal(first, second):
        numpy.testing.assert_array_equal(host(first), host(second))

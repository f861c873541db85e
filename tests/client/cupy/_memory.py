# SPDX-License-Identifier: Apache-2.0
"""cupy.cuda: device memory, streams and devices by the driver's own calls."""
import contextlib
import ctypes

_driver = ctypes.CDLL("libcuda.so.1")


def _ok(name, *arguments):
    result = getattr(_driver, name)(*arguments)
    assert result == 0, f"{name}: {result}"


def _address(name, *arguments):
    made = ctypes.c_uint64()
    _ok(name, ctypes.byref(made), *arguments)
    return made.value


class Device:
    """with Device(1): its primary context is current."""

    def __init__(self, number=0):
        device, self.context = ctypes.c_int(), ctypes.c_void_p()
        _ok("cuDeviceGet", ctypes.byref(device), number)
        _ok("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), device)

    def __enter__(self):
        _ok("cuCtxPushCurrent_v2", self.context)

    def __exit__(self, *_):
        _ok("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))


class Memory:
    """An allocation, which is freed with its last pointer."""

    def __init__(self, size, pool=False):
        self.context = ctypes.c_void_p()
        _ok("cuCtxGetCurrent", ctypes.byref(self.context))
        self.pool, size = pool, ctypes.c_size_t(max(size, 1))
        if pool:
            self.ptr = _address("cuMemAllocAsync", size, None)
            _ok("cuStreamSynchronize", None)
        else:
            self.ptr = _address("cuMemAlloc_v2", size)

    def __del__(self):
        address = ctypes.c_uint64(self.ptr)
        _ok("cuCtxPushCurrent_v2", self.context)
        if self.pool:
            _ok("cuMemFreeAsync", address, None)
        else:
            _ok("cuMemFree_v2", address)
        _ok("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))


class MemoryPointer:
    def __init__(self, memory, offset):
        self.memory, self.offset = memory, offset
        self.ptr = memory.ptr + offset

    def at(self, offset):
        return MemoryPointer(self.memory, self.offset + offset)

    def put(self, data):
        if data:
            _ok("cuMemcpyHtoD_v2", ctypes.c_uint64(self.ptr), data,
                ctypes.c_size_t(len(data)))
            _ok("cuCtxSynchronize")

    def get(self, nbytes):
        room = ctypes.create_string_buffer(max(nbytes, 1))
        if nbytes:
            _ok("cuMemcpyDtoH_v2", room, ctypes.c_uint64(self.ptr),
                ctypes.c_size_t(nbytes))
        return room.raw[:nbytes]


def malloc(size):
    return MemoryPointer(Memory(size), 0)


def malloc_async(size):
    return MemoryPointer(Memory(size, pool=True), 0)


_allocators = [malloc]


def allocator(size):
    return _allocators[-1](size)


@contextlib.contextmanager
def using_allocator(chosen):
    _allocators.append(chosen)
    try:
        yield
    finally:
        _allocators.pop()


class Stream:
    def __init__(self):
        self.ptr = _address("cuStreamCreate", 0)

    def synchronize(self):
        _ok("cuStreamSynchronize", ctypes.c_void_p(self.ptr))


class runtime:  # pylint: disable=invalid-name
    @staticmethod
    def getDeviceCount():  # pylint: disable=invalid-name
        count = ctypes.c_int()
        _ok("cuDeviceGetCount", ctypes.byref(count))
        return count.value


_ok("cuInit", 0)
_ok("cuCtxSetCurrent", Device(0).context)

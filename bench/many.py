# SPDX-License-Identifier: Apache-2.0
"""What a registration costs beside many others, of buffers and of files.

    python3 bench/many.py LIBRARY [BUFFERS [FILES]]

Blocks of a cache of keys and values are registered one by one by some servers
of language models. Memory is a GPU's where there is one. Each line is the mean
of a quarter of the calls; blocks go in the order they came, as servers do.
"""
import ctypes
import mmap
import os
import resource
import sys
import tempfile
import time

BLOCK = 4096


class Error(ctypes.Structure):
    _fields_ = [("err", ctypes.c_int), ("cu_err", ctypes.c_int)]


class Descr(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("fd", ctypes.c_long), ("ops", ctypes.c_void_p)]


def gpu_memory(size):
    """Address, or None without a GPU."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    context, base = ctypes.c_void_p(), ctypes.c_uint64()
    if cuda.cuInit(0) or cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0):
        return None
    if cuda.cuCtxSetCurrent(context) or cuda.cuMemAlloc_v2(
        ctypes.byref(base), ctypes.c_size_t(size)
    ):
        return None
    return base.value


def quarters(what, call, items):
    """Calls call(item) for each, and prints what one took."""
    step = max(len(items) // 4, 1)
    means = []
    for first in range(0, len(items), step):
        some = items[first : first + step]
        begun = time.perf_counter()
        for item in some:
            call(item)
        means.append((time.perf_counter() - begun) / len(some) * 1e6)
    print(f"{what:24}" + "".join(f"{mean:10.2f}" for mean in means[:4]) + "  us")


def check(status):
    if status.err:
        sys.exit(f"code {status.err}")


def buffers(lib, nr):
    base = gpu_memory(nr * BLOCK)
    if base is None:
        memory = ctypes.c_char.from_buffer(mmap.mmap(-1, nr * BLOCK))
        base = ctypes.addressof(memory)
    blocks = [ctypes.c_void_p(base + i * BLOCK) for i in range(nr)]
    size = ctypes.c_size_t(BLOCK)
    quarters("buffer register", lambda b: check(lib.cuFileBufRegister(b, size, 0)), blocks)
    quarters("buffer deregister", lambda b: check(lib.cuFileBufDeregister(b)), blocks)


def files(lib, nr):
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    handles = []

    def register(fd):
        handle = ctypes.c_void_p()
        check(lib.cuFileHandleRegister(ctypes.byref(handle), ctypes.byref(Descr(1, fd, None))))
        handles.append(handle)

    with tempfile.NamedTemporaryFile(dir="/var/tmp") as file:
        fds = [os.open(file.name, os.O_RDWR) for _ in range(min(nr, most - 100))]
        quarters(f"file register, {len(fds)}", register, fds)
        quarters("file deregister", lib.cuFileHandleDeregister, handles)


def main():
    lib = ctypes.CDLL(sys.argv[1])
    for name in ("cuFileBufRegister", "cuFileBufDeregister", "cuFileHandleRegister"):
        getattr(lib, name).restype = Error
    lib.cuFileHandleDeregister.restype = None
    buffers(lib, int(sys.argv[2]) if len(sys.argv) > 2 else 100000)
    files(lib, int(sys.argv[3]) if len(sys.argv) > 3 else 20000)


if __name__ == "__main__":
    main()

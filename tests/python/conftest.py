# SPDX-License-Identifier: Apache-2.0
"""What the tests of the Python package share.

The package finds the library under test in OPENCUFILE_LIBRARY. OCF_FAKECUDA
is the fake GPU driver, loaded by the real one's name; without it the tests
use the machine's own driver, and skip what needs a GPU where there is none.
"""
import contextlib
import ctypes
import gc
import os
import pathlib
import resource
import sys
import threading

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

# O_DIRECT works there, and on the tmpfs that /tmp may be it need not
os.environ.setdefault("TMPDIR", "/var/tmp")

GUARD = 4096


def plain_environment(**changes):
    """The environment of a child process with no libcufile in its way; what
    the library itself needs from LD_LIBRARY_PATH stays. None removes."""
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("LD_", "CUFILE_"))}
    folders = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    folders.insert(0, changes.pop("LD_LIBRARY_PATH", ""))
    kept = [folder for i, folder in enumerate(folders) if folder and (
        i == 0 or not list(pathlib.Path(folder).glob("libcufile.so*")))]
    if kept:
        env["LD_LIBRARY_PATH"] = ":".join(kept)
    env.update(changes)
    return {name: value for name, value in env.items() if value is not None}


def raised_soon(call):
    """What the call raises; for one that might wait for ever instead."""
    raised = []

    def run():
        try:
            call()
        except Exception as error:
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(60)
    assert raised, "it waits" if thread.is_alive() else "nothing is raised"
    return raised[0]


def pytest_collection_modifyitems(items):
    if os.environ.get("OCF_SANITIZED") == "1":
        mark = pytest.mark.skip(
            reason="a sanitized library cannot be loaded into Python")
        for item in items:
            item.add_marker(mark)


class Gpu:
    """A GPU, by the driver's own calls."""

    def __init__(self, number=0):
        self.driver = ctypes.CDLL(os.environ.get("OCF_FAKECUDA", "libcuda.so.1"),
                                  mode=ctypes.RTLD_GLOBAL)
        self.ok("cuInit", 0)
        device, self.context = ctypes.c_int(), ctypes.c_void_p()
        self.ok("cuDeviceGet", ctypes.byref(device), number)
        self.ok("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), device)
        self.use()

    def ok(self, name, *arguments):
        result = getattr(self.driver, name)(*arguments)
        assert result == 0, f"{name}: {result}"

    def use(self):
        self.ok("cuCtxSetCurrent", self.context)

    def alloc(self, nbytes):
        address = ctypes.c_uint64()
        self.ok("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(nbytes))
        return address.value

    def free(self, address):
        self.ok("cuMemFree_v2", ctypes.c_uint64(address))

    def put(self, address, data):
        self.ok("cuMemcpyHtoD_v2", ctypes.c_uint64(address), data,
                ctypes.c_size_t(len(data)))
        self.ok("cuCtxSynchronize")

    def get(self, address, nbytes):
        data = ctypes.create_string_buffer(max(nbytes, 1))
        if nbytes:
            self.ok("cuMemcpyDtoH_v2", data, ctypes.c_uint64(address),
                    ctypes.c_size_t(nbytes))
        return data.raw[:nbytes]

    def stream(self):
        stream = ctypes.c_void_p()
        self.ok("cuStreamCreate", ctypes.byref(stream), 1)
        return stream.value

    def array(self, nbytes, fill=None):
        return GpuArray(self, nbytes, fill)


class GpuArray:
    """Bytes of GPU memory with guards, as CuPy would show them."""

    def __init__(self, gpu, nbytes, fill=None):
        self.gpu, self.nbytes = gpu, nbytes
        gpu.use()
        self.base = gpu.alloc(nbytes + 2 * GUARD)
        self.address = self.base + GUARD
        self.before = os.urandom(nbytes + 2 * GUARD)
        gpu.put(self.base, self.before)
        if fill is not None:
            self.set(fill)

    def __del__(self):
        self.gpu.use()
        self.gpu.free(self.base)

    def set(self, data):
        assert len(data) == self.nbytes
        self.gpu.use()
        self.gpu.put(self.address, bytes(data))

    def get(self):
        self.gpu.use()
        return self.gpu.get(self.address, self.nbytes)

    def guards_whole(self):
        self.gpu.use()
        got = self.gpu.get(self.base, self.nbytes + 2 * GUARD)
        return (got[:GUARD] == self.before[:GUARD]
                and got[-GUARD:] == self.before[-GUARD:])

    @property
    def __cuda_array_interface__(self):
        return {"shape": (self.nbytes,), "typestr": "|u1", "version": 3,
                "data": (self.address, False), "strides": None}


class HostArray:
    """The same in host memory, by the buffer protocol of a memoryview."""

    def __init__(self, nbytes, fill=None):
        self.nbytes = nbytes
        self.before = os.urandom(nbytes + 2 * GUARD)
        self.whole = bytearray(self.before)
        self.view = memoryview(self.whole)[GUARD:GUARD + nbytes]
        if fill is not None:
            self.set(fill)

    def set(self, data):
        self.view[:] = data

    def get(self):
        return bytes(self.view)

    def guards_whole(self):
        return (self.whole[:GUARD] == self.before[:GUARD]
                and self.whole[-GUARD:] == self.before[-GUARD:])


class Place:
    """Where arrays live; array(n) makes one, pass(array) is what is given."""

    def __init__(self, make, give):
        self.array, self.give = make, give


@pytest.fixture(scope="session")
def the_gpu():
    try:
        return Gpu()
    except (OSError, AssertionError) as error:
        pytest.skip(f"no GPU: {error}")


@pytest.fixture
def gpu(the_gpu):
    the_gpu.use()
    return the_gpu


@pytest.fixture
def two_gpus(gpu):
    """[the first, the second]; the first is current."""
    try:
        second = Gpu(1)
    except AssertionError as error:
        pytest.skip(f"no second GPU: {error}")
    gpu.use()
    return [gpu, second]


@pytest.fixture(params=["host", "gpu"])
def place(request):
    """A test that takes it runs on host memory and on GPU memory."""
    if request.param == "host":
        return Place(HostArray, lambda array: array.view)
    device = request.getfixturevalue("gpu")
    return Place(device.array, lambda array: array)


@pytest.fixture(scope="session")
def cufile():
    if not os.environ.get("OPENCUFILE_LIBRARY"):
        pytest.skip("OPENCUFILE_LIBRARY does not name the library under test")
    import cufile as package
    return package


@pytest.fixture
def full_disk(tmp_path):
    """with full_disk(): no file grows beyond 1 MiB. A limit stands in for a
    disk that is full; the signal that comes with it Python ignores."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    @contextlib.contextmanager
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, limits[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    with open(tmp_path / "probe", "wb", buffering=0) as probe, limit():
        try:
            os.pwrite(probe.fileno(), b"1", 1 << 20)
            kept = False
        except OSError:
            kept = True
    os.unlink(tmp_path / "probe")
    if not kept:
        pytest.skip("this kernel does not keep the limit of a file's size")
    return limit


def descriptors():
    """Open descriptors of the process, and where they lead."""
    gc.collect()
    found = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            found[name] = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            pass
    return found


def descriptors_of(path):
    return [link for link in descriptors().values() if link == str(path)]


@pytest.fixture
def data_file(tmp_path):
    """data_file(nbytes) -> (path, its random bytes)"""
    def make(nbytes, name="data"):
        data = os.urandom(nbytes)
        path = tmp_path / name
        path.write_bytes(data)
        return path, data
    return make

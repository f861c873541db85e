# SPDX-License-Identifier: Apache-2.0
"""KvikIO writes and reads GPU memory: kvikio_memory.py FILE

Its parallel tasks meet at odd offsets; KVIKIO_COMPAT_MODE=OFF, set by the
caller, keeps it from doing without cuFile; OCF_LIB is the one it must use. No CuPy: an object with the array
interface is enough, so that this runs on the fake driver too.
"""
import os
import sys

import kvikio
import numpy as np
from cuda.bindings import driver


def ok(answer):
    assert not answer[0], answer
    return answer[1] if len(answer) > 1 else None


class Memory:
    """Bytes of GPU memory that others take for an array."""

    def __init__(self, size):
        self.ptr = int(ok(driver.cuMemAlloc(size)))
        self.size = size
        self.__cuda_array_interface__ = {
            "shape": (size,), "typestr": "|u1", "data": (self.ptr, False),
            "version": 3, "strides": None}

    def put(self, data):
        ok(driver.cuMemcpyHtoD(self.ptr, data.ctypes.data, self.size))

    def get(self):
        data = np.empty(self.size, dtype=np.uint8)
        ok(driver.cuMemcpyDtoH(data.ctypes.data, self.ptr, self.size))
        return data


def round_trip(path, size):
    given = np.random.default_rng().integers(0, 256, size, dtype=np.uint8)
    out, back = Memory(size), Memory(size)
    out.put(given)
    with kvikio.CuFile(path, "w") as file:
        assert file.pwrite(out, task_size=199999).get() == size
    with kvikio.CuFile(path, "r") as file:
        assert file.pread(back, task_size=199999).get() == size
    assert np.array_equal(given, back.get())


ok(driver.cuInit(0))
ok(driver.cuCtxSetCurrent(ok(driver.cuDevicePrimaryCtxRetain(0))))
for length in (1, 199, 4096, 1 << 20, 5_000_003):
    round_trip(sys.argv[1], length)
with open("/proc/self/maps", encoding="ascii") as maps:
    LIBRARIES = {line.split()[-1] for line in maps if "libcufile.so" in line}
assert LIBRARIES == {os.path.realpath(os.environ["OCF_LIB"])}, LIBRARIES
print("version", kvikio.__version__, "on", *LIBRARIES)

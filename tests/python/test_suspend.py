# SPDX-License-Identifier: Apache-2.0
"""A process that another one suspends and restores, as cuda-checkpoint does: its
GPU memory is elsewhere then. Only a real driver can."""
import ctypes
import os
import subprocess
import sys
import time

import pytest

from conftest import Gpu, ROOT

SIZE, SMALL, TIMES = 32 << 20, 4096, 2000


def read_all(gpu, file, stream, data):
    """Small reads that come fast, what is read again and again, and streams."""
    small, large = gpu.array(SMALL), gpu.array(len(data))
    for i in range(TIMES):
        at = i * 7 % (len(data) // SMALL) * SMALL
        assert file.read(small, file_offset=at) == SMALL
        if i % 50 == 0:
            assert small.get() == data[at:at + SMALL]
    for _ in range(6):
        assert file.read(large) == len(data)
    assert large.get() == data and large.guards_whole()
    for nbytes in SMALL, 1 << 20, len(data):
        large.set(bytes(len(data)))
        for _ in range(8):
            done = stream.read(file, large, nbytes)
        assert done.result() == nbytes
        assert large.get() == data[:nbytes] + bytes(len(data) - nbytes)


def child(path):
    """Reads each time that it is told to, and says how it went."""
    import cufile as package
    gpu = Gpu()
    with package.open(path) as file, \
            package.Stream(gpu.stream(), flags=15) as stream:
        for _ in sys.stdin:
            with open(path, "rb") as plain:
                read_all(gpu, file, stream, plain.read())
            print("read", flush=True)


class Suspended:
    """The process, suspended while the block runs."""

    def __init__(self, driver, pid):
        self.driver, self.pid = driver, pid
        self.arguments = ctypes.create_string_buffer(64)

    def call(self, name):
        return getattr(self.driver, f"cuCheckpointProcess{name}")(self.pid,
                                                                  self.arguments)

    def __enter__(self):
        result = self.call("Lock")
        if result == 801:
            pytest.skip("this driver suspends no process")
        assert result == 0
        assert self.call("Checkpoint") == 0

    def __exit__(self, *_):
        assert self.call("Restore") == 0
        assert self.call("Unlock") == 0


def change(path):
    """4097 bytes in the middle, while nobody of the library looks."""
    with open(path, "r+b") as file:
        file.seek(SIZE // 3)
        file.write(os.urandom(4097))


@pytest.mark.parametrize("mapped, rest", [("auto", 1.2), ("off", 0)])
def test_a_process_goes_on_that_was_suspended(cufile, gpu, data_file, mapped, rest):
    if not hasattr(gpu.driver, "cuCheckpointProcessLock"):
        pytest.skip("this driver suspends no process")
    path, _ = data_file(SIZE)
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "OCF_MAPPED": mapped}
    with subprocess.Popen([sys.executable, __file__, str(path)], env=env, text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:

        def read():
            print(file=process.stdin, flush=True)
            assert process.stdout.readline() == "read\n"

        try:
            for _ in range(3):
                read()
                time.sleep(rest)
                with Suspended(gpu.driver, process.pid):
                    change(path)
            read()
            process.stdin.close()
            assert process.wait(60) == 0
        finally:
            process.kill()


if __name__ == "__main__":
    child(sys.argv[1])

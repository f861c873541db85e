# SPDX-License-Identifier: Apache-2.0
"""cufile.Stream: requests in the order of a GPU's stream."""
import ctypes
import gc
import os
import pathlib
import subprocess
import sys
import weakref

import pytest

from conftest import ROOT, plain_environment


def test_requests_of_a_stream_follow_each_other(cufile, gpu, tmp_path):
    data = os.urandom(100003)
    first, second = gpu.array(len(data), data), gpu.array(len(data))
    with cufile.open(tmp_path / "f", "w+") as file, \
            cufile.Stream(gpu.stream()) as stream:
        out = stream.write(file, first)
        back = stream.read(file, second)
        assert back.result() == len(data) == out.result()
    assert second.get() == data and second.guards_whole()
    assert (tmp_path / "f").read_bytes() == data


def test_parts_go_where_the_offsets_say(cufile, gpu, data_file):
    path, data = data_file(10000)
    array = gpu.array(10000)
    before = array.get()
    with cufile.open(path) as file, cufile.Stream(gpu.stream(), flags=15) as stream:
        assert stream.read(file, array, 4096, 4096, 4096).result() == 4096
    assert array.get() == before[:4096] + data[4096:8192] + before[8192:]


def test_the_end_of_the_file_is_a_short_count(cufile, gpu, data_file):
    path, data = data_file(100)
    array = gpu.array(4096)
    with cufile.open(path) as file:
        assert cufile.Stream(gpu.stream()).read(file, array).result() == 100
    assert array.get()[:100] == data


def test_what_fails_raises_with_its_error(cufile, gpu, data_file):
    path, _ = data_file(100)
    array = gpu.array(64)
    with cufile.open(path) as file:
        stream = cufile.Stream(gpu.stream())
        with pytest.raises(cufile.CuFileError) as caught:
            stream.write(file, array).result()
        assert caught.value.filename == path
        assert "64 bytes at 0" in str(caught.value)
        with pytest.raises(ValueError, match="65 bytes"):
            stream.read(file, array, 65)
        with pytest.raises(TypeError, match="read-only"):
            stream.read(file, bytes(4))


def test_streams_of_the_frameworks_are_taken(cufile, gpu):
    number = gpu.stream()

    class Torch:
        cuda_stream = number

    class Cupy:
        ptr = number

    class Numba:
        handle = ctypes.c_void_p(number)

    class Core:
        def __cuda_stream__(self):
            return (0, number)

    for stream in (number, Torch(), Cupy(), Numba(), Core()):
        assert cufile.Stream(stream).handle == number
    assert cufile.Stream(None).handle == 0
    with pytest.raises(TypeError, match="object is no stream"):
        cufile.Stream(object())


def test_a_stream_keeps_its_arrays_until_they_are_passed(cufile, gpu, data_file):
    path, data = data_file(4096)
    array = gpu.array(4096)
    gone = weakref.ref(array)
    with cufile.open(path) as file:
        stream = cufile.Stream(gpu.stream())
        stream.read(file, array)
        del array
        gc.collect()
        assert gone() is not None
        stream.synchronize()
        gc.collect()
        assert gone() is None


def test_who_never_waits_lets_go_of_what_is_over(cufile, gpu, data_file):
    path, _ = data_file(4096)
    array = gpu.array(4096)
    with cufile.open(path) as file, cufile.Stream(gpu.stream()) as stream:
        for _ in range(50):
            stream.read(file, array)
            gpu.ok("cuCtxSynchronize")
        assert len(stream._running) <= 1


class Gate:
    """A GPU's stream goes no further until open()."""

    def __init__(self, gpu, stream):
        # arrays that go later would wait for it
        gc.collect()
        self.gpu, self.word, self.other = gpu, gpu.array(4, bytes(4)), gpu.stream()
        self.say("cuStreamWaitValue32_v2", stream)

    def say(self, name, stream):
        self.gpu.use()
        self.gpu.ok(name, ctypes.c_void_p(stream), ctypes.c_uint64(self.word.address),
                    ctypes.c_uint(1), ctypes.c_uint(0))

    def open(self):
        self.say("cuStreamWriteValue32_v2", self.other)
        self.gpu.ok("cuCtxSynchronize")


class Crowd(set):
    """Another thread adds one between two steps of who looks through it."""

    def __iter__(self):
        for one in super().__iter__():
            yield one
            self.add(object())


def test_streams_of_other_threads_come_and_go_meanwhile(
        cufile, gpu, data_file, monkeypatch):
    path, data = data_file(100)
    array = gpu.array(100)
    busy = Crowd()
    monkeypatch.setattr(cufile._stream, "_busy", busy)
    with cufile.open(path) as file:
        other, stream = cufile.Stream(gpu.stream()), cufile.Stream(gpu.stream())
        other._place = ()
        busy.add(other)
        assert stream.read(file, array).result() == 100
        assert array.get() == data
        assert busy == {other}


def test_what_is_under_way_stays_where_everything_was_dropped(
        cufile, gpu, data_file):
    path, data = data_file(4096)
    array, number = gpu.array(4096), gpu.stream()
    with cufile.open(path) as file:
        # what a first read has to load could wait for the gate
        cufile.Stream(number).read(file, array).result()
        array.set(bytes(4096))
        gate = Gate(gpu, number)
        # it holds the array, the file and the numbers that the GPU will read
        operation = weakref.ref(cufile.Stream(number).read(file, array))
        gc.collect()
        kept = operation()
        gate.open()
        assert kept is not None and array.get() == data
        del kept
        # the next one on the GPU's stream sees that it is over
        assert cufile.Stream(number).read(file, array).result() == 4096
        gc.collect()
        assert operation() is None


def test_a_graph_is_recorded_and_keeps_its_operations(cufile, gpu, data_file):
    path, data = data_file(4096)
    handle = gpu.stream()
    arrays = [gpu.array(4096) for _ in range(3)]
    before = [array.get() for array in arrays]
    graph, launched = ctypes.c_void_p(), ctypes.c_void_p()
    with cufile.open(path) as file:
        cufile.Stream(handle).read(file, arrays[0])
        gpu.ok("cuStreamSynchronize", ctypes.c_void_p(handle))
        # of another Stream than the one above, and twice of one
        stream = cufile.Stream(handle)
        gpu.ok("cuStreamBeginCapture_v2", ctypes.c_void_p(handle), 2)
        for array in arrays[1:]:
            stream.read(file, array)
        gpu.ok("cuStreamEndCapture", ctypes.c_void_p(handle), ctypes.byref(graph))
        assert [array.get() for array in arrays[1:]] == before[1:]
        # what finds the stream idle lets go of nothing that the graph has
        kept = [weakref.ref(operation) for operation in stream._recorded]
        stream.read(file, arrays[0]).result()
        gc.collect()
        assert len(kept) == 2 and all(operation() for operation in kept)
        gpu.ok("cuGraphInstantiateWithFlags", ctypes.byref(launched), graph,
               ctypes.c_ulonglong(0))
        gpu.ok("cuGraphLaunch", launched, ctypes.c_void_p(handle))
        gpu.ok("cuStreamSynchronize", ctypes.c_void_p(handle))
        gpu.ok("cuGraphExecDestroy", launched)
        gpu.ok("cuGraphDestroy", graph)
    assert all(array.get() == data for array in arrays)


def test_the_default_streams_of_two_gpus_are_two(cufile, two_gpus, data_file):
    path, _ = data_file(4096)
    arrays = [each.array(4096) for each in two_gpus]
    with cufile.open(path) as file:
        for each, array in zip(two_gpus, arrays):
            each.use()
            cufile.Stream().read(file, array).result()
        gate = Gate(two_gpus[0], None)
        operation = weakref.ref(cufile.Stream().read(file, arrays[0]))
        two_gpus[1].use()
        cufile.Stream().read(file, arrays[1]).result()
        gc.collect()
        kept = operation()
        gate.open()
        assert kept is not None


def test_a_stream_is_registered_once(cufile, gpu):
    number = gpu.stream()
    with cufile.Stream(number, flags=0):
        with pytest.raises(cufile.CuFileError) as caught:
            cufile.Stream(number, flags=0)
        assert caught.value.name == "CU_FILE_INVALID_VALUE"
    cufile.Stream(number, flags=0).close()


def test_without_a_driver_the_library_says_so(cufile, data_file):
    path, _ = data_file(100)
    code = f"""import ctypes, cufile
try:
    ctypes.CDLL("libcuda.so.1")
    print("a driver")
except OSError:
    with cufile.open({str(path)!r}) as file:
        try:
            cufile.Stream().read(file, bytearray(100))
        except cufile.CuFileError as error:
            print(error.name, error.filename)"""
    env = plain_environment(PYTHONPATH=str(ROOT / "python"))
    env["LD_LIBRARY_PATH"] = ":".join(
        folder for folder in env.get("LD_LIBRARY_PATH", "").split(":")
        if not list(pathlib.Path(folder).glob("libcuda.so*")))
    done = subprocess.run([sys.executable, "-B", "-c", code], check=False, text=True,
                          capture_output=True, env=env)
    if done.stdout == "a driver\n":
        pytest.skip("this machine has a GPU driver")
    assert done.stdout == f"CU_FILE_ASYNC_NOT_SUPPORTED {path}\n", done.stderr

# SPDX-License-Identifier: Apache-2.0
"""CuFile, CuFileDriver and bindings, as programs for cufile-python use them."""
import ctypes
import os
import subprocess
import sys
import threading

import pytest

from conftest import ROOT, descriptors_of


def address_of(array):
    """What such programs pass: a c_void_p."""
    if hasattr(array, "address"):
        return ctypes.c_void_p(array.address)
    return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(array.view)))


def test_write_and_read_by_address(cufile, place, tmp_path):
    path, data = str(tmp_path / "test.bin"), os.urandom(70001)
    out, back = place.array(70001, data), place.array(70001)
    with cufile.CuFile(path, "w") as file:
        assert isinstance(file, cufile.CuFile)
        assert file.write(address_of(out), 70001) == 70001
    with cufile.CuFile(path, "r") as file:
        assert file.read(address_of(back), 70001) == 70001
    assert back.get() == data and back.guards_whole()
    assert not descriptors_of(path)


def test_offsets_in_file_and_memory(cufile, place, data_file):
    path, data = data_file(10000)
    array = place.array(10000)
    before = array.get()
    file = cufile.CuFile(str(path), "r+")
    assert not file.is_open and file.get_handle() is None
    file.open()
    file.open()
    assert file.is_open and os.fstat(file.get_handle()).st_size == 10000
    assert file.read(address_of(array), 100, file_offset=50, dev_offset=200) == 100
    assert file.read(address_of(array).value, 7, 9990) == 7
    file.close()
    file.close()
    assert array.get() == data[9990:9997] + before[7:200] + data[50:150] + before[300:]


def test_arrays_are_taken_beside_addresses_and_checked(cufile, place, data_file):
    path, data = data_file(4096)
    array = place.array(4096)
    with cufile.CuFile(path, "r") as file:
        assert file.read(place.give(array), 4096) == 4096
        with pytest.raises(ValueError, match="4097 bytes"):
            file.read(place.give(array), 4097)
        with pytest.raises(TypeError, match="read-only"):
            file.read(b"1234", 4)
    assert array.get() == data


def test_a_file_that_is_not_open_says_so(cufile, tmp_path):
    file = cufile.CuFile(str(tmp_path / "x"), "w")
    for call in (file.read, file.write):
        with pytest.raises(IOError, match="File is not open"):
            call(ctypes.c_void_p(4096), 1)
    assert not (tmp_path / "x").exists()


def test_failures_are_runtime_errors_as_there(cufile, tmp_path, data_file):
    path, _ = data_file(10)
    with pytest.raises(KeyError):
        cufile.CuFile(str(path), "q")
    with pytest.raises(FileNotFoundError):
        cufile.CuFile(str(tmp_path / "none"), "r").open()
    for bad in (cufile.CuFile(str(tmp_path), "r"), cufile.CuFile(str(path), "a")):
        with pytest.raises(RuntimeError):
            bad.open()
        assert not bad.is_open
    with cufile.CuFile(str(path), "r") as file:
        with pytest.raises(RuntimeError, match="EBADF"):
            file.write((ctypes.c_char * 4)(), 4)
    assert not descriptors_of(path) and not descriptors_of(tmp_path)


def test_direct_io_is_an_argument(cufile, place, data_file):
    path, data = data_file(8192)
    array = place.array(8192)
    try:
        file = cufile.CuFile(str(path), "r", use_direct_io=True)
        file.open()
    except OSError as error:
        assert error.errno == 22
        pytest.skip("this file system has no O_DIRECT")
    with file:
        assert file.read(address_of(array), 8192) == 8192
    assert array.get() == data


def test_there_is_one_driver_and_it_is_closed_at_the_end(cufile):
    code = """
import cufile, threading
found = []
threads = [threading.Thread(target=lambda: found.append(cufile.CuFileDriver()))
           for _ in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
assert len(set(map(id, found))) == 1 and cufile.driver.use_count() == 1
assert isinstance(found[0], cufile.CuFileDriver)
print("well")
"""
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run([sys.executable, "-B", "-c", code], env=env, check=False,
                          capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "well\n", "")


def test_the_pattern_of_a_cache_that_writes_from_threads(cufile, place, tmp_path):
    """A large registered pool; threads write and read parts of it at 4096."""
    from cufile import bindings
    part, count = 100000, 6
    data = os.urandom(part * count)
    pool = place.array(part * count, data)
    base = address_of(pool)
    bindings.cuFileBufRegister(base, part * count, 0)
    errors = []

    def work(number):
        try:
            path = str(tmp_path / str(number))
            with open(path, "wb") as plain:
                plain.write(bytes(4096))
            with cufile.CuFile(path, "r+") as file:
                assert file.write(base, part, 4096, number * part) == part
            with cufile.CuFile(path, "r") as file:
                assert file.read(base, part, 4096, number * part) == part
            with open(path, "rb") as plain:
                got = plain.read()
            assert got == bytes(4096) + data[number * part:(number + 1) * part]
        except BaseException as error:  # the main thread tells
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    bindings.cuFileBufDeregister(base)
    assert not errors
    assert pool.get() == data and pool.guards_whole()


def test_bindings_have_the_calls_by_their_names(cufile, place, data_file):
    from cufile import bindings
    path, data = data_file(5000)
    array = place.array(5000)
    bindings.cuFileDriverOpen()
    fd = os.open(path, os.O_RDONLY)
    handle = bindings.cuFileHandleRegister(fd)
    assert bindings.cuFileRead(handle, address_of(array), 5000, 0, 0) == 5000
    assert bindings.cuFileWrite(handle, address_of(array), 1, 0, 0) == -1
    bindings.cuFileHandleDeregister(handle)
    with pytest.raises(RuntimeError, match="descriptor 99999"):
        bindings.cuFileHandleRegister(99999)
    os.close(fd)
    bindings.cuFileDriverClose()
    assert array.get() == data

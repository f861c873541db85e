# SPDX-License-Identifier: Apache-2.0
"""cufile.open: bytes, modes, futures, lifetimes, and what a failure says."""
import ctypes
import errno
import faulthandler
import gc
import mmap
import os
import pickle
import threading
import time
import weakref

import pytest

from conftest import descriptors_of

MIB = 1 << 20
SIZES = [1, 511, 4096, 65537, 3 * MIB + 5]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("offset", [0, 3, 4096])
def test_a_read_gives_the_bytes_of_the_file_and_no_others(
        cufile, place, data_file, size, offset):
    path, data = data_file(size + offset + 100)
    array = place.array(size)
    with cufile.open(path) as file:
        assert file.read(place.give(array), file_offset=offset) == size
    assert array.get() == data[offset:offset + size]
    assert array.guards_whole()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("offset", [0, 3, 4096])
def test_a_write_changes_the_bytes_it_says_and_no_others(
        cufile, place, data_file, size, offset):
    path, before = data_file(size + offset + 100)
    data = os.urandom(size)
    array = place.array(size, data)
    with cufile.open(path, "r+") as file:
        assert file.write(place.give(array), file_offset=offset) == size
    after = path.read_bytes()
    assert after[:offset] == before[:offset]
    assert after[offset:offset + size] == data
    assert after[offset + size:] == before[offset + size:]


def test_a_part_of_an_array_is_read_where_the_offset_says(cufile, place, data_file):
    path, data = data_file(10000)
    array = place.array(10000)
    before = array.get()
    with cufile.open(path) as file:
        assert file.read(place.give(array), 500, 77, 4321) == 500
    after = array.get()
    assert after[:4321] == before[:4321]
    assert after[4321:4821] == data[77:577]
    assert after[4821:] == before[4821:]


def test_a_part_of_an_array_is_written_from_where_the_offset_says(
        cufile, place, tmp_path):
    data = os.urandom(10000)
    array = place.array(10000, data)
    with cufile.open(tmp_path / "new", "w") as file:
        assert file.write(place.give(array), 500, 0, 4321) == 500
    assert (tmp_path / "new").read_bytes() == data[4321:4821]


def test_direct_files_take_any_offset_and_size(cufile, place, data_file):
    path, data = data_file(MIB + 13)
    array = place.array(MIB)
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_DIRECT))
    except OSError:
        pytest.skip("this file system has no O_DIRECT")
    with cufile.open(path, "r+", direct=True) as file:
        assert file.read(place.give(array), file_offset=13) == MIB
        assert array.get() == data[13:]
        assert file.write(place.give(array), 4097, 1) == 4097
    assert path.read_bytes() == data[:1] + data[13:13 + 4097] + data[4098:]


def test_a_read_at_the_end_says_how_many_bytes_there_were(cufile, place, data_file):
    path, data = data_file(1000)
    array = place.array(4096)
    before = array.get()
    with cufile.open(path) as file:
        assert file.read(place.give(array), file_offset=900) == 100
        assert file.read(place.give(array), file_offset=1000) == 0
        assert file.read(place.give(array), file_offset=5000) == 0
    assert array.get() == data[900:] + before[100:]


def test_an_exact_read_that_fails_in_the_middle_says_why(cufile, data_file):
    path, data = data_file(1 * MIB)
    room = (ctypes.c_char * MIB).from_buffer(mmap.mmap(-1, MIB))
    half = ctypes.c_void_p(ctypes.addressof(room) + MIB // 2)
    protect = ctypes.CDLL(None).mprotect
    assert protect(half, ctypes.c_size_t(MIB // 2), 0) == 0
    with cufile.open(path) as file:
        with pytest.raises(OSError) as failed:
            file.read(room, exact=True)
    assert failed.value.errno == errno.EFAULT
    assert room[:MIB // 2] == data[:MIB // 2]


def test_an_exact_read_of_a_short_file_raises_with_the_numbers(
        cufile, place, data_file):
    path, _ = data_file(1000)
    array = place.array(4096)
    with cufile.open(path) as file:
        with pytest.raises(EOFError, match="100 bytes at offset 900 instead of 4096"):
            file.read(place.give(array), file_offset=900, exact=True)
        with pytest.raises(EOFError, match=str(path)):
            file.pread(place.give(array), file_offset=900, exact=True).result()


def test_no_bytes_are_no_error(cufile, place, data_file):
    path, _ = data_file(100)
    array = place.array(16)
    before = array.get()
    with cufile.open(path, "r+") as file:
        assert file.read(place.give(array), 0) == 0
        assert file.read(place.give(array), dst_offset=16) == 0
        assert file.read(bytearray()) == 0
        assert file.write(b"") == 0
    assert array.get() == before


def test_futures_give_what_the_plain_calls_give(cufile, place, tmp_path):
    count, size = 40, 10007
    data = os.urandom(count * size)
    arrays = [place.array(size, data[i * size:(i + 1) * size]) for i in range(count)]
    with cufile.open(tmp_path / "many", "w+") as file:
        futures = [file.pwrite(place.give(array), file_offset=i * size)
                   for i, array in enumerate(arrays)]
        assert [future.result() for future in futures] == [size] * count
        back = [place.array(size) for _ in range(count)]
        futures = [file.pread(place.give(array), file_offset=i * size)
                   for i, array in enumerate(back)]
        assert sum(future.result() for future in futures) == count * size
    assert b"".join(array.get() for array in back) == data
    assert all(array.guards_whole() for array in back)


def test_close_waits_for_futures(cufile, place, data_file):
    path, data = data_file(4 * MIB)
    arrays = [place.array(4 * MIB) for _ in range(6)]
    file = cufile.open(path)
    futures = [file.pread(place.give(array)) for array in arrays]
    file.close()
    assert [future.result(0) for future in futures] == [4 * MIB] * 6
    assert all(array.get() == data for array in arrays)
    assert not descriptors_of(path)


def test_many_threads_share_a_file(cufile, place, data_file):
    path, data = data_file(8 * MIB)
    errors = []

    def work(number, file, array):
        try:
            for step in range(20):
                offset = (number * 977 + step * 131071) % (7 * MIB)
                assert file.read(place.give(array), file_offset=offset) == array.nbytes
        except Exception as error:  # the main thread tells
            errors.append(error)

    with cufile.open(path) as file:
        arrays = [place.array(65536 + i) for i in range(8)]
        threads = [threading.Thread(target=work, args=(i, file, array))
                   for i, array in enumerate(arrays)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not errors
    for number, array in enumerate(arrays):
        offset = (number * 977 + 19 * 131071) % (7 * MIB)
        assert array.get() == data[offset:offset + array.nbytes]


def test_other_threads_run_while_a_read_waits(cufile, gpu, data_file):
    """One of them ends the wait: with the lock held it could not."""
    if not hasattr(gpu.driver, "fakecuda_channels"):
        pytest.skip("only the fake driver can be held by plan")
    path, data = data_file(MIB)
    array, word, stream = gpu.array(MIB), ctypes.c_void_p(), gpu.stream()
    gpu.ok("cuMemHostAlloc", ctypes.byref(word), ctypes.c_size_t(4), 0)
    gate = ctypes.c_uint32.from_address(word.value)
    gate.value = 0

    def copies():
        return gpu.driver.fakecuda_calls(b"cuMemcpyHtoDAsync_v2")

    before = copies()

    def open_gate():
        while copies() == before:
            time.sleep(0.001)
        gate.value = 1

    thread = threading.Thread(target=open_gate, daemon=True)
    # a thread of C, which needs no lock to end a test that hangs
    faulthandler.dump_traceback_later(200, exit=True)
    try:
        # one queue for all streams, and a wait at its head
        gpu.driver.fakecuda_channels(1)
        gpu.ok("cuStreamWaitValue32_v2", ctypes.c_void_p(stream),
               ctypes.c_uint64(word.value), ctypes.c_uint32(1), 1)
        with cufile.open(path) as file:
            thread.start()
            assert file.read(array) == MIB
        thread.join()
    finally:
        gate.value = 1
        gpu.driver.fakecuda_channels(0)
        faulthandler.cancel_dump_traceback_later()
    gpu.ok("cuCtxSynchronize")
    gpu.ok("cuStreamDestroy_v2", ctypes.c_void_p(stream))
    gpu.ok("cuMemFreeHost", word)
    assert array.get() == data


def test_the_array_of_a_pread_that_failed_does_not_live_on_with_its_error(cufile, tmp_path):
    class Array(bytearray):
        pass

    array = Array(100)
    gone = weakref.ref(array)
    gc.disable()
    try:
        with cufile.open(tmp_path / "out", "w") as file:
            future = file.pread(array)
            assert future.exception().name == "EBADF"
            del array
        end = time.monotonic() + 60  # the thread has some steps to go
        while gone() is not None and time.monotonic() < end:
            time.sleep(0.001)
        assert gone() is None
    finally:
        gc.enable()


def test_a_pread_that_no_thread_could_be_started_for_is_not_carried_later(
        cufile, data_file, monkeypatch):
    from cufile import _pool
    path, _ = data_file(100)
    array, gate = bytearray(100), threading.Event()
    _pool._start_afresh()
    busy = _pool.submit(gate.wait, 100)

    def start(thread):
        raise RuntimeError("can't start new thread")

    with cufile.open(path) as file:
        try:
            with monkeypatch.context() as patch:
                patch.setattr(threading.Thread, "start", start)
                with pytest.raises(RuntimeError, match="new thread"):
                    file.pread(array)
        finally:
            gate.set()
        busy.result()
        # what was queued before is taken before
        _pool.submit(int).result()
    assert array == bytes(100)


# ------------------------------------------------------------------- modes

def test_modes_create_empty_and_refuse_as_the_built_in_open_does(cufile, tmp_path):
    path = tmp_path / "file"
    with pytest.raises(FileNotFoundError) as caught:
        cufile.open(path)
    assert caught.value.filename == str(path)
    with cufile.open(path, "x") as file:
        file.write(b"12345")
    with pytest.raises(FileExistsError):
        cufile.open(path, "x")
    assert path.read_bytes() == b"12345"
    with cufile.open(path, "rb+") as file:
        file.write(b"ab", file_offset=1)
    assert path.read_bytes() == b"1ab45"
    with cufile.open(path, "wb") as file:
        assert file.size() == 0
    for mode in ("a", "rw", "", "rbb", "R", None):
        with pytest.raises(ValueError, match="mode"):
            cufile.open(path, mode)


def test_a_descriptor_of_the_caller_stays_open(cufile, data_file):
    path, data = data_file(100)
    fd = os.open(path, os.O_RDONLY)
    array = bytearray(100)
    with cufile.open(fd) as file:
        assert file.fileno() == fd
        file.read(array)
    assert bytes(array) == data == os.pread(fd, 100, 0)
    os.close(fd)


def test_reading_a_write_only_file_names_path_and_code(cufile, place, tmp_path):
    path = tmp_path / "out"
    array = place.array(64)
    before = array.get()
    with cufile.open(path, "w") as file:
        file.write(b"x" * 64)
        with pytest.raises(cufile.CuFileError) as caught:
            file.read(place.give(array))
    error = caught.value
    assert (error.name, error.errno, error.code) == ("EBADF", errno.EBADF, 0)
    assert error.filename == path
    assert str(path) in str(error) and "64 bytes at 0" in str(error)
    assert "opened with mode 'w'" in str(error)
    assert array.get() == before


def test_writing_a_read_only_file_names_path_and_code(cufile, place, data_file):
    path, data = data_file(64)
    with cufile.open(path) as file, pytest.raises(cufile.CuFileError) as caught:
        file.write(place.give(place.array(64)), file_offset=7)
    assert caught.value.errno == errno.EBADF
    assert "64 bytes at 7" in str(caught.value)
    assert "opened with mode 'r'" in str(caught.value)
    assert path.read_bytes() == data


def test_a_directory_is_refused_with_the_code_and_leaves_no_descriptor(
        cufile, tmp_path):
    with pytest.raises(cufile.CuFileError) as caught:
        cufile.open(tmp_path)
    error = caught.value
    assert error.name == "CU_FILE_INVALID_FILE_TYPE"
    assert (error.code, error.errno, error.cu_err) == (5018, 5018, 0)
    assert error.filename == tmp_path and str(tmp_path) in str(error)
    assert isinstance(error, OSError) and isinstance(error, RuntimeError)
    assert not descriptors_of(tmp_path)


def test_an_error_survives_a_trip_between_processes(cufile, tmp_path):
    with pytest.raises(cufile.CuFileError) as caught:
        cufile.open(str(tmp_path))
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value)
    assert (copy.name, copy.code, copy.filename) == (
        "CU_FILE_INVALID_FILE_TYPE", 5018, str(tmp_path))


# ---------------------------------------------------------------- lifetimes

def test_a_closed_file_refuses_everything_by_its_path(cufile, data_file):
    path, _ = data_file(10)
    file = cufile.open(path)
    assert not file.closed
    file.close()
    file.close()
    assert file.closed
    for call in (lambda: file.read(bytearray(4)), lambda: file.write(b"1234"),
                 lambda: file.pread(bytearray(4)), lambda: file.pwrite(b"1234"),
                 file.fileno, file.size, lambda: file.handle, file.__enter__):
        with pytest.raises(ValueError, match=f"{path}: the file is closed"):
            call()


def test_a_forgotten_file_closes_itself(cufile, data_file):
    path, _ = data_file(10)
    file = cufile.open(path)
    assert descriptors_of(path)
    del file
    gc.collect()
    assert not descriptors_of(path)


def test_a_file_of_the_parent_works_in_a_forked_child(cufile, data_file):
    path, data = data_file(MIB)
    with cufile.open(path) as file:
        file.pread(bytearray(10)).result()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                array = bytearray(MIB)
                done = file.pread(array).result(30)
                file.close()
                status = 0 if done == MIB and bytes(array) == data else 2
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        array = bytearray(MIB)
        assert file.read(array) == MIB and bytes(array) == data


# --------------------------------------------------------------- bad numbers

@pytest.mark.parametrize("arguments, says", [
    (dict(size=17), "17 bytes at offset 0 are not in the array, which has 16"),
    (dict(size=-1), "-1 bytes"),
    (dict(size=1 << 70), "are not in the array"),
    (dict(size=8, dst_offset=9), "8 bytes at offset 9"),
    (dict(dst_offset=17), "offset 17 is not in the array"),
    (dict(dst_offset=-1), "offset -1 is not in the array"),
    (dict(file_offset=-1), "file offset -1"),
    (dict(file_offset=1 << 63), "file offset 9223372036854775808"),
])
def test_numbers_outside_the_array_or_file_are_refused(
        cufile, place, data_file, arguments, says):
    path, data = data_file(64)
    array = place.array(16)
    before = array.get()
    with cufile.open(path, "r+") as file:
        for call in (file.read, file.pread):
            with pytest.raises(ValueError, match=says) as caught:
                call(place.give(array), **arguments)
            assert str(path) in str(caught.value)
        of_source = {name.replace("dst_", "src_"): value
                     for name, value in arguments.items()}
        for call in (file.write, file.pwrite):
            with pytest.raises(ValueError, match=says):
                call(place.give(array), **of_source)
    assert array.get() == before and array.guards_whole()
    assert path.read_bytes() == data


@pytest.mark.parametrize("name", ["size", "file_offset", "dst_offset"])
@pytest.mark.parametrize("value", [1.5, "1", b"1", [1]])
def test_numbers_that_are_none_are_refused(cufile, data_file, name, value):
    path, _ = data_file(64)
    with cufile.open(path) as file, pytest.raises(TypeError):
        file.read(bytearray(16), **{name: value})

# SPDX-License-Identifier: Apache-2.0
"""What cufile.safetensors and cufile.checkpoint promise in the same words."""
import contextlib
import errno
import gc
import os
import sys
import threading

import pytest

from blocks import CheckpointBlocks, ModelBlocks
from conftest import descriptors_of, raised_soon


@pytest.fixture
def numpy():
    return pytest.importorskip("numpy")


class Format:
    """A format: its module, its error, its framework of GPU memory, and
    bytes_of(a loaded value), those of its only array."""

    def __init__(self, module, error, blocks, bytes_of):
        self.load_file, self.load_files = module.load_file, module.load_files
        self.save_file, self.error = module.save_file, error
        self.blocks, self.bytes_of = blocks, bytes_of


@pytest.fixture(params=["safetensors", "checkpoint"])
def kind(request, cufile):
    if request.param == "safetensors":
        import cufile.safetensors as module
        return Format(module, module.SafetensorsError, ModelBlocks,
                      lambda value: value["a"])
    import cufile.checkpoint as module
    return Format(module, module.CheckpointError, CheckpointBlocks,
                  lambda value: value["a"][1])


@pytest.fixture
def saved(kind, numpy, tmp_path):
    """A file with one array, and its bytes."""
    data = os.urandom((1 << 20) + 777)
    kind.save_file({"a": numpy.frombuffer(data, "u1")}, tmp_path / "model")
    return tmp_path / "model", data


def test_a_direct_load_gives_the_same(kind, saved, gpu):
    path, data = saved
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_DIRECT))
    except OSError as error:
        pytest.skip(f"no O_DIRECT here: {error}")
    got = kind.load_file(path, framework=kind.blocks(gpu), direct=True, piece=65536)
    assert kind.bytes_of(got) == data


def test_a_file_that_shrinks_while_it_is_read_is_named_and_leaves_nothing(
        kind, saved, gpu):
    path, _ = saved
    blocks = kind.blocks(gpu)
    plain = blocks.empty
    blocks.empty = lambda nbytes, device: (os.truncate(path, 8192),
                                           plain(nbytes, device))[1]
    gc.collect()
    gc.disable()
    try:
        with pytest.raises(kind.error, match="model: became shorter"):
            kind.load_file(path, framework=blocks, piece=65536)
        assert len(blocks.made) == 1 and blocks.made[0]() is None
    finally:
        gc.enable()
    assert not descriptors_of(path)


def test_a_pipe_is_refused_and_not_waited_for(cufile, kind, tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    for call in (lambda: kind.load_file(path), lambda: kind.load_files([str(path)]),
                 lambda: cufile.open(path, "w"), lambda: cufile.CuFile(path).open()):
        error = raised_soon(call)
        assert error.name == "CU_FILE_INVALID_FILE_TYPE"
        assert f"{path}, which is a pipe" in str(error)


def test_a_missing_file_is_the_systems_error(kind, tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing"):
        kind.load_file(tmp_path / "nothing")


@pytest.mark.parametrize("arguments, error", [
    (dict(threads=0), ValueError), (dict(piece=1000), ValueError),
    (dict(piece=0), ValueError), (dict(threads="4"), TypeError),
    (dict(framework="jax"), ValueError),
    (dict(framework="numpy", device="cuda"), ValueError)])
def test_wrong_arguments_are_refused(kind, saved, arguments, error):
    with pytest.raises(error):
        kind.load_file(saved[0], **arguments)
    assert not descriptors_of(saved[0])


def test_a_device_without_memory_for_pytorch_is_named_in_one_line(kind, saved):
    torch = pytest.importorskip("torch")
    if torch.backends.mps.is_available():
        pytest.skip("this PyTorch has that device")
    with pytest.raises(ValueError, match="^this PyTorch has no memory on device 'mps'$"):
        kind.load_file(saved[0], "mps", framework="torch")
    assert not descriptors_of(saved[0])


def test_one_path_is_not_taken_for_many(kind, saved):
    for path in (saved[0], str(saved[0]), os.fsencode(saved[0])):
        with pytest.raises(TypeError, match="load_file takes one"):
            kind.load_files(path)


def test_error_survives_the_way_between_processes(kind, tmp_path):
    import pickle
    (tmp_path / "bad").write_bytes(bytes(100))
    with pytest.raises(kind.error) as caught:
        kind.load_file(tmp_path / "bad")
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is kind.error and str(again) == str(caught.value)
    assert again.path == tmp_path / "bad" and again.what == caught.value.what


@pytest.mark.parametrize("started", [0, 1])
def test_a_process_that_has_no_room_for_threads_loads_with_those_it_has(
        kind, saved, gpu, monkeypatch, started):
    path, data = saved
    plain, left = threading.Thread.start, [started]

    def start(thread):
        if not left[0]:
            raise RuntimeError("can't start new thread")
        left[0] -= 1
        plain(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    got = kind.load_file(path, framework=kind.blocks(gpu), piece=65536)
    assert kind.bytes_of(got) == data


@pytest.mark.parametrize("progress", [None, True])
@pytest.mark.parametrize("stderr", ["none", "closed", "full"])
def test_the_bar_is_no_reason_to_fail(kind, saved, gpu, monkeypatch, stderr, progress):
    from cufile import _progress
    path, data = saved
    monkeypatch.setattr(_progress, "_FIRST_S", 0)
    with open("/dev/full", "w") as file:
        if stderr == "closed":
            file.close()
        monkeypatch.setattr(sys, "stderr", None if stderr == "none" else file)
        got = kind.load_file(path, framework=kind.blocks(gpu), progress=progress)
        assert kind.bytes_of(got) == data
        with contextlib.suppress(OSError):
            file.close()


def test_a_save_on_a_full_disk_leaves_the_old_file(kind, saved, numpy, full_disk):
    path, _ = saved
    before = path.read_bytes()
    with full_disk(), pytest.raises(OSError) as caught:
        kind.save_file({"a": numpy.ones(1 << 20)}, path)
    assert caught.value.errno in (errno.EFBIG, errno.ENOSPC)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == ["model"]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444, 0o664])
def test_a_file_that_is_replaced_stays_as_private_as_it_was(
        kind, saved, numpy, monkeypatch, mode):
    from cufile import _bulk
    path, _ = saved
    path.chmod(mode)
    if os.geteuid() == 0:
        os.chown(path, 4321, 1234)
    owner, plain, seen = os.stat(path)[4:6], _bulk.write, []

    def write(file, *rest):
        seen.append(os.fstat(file.fileno()).st_mode & 0o777)
        plain(file, *rest)

    monkeypatch.setattr(_bulk, "write", write)
    kind.save_file({"a": numpy.ones(3)}, path)
    assert set(seen) == {0o600}
    assert os.stat(path).st_mode & 0o777 == mode and os.stat(path)[4:6] == owner


def test_a_new_file_has_the_permissions_of_the_umask(kind, numpy, tmp_path):
    before = os.umask(0o027)
    try:
        kind.save_file({"a": numpy.ones(3)}, tmp_path / "new")
    finally:
        os.umask(before)
    assert os.stat(tmp_path / "new").st_mode & 0o777 == 0o640


def test_what_is_no_regular_file_is_not_replaced(kind, numpy, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("pipe")
    before = sorted(os.listdir(tmp_path))
    for name in before:
        mode = os.stat(tmp_path / name).st_mode
        with pytest.raises(OSError, match="no regular file") as caught:
            kind.save_file({"a": numpy.ones(3)}, tmp_path / name)
        assert caught.value.name == "CU_FILE_INVALID_FILE_TYPE"
        assert os.stat(tmp_path / name).st_mode == mode
    assert sorted(os.listdir(tmp_path)) == before


def test_saves_to_one_path_do_not_meet(kind, saved, numpy, gpu, monkeypatch):
    """One that begins while another writes; the one that ends last stays."""
    from cufile import _bulk
    path, _ = saved
    data, plain = os.urandom(70007), _bulk.write

    def write(*arguments):
        monkeypatch.setattr(_bulk, "write", plain)
        kind.save_file({"a": numpy.zeros(9)}, path)
        plain(*arguments)

    monkeypatch.setattr(_bulk, "write", write)
    kind.save_file({"a": numpy.frombuffer(data, "u1")}, path)
    assert kind.bytes_of(kind.load_file(path, framework=kind.blocks(gpu))) == data
    assert os.listdir(path.parent) == ["model"]


def test_a_file_may_have_the_longest_name(kind, numpy, gpu, tmp_path):
    path = tmp_path / ("m" * os.pathconf(tmp_path, "PC_NAME_MAX"))
    kind.save_file({"a": numpy.frombuffer(b"12345678", "u1")}, path)
    got = kind.load_file(path, framework=kind.blocks(gpu))
    assert kind.bytes_of(got) == b"12345678"


def test_a_file_of_another_is_not_written_to(kind, saved, numpy, monkeypatch):
    import secrets
    path, _ = saved
    other = path.with_name("same.partial")
    other.write_bytes(b"other")
    monkeypatch.setattr(secrets, "token_hex", lambda count: "same")
    with pytest.raises(FileExistsError, match="same.partial"):
        kind.save_file({"a": numpy.ones(3)}, path)
    assert other.read_bytes() == b"other"

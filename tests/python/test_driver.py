# SPDX-License-Identifier: Apache-2.0
"""Driver, parameters, statistics and registrations of the package."""
import gc
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

import pytest

from conftest import ROOT, plain_environment

LIBRARY = os.environ.get("OPENCUFILE_LIBRARY", "")


def python(code, **environment):
    """Runs code in a process of its own; its output, or its error."""
    env = plain_environment(**{"PYTHONPATH": str(ROOT / "python"), **environment})
    done = subprocess.run([sys.executable, "-B", "-c", code], env=env, check=False,
                          capture_output=True, text=True)
    return done.stdout.strip() or done.stderr.strip()


# ------------------------------------------------------- finding the library

def test_the_environment_names_the_library(cufile):
    assert os.path.samefile(cufile.library_path(), LIBRARY)
    assert cufile.version() >= 1190


def test_an_environment_that_names_no_library_is_an_import_error(cufile):
    said = python("import cufile; cufile.version()",
                  OPENCUFILE_LIBRARY="/nowhere/libcufile.so.0")
    assert "ImportError: OPENCUFILE_LIBRARY=/nowhere/libcufile.so.0" in said


def test_the_loader_finds_the_library_without_the_environment(cufile):
    said = python("import cufile; print(cufile.library_path())",
                  OPENCUFILE_LIBRARY=None,
                  LD_LIBRARY_PATH=str(pathlib.Path(LIBRARY).parent))
    assert os.path.samefile(said, LIBRARY)


@pytest.fixture
def with_copy(tmp_path):
    """The package in a folder of its own, with the library beside it."""
    shutil.copytree(ROOT / "python/cufile", tmp_path / "cufile")
    shutil.copy(LIBRARY, tmp_path / "cufile/libcufile.so.0")
    return tmp_path


WHERE = "import cufile; print(cufile.library_path())"


def test_a_copy_beside_the_package_is_found(cufile, with_copy):
    alone = {"OPENCUFILE_LIBRARY": None, "PYTHONPATH": str(with_copy)}
    copy = with_copy / "cufile/libcufile.so.0"
    assert python(WHERE, **alone) == str(copy)
    os.unlink(copy)
    said = python(WHERE, **alone)
    if "ImportError" not in said:
        pytest.skip(f"the loader of this machine has a library: {said}")
    assert "set OPENCUFILE_LIBRARY" in said


def test_a_copy_goes_before_another_library_that_the_process_has(
        cufile, with_copy, data_file):
    """As PyTorch brings one: found by its name, it would be taken."""
    if "OCF_IMPOSTOR" not in os.environ:
        pytest.skip("OCF_IMPOSTOR names no other library")
    path, _ = data_file(123457)
    code = ("import ctypes, cufile, sys\n"
            f"ctypes.CDLL({os.environ['OCF_IMPOSTOR']!r}, ctypes.RTLD_GLOBAL)\n"
            "print(cufile.library_path())\n"
            f"with cufile.open({str(path)!r}) as file:\n"
            "    room = bytearray(123457)\n"
            "    assert file.read(room) == 123457\n"
            f"assert room == open({str(path)!r}, 'rb').read()\n")
    said = python(code, OPENCUFILE_LIBRARY=None, PYTHONPATH=str(with_copy))
    assert said == str(with_copy / "cufile/libcufile.so.0")
    os.unlink(with_copy / "cufile/libcufile.so.0")
    said = python(code, OPENCUFILE_LIBRARY=None, PYTHONPATH=str(with_copy))
    assert "impostor" in said


def test_the_ctypes_example_takes_the_package_s_copy_and_not_pytorch_s(
        cufile, with_copy):
    if "OCF_IMPOSTOR" not in os.environ:
        pytest.skip("OCF_IMPOSTOR names no other library")
    (with_copy / "torch.py").write_text(
        "import ctypes, os\n"
        "ctypes.CDLL(os.environ['OCF_IMPOSTOR'], ctypes.RTLD_GLOBAL)\n")
    shutil.copy(ROOT / "examples/python/gds_load_tensor.py", with_copy)
    said = python("import gds_load_tensor\n"
                  "library = gds_load_tensor.load_library()\n"
                  "print(hasattr(library, 'ocf_explain_read'))",
                  OPENCUFILE_LIBRARY=None, PYTHONPATH=str(with_copy))
    assert said == "True"


@pytest.mark.skipif(" " in LIBRARY, reason="the loader preloads no such path")
def test_an_opencufile_that_the_process_has_goes_before_the_copy(cufile, with_copy):
    said = python(WHERE, OPENCUFILE_LIBRARY=None, PYTHONPATH=str(with_copy),
                  LD_PRELOAD=LIBRARY)
    assert os.path.samefile(said, LIBRARY)


def test_a_wheel_can_carry_the_library(cufile, tmp_path):
    pytest.importorskip("wheel")
    pytest.importorskip("pip")
    shutil.copytree(ROOT / "python", tmp_path / "source",
                    ignore=shutil.ignore_patterns("__pycache__", "build"))
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-index",
               "--no-build-isolation", "-w", tmp_path, tmp_path / "source"]
    # what one leaves behind is not in the next
    for bundle, platform in ((None, "py3-none-any"), (LIBRARY, "py3-none-linux"),
                             (None, "py3-none-any")):
        done = subprocess.run(command, check=False, capture_output=True, text=True,
                              env=plain_environment(OPENCUFILE_BUNDLE=bundle))
        assert done.returncode == 0, done.stderr
        [wheel] = tmp_path.glob(f"cufile-*{platform}*.whl")
        with zipfile.ZipFile(wheel) as archive:
            names = [name.split("cufile/", 1)[1] for name in archive.namelist()
                     if "cufile/" in name]
        assert {"__init__.py", "py.typed", "safetensors/_load.py",
                "checkpoint/_load.py"} <= set(names)
        assert ("libcufile.so.0" in names) == (bundle is not None)


def test_importing_the_package_loads_nothing(cufile):
    code = ("import cufile; "
            "print('libcufile' in open('/proc/self/maps').read())")
    assert python(code) == "False"


# ------------------------------------------------------------------- driver

def test_opens_are_counted(cufile):
    before = cufile.driver.use_count()
    cufile.driver.open()
    assert cufile.driver.use_count() == before + 1
    cufile.driver.close()
    assert cufile.driver.use_count() == before


def test_properties_have_names_and_follow_the_setters(cufile):
    cufile.driver.open()
    try:
        cufile.driver.set_max_direct_io_size(8192)
        cufile.driver.set_poll_mode(False, 8)
        got = cufile.properties()
        assert got.max_direct_io_size == 8192
        assert got.poll_thresh_size == 8
        assert got.max_batch_io_size > 0
    finally:
        cufile.driver.close()


def test_parameters_are_read_and_written_by_name(cufile):
    said = python("""
import cufile
p = cufile.parameters
p["execution_max_io_threads"] = 3
p["CUFILE_PARAM_PROPERTIES_USE_POLL_MODE"] = True
p["logging_level"] = "WARN"
print(p["EXECUTION_MAX_IO_THREADS"], p["PROPERTIES_USE_POLL_MODE"],
      p["LOGGING_LEVEL"], p.bounds("EXECUTION_MAX_IO_THREADS")[0] <= 3,
      len(p) == len(list(p)) == len(dict(p)) > 20)
""")
    assert said == "3 True WARN True True"


def test_a_parameter_may_be_any_name_of_a_file(cufile):
    name = os.fsdecode(b"/tmp/\xff\xc3\xa4 b")
    said = python(f"""
import cufile
cufile.parameters["LOG_DIR"] = {name!r}
print(cufile.parameters["LOG_DIR"] == {name!r})
""")
    assert said == "True"


@pytest.mark.parametrize("name, value, error", [
    ("NO_SUCH", 1, KeyError), ("EXECUTION_MAX_IO_THREADS", "3", TypeError),
    ("EXECUTION_MAX_IO_THREADS", True, TypeError),
    ("EXECUTION_MAX_IO_THREADS", -1, ValueError),
    ("EXECUTION_MAX_IO_THREADS", 1 << 64, ValueError),
    ("LOG_DIR", "/tmp/a\0b", ValueError),
    ("PROPERTIES_USE_POLL_MODE", 1, TypeError), ("LOGGING_LEVEL", 3, TypeError)])
def test_parameters_refuse_wrong_names_and_types(cufile, name, value, error):
    with pytest.raises(error, match=name):
        cufile.parameters[name] = value


def test_parameters_of_an_open_driver_stay(cufile):
    cufile.driver.open()
    try:
        with pytest.raises(cufile.CuFileError) as caught:
            cufile.parameters["EXECUTION_MAX_IO_THREADS"] = 2
        assert caught.value.name == "CU_FILE_DRIVER_ALREADY_OPEN"
        assert "EXECUTION_MAX_IO_THREADS to 2" in str(caught.value)
    finally:
        cufile.driver.close()


def test_parameters_cannot_be_removed_and_texts_have_no_bounds(cufile):
    with pytest.raises(TypeError):
        del cufile.parameters["LOGGING_LEVEL"]
    with pytest.raises(TypeError, match="LOGGING_LEVEL"):
        cufile.parameters.bounds("LOGGING_LEVEL")


# --------------------------------------------------------------- statistics

def test_statistics_count_what_was_done(cufile, place, data_file):
    path, _ = data_file(100000)
    array = place.array(50000)
    with cufile.open(path) as file, cufile.stats.counting(3) as counts:
        for _ in range(3):
            file.read(place.give(array))
        numbers = counts()
    assert numbers["read_ops"] == {"ok": 3, "err": 0}
    assert numbers["read_bytes"] == 150000
    assert sum(numbers["read_size_kb_hist"]) == 3
    assert len(numbers["write_size_kb_hist"]) == 32
    assert all(len(gpu["uuid"]) == 32 for gpu in numbers["gpus"])


STATISTICS_OF_119 = """
import ctypes, os, cufile
room = bytearray(os.urandom(10000))
open({path!r}, "wb").write(room)
with cufile.open({path!r}) as file, cufile.stats.counting({level}) as counts:
    file.read(room)
    numbers = counts()
assert numbers["read_bytes"] == 10000, numbers
assert numbers["readv_ops"] == {{"ok": 0, "err": 0}}, numbers
if {level} > 1:
    assert sum(numbers["read_size_kb_hist"]) == 1, numbers
if {level} > 2:
    assert all(len(gpu["uuid"]) == 32 for gpu in numbers["gpus"])
print("read")
"""


@pytest.mark.parametrize("level", [1, 2, 3])
def test_statistics_of_a_library_of_119_are_read_too(cufile, level, tmp_path):
    code = STATISTICS_OF_119.format(path=str(tmp_path / "file"), level=level)
    assert python(code, OCF_STATS_LAYOUT="1.19") == "read"


def test_a_level_that_is_none_is_refused(cufile):
    with pytest.raises(cufile.CuFileError, match="level to 9"):
        cufile.stats.start(9)


# ------------------------------------------------------------ registrations

def test_a_registered_buffer_is_read_into_and_let_go(cufile, place, data_file):
    path, data = data_file(8192)
    array = place.array(8192)
    with cufile.open(path) as file:
        with cufile.register(place.give(array)) as registration:
            assert registration.nbytes == 8192 and not registration.closed
            file.read(place.give(array))
            with pytest.raises(cufile.CuFileError) as caught:
                cufile.register(place.give(array))
            assert caught.value.name == "CU_FILE_MEMORY_ALREADY_REGISTERED"
        assert registration.closed
        registration.close()
        cufile.register(place.give(array)).close()
    assert array.get() == data


def test_a_dropped_registration_is_none_any_more(cufile, place):
    array = place.array(8192)
    registration = cufile.register(place.give(array))
    del registration
    gc.collect()
    # what is allocated at that address next can be registered
    with cufile.register(place.give(array)):
        pass


def test_a_registration_of_a_closed_driver_takes_no_newer_one_along(cufile):
    array = bytearray(8192)
    cufile.driver.open()
    registration = cufile.register(array)
    while cufile.driver.use_count():
        cufile.driver.close()
    cufile.driver.open()
    registration = cufile.register(array)
    gc.collect()
    registration.close()
    cufile.driver.close()


def test_an_empty_buffer_is_not_registered(cufile):
    with pytest.raises(cufile.CuFileError, match="registering 0 bytes"):
        cufile.register(bytearray())

# SPDX-License-Identifier: Apache-2.0
"""Each example that links to the driver does what its first lines say."""
import os
import pathlib
import subprocess

import pytest

BUILT = pathlib.Path(os.environ["OCF_EXAMPLES"])
SIZES = [1, 4096, 256 << 10, (1 << 20) + 4097]
SIXTEEN = 16 << 20
FILLING = ["batch_read", "register_each", "register_once", "unaligned_file",
           "unaligned_memory", "unregistered"]


def ran(name, *arguments, expected=0, **environment):
    done = subprocess.run([BUILT / name, *map(str, arguments)], text=True,
                          capture_output=True, timeout=60,
                          env={**os.environ, "FAKECUDA_STRICT": "1",
                               "CUFILE_ENV_PATH_JSON": "/nonexistent",
                               **environment})
    assert done.returncode == expected, done.stderr
    return done


def run(name, *arguments, expected=0, **environment):
    return ran(name, *arguments, expected=expected, **environment).stdout


def checksum(data):
    value = 0xcbf29ce484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001b3 & (1 << 64) - 1
    return value


@pytest.fixture(params=SIZES)
def source(request, tmp_path):
    path = tmp_path / "source"
    path.write_bytes(os.urandom(request.param))
    return path


def test_stream_copy_copies_the_file(source, tmp_path):
    copy = tmp_path / "copy"
    run("stream_copy", source, copy)
    assert copy.read_bytes() == source.read_bytes()


def test_stream_copy_leaves_its_source_and_what_was_there(source, tmp_path):
    data = source.read_bytes()
    run("stream_copy", source, source, expected=1)
    run("stream_copy", tmp_path / "nothing", source, expected=1)
    assert source.read_bytes() == data


def test_double_buffer_sees_every_byte(source):
    data = source.read_bytes()
    assert run("double_buffer", source) == \
        f"{len(data)} bytes, checksum {checksum(data):016x}\n"


@pytest.mark.parametrize("name", FILLING)
def test_an_example_that_fills_memory_sees_every_byte(name, source):
    data = source.read_bytes()[3 if name == "unaligned_file" else 0:]
    assert run(name, source) == \
        f"{len(data)} bytes, checksum {checksum(data):016x}\n"


@pytest.mark.parametrize("name", FILLING)
def test_an_example_that_fills_memory_takes_an_empty_file(name, tmp_path):
    (tmp_path / "empty").touch()
    assert run(name, tmp_path / "empty").startswith("0 bytes, ")


@pytest.mark.parametrize("name", FILLING)
def test_an_example_that_fills_memory_names_a_file_that_is_not_there(
        name, tmp_path):
    run(name, tmp_path / "missing", expected=1)


def test_hello_writes_from_the_third_page_on_and_leaves_the_others(tmp_path):
    path = tmp_path / "file"
    before = os.urandom(8192 + SIXTEEN + 4096)
    path.write_bytes(before)
    run("hello", TESTFILE=str(path))
    assert path.read_bytes() == (before[:8192] + b"\xab" * SIXTEEN
                                 + before[8192 + SIXTEEN:])


@pytest.mark.parametrize("name", ["hello", "register_once",
                                  "double_buffer"])
def test_a_failure_with_a_cufile_code_has_its_text(name, source, tmp_path):
    only = tmp_path / "cufile.json"
    only.write_text('{"opencufile": {"path": "alias"}}')  # of which there is none
    arguments = [] if name == "hello" else [source]
    done = ran(name, *arguments, expected=1, TESTFILE=str(tmp_path / "file"),
               CUFILE_ENV_PATH_JSON=str(only))
    assert "this file cannot be used for the request" in done.stderr


def test_hello_without_a_file_says_what_it_wants():
    run("hello", expected=2)


@pytest.mark.parametrize("name", ["double_buffer", "stream_copy", *FILLING])
def test_without_arguments_an_example_says_how_to_use_it(name):
    run(name, expected=2)

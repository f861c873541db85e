# SPDX-License-Identifier: Apache-2.0
"""Each example of stream IO does what its first lines say."""
import os
import pathlib
import subprocess

import pytest

BUILT = pathlib.Path(os.environ["OCF_EXAMPLES"])
SIZES = [1, 4096, 256 << 10, (1 << 20) + 4097]


def run(name, *arguments, expected=0):
    done = subprocess.run([BUILT / name, *map(str, arguments)], text=True,
                          capture_output=True, timeout=60,
                          env={**os.environ, "FAKECUDA_STRICT": "1",
                               "CUFILE_ENV_PATH_JSON": "/nonexistent"})
    assert done.returncode == expected, done.stderr
    return done.stdout


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


def test_double_buffer_sees_every_byte(source):
    data = source.read_bytes()
    assert run("double_buffer", source) == \
        f"{len(data)} bytes, checksum {checksum(data):016x}\n"


@pytest.mark.parametrize("name", ["double_buffer", "stream_copy"])
def test_without_arguments_an_example_says_how_to_use_it(name):
    run(name, expected=2)

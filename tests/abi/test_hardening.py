# SPDX-License-Identifier: Apache-2.0
"""What makes a mistake of ours harder to use, in what was built."""
import os
import re
import subprocess

import pytest

BINARIES = [os.environ["OCF_LIB"], *os.environ["OCF_TOOLS"].split(":")]


def readelf(path, *options):
    done = subprocess.run(["readelf", "-W", *options, path], check=True,
                          capture_output=True, text=True,
                          env={**os.environ, "LC_ALL": "C"})
    return done.stdout


@pytest.fixture(params=BINARIES, ids=os.path.basename)
def binary(request):
    return request.param


def test_no_memory_is_writable_and_executable(binary):
    segments = readelf(binary, "-l")
    stack = re.findall(r"GNU_STACK .* (R\S*) +0x", segments)
    assert stack == ["RW"]
    for flags in re.findall(r"^ +LOAD .* 0x\w+ (\S.*?) +0x", segments, re.M):
        assert not {"W", "E"} <= set(flags), segments
    assert "TEXTREL" not in readelf(binary, "-d")


def test_relocations_are_done_at_load_and_then_read_only(binary):
    assert "GNU_RELRO" in readelf(binary, "-l")
    dynamic = readelf(binary, "-d")
    assert "BIND_NOW" in dynamic or re.search(r"FLAGS_1.*\bNOW\b", dynamic)


def test_code_may_lie_anywhere(binary):
    assert "DYN (" in readelf(binary, "-h")


def test_nothing_is_looked_up_in_directories_of_others(binary):
    if binary == BINARIES[0]:
        assert not re.search(r"R(UN)?PATH", readelf(binary, "-d"))


def test_a_thread_takes_little_of_what_there_is_for_late_libraries():
    """The C library has some 1600 bytes a thread for all that are opened late
    with thread locals at a known place; without room, the open fails."""
    sizes = re.findall(r"^ +TLS +(?:0x\w+ +){4}(0x\w+)",
                       readelf(BINARIES[0], "-l"), re.M)
    assert sum(int(size, 16) for size in sizes) <= 64


def undefined(path):
    return set(re.findall(r" UND (\w+)", readelf(path, "--dyn-syms")))


def test_stack_frames_are_guarded(sanitized, binary):
    if sanitized:
        pytest.skip("the sanitizer guards them")
    assert "__stack_chk_fail" in undefined(binary)


def test_copies_of_known_size_are_checked(sanitized, binary):
    if sanitized:
        pytest.skip("the sanitizer checks them")
    assert [name for name in undefined(binary) if name.endswith("_chk")]

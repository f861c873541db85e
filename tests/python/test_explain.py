# SPDX-License-Identifier: Apache-2.0
"""cufile.explain: the answer of the library, in Python's words."""
import mmap

import pytest


def test_a_read_is_explained_without_a_byte_moving(cufile, place, data_file):
    path, _ = data_file(100000)
    array = place.array(8192)
    before = array.get()
    with cufile.open(path) as file:
        told = cufile.explain(file, place.give(array), file_offset=4096)
    assert told.problem is None and told.path in ("host", "staged")
    assert told.size == 8192 == told.direct_bytes + told.buffered_bytes
    assert (told.gpu is None) == (told.memory == "host")
    assert told.block in (512, 1024, 2048, 4096) and not told.registered
    assert told.parts >= 1 and told.carriers >= 1 and told.part_size > 0
    assert told.cached_bytes is None or \
        told.cached_bytes <= max(8192, mmap.PAGESIZE)
    for refusal in told.refusals:
        assert refusal.path and refusal.reason
    assert f"path {told.path}" in str(told)
    assert all(refusal.reason in str(told) for refusal in told.refusals)
    assert array.get() == before


def test_a_registered_buffer_is_explained_as_one(cufile, place, data_file):
    path, _ = data_file(4096)
    array = place.array(4096)
    with cufile.open(path) as file, cufile.register(place.give(array)):
        assert cufile.explain(file, place.give(array)).registered


def test_a_request_that_would_fail_is_explained_by_its_error(
        cufile, place, data_file):
    path, _ = data_file(4096)
    with cufile.open(path) as file:
        told = cufile.explain(file, place.give(place.array(64)), op="write")
    assert told.problem[0] == "EBADF" and told.problem[1]


def test_memory_that_is_not_there_is_explained_by_kind(cufile, data_file):
    path, _ = data_file(4096)
    with cufile.open(path) as file:
        for kind in ("host", "device", "managed"):
            assert cufile.explain(file, kind, 1 << 20).memory == kind
        assert cufile.explain(file, "device", 1 << 20, op="read").size == 1 << 20
        with pytest.raises(ValueError, match="'gpu'"):
            cufile.explain(file, "gpu", 1)
        with pytest.raises(ValueError, match="size"):
            cufile.explain(file, "device")
        with pytest.raises(ValueError, match="'copy'"):
            cufile.explain(file, "device", 1, op="copy")
    with pytest.raises(ValueError, match="closed"):
        cufile.explain(file, "device", 1)

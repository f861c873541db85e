# SPDX-License-Identifier: Apache-2.0
"""Headers of safetensors files, mutated: refused in words, or right.

A fixed seed and a few seconds as a test; OCF_FUZZ_SECONDS gives it longer,
and then another seed, which is printed. The header alone is parsed: no
library is needed.
"""
import copy
import importlib
import json
import math
import os
import random
import sys
import time
import types

import pytest

from conftest import ROOT

SECONDS = float(os.environ.get("OCF_FUZZ_SECONDS", "3"))
SEED = int(time.time()) if "OCF_FUZZ_SECONDS" in os.environ else 20261121
LEAST = 500  # headers, however slow the machine
MAX_STEP = 2.0  # seconds of a processor that one header may take


@pytest.fixture(scope="module")
def header():
    """cufile.safetensors._header, where the library itself may be absent."""
    package = types.ModuleType("ocf_fuzzed")
    package.__path__ = [str(ROOT / "python" / "cufile")]
    inner = types.ModuleType("ocf_fuzzed.safetensors")
    inner.__path__ = [str(ROOT / "python" / "cufile" / "safetensors")]
    sys.modules["ocf_fuzzed"], sys.modules[inner.__name__] = package, inner
    return importlib.import_module("ocf_fuzzed.safetensors._header")


def model(rng, header):
    """A good header, and how much data it describes."""
    entries, end = {}, 0
    for i in range(rng.randrange(6)):
        dtype = rng.choice(list(header.DTYPES))
        shape = [rng.randrange(5) for _ in range(rng.randrange(4))]
        size = header.DTYPES[dtype] * math.prod(shape)
        entries[f"layer.{i}"] = {"dtype": dtype, "shape": shape,
                                 "data_offsets": [end, end + size]}
        end += size
    if rng.randrange(2):
        entries["__metadata__"] = {"format": "pt"}
    return entries, end


ODD = [None, True, -1, 0, 1, 2**63, 2**64, 10**18, 1.5, 1e308, "", "F32", "\ud800",
       "\x00", [], [[]], {}, {"a": []}, [0, 0], [0, 2**62], [1, 0], "x" * 300]


def odd(rng):
    return copy.deepcopy(rng.choice(ODD))


def deep(rng):
    return "[" * (n := rng.choice([5, 200, 400, 480, 900, 3000])) + "]" * n


def change_value(rng, entries):
    if not entries:
        entries["new"] = odd(rng)
        return
    name = rng.choice(list(entries))
    entry = entries[name]
    if isinstance(entry, dict) and entry and rng.randrange(4):
        key = rng.choice(list(entry))
        if isinstance(entry[key], list) and entry[key] and rng.randrange(2):
            entry[key][rng.randrange(len(entry[key]))] = odd(rng)
        else:
            entry[key] = odd(rng)
    else:
        entries[name] = odd(rng)


def change_text(rng, text):
    text = bytearray(text)
    for _ in range(rng.randrange(1, 5)):
        at = rng.randrange(len(text) + 1)
        what = rng.randrange(5)
        if what == 0:
            text[at:at + 1] = bytes([rng.randrange(256)])
        elif what == 1:
            del text[at:at + rng.randrange(20)]
        elif what == 2:
            text[at:at] = rng.choice([b"1" * 25, b"-", b"NaN", b"1e999", b"\\ud800",
                                      b"\xff", b'"', b"}", b",", b" " * 30, b"/**/"])
        elif what == 3:
            first = rng.randrange(len(text) + 1)
            text[at:at] = text[first:first + rng.randrange(60)]
        else:
            text = bytearray(text.replace(b"[]", deep(rng).encode(), 1))
    return bytes(text)


def mutant(rng, header):
    entries, size = model(rng, header)
    for _ in range(rng.choice([0, 0, 1, 1, 2])):
        change_value(rng, entries)
    text = json.dumps(entries).encode() + b" " * rng.randrange(9)
    if rng.randrange(2):
        text = change_text(rng, text)
    return text, size + rng.choice([0, 0, 0, 1, -1, 8]) * bool(size)


def check_good(header, parsed, text, data_bytes):
    end = 0
    for tensor in parsed.tensors:
        assert isinstance(tensor.name, str)
        assert tensor.start == end <= tensor.stop <= data_bytes
        assert tensor.stop - tensor.start == (
            header.DTYPES[tensor.dtype] * math.prod(tensor.shape))
        assert all(type(extent) is int and extent >= 0 for extent in tensor.shape)
        assert len(tensor.shape) <= header.MAX_DIMENSIONS
        end = tensor.stop
    assert end == data_bytes == parsed.data_bytes
    assert parsed.data_start == 8 + len(text)
    assert all(isinstance(value, str) for value in parsed.metadata.values())


def parse_one(header, text, data_bytes):
    """True if the header was taken."""
    try:
        parsed = header.parse(text, data_bytes, "file")
    except header.SafetensorsError as error:
        assert str(error)
        return False
    check_good(header, parsed, text, data_bytes)
    return True


def test_a_header_of_any_bytes_is_refused_in_words_or_right(header):
    rng = random.Random(SEED)
    end = time.monotonic() + SECONDS
    taken = refused = 0
    print(f"seed {SEED}")
    while time.monotonic() < end or taken + refused < LEAST:
        text, data_bytes = mutant(rng, header)
        begin = time.process_time()
        try:
            good = parse_one(header, text, data_bytes)
        except Exception as error:
            pytest.fail(f"{error!r} of {text[:3000]!r}, {data_bytes} bytes of data")
        assert time.process_time() - begin < MAX_STEP, text[:3000]
        taken, refused = taken + good, refused + (not good)
    print(f"{taken} taken, {refused} refused")
    assert taken and refused


@pytest.mark.parametrize("depth", [5, 100, 300, 500, 900, 2000])
def test_depth_in_any_place_is_refused_in_words(header, depth):
    nested = "[" * depth + "]" * depth
    for text in (f'{{"t": {nested}}}',
                 f'{{"t": {{"dtype": {nested}, "shape": [], "data_offsets": [0, 0]}}}}',
                 f'{{"t": {{"dtype": "U8", "shape": {nested}, "data_offsets": [0, 0]}}}}',
                 f'{{"t": {{"dtype": "U8", "shape": [], "data_offsets": {nested}}}}}'):
        assert not parse_one(header, text.encode(), 0)

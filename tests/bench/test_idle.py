# SPDX-License-Identifier: Apache-2.0
"""bench/idle.py without PyTorch and a GPU: its pieces, its end, its sums."""
import contextlib
import sys
import time
import types

import pytest


@pytest.fixture
def idle(monkeypatch):
    for name in ("torch", "cufile"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.delitem(sys.modules, "idle", raising=False)
    import idle as module
    module.torch.uint8 = None
    module.torch.empty = lambda n, **kind: bytearray(n)
    yield module
    sys.modules.pop("idle")


def test_the_middle_the_late_and_the_last(idle):
    times = [0.001] * 50 + [0.002] * 48 + [0.003, 0.009]
    assert idle.summary(times) == "p50 2000 us, p99 9000 us, max 9000 us"
    assert idle.summary([0.00001]) == "p50 10 us, p99 10 us, max 10 us"


def test_a_reader_goes_through_the_file_until_it_is_stopped(idle):
    spans = []

    class File:
        def read(self, target, size, offset):
            assert len(target) == size
            spans.append((offset, size))
            time.sleep(0.0001)

    idle.cufile.open = lambda path: contextlib.nullcontext(File())
    piece = idle.SIZE // 4
    reader = idle.Reader("file", piece)
    reader.start()
    while len(spans) < 6:
        time.sleep(0.001)
    reader.stop()
    assert not reader.is_alive() and reader.count == len(spans)
    assert spans[:6] == [(k * piece % idle.SIZE, piece) for k in range(6)]

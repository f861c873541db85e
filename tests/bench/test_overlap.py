# SPDX-License-Identifier: Apache-2.0
"""bench/overlap.py without PyTorch and a GPU: which bytes its readers ask for,
what it makes of times and counts, and that a process which dies or hangs costs
its own rows alone."""
import argparse
import json
import sys
import threading
import types

import pytest

MIB = 1 << 20


@pytest.fixture
def overlap(monkeypatch):
    for name in ("torch", "cufile"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.delitem(sys.modules, "overlap", raising=False)
    import overlap as module
    yield module
    sys.modules.pop("overlap")


class Clock:
    """Says so many milliseconds for a computation, in turn."""

    def __init__(self, *times):
        self.times = list(times)

    def run(self, seconds):
        return self.times.pop(0)


def reader_of(overlap, turn, piece=MIB):
    """Without a file, and memory of a GPU."""
    class Reader(overlap.Reader):
        def __init__(self):
            self.piece = piece

        def turn(self, offsets):
            turn(offsets)
    return Reader()


def options_of(**more):
    return argparse.Namespace(**{"seconds": 0.01, "rounds": 3, "sizes": [1], "json": None,
                                 "compute": ["gemm"], "ways": ["stream"], "patience": 20,
                                 "file": "data", **more})


@pytest.mark.parametrize("piece", [MIB // 16, MIB, 3 * MIB, 16 * MIB, 100 * MIB])
def test_the_pieces_of_a_round_are_the_file_once(overlap, piece):
    turns = list(reader_of(overlap, None, piece).spans())
    assert all(0 < len(turn) <= overlap.DEPTH for turn in turns)
    offsets = [at for turn in turns for at in turn]
    assert offsets == list(range(0, overlap.GIB, piece))


def test_a_short_read_ends_the_reader_and_is_told(overlap):
    def fail(offsets):
        raise OSError("short read")
    threads = threading.active_count()
    with pytest.raises(OSError, match="short read"):
        overlap.beside(reader_of(overlap, fail), lambda: 7)
    assert threading.active_count() == threads


def test_reads_count_while_the_work_is_done(overlap):
    turned, pause = [], threading.Event()

    def turn(offsets):
        turned.append(offsets)
        pause.wait(0.001)

    def work():
        before = len(turned)
        while len(turned) < before + 2:  # the first of them has been counted
            pause.wait(0.001)
        return 7
    answer, rate = overlap.beside(reader_of(overlap, turn), work)
    assert answer == 7 and rate > 0


def test_the_cost_is_of_the_turns_around_and_the_middle_counts(overlap, monkeypatch):
    rates = iter([3e9, 9e9, 5e9, 9e9, 9e9, 7e9])
    monkeypatch.setattr(overlap, "beside", lambda reader, work: (work(), next(rates)))
    monkeypatch.setattr(overlap.time, "sleep", lambda seconds: None)
    clock = Clock(10, 12, 14, 10, 15, 10, 10, 11, 10)
    row = overlap.measure(None, clock, options_of())
    assert row["costs"] == pytest.approx([0, 0.5, 0.1])
    assert row["cost"] == pytest.approx(0.1)
    assert row["GB/s"] == 5 and row["alone GB/s"] == 9


CHILD = """
import json, os, sys, time
name = sys.argv[sys.argv.index("--child") + 1]
print("a line of somebody else")
print(json.dumps({"library": name, "arguments": sys.argv[1:],
                  "loaded": os.environ.get("OPENCUFILE_LIBRARY")}), flush=True)
if name == "dies":
    os.abort()
if name == "hangs":
    time.sleep(60)
"""


@pytest.mark.parametrize("name, says", [("well", ""), ("dies", "dies ended with -6 after 1"),
                                        ("hangs", "hangs hung after 1")])
def test_a_process_that_ends_early_keeps_its_rows(overlap, tmp_path, monkeypatch, capsys,
                                                  name, says):
    child = tmp_path / "child.py"
    child.write_text(CHILD)
    monkeypatch.setattr(overlap, "__file__", str(child))
    sizes = [0.5] if name == "well" else [0.5, 16]
    row, = overlap.run_child(name, "/a/lib.so",
                             options_of(sizes=sizes, patience=10 if name == "hangs" else 100))
    assert row["loaded"] == "/a/lib.so"
    words = " ".join(row["arguments"])
    assert "--seconds 0.01 --rounds 3 --sizes " + " ".join(map(str, sizes)) in words
    assert words.endswith("--compute gemm --ways stream")
    told = capsys.readouterr().err
    assert (says in told) if says else not told


def test_each_library_then_both_by_hand_are_a_table(overlap, tmp_path, monkeypatch, capsys):
    asked = []

    def run_child(name, library, options):
        asked.append((name, library))
        row = {"library": name, "compute": "gemm", "way": "stream", "MiB": 0.0625}
        if name == "byhand":
            return [{**row, "failed": "short read"}]
        return [{**row, "right": name == "a", "cost": 0.126, "GB/s": 5.04,
                 "alone GB/s": 40.0}]
    out = tmp_path / "rows.json"
    monkeypatch.setattr(overlap, "run_child", run_child)
    monkeypatch.setattr(sys, "argv", ["overlap.py", "--file", "data", "--lib", "a=/a.so",
                                      "--lib", "b=/b=c.so", "--json", str(out)])
    overlap.main()
    assert asked == [("a", "/a.so"), ("b", "/b=c.so"), ("byhand", None), ("limit", None)]
    assert len(json.loads(out.read_text())) == 4
    lines = capsys.readouterr().out.splitlines()
    assert "| gemm | stream | 0.0625 MiB | a | 12.6 % | 5.04 | 40 | right |" in lines
    assert "| gemm | stream | 0.0625 MiB | b | 12.6 % | 5.04 | 40 | WRONG |" in lines
    assert "| gemm | stream | 0.0625 MiB | byhand | | | | short read |" in lines

# SPDX-License-Identifier: Apache-2.0
"""bench/beside.py without a GPU: who runs beside whom, and that nobody is left."""
import json
import os
import pathlib
import subprocess
import sys
import time

import pytest

import beside

BENCH = os.environ["OCF_BENCH"]
LIB = os.environ["OCF_LIB"]
FAKE_DIR = str(pathlib.Path(os.environ["OCF_FAKECUDA"]).parent)
PROGRAM = pathlib.Path(beside.__file__)
CELLS = ["--sizes 4K --host", "--sizes 64K --host --threads 2"]


def run(tmp_path, *more):
    out = tmp_path / "rows"
    done = subprocess.run(
        [sys.executable, "-B", PROGRAM, "--bench", BENCH, "--lib", f"ours={LIB}",
         "--file", tmp_path / "data", "--seconds", "0.02", "--rounds", "1", "--json", out,
         "--cells", *CELLS, *more],
        capture_output=True, text=True, timeout=200, check=True)
    return [json.loads(line) for line in out.read_text().splitlines()], done.stdout


def processes_with(path):
    """Whose command line names it."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(path).encode() in entry.read_bytes():
                found.append(entry)
        except OSError:
            continue
    return found


def test_each_library_is_measured_beside_each(tmp_path):
    rows, table = run(tmp_path, "--beside", "alone", "same")
    cells = [row for row in rows if row["kind"] == "cell"]
    assert [(row["beside"], row["size"], row["library"]) for row in cells] == [
        (kind, size, name) for kind in ("alone", "same") for size in (4096, 65536)
        for name in ("ours", "byhand")]
    assert all(row["error"] == "" and row["gb_per_s"] > 0 for row in cells)
    assert table.count("### alone") == table.count("### same") == 1
    assert table.count("read cached 64 KiB x2 host") == 2
    end = time.monotonic() + 10
    while processes_with(tmp_path) and time.monotonic() < end:
        time.sleep(0.05)
    assert not processes_with(tmp_path)


def options_of(tmp_path):
    return beside.argparse.Namespace(bench=BENCH, op="read", file=str(tmp_path / "data"))


def test_neighbours_run_while_the_block_does(tmp_path):
    library = f"ours={LIB}"
    with beside.neighbours("three", options_of(tmp_path), library, CELLS[0], str(tmp_path)):
        # each is a process that measures, and its parent
        assert len(processes_with(tmp_path / "data")) == 6
        assert len(list(tmp_path.glob("neighbour*"))) == 3


def test_a_neighbour_that_does_not_begin_is_no_neighbour(tmp_path, monkeypatch):
    monkeypatch.setattr(beside, "START", 0.3)
    with pytest.raises(RuntimeError, match="did not begin"):
        with beside.neighbours("same", options_of(tmp_path), "ours=/nowhere", "--sizes 0",
                               str(tmp_path)):
            pass


def test_one_on_another_gpu_is_sent_there(tmp_path, monkeypatch):
    monkeypatch.setenv("LD_LIBRARY_PATH", FAKE_DIR)
    with beside.neighbours("other", options_of(tmp_path), f"ours={LIB}", "--sizes 4K",
                           str(tmp_path)):
        there = [process.parent for process in processes_with(tmp_path / "data")]
        assert there
        assert all(b"CUDA_VISIBLE_DEVICES=1" in (process / "environ").read_bytes().split(b"\0")
                   for process in there)


def test_without_a_second_gpu_there_is_no_other(tmp_path):
    with pytest.raises(RuntimeError, match="no second GPU"):
        with beside.neighbours("other", options_of(tmp_path), f"ours={LIB}",
                               "--sizes 4K --host", str(tmp_path)):
            pass


def test_nobody_computes_without_pytorch(tmp_path, monkeypatch):
    monkeypatch.setattr(beside.sys, "executable", "/bin/false")
    with pytest.raises(RuntimeError, match="nobody computes"):
        with beside.computing(True):
            pass

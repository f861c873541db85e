# SPDX-License-Identifier: Apache-2.0
"""bench/python_load.py measures every loader that is there, in time."""
import json
import os
import subprocess
import sys
import time

import pytest

from conftest import ROOT


def test_every_loader_is_measured_and_the_clock_is_kept(cufile, tmp_path):
    pytest.importorskip("torch")
    begin = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-B", ROOT / "bench/python_load.py", "--gib", "0.02",
         "--device", "cpu", "--dir", tmp_path, "--sweep", "--seconds", "20", "--runs",
         "1000", "--json", tmp_path / "rows.json"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")}, check=False,
        capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - begin < 200
    assert "bit by bit the same" in done.stdout and "time is over" in done.stdout
    rows = json.loads((tmp_path / "rows.json").read_text())["rows"]
    seen = {(row["format"], row["loader"], row["state"]) for row in rows}
    for state in ("cached", "uncached"):
        assert {("checkpoint", "torch.load", state), ("checkpoint", "cufile", state),
                ("safetensors", "cufile", state)} <= seen
    grid = {(row["threads"], row["piece_mib"]) for row in rows if "threads" in row}
    assert {(1, 4), (16, 256)} <= grid
    assert all(seconds > 0 for row in rows for seconds in row["seconds"])
    assert os.listdir(tmp_path) == ["rows.json"]

# SPDX-License-Identifier: Apache-2.0
"""A process that does IO when told to, and gds_stats to look at it."""
import json
import os
import pathlib
import subprocess

import pytest

FAKE_DIR = str(pathlib.Path(os.environ["OCF_FAKECUDA"]).parent)


class Load:
    """tests/stats/load.c: each order is answered before the next."""

    def __init__(self, folder, gpu, level, more):
        folder.mkdir(exist_ok=True)
        config = folder / "cufile.json"
        config.write_text(json.dumps({"profile": {"cufile_stats": level}}))
        env = {name: value for name, value in os.environ.items()
               if not name.startswith(("CUFILE_", "OCF_", "FAKECUDA_"))}
        env["CUFILE_ENV_PATH_JSON"] = str(config)
        env["CUFILE_LOGFILE_PATH"] = str(folder / "log")
        env["CUFILE_LOGGING_LEVEL"] = "INFO"
        env["ASAN_OPTIONS"] = env.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
        env.update(more)
        if gpu:
            env["LD_LIBRARY_PATH"] = FAKE_DIR
        self.log = folder / "log"
        self.process = subprocess.Popen(
            [os.environ["OCF_LOAD"], str(folder)] + (["gpu"] if gpu else []),
            env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        assert self.answer() == "ready"

    def answer(self):
        return self.process.stdout.readline().strip()

    def tell(self, *orders):
        for order in orders:
            self.process.stdin.write(order + "\n")
            self.process.stdin.flush()
            assert self.answer() == "ok", order

    def files(self):
        """Links in /proc/PID/fd that are statistics files."""
        folder = pathlib.Path(f"/proc/{self.pid}/fd")
        return [link for link in folder.iterdir()
                if os.readlink(link) == "/memfd:opencufile-stats (deleted)"]

    def end(self):
        self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait(timeout=30)


@pytest.fixture
def load(tmp_path):
    """load(level, gpu=False, NAME=value) starts a process."""
    started = []

    def start(level, gpu=False, **more):
        started.append(Load(tmp_path / str(len(started)), gpu, level, more))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait()


def run(*args, program=None, **more):
    """gds_stats with these arguments; -> (status, stdout, stderr)."""
    done = subprocess.run([program or os.environ["OCF_GDS_STATS"], *map(str, args)],
                          capture_output=True, text=True, timeout=60,
                          check=False, **more)
    return done.returncode, done.stdout, done.stderr

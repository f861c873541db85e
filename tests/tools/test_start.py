# SPDX-License-Identifier: Apache-2.0
"""The tools start in less than 20 ms, each with something real to do."""
import json
import os
import subprocess
import time

import pytest

BUDGET = 0.020
# As long on an ordinary machine; on one that is slower, or that neighbours
# keep busy, what the budget has become there.
YARDSTICK = ["/bin/sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"]
ENOUGH = 40  # runs of both, for the least of each to be that

pytestmark = pytest.mark.skipif(os.environ.get("OCF_SANITIZED") == "1",
                                reason="sanitizers start slowly")


def environment(folder):
    """As people have it: with MALLOC_PERTURB_, malloc writes all that it gives."""
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("CUFILE_", "OCF_", "FAKECUDA_", "LD_",
                                   "MALLOC_"))}
    settings = folder / "cufile.json"
    settings.write_text(json.dumps({"profile": {"cufile_stats": 3}}))
    env["CUFILE_ENV_PATH_JSON"] = str(settings)
    return env


def once(command, env):
    """Time on the clock and on processors that one run takes, in seconds."""
    start = time.monotonic()
    pid = os.posix_spawn(command[0], command, env, file_actions=[
        (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])
    _, status, usage = os.wait4(pid, 0)
    took = time.monotonic() - start
    assert os.waitstatus_to_exitcode(status) == 0, command
    return took, usage.ru_utime + usage.ru_stime


def starts_in_time(command, env, most=300):
    """
    The least of each over many runs: a busy machine makes single runs slow,
    and a tool that is slow makes them all so.
    """
    command = list(map(str, command))
    least, yardstick = [60.0, 60.0], [60.0, 60.0]
    end = time.monotonic() + 60
    for runs in range(1, most + 1):
        least = list(map(min, least, once(command, env)))
        if max(least) < BUDGET:
            return True
        yardstick = list(map(min, yardstick, once(YARDSTICK, env)))
        if runs >= ENOUGH and (least[0] < yardstick[0] and least[1] < yardstick[1]
                               or time.monotonic() > end):
            break
    print(f"clock and processor {least}, yardstick {yardstick}")
    return least[0] < yardstick[0] and least[1] < yardstick[1]


@pytest.fixture
def data(tmp_path):
    file = tmp_path / "data"
    file.write_bytes(os.urandom(1 << 16))
    return file


COMMANDS = {
    "gdscheck -f": lambda data: [os.environ["OCF_GDSCHECK"], "-f", data],
    "gdscheck -p": lambda data: [os.environ["OCF_GDSCHECK"], "-p"],
    "gdscheck --dump-config":
        lambda data: [os.environ["OCF_GDSCHECK"], "--dump-config", "--json"],
    "gdsio": lambda data: [os.environ["OCF_GDSIO"], "-f", data, "-m", 3,
                           "-s", "64K", "-i", "4K"],
    "gdsio_verify": lambda data: [os.environ["OCF_GDSIO_VERIFY"], "--host",
                                  "-f", data],
    "gdscp": lambda data: [os.environ["OCF_GDSCP"], "--host", data,
                           data.with_name("copy")],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_tool_starts_in_less_than_20_ms(name, data, tmp_path):
    assert starts_in_time(COMMANDS[name](data), environment(tmp_path))


def test_so_does_gds_stats_beside_a_process(data, tmp_path):
    with subprocess.Popen(
            [os.environ["OCF_LOAD"], str(tmp_path)], text=True,
            env=environment(tmp_path), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE) as load:
        assert load.stdout.readline() == "ready\n"
        in_time = starts_in_time(
            [os.environ["OCF_GDS_STATS"], "-p", load.pid, "-l", 3],
            environment(tmp_path))
        load.stdin.close()
    assert in_time


def test_a_tool_that_is_slow_is_noticed(tmp_path):
    """The test can fail: on the clock, and on processors."""
    env = environment(tmp_path)
    assert once(["/bin/sleep", "0.05"], env)[0] > BUDGET
    busy = ["/bin/sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"]
    assert once(busy, env)[1] > BUDGET
    assert not starts_in_time(busy, env, 5)
    assert not starts_in_time(["/bin/sleep", "1"], env, 5)

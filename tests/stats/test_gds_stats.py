# SPDX-License-Identifier: Apache-2.0
"""gds_stats: its text, its other formats, its errors, and whose it may read."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

from conftest import run

GPU_WORK = ("register", "read 3 8192", "write 2 4096", "read 1 1048576",
            "read 1 1000 1", "read 1 4096 -1")

GOLDEN_TOTALS = """\
cuFile STATS VERSION : 8
GLOBAL STATS:
Read: ok = 5 err = 1
Write: ok = 2 err = 0
HandleRegister: ok = 1 err = 0
HandleDeregister: ok = 0 err = 0
BufRegister: ok = 1 err = 0
BufDeregister: ok = 0 err = 0
BatchSubmit: ok = 0 err = 0
BatchComplete: ok = 0 err = 0
BatchSetup: ok = 0 err = 0
BatchCancel: ok = 0 err = 0
BatchDestroy: ok = 0 err = 0
BatchEnqueued: ok = 0 err = 0
PosixBatchEnqueued: ok = 0 err = 0
BatchProcessed: ok = 0 err = 0
PosixBatchProcessed: ok = 0 err = 0
Total Read Size (MiB): 1
Read BandWidth (GiB/s): RATE
Avg Read Latency (us): TIME
Total Write Size (MiB): 0
Write BandWidth (GiB/s): RATE
Avg Write Latency (us): TIME
Total Batch Read Size (MiB): 0
Total Batch Write Size (MiB): 0
Batch Read BandWidth (GiB/s): 0
Batch Write BandWidth (GiB/s): 0
Avg Batch Submit Latency (us): 0
Avg Batch Completion Latency (us): 0
"""

GOLDEN_SIZES = """\
READ-WRITE SIZE HISTOGRAM :
0-4(KiB): 1 0
4-8(KiB): 1 2
8-16(KiB): 3 0
16-32(KiB): 0 0
32-64(KiB): 0 0
64-128(KiB): 0 0
128-256(KiB): 0 0
256-512(KiB): 0 0
512-1024(KiB): 0 0
1024-2048(KiB): 1 0
2048-4096(KiB): 0 0
4096-8192(KiB): 0 0
8192-16384(KiB): 0 0
16384-32768(KiB): 0 0
32768-65536(KiB): 0 0
65536-...(KiB): 0 0
"""

GOLDEN_GPU = """\
PER_GPU STATS:
GPU 0(UUID: UUID) Read: bw=RATE util(%)=N n=5 posix=5 unalign=1 dr=0 \
r_sparse=0 r_inline=0 err=0 MiB=1 Write: bw=RATE util(%)=N n=2 posix=2 \
unalign=0 dr=0 err=0 MiB=0 BufRegister: n=1 err=0 free=0 MiB=4
PER_GPU POSIX POOL BUFFER STATS:
"""


def steady(text):
    """The text without what the clock made of it."""
    text = re.sub(r"(Read|Write) BandWidth \(GiB/s\): (?!0$)[\d.e+-]+",
                  r"\1 BandWidth (GiB/s): RATE", text, flags=re.M)
    text = re.sub(r"^Avg (Read|Write) Latency \(us\): \d+",
                  r"Avg \1 Latency (us): TIME", text, flags=re.M)
    text = re.sub(r"UUID: [0-9a-f]{32}\)", "UUID: UUID)", text)
    text = re.sub(r"bw=[\d.e+-]+", "bw=RATE", text)
    return re.sub(r"util\(%\)=\d+", "util(%)=N", text)


def numbers(pid):
    status, out, err = run("-p", pid, "--json")
    assert (status, err) == (0, "")
    return json.loads(out)


# ------------------------------------------------------------------- text

def test_level_1_prints_the_totals(load):
    one = load(1, gpu=True)
    one.tell(*GPU_WORK)
    status, out, err = run("-p", one.pid, "-l", 1)
    assert (status, steady(out), err) == (0, GOLDEN_TOTALS, "")


def test_level_2_prints_sizes_too(load):
    one = load(2, gpu=True)
    one.tell(*GPU_WORK)
    status, out, err = run("-p", one.pid, "-l", 2)
    assert (status, steady(out), err) == (0, GOLDEN_TOTALS + GOLDEN_SIZES, "")


def test_level_3_prints_each_gpu_too(load):
    one = load(3, gpu=True)
    one.tell(*GPU_WORK)
    status, out, err = run("-p", one.pid, "-l", 3)
    head, pools = steady(out).split("PER_GPU POSIX POOL BUFFER STATS:\n")
    assert (status, err) == (0, "")
    assert head + "PER_GPU POSIX POOL BUFFER STATS:\n" == \
        GOLDEN_TOTALS + GOLDEN_SIZES + GOLDEN_GPU
    # all slots are back, and some were made
    found = re.fullmatch(r"GPU 0((?: \d+\(KiB\) :0/\d+)+)\n", pools)
    assert found, pools
    assert sum(int(n) for n in re.findall(r":0/(\d+)", found[1])) > 0


def test_a_gpu_that_batches_alone_use_is_shown(load):
    one = load(3, gpu=True)
    one.tell("batch 2 65536")
    status, out, err = run("-p", one.pid, "-l", 3)
    assert (status, err) == (0, "")
    assert "PER_GPU STATS:\nGPU 0(UUID" in out, out


def test_without_a_level_all_that_is_counted_is_shown(load):
    one = load(2)
    assert "HISTOGRAM" in run("-p", one.pid)[1]
    assert "PER_GPU" not in run("-p", one.pid)[1]


def test_more_than_is_counted_is_said_and_not_shown_as_zeros(load):
    one = load(1)
    status, out, err = run("-p", one.pid, "-l", 3)
    assert status == 0
    assert "HISTOGRAM" not in out
    assert "counts at level 1" in err and "cuFileSetStatsLevel" in err


def test_the_numbers_move_while_the_process_runs(load):
    one = load(1)
    for times in range(1, 4):
        one.tell("read 5 4096")
        assert f"Read: ok = {5 * times} err = 0" in run("-p", one.pid)[1]


def test_a_stopped_process_shows_where_it_stopped(load):
    one = load(1)
    one.tell("read 2 4096", "stop", "read 7 4096")
    before = run("-p", one.pid)[1]
    assert "Read: ok = 2 err = 0" in before
    time.sleep(0.05)
    assert run("-p", one.pid)[1] == before
    one.tell("reset")
    assert "Read: ok = 0 err = 0" in run("-p", one.pid)[1]


def test_a_program_that_counts_by_call_is_seen_too(load):
    one = load(0)
    one.tell("level 1", "read 1 4096", "start", "read 1 4096")
    assert "Read: ok = 1 err = 0" in run("-p", one.pid)[1]


# ----------------------------------------------------------------- others

def test_json_has_every_number_by_name(load):
    one = load(3, gpu=True)
    one.tell(*GPU_WORK, "readv 2 4096")
    got = numbers(one.pid)
    assert (got["pid"], got["level"], got["counting"]) == (one.pid, 3, True)
    assert got["seconds"] > 0
    counts = got["counts"]
    assert counts["read.ok"] == 5 + 4 and counts["read.vectored"] == 4
    assert counts["readv.ok"] == 2 and counts["readv.bytes"] == 4 * 4096
    assert counts["read.sizes"][9] == 1 and len(counts["read.sizes"]) == 32
    assert counts["read.bytes"] == 3 * 8192 + 2**20 + 1000 + 4 * 4096
    assert counts["read.ns"] > 0
    gpu, = got["gpus"]
    assert gpu["gpu"] == 0 and re.fullmatch("[0-9a-f]{32}", gpu["uuid"])
    assert gpu["write.bytes"] == 2 * 4096
    assert gpu["registered_bytes"] == 4 << 20
    assert all(pool["used"] == 0 for pool in gpu["pools"])


def test_batches_are_counted_by_call_and_by_entry(load):
    one = load(1)
    one.tell("batch 3 4096")
    out = run("-p", one.pid)[1]
    for line in ("BatchSetup: ok = 1 err = 0", "BatchSubmit: ok = 3 err = 0",
                 "BatchEnqueued: ok = 6 err = 0", "Read: ok = 0 err = 0",
                 "BatchProcessed: ok = 6 err = 0",
                 "BatchDestroy: ok = 1 err = 0"):
        assert f"\n{line}\n" in out
    counts = numbers(one.pid)["counts"]
    assert counts["batch_read.bytes"] == 6 * 4096
    # three submits took some time, and each less than its entries
    assert 0 < counts["batch_submit.ns"]
    latency = re.search(r"^Avg Batch Submit Latency \(us\): (\d+)$", out, re.M)
    assert int(latency[1]) == pytest.approx(
        counts["batch_submit.ns"] / 3000, abs=1)


def test_what_takes_no_host_memory_is_not_posix(load):
    """By aliases of dma-bufs, which the fake driver lets a process map."""
    one = load(3, gpu=True, FAKECUDA_VERSION="13030", OCF_ALIAS="on")
    one.tell("read 2 8192", "register", "read 3 8192", "write 1 8192",
             "batch 2 4096")
    out = run("-p", one.pid, "-l", 3)[1]
    gpu, = numbers(one.pid)["gpus"]
    assert (gpu["read.ok"], gpu["read.alias"]) == (5, 3)
    assert re.search(r"^GPU 0.* Read: .* n=5 posix=2 .* Write: .* n=1 posix=1 ",
                     out, re.M)
    assert "\nBatchProcessed: ok = 4 err = 0\n" in out
    assert "\nPosixBatchProcessed: ok = 0 err = 0\n" in out


def test_registered_bytes_go_back_with_the_buffer(load):
    one = load(3, gpu=True)
    one.tell("register", "read 1 4096", "deregister")
    gpu, = numbers(one.pid)["gpus"]
    assert gpu["registered_bytes"] == 0
    assert (gpu["register.ok"], gpu["deregister.ok"]) == (1, 1)


def test_openmetrics_is_well_formed_and_true(load):
    one = load(3, gpu=True)
    one.tell(*GPU_WORK)
    status, out, err = run("-p", one.pid, "--openmetrics")
    assert (status, err) == (0, "")
    assert out.endswith("# EOF\n") and out.count("# EOF") == 1
    types, samples = {}, {}
    for line in out.splitlines()[:-1]:
        found = re.fullmatch(r"# TYPE ([a-z_]+) (counter|gauge|histogram)", line)
        if found:
            assert found[1] not in types, "a family stands twice"
            types[found[1]] = found[2]
            family = found[1]
            continue
        if line.startswith("# UNIT "):
            assert re.fullmatch(r"# UNIT (\w+)_(seconds|bytes) \2", line)
            continue
        found = re.fullmatch(r'([a-z_]+)(\{(?:\w+="[^"]*",?)+\}) ([\d.]+)', line)
        assert found, line
        assert found[1].startswith(family)
        suffix = found[1][len(family):]
        assert suffix in {"counter": ["_total"], "gauge": [""],
                          # a _count is for those with a _sum alone
                          "histogram": ["_bucket"]}[types[family]]
        samples[found[1] + found[2]] = float(found[3])
    pid = f'{{pid="{one.pid}"}}'
    assert samples["opencufile_read_ok_total" + pid] == 5
    assert samples["opencufile_write_bytes_total" + pid] == 8192
    bucket = f'opencufile_read_sizes_bucket{{pid="{one.pid}",le="%s"}}'
    assert samples[bucket % "4095.0"] == 1
    assert samples[bucket % "+Inf"] == 6
    assert [value for name, value in samples.items()
            if name.startswith("opencufile_gpu_read_bytes_total")] == \
        [3 * 8192 + 2**20 + 1000]
    pools = json.loads(run("-p", one.pid, "--json")[1])["gpus"][0]["pools"]
    for key in ("slots", "used"):
        assert [value for name, value in samples.items()
                if name.startswith(f"opencufile_gpu_pool_{key}{{")] == \
            [pool[key] for pool in pools]
    assert any(pool["slots"] for pool in pools)


def test_watch_shows_intervals_until_the_process_ends(load):
    one = load(1)
    one.tell("read 5 4096")
    tool = subprocess.Popen(
        [os.environ["OCF_GDS_STATS"], "-p", str(one.pid), "--json",
         "--watch", "0.1"], stdout=subprocess.PIPE, text=True)
    assert json.loads(tool.stdout.readline())["counts"]["read.ok"] == 5
    one.tell("read 5 4096")
    seen = 5
    while seen < 10:
        seen = json.loads(tool.stdout.readline())["counts"]["read.ok"]
    one.process.stdin.close()  # it ends, and nobody has waited for it yet
    tool.stdout.read()
    assert tool.wait(timeout=60) == 0
    tool.stdout.close()
    one.end()


def test_watch_prints_the_rate_of_the_interval(load):
    one = load(1)
    one.tell("read 100 1048576")
    tool = subprocess.Popen(
        [os.environ["OCF_GDS_STATS"], "-p", str(one.pid), "-l", "1",
         "--watch", "0.2"], stdout=subprocess.PIPE, text=True)
    text = ""
    while text.count("cuFile STATS") < 3:
        text += tool.stdout.readline()
    tool.kill()
    tool.wait()
    tool.stdout.close()
    rates = [float(n) for n in
             re.findall(r"^Read BandWidth \(GiB/s\): (\S+)", text, re.M)]
    assert rates[0] > 0 and rates[1] == 0  # nothing was read in between


# ----------------------------------------------------------------- errors

# ------------------------------------------------------------------- list

def listed(out, pid):
    """The columns of a process, the command as one; None where it is not."""
    for line in out.splitlines():
        if line.split()[0] == str(pid):
            return line.split(maxsplit=7)[1:]
    return None


def test_the_list_has_who_counts_and_who_does_not(load):
    busy, idle = load(3, gpu=True), load(0)
    busy.tell(*GPU_WORK)
    stranger = subprocess.Popen(["sleep", "60"])
    try:
        status, out, err = run("--list")
    finally:
        stranger.kill()
        stranger.wait()
    assert (status, err) == (0, "")
    assert out.startswith("     PID LEVEL READ GiB/s WRITE GiB/s")
    columns = listed(out, busy.pid)
    assert (columns[0], *columns[3:6]) == ("3", "5", "2", "1")
    assert columns[6].startswith(os.environ["OCF_LOAD"][:60])
    assert listed(out, idle.pid)[:6] == ["-"] * 6
    assert listed(out, stranger.pid) is None
    idle.end()
    assert listed(run("--list")[1], idle.pid) is None


def test_the_list_has_them_all(load):
    one = load(0)
    one.tell("children 1100")
    status, out, err = run("--list")
    assert (status, err) == (0, "")
    mine = [line for line in out.splitlines()
            if line.split(maxsplit=7)[-1].startswith(os.environ["OCF_LOAD"][:60])]
    assert len(mine) >= 1101
    one.end()


def test_a_process_whose_main_thread_has_ended_is_seen(load):
    one = load(1)
    one.tell("read 3 4096", "alone")
    while ") Z " not in pathlib.Path(f"/proc/{one.pid}/stat").read_text():
        time.sleep(0.01)
    one.tell("read 2 4096")
    assert numbers(one.pid)["counts"]["read.ok"] == 5
    columns = listed(run("--list")[1], one.pid)
    assert columns[3] == "5"
    assert columns[6].startswith(os.environ["OCF_LOAD"][:60])
    # it is watched as long as it lives
    tool = subprocess.Popen(
        [os.environ["OCF_GDS_STATS"], "-p", str(one.pid), "--json",
         "--watch", "0.1"], stdout=subprocess.PIPE, text=True)
    for _ in range(3):
        assert json.loads(tool.stdout.readline())["counts"]["read.ok"] == 5
    one.end()
    tool.communicate(timeout=60)
    assert tool.returncode == 0


def test_the_list_is_watched_with_the_rates_of_each_interval(load):
    process = load(1)
    process.tell("read 8 1048576")
    watch = subprocess.Popen(
        [os.environ["OCF_GDS_STATS"], "--list", "--watch", "1"],
        stdout=subprocess.PIPE, text=True)
    prints = []
    for line in watch.stdout:
        if line.split()[:1] == [str(process.pid)]:
            prints.append(line.split(maxsplit=7)[1:])
            if len(prints) == 1:
                process.tell("read 512 1048576")
            if prints[-1][3] == "520" and float(prints[-1][1]) == 0:
                break
    watch.kill()
    watch.wait()
    watch.stdout.close()
    assert prints[0][3] == "8"
    # half a GiB, in the second that it came, or more; then nothing
    assert 0 < max(float(row[1]) for row in prints[1:]) <= 0.51


def test_a_process_that_is_not_there_is_named():
    ended = subprocess.Popen(["true"])
    ended.wait()
    status, out, err = run("-p", ended.pid)
    assert (status, out) == (1, "")
    assert f"there is no process {ended.pid}" in err


def test_a_process_without_the_library_is_told_so():
    other = subprocess.Popen(["sleep", "60"])
    status, out, err = run("-p", other.pid)
    other.kill()
    other.wait()
    assert (status, out) == (1, "")
    assert "has not loaded libcufile" in err


def test_statistics_that_are_off_say_how_to_turn_them_on(load):
    one = load(0)
    one.tell("read 1 4096")
    status, out, err = run("-p", one.pid)
    assert (status, out) == (1, "")
    assert "profile.cufile_stats" in err and "cuFileStatsStart" in err


def test_another_users_process_is_refused(load):
    if os.geteuid():
        pytest.skip("only root can become another user")
    one = load(1)
    # where that user may go: the project may lie in root's home
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        program = shutil.copy(os.environ["OCF_GDS_STATS"], folder)
        status, out, err = run("-p", one.pid, program=program, cwd="/",
                               user=65534, group=65534, extra_groups=[])
    assert (status, out) == (1, "")
    assert "belongs to user 0" in err


def test_wrong_options_are_usage_errors():
    for args in ([], ["-p", "0"], ["-p", "x"], ["-p", "1x"], ["-l", "1"],
                 ["-p", "1", "-l", "4"], ["-p", "1", "-l", "0"],
                 ["-p", "1", "--watch", "0"], ["-p", "1", "--watch", "nan"],
                 ["-p", "1", "--openmetrics", "--json"], ["-p", "1", "more"],
                 ["--no-such"]):
        status, out, err = run(*args)
        assert (status, out) == (2, ""), args
        assert "gds_stats" in err
    assert run("--help")[0] == 0


def test_numbers_that_cannot_be_written_are_an_error(load):
    one = load(3)
    for args in (["-p", str(one.pid)], ["--list"],
                 ["--list", "--watch", "1"],
                 ["-p", str(one.pid), "--watch", "1"], ["--help"]):
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run([os.environ["OCF_GDS_STATS"], *args],
                                  stdout=full, stderr=subprocess.PIPE,
                                  text=True, check=False, timeout=60)
        assert done.returncode == 1, args
        assert "write the result: " in done.stderr, args


# ------------------------------------------------------------------ files

def test_level_0_makes_no_file(load):
    one = load(0)
    one.tell("start", "read 1 4096")
    assert one.files() == []


def test_the_file_ends_with_the_close_and_with_a_crash(load):
    one = load(1)
    link, = one.files()
    # other programs may come and go there; this one has nothing
    assert "/dev/shm/" not in pathlib.Path(f"/proc/{one.pid}/maps").read_text()
    mode = os.stat(link).st_mode
    assert mode & 0o7777 == 0o600
    kept = os.open(link, os.O_RDONLY)
    assert os.fstat(kept).st_nlink == 0
    os.close(kept)
    one.tell("close")
    assert one.files() == []
    two = load(1)
    assert len(two.files()) == 1
    two.process.stdin.write("abort\n")
    two.process.stdin.flush()
    assert two.process.wait(timeout=60) in (-signal.SIGABRT, 134)
    assert run("-p", two.pid)[0] == 1
    assert not [name for name in os.listdir("/dev/shm")
                if name.startswith("opencufile-stats")]


def test_a_forked_child_has_numbers_of_its_own(load):
    one = load(1)
    one.tell("read 3 4096")
    one.process.stdin.write("fork\n")
    one.process.stdin.flush()
    said = sorted([one.answer(), one.answer()])
    assert said[1] == "ok"
    child = int(said[0].split()[1])
    try:
        assert numbers(child)["counts"]["read.ok"] == 1
        assert numbers(one.pid)["counts"]["read.ok"] == 3
    finally:
        os.kill(child, signal.SIGKILL)


def test_the_close_writes_the_numbers_to_the_log(load):
    one = load(3, gpu=True)
    one.tell(*GPU_WORK, "close")
    block = [line for line in one.log.read_text().splitlines()
             if " stats: " in line]
    assert any("read ok 5 err 1" in line for line in block)
    assert any("gpu 0: read 5" in line for line in block)

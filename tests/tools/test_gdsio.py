# SPDX-License-Identifier: Apache-2.0
"""gdsio as a person runs it: its line, its files, its answers to mistakes.

Each test runs the program in a folder of its own, without a GPU driver or on
the fake one, whose account of leaks and misuse must be clean.
"""
import contextlib
import json
import os
import pathlib
import random
import re
import shlex
import signal
import subprocess
import tempfile
import xml.dom.minidom

import pytest

GDSIO = os.environ["OCF_GDSIO"]
QUOTED = shlex.quote(GDSIO)
FAKE_DIR = str(pathlib.Path(os.environ["OCF_FAKECUDA"]).parent)
STATUS = pathlib.Path(__file__).resolve().parents[2] / "docs/status.md"
SANITIZED = os.environ.get("OCF_SANITIZED") == "1"
MIB = 1 << 20

LINE = re.compile(
    r"^IoType: (?P<op>[A-Z]+) XferType: (?P<xfer>[A-Z_]+) "
    r"Threads: (?P<threads>\d+) (?:IoDepth: (?P<depth>\d+) )?"
    r"DataSetSize: (?P<done>\d+)/(?P<total>\d+)\(KiB\) "
    r"IOSize: (?P<io>[\d.]+(?:-[\d.]+-[\d.]+)?)\(KiB\) "
    r"Throughput: (?P<rate>\d+\.\d{6}) GiB/sec, "
    r"Avg_Latency: (?P<latency>\d+\.\d{6}) usecs "
    r"ops: (?P<ops>\d+) total_time (?P<seconds>\d+\.\d{6}) secs$")

XFERS = ["GPUD", "CPUONLY", "CPU_GPU", "CPU_ASYNC_GPU", "CPU_CACHED_GPU",
         "ASYNC", "GPU_BATCH", "GPU_BATCH_STREAM"]
# the calls of types that the library may put off, and what it answers then
CALLS = {5: "cuFileReadAsync", 6: "cuFileBatchIOSubmit", 7: "cuFileReadAsync"}
NOT_BUILT = re.compile(r"\((5007|5038|5039)\)")


def may_be_refused(xfer, fake):
    """Put off by docs/status.md; and streams are nothing without a GPU."""
    row = re.search(rf"^\| `{CALLS.get(xfer)}` \| (\w+) \|",
                    STATUS.read_text(), re.M)
    return row and (row[1] == "later" or (xfer != 6 and not fake))


def environment(fake, **more):
    """Nothing of the caller's configuration, log or driver."""
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("CUFILE_", "FAKECUDA_", "OCF_", "LD_"))}
    root = os.environ["OCF_BUILD_ROOT"]
    paths = [path for path in os.environ.get("LD_LIBRARY_PATH", "").split(":")
             if path and not path.startswith(root)]
    if fake:
        paths.insert(0, FAKE_DIR)
        env["FAKECUDA_STRICT"] = "1"
    if paths:
        env["LD_LIBRARY_PATH"] = ":".join(paths)
    env.update(more)
    return env


class Gdsio:
    def __init__(self, folder, fake):
        self.folder = folder
        self.fake = fake

    def run(self, *args, status=0, **env):
        done = subprocess.run(
            [GDSIO, *map(str, args)], cwd=self.folder, check=False, text=True,
            capture_output=True, env=environment(self.fake, **env),
            timeout=300)
        assert done.returncode == status, (args, done)
        return done

    def lines(self, *args, **env):
        """The result lines, taken apart."""
        out = self.run(*args, **env).stdout.splitlines()
        found = [LINE.match(line) for line in out]
        return [match.groupdict() for match in found if match]

    def refuses(self, *args, status=2, **env):
        """The one line that says why, and nothing on the other stream."""
        done = self.run(*args, status=status, **env)
        assert not done.stdout, done
        lines = [line for line in done.stderr.splitlines()
                 if not line.startswith(("try gdsio", "gdsio: no GPU to be"))]
        assert len(lines) == 1, done
        return lines[0]


@pytest.fixture(params=["host", "fake"])
def gdsio(request, tmp_path):
    return Gdsio(tmp_path, request.param == "fake")


@pytest.fixture
def host(tmp_path):
    return Gdsio(tmp_path, False)


@pytest.fixture
def fake(tmp_path):
    return Gdsio(tmp_path, True)


def flip(path, offset):
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 0x10]))


# ------------------------------------------------------------ what it prints

def test_the_result_line_is_the_one_that_scripts_match(gdsio):
    out = gdsio.run("-f", "a", "-w", 4, "-s", "8M", "-i", "64K", "-I",
                    1).stdout
    assert out.endswith("\n") and out.count("\n") == 1
    line = LINE.match(out.rstrip("\n"))
    assert line, out
    assert (line["op"], line["xfer"], line["threads"]) == ("WRITE", "GPUD",
                                                           "4")
    assert (line["done"], line["total"], line["io"]) == ("8192", "8192", "64")
    assert line["ops"] == "128" and line["depth"] is None
    assert (gdsio.folder / "a").stat().st_size == 8 * MIB


def test_rate_is_bytes_over_time_in_gib(host):
    host.run("-f", "a", "-s", "32M", "-I", 1)
    line, = host.lines("-f", "a", "-s", "32M")
    expected = 32 / 1024 / float(line["seconds"])
    assert float(line["rate"]) == pytest.approx(expected, rel=1e-2)
    # one thread: all its time but a little is spent in requests
    spent = float(line["latency"]) * int(line["ops"]) / 1e6
    assert 0 < spent <= float(line["seconds"])


def test_variable_sizes_are_named_and_used(gdsio):
    line, = gdsio.lines("-f", "a", "-s", "60K", "-i", "4K:16K:4K", "-I", 1)
    # 4 + 8 + 12 + 16, then 4 + 8 and the 8 that are left
    assert (line["io"], line["ops"]) == ("4-16-4", "7")


@pytest.mark.parametrize("size, kib", [("4K:8K:1G", "4-8-1048576"),
                                       ("1234567", "1205.631836")])
def test_sizes_have_all_their_digits_and_no_exponent(host, size, kib):
    line, = host.lines("-f", "a", "-s", "2M", "-i", size, "-I", 1)
    assert line["io"] == kib


def test_threads_share_a_file_of_any_size(host):
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as file:
        try:
            os.truncate(file.name, 1 << 60)
        except OSError as error:
            pytest.skip(f"no such file here: {error}")
        host.run("-f", file.name, "-x", 1, "-O", 1, "-i", 1, "-w", 16, "-T", 0.1)


@pytest.mark.skipif(SANITIZED, reason="a sanitizer wants more than that")
def test_threads_that_have_no_room_are_an_error_with_their_number(host):
    words = " ".join(["-f a"] * 256)  # of 4 KiB or more each
    done = subprocess.run(
        ["sh", "-c", f"ulimit -v 2000000; exec {QUOTED} {words} -w 4096 -s 4K -I 1 --host"],
        cwd=host.folder, check=False, text=True, capture_output=True,
        env=environment(False))
    assert (done.returncode, done.stderr) == (
        1, "gdsio: no memory for 1048576 threads\n")


def test_a_directory_has_a_file_for_each_thread(gdsio):
    line, = gdsio.lines("-D", ".", "-w", 3, "-s", "1M", "-i", "256K", "-I", 1)
    assert (line["threads"], line["total"]) == ("3", "3072")
    names = sorted(path.name for path in gdsio.folder.iterdir())
    assert names == ["gdsio.0", "gdsio.1", "gdsio.2"]
    assert all((gdsio.folder / name).stat().st_size == MIB for name in names)


def test_each_of_several_jobs_has_a_line_with_j(gdsio):
    gdsio.run("-D", ".", "-w", 3, "-s", "1M", "-I", 1)
    out = gdsio.run("-f", "gdsio.0", "-w", 2, "-f", "gdsio.1", "-w", 1, "-s",
                    "1M", "-i", "64K", "-J").stdout.splitlines()
    assert len(out) == 3 and LINE.match(out[0])["threads"] == "3"
    assert out[1].startswith("gdsio.0: IoType: READ ")
    assert " Threads: 1 DataSetSize: 1024/1024(KiB) " in out[2]


def test_json_is_well_formed_and_agrees_with_itself(gdsio):
    done = gdsio.run("-f", 'we"ird\\n', "-w", 2, "-s", "4M", "-i", "64K", "-I",
                     3, "-V", "--json")
    told = json.loads(done.stdout)
    assert [p["io_type"] for p in told["passes"]] == ["RANDWRITE", "RANDREAD"]
    write, read = told["passes"]
    assert write["written_bytes"] == read["read_bytes"] == 4 * MIB
    assert not write["verified"] and read["verified"]
    assert read["jobs"][0]["target"] == 'we"ird\\n'
    assert read["memory"] == ("device" if gdsio.fake else "host")
    latency = read["latency_us"]
    assert (latency["min"] <= latency["p50"] <= latency["p99"]
            <= latency["max"])


@pytest.mark.parametrize("name", [
    b"a b\n\"\\\x01\x7f", "\xe4\u20ac\ud7ff\ue000\U00010000\U0010ffff".encode(),
    b"\x80-\xbf-\xc1\x81-\xe0\x81\x81-\xf0\x81\x81\x81-\xf8\x88\x80\x80\x80",
    b"\xed\xa0\x80-\xed\xbf\xbf-\xf4\x90\x80\x80-\xff-\xe4\xe4\xb8\xad", b"\xe4\xb8", b"\xc3"])
def test_json_has_names_of_any_bytes(host, name):
    done = subprocess.run([GDSIO, "-f", name, "-s", "4K", "-I", "1", "--json"],
                          cwd=host.folder, check=True, capture_output=True,
                          env=environment(False))
    job, = json.loads(done.stdout)["passes"][0]["jobs"]
    # Python puts one in the place of several bytes
    assert re.sub("\ufffd+", "\ufffd", job["target"]) == \
        re.sub("\ufffd+", "\ufffd", name.decode(errors="replace"))


def test_a_plot_takes_the_place_of_an_older_one(host):
    (host.folder / "a.svg").write_text("older" * 9999)
    host.run("-f", "a", "-s", "1M", "-I", 1, "--plot", "a.svg")
    xml.dom.minidom.parse(str(host.folder / "a.svg"))


def test_the_plot_is_well_formed_and_stays_in_its_frame(gdsio):
    gdsio.run("-f", "a", "-w", 2, "-s", "8M", "-i", "4K", "-I", 1, "-V",
              "--plot", "a.svg")
    svg = xml.dom.minidom.parse(str(gdsio.folder / "a.svg")).documentElement
    lines = svg.getElementsByTagName("polyline")
    assert len(lines) == 4, "a line for each pass in each panel"
    for line in lines:
        points = line.getAttribute("points").split()
        assert points
        for point in points:
            x, y = map(float, point.split(","))
            assert 79 <= x <= 801 and 69 <= y <= 551, point


def converter(folder, body):
    """A folder for PATH with an rsvg-convert: "rsvg-convert -o FILE <SVG"."""
    (folder / "bin").mkdir()
    script = folder / "bin" / "rsvg-convert"
    script.write_text(f'#!/bin/sh\n[ "$1" = -o ] || exit 9\n{body}\n')
    script.chmod(0o755)
    return f"{folder / 'bin'}:{os.environ['PATH']}"


def test_a_plot_in_png_is_drawn_by_rsvg_convert(host, monkeypatch):
    monkeypatch.setenv("PATH", converter(host.folder, 'exec cat >"$2"'))
    host.run("-f", "a", "-s", "1M", "-I", 1, "--plot", "a.png")
    svg = xml.dom.minidom.parse(str(host.folder / "a.png")).documentElement
    assert svg.getElementsByTagName("polyline")


def test_a_converter_that_fails_is_an_error(host, monkeypatch):
    monkeypatch.setenv("PATH", converter(host.folder, "exit 3"))
    done = host.run("-f", "a", "-s", "1M", "-I", 1, "--plot", "a.png", status=1)
    assert "a.png: rsvg-convert has failed" in done.stderr


def test_without_a_converter_nothing_is_begun(host, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    done = host.run("-f", "a", "-s", "1M", "-I", 1, "--plot", "a.png", status=1)
    assert "librsvg2-bin" in done.stderr
    assert not (host.folder / "a").exists()


def test_progress_is_for_terminals_only(host):
    host.run("-f", "a", "-s", "8M", "-I", 1)
    done = host.run("-f", "a", "-T", 0.7)
    assert "\r" not in done.stderr and "[" not in done.stderr


MOVING = re.compile(rb"READ \[#+ *\] +\d+ %  (?!0\.00)\d+\.\d\d GiB/s")


def interrupted(gdsio, *args):
    """
    A run that would take half a minute, until its terminal tells that bytes
    are moved. -> (what its terminal saw, its result line taken apart)
    """
    master, terminal = os.openpty()
    seen = b""
    with subprocess.Popen([GDSIO, "-f", "a", "-T", "30", *args],
                          cwd=gdsio.folder, env=environment(gdsio.fake),
                          stdout=subprocess.PIPE, stderr=terminal,
                          text=True) as process:
        os.close(terminal)
        try:
            while not MOVING.search(seen):
                assert process.poll() is None, seen
                seen += os.read(master, 65536)
            process.send_signal(signal.SIGINT)
            # a terminal gives what it holds piece by piece, and EIO at the end
            with contextlib.suppress(OSError):
                while True:
                    seen += os.read(master, 65536)
            out, _ = process.communicate(timeout=100)
        finally:
            process.kill()
            os.close(master)
    assert process.returncode == 130
    line = LINE.match(out.rstrip("\n"))
    assert line, out
    return seen.decode(), line


def test_progress_is_one_line_that_is_cleared_at_the_end(host):
    host.run("-f", "a", "-s", "8M", "-I", 1)
    seen, _ = interrupted(host)
    _, _, progress = seen.partition("\n")  # the note that there is no GPU
    assert re.search(r"\r\x1b\[KREAD \[#+ *\] +\d+ %  \d+\.\d\d GiB/s  \d+ s",
                     progress), seen
    assert "\n" not in progress and progress.endswith("\r\x1b[K")


def test_help_and_version_succeed(host):
    for args in (["-h"], ["--help"], ["--version"]):
        assert host.run(*args).stdout.startswith("gdsio version :")


# --------------------------------------------------------- moving and checking

@pytest.mark.parametrize("xfer", range(8))
def test_every_transfer_type_writes_and_reads_what_it_says(gdsio, xfer):
    done = subprocess.run(
        [GDSIO, "-D", ".", "-x", str(xfer), "-w", "3", "-s", "1300000", "-i",
         "200K", "-I", "1", "-V"], cwd=gdsio.folder, check=False, text=True,
        capture_output=True, env=environment(gdsio.fake), timeout=300)
    if (done.returncode == 1 and NOT_BUILT.search(done.stderr)
            and may_be_refused(xfer, gdsio.fake)):
        assert not done.stdout and not list(gdsio.folder.iterdir())
        pytest.skip(done.stderr.splitlines()[-1])
    assert done.returncode == 0, done
    write, told, read = done.stdout.splitlines()
    assert told == "Verifying data"
    for line, op in ((write, "WRITE"), (read, "READ")):
        match = LINE.match(line)
        assert (match["op"], match["xfer"]) == (op, XFERS[xfer])
        assert match["ops"] == "21"
        assert (match["threads"], match["depth"]) == (
            ("1", "3") if xfer >= 6 else ("3", None))
    sizes = {path.stat().st_size for path in gdsio.folder.iterdir()}
    assert sizes == {1300000}


def test_types_move_the_same_bytes(gdsio):
    """What one way has written another way verifies, and through 0."""
    ways = (0, 1, 2, 3, 4)
    for writer in ways:
        gdsio.run("-f", "a", "-x", writer, "-s", "3M", "-i", "700K", "-I", 1,
                  "-V", "-k", writer)
        # a sanitizer starts slowly, and sees no more in the other pairs
        for reader in [ways[writer - 1]] if SANITIZED else ways:
            gdsio.run("-f", "a", "-x", reader, "-s", "3M", "-V", "-k", writer)


def test_calls_that_are_missing_are_named_with_their_code(gdsio):
    for xfer in CALLS:
        (gdsio.folder / "a").unlink(missing_ok=True)
        done = subprocess.run(
            [GDSIO, "-f", "a", "-x", str(xfer), "-s", "1M", "-I", "1"],
            cwd=gdsio.folder, check=False, text=True, capture_output=True,
            env=environment(gdsio.fake), timeout=300)
        if not may_be_refused(xfer, gdsio.fake):
            assert done.returncode == 0, done
        elif done.returncode:
            assert done.returncode == 1 and not done.stdout
            assert re.search(r"gdsio: cuFile\w+ .*: CU_FILE_\w+ \(5\d\d\d\), ",
                             done.stderr), done
            assert not (gdsio.folder / "a").exists()


@pytest.mark.parametrize("memory", range(6))
def test_every_kind_of_memory_carries_the_data(gdsio, memory):
    gdsio.run("-f", "a", "-m", memory, "-w", 2, "-s", "1M", "-i", "60000",
              "-I", 1, "-V")
    gdsio.run("-f", "a", "-x", 1, "-s", "1M", "-V")


@pytest.mark.parametrize("where", ["head", "tail", "middle"])
def test_a_flipped_byte_is_found_and_named(gdsio, where):
    gdsio.run("-f", "a", "-w", 3, "-s", "4M", "-i", "100K", "-I", 1, "-V")
    offset = {"head": 0, "tail": 4 * MIB - 1,
              "middle": random.randrange(1, 4 * MIB - 1)}[where]
    flip(gdsio.folder / "a", offset)
    # other sizes and threads than those that wrote
    why = gdsio.refuses("-f", "a", "-w", 2, "-s", "4M", "-i", "64K", "-V",
                        status=1)
    assert f"a: wrong data at offset {offset}: 0x" in why


def test_data_of_another_seed_is_wrong_data(gdsio):
    gdsio.run("-f", "a", "-s", "1M", "-I", 1, "-V", "-k", 5)
    gdsio.run("-f", "a", "-s", "1M", "-V", "-k", 5)
    assert "offset 0" in gdsio.refuses("-f", "a", "-s", "1M", "-V", "-k", 6,
                                       status=1)


def test_a_transfer_that_moves_nothing_is_noticed(host):
    """One request only: its buffer held the right bytes before the read."""
    done = host.run("-f", "a", "-s", "64K", "-i", "64K", "-I", 1, "-V",
                    status=1, OCF_PATH="null")
    assert "wrong data" in done.stderr or "incomplete" in done.stderr


def test_random_writes_are_verified_by_the_same_random_reads(gdsio):
    args = ["-f", "a", "-w", 3, "-s", "4M", "-i", "4K:40K:1000", "-U", "-k",
            77]
    gdsio.run(*args, "-I", 3, "-V")
    line, = gdsio.lines(*args, "-I", 2, "-V")
    assert line["op"] == "RANDREAD"
    assert (gdsio.folder / "a").stat().st_size == 4 * MIB
    # another seed goes elsewhere, where nothing was written, or other bytes
    gdsio.refuses(*args[:-1], 78, "-I", 2, "-V", status=1)


def test_random_offsets_keep_their_alignment(host):
    host.run("-f", "a", "-s", "1M", "-i", "512", "-I", 3, "-a", "8K", "-V",
             "-T", 0.2, "-O", 1, "-R")
    data = (host.folder / "a").read_bytes()
    for at in range(0, MIB, 8192):
        assert not any(data[at + 512:at + 8192]), at
    assert any(data)


def test_only_the_range_that_was_asked_for_is_touched(gdsio):
    before = os.urandom(3 * MIB + 77)
    (gdsio.folder / "a").write_bytes(before)
    gdsio.run("-f", "a", "-w", 2, "-o", "1M", "-s", "1000001", "-i", "9999",
              "-I", 1, "-V")
    after = (gdsio.folder / "a").read_bytes()
    assert len(after) == len(before)
    assert after[:MIB] == before[:MIB]
    assert after[MIB + 1000001:] == before[MIB + 1000001:]
    assert after[MIB:MIB + 1000001] != before[MIB:MIB + 1000001]
    gdsio.run("-f", "a", "-o", "1M", "-s", "1000001", "-V")


def test_mixed_runs_read_and_write_as_much_as_they_say(gdsio):
    gdsio.run("-f", "a", "-s", "4M", "-I", 1)
    told = json.loads(gdsio.run("-f", "a", "-s", "4M", "-i", "4K", "-M", 70,
                                "-I", 2, "-w", 2, "--json").stdout)
    result, = told["passes"]
    assert result["io_type"] == "RANDMIXED"
    assert result["read_bytes"] + result["written_bytes"] == 4 * MIB
    assert 0.6 < result["read_bytes"] / (4 * MIB) < 0.8


def test_a_timed_run_goes_round_and_ends_in_time(gdsio):
    gdsio.run("-f", "a", "-s", "1M", "-I", 1)
    for seconds in (1, 4, 16):  # it may stand still for one of them
        line, = gdsio.lines("-f", "a", "-w", 2, "-s", "1M", "-i", "64K", "-T",
                            seconds)
        assert 0.95 < float(line["seconds"]) < 60
        if int(line["done"]) > int(line["total"]):
            break
    assert int(line["done"]) > int(line["total"]) == 1024


def test_random_fill_and_refill_differ_from_zeros_and_from_each_other(gdsio):
    def blocks(*args):
        gdsio.run("-f", "a", "-s", "256K", "-i", "64K", "-I", 1, *args)
        data = (gdsio.folder / "a").read_bytes()
        return [data[at:at + 65536] for at in range(0, len(data), 65536)]

    assert not any(any(block) for block in blocks())
    filled = blocks("-R")
    assert any(filled[0]) and len(set(filled)) == 1
    assert len(set(blocks("-F"))) == 4


def test_threads_are_dealt_over_several_gpus(fake):
    told = json.loads(fake.run("-D", ".", "-d", "0,2", "-w", 4, "-s", "1M",
                               "-I", 1, "-V", "--json",
                               FAKECUDA_GPUS="3").stdout)
    assert told["passes"][1]["jobs"][0]["gpus"] == [0, 2]
    fake.refuses("-D", ".", "-d", "0,3", "-w", 4, "-s", "1M", status=1,
                 FAKECUDA_GPUS="3")


def test_buffers_need_not_be_registered(gdsio):
    gdsio.run("-f", "a", "-b", "-w", 2, "-s", "1M", "-i", "50000", "-I", 1,
              "-V")


def test_threads_run_on_the_node_they_are_told(host):
    if not pathlib.Path("/sys/devices/system/node/node0/cpulist").exists():
        pytest.skip("no NUMA nodes in sysfs")
    host.run("-f", "a", "-n", 0, "-w", 2, "-s", "1M", "-I", 1, "-V")


def test_without_a_gpu_host_memory_is_used_with_a_note(fake):
    done = fake.run("-f", "a", "-s", "1M", "-d", 0, "-I", 1, FAKECUDA_GPUS="0")
    assert done.stderr.startswith("gdsio: no GPU to be had, using host memory")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("xfer", [5, 7])
def test_streams_without_a_gpu_are_refused_in_words(fake, xfer):
    said = fake.refuses("-f", "a", "-s", "1M", "-x", xfer, "-I", 1, status=1,
                        FAKECUDA_GPUS="0")
    assert re.fullmatch(r"gdsio: cuFileWriteAsync a: CU_FILE_\w+ \(50\d\d\), "
                        r"streams \(-x 5 and 7\) want a GPU", said)


def test_host_memory_on_demand_needs_no_note(gdsio):
    done = gdsio.run("-f", "a", "-s", "1M", "--host", "-I", 1, "--json")
    assert not done.stderr
    assert json.loads(done.stdout)["passes"][0]["memory"] == "host"


# ----------------------------------------------------------------- job files

JOBS = """\
; two jobs
[global]
name=two
xfer_type=0
rw=write
bs=128K
size=1M
do_verify=1
random_seed=9

[job1]
# of a directory
numa_node=0
gpu_dev_id=0
num_threads=2
directory = .

[job2]
num_threads=1
filename=other
io_size=64K
start_offset=4K
"""


def test_a_job_file_is_run(gdsio):
    (gdsio.folder / "rw.gdsio").write_text(JOBS)
    told = json.loads(gdsio.run("rw.gdsio", "--json").stdout)
    assert told["name"] == "two" and told["seed"] == 9
    write, read = told["passes"]
    assert (write["threads"], write["total_bytes"]) == (3, 3 * MIB)
    assert read["verified"] and read["read_bytes"] == 3 * MIB
    first, second = write["jobs"]
    assert (first["name"], first["threads"]) == ("job1", 2)
    assert first["io_size"]["max"] == 128 << 10
    assert second["io_size"]["max"] == 64 << 10
    assert (gdsio.folder / "gdsio.1").stat().st_size == MIB
    assert (gdsio.folder / "other").stat().st_size == MIB + 4096


def test_a_key_that_is_not_known_is_named_and_left(host):
    (host.folder / "a.gdsio").write_text(JOBS + "speed=11\n")
    done = host.run("a.gdsio")
    assert "a.gdsio:23: speed is not known and left out" in done.stderr


@pytest.mark.parametrize("text,why", [
    ("[global]\nsize=0\n", "a.gdsio:2: size=0"),
    ("[global]\nsize\n", "a.gdsio:2: size: key=value"),
    ("size=1M\n", "a.gdsio:1: size=1M stands before"),
    ("[global\n", "a.gdsio:1: [global is no section"),
    ("[global]\nsize=1M\n[job1]\nnum_threads=1\n", "[job1] has neither"),
    ("[global]\nfilename=a\n", "belong to a job"),
    ("[job1]\nfilename=a\nrw=write\n", "a.gdsio:3: rw belongs in [global]"),
    ("[global]\n", "nothing to do"),
    ("", "nothing to do"),
])
def test_a_wrong_job_file_is_refused_with_its_line(host, text, why):
    (host.folder / "a.gdsio").write_text(text)
    assert why in host.refuses("a.gdsio")
    assert [path.name for path in host.folder.iterdir()] == ["a.gdsio"]


# ------------------------------------------------------------------- mistakes

@pytest.mark.parametrize("args,why", [
    ([], "nothing to do"),
    (["-f", "a", "-s", "0"], "-s 0"),
    (["-f", "a", "-s", "-1"], "-s -1"),
    (["-f", "a", "-s", "9999999T"], "-s 9999999T"),
    (["-f", "a", "-s", "1X"], "-s 1X"),
    (["-f", "a", "-i", "0"], "-i 0"),
    (["-f", "a", "-i", "8K:4K:1K"], "-i 8K:4K:1K"),
    (["-f", "a", "-i", "4K:8K"], "-i 4K:8K"),
    (["-f", "a", "-w", "0"], "-w 0"),
    (["-f", "a", "-x", "8"], "-x 8"),
    (["-f", "a", "-I", "4"], "-I 4"),
    (["-f", "a", "-m", "6"], "-m 6"),
    (["-f", "a", "-m", "3", "-x", "1"], "-m 3 is for -x 0"),
    (["-f", "a", "-M", "101"], "-M 101"),
    (["-f", "a", "-T", "nan"], "-T nan"),
    (["-f", "a", "-d", "0,"], "-d 0,"),
    (["-f", "a", "-B", "4"], "-B is for -x 6 and 7"),
    (["-f", "a", "-P", "rdma://x"], "RDMA"),
    (["-f", "a", "-I", "1"], "how much to write"),
    (["-f", "a", "-s", "1M", "-i", "2M", "-I", "1"], "larger than the size"),
    (["-f", "a", "-U", "-a", "4K", "-s", "1M"], "-U and -a"),
    (["-f", "a", "-M", "5", "-V", "-s", "1M"], "-M and -V"),
    (["-f", "a", "--plot", "a.gif"], "--plot a.gif"),
    (["-f", "a", "--frob"], "--frob"),
    (["no.gdsio"], "no.gdsio: No such file"),
    (["x.gdsio", "-f", "a"], "the job file says that"),
])
def test_wrong_options_are_one_line_and_status_2(host, args, why):
    assert why in host.refuses(*args)
    assert not list(host.folder.iterdir())


@pytest.mark.parametrize("args,why", [
    (["-f", "none"], "open none: No such file"),
    (["-D", ".", "-w", "2", "-s", "1K"], "gdsio.0: No such file"),
    (["-f", "."], ". is neither a regular file nor a block device"),
    (["-f", "/dev/null"], "/dev/null is neither"),
    (["-f", "small", "-s", "1M"],
     "small has 1000 bytes, and 1048576 from offset 0 are asked for"),
    (["-f", "small", "-o", "1000"], "nothing from offset 1000"),
    (["-f", "empty"], "empty has no size"),
    (["-f", "small", "-s", "4K", "-M", "50"], "small has 1000 bytes"),
    (["-f", "small", "-n", "4000"], "no such NUMA node"),
    (["-f", "new", "-s", "4K", "-I", "1", "--plot", "no/a.svg"],
     "open no/a.svg: No such file"),
    (["-f", "new", "-f", "/dev/null", "-s", "4K", "-I", "1"], "/dev/null is"),
    (["-f", "new", "-s", "1M", "-n", "4000", "-I", "1"], "no such NUMA node"),
])
def test_wrong_files_are_one_line_status_1_and_nothing_done(host, args, why):
    (host.folder / "small").write_bytes(b"x" * 1000)
    (host.folder / "empty").touch()
    assert why in host.refuses(*args, status=1)
    assert sorted(path.name for path in host.folder.iterdir()) == ["empty",
                                                                  "small"]
    assert (host.folder / "small").read_bytes() == b"x" * 1000


def test_a_result_that_cannot_be_written_is_an_error(host):
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run(
            [GDSIO, "-f", "a", "-s", "1M", "-I", "1"], cwd=host.folder,
            check=False, text=True, stdout=full, stderr=subprocess.PIPE,
            env=environment(False), timeout=300)
    assert done.returncode == 1 and "write the result: " in done.stderr


def test_a_read_only_file_is_not_written(host):
    (host.folder / "a").write_bytes(b"x" * 8192)
    (host.folder / "a").chmod(0o444)
    if os.geteuid() == 0:
        pytest.skip("root may write anything")
    assert "open a: Permission denied" in host.refuses(
        "-f", "a", "-s", "4K", "-I", 1, status=1)


def test_what_the_driver_refuses_is_told_with_call_and_code(fake):
    why = fake.refuses("-f", "a", "-s", "1M", "-I", 1, status=1,
                       FAKECUDA_PLAN="cuMemAlloc_v2:1=2")
    assert "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (2)" in why
    assert not (fake.folder / "a").exists()


def test_a_link_to_no_file_is_kept_and_the_file_it_got_is_not(fake):
    link = fake.folder / "a"
    link.symlink_to("behind")
    fake.refuses("-f", "a", "-s", "1M", "-I", 1, status=1,
                 FAKECUDA_PLAN="cuMemAlloc_v2:1=2")
    assert link.is_symlink() and not (fake.folder / "behind").exists()


@pytest.mark.parametrize("call,args", [
    ("cuDeviceGet", []), ("cuDevicePrimaryCtxRetain", []),
    ("cuCtxSetCurrent", []), ("cuMemAlloc_v2", []),
    ("cuMemcpyHtoD_v2", []), ("cuMemcpyDtoH_v2", []),
    ("cuMemAllocManaged", ["-m", 5]), ("cuMemHostAlloc", ["-m", 2]),
    ("cuMemGetAllocationGranularity", ["-m", 1]),
    ("cuMemCreate", ["-m", 1]), ("cuMemAddressReserve", ["-m", 1]),
    ("cuMemMap", ["-m", 1]), ("cuMemSetAccess", ["-m", 1]),
    ("cuMemHostAlloc", ["-x", 2]), ("cuStreamCreate", ["-x", 3]),
    ("cuMemcpyHtoDAsync_v2", ["-x", 3]), ("cuMemcpyDtoHAsync_v2", ["-x", 3]),
    ("cuStreamSynchronize", ["-x", 3]),
])
def test_each_driver_call_may_fail_and_nothing_is_lost(fake, call, args):
    """At its first, second, ... use, until the run gets by without."""
    # 1, 2, 4, ... under a sanitizer, which starts slowly
    for nr in [1 << n for n in range(6)] if SANITIZED else range(1, 60):
        done = subprocess.run(
            [GDSIO, "-f", "a", "-w", "2", "-s", "300K", "-i", "100K", "-I",
             "1", "-V", *map(str, args)], cwd=fake.folder, check=False,
            text=True, capture_output=True, timeout=300,
            env=environment(True, FAKECUDA_PLAN=f"{call}:{nr}=999"))
        if done.returncode == 0:
            break
        assert done.returncode == 1, done
        lines = done.stderr.splitlines()
        assert len(lines) == 1 and lines[0].startswith("gdsio: "), done
    assert nr > 1 and done.returncode == 0, "never made, or never got through"


def test_a_request_that_fails_ends_the_run_with_one_line(fake):
    fake.run("-f", "a", "-s", "4M", "-I", 1)
    why = fake.refuses("-f", "a", "-w", 4, "-s", "4M", "-i", "64K", status=1,
                       FAKECUDA_PLAN="cuMemcpyHtoDAsync_v2:9+=700")
    assert "cuFileRead a at offset " in why


def test_v_with_t_is_left_out_with_a_note(host):
    done = host.run("-f", "a", "-s", "1M", "-I", 1, "-V", "-T", 0.1)
    assert "-V is ignored with -T" in done.stderr
    assert len(done.stdout.splitlines()) == 1


def test_an_interrupt_ends_with_the_result_so_far(gdsio):
    gdsio.run("-f", "a", "-s", "1M", "-I", 1)
    _, line = interrupted(gdsio, "-w", "2")
    assert 0 < float(line["seconds"]) < 30 and int(line["ops"]) > 0


def test_signals_that_are_ignored_at_the_start_stay_so(host):
    words = f'trap "" INT TERM; exec {QUOTED} -f new -s 64M -I 1 -T 30'
    with subprocess.Popen(["sh", "-c", words], cwd=host.folder, env=environment(False),
                          stderr=subprocess.DEVNULL) as process:
        new = host.folder / "new"
        while not new.exists() or not new.stat().st_size:
            assert process.poll() is None
        status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
        process.kill()
    ignored = int(re.search(r"SigIgn:\s*(\w+)", status)[1], 16)
    for number in (signal.SIGINT, signal.SIGTERM):
        assert ignored >> number - 1 & 1


def test_nothing_is_printed_into_the_file(host):
    done = subprocess.run(["sh", "-c", f"exec {QUOTED} -f new -s 1M -I 1 -x 1 -R <&- >&-"],
                          cwd=host.folder, check=False, text=True, stderr=subprocess.PIPE,
                          env=environment(False))
    assert b"IoType" not in (host.folder / "new").read_bytes()
    assert (done.returncode, done.stderr) == (
        1, "gdsio: write the result: a part is lost\n")

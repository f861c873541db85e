# SPDX-License-Identifier: Apache-2.0
"""ocf-bench itself, on the fake driver and on host memory: that it checks the
bytes, and lives through libraries that lie, hang and die. No timing is looked
at."""
import json
import os
import pathlib
import signal
import subprocess
import time

import pytest

BENCH = os.environ["OCF_BENCH"]
LIB = os.environ["OCF_LIB"]
BAD = os.environ["OCF_BAD"]
FAKE_DIR = str(pathlib.Path(os.environ["OCF_FAKECUDA"]).parent)
OURS = f"ours={LIB}"


def environment(gpu):
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("CUFILE_", "FAKECUDA_", "LD_LIBRARY"))}
    env["FAKECUDA_GPUS"] = "4"
    env["ASAN_OPTIONS"] = env.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
    if gpu:
        env["LD_LIBRARY_PATH"] = FAKE_DIR
    return env


@pytest.fixture
def bench(tmp_path):
    """Runs ocf-bench with small files and short times; -> (rows, stdout)."""
    def run(*arguments, libraries=(OURS,), gpu=True, file_size="4M", status=0):
        out = tmp_path / "out.json"
        command = [BENCH, "--file", str(tmp_path / "data"), "--file-size", file_size,
                   "--tmpfs", str(tmp_path), "--rounds", "2", "--seconds", "0.01",
                   "--patience", "60", "--json", str(out), *arguments]
        for library in libraries:
            command += ["--lib", library]
        done = subprocess.run(command, env=environment(gpu), capture_output=True,
                              text=True, timeout=300, check=False)
        assert done.returncode == status, done.stdout + done.stderr
        text = out.read_text() if out.exists() else ""
        return [json.loads(line) for line in text.splitlines()], done.stdout
    return run


def cells(rows):
    return [row for row in rows if row["kind"] == "cell"]


def assert_measured(rows):
    assert rows
    for row in rows:
        assert row["error"] == "", row
        assert not row["stale"], row
        assert row["gb_per_s"] > 0 and row["p99_us"] >= row["p50_us"] > 0, row
        assert row["steal_s"] >= 0, row


def test_help_is_no_error(bench):
    _, out = bench("--help")
    assert out.startswith("usage: ocf-bench --lib NAME=PATH")
    _, out = bench("--helm", status=2)
    assert out == ""


@pytest.mark.parametrize("content", [b"mine", bytes(4096), os.urandom(100_000)],
                         ids=["short", "zeros", "long"])
@pytest.mark.parametrize("name", ["data", "data.out"])
@pytest.mark.parametrize("more", [(), ("--keep",)])
def test_a_file_of_others_is_left_alone(bench, tmp_path, name, content, more):
    (tmp_path / name).write_bytes(content)
    bench("--media", "cached", "--sizes", "4K", *more, status=1)
    assert (tmp_path / name).read_bytes() == content


def test_a_file_that_was_kept_is_made_anew_in_another_size(bench, tmp_path):
    for size in ("1M", "2M", "1M"):
        rows, _ = bench("--media", "cached", "--sizes", "4K", "--keep", file_size=size)
        assert_measured(cells(rows))
        assert (tmp_path / "data").stat().st_size == (int(size[0]) + 1) << 20
    bench("--media", "cached", "--sizes", "4K")
    assert not (tmp_path / "data").exists()


def test_results_that_cannot_be_written_are_an_error(bench, tmp_path):
    bench("--media", "cached", "--sizes", "4K", "--json", "/dev/full", status=1)
    with open("/dev/full", "w") as full:
        done = subprocess.run([BENCH, "--file", str(tmp_path / "data"), "--file-size", "1M",
                               "--seconds", "0.01", "--sizes", "4K", "--lib", "byhand"],
                              env=environment(False), stdout=full, stderr=subprocess.PIPE,
                              text=True, check=False)
    assert (done.returncode, done.stderr) == (
        1, "ocf-bench: not all results were written\n")
    assert not (tmp_path / "data").exists()


def test_cells_that_want_too_much_memory_are_named(tmp_path):
    done = subprocess.run([BENCH, "--file", str(tmp_path / "data"), "--sizes", "4M",
                           "--batch", "8192", "--ops", "read", "--media", "cached",
                           "--file-size", "4M", "--lib", "byhand"],
                          env=environment(False), capture_output=True, text=True, check=True)
    assert done.stderr == ("ocf-bench: 4M x1 is left out: 32768 MiB of buffers, "
                           "at most 16384\n")


def test_a_name_that_is_too_long_is_refused(bench, tmp_path):
    folder = tmp_path / ("d" * 200)
    folder.mkdir()
    longest = "e" * (279 - len(str(folder)) - 1)
    (folder / longest).write_text("another's")
    bench("--file", str(folder / longest) + "x", "--media", "cached", status=2)
    assert os.listdir(folder) == [longest]


def test_every_kind_of_memory_and_alignment_moves_the_right_bytes(bench):
    rows, _ = bench("--sizes", "4K,64K", "--media", "cached,uncached,scan,tmpfs",
                    "--memory", "device,host,managed,pinned", "--register", "yes,no",
                    "--align", "aligned,offset,size,buffer", "--rounds", "1",
                    libraries=(OURS, "byhand"))
    assert_measured(cells(rows))
    # uncached and scan are for reads: six of the eight pairs of operation and medium
    assert len(cells(rows)) == 6 * 4 * 2 * 4 * 2 * 2


def test_threads_share_a_file_and_move_the_right_bytes(bench):
    rows, _ = bench("--sizes", "4K,1M", "--threads", "1,8", libraries=(OURS, "byhand"))
    assert_measured(cells(rows))
    assert len(cells(rows)) == 2 * 2 * 2 * 2 * 2


def test_threads_take_gpus_in_turn(bench):
    rows, out = bench("--sizes", "64K", "--threads", "3", "--gpus", "1,4", "--batch", "8",
                      "--ops", "read", "--media", "cached", libraries=(OURS, "byhand"))
    assert_measured(cells(rows))
    assert [row["gpus"] for row in cells(rows)] == [1, 1, 4, 4]
    assert out.count("on 4 GPUs") == 2
    rows, _ = bench("--sizes", "64K", "--gpus", "99", "--threads", "99", "--ops", "read",
                    "--media", "cached", libraries=(OURS,))
    assert [row["error"] for row in cells(rows)] == ["there are not so many GPUs"]


def test_large_requests_by_hand_go_in_parts(bench):
    rows, _ = bench("--sizes", "40M", "--media", "cached", libraries=("byhand", "limit"))
    assert_measured(cells(rows))
    rows, _ = bench("--sizes", "20M", "--media", "cached", "--batch", "2", "--stream", "2",
                    libraries=("byhand",))
    assert_measured(cells(rows))


@pytest.mark.parametrize("way", [("--batch", "1,8,128"), ("--stream", "1,8", "--streams", "1,3")])
def test_batches_and_streams_are_right_or_not_available(bench, way):
    rows, _ = bench("--sizes", "4K,64K", *way, libraries=(OURS, "byhand"))
    assert_measured([row for row in cells(rows) if row["library"] == "byhand"])
    ours = [row for row in cells(rows) if row["library"] == "ours"]
    there = [row for row in ours if not row["error"].startswith("not available (50")]
    if there:
        assert_measured(there)
    assert len(ours) == len(cells(rows)) / 2


def test_batches_in_host_memory_need_no_gpu(bench):
    rows, _ = bench("--sizes", "4K", "--batch", "8", gpu=False, libraries=("byhand", "limit"))
    assert_measured(cells(rows))
    assert {row["memory"] for row in cells(rows)} == {"host"}


def test_the_limit_has_a_number_for_every_plain_cell(bench):
    rows, _ = bench("--sizes", "4K,4M", "--media", "cached,direct", "--threads", "1,3",
                    libraries=("limit",))
    assert_measured(cells(rows))


def test_a_library_that_hangs_is_killed_and_measured_again(bench):
    for patience in ("5", "50"):  # what stands still so long does not hang
        begin = time.monotonic()
        rows, _ = bench("--sizes", "8K,4K", "--ops", "read", "--media", "cached", "--host",
                        "--patience", patience, libraries=("byhand", f"bad={BAD}"))
        errors = [(row["library"], row["error"]) for row in cells(rows)]
        if errors.count(("bad", "hung")) == 1 and ("byhand", "hung") not in errors:
            break
    assert errors == [("byhand", ""), ("bad", "hung"), ("byhand", ""), ("bad", "")]
    assert time.monotonic() - begin < 200


def test_a_batch_that_never_ends_is_hung(bench):
    rows, _ = bench("--sizes", "4K", "--batch", "8", "--ops", "read", "--media", "cached",
                    "--host", "--patience", "5", libraries=(f"bad={BAD}",))
    assert [row["error"] for row in cells(rows)] == ["hung"]


def test_a_batch_that_is_refused_names_the_code(bench):
    rows, _ = bench("--sizes", "4K", "--batch", "9", "--ops", "read", "--media", "cached",
                    "--host", libraries=(f"bad={BAD}",))
    assert [row["error"] for row in cells(rows)] == ["batch set up: 5022"]


def test_a_library_without_streams_is_not_available(bench):
    rows, _ = bench("--sizes", "4K", "--stream", "8", "--ops", "read", "--media", "cached",
                    libraries=(f"bad={BAD}",))
    assert [row["error"] for row in cells(rows)] == ["not available (5007)"]


@pytest.mark.parametrize("size, error", [
    ("12K", "its process died (signal 6)"), ("16K", "read: wrong data"),
    ("20K", f"read: {20 * 1024 - 1}"), ("24K", "read: wrong data")])
def test_a_library_that_goes_wrong_has_no_number(bench, size, error):
    rows, out = bench("--sizes", f"{size},4K", "--ops", "read", "--media", "cached", "--host",
                      libraries=(f"bad={BAD}",))
    assert [row["error"] for row in cells(rows)] == [error, ""]
    assert error in out


def test_threads_that_wait_for_each_other_are_no_faster_than_one(bench):
    rows, _ = bench("--sizes", "28K", "--threads", "1,64", "--ops", "read", "--media", "cached",
                    "--host", libraries=(f"bad={BAD}",))
    for row in cells(rows):
        assert row["error"] == "" and 0 < row["gb_per_s"] <= 28 * 1024 / 1e-3 * 1e-9, row


def test_a_size_of_which_nothing_would_be_left_is_refused(bench):
    for size in ("8", "13"):
        bench("--sizes", f"4K,{size}", "--align", "size", status=2)
    rows, _ = bench("--sizes", "14", "--align", "size", "--ops", "read", "--media", "cached")
    assert_measured(cells(rows))


def test_a_write_of_wrong_bytes_is_noticed(bench):
    rows, _ = bench("--sizes", "16K,4K", "--ops", "write", "--media", "cached", "--host",
                    libraries=(f"bad={BAD}",))
    assert [row["error"] for row in cells(rows)] == ["write: wrong data", ""]


def test_the_first_read_of_a_process_is_told_in_steps(bench):
    rows, _ = bench("--fresh", "--sizes", "16K,64K", libraries=(OURS, "byhand", "limit"))
    fresh = [row for row in rows if row["kind"] == "fresh"]
    assert [(row["library"], row["size"]) for row in fresh] == [
        ("ours", 16384), ("byhand", 16384), ("ours", 65536), ("byhand", 65536)]
    for row in fresh:
        steps = [row[name] for name in ("load_ms", "open_ms", "handle_ms", "buffer_ms",
                                        "read_ms")]
        assert row["error"] == "" and row["total_ms"] == pytest.approx(sum(steps), abs=0.01)


def test_a_first_read_of_wrong_bytes_has_no_number(bench):
    rows, _ = bench("--fresh", "--host", "--sizes", "16K,12K", libraries=(f"bad={BAD}",))
    assert [row["error"] for row in rows if row["kind"] == "fresh"] == [
        "read: wrong data", "its process died (signal 6)"]


def test_a_process_at_rest_is_looked_at_in_four_stages(bench):
    rows, _ = bench("--rest", file_size="32M", libraries=(OURS,))
    rest, = [row for row in rows if row["kind"] == "rest"]
    assert rest["error"] == ""
    for stage in ("base", "opened", "load", "after"):
        assert rest[stage]["rss_mb"] > 0 and rest[stage]["threads"] >= 1
    assert rest["load"]["threads"] > rest["base"]["threads"]


def test_statistics_are_measured_where_they_count(bench):
    rows, _ = bench("--statistics", "--sizes", "4K", "--threads", "1,3", "--rounds", "1",
                    libraries=(OURS, "byhand"))
    rows = [row for row in rows if row["kind"] == "statistics"]
    assert [(row["library"], row["threads"], row["error"]) for row in rows] == [
        (library, threads, error) for threads in (1, 3) for library, error in (
            ("ours", ""), ("byhand", "it has no statistics"))]
    for row in rows[::2]:
        assert row["level"] == 3 and row["on_ops_per_s"] > 0
        want = 100 * (row["on_cpu_ns"] / row["off_cpu_ns"] - 1)
        assert row["cost_percent"] == pytest.approx(want, abs=0.2)


def test_statistics_that_count_nothing_have_no_cost(bench):
    rows, _ = bench("--statistics", "--host", "--sizes", "4K", "--rounds", "1",
                    libraries=(f"bad={BAD}",))
    assert rows[-1]["error"] == "requests were not counted"


def test_without_a_gpu_host_memory_is_measured(bench):
    rows, out = bench("--sizes", "4K", "--media", "cached", gpu=False)
    if "host memory, because" not in out:
        pytest.skip("this machine has a GPU")
    assert_measured(cells(rows))
    assert {row["memory"] for row in cells(rows)} == {"host"}


def test_files_are_removed_unless_kept(bench, tmp_path):
    bench("--sizes", "4K", "--host")
    assert not list(tmp_path.glob("data*"))
    bench("--sizes", "4K", "--host", "--keep")
    assert [path.name for path in tmp_path.glob("data*")] == ["data"]


def test_a_kept_file_is_used_again_only_if_it_is_right(bench, tmp_path):
    arguments = ("--sizes", "4K", "--ops", "read", "--media", "cached", "--host", "--keep")
    bench(*arguments)
    data = tmp_path / "data"
    whole, before = data.read_bytes(), data.stat().st_mtime_ns
    bench(*arguments)
    assert data.stat().st_mtime_ns == before
    data.write_bytes(whole[:1000001] + bytes([whole[1000001] ^ 1]) + whole[1000002:])
    rows, _ = bench(*arguments)
    assert_measured(cells(rows))
    assert data.read_bytes() == whole


def test_a_signal_takes_the_files_away(tmp_path):
    command = [BENCH, "--file", str(tmp_path / "data"), "--file-size", "4M", "--host",
               "--seconds", "30", "--patience", "60", "--lib", "byhand"]
    with subprocess.Popen(command, env=environment(False), stdout=subprocess.PIPE) as process:
        assert process.stdout.readline()
        assert list(tmp_path.glob("data*"))
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 128 + signal.SIGTERM
    assert not list(tmp_path.glob("data*"))


@pytest.mark.parametrize("arguments", [
    ("--sizes", "4Q"), ("--sizes", "0"), ("--sizes", "-4"), ("--sizes", ""),
    ("--media", "paper"), ("--rounds", "0"), ("--seconds", "x"), ("--what",), ("more",)])
def test_arguments_that_mean_nothing_are_refused(bench, arguments):
    bench(*arguments, status=2)


def test_a_missing_library_is_told_in_its_rows(bench):
    rows, _ = bench("--sizes", "4K", "--ops", "read", "--media", "cached", "--host",
                    libraries=("none=/nowhere/libcufile.so", "byhand"))
    assert ["/nowhere" in row["error"] for row in cells(rows)] == [True, False]

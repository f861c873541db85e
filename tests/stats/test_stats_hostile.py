# SPDX-License-Identifier: Apache-2.0
"""gds_stats beside processes that lie: what they show as their statistics is no
such file, is damaged, or would keep a reader busy for ever."""
import contextlib
import fcntl
import os
import pathlib
import random
import struct
import subprocess
import sys

import pytest

from conftest import run

LINK = "/memfd:opencufile-stats"
HEAD = struct.Struct("<QIIIIIIII")  # the fields before level
ROW = struct.Struct("<40sIIII")
MAGIC, PAGE = 0x3173746174736663, 4096
FORMATS = ([], ["-l", 3], ["--json"], ["--openmetrics"])

# Shows what it is given as its statistics, under the maps of a libcufile.
LIAR = """
import fcntl, mmap, os, signal, sys
kind, library, seals = sys.argv[1], sys.argv[2], int(sys.argv[3])
kept = mmap.mmap(os.open(library, os.O_RDWR), 4096, prot=mmap.PROT_READ)
if kind == "memory":
    fd = os.memfd_create("opencufile-stats", os.MFD_ALLOW_SEALING)
elif kind == "file":
    fd = os.open("%s", os.O_RDWR | os.O_CREAT | os.O_EXCL)
    os.unlink("%s")
else:
    os.mkfifo("%s")
    fd = os.open("%s", os.O_RDONLY | os.O_NONBLOCK)
    os.unlink("%s")
while kind != "pipe" and (data := sys.stdin.buffer.read(1 << 20)):
    os.write(fd, data)
if kind == "memory":
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
print("ready", flush=True)
sys.stdout.close()
signal.pause()
""" % (LINK, LINK, LINK, LINK, LINK)

SEALED = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="as root alone")


def statistics(rows=((b"read.ok", 0, 1, 0),), shard_size=64, nr_shards=2,
               version=1, magic=MAGIC, nr_rows=None):
    """A file with these rows: name, place, count, stride."""
    table = b"".join(ROW.pack(*row, 0) for row in rows)
    shards_at = PAGE + (len(table) + 63) // 64 * 64
    size = shards_at + shard_size * nr_shards
    head = HEAD.pack(magic, version, size, PAGE, ROW.size,
                     len(rows) if nr_rows is None else nr_rows, shards_at,
                     shard_size, nr_shards) + struct.pack("<QQQQ", 3, 1, 0, 0)
    return (head.ljust(PAGE, b"\1") + table).ljust(shards_at, b"\0") + bytes(
        shard_size * nr_shards)


@contextlib.contextmanager
def liar(folder, data=b"", kind="memory", seals=SEALED):
    library = pathlib.Path(folder) / "libcufile.so.0"
    library.write_bytes(bytes(4096))
    with subprocess.Popen([sys.executable, "-c", LIAR, kind, library, str(seals)],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            process.stdin.write(data)
            process.stdin.close()
            assert process.stdout.readline() == b"ready\n"
            yield process.pid
        finally:
            process.kill()


def test_a_file_as_described_is_read(tmp_path):
    with liar(tmp_path, statistics()) as pid:
        status, out, err = run("-p", pid, "--json")
        assert (status, err) == (0, "")
        assert '"read.ok":0' in out
        assert f"{pid}     3" in run("--list")[1]


WRONG = {
    "no number": (statistics(magic=7), "is no statistics file"),
    "another version": (statistics(version=2), "of version 2, this tool reads"),
    "too many rows": (statistics(nr_rows=4097), "4097 rows"),
    "rows beyond the end": (statistics(nr_rows=99), "99 rows of 56 bytes at 4096"),
    "shards beyond the end": (statistics()[:-8], "2 shards of 64 bytes"),
    "a value beyond its shard": (statistics([(b"a", 64, 1, 0)]), "row 0 of its"),
    "the last one beyond it": (statistics([(b"a", 0, 9, 8)]), "row 0 of its"),
    "a value at an odd place": (statistics([(b"a", 4, 1, 0)]), "row 0 of its"),
    "no value": (statistics([(b"a", 0, 0, 0)]), "row 0 of its"),
    "a name without an end": (statistics([(b"a" * 40, 0, 1, 0)]), "row 0 of its"),
    "more values than fit": (statistics([(b"a", 0, 8, 8), (b"b", 0, 1, 0)]),
                             "row 1 of its"),
    "a head alone": (statistics()[:100], "is not ready"),
    "nothing": (b"", "is not ready"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_damaged_is_told_with_its_process(what, tmp_path):
    data, words = WRONG[what]
    with liar(tmp_path, data) as pid:
        status, out, err = run("-p", pid, "--json")
    assert (status, out) == (1, "")
    assert f"process {pid}: " in err and words in err, err


def test_a_file_that_would_be_added_up_for_ever_is_refused(tmp_path):
    rows = [(b"row %d" % i, 0, 4096, 0) for i in range(4096)]
    data = statistics(rows, shard_size=8, nr_shards=65536)
    with liar(tmp_path, data) as pid:
        assert run("-p", pid)[0] == 1  # run waits a minute, this took hours
        assert str(pid) in run("--list")[1]


def test_a_file_that_may_shrink_is_refused(tmp_path):
    with liar(tmp_path, statistics(), seals=fcntl.F_SEAL_GROW) as pid:
        status, out, err = run("-p", pid)
    assert (status, out) == (1, "")
    assert "is not ready" in err


@as_root
def test_a_file_on_a_disk_is_refused_whatever_it_is_called(tmp_path):
    with liar(tmp_path, statistics(), "file") as pid:
        assert LINK + " (deleted)" in [
            os.readlink(link) for link in pathlib.Path(f"/proc/{pid}/fd").iterdir()]
        status, out, err = run("-p", pid)
    assert (status, out) == (1, "")
    assert "is not ready" in err


@as_root
def test_a_pipe_of_that_name_holds_up_nobody(tmp_path):
    with liar(tmp_path, kind="pipe") as pid:
        assert run("-p", pid)[:2] == (1, "")
        assert str(pid) in run("--list")[1]


def mutated(data, rng):
    """The file with a few words of its head and rows changed."""
    data = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(0, 96, 4) if rng.random() < 0.5 else rng.randrange(
            PAGE, PAGE + 4 * ROW.size, 4)
        value = rng.choice((0, 1, 7, 8, 16, 4096, 65535, 1 << 31, 0xffffffff,
                            rng.getrandbits(32)))
        if at >= 8:  # not the number that tells what it is
            data[at:at + 4] = struct.pack("<I", value)
    return bytes(data)


def test_no_numbers_in_it_end_or_hold_up_the_reader(tmp_path):
    rng = random.Random(20261127)
    rows = [(b"read.ok", 0, 1, 0), (b"read.ns", 8, 1, 0),
            (b"read.sizes", 16, 32, 8), (b"gpu.read.ok", 272, 16, 8)]
    data = statistics(rows, shard_size=512, nr_shards=4)
    for _ in range(40):
        with liar(tmp_path, mutated(data, rng)) as pid:
            for how in FORMATS:
                status, out, err = run("-p", pid, *how)
                assert status in (0, 1), (status, err)
                assert (status == 0) == bool(out), (status, out, err)

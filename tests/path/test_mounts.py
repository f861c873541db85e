# SPDX-License-Identifier: Apache-2.0
"""What explain says is what happens, on file systems made for the test.

Each is mounted in a mount namespace of its own, where that is allowed, and
the whole of test_explain.c (memories, ways to open, sizes, alignments, against
statistics and system calls) runs there.
"""
import os
import pathlib
import re
import subprocess

import pytest

pytestmark = pytest.mark.skipif(
    "OCF_EMULATED" in os.environ, reason="the program is for another processor")

EXPLAIN = os.environ["OCF_PATH_EXPLAIN"]

MOUNTS = {
    "ext4 on a loop device":
        "truncate -s 256M {dir}/img && mkfs.ext4 -q {dir}/img && "
        "mount -o loop {dir}/img {at}",
    "ext4 with blocks of 1 KiB":
        "truncate -s 256M {dir}/img && mkfs.ext4 -q -b 1024 {dir}/img && "
        "mount -o loop {dir}/img {at}",
    "xfs on a loop device":
        "truncate -s 400M {dir}/img && mkfs.xfs -q {dir}/img && "
        "mount -o loop {dir}/img {at}",
    "xfs on a disk of 4 KiB sectors":
        "truncate -s 400M {dir}/img && "
        "mkfs.xfs -q -s size=4096 {dir}/img && mount -o loop {dir}/img {at}",
    "tmpfs":
        "mount -t tmpfs -o size=256M none {at}",
    "overlay":
        "mkdir {dir}/lower {dir}/upper {dir}/work && mount -t overlay none "
        "-o lowerdir={dir}/lower,upperdir={dir}/upper,workdir={dir}/work {at}",
}


def in_namespace(script, **more):
    return subprocess.run(["unshare", "-m", "sh", "-ec", script],
                          env=dict(os.environ, **more), check=False,
                          capture_output=True, text=True, timeout=250)


@pytest.mark.parametrize("kind", MOUNTS)
def test_what_is_said_is_what_happens_on(kind, tmp_path):
    at = tmp_path / "at"
    at.mkdir()
    mount = MOUNTS[kind].format(dir=tmp_path, at=at)
    can = in_namespace(mount)
    if can.returncode:
        pytest.skip(f"cannot mount it here: {can.stderr.strip()[:80]}")
    for left in ("img", "lower", "upper", "work"):
        subprocess.run(["rm", "-rf", str(tmp_path / left)], check=True)
    done = in_namespace(f"{mount}; df --output=fstype '{at}' | tail -n 1; "
                        f"exec '{EXPLAIN}'", TMPDIR=str(at))
    assert done.stdout.split()[0] == re.match(r"\w+", kind)[0]
    assert done.returncode in (0, 77), done.stdout[-2000:] + done.stderr[-2000:]
    passed = re.findall(r"^\[       OK \] (.* what happens)$", done.stdout
                        + done.stderr, re.M)
    # at the least pageable memory, by three kinds of files
    assert len(passed) >= 3, done.stdout[-2000:]
    assert not list(pathlib.Path(at).iterdir())

# SPDX-License-Identifier: Apache-2.0
"""Where ./dev takes a package from that the machine's release does not have."""
import subprocess

import pytest

from conftest import ROOT

DEBIAN = "http://mirror.example/debian"
UBUNTU = "http://archive.ubuntu.example/ubuntu/"
PORTS = "http://ports.ubuntu.example/ubuntu-ports"


def ask(etc, command):
    """What a command that has scripts/apt.sh says, and whether it succeeds."""
    done = subprocess.run(
        ["bash", "-c", f". scripts/apt.sh; {command}"], cwd=ROOT, text=True,
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "OCF_ETC_APT": str(etc)},
        capture_output=True, check=False)
    assert done.stderr == ""
    return done.stdout.strip(), done.returncode == 0


@pytest.fixture
def etc(tmp_path):
    (tmp_path / "sources.list.d").mkdir()
    return tmp_path


@pytest.mark.parametrize("name, text, debian, ubuntu", [
    ("sources.list", f"deb {DEBIAN} bookworm main\n", DEBIAN, ""),
    ("sources.list.d/debian.sources",
     f"Types: deb\nURIs: {DEBIAN}/\nSuites: bookworm\n", DEBIAN + "/", ""),
    ("sources.list.d/ubuntu.sources",
     "Types: deb\nURIs: http://security.ubuntu.example/ubuntu/\n"
     f"\nTypes: deb\nURIs: {UBUNTU}\n", "", UBUNTU),
    ("sources.list", f"deb [arch=arm64] {PORTS} jammy main\n", "", PORTS),
    ("sources.list", f"# deb {DEBIAN} bookworm main\n", "", ""),
    ("sources.list.d/cuda.list",
     "deb https://gpu.example/repos/ubuntu2404/x86_64 /\n", "", ""),
    ("sources.list", "deb http://mirror.example/debian-security x main\n",
     "", ""),
], ids=["list", "deb822", "security first", "ports", "comment", "others",
        "another archive"])
def test_the_machines_own_sources_name_the_mirror(etc, name, text, debian,
                                                  ubuntu):
    (etc / name).write_text(text)
    assert ask(etc, "mirror_of debian")[0] == debian
    assert ask(etc, "mirror_of 'ubuntu(-ports)?'")[0] == ubuntu


@pytest.mark.parametrize("version, first, good", [
    ("1.0.0", "1.0", True), ("1.10.1-1ubuntu2", "1.0", True),
    ("0.61.2-1", "1.0", False), ("4:12.2.0-3", "0", True),
    ("1.0", "1.0", True), ("2.0", "10.0", False)])
def test_versions_are_compared_as_numbers(etc, version, first, good):
    assert ask(etc, f"is_version {version} {first}")[1] == good

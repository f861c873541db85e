# SPDX-License-Identifier: Apache-2.0
"""What the ABI tests share: the library as built, and where the project is."""
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def exported_names():
    """The contract's list, one name a line."""
    return (ROOT / "tests/abi/symbols.txt").read_text().split()


def added_names():
    """What opencufile.h has beside the contract, one name a line."""
    return (ROOT / "tests/abi/additions.txt").read_text().split()


def status_rows():
    """{call: (state, answer)} from the table of docs/status.md."""
    rows = {}
    for line in (ROOT / "docs/status.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 3 and cells[0].startswith(("`cuFile", "`ocf_")):
            call = cells[0].strip("`")
            assert call not in rows, f"{call} stands twice in docs/status.md"
            rows[call] = (cells[1], cells[2])
    return rows


@pytest.fixture(scope="session")
def library():
    """Path of the library under test; the build passes it."""
    return os.environ["OCF_LIB"]


@pytest.fixture(scope="session")
def sanitized():
    """True in a sanitizer build, which needs and runs more by nature."""
    return os.environ.get("OCF_SANITIZED") == "1"


@pytest.fixture(scope="session")
def readelf(library):
    """readelf(options) -> its lines about the library."""

    def run(*options):
        command = ["readelf", "-W", *options, library]
        done = subprocess.run(command, capture_output=True, text=True, check=True,
                              env={**os.environ, "LC_ALL": "C"})
        return done.stdout.splitlines()

    return run

# SPDX-License-Identifier: Apache-2.0
"""An installed tree, and packages, made of the build under test."""
import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONSUMER = ROOT / "tests/package/consumer"


def plain_environment(**changes):
    """No libcufile in the way, neither ours nor another."""
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("LD_", "CUFILE_", "OPENCUFILE_", "PKG_"))}
    return {**env, **changes}


def run(*command, env=None, **options):
    done = subprocess.run([str(word) for word in command], check=False,
                          env=env or plain_environment(),
                          capture_output=True, text=True, **options)
    assert done.returncode == 0, \
        f"{command}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            pytest.skip(f"no {program}")


def pytest_collection_modifyitems(items):
    if os.environ.get("OCF_SANITIZED") == "1":
        for item in items:
            item.add_marker(pytest.mark.skip(
                reason="a sanitized library is not for installing"))

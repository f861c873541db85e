# SPDX-License-Identifier: Apache-2.0
"""bench/*.py are programs; the tests import them from there."""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

# SPDX-License-Identifier: Apache-2.0
"""Clients on two libraries: who does worse, and no test without a verdict."""
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture(name="compare")
def fixture_compare(tmp_path):
    def compare(ours, theirs):
        for name, verdicts in (("ours", ours), ("theirs", theirs)):
            lines = (f"client\t{test}\t{verdict}\n" for test, verdict in verdicts)
            (tmp_path / name).write_text("".join(lines), encoding="utf-8")
        told = subprocess.run(
            ["awk", "-f", ROOT / "scripts/clients.awk", tmp_path / "ours", tmp_path / "theirs"],
            capture_output=True, text=True, check=False)
        return told.returncode, told.stdout.splitlines()
    return compare


def test_the_same_verdicts_are_no_difference(compare):
    both = [("a", "begun"), ("a", "pass"), ("b", "fail")]
    status, lines = compare(both, both)
    assert status == 0
    assert lines[-1] == "2 tests: 2 the same verdict, 0 better, 0 worse"
    assert lines[-2].split() == ["client", "2", "1", "1", "2", "0", "0"]


def test_what_only_the_other_passes_is_worse(compare):
    status, lines = compare([("a", "fail"), ("b", "pass")], [("a", "pass"), ("b", "pass")])
    assert status == 1
    assert "worse   a: fail, pass there" in lines
    assert lines[-1] == "2 tests: 1 the same verdict, 0 better, 1 worse"


@pytest.mark.parametrize("verdict, name", [
    ("begun", "never ended"), ("hang", "hang"), ("fail", "fail"), ("skip", "skip")])
def test_what_only_this_one_passes_is_better(compare, verdict, name):
    status, lines = compare([("a", "pass")], [("a", verdict)])
    assert status == 0
    assert f"better  a: pass, {name} there" in lines


def test_a_test_that_only_the_other_reached_is_worse(compare):
    status, lines = compare([], [("a", "skip")])
    assert status == 1
    assert "worse   a: not run, skip there" in lines


def test_a_failure_is_not_made_good_by_what_follows(compare):
    status, lines = compare([("a", "begun"), ("a", "fail"), ("a", "pass")], [("a", "pass")])
    assert status == 1
    assert "worse   a: fail, pass there" in lines


def test_two_empty_lists_prove_nothing(compare):
    assert compare([], [])[0] == 1


def test_every_test_of_a_suite_gets_its_line(tmp_path):
    (tmp_path / "test_some.py").write_text("""
import os, pytest
@pytest.fixture
def broken():
    yield
    raise OSError
def test_passes(): pass
def test_fails(): raise OSError
def test_skips(): pytest.skip("no")
def test_ends_badly(broken): pass
def test_takes_all_along(): os._exit(3)
""", encoding="utf-8")
    env = {**os.environ, "VERDICTS": str(tmp_path / "verdicts"), "VERDICTS_OF": "some",
           "PYTHONPATH": str(ROOT / "tests/gpu"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    subprocess.run([sys.executable, "-B", "-m", "pytest", "-q", "-p", "verdicts",
                    "-p", "no:cacheprovider", "test_some.py"],
                   cwd=tmp_path, env=env, capture_output=True, check=False)
    verdicts = {}
    for line in (tmp_path / "verdicts").read_text(encoding="utf-8").splitlines():
        suite, test, verdict = line.split("\t")
        assert suite == "some"
        verdicts.setdefault(test.removeprefix("test_some.py::test_"), []).append(verdict)
    assert verdicts == {"passes": ["begun", "pass"], "fails": ["begun", "fail", "pass"],
                        "skips": ["begun", "skip", "pass"],
                        "ends_badly": ["begun", "fail"], "takes_all_along": ["begun"]}

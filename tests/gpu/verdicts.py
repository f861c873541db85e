# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin: a line for each test that begins, and for how it ends.

VERDICTS names the file, VERDICTS_OF the suite, the first word of each line:
suite, test, and begun, pass, skip or fail, with tabs between. A test with no
more than "begun" took its process along or never ended.
"""
import os

SUITE, PATH = os.environ["VERDICTS_OF"], os.environ["VERDICTS"]
WORKER = "PYTEST_XDIST_WORKER" in os.environ  # who started it hears it all


def line(test, verdict):
    if not WORKER:
        with open(PATH, "a", encoding="utf-8") as file:
            file.write(f"{SUITE}\t{test}\t{verdict}\n")


def pytest_runtest_logstart(nodeid):
    line(nodeid, "begun")


def pytest_runtest_logreport(report):
    if report.failed:
        line(report.nodeid, "fail")
    elif report.skipped:
        line(report.nodeid, "skip")
    elif report.when == "teardown":
        line(report.nodeid, "pass")

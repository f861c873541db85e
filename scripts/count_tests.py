# SPDX-License-Identifier: Apache-2.0
"""Counts test cases in Meson's log; prints "N passed, M failed[, K skipped]".

A program that says how many cases it ran (cmocka, pytest) counts as that many,
any other as one. Exit status 1 when something failed or nothing ran.
"""
import json
import re
import sys

# cmocka 1.1.7 names the group before some of the numbers
CMOCKA = {
    "passed": re.compile(r"^\[  PASSED  \] (?:.*: )?(\d+) test\(s\)", re.M),
    "failed": re.compile(r"^\[  FAILED  \] (?:.*: )?(\d+) test\(s\)", re.M),
    "skipped": re.compile(r"^\[  SKIPPED \] (?:.*: )?(\d+) test\(s\)", re.M),
}
PYTEST = re.compile(r"^(?=.*\d+ (?:passed|failed|skipped|error)).* in [\d.]+s", re.M)
PYTEST_PART = re.compile(r"(\d+) (passed|failed|skipped|errors?)\b")


def count(entry):
    """The cases of one program, as {passed, failed, skipped}."""
    text = entry.get("stdout", "") + "\n" + entry.get("stderr", "")
    cases = {name: sum(map(int, pattern.findall(text)))
             for name, pattern in CMOCKA.items()}
    for line in PYTEST.findall(text):
        for number, name in PYTEST_PART.findall(line):
            cases["failed" if name.startswith("error") else name] += int(number)

    result = entry["result"]
    if result in ("OK", "EXPECTEDFAIL"):
        if not any(cases.values()):
            cases["passed"] = 1
    elif result == "SKIP":
        if not any(cases.values()):
            cases["skipped"] = 1
    elif not cases["failed"]:
        cases["failed"] = 1  # crashed, timed out, or failed without a count
    return cases


def main():
    total = {"passed": 0, "failed": 0, "skipped": 0}
    try:
        with open(sys.argv[1], encoding="utf-8") as log:
            entries = [json.loads(line) for line in log if line.strip()]
    except OSError:
        entries = []
    for entry in entries:
        for name, number in count(entry).items():
            total[name] += number
    if not entries:
        print("no test ran")
        total["failed"] = 1
    line = f"{total['passed']} passed, {total['failed']} failed"
    if total["skipped"]:
        line += f", {total['skipped']} skipped"
    print(line)
    return 1 if total["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""coverage.py FILE - gcovr's JSON as a line for each directory of src/, and
their sum last: lines and branches that ran, of all there are."""
import collections
import json
import pathlib
import sys


def main():
    counts = collections.defaultdict(lambda: [0, 0, 0, 0])
    report = json.loads(pathlib.Path(sys.argv[1]).read_text())
    for file in report["files"]:
        name = pathlib.PurePath(file["file"]).parent.as_posix()
        for line in file["lines"]:
            if line.get("gcovr/noncode"):
                continue
            for where in (name, "all"):
                count = counts[where]
                count[0] += line["count"] > 0
                count[1] += 1
                count[2] += sum(b["count"] > 0 for b in line["branches"])
                count[3] += len(line["branches"])
    for where in sorted(counts, key=lambda name: (name == "all", name)):
        lines, of_lines, branches, of_branches = counts[where]
        print(f"{where}: {100 * lines / max(of_lines, 1):.1f} % of "
              f"{of_lines} lines, {100 * branches / max(of_branches, 1):.1f} %"
              f" of {of_branches} branches")


if __name__ == "__main__":
    main()

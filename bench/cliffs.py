# SPDX-License-Identifier: Apache-2.0
"""cliffs.py FILE.json... - where asking for more gives less.

A cliff: the next larger size, twice the threads, or a longer batch moves fewer
bytes a second, by more than 5 percent, with everything else the same. What the
limit did at the same step stands beside it: where it falls too, the machine
falls. Exit status 1 if the first library has a cliff that the limit has not.
"""
import sys

import rows as bench

MARGIN = 0.95
STEPS = ("size", "threads", "depth")


def lines_of(rows, step):
    """Rows of one library that differ in the step alone, in its order."""
    found = {}
    for row in bench.of_kind(rows, "cell"):
        key = (row["library"],) + tuple(row[name] for name in bench.KEY if name != step)
        found.setdefault(key, {})[row[step]] = row
    for line in found.values():
        yield [line[at] for at in sorted(line)]


def pairs(rows):
    """(step, row, next row), where both were measured."""
    for step in STEPS:
        for line in lines_of(rows, step):
            for row, after in zip(line, line[1:]):
                if not row["error"] and not after["error"] and row["gb_per_s"]:
                    yield step, row, after


def place(step, row, after):
    return step, *(row[name] for name in bench.KEY), after[step]


def cliffs(rows):
    """(step, row, next row, what the limit did there or None) of each."""
    ratios = {place(step, row, after): after["gb_per_s"] / row["gb_per_s"]
              for step, row, after in pairs(rows) if row["library"] == "limit"}
    return [(step, row, after, ratios.get(place(step, row, after)))
            for step, row, after in pairs(rows)
            if row["library"] != "limit"
            and after["gb_per_s"] < MARGIN * row["gb_per_s"]]


def main(paths):
    rows = bench.load(paths)
    names = bench.libraries(rows)
    ours = 0
    for step, row, after, limit in cliffs(rows):
        same = limit is not None and limit < MARGIN
        ours += row["library"] == names[0] and not same
        more = bench.size_text(after[step]) if step == "size" else after[step]
        print(f"{row['library']}: {bench.cell_text(row)}, {step} to {more}: "
              f"{row['gb_per_s']:.2f} to {after['gb_per_s']:.2f} GB/s"
              + (f", limit x{limit:.2f}" if limit is not None else ""))
    print(f"{ours} cliffs of {names[0] if names else 'nobody'} that the limit has not")
    return 1 if ours else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

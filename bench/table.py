# SPDX-License-Identifier: Apache-2.0
"""table.py FILE.json... - ocf-bench's JSON as the tables of docs/performance.md.

One row a cell, one column a library: GB/s (op/s below 64 KiB), then the ratio
of the first library to each other one.
"""
import json
import sys


def size_text(size):
    for shift, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size >> shift:
            return f"{size >> shift} {unit}"
    return f"{size} B"


def value_text(row):
    if row["error"]:
        return row["error"]
    stale = ", stale" if row["stale"] else ""
    if row["size"] < 65536:
        return f"{row['ops_per_s'] / 1000:.1f} k op/s, {row['p50_us']:.1f} us{stale}"
    return f"{row['gb_per_s']:.2f} GB/s{stale}"


def cpu_text(row):
    return "" if row["error"] else f"{row['cpu_s_per_gb']:.2f}"


def main(paths):
    cells, names = {}, []
    for path in paths:
        with open(path, encoding="utf-8") as lines:
            for row in map(json.loads, lines):
                key = (row["op"], row["medium"], row["size"], row["threads"], row["memory"])
                cells.setdefault(key, {})[row["library"]] = row
                if row["library"] not in names:
                    names.append(row["library"])
    first, others = names[0], names[1:]
    head = ["cell", *names, *(f"{first} / {name}" for name in others), "CPU s/GB"]
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for (op, medium, size, threads, memory), row in cells.items():
        line = [f"{op} {medium} {size_text(size)} x{threads} {memory}"]
        line += [value_text(row[name]) if name in row else "" for name in names]
        for name in others:
            good = name in row and not row[name]["error"] and not row[first]["error"]
            line.append(f"{row[first]['gb_per_s'] / row[name]['gb_per_s']:.2f}" if good else "")
        line.append(" / ".join(cpu_text(row[name]) for name in names if name in row))
        print("| " + " | ".join(line) + " |")


main(sys.argv[1:])

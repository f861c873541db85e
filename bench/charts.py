# SPDX-License-Identifier: Apache-2.0
"""charts.py FOLDER FILE.json... - the charts of docs/performance.md, and more,
as FOLDER/*.svg.

Draws those that the rows have data for, and prints the path of each.
"""
import pathlib
import sys

import rows as bench
import svg

PLAIN = {"op": "read", "medium": "cached", "memory": "device", "registered": True,
         "align": "aligned", "gpus": 1}


def select(rows, **wanted):
    return [row for row in bench.of_kind(rows, "cell")
            if all(row[name] == value for name, value in {**PLAIN, **wanted}.items())]


def short(size):
    return bench.size_text(size).replace("iB", "").replace(" ", "")


def mark(row, field, scale):
    """The value, or a word for what went wrong."""
    if not row:
        return None
    if row["error"]:
        words = ("hung", "not available")
        return next((word for word in words if row["error"].startswith(word)), "failed")
    return row[field] * scale


def series(rows, keys, key_of, field, scale=1.0, leave_out=()):
    """One (name, values) for each library, values in the order of keys."""
    found = {(row["library"], key_of(row)): row for row in rows}
    return [(name, [mark(found.get((name, key)), field, scale) for key in keys])
            for name in bench.libraries(rows) if name not in leave_out]


def by_size(rows, title, unit, field, smallest=0, leave_out=()):
    rows = [row for row in select(rows, mode="sync", threads=1) if row["size"] >= smallest]
    keys = sorted({row["size"] for row in rows})
    if len(keys) < 2:
        return None
    return svg.line_chart(title, unit, [short(key) for key in keys],
                          series(rows, keys, lambda row: row["size"], field,
                                 leave_out=leave_out))


def size_chart(rows):
    return by_size(rows, "Read into GPU memory, one thread, file in the page cache", "GB/s",
                   "gb_per_s")


def cpu_chart(rows):
    return by_size(rows, "Processor time of the same reads", "CPU s/GB", "cpu_s_per_gb",
                   smallest=65536, leave_out=("limit",))


def small_chart(rows):
    rows = [row for row in select(rows, mode="sync")
            if row["size"] <= 65536 and row["threads"] in (1, 4, 16)]
    keys = sorted({(row["size"], row["threads"]) for row in rows})
    return keys and svg.bar_chart(
        "Small reads into GPU memory", "thousand op/s",
        [f"{short(size)} x{threads}" for size, threads in keys],
        series(rows, keys, lambda row: (row["size"], row["threads"]), "ops_per_s", 1e-3))


def threads_chart(rows):
    rows = select(rows, mode="sync", size=16 << 20)
    keys = sorted({row["threads"] for row in rows})
    if len(keys) < 2:
        return None
    return svg.line_chart("Reads of 16 MiB into GPU memory, by threads", "GB/s", keys,
                          series(rows, keys, lambda row: row["threads"], "gb_per_s"))


def batch_chart(rows):
    rows = select(rows, mode="batch", threads=1)
    keys = sorted({(row["size"], row["depth"]) for row in rows})
    return keys and svg.bar_chart(
        "Batches of reads into GPU memory", "GB/s",
        [f"{depth} x {short(size)}" for size, depth in keys],
        series(rows, keys, lambda row: (row["size"], row["depth"]), "gb_per_s"))


def stream_chart(rows):
    rows = select(rows, mode="stream", threads=1)
    keys = sorted({(row["size"], row["streams"], row["depth"]) for row in rows})
    return keys and svg.bar_chart(
        "Reads in stream order: streams x requests on each", "GB/s",
        [f"{short(size)} {streams}x{depth}" for size, streams, depth in keys],
        series(rows, keys, lambda row: (row["size"], row["streams"], row["depth"]),
               "gb_per_s"))


def fresh_chart(rows):
    rows = bench.of_kind(rows, "fresh")
    keys = sorted({row["size"] for row in rows})
    return keys and svg.bar_chart(
        "First read of a new process: load, open, register, read", "ms",
        [short(key) for key in keys],
        series(rows, keys, lambda row: row["size"], "total_ms"))


CHARTS = {"size": size_chart, "cpu": cpu_chart, "small": small_chart,
          "threads": threads_chart, "batch": batch_chart, "stream": stream_chart,
          "fresh": fresh_chart}


# What a line joins was measured together, in one file.
LINES = (size_chart, cpu_chart, threads_chart)


def fullest(drawings):
    """The one with the most points."""
    return max((drawing or "" for drawing in drawings),
               key=lambda drawing: drawing.count("<circle"), default="")


def main(folder, paths):
    files = [bench.load([path]) for path in paths]
    rows = [row for file in files for row in file]
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in CHARTS.items():
        drawing = fullest(map(draw, files)) if draw in LINES else draw(rows)
        if drawing:
            path = folder / f"{name}.svg"
            path.write_text(drawing, encoding="utf-8")
            print(path)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])

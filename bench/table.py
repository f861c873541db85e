# SPDX-License-Identifier: Apache-2.0
"""table.py FILE.json... - ocf-bench's JSON as the tables of docs/performance.md.

Cells: one row a cell, one column a library: GB/s (op/s below 64 KiB), then the
ratio of the first library to each other one, then CPU seconds per GB of each.
First reads of a process, and processes at rest, have tables of their own.
"""
import sys

import rows as bench


def print_table(head, lines):
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for line in lines:
        print("| " + " | ".join(line) + " |")
    print()


def value_text(row):
    if row["error"]:
        return row["error"]
    stale = ", stale" if row["stale"] else ""
    if row["size"] < 65536:
        return f"{row['ops_per_s'] / 1000:.1f} k op/s, {row['p50_us']:.1f} us{stale}"
    return f"{row['gb_per_s']:.2f} GB/s{stale}"


def cpu_text(row):
    return f"{row['cpu_s_per_gb']:.2f}" if row and not row["error"] else "-"


def ratio_text(row, other):
    if not row or not other or row["error"] or other["error"] or not other["gb_per_s"]:
        return ""
    return f"{row['gb_per_s'] / other['gb_per_s']:.2f}"


def cell_lines(cells, names):
    for found in cells.values():
        first = found.get(names[0])
        line = [bench.cell_text(next(iter(found.values())))]
        line += [value_text(found[name]) if name in found else "" for name in names]
        line += [ratio_text(first, found.get(name)) for name in names[1:]]
        line.append(" / ".join(cpu_text(found.get(name)) for name in names))
        yield line


def steal_text(cells, names):
    taken = {name: sum(found[name]["steal_s"] for found in cells.values() if name in found)
             for name in names}
    return ", ".join(f"{name} {seconds:.2f} s" for name, seconds in taken.items())


def fresh_lines(rows):
    steps = ("load_ms", "open_ms", "handle_ms", "buffer_ms", "read_ms")
    for row in rows:
        line = [f"{bench.size_text(row['size'])}, {row['library']}"]
        if row["error"]:
            yield line + [row["error"]] + [""] * 7
            continue
        yield (line + [f"{row['total_ms']:.2f}"] + [f"{row[step]:.2f}" for step in steps]
               + [f"{row['second_ms']:.2f}", f"{row['context_ms']:.0f}"])


def rest_lines(rows):
    for row in rows:
        if row["error"]:
            yield [row["library"], row["error"]] + [""] * 6
            continue
        base = row["base"]["rss_mb"]
        stages = [row[name] for name in ("opened", "load", "after")]
        yield ([row["library"]]
               + [f"{stage['rss_mb'] - base:.1f}" for stage in stages]
               + [" / ".join(str(stage["threads"]) for stage in [row["base"], *stages])]
               + [f"{row['opened_cpu_ms']:.2f} ms, {row['opened_switches']}",
                  f"{row['after_cpu_ms']:.2f} ms, {row['after_switches']}",
                  f"{row['gb_per_s']:.2f}"])


def main(paths):
    rows = bench.load(paths)
    cells, names = bench.cells(rows), bench.libraries(rows)
    opens = [f"{row['library']} {row['open_ms']:.2f} ms"
             for row in bench.of_kind(rows, "library") if not row["error"]]
    if cells:
        first = names[0]
        print_table(["cell", *names, *(f"{first} / {name}" for name in names[1:]),
                     "CPU s/GB: " + " / ".join(names)], cell_lines(cells, names))
        print(f"Driver open: {', '.join(opens)}.\n")
        print(f"Processor time that a host took from these cells: {steal_text(cells, names)}.\n")
    fresh, rest = bench.of_kind(rows, "fresh"), bench.of_kind(rows, "rest")
    if fresh:
        print_table(["first read of a process, ms", "all", "load", "open", "file", "buffer",
                     "read", "second read", "CUDA context, before"], fresh_lines(fresh))
    if rest:
        seconds = rest[0]["seconds"]
        print_table(["at rest", "opened, MiB more", "under load", "after",
                     "threads: base / opened / load / after",
                     f"CPU and switches in {seconds:.0f} s, opened", "after load",
                     "load, GB/s"], rest_lines(rest))


if __name__ == "__main__":
    main(sys.argv[1:])

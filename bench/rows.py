# SPDX-License-Identifier: Apache-2.0
"""ocf-bench's JSON: what table.py, cliffs.py and charts.py share."""
import json

# What makes two rows of different libraries the same cell.
KEY = ("mode", "op", "medium", "memory", "registered", "align", "depth",
       "streams", "threads", "gpus", "size", "file_size")


def load(paths):
    """All rows of all files. A line that was cut short is left out."""
    rows = []
    for path in paths:
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                try:
                    rows.append(json.loads(line))
                except ValueError:
                    continue
    return rows


def of_kind(rows, kind):
    return [row for row in rows if row["kind"] == kind]


def libraries(rows):
    """Names in the order in which they were measured."""
    return list(dict.fromkeys(row["library"] for row in rows if "library" in row))


def cells(rows):
    """{key: {library: row}}, keys in order; the last of equal rows stands."""
    found = {}
    for row in of_kind(rows, "cell"):
        found.setdefault(tuple(row[name] for name in KEY), {})[row["library"]] = row
    return found


def size_text(size):
    for shift, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size >> shift:
            return f"{size >> shift} {unit}"
    return f"{size} B"


def shape_text(row):
    """How many requests at once: x4, batch of 128, 4 streams of 8."""
    text = f"x{row['threads']}"
    if row["mode"] == "batch":
        text += f" batch of {row['depth']}"
    elif row["mode"] == "stream":
        text += f" {row['streams']} stream{'s'[:row['streams'] > 1]} of {row['depth']}"
    return text


def cell_text(row):
    words = [row["op"], row["medium"], size_text(row["size"]), shape_text(row), row["memory"]]
    if not row["registered"]:
        words.append("unregistered")
    if row["align"] != "aligned":
        words.append(f"odd {row['align']}")
    if row["gpus"] > 1:
        words.append(f"on {row['gpus']} GPUs")
    return " ".join(words)

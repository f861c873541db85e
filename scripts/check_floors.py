# SPDX-License-Identifier: Apache-2.0
"""Includes point downward only.

The floors of src/, from below: seam, core, path, engine, api. A file includes
from its own floor and those under it, by "floor/name.h" and never by "..".
Tools, examples and the benchmark stand outside the house: they see the public
headers only.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
FLOORS = ["seam", "core", "path", "engine", "api"]
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]')


def includes(path):
    """(line number, '<' or '"', name) of each include."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match[1], match[2]


def fault_in_house(floor, quote, name):
    """What is wrong with an include in src/, or None."""
    if ".." in pathlib.PurePath(name).parts:
        return "leaves its folder by .."
    target = name.split("/")[0] if "/" in name else None
    if quote == '"' and target not in FLOORS:
        return 'is not written as "floor/name.h"'
    if quote == "<" and target in FLOORS and (ROOT / "src" / name).exists():
        return "is ours, and belongs in quotes"
    if quote == '"' and FLOORS.index(target) > FLOORS.index(floor):
        return f"points up, from {floor} to {target}"
    return None


def fault_outside(quote, name):
    """What is wrong with an include outside of the house, or None."""
    if ".." in pathlib.PurePath(name).parts:
        return "leaves its folder by .."
    if quote == '"' and name.split("/")[0] in FLOORS:
        return "reaches inside the library"
    return None


def main():
    faults = []
    for path in sorted(ROOT.glob("src/**/*.[ch]")):
        floor = path.relative_to(ROOT / "src").parts[0]
        if floor not in FLOORS:
            faults.append(f"{path.relative_to(ROOT)}: is on no floor")
            continue
        for number, quote, name in includes(path):
            fault = fault_in_house(floor, quote, name)
            if fault:
                faults.append(f"{path.relative_to(ROOT)}:{number}: {name} {fault}")
    for folder in ("tools", "examples", "bench"):
        for path in sorted((ROOT / folder).glob("**/*.[ch]")):
            for number, quote, name in includes(path):
                fault = fault_outside(quote, name)
                if fault:
                    faults.append(f"{path.relative_to(ROOT)}:{number}: {name} {fault}")
    print("\n".join(faults), end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

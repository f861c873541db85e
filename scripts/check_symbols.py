# SPDX-License-Identifier: Apache-2.0
"""Four places name the exports; they must name the same, in the same order.

tests/abi/symbols.txt is the contract's list. The export list of the linker has
its order and its names, the header declares each, docs/status.md has a row for
each. tests/abi/test_symbols.py looks at the built library itself.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]


def read(name):
    return (ROOT / name).read_text()


def main():
    contract = read("tests/abi/symbols.txt").split()
    places = {
        "src/api/libcufile.map":
            re.findall(r"^\s*(\w+);", read("src/api/libcufile.map"), re.M),
        "docs/status.md":
            re.findall(r"^\| `(cuFile\w+)` \|", read("docs/status.md"), re.M),
    }
    faults = [f"{place}: {names} are not in the contract's order"
              if set(names) == set(contract) else
              f"{place}: differs in {sorted(set(names) ^ set(contract))}"
              for place, names in places.items() if names != contract]
    declared = re.findall(r"^(?:CUfileError_t|ssize_t|long|void) (cuFile\w+)\(",
                          read("include/cufile.h"), re.M)
    if sorted(declared) != sorted(contract):
        faults.append("include/cufile.h: differs in "
                      f"{sorted(set(declared) ^ set(contract))}")
    if len(contract) != len(set(contract)) or not contract:
        faults.append("tests/abi/symbols.txt: empty, or a name stands twice")
    print("\n".join(faults), end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

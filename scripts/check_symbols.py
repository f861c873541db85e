# SPDX-License-Identifier: Apache-2.0
"""Four places name the exports; they must name the same, in the same order.

tests/abi/symbols.txt is the contract's list, tests/abi/additions.txt that of
what we have beside it. The export list of the linker has their order and their
names, cufile.h and opencufile.h declare each, docs/status.md has a row for
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
    additions = read("tests/abi/additions.txt").split()
    exports = contract + additions
    places = {
        "src/api/libcufile.map":
            re.findall(r"^\s*(\w+);", read("src/api/libcufile.map"), re.M),
        "docs/status.md":
            re.findall(r"^\| `((?:cuFile|ocf_)\w+)` \|", read("docs/status.md"), re.M),
    }
    faults = [f"{place}: {names} are not in the contract's order"
              if set(names) == set(exports) else
              f"{place}: differs in {sorted(set(names) ^ set(exports))}"
              for place, names in places.items() if names != exports]
    for header, expected in (("include/cufile.h", contract),
                             ("include/opencufile.h", additions)):
        declared = re.findall(
            r"^(?:CUfileError_t|s?size_t|long|void|const char \*)\s*"
            r"((?:cuFile|ocf_)\w+)\(", read(header), re.M)
        if sorted(declared) != sorted(expected):
            faults.append(f"{header}: differs in "
                          f"{sorted(set(declared) ^ set(expected))}")
    if len(exports) != len(set(exports)) or not contract:
        faults.append("tests/abi: empty list, or a name stands twice")
    print("\n".join(faults), end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

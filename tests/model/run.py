# SPDX-License-Identifier: Apache-2.0
"""Lets spin try all orders of a model's steps, and breaks the model on
purpose: a model that cannot fail proves nothing.

    run.py MODEL BREAKS WORKDIR [-DNAME=VALUE...]

Checks MODEL as it is, which must be free of errors, and with BREAK=1 to
BREAKS, or with those of a list (1,4), each of which must have one. Exit status
77 where there is no spin.
"""
import pathlib
import re
import shutil
import subprocess
import sys


def verify(model, folder, broken, defines):
    """(errors, states) of the model with one step broken; 0: none."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["spin", f"-DBREAK={broken}", *defines, "-a", str(model)],
                   cwd=folder, check=True, stdout=subprocess.DEVNULL)
    # a broken step shows soon: there the compiler has more to do than pan
    subprocess.run(["cc", "-O0" if broken else "-O1", "-w",
                    "-DSAFETY", "-DVECTORSZ=2048", "-DCOLLAPSE", "-o",
                    "pan", "pan.c"], cwd=folder, check=True)
    out = subprocess.run(["./pan", "-m2000000"], cwd=folder, check=True,
                         capture_output=True, text=True).stdout
    if "max search depth too small" in out or "Search not completed" in out \
            and not broken:
        sys.exit(out)
    errors = int(re.search(r"errors: (\d+)", out)[1])
    states = int(re.search(r"(\d+) states, stored", out)[1])
    why = re.search(r"pan:\d+: (.*)", out)
    return errors, states, why[1] if why else ""


def main():
    model, breaks = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    work, defines = pathlib.Path(sys.argv[3]), sys.argv[4:]
    breaks = map(int, breaks.split(",")) if "," in breaks else \
        range(1, int(breaks) + 1)
    if not shutil.which("spin"):
        print("skipped: there is no spin (Debian's package of that name)")
        return 77
    failed = 0
    for broken in (0, *breaks):
        folder = work / "".join([model.stem, *defines, f"-{broken}"])
        errors, states, why = verify(model, folder, broken, defines)
        bad = bool(errors) != bool(broken)
        failed += bad
        print(f"{model.stem}, {'step %d broken' % broken if broken else 'as it is'}:"
              f" {states} states, {errors} errors {why}{'  WRONG' if bad else ''}",
              flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

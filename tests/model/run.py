# SPDX-License-Identifier: Apache-2.0
"""Lets spin try all orders of a model's steps, and breaks the model on
purpose: a model that cannot fail proves nothing.

    run.py MODEL BREAKS WORKDIR [-DNAME=VALUE...]

Checks MODEL as it is, which must be free of errors, and with BREAK=1 to
BREAKS, or with those of a list (1,4), each of which must have one. Exit status
77 where there is no spin.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys


# stands for the broken step in what spin makes of a model, which then has one
# verifier for all: the compiler takes longer than most of them
MARK = 31999
STEP = """
#include <stdlib.h>
static int broken_step;
__attribute__((constructor)) static void read_step(void)
{
	broken_step = atoi(getenv("BREAK"));
}
"""


def build(model, folder, defines):
    """A verifier that reads BREAK when it runs."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["spin", f"-DBREAK={MARK}", *defines, "-a", str(model)],
                   cwd=folder, check=True, stdout=subprocess.DEVNULL)
    (folder / "step.h").write_text(STEP)
    steps = folder / "pan.m"
    steps.write_text(re.sub(rf"\b{MARK}\b", "broken_step", steps.read_text()))
    # dead stores of a function as long as these take most of the time
    subprocess.run(["cc", "-O1", "-fno-dse", "-w", "-DSAFETY",
                    "-DVECTORSZ=2048", "-DCOLLAPSE", "-include", "step.h",
                    "-o", "pan", "pan.c"], cwd=folder, check=True)


def verify(folder, broken):
    """(errors, states, which) of the model with one step broken; 0: none."""
    # small tables for what is over soon
    size = "-w22" if broken else "-w24"
    out = subprocess.run(["./pan", "-m100000", size], cwd=folder, check=True,
                         env={**os.environ, "BREAK": str(broken)},
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
    folder = work / "".join([model.stem, *defines])
    build(model, folder, defines)
    failed = 0
    for broken in (0, *breaks):
        errors, states, why = verify(folder, broken)
        bad = bool(errors) != bool(broken)
        failed += bad
        print(f"{model.stem}, {'step %d broken' % broken if broken else 'as it is'}:"
              f" {states} states, {errors} errors {why}{'  WRONG' if bad else ''}",
              flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

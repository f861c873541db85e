# SPDX-License-Identifier: Apache-2.0
"""What reads make beside other processes that use the same GPU.

    PYTHONPATH=python python3 bench/beside.py --bench build/bench/ocf-bench \\
        --lib ours=build/src/libcufile.so.0 --lib nvidia=/path/libcufile.so

A GPU runs the kernels of one process at a time, in turns. Each cell is measured
by ocf-bench for each library in a process of its own, beside nobody (`alone`),
beside a process that multiplies matrices (`compute`, which takes PyTorch), and
beside one or three that do the same as it by the same library (`same`, `three`).
Where there are two GPUs, `other` is one that does the same on the second.
A row has what the one process makes. byhand is the loop by hand.
"""
import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time

import rows as bench
import table

CELLS = ["--sizes 4K", "--sizes 4K --threads 16", "--sizes 16K", "--sizes 64K",
         "--sizes 1M", "--sizes 16M", "--sizes 4K --batch 128", "--sizes 1M --stream 8"]
ON_ONE_GPU = {"alone": 0, "compute": 0, "same": 1, "three": 3}
KINDS = {**ON_ONE_GPU, "other": 1}
START = 30  # seconds that a neighbour may take to begin


def compute():
    """Fills the GPU until it is killed."""
    from overlap import Compute
    products = Compute("gemm")
    print("ready", flush=True)
    while True:
        products.run(1)


def command(options, library, cell, seconds, rounds, out):
    return [options.bench, "--lib", library, "--media", "cached", "--ops", options.op,
            "--keep", "--file", options.file, "--file-size", "256M", "--seconds",
            str(seconds), "--rounds", str(rounds), "--json", out, *cell.split()]


def await_library(path):
    """-> its row: it is open, and measured next."""
    end = time.monotonic() + START
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            for row in bench.of_kind(bench.load([path]), "library"):
                return row
        time.sleep(0.01)
    raise RuntimeError(f"a neighbour did not begin: {path}")


@contextlib.contextmanager
def stopped(processes):
    """Those that are in the list by the end of the block."""
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.wait()


@contextlib.contextmanager
def computing(wanted):
    """Somebody computes while the block runs."""
    with stopped([]) as running:
        if wanted:
            running.append(subprocess.Popen([sys.executable, __file__, "--compute"],
                                            stdout=subprocess.PIPE, text=True))
            if running[0].stdout.readline() != "ready\n":
                raise RuntimeError("nobody computes")
        yield


@contextlib.contextmanager
def neighbours(kind, options, library, cell, folder):
    """Processes that do the same run while the block does."""
    outs = [os.path.join(folder, f"neighbour{n}") for n in range(KINDS[kind])]
    elsewhere = {"CUDA_VISIBLE_DEVICES": "1"} if kind == "other" else {}
    with stopped([]) as running:
        for out in outs:
            running.append(subprocess.Popen(
                command(options, library, cell, START * 100, 1, out),
                stdout=subprocess.DEVNULL, env={**os.environ, **elsewhere}))
        for out in outs:
            row = await_library(out)
            if elsewhere and not row["gpu"]:
                raise RuntimeError("there is no second GPU")
        time.sleep(0.3 if outs else 0)
        yield


def measure(options, kind, library, cell):
    """Its rows."""
    with (tempfile.TemporaryDirectory() as folder,
          neighbours(kind, options, library, cell, folder)):
        out = os.path.join(folder, "rows")
        subprocess.run(command(options, library, cell, options.seconds, options.rounds, out),
                       stdout=subprocess.DEVNULL, check=False)
        return [{**row, "beside": kind} for row in bench.load([out])]


def report(found):
    names = bench.libraries(found)
    for kind in KINDS:
        cells = bench.cells(row for row in found if row["beside"] == kind)
        if not cells:
            continue
        print(f"### {kind}\n")
        table.print_table(["cell", *names, *(f"{names[0]} / {name}" for name in names[1:]),
                           "CPU s/GB: " + " / ".join(names)],
                          table.cell_lines(cells, names))


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bench", default="build/bench/ocf-bench")
    parser.add_argument("--lib", action="append", default=[], metavar="NAME=PATH")
    parser.add_argument("--libs-only", action="store_true", help="not byhand")
    parser.add_argument("--beside", nargs="+", default=list(ON_ONE_GPU), choices=list(KINDS))
    parser.add_argument("--cells", nargs="+", default=CELLS,
                        help="what ocf-bench is told of each")
    parser.add_argument("--op", default="read", choices=["read", "write"])
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--file", default="/var/tmp/ocf-bench.data")
    parser.add_argument("--json", help="all rows go there")
    parser.add_argument("--compute", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    options = parse()
    if options.compute:
        compute()
    found = []
    libraries = options.lib + ([] if options.libs_only else ["byhand"])
    for kind in options.beside:
        with computing(kind == "compute"):
            for cell in options.cells:
                for library in libraries:
                    found += measure(options, kind, library, cell)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in found)
    report(found)


if __name__ == "__main__":
    main()

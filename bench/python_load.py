# SPDX-License-Identifier: Apache-2.0
"""Loading a model: cufile.safetensors and cufile.checkpoint beside
safetensors.torch.load_file and torch.load.

    PYTHONPATH=python OPENCUFILE_LIBRARY=build/src/libcufile.so.0 \\
        python3 bench/python_load.py --sweep --seconds 80 --json load.json

Makes a file of each format of the same random tensors, checks that every loader
gives the same bits, and times them in turns until the seconds are over, each
with the file in the page cache and dropped from it. The share of the file that
was in the page cache before is printed beside, because dropping is a request
that a kernel may ignore. --sweep goes through numbers of threads and sizes of
pieces too, which the defaults of the loaders are chosen by. --first times each
in a fresh process whose GPU context exists, after everything else, --gpus a
checkpoint for each of so many GPUs: cufile.checkpoint.load_files has all at
once, the others one after the other.

Times are of the call alone, until the GPU is idle and before the tensors are
freed; the middle of the rounds, then the least and the greatest.
"""
import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import torch

import cufile
import cufile.checkpoint
import cufile.safetensors

try:
    from safetensors.torch import load_file as safetensors_load
except ImportError:
    safetensors_load = None

TENSOR_MIB = 96
THREADS = (1, 2, 4, 8, 16)
PIECES_MIB = (4, 16, 64, 256)
FILES = {"safetensors": "model.safetensors", "checkpoint": "model.pt"}
OURS = {"safetensors": cufile.safetensors.load_file,
        "checkpoint": cufile.checkpoint.load_file}


def torch_load(**options):
    return lambda path, device: torch.load(path, map_location=device,
                                           weights_only=True, **options)


def ours(kind, **options):
    if kind == "safetensors":
        options["framework"] = "torch"
    return lambda path, device: OURS[kind](path, device, progress=False, **options)


def loaders():
    """{(format, name): load(path, device)}, the reference of a format first."""
    found = {("checkpoint", "torch.load"): torch_load(),
             ("checkpoint", "torch.load mmap"): torch_load(mmap=True)}
    if safetensors_load:
        found["safetensors", "safetensors.torch"] = \
            lambda path, device: safetensors_load(path, device=device)
    for kind in FILES:
        found[kind, "cufile"] = ours(kind)
        found[kind, "cufile direct"] = ours(kind, direct=True)
    return found


class Cell:
    """A loader with the page cache in a state, and its times."""

    def __init__(self, kind, name, state, load, **numbers):
        self.kind, self.name, self.state, self.load = kind, name, state, load
        self.numbers, self.seconds, self.shares = numbers, [], []

    def row(self, size):
        return {"format": self.kind, "loader": self.name, "state": self.state,
                **self.numbers, "seconds": self.seconds, "cached": self.shares,
                "bytes": size,
                "GB/s": size / statistics.median(self.seconds) / 1e9}


def cells_of(arguments, usable):
    """What is to be measured, the most wanted first."""
    cells = [Cell(*key, state, load) for state in ("cached", "uncached")
             for key, load in usable.items()]
    if arguments.sweep:
        for direct, state in ((False, "cached"), (False, "uncached"),
                              (True, "uncached")):
            name = "cufile direct" if direct else "cufile"
            if ("safetensors", name) not in usable:
                continue
            cells += [Cell("safetensors", name, state, ours(
                "safetensors", direct=direct, threads=threads, piece=piece << 20),
                threads=threads, piece_mib=piece)
                for threads, piece in itertools.product(THREADS, PIECES_MIB)]
    return cells


def make(folder, gib, device):
    """Large tensors and small ones, as models have them, in both formats."""
    left, number, tensors = int(gib * (1 << 30)), 0, {}
    while left > 0:
        nbytes = max(min(left, TENSOR_MIB << 20 if number % 8 else 20480) & ~1, 2)
        raw = torch.randint(0, 256, (nbytes,), dtype=torch.uint8, device=device)
        tensors[f"layers.{number}.weight"] = raw.view(torch.int16)
        left -= nbytes
        number += 1
    cufile.safetensors.save_file(tensors, os.path.join(folder, FILES["safetensors"]),
                                 progress=False)
    torch.save(tensors, os.path.join(folder, FILES["checkpoint"]))
    for name in FILES.values():
        with open(os.path.join(folder, name), "rb") as file:
            os.fsync(file.fileno())
    return len(tensors)


def cached_share(path):
    """How much of the file is in the page cache, or None."""
    with cufile.open(path) as file:
        size = file.size()
        told = cufile.explain(file, "host", size)
    return None if told.cached_bytes is None else min(told.cached_bytes / size, 1)


def prepare(path, state):
    """Brings the file into the page cache, or asks for it to be dropped; what
    share of it is there then."""
    share = cached_share(path)
    with open(path, "rb", buffering=0) as file:
        if state == "uncached":
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        elif share is None or share < 1:
            block = bytearray(16 << 20)
            while file.readinto(block):
                pass
        else:
            return share
    return cached_share(path)


def synchronize(device):
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)


def timed(load, path, device):
    synchronize(device)
    begin = time.perf_counter()
    tensors = load(path, device)
    synchronize(device)
    return time.perf_counter() - begin, tensors


def usable(arguments):
    """The loaders that work here; each gives the bits of the first."""
    found, expected = {}, None
    for (kind, name), load in loaders().items():
        try:
            got = load(arguments.path(kind), arguments.device)
        except (OSError, RuntimeError) as error:
            print(f"{kind}, {name}: left out, {error}"[:200])
            continue
        if expected is None:
            expected = got
        assert set(got) == set(expected), name
        for key, value in expected.items():
            assert got[key].dtype == value.dtype, (name, key)
            assert torch.equal(got[key], value), (name, key)
        found[kind, name] = load
        del got
    print(f"{len(found)} loaders give {len(expected)} tensors, bit by bit the same")
    return found


def measure(cells, arguments, deadline):
    """In turns; a cell that there is no time for stays without times."""
    for number in range(arguments.runs):
        for cell in cells:
            if time.monotonic() > deadline:
                print(f"time is over in round {number + 1}")
                return
            path = arguments.path(cell.kind)
            share = prepare(path, cell.state)
            seconds, tensors = timed(cell.load, path, arguments.device)
            del tensors
            cell.seconds.append(seconds)
            if share is not None:
                cell.shares.append(share)


def show(cells, arguments):
    """A table for each state, and a grid for each sweep."""
    for (state, kind), group in itertools.groupby(
            sorted((cell for cell in cells if not cell.numbers and cell.seconds),
                   key=lambda cell: (cell.state, cell.kind)),
            lambda cell: (cell.state, cell.kind)):
        size = os.stat(arguments.path(kind)).st_size
        print(f"\n{kind}, {state}")
        for cell in group:
            middle = statistics.median(cell.seconds)
            cached = (f"{min(cell.shares):.0%} to {max(cell.shares):.0%} cached"
                      if cell.shares else "")
            print(f"  {cell.name:18} {middle:8.3f} s {size / middle / 1e9:7.2f} GB/s"
                  f"  ({min(cell.seconds):.3f} to {max(cell.seconds):.3f}, "
                  f"{len(cell.seconds)} times) {cached}")
    for (name, state), group in itertools.groupby(
            [cell for cell in cells if cell.numbers],
            lambda cell: (cell.name, cell.state)):
        show_grid(name, state, list(group), arguments)


def show_grid(name, state, group, arguments):
    size = os.stat(arguments.path("safetensors")).st_size
    print(f"\nsafetensors, {name}, {state}: GB/s by threads and MiB of a piece")
    print("  threads" + "".join(f"{piece:>9}" for piece in PIECES_MIB))
    for threads in THREADS:
        rates = [f"{size / statistics.median(cell.seconds) / 1e9:9.2f}"
                 if cell.seconds else f"{'-':>9}"
                 for cell in group if cell.numbers["threads"] == threads]
        print(f"  {threads:7}" + "".join(rates))


def first(arguments, usable_ones):
    """Each in a process of its own, the file in the page cache."""
    print()
    print("in a fresh process, cached")
    for kind, name in usable_ones:
        path = arguments.path(kind)
        prepare(path, "cached")
        done = subprocess.run(
            [sys.executable, __file__, "--one", kind, name, path, "--device",
             arguments.device], check=True, capture_output=True, text=True)
        seconds = json.loads(done.stdout.splitlines()[-1])
        print(f"  {kind:12} {name:18} {seconds:8.3f} s "
              f"{os.stat(path).st_size / seconds / 1e9:7.2f} GB/s", flush=True)


def many(arguments, found):
    """A checkpoint for each GPU, all of them in the page cache."""
    devices = [f"cuda:{number}" for number in range(arguments.gpus)]
    path = arguments.path("checkpoint")
    wanted = {f"{path}.{device}": device for device in devices}
    for other in wanted:
        os.link(path, other)
    ways = {name: lambda wanted, _device, load=load: [load(*pair) for pair in wanted.items()]
            for (kind, name), load in found.items() if kind == "checkpoint"}
    ways["cufile"] = lambda wanted, _device: cufile.checkpoint.load_files(
        wanted, progress=False)
    size = os.stat(path).st_size * len(devices)
    print(f"\ncheckpoints, one for each of {len(devices)} GPUs, cached")
    for name, load in ways.items():
        prepare(path, "cached")
        seconds = [timed(load, wanted, devices[-1])[0] for _ in range(arguments.runs)]
        middle = statistics.median(seconds)
        print(f"  {name:18} {middle:8.3f} s {size / middle / 1e9:7.2f} GB/s"
              f"  ({min(seconds):.3f} to {max(seconds):.3f})", flush=True)


def one(kind, name, path, device):
    """In a fresh process: the context first, then one load."""
    torch.zeros(1, device=device)
    print(json.dumps(timed(loaders()[kind, name], path, device)[0]))


def write_json(path, cells, arguments):
    rows = [cell.row(os.stat(arguments.path(cell.kind)).st_size)
            for cell in cells if cell.seconds]
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"torch": torch.__version__, "device": arguments.device,
                   "library": cufile.version(), "rows": rows}, file, indent=1)


def parse():
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n\n", maxsplit=1)[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--gib", type=float, default=2, help="size of each file")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--dir", default=os.environ.get("TMPDIR", "/var/tmp"))
    parser.add_argument("--seconds", type=float, default=80,
                        help="when to stop measuring, making the files included")
    parser.add_argument("--runs", type=int, default=5, help="rounds at most")
    parser.add_argument("--sweep", action="store_true",
                        help="threads and pieces too")
    parser.add_argument("--first", action="store_true",
                        help="in fresh processes too, beyond --seconds")
    parser.add_argument("--gpus", type=int, default=0,
                        help="so many GPUs at once too, beyond --seconds")
    parser.add_argument("--json", help="a file for all times")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    begin, arguments = time.monotonic(), parse()
    if arguments.one:
        one(*arguments.one, arguments.device)
        return
    with tempfile.TemporaryDirectory(dir=arguments.dir) as folder:
        arguments.path = lambda kind: os.path.join(folder, FILES[kind])
        count = make(folder, arguments.gib, arguments.device)
        print(f"{cufile.library_path()}, version {cufile.version()}\n"
              f"torch {torch.__version__}, {arguments.device}; {count} tensors, "
              f"{os.stat(arguments.path('checkpoint')).st_size / 1e9:.2f} GB")
        found = usable(arguments)
        cells = cells_of(arguments, found)
        print(f"{len(cells)} cells, {time.monotonic() - begin:.0f} s gone", flush=True)
        measure(cells, arguments, begin + arguments.seconds)
        show(cells, arguments)
        if arguments.json:
            write_json(arguments.json, cells, arguments)
        if arguments.first:
            first(arguments, found)
        if arguments.gpus:
            many(arguments, found)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Loading a model file: cufile.safetensors beside safetensors.torch.

    PYTHONPATH=python OPENCUFILE_LIBRARY=build/src/libcufile.so.0 \\
        python3 bench/python_load.py --gib 8 --device cuda:0

Makes a safetensors file of random bytes, checks that every loader gives the
same bits, and times them in turns: in one process after a first load
("again"), and in a fresh process whose GPU context exists ("first"), each with
the file in the page cache and dropped from it. The share of the file that was
in the page cache before the load is printed beside, because dropping is a
request that a kernel may ignore. Times are of load_file alone, until the GPU
is idle; the middle of the runs, then the least and the greatest.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import torch
from safetensors.torch import load_file as reference_load

import cufile
from cufile.safetensors import load_file, save_file

TENSOR_MIB = 96


def loaders(threads, piece_mib):
    """name: load(path, device)"""
    mine = {"threads": threads, "piece": piece_mib << 20, "framework": "torch",
            "progress": False}
    return {
        "safetensors.torch": lambda path, device: reference_load(path, device=device),
        "cufile": lambda path, device: load_file(path, device, **mine),
        "cufile direct": lambda path, device: load_file(path, device, direct=True,
                                                        **mine),
    }


def make(path, gib, device):
    """Large tensors and small ones, as models have them."""
    left, number, tensors = int(gib * (1 << 30)), 0, {}
    while left > 0:
        nbytes = min(left, TENSOR_MIB << 20 if number % 8 else 20480)
        nbytes -= nbytes % 2
        raw = torch.randint(0, 256, (max(nbytes, 2),), dtype=torch.uint8,
                            device=device)
        tensors[f"layers.{number}.weight"] = raw.view(torch.int16)
        left -= max(nbytes, 2)
        number += 1
    save_file(tensors, path, progress=False)
    with open(path, "rb") as file:
        os.fsync(file.fileno())
    return len(tensors)


def cached_share(path):
    """How much of the file is in the page cache, or None."""
    with cufile.open(path) as file:
        size = file.size()
        told = cufile.explain(file, "host", size)
    return None if told.cached_bytes is None else told.cached_bytes / size


def prepare(path, state):
    """Brings the file into the page cache, or asks for it to be dropped."""
    with open(path, "rb", buffering=0) as file:
        if state == "uncached":
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            return
        block = bytearray(64 << 20)
        while file.readinto(block):
            pass


def synchronize(device):
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)


def timed(load, path, device):
    synchronize(device)
    begin = time.perf_counter()
    tensors = load(path, device)
    synchronize(device)
    return time.perf_counter() - begin, tensors


def one(arguments):
    """In a fresh process: the context first, then one load."""
    torch.zeros(1, device=arguments.device)
    load = loaders(arguments.threads, arguments.piece)[arguments.one]
    print(json.dumps(timed(load, arguments.file, arguments.device)[0]))


def fresh(name, arguments):
    command = [sys.executable, __file__, "--one", name, "--file", arguments.file,
               "--device", arguments.device, "--threads", str(arguments.threads),
               "--piece", str(arguments.piece)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def compare(arguments):
    """Every loader gives the bits of the first one."""
    expected, rest = None, loaders(arguments.threads, arguments.piece)
    for name, load in rest.items():
        try:
            got = load(arguments.file, arguments.device)
        except OSError as error:
            print(f"{name}: left out, {error}")
            continue
        if expected is None:
            expected = got
            continue
        assert set(got) == set(expected), name
        for key, value in expected.items():
            assert got[key].dtype == value.dtype, (name, key)
            assert torch.equal(got[key], value), (name, key)
        print(f"{name}: {len(got)} tensors, bit by bit those of safetensors.torch")
        yield name
        del got
    yield "safetensors.torch"


def measure(name, load, kind, state, arguments):
    prepare(arguments.file, state)
    share = cached_share(arguments.file)
    if kind == "first":
        return fresh(name, arguments), share
    seconds, tensors = timed(load, arguments.file, arguments.device)
    del tensors
    return seconds, share


def table(names, arguments):
    size = os.stat(arguments.file).st_size
    every = loaders(arguments.threads, arguments.piece)
    for kind in ("again", "first"):
        for state in ("cached", "uncached"):
            times = {name: [] for name in every if name in names}
            shares = []
            for _ in range(arguments.runs):
                for name in times:
                    seconds, share = measure(name, every[name], kind, state, arguments)
                    times[name].append(seconds)
                    if share is not None:
                        shares.append(share)
            before = (f"{min(shares):.0%} to {max(shares):.0%}" if shares
                      else "not known")
            print(f"\n{kind}, {state} (in the page cache before: {before})")
            for name, seconds in times.items():
                middle = statistics.median(seconds)
                print(f"  {name:20} {middle:8.3f} s  {size / middle / 1e9:6.2f} GB/s"
                      f"  ({min(seconds):.3f} to {max(seconds):.3f})", flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--gib", type=float, default=4, help="size of the file")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--dir", default=os.environ.get("TMPDIR", "/var/tmp"))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--piece", type=int, default=64, help="MiB of a request")
    parser.add_argument("--file", help=argparse.SUPPRESS)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        one(arguments)
        return
    with tempfile.TemporaryDirectory(dir=arguments.dir) as folder:
        arguments.file = os.path.join(folder, "model.safetensors")
        count = make(arguments.file, arguments.gib, arguments.device)
        print(f"{cufile.library_path()}, version {cufile.version()}\n"
              f"torch {torch.__version__}, {arguments.device}; {count} tensors, "
              f"{os.stat(arguments.file).st_size / 1e9:.2f} GB, "
              f"{arguments.threads} threads, pieces of {arguments.piece} MiB")
        names = list(compare(arguments))
        table(names, arguments)


if __name__ == "__main__":
    main()

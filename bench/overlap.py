# SPDX-License-Identifier: Apache-2.0
"""What reading costs a GPU that computes, and what computing costs the reads.

    PYTHONPATH=python python3 bench/overlap.py \\
        --lib ours=build/src/libcufile.so.0 --lib nvidia=/path/libcufile.so

One stream of the GPU computes, a CUDA graph of matrix products (or of sums of
large vectors) again and again. Beside it one thread reads a cached file of
1 GiB into GPU memory in pieces: in stream order, eight at a time, without and
with promises that let them begin ahead of the stream, or by plain calls. Rows:
byhand is a pread into pinned memory and a copy in a stream, twice buffered;
limit is the copies alone, out of pinned memory. Each library runs in a process
of its own; in each, turns with reads stand between turns without, and the
middle of the rounds counts. `cost` is how much longer the computation takes
beside the reads, `alone` is what the same reads make on an idle GPU.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import torch

import cufile

GIB = 1 << 30
DEPTH = 8
FIXED = 7  # the numbers of an operation do not change once it is submitted
PRODUCTS = 12  # matrix products in a graph, 1.4 ms each on an H200
SIDE = 8192


class Compute:
    """A stream with a graph that fills the GPU."""

    def __init__(self, kind):
        self.stream = torch.cuda.Stream()
        if kind == "gemm":
            a, b = (torch.randn(SIDE, SIDE, device="cuda", dtype=torch.bfloat16)
                    for _ in range(2))
            out = torch.empty_like(a)
            step = lambda: torch.mm(a, b, out=out)
        else:
            a, b = (torch.randn(GIB // 4, device="cuda") for _ in range(2))
            out = torch.empty_like(a)
            step = lambda: torch.add(a, b, out=out)
        self.keep = a, b, out
        with torch.cuda.stream(self.stream):
            step()
        self.stream.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, stream=self.stream):
            for _ in range(PRODUCTS):
                step()

    def run(self, seconds):
        """Milliseconds a graph takes, for so long."""
        turns = 3
        while True:
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            with torch.cuda.stream(self.stream):
                begin.record()
                for _ in range(turns):
                    self.graph.replay()
                end.record()
            end.synchronize()
            ms = begin.elapsed_time(end)
            if ms >= seconds * 800:
                return ms / turns
            turns = int(turns * seconds * 1000 / ms) + 1


class Reader:
    """Reads a file of 1 GiB over and over, in one way."""

    def __init__(self, path, piece):
        self.piece = piece
        self.target = torch.empty(GIB, device="cuda", dtype=torch.uint8)
        self.stream = torch.cuda.Stream()
        self.file = self.open(path)

    def open(self, path):
        # unregistered, NVIDIA's library fails beyond the first operation
        self.registered = cufile.register(self.target)
        return cufile.open(path)

    def close(self):
        self.registered.close()
        self.file.close()

    def spans(self):
        """Lists of DEPTH offsets, through the file."""
        step = self.piece * DEPTH
        for start in range(0, GIB, step):
            yield range(start, min(start + step, GIB), self.piece)

    def turn(self, offsets):
        raise NotImplementedError

    def loop(self, stop, count):
        while not stop.is_set():
            for offsets in self.spans():
                self.turn(offsets)
                count[0] += len(offsets) * self.piece
                if stop.is_set():
                    break

    def is_right(self, data):
        self.target.zero_()
        torch.cuda.synchronize()
        for offsets in self.spans():
            self.turn(offsets)
        torch.cuda.synchronize()
        return torch.equal(self.target.cpu(), data)


class StreamReader(Reader):
    flags = None

    def __init__(self, path, piece):
        super().__init__(path, piece)
        self.order = cufile.Stream(self.stream, flags=self.flags)

    def turn(self, offsets):
        operations = [self.order.read(self.file, self.target, self.piece, at, at)
                      for at in offsets]
        for operation in operations:
            if operation.result() != self.piece:
                raise OSError("short read")


class AheadReader(StreamReader):
    flags = FIXED


class CallReader(Reader):
    def turn(self, offsets):
        for at in offsets:
            if self.file.read(self.target, self.piece, at, at,
                              wait=False) != self.piece:
                raise OSError("short read")


class HandReader(Reader):
    """pread and copy, twice buffered."""

    def open(self, path):
        self.pinned = [torch.empty(self.piece, dtype=torch.uint8, pin_memory=True)
                       for _ in range(2)]
        self.passed = [torch.cuda.Event() for _ in range(2)]
        self.turns = 0
        return open(path, "rb", buffering=0)

    def close(self):
        self.file.close()

    def fill(self, pinned, at):
        if os.preadv(self.file.fileno(), [pinned.numpy()], at) != self.piece:
            raise OSError("short read")

    def turn(self, offsets):
        for at in offsets:
            which = self.turns % 2
            self.turns += 1
            self.passed[which].synchronize()
            self.fill(self.pinned[which], at)
            with torch.cuda.stream(self.stream):
                self.target[at:at + self.piece].copy_(self.pinned[which],
                                                      non_blocking=True)
                self.passed[which].record()
        self.stream.synchronize()


class LimitReader(HandReader):
    def fill(self, pinned, at):
        pass

    def is_right(self, data):
        return True  # it moves no data to its place


WAYS = {"stream": StreamReader, "ahead": AheadReader, "call": CallReader}


def beside(reader, work):
    """(what work() returns, bytes a second read meanwhile)."""
    stop, count, failed = threading.Event(), [0], []

    def body():
        try:
            reader.loop(stop, count)
        except Exception as error:  # a reader that died is no reader
            failed.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    time.sleep(0.05)
    before, began = count[0], time.monotonic()
    answer = work()
    rate = (count[0] - before) / (time.monotonic() - began)
    stop.set()
    thread.join()
    if failed:
        raise failed[0]
    return answer, rate


def measure(reader, compute, options):
    costs, rates, idle = [], [], []
    for _ in range(options.rounds):
        first = compute.run(options.seconds)
        taken, rate = beside(reader, lambda: compute.run(options.seconds))
        last = compute.run(options.seconds)
        costs.append(taken / ((first + last) / 2) - 1)
        rates.append(rate)
        idle.append(beside(reader, lambda: time.sleep(options.seconds))[1])
    return {"cost": statistics.median(costs), "costs": costs,
            "GB/s": statistics.median(rates) / 1e9,
            "alone GB/s": statistics.median(idle) / 1e9}


def child(options):
    """One library, or byhand or limit: a row a way, size and computation."""
    with open(options.file, "rb") as file:
        data = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8)
    by_hand = {"byhand": HandReader, "limit": LimitReader}.get(options.child)
    ways = {"copy": by_hand} if by_hand else WAYS
    for kind in options.compute:
        compute = Compute(kind)
        for way, make in ways.items():
            if not by_hand and way not in options.ways:
                continue
            for mib in options.sizes:
                reader = make(options.file, int(mib * (1 << 20)))
                row = {"library": options.child, "compute": kind, "way": way,
                       "MiB": mib}
                try:
                    row["right"] = reader.is_right(data)
                    row.update(measure(reader, compute, options))
                except OSError as error:
                    row["failed"] = str(error)
                print(json.dumps(row), flush=True)
                reader.close()


def run_child(name, library, options):
    environment = dict(os.environ)
    if library:
        environment["OPENCUFILE_LIBRARY"] = library
    command = [sys.executable, __file__, "--child", name, "--file", options.file,
               "--seconds", str(options.seconds), "--rounds", str(options.rounds),
               "--sizes", *map(str, options.sizes), "--compute", *options.compute,
               "--ways", *options.ways]
    try:
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE,
                              text=True, timeout=options.patience)
        lines, end = done.stdout, f"ended with {done.returncode}"
    except subprocess.TimeoutExpired as hung:
        lines, end = (hung.stdout or b"").decode(), "hung"
    rows = [json.loads(line) for line in lines.splitlines() if line[:1] == "{"]
    wanted = len(options.sizes) * len(options.compute)
    if len(rows) < wanted * (len(options.ways) if library else 1):
        print(f"{name} {end} after {len(rows)} rows", file=sys.stderr)
    return rows


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lib", action="append", default=[],
                        metavar="NAME=PATH")
    parser.add_argument("--libs-only", action="store_true",
                        help="neither byhand nor limit")
    parser.add_argument("--sizes", nargs="+", type=float, default=[1, 16],
                        help="MiB of a piece")
    parser.add_argument("--compute", nargs="+", default=["gemm", "add"],
                        choices=["gemm", "add"])
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=list(WAYS))
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--patience", type=float, default=120)
    parser.add_argument("--file", help="made if not named")
    parser.add_argument("--json", help="all figures go there")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    options = parse()
    if options.child:
        child(options)
        return
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        if not options.file:
            options.file = os.path.join(folder, "overlap.data")
            with open(options.file, "wb") as file:
                for _ in range(16):
                    file.write(os.urandom(GIB // 16))
        libraries = [item.split("=", 1) for item in options.lib]
        by_hand = [] if options.libs_only else [["byhand", None], ["limit", None]]
        rows = []
        for name, library in libraries + by_hand:
            rows += run_child(name, library, options)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file)
    print("| compute | way | piece | library | cost | GB/s | alone GB/s | bytes |")
    print("|---|---|---|---|---|---|---|---|")
    for row in sorted(rows, key=lambda r: (r["compute"], r["way"], r["MiB"])):
        head = (f"| {row['compute']} | {row['way']} | {row['MiB']:g} MiB | "
                f"{row['library']} |")
        if "failed" in row:
            print(head, f"| | | {row['failed']} |")
        else:
            print(head, f"{row['cost'] * 100:.1f} % | {row['GB/s']:.3g} | "
                  f"{row['alone GB/s']:.3g} | "
                  f"{'right' if row['right'] else 'WRONG'} |")


if __name__ == "__main__":
    main()

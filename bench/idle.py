# SPDX-License-Identifier: Apache-2.0
"""How long a thread waits for an idle GPU, beside one that reads small pieces.

    PYTHONPATH=python OPENCUFILE_LIBRARY=build/src/libcufile.so.0 \\
        python3 bench/idle.py [BYTES]

A kernel of the library's that stays on the GPU holds up who waits for all of
the GPU; the environment (OCF_COMBINE=0) says whether there is one.
"""
import os
import sys
import tempfile
import threading
import time

import torch

import cufile

WAITS = 500
PAUSE = 0.0002  # seconds, of the thread that waits
SIZE = 64 << 20  # of the file


def summary(times):
    """Of seconds, in microseconds."""
    us = sorted(round(t * 1e6) for t in times)
    return f"p50 {us[len(us) // 2]} us, p99 {us[len(us) * 99 // 100]} us, max {us[-1]} us"


def wait_for_idle():
    times = []
    for _ in range(WAITS):
        begun = time.perf_counter()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begun)
        time.sleep(PAUSE)
    return times


class Reader(threading.Thread):
    """Reads pieces of a cached file, one after another, until it is stopped."""

    def __init__(self, path, piece):
        super().__init__()
        self.path, self.piece = path, piece
        self.stopped, self.count = False, 0

    def run(self):
        target = torch.empty(self.piece, dtype=torch.uint8, device="cuda")
        with cufile.open(self.path) as file:
            while not self.stopped:
                file.read(target, self.piece, self.count * self.piece % SIZE)
                self.count += 1

    def stop(self):
        self.stopped = True
        self.join()


def main():
    piece = int(sys.argv[1]) if len(sys.argv) > 1 else 4096
    with tempfile.NamedTemporaryFile(dir="/var/tmp") as file:
        file.write(os.urandom(SIZE))
        file.flush()
        torch.cuda.synchronize()
        print("alone: ", summary(wait_for_idle()))
        reader = Reader(file.name, piece)
        reader.start()
        time.sleep(0.2)
        times = wait_for_idle()
        reader.stop()
        print("beside:", summary(times), f"({reader.count} reads)")


if __name__ == "__main__":
    main()

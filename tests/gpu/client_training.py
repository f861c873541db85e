# SPDX-License-Identifier: Apache-2.0
"""Data-parallel training by PyTorch and NCCL, a process for each GPU, fed by cuFile.

Beside the training's kernels and collectives go reads in stream order, batches,
checkpoints, and memory that comes and goes. Then a step is a CUDA graph with its read
and its collective in it, and one process waits for the other inside a collective while
it goes on reading. Started with the library in LD_PRELOAD and a working directory as
the argument; 77 skips.
"""
import faulthandler
import os
import pathlib
import random
import sys
import threading

try:
    import torch
    import torch.distributed as dist
    import torch.multiprocessing
except ImportError:
    print("torch is not installed")
    sys.exit(77)
if not torch.cuda.is_available() or not dist.is_nccl_available():
    print("torch has no GPU, or no NCCL")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
import cufile  # noqa: E402

WIDTH = 1024
PART = 256 * WIDTH * 2  # bytes of a step's input
PARTS = 64
AHEAD = 3
PATIENCE = 100


class Rank:
    """What one process has: its GPU, the file, and the file's bytes on the GPU."""

    def __init__(self, rank, folder):
        self.rank, self.folder = rank, folder
        self.truth = torch.frombuffer(bytearray((folder / "data").read_bytes()),
                                      dtype=torch.uint8).cuda().view(PARTS, PART)
        self.file = cufile.open(folder / "data")
        self.wrong = torch.zeros((), dtype=torch.int64, device="cuda")
        self.model = torch.nn.Sequential(
            *(torch.nn.Linear(WIDTH, WIDTH) for _ in range(4))).cuda()
        self.stop = threading.Event()
        self.errors = []

    def part(self, step):
        return (step * 7 + self.rank) % PARTS

    def check(self, buffer, part):
        """Counts on the GPU, so that nobody waits."""
        self.wrong += (buffer != self.truth[part]).any()

    def thread(self, work):
        def run():
            try:
                torch.cuda.set_device(self.rank)
                work(random.Random())
            except Exception as error:  # pylint: disable=broad-except
                self.errors.append(error)
        result = threading.Thread(target=run)
        result.start()
        return result

    def read_batches(self, dice):
        side = torch.cuda.Stream()
        target = torch.empty(PARTS * PART // 4, dtype=torch.uint8, device="cuda")
        flat = self.truth.view(-1)
        while not self.stop.is_set():
            with cufile.Batch(32) as batch, torch.cuda.stream(side):
                places, at = [], 0
                for size in dice.choices((512, 4096, 65536, 100003, 524288), k=32):
                    if at + size > len(target):
                        break
                    offset = dice.randrange(len(flat) - size)
                    batch.read(self.file, target, size, offset, at, cookie=size)
                    places.append((at, offset, size))
                    at += size
                side.synchronize()
                batch.submit()
                for event in batch.wait():
                    assert event.nbytes == event.cookie, event
                for at, offset, size in places:
                    assert torch.equal(target[at:at + size], flat[offset:offset + size])

    def write_checkpoints(self, dice):
        side = torch.cuda.Stream()
        flat = self.truth.view(-1)
        path = self.folder / f"checkpoint{self.rank}"
        while not self.stop.is_set():
            with torch.cuda.stream(side), cufile.open(path, "w+") as file:
                at = dice.randrange(4 << 20)
                state = flat[at:at + (24 << 20) + 100].clone()
                back = torch.zeros_like(state)
                half = len(state) // 2
                side.synchronize()
                with cufile.register(state):
                    jobs = [file.pwrite(state, half, 0, 0),
                            file.pwrite(state, len(state) - half, half, half)]
                    assert sum(job.result() for job in jobs) == len(state)
                assert file.read(back) == len(state)
                assert torch.equal(state, back)

    def churn(self, dice):
        while not self.stop.is_set():
            kept = [torch.empty(dice.randrange(1, 64) << 20, device="cuda",
                                dtype=torch.uint8) for _ in range(4)]
            host = torch.empty(dice.randrange(1, 16) << 20, dtype=torch.uint8,
                               pin_memory=True)
            kept[0][:1].copy_(host[:1], non_blocking=True)
            del kept, host
            torch.cuda.empty_cache()


def loss_of(model, buffer):
    numbers = buffer.view(torch.int16).view(-1, WIDTH).float() / 32768
    return model(numbers).square().mean()


def train(self):
    """Reads in a side stream, AHEAD steps before their use."""
    model = torch.nn.parallel.DistributedDataParallel(self.model, bucket_cap_mb=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = torch.cuda.Stream()
    stream = cufile.Stream(loader)
    main = torch.cuda.current_stream()
    buffers = [torch.empty(PART, dtype=torch.uint8, device="cuda") for _ in range(AHEAD)]
    free = [torch.cuda.Event() for _ in buffers]
    full = [torch.cuda.Event() for _ in buffers]

    def fetch(step):
        slot = step % AHEAD
        loader.wait_event(free[slot])
        operations.append(stream.read(self.file, buffers[slot], PART,
                                      self.part(step) * PART))
        full[slot].record(loader)

    operations = []
    steps = 150
    loader.wait_stream(main)
    for step in range(AHEAD):
        fetch(step)
    for step in range(steps):
        slot = step % AHEAD
        main.wait_event(full[slot])
        self.check(buffers[slot], self.part(step))
        loss_of(model, buffers[slot]).backward()
        optimizer.step()
        optimizer.zero_grad()
        free[slot].record(main)
        if step + AHEAD < steps:
            fetch(step + AHEAD)
        if step % 50 == 49:
            other = dist.new_group()
            dist.all_reduce(torch.ones(1, device="cuda"), group=other)
            dist.destroy_process_group(other)
    assert all(operation.result() == PART for operation in operations)


def replay(self):
    """A step is a graph: the read, its use, and the sum over the GPUs."""
    buffer = torch.empty(PART, dtype=torch.uint8, device="cuda")
    total = torch.zeros(1, dtype=torch.int64, device="cuda")
    part = self.part(0)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.stream(side):
        dist.all_reduce(total)
        torch.cuda.synchronize()
        stream = cufile.Stream(side)
        with torch.cuda.graph(graph, stream=side,
                              capture_error_mode="thread_local"):
            buffer.zero_()
            operation = stream.read(self.file, buffer, PART, part * PART)
            self.check(buffer, part)
            total.copy_(buffer.long().sum().view(1))
            dist.all_reduce(total)
        for _ in range(50):
            graph.replay()
    side.synchronize()
    parts = [(rank - self.rank + part) % PARTS for rank in range(dist.get_world_size())]
    assert total.item() == sum(self.truth[i].long().sum().item() for i in parts)
    assert operation.result() == PART
    del graph


def wait_inside(self):
    """The first rank's stream is inside a collective, and what others do goes on."""
    store = dist.distributed_c10d._get_default_store()
    number = torch.ones(1, device="cuda")
    buffer, again = torch.empty((2, PART), dtype=torch.uint8, device="cuda")
    free = torch.cuda.Stream()
    torch.cuda.synchronize()
    for turn in range(5):
        if self.rank == 0:
            dist.all_reduce(number)
            behind = cufile.Stream(torch.cuda.current_stream())
            operation = behind.read(self.file, buffer, PART, turn * PART)
            self.check(buffer, turn)
            aside = cufile.Stream(free).read(self.file, again, PART, turn * PART)
            with torch.cuda.stream(free):
                for size in (4096, 65536, PART):
                    target = torch.empty(size, dtype=torch.uint8, device="cuda")
                    with cufile.register(target):
                        assert self.file.read(target, size, turn * PART) == size
                    assert torch.equal(target, self.truth[turn][:size])
                assert aside.result() == PART
                self.check(again, turn)
            store.set(f"go on {turn}", "1")
            assert operation.result() == PART
        else:
            store.wait([f"go on {turn}"])
            dist.all_reduce(number)
        torch.cuda.synchronize()


def main(rank, world, folder):
    faulthandler.dump_traceback_later(PATIENCE, exit=True)
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=world,
                            init_method=f"file://{folder}/meeting",
                            device_id=torch.device("cuda", rank))
    self = Rank(rank, folder)
    for phase in (train, replay, wait_inside):
        self.stop.clear()
        others = [] if phase is wait_inside else \
            [self.thread(work) for work in
             (self.read_batches, self.read_batches, self.write_checkpoints)
             + ((self.churn,) if phase is train else ())]
        phase(self)
        self.stop.set()
        for other in others:
            other.join()
        assert not self.errors, self.errors
        assert self.wrong.item() == 0, (phase, self.wrong)
        dist.barrier()
        print(f"rank {rank}: {phase.__name__}", flush=True)
    self.file.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    place = pathlib.Path(sys.argv[1]) / "training"
    place.mkdir()
    (place / "data").write_bytes(os.urandom(PARTS * PART))
    gpus = min(torch.cuda.device_count(), 4)
    torch.multiprocessing.spawn(main, (gpus, place), gpus)
    print(f"training on {gpus} GPUs: data equal")

# SPDX-License-Identifier: Apache-2.0
"""Worker processes, forked and spawned, and the examples of PyTorch."""
import multiprocessing
import os
import subprocess
import sys

import pytest

from conftest import ROOT

SAMPLE = 300007


def load(path):
    """What a worker of a data loader does."""
    import cufile as package
    array = bytearray(SAMPLE)
    with package.open(path) as file:
        done = file.pread(array).result() if hash(path) % 2 else file.read(array)
    assert done == SAMPLE
    return bytes(array)


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_four_workers_read_what_is_in_the_files(cufile, data_file, monkeypatch, start):
    # spawned workers find the package as this process did
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "python"))
    files = [data_file(SAMPLE, f"{i:02}") for i in range(24)]
    # the parent's library is open, its pool has threads, a handle is registered
    with cufile.open(files[0][0]) as file:
        file.pread(bytearray(10)).result()
        with multiprocessing.get_context(start).Pool(4) as pool:
            for _ in range(3):
                got = pool.map(load, [str(path) for path, _ in files], chunksize=1)
                assert got == [data for _, data in files]
        array = bytearray(SAMPLE)
        assert file.read(array) == SAMPLE and bytes(array) == files[0][1]


def test_a_forked_child_of_a_process_with_a_gpu_reads_to_host_memory(
        cufile, gpu, data_file):
    path, data = data_file(SAMPLE)
    array = gpu.array(SAMPLE)
    with cufile.open(path) as file:
        assert file.read(array) == SAMPLE
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if load(str(path)) == data else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert array.get() == data


def example(name, *arguments):
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run(
        [sys.executable, "-B", str(ROOT / "examples/python" / name), *arguments],
        env=env, check=False, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def torch(cufile):
    return pytest.importorskip("torch")


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_the_dataset_loads_with_four_workers(torch, start):
    said = example("gds_dataset.py", "--device", "cpu", "--start", start)
    assert f"40 samples on cpu by 4 workers ({start}): equal" in said


HAND_OVER = """
import torch, torch.multiprocessing as mp

def work(queue, done):
    queue.put(torch.ones(4, device="cuda"))
    done.wait(60)

if __name__ == "__main__":
    spawn = mp.get_context("spawn")
    queue, done = spawn.Queue(), spawn.Event()
    process = spawn.Process(target=work, args=(queue, done))
    process.start()
    assert queue.get(timeout=60).sum().item() == 4
    done.set()
    process.join()
"""


@pytest.mark.parametrize("workers", ["0", "4"])
def test_the_dataset_loads_to_a_gpu(torch, tmp_path, workers):
    if os.environ.get("OCF_FAKECUDA") or not torch.cuda.is_available():
        pytest.skip("torch sees no GPU")
    if workers != "0":
        script = tmp_path / "hand_over.py"
        script.write_text(HAND_OVER)
        done = subprocess.run([sys.executable, script], check=False,
                              capture_output=True, text=True, timeout=200)
        if done.returncode:
            pytest.skip("PyTorch cannot hand GPU memory from process to process "
                        "here: " + done.stderr.strip().rsplit("\n", 1)[-1])
    said = example("gds_dataset.py", "--device", "cuda:0", "--workers", workers)
    assert "equal to the files" in said


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_the_ctypes_loader_loads(torch, device):
    if device != "cpu" and (os.environ.get("OCF_FAKECUDA")
                            or not torch.cuda.is_available()):
        pytest.skip("torch sees no GPU")
    assert "equal to the file" in example("gds_load_tensor.py", device)

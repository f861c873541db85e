# SPDX-License-Identifier: Apache-2.0
"""A PyTorch dataset that reads samples straight into the memory of a device,
and a DataLoader with worker processes over it.

    python3 gds_dataset.py --workers 4                  on the first GPU, or on
                                                        the CPU without one
    python3 gds_dataset.py --device cpu --start fork

It makes files of random data, loads them batch by batch, and compares every
batch with the files. A process that has used CUDA cannot fork workers that
use it too, so workers for a GPU are spawned.
"""
import argparse
import os
import tempfile

import torch

import cufile

SHAPE = (256, 512)
SAMPLE_BYTES = SHAPE[0] * SHAPE[1] * 2


class GDSDataset(torch.utils.data.Dataset):
    """The files *.bin of a folder; each is a sample of bfloat16."""

    def __init__(self, folder, device="cuda:0"):
        self.files = sorted(os.path.join(folder, name)
                            for name in os.listdir(folder)
                            if name.endswith(".bin"))
        self.device = device

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        tensor = torch.empty(SHAPE, dtype=torch.bfloat16, device=self.device)
        with cufile.open(self.files[index], "r") as file:
            file.read(tensor, exact=True)
        return tensor


def make_samples(folder, count):
    """Files of random bytes; returns them as one tensor."""
    samples = torch.randint(0, 256, (count, SAMPLE_BYTES), dtype=torch.uint8)
    for number, sample in enumerate(samples):
        with cufile.open(os.path.join(folder, f"{number:04}.bin"), "w") as file:
            file.write(sample)
    return samples


def load_and_compare(folder, samples, arguments):
    loader = torch.utils.data.DataLoader(
        GDSDataset(folder, arguments.device),
        batch_size=arguments.batch,
        num_workers=arguments.workers,
        multiprocessing_context=arguments.start if arguments.workers else None,
        prefetch_factor=2 if arguments.workers else None)
    seen = 0
    for batch in loader:
        # already on the device: nothing is copied from the CPU
        got = batch.view(torch.uint8).reshape(len(batch), -1).cpu()
        assert torch.equal(got, samples[seen:seen + len(batch)]), "data differ"
        seen += len(batch)
    assert seen == len(samples)
    return seen


def main():
    parser = argparse.ArgumentParser(description="load samples through cuFile")
    parser.add_argument("--device", default="cuda:0" if torch.cuda.is_available()
                        else "cpu")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--samples", type=int, default=40)
    parser.add_argument("--start", choices=("spawn", "fork"))
    arguments = parser.parse_args()
    if arguments.start is None:
        arguments.start = "fork" if arguments.device == "cpu" else "spawn"
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/var/tmp")) as folder:
        samples = make_samples(folder, arguments.samples)
        seen = load_and_compare(folder, samples, arguments)
    print(f"{seen} samples on {arguments.device} by {arguments.workers} workers "
          f"({arguments.start}): equal to the files")


if __name__ == "__main__":
    main()

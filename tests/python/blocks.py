# SPDX-License-Identifier: Apache-2.0
"""GPU memory without PyTorch, for the loaders of all formats."""
import weakref


class Blocks:
    """What frameworks of tests have in common: it has every dtype, and makes
    blocks of the GPUs that it is given, or of one for all devices. made has
    weak references to them."""

    def __init__(self, gpus):
        self.gpus, self.made = gpus, []

    def check(self, tensor):
        return None

    lacks = check

    def empty(self, nbytes, device):
        gpu = self.gpus[device] if isinstance(self.gpus, list) else self.gpus
        block = gpu.array(nbytes)
        self.made.append(weakref.ref(block))
        return block

    @staticmethod
    def part(block, start, stop):
        """These bytes of a block, and nothing beside it has changed."""
        assert block.guards_whole()
        return block.gpu.get(block.address + start, stop - start)


class ModelBlocks(Blocks):
    """For safetensors files: a tensor is its bytes."""

    def view(self, block, start, tensor):
        return self.part(block, start, start + tensor.stop - tensor.start)


class CheckpointBlocks(Blocks):
    """For checkpoints: a tensor is (dtype, bytes of its storage, offset, shape,
    strides)."""

    def storage(self, block, start, stop):
        return self.part(block, start, stop)

    def tensor(self, storage, dtype, offset, shape, strides, requires_grad):
        return dtype, storage, offset, shape, strides

    def parameter(self, tensor, requires_grad):
        return ("parameter", *tensor)

    def dtype(self, name):
        return name

    def size(self, shape):
        return shape

    def device(self, name):
        return name

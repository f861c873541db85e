# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of torch.save straight into GPU memory, and nothing in them run.

    from cufile.checkpoint import load_file
    state = load_file("checkpoint.pt", device="cuda:0")
"""
from ._errors import CheckpointError
from ._frameworks import Framework
from ._load import load_file, load_files
from ._save import save_file

__all__ = ["CheckpointError", "Framework", "load_file", "load_files",
           "save_file"]

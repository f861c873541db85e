# SPDX-License-Identifier: Apache-2.0
"""Model files straight into GPU memory.

    from cufile.safetensors import load_file
    weights = load_file("model.safetensors", device="cuda:0")
"""
from ._frameworks import Framework
from ._header import Header, SafetensorsError, Tensor, read_header
from ._index import load_sharded
from ._load import load_file, load_files
from ._save import save_file

__all__ = ["Framework", "Header", "SafetensorsError", "Tensor", "load_file",
           "load_files", "load_sharded", "read_header", "save_file"]

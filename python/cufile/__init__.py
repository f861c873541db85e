# SPDX-License-Identifier: Apache-2.0
"""cufile: files to and from GPU memory, for Python.

    import cufile, torch
    tensor = torch.empty(1 << 20, device="cuda")
    with cufile.open("data.bin") as file:
        file.read(tensor)

Arrays of PyTorch, CuPy, Numba and NumPy work as they are, and so does every
object with __cuda_array_interface__, DLPack or the buffer protocol. The package
needs libcufile.so.0 and nothing else. docs/python.md describes it.
"""
from . import driver, stats
from ._batch import Batch, Event
from ._compat import CuFile, CuFileDriver
from ._errors import CuFileError
from ._explain import Explanation, Refusal, explain
from ._file import File, open
from ._library import path as library_path, version
from ._memory import Memory
from ._registration import Registration, register
from ._stream import Operation, Stream
from .driver import Properties, parameters, properties

__version__ = "0.1.0"

__all__ = [
    "Batch", "CuFile", "CuFileDriver", "CuFileError", "Event", "Explanation",
    "File", "Memory", "Operation", "Properties", "Refusal", "Registration",
    "Stream", "driver", "explain", "library_path", "open", "parameters",
    "properties", "register", "stats", "version",
]

# SPDX-License-Identifier: Apache-2.0
"""What is raised for a file that cannot be loaded, or an object not saved."""
import os
from typing import Any, Tuple

from .._errors import Path


class CheckpointError(ValueError):
    """A file is no checkpoint of PyTorch's, or not one that can be loaded.

    The message names the file, the record and the byte or the numbers.
    """

    def __init__(self, path: Path, what: str) -> None:
        name = path if isinstance(path, int) else os.fsdecode(path)
        super().__init__(f"{name}: {what}")
        self.path = path
        self.what = what

    def __reduce__(self) -> Tuple[Any, ...]:
        return (type(self), (self.path, self.what))

# SPDX-License-Identifier: Apache-2.0
"""What is raised for a file that cannot be loaded, or an object not saved."""
from .._errors import FormatError


class CheckpointError(FormatError):
    """A file is no checkpoint of PyTorch's, or not one that can be loaded.

    The message names the file, the record and the byte or the numbers.
    """

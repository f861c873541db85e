# SPDX-License-Identifier: Apache-2.0
"""The dtypes of tensors in files, by the names that PyTorch, NumPy, CuPy and
ml_dtypes give them."""
from typing import Any, Optional

# dtype: bytes of an element
DTYPES = {"bool": 1, "uint8": 1, "int8": 1, "int16": 2, "uint16": 2, "int32": 4,
          "uint32": 4, "int64": 8, "uint64": 8, "float16": 2, "bfloat16": 2,
          "float32": 4, "float64": 8, "complex32": 4, "complex64": 8,
          "complex128": 16, "float8_e4m3fn": 1, "float8_e5m2": 1,
          "float8_e4m3fnuz": 1, "float8_e5m2fnuz": 1, "float8_e8m0fnu": 1,
          "float4_e2m1fn_x2": 1}


def name_of(dtype: Any) -> Optional[str]:
    """The name of an array's dtype: "torch.float32" is PyTorch's way to say
    what NumPy calls "float32". None: no dtype of files, or of the other byte
    order."""
    name = str(dtype).rsplit(".", 1)[-1]
    if name not in DTYPES or getattr(dtype, "byteorder", "=") == ">":
        return None
    return name

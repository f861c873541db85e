# SPDX-License-Identifier: Apache-2.0
"""The dtypes of PyTorch that a checkpoint can hold, by its own names."""

# dtype: bytes of an element
DTYPES = {"bool": 1, "uint8": 1, "int8": 1, "int16": 2, "uint16": 2, "int32": 4,
          "uint32": 4, "int64": 8, "uint64": 8, "float16": 2, "bfloat16": 2,
          "float32": 4, "float64": 8, "complex32": 4, "complex64": 8,
          "complex128": 16, "float8_e4m3fn": 1, "float8_e5m2": 1,
          "float8_e4m3fnuz": 1, "float8_e5m2fnuz": 1, "float8_e8m0fnu": 1,
          "float4_e2m1fn_x2": 1}

# class of storage: its dtype; None: bytes, whose tensors say theirs
STORAGES = {"BoolStorage": "bool", "ByteStorage": "uint8", "CharStorage": "int8",
            "ShortStorage": "int16", "IntStorage": "int32", "LongStorage": "int64",
            "HalfStorage": "float16", "BFloat16Storage": "bfloat16",
            "FloatStorage": "float32", "DoubleStorage": "float64",
            "ComplexFloatStorage": "complex64",
            "ComplexDoubleStorage": "complex128", "UntypedStorage": None}

MAY_HAVE_GRADIENTS = ("float", "bfloat", "complex")

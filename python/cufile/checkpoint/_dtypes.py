# SPDX-License-Identifier: Apache-2.0
"""The storages of a checkpoint's pickle, and their dtypes."""

# class of storage: its dtype; None: bytes, whose tensors say theirs
STORAGES = {"BoolStorage": "bool", "ByteStorage": "uint8", "CharStorage": "int8",
            "ShortStorage": "int16", "IntStorage": "int32", "LongStorage": "int64",
            "HalfStorage": "float16", "BFloat16Storage": "bfloat16",
            "FloatStorage": "float32", "DoubleStorage": "float64",
            "ComplexFloatStorage": "complex64",
            "ComplexDoubleStorage": "complex128", "UntypedStorage": None}

MAY_HAVE_GRADIENTS = ("float", "bfloat", "complex")

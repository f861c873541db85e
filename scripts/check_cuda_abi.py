# SPDX-License-Identifier: Apache-2.0
"""Every constant of seam/cuda_abi.h is compared in tests/abi/test_cuda_abi.c."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]


def main():
    header = (ROOT / "src/seam/cuda_abi.h").read_text()
    test = (ROOT / "tests/abi/test_cuda_abi.c").read_text()
    ours = set(re.findall(r"^\s*(?:#define )?(CF_CU_\w+)", header, re.M))
    left_out = sorted(ours - set(re.findall(r"SAME(?:_POINTER)?\((CF_CU_\w+),", test)))
    for name in left_out:
        print(f"tests/abi/test_cuda_abi.c: {name} is not compared")
    return 1 if left_out or not ours else 0


if __name__ == "__main__":
    sys.exit(main())

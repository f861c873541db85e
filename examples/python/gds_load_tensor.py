# SPDX-License-Identifier: Apache-2.0
"""A file into a PyTorch tensor by the C calls alone, through ctypes.

    python3 gds_load_tensor.py [DEVICE]

For those who want each call in sight; cufile.open does the same and checks
more. Every CUfileError_t has to be looked at: these calls do not raise.
OPENCUFILE_LIBRARY may name the library. Without it the package cufile is asked
where it has its own, for "libcufile.so.0" would be the copy that PyTorch brings.
"""
import ctypes
import math
import os
import sys
import tempfile

import torch

import cufile


class Error(ctypes.Structure):
    """CUfileError_t"""
    _fields_ = [("err", ctypes.c_int), ("cu_err", ctypes.c_int)]


class HandleOf(ctypes.Union):
    _fields_ = [("fd", ctypes.c_int), ("handle", ctypes.c_void_p)]


class Descr(ctypes.Structure):
    """CUfileDescr_t; type 1 is a file descriptor"""
    _fields_ = [("type", ctypes.c_int), ("handle", HandleOf),
                ("fs_ops", ctypes.c_void_p)]


def load_library():
    name = os.environ.get("OPENCUFILE_LIBRARY") or cufile.library_path()
    library = ctypes.CDLL(name, use_errno=True)
    for call, answer, arguments in (
            ("cuFileHandleRegister", Error, [ctypes.c_void_p, ctypes.c_void_p]),
            ("cuFileHandleDeregister", None, [ctypes.c_void_p]),
            ("cuFileBufRegister", Error, [ctypes.c_void_p, ctypes.c_size_t,
                                          ctypes.c_int]),
            ("cuFileBufDeregister", Error, [ctypes.c_void_p]),
            ("cuFileRead", ctypes.c_ssize_t, [ctypes.c_void_p, ctypes.c_void_p,
                                              ctypes.c_size_t, ctypes.c_int64,
                                              ctypes.c_int64])):
        function = getattr(library, call)
        function.restype, function.argtypes = answer, arguments
    return library


def check(status, call):
    if status.err:
        raise RuntimeError(f"{call}: cuFile error {status.err}, "
                           f"CUDA error {status.cu_err}")


def open_direct(path):
    """O_DIRECT where the file system has it; the library works without."""
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECT)
    except OSError:
        return os.open(path, os.O_RDONLY)


def gds_load_tensor(library, path, shape, dtype, device):
    """The first bytes of a file as a tensor."""
    tensor = torch.empty(shape, dtype=dtype, device=device)
    nbytes = tensor.element_size() * math.prod(shape)
    if tensor.is_cuda:
        # the memory may still be in use by work queued before
        torch.cuda.current_stream(tensor.device).synchronize()
    fd = open_direct(path)
    try:
        handle = ctypes.c_void_p()
        descr = Descr(1, HandleOf(fd=fd), None)
        check(library.cuFileHandleRegister(ctypes.byref(handle),
                                           ctypes.byref(descr)),
              "cuFileHandleRegister")
        try:
            check(library.cuFileBufRegister(tensor.data_ptr(), nbytes, 0),
                  "cuFileBufRegister")
            done = library.cuFileRead(handle, tensor.data_ptr(), nbytes, 0, 0)
            number = ctypes.get_errno()
            check(library.cuFileBufDeregister(tensor.data_ptr()),
                  "cuFileBufDeregister")
        finally:
            library.cuFileHandleDeregister(handle)
    finally:
        os.close(fd)
    if done < 0:
        raise OSError(number, f"cuFileRead answered {done}", path)
    if done != nbytes:
        raise EOFError(f"{path} has {done} bytes, not {nbytes}")
    return tensor


def main():
    device = sys.argv[1] if len(sys.argv) > 1 else (
        "cuda:0" if torch.cuda.is_available() else "cpu")
    library, shape = load_library(), (1000, 512)
    expected = torch.randn(shape).bfloat16()
    with tempfile.NamedTemporaryFile(dir=os.environ.get("TMPDIR", "/var/tmp")) as file:
        file.write(expected.view(torch.uint8).numpy().tobytes())
        file.flush()
        tensor = gds_load_tensor(library, file.name, shape, torch.bfloat16, device)
    same = torch.equal(tensor.cpu().view(torch.uint8), expected.view(torch.uint8))
    print(f"{tuple(shape)} bfloat16 on {tensor.device}:",
          "equal to the file" if same else "DIFFERENT from the file")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())

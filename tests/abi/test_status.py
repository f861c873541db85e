# SPDX-License-Identifier: Apache-2.0
"""Every call that docs/status.md puts off answers what the page says.

The third column of a `later` row begins with the code the call answers to
valid arguments, or with `void`. Here are those arguments for each of them, and
the codes of arguments that are refused already.
"""
import ctypes as C
import os

import pytest

from conftest import status_rows

LATER = {call: answer for call, (state, answer) in status_rows().items()
         if state == "later"}


class Error(C.Structure):
    _fields_ = [("err", C.c_int), ("cu_err", C.c_int)]


class Descr(C.Structure):
    _fields_ = [("type", C.c_int), ("pad", C.c_int), ("fd", C.c_int),
                ("pad2", C.c_int), ("fs_ops", C.c_void_p)]


class Params(C.Structure):
    _fields_ = [("mode", C.c_int), ("base", C.c_void_p), ("file_off", C.c_long),
                ("buf_off", C.c_long), ("size", C.c_size_t), ("fh", C.c_void_p),
                ("opcode", C.c_int), ("cookie", C.c_void_p)]


class Cufile:
    """The library, open, with one registered file and one host buffer."""

    def __init__(self, path, scratch):
        self.lib = C.CDLL(path)
        self.scratch = scratch
        self.file = open(scratch / "data", "w+b")
        self.file.write(bytes(8192))
        self.file.flush()
        self.buffer = C.create_string_buffer(4096)
        self.handle = C.c_void_p()
        self.ask("cuFileDriverOpen", (), 0)
        descr = Descr(type=1, fd=self.file.fileno())
        self.ask("cuFileHandleRegister", (C.byref(self.handle), C.byref(descr)), 0)

    def close(self):
        self.lib.cuFileHandleDeregister(self.handle)
        self.ask("cuFileDriverClose_v2", (), 0)
        self.file.close()

    def ask(self, call, arguments, expected):
        function = getattr(self.lib, call)
        function.restype = Error
        answer = function(*arguments)
        assert (answer.err, answer.cu_err) == (expected, 0), call

    def async_arguments(self):
        return (self.handle, self.buffer, C.byref(C.c_size_t(4096)),
                C.byref(C.c_long(0)), C.byref(C.c_long(0)),
                C.byref(C.c_ssize_t(0)), None)

    def arguments(self, call):
        entry = Params(1, C.addressof(self.buffer), 0, 0, 4096, self.handle, 0, 0)
        events = C.create_string_buffer(24)
        return {
            "cuFileBatchIOSetUp": (C.byref(C.c_void_p()), 4),
            "cuFileBatchIOSubmit": (None, 1, C.byref(entry), 0),
            "cuFileBatchIOGetStatus": (None, 0, C.byref(C.c_uint(1)), events, None),
            "cuFileBatchIOCancel": (None,),
            "cuFileBatchIODestroy": (None,),
            "cuFileReadAsync": self.async_arguments(),
            "cuFileWriteAsync": self.async_arguments(),
            "cuFileStreamRegister": (None, 0),
            "cuFileStreamDeregister": (None,),
        }[call]


@pytest.fixture(scope="module")
def cufile(library, sanitized, tmp_path_factory):
    if sanitized:
        pytest.skip("a sanitized library cannot be loaded into Python")
    scratch = tmp_path_factory.mktemp("status")
    config = scratch / "cufile.json"
    config.write_text("{}")
    os.environ["CUFILE_ENV_PATH_JSON"] = str(config)
    opened = Cufile(library, scratch)
    yield opened
    opened.close()


@pytest.mark.parametrize("call", sorted(LATER))
def test_call_put_off_answers_its_documented_code(cufile, call):
    answer = LATER[call].split()[0].rstrip(",;:")
    arguments = cufile.arguments(call)
    if answer == "void":
        function = getattr(cufile.lib, call)
        function.restype = None
        function(*arguments)
    else:
        cufile.ask(call, arguments, int(answer))


REFUSED = [
    ("cuFileBatchIOGetStatus", "a NULL count",
     lambda: (None, 0, None, C.create_string_buffer(24), None)),
    ("cuFileBatchIOGetStatus", "no room for events",
     lambda: (None, 0, C.byref(C.c_uint(1)), None, None)),
    ("cuFileBatchIOGetStatus", "more wanted than there is room for",
     lambda: (None, 2, C.byref(C.c_uint(1)), C.create_string_buffer(48), None)),
]


@pytest.mark.parametrize(
    "call,arguments",
    [pytest.param(call, make, id=f"{call} with {what}")
     for call, what, make in REFUSED if call in LATER])
def test_call_put_off_refuses_bad_arguments(cufile, call, arguments):
    cufile.ask(call, arguments(), 5022)

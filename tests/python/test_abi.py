# SPDX-License-Identifier: Apache-2.0
"""The package's layouts, codes and numbers are those of cufile.h."""
import ctypes
import re

import pytest

from conftest import ROOT

HEADER = (ROOT / "include/cufile.h").read_text()
OURS = (ROOT / "include/opencufile.h").read_text()
STRUCTURES = {
    "CUfileError_t": "Error", "CUfileDescr_t": "Descr",
    "CUfileDrvProps_t": "DrvProps", "CUfileIOParams_t": "IOParams",
    "CUfileIOEvents_t": "IOEvents", "CUfileOpCounter_t": "OpCounter",
    "CUfileStatsLevel1_t": "StatsLevel1", "CUfileStatsLevel2_t": "StatsLevel2",
    "CUfilePerGpuStats_t": "PerGpuStats", "CUfileStatsLevel3_t": "StatsLevel3",
    "struct timespec": "Timespec",
}


# of 1.19, which the header does not have
LONGER = {"StatsLevel1Of119": 624, "StatsLevel2Of119": 1136,
          "StatsLevel3Of119": 5112}


@pytest.fixture(scope="module")
def abi(cufile):
    return cufile._abi


def offset_of(structure, dotted):
    offset = 0
    for name in dotted.split("."):
        field = getattr(structure, name)
        offset += field.offset
        structure = dict((f[0], f[1]) for f in structure._fields_)[name]
    return offset


def test_every_structure_has_the_size_that_the_header_guards(abi):
    sizes = dict(re.findall(r"CUFILE_SIZE\(([\w ]+), (\d+)\)", HEADER))
    for name, ours in STRUCTURES.items():
        assert ctypes.sizeof(getattr(abi, ours)) == int(sizes[name]), name
    for ours, size in LONGER.items():
        assert ctypes.sizeof(getattr(abi, ours)) == size, ours


def test_every_field_is_where_the_header_guards_it(abi):
    rows = re.findall(r"CUFILE_AT\((\w+), ([\w.]+), (\d+)\)", HEADER)
    checked = 0
    for structure, field, offset in rows:
        if structure in STRUCTURES:
            ours = getattr(abi, STRUCTURES[structure])
            assert offset_of(ours, field) == int(offset), (structure, field)
            checked += 1
    assert checked > 100


def test_every_code_has_the_name_and_text_of_the_header(cufile):
    rows = re.findall(r'CUFILE_OP\((\d+), (\w+),\s*\\?\s*"([^"]*)"\)', HEADER)
    codes = {int(code): (name, text) for code, name, text in rows if code != "0"}
    assert len(codes) >= 48
    assert cufile._errors.CODES == codes


@pytest.mark.parametrize("table, enum, prefix", [
    ("SIZE_PARAMETERS", "CUFileSizeTConfigParameter_t", "CUFILE_PARAM_"),
    ("BOOL_PARAMETERS", "CUFileBoolConfigParameter_t", "CUFILE_PARAM_"),
    ("STRING_PARAMETERS", "CUFileStringConfigParameter_t", "CUFILE_PARAM_")])
def test_every_parameter_has_the_number_of_the_header(abi, table, enum, prefix):
    body = re.search(r"typedef enum %s \{(.*?)\}" % enum, HEADER, re.S)[1]
    numbers = {name[len(prefix):]: int(number)
               for name, number in re.findall(r"(\w+) = (\d+)", body)}
    assert {name: number for number, name
            in enumerate(getattr(abi, table))} == numbers


def test_every_batch_status_has_the_number_of_the_header(abi):
    body = re.search(r"typedef enum CUFILEStatus_enum \{(.*?)\}", HEADER, re.S)[1]
    numbers = {int(number, 16): name for name, number
               in re.findall(r"CUFILE_(\w+) = (0x\w+)", body)}
    assert abi.STATUS_NAMES == numbers


def test_every_call_of_the_package_is_in_the_library(abi, cufile):
    for name in abi.CALLS:
        getattr(cufile._library.get(), name)
        assert re.search(r"\b%s\(" % name, HEADER + OURS), name


def test_streams_have_the_flags_of_the_header(cufile):
    flags = dict(re.findall(r"#define CU_FILE_STREAM_(\w+) (\d+)", HEADER))
    assert flags
    for name, number in flags.items():
        assert getattr(cufile.Stream, name) == int(number)
    assert cufile.Stream.FIXED == sum(
        int(number) for name, number in flags.items() if name.startswith("FIXED_"))


def fields_in_order(text, structure):
    """Names of a struct's members, by its text in a header."""
    body = re.search(r"typedef struct %s \{(.*?)\n\} " % structure, text, re.S)[1]
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
    return [re.split(r"\W+", line.split("[")[0].strip())[-1]
            for line in body.split(";") if line.strip()]


@pytest.mark.parametrize("structure, ours", [("ocf_explain", "Explain"),
                                             ("ocf_refusal", "Refusal")])
def test_the_structures_of_explain_have_the_members_of_the_header(
        abi, structure, ours):
    names = [field[0] for field in getattr(abi, ours)._fields_]
    assert names == fields_in_order(OURS, structure)
    assert int(re.search(r"#define OCF_MAX_REFUSALS (\d+)", OURS)[1]) \
        == abi.MAX_REFUSALS


# every number that a call of the package hands on as it is given
HANDED_ON = {
    "a descriptor": (32, lambda c, number, file, room: c.open(number)),
    "a descriptor of bindings": (32, lambda c, number, file, room:
                                 bindings().cuFileHandleRegister(number)),
    "a batch": (32, lambda c, number, file, room: c.Batch(number)),
    "flags of a stream": (32, lambda c, number, file, room: c.Stream(None, number)),
    "flags of a buffer": (32, lambda c, number, file, room: c.register(room, number)),
    "a level": (32, lambda c, number, file, room: c.stats.start(number)),
    "a threshold": (64, lambda c, number, file, room:
                    c.driver.set_poll_mode(False, number)),
    "a direct size": (64, lambda c, number, file, room:
                      c.driver.set_max_direct_io_size(number)),
    "a cache": (64, lambda c, number, file, room: c.driver.set_max_cache_size(number)),
    "pinned memory": (64, lambda c, number, file, room:
                      c.driver.set_max_pinned_mem_size(number)),
    "a size": (64, lambda c, number, file, room: file.read(address(room), number)),
    "an offset in a file": (64, lambda c, number, file, room:
                            file.read(address(room), 1, number)),
    "an offset in memory": (64, lambda c, number, file, room:
                            file.read(address(room), 1, 0, number)),
}


def bindings():
    from cufile import bindings as module
    return module


def address(room):
    return ctypes.addressof(ctypes.c_char.from_buffer(room))


@pytest.mark.parametrize("more", [0, 1, 4, 8])
@pytest.mark.parametrize("what", HANDED_ON)
def test_a_number_with_too_many_bits_is_refused_not_cut(cufile, data_file, what, more):
    path, _ = data_file(4096)
    bits, call = HANDED_ON[what]
    room = bytearray(64)
    with cufile.CuFile(str(path)) as file:
        for number in ((1 << bits) + more, (1 << bits + 1) + more, more - (1 << bits)):
            with pytest.raises(cufile.CuFileError) as caught:
                call(cufile, number, file, room)
            assert caught.value.name in ("CU_FILE_INVALID_VALUE", "EINVAL",
                                         "CU_FILE_DRIVER_UNSUPPORTED_LIMIT")
    assert room == bytearray(64)


def test_explained_numbers_are_not_cut(cufile, data_file):
    path, _ = data_file(4096)
    with cufile.open(path) as file:
        for numbers in (((1 << 64) + 8,), (8, 1 << 64), (8, 0, 1 << 64)):
            assert cufile.explain(file, "host", *numbers).problem[0] == "EINVAL"

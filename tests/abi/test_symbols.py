# SPDX-License-Identifier: Apache-2.0
"""The surface of the built library: what it shows, what it needs, what runs."""
import re

import pytest

from conftest import added_names, exported_names, status_rows

LIBRARIES = re.compile(
    r"libc\.so\.6|libyyjson\.so\.0|liburing\.so\.2|ld-linux-[\w.-]+")


@pytest.fixture(scope="module")
def dynamic(readelf):
    """[(tag, text)] of the dynamic section."""
    found = (re.match(r"\s*0x\w+ \((\w+)\)\s+(.*)", line) for line in readelf("-d"))
    return [match.groups() for match in found if match]


@pytest.fixture(scope="module")
def defined(readelf):
    """Names in the dynamic symbol table that the library defines."""
    names = set()
    for line in readelf("--dyn-syms"):
        cells = line.split()
        if len(cells) >= 8 and cells[0].rstrip(":").isdigit() \
                and cells[4] != "LOCAL" and cells[6] != "UND":
            names.add(cells[7])
    return names


def test_exports_are_the_calls_of_the_contract_and_the_listed_additions(defined):
    assert len(exported_names()) == 50
    assert defined == set(exported_names()) | set(added_names())


def test_additions_keep_out_of_the_contracts_names():
    assert added_names()
    assert all(name.startswith("ocf_") for name in added_names())
    assert len(set(added_names())) == len(added_names())


def test_exports_carry_no_symbol_version(defined, readelf):
    assert not [name for name in defined if "@" in name]
    assert not [line for line in readelf("-S") if ".gnu.version_d" in line]


def test_soname_is_the_one_clients_open(dynamic):
    names = [text for tag, text in dynamic if tag == "SONAME"]
    assert names == ["Library soname: [libcufile.so.0]"]


def test_nothing_is_needed_but_libc_and_two_small_libraries(dynamic, sanitized):
    if sanitized:
        pytest.skip("a sanitizer build needs its runtime")
    needed = [re.search(r"\[(.*)\]", text)[1]
              for tag, text in dynamic if tag == "NEEDED"]
    assert needed
    assert not [name for name in needed if not LIBRARIES.fullmatch(name)]


def test_library_is_never_unloaded(dynamic):
    flags = [text for tag, text in dynamic if tag == "FLAGS_1"]
    assert flags and "NODELETE" in flags[0]


def test_own_calls_bind_to_the_library_itself(dynamic):
    flags = [text for tag, text in dynamic if tag == "FLAGS"]
    symbolic = [tag for tag, text in dynamic if tag == "SYMBOLIC"]
    assert symbolic or (flags and "SYMBOLIC" in flags[0])


def test_nothing_runs_at_load_time(readelf, sanitized):
    if sanitized:
        pytest.skip("a sanitizer build registers its globals at load time")
    sections = {}
    for line in readelf("-S"):
        match = re.match(
            r"\s*\[\s*\d+\] (\S+)\s+\S+\s+(\w+) \w+ (\w+)", line)
        if match:
            sections[match[1]] = (int(match[2], 16), int(match[3], 16))
    assert ".preinit_array" not in sections and ".ctors" not in sections
    relocations = "\n".join(readelf("-r"))
    assert "IRELATIV" not in relocations, "an indirect function runs at load"
    if ".init_array" not in sections:
        return
    start, size = sections[".init_array"]
    assert size == 8, "more than the compiler's own entry"
    frame_dummy = [int(line.split()[1], 16) for line in readelf("-s")
                   if line.split()[-1:] == ["frame_dummy"]]
    if frame_dummy:  # a stripped library has no name to compare with
        target = re.search(rf"^0*{start:x}\s+\w+ \S+_RELATIVE?\S*\s+(\w+)",
                           relocations, re.M)
        assert target and int(target[1], 16) in frame_dummy


def test_status_page_lists_every_export_and_nothing_else():
    assert set(status_rows()) == set(exported_names()) | set(added_names())


def test_status_page_says_works_or_later_of_every_export():
    for call, (state, answer) in status_rows().items():
        assert state in ("works", "later"), call
        assert answer, call

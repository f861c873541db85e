# SPDX-License-Identifier: Apache-2.0
"""The probes of src/core/probe.h: built in, or not there at all."""
import os
import re

import pytest

from conftest import ROOT

DECLARED = {name: int(count) for count, name in re.findall(
    r"CF_PROBE(\d)\((\w+__\w+|route),",
    (ROOT / "src/core/probe.h").read_text())}


@pytest.fixture(scope="module")
def built(readelf):
    """{name: number of arguments} of the library's notes."""
    text = "\n".join(readelf("-n"))
    return {name: len(args.split()) for name, args in re.findall(
        r"Provider: opencufile\n\s+Name: (\w+)\n.*\n\s+Arguments: (.*)", text)}


def test_the_library_has_all_probes_or_none(built):
    assert len(DECLARED) == 9
    if os.environ["OCF_HAVE_SDT"] == "1":
        assert built == DECLARED
    else:
        assert built == {}


def test_scripts_name_only_probes_that_are_built_in(built):
    if os.environ["OCF_HAVE_SDT"] != "1":
        pytest.skip("built without <sys/sdt.h>: there are no probes")
    scripts = sorted((ROOT / "docs/bpftrace").glob("*.bt"))
    assert len(scripts) >= 2
    for script in scripts:
        text = re.sub(r"/\*.*?\*/", "", script.read_text(), flags=re.S)
        blocks = re.findall(
            r"^usdt:\*:opencufile:(\w+)\n(?:/[^\n]*/\n)?\{\n(.*?)^\}", text,
            re.M | re.S)
        assert len(blocks) >= 2
        assert text.count("usdt:") == len(blocks)
        for name, body in blocks:
            assert name in built, f"{script.name}: {name}"
            used = [int(n) for n in re.findall(r"\barg(\d)", body)]
            assert all(n < built[name] for n in used), f"{script.name}: {name}"

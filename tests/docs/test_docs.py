# SPDX-License-Identifier: Apache-2.0
"""What the pages name exists: links, verbs, options, keys, variables, calls.

Names are looked for where a reader takes them for something to type: in
`code`, and in indented or fenced blocks.
"""
import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["OCF_BUILD_ROOT"])
PAGES = sorted(path for folder in ("", "docs", "docs/reference", "examples")
               for path in (ROOT / folder).glob("*.md"))
TOOLS = {"gdscheck": "tools/gdscheck/gdscheck", "gdscp": "tools/gdscp",
         "gdsio": "tools/gdsio/gdsio",
         "gdsio_verify": "tools/gdsio_verify/gdsio_verify",
         "gds_stats": "tools/gds_stats",
         "ocf-bench": "bench/ocf-bench"}

every_page = pytest.mark.parametrize(
    "page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def code_of(page):
    """The pieces of code in a page, one a line of a block or a `span`."""
    found, fenced = [], False
    for line in page.read_text().splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            found.append(line.strip())
        else:
            found += re.findall(r"`([^`]+)`", line)
    return found


def anchors_of(page):
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.M)
    return {re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-")
            for title in titles}


def read_all(*patterns):
    return "\n".join(path.read_text() for pattern in patterns
                     for path in sorted(ROOT.glob(pattern)) if path.is_file())


@every_page
def test_every_relative_link_resolves(page):
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if re.match(r"\w+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists():
            broken.append(link)
        elif anchor and anchor not in anchors_of(target):
            broken.append(link)
    assert broken == []


def verbs():
    return set(re.findall(r"^verb_(\w+)\(\)", (ROOT / "dev").read_text(), re.M))


@every_page
def test_every_verb_of_dev_exists(page):
    named = {word for code in code_of(page)
             for word in re.findall(r"\./dev (\w+)", code)}
    assert named <= verbs()


def test_dev_tells_of_every_verb_that_it_has():
    said = subprocess.run([ROOT / "dev"], check=False, capture_output=True,
                          text=True).stdout
    assert set(re.findall(r"^  (\w+) ", said, re.M)) == verbs()


def options_of(tool):
    done = subprocess.run([BUILD / TOOLS[tool], "--help"], check=False,
                          capture_output=True, text=True)
    said = done.stdout + done.stderr
    return set(re.findall(r"(?<![\w-])(--?[a-zA-Z][\w-]*)", said))


@pytest.fixture(scope="module")
def options():
    return {tool: options_of(tool) for tool in TOOLS}


@every_page
def test_every_option_of_a_tool_exists(page, options):
    unknown = []
    for code in code_of(page):
        # options in front of the words that explain, two blanks further on
        for tool, rest in re.findall(r"(?:^|[\s/])(%s)((?: \S+)*)" %
                                     "|".join(TOOLS), code):
            for option in re.findall(r"(?<!\S)(--?[a-zA-Z][\w-]*)", rest):
                if option not in options[tool]:
                    unknown.append((tool, option))
    assert unknown == []


def keys():
    rows = re.findall(r'^CF_\w+\(\w+,\s*"([\w.]+)"',
                      read_all("src/core/config_rows.h"), re.M)
    assert len(rows) > 50
    return set(rows)


def items_of(page):
    """What a page of the manual has paragraphs for."""
    return re.findall(r"^\.It (.*)$", (ROOT / "man" / page).read_text(), re.M)


@pytest.mark.parametrize("tool", [tool for tool in TOOLS if tool != "ocf-bench"])
def test_the_manual_has_every_option_of_a_tool(tool, options):
    listed = {"-" + word for item in items_of(f"man1/{tool}.1")
              for word in re.findall(r"(?:^Fl|,) (\S+)", item)}
    several_in_one = {"-pvVt"}
    assert options[tool] - {"-h", "--help", "--version"} - several_in_one <= listed


def test_the_manual_says_what_each_level_of_the_log_shows():
    levels = set(re.findall(r'"([A-Z]+)"', read_all("src/core/log_line.c")))
    assert len(levels) == 6
    assert levels <= set(items_of("man7/cufile-configuration.7"))


def test_the_manual_names_each_statistic_that_stays_zero():
    source = read_all("src/core/*.c")
    structs = re.findall(r"typedef struct CUfile(?:StatsLevel1|PerGpuStats) {(.*?)^}",
                         read_all("include/cufile.h"), re.M | re.S)
    fields = set(re.findall(r"(\w+);", "".join(structs)))
    assert len(fields) > 60
    zero = {field for field in fields if not re.search(rf"\b{field}\b", source)}
    page = read_all("man/man3/cuFileStatsStart.3")
    assert zero == set(re.findall(r"\b\w+_\w+\b", "".join(
        page.partition("Some fields stay 0.")[2].partition(".Pp")[0])))


def test_the_manual_has_every_reason_against_a_path():
    source = (ROOT / "src/engine/route.c").read_text()
    table = source.partition("texts[CF_NR_WHYS] = {")[2].partition("};")[0]
    reasons = set(re.findall(r'\[CF_WHY_\w+\] =\s*"([^"]+)"', table))
    assert len(reasons) > 40
    assert reasons - set(items_of("man7/cufile-routes.7")) == {"can carry it"}


@every_page
def test_every_configuration_key_exists(page):
    sections = {key.split(".")[0] for key in keys() if "." in key}
    named = {code for code in code_of(page)
             if re.fullmatch(r"[a-z]+(\.\w+)+", code)
             and code.split(".")[0] in sections
             and not re.search(r"\.(h|c|so|py|md|json|pc)$", code)
             and not code.startswith("cufile.")}
    assert named <= keys()


@every_page
def test_every_environment_variable_is_read_somewhere(page):
    source = read_all("src/**/*.[ch]", "tools/**/*.[ch]", "tools/ocf-run",
                      "python/**/*.py", "tests/package/*", "scripts/*",
                      "dev")
    named = {word for code in code_of(page) for word in re.findall(
        r"(?<![\w-])((?:CUFILE|OCF|OPENCUFILE)_[A-Z_]+)(?==| |$)", code)}
    constants = set(re.findall(r"\b(?:CUFILE|OCF)_\w+",
                               read_all("include/*.h")))
    missing = {word for word in named - constants if word not in source}
    assert missing == set()


@every_page
def test_every_call_exists(page):
    calls = set((ROOT / "tests/abi/symbols.txt").read_text().split()
                + (ROOT / "tests/abi/additions.txt").read_text().split())
    named = {word for code in code_of(page) for word in re.findall(
        r"\b(cuFile[A-Z]\w+|ocf_[a-z]+_\w+)\b(?!\*)", code)}
    types = set(re.findall(r"\bocf_\w+", read_all("include/opencufile*.h")))
    assert named - types <= calls


@every_page
def test_every_error_code_has_the_name_of_the_header(page):
    codes = dict(re.findall(r"CUFILE_OP\((\d+), (\w+),",
                            read_all("include/cufile.h")))
    wrong = [(code, name) for code, name in re.findall(
        r"\b(5\d{3})(?: \|)? `(CU_FILE_\w+)`", page.read_text())
        if codes.get(code) != name]
    assert wrong == []


def test_the_guide_has_every_code_that_the_library_answers():
    """What the sources name, but for success and the end of the list."""
    codes = set(re.findall(r"CUFILE_OP\(\d+, (\w+),", read_all("include/cufile.h")))
    named = set(re.findall(r"\bCU_FILE_[A-Z_]+\b", read_all(
        *(f"src/{floor}/*.c" for floor in ("core", "path", "engine", "api")))))
    table = (ROOT / "docs/guide.md").read_text().partition("## Errors")[2]
    assert len(codes & named) > 20
    assert codes & named - {"CU_FILE_SUCCESS"} <= set(
        re.findall(r"^\| \d+ `(\w+)`", table, re.M))


def codes_of_comments(calls):
    """What the headers' comments say that these calls may answer."""
    found = {"5043"}  # of every call: cufile.h says so once
    for header in ("cufile.h", "opencufile.h"):
        text = (ROOT / "include" / header).read_text()
        for name, comment in re.findall(r"/\*\*\n \* (\w+) - (.*?)\*/", text, re.S):
            if name in calls:
                found |= set(re.findall(r"\b50\d\d\b", comment))
    return found


@pytest.mark.parametrize("page", [
    page for page in sorted((ROOT / "man/man3").iterdir())
    if not page.read_text().startswith(".so")], ids=lambda page: page.name)
def test_a_page_has_the_errors_of_the_headers_comments(page):
    parts = dict(re.findall(r"^\.Sh (.*)\n((?:(?!\.Sh ).*\n)*)",
                            page.read_text(), re.M))
    calls = set(re.findall(r"^\.Nm (\w+)", parts["NAME"], re.M))
    codes = set(re.findall(r"\b50\d\d\b",
                           parts.get("ERRORS") or parts["RETURN VALUES"]))
    assert codes | {"5043"} == codes_of_comments(calls)


def test_the_reference_has_every_call():
    for header, exports in (("cufile", "symbols"), ("opencufile", "additions")):
        page = (ROOT / f"docs/reference/{header}.md").read_text()
        for call in (ROOT / f"tests/abi/{exports}.txt").read_text().split():
            assert f"\n### {call}\n" in page or call == "cuFileDriverClose_v2"


def test_every_example_is_in_the_list_of_examples():
    listed = (ROOT / "examples/README.md").read_text()
    programs = {path.name for path in (ROOT / "examples").glob("*.c")}
    assert {name for name in programs if f"]({name})" not in listed} \
        == {"gpu_memory.c"}


def figures(text):
    """The numbers of a text as they are written: 46.3, 850."""
    return re.findall(r"(?<![\w.,])\d+(?:\.\d+)?(?![\w.]*\d)", text)


def rounds_to(figure, exact):
    digits = len(figure.partition(".")[2])
    return abs(float(exact) - float(figure)) <= 0.5001 / 10 ** digits


@pytest.mark.parametrize("row", [
    line for line in (ROOT / "README.md").read_text().splitlines()
    if line.startswith("|") and re.search(r"\d (GB/s|k op/s|ms)", line)])
def test_the_figures_of_a_row_of_readme_were_measured_together(row):
    """All of them, rounded, are of one table or paragraph of the ledger."""
    values = " ".join(row.split("|")[2:])
    wanted = re.findall(r"([\d.]+) (?:GB/s|k op/s|ms)", values)
    assert wanted
    ledger = (ROOT / "docs/performance.md").read_text().split("\n\n")
    assert any(all(any(rounds_to(figure, exact) for exact in figures(part))
                   for figure in wanted) for part in ledger), row


def gigabytes(cell, size):
    """GB/s of a table's cell, which may have operations instead, or a word."""
    value = re.match(r"([\d.]+) (k op/s|GB/s)", cell)
    return value and float(value[1]) * (size * 1e-6 if value[2] == "k op/s" else 1)


def tabled(chart):
    """The figures of the table that stands above a chart, by library."""
    table, = re.findall(r"^\| cell (?:.+\n)+\n(?=!\[[^]]*\]\(img/%s)" % chart,
                        (ROOT / "docs/performance.md").read_text(), re.M)
    head, _, *rows = [[cell.strip() for cell in line.split("|")[1:-1]]
                      for line in table.split("\n") if line]
    found = {name: [] for name in head[1:head.index("ours / nvidia")]}
    for row in rows:
        number, unit = re.search(r"(\d+) ([KMG])iB", row[0]).groups()
        size = int(number) << {"K": 10, "M": 20, "G": 30}[unit]
        for name, cell in zip(found, row[1:]):
            found[name].append(gigabytes(cell, size))
    return found


def drawn(chart):
    """The figures of a chart, by library, and how far two roundings may be apart."""
    text = (ROOT / f"docs/img/{chart}.svg").read_text()
    names = re.findall(r'y="48.0"[^>]*"start"[^>]*>(\w+)<', text)
    bars = re.findall(r'font-size="9"[^>]*>([\d.]+)<', text)
    if bars:
        colours = re.findall(r'rx="2" fill="(#\w+)"/>\n<text[^>]*font-size="9"', text)
        legend = re.findall(r'y="38"[^>]*fill="(#\w+)"', text)
        return {name: [(float(bar), float(bar) * 0.01) for bar, of in zip(bars, colours)
                       if of == colour] for name, colour in zip(names, legend)}
    top = float(re.findall(r'"end" fill="#\w+">(\d+)<', text)[-1])
    return {name: [((320 - float(point.split(",")[1])) / 256 * top, top / 2500)
                   for point in line.split()]
            for name, line in zip(names, re.findall(r'points="([^"]+)"', text))}


@pytest.mark.parametrize("chart", sorted(
    path.stem for path in (ROOT / "docs/img").glob("*.svg")))
def test_a_chart_has_the_figures_of_the_table_above_it(chart):
    table = tabled(chart)
    found = drawn(chart)
    assert set(found) == set(table)
    for name, values in found.items():
        assert values
        assert all(any(exact and abs(exact - value) <= off for exact in table[name])
                   for value, off in values), (name, values)


def test_the_architecture_page_can_be_read_in_one_go():
    lines = (ROOT / "docs/architecture.md").read_text().splitlines()
    assert len(lines) < 200


ROWS = re.findall(r'^CF_[A-Z]+\((\w+), *"([\w.]+)",(.*?)^(?=CF_|/\*|\Z)',
                  (ROOT / "src/core/config_rows.h").read_text(), re.M | re.S)
ELSEWHERE = dict(re.findall(
    r'\.key = "([^"]+)",\s+\.elsewhere = "([^"]+)"',
    (ROOT / "tests/behaviour/test_configuration.c").read_text()))


# of the running driver, for what the file names too
SETTERS = {"use_poll_mode": "cuFileDriverSetPollMode",
           "poll_mode_max_size_kb": "cuFileDriverSetPollMode",
           "max_device_pinned_mem_size_kb": "cuFileDriverSetMaxPinnedMemSize"}


@pytest.mark.parametrize("key", sorted(ELSEWHERE))
def test_a_row_that_is_tested_elsewhere_is_named_there(key):
    """The table of test_configuration.c says where; that place has the key."""
    (name, rest), = [(row[0], row[2]) for row in ROWS if row[1] == key]
    leaf = key.rpartition(".")[2]
    words = {f"CF_CFG_{name}", leaf, SETTERS.get(leaf, leaf),
             *re.findall(r'"((?:OCF|CUFILE)_\w+)"', rest),
             *re.findall(r"\((CUFILE_PARAM_\w+)\)", rest)}
    place = ELSEWHERE[key]
    file = (ROOT / f"tests/{place}.c" if "/" in place
            else ROOT / "tests/path/meson.build")
    text = file.read_text()
    if "/" not in place:
        # a test of other environment: path_NAME_VARIANT
        assert f"_{place.rpartition('_')[2]}'" in text
    assert any(word in text for word in words), (key, place)


def test_there_are_such_rows():
    assert len(ELSEWHERE) > 20
    assert len(ROWS) > 100

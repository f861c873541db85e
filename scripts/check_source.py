# SPDX-License-Identifier: Apache-2.0
"""Small rules about source text, each with the sentence of why.

A line that breaks a rule for a good reason says so in a comment on it or on
the line before: lint-ok: the reason.
"""
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
NOT_OURS = re.compile(r"build.*|\..*|__pycache__|shared|subprojects")
LICENSED = {".c", ".h", ".py", ".sh", ".build", ".options", ".map", ".cu"}
LICENSED_NAMES = {"dev", "meson_options.txt", "ocf-run"}
TEXT = LICENSED | {".md", ".txt", ".json", ".yml", ".1", ".3", ".5", ".7"}
MAX_FILE = 500
MAX_FUNCTION = 100

# (folders, exempt folder, pattern, why)
RULES = [
    ("src", "src/seam", r"(?<!saved_errno = )\berrno\b(?!\s*=[^=]|\.h)",
     "errno is read once, at the seam, on the line after the call; any call "
     "in between may change it"),
    ("src", "src/seam",
     r"(?<![\w.>])(?:open|openat|open64|close|read|write|pread|pwrite|preadv2?|"
     r"pwritev2?|lseek|fstat|stat|lstat|statx|f?statfs|fcntl|ioctl|f?truncate|"
     r"fallocate|readlink|mmap|munmap|fopen|fclose|opendir|unlink|dlopen|dlsym)"
     r"\s*\(",
     "the outside world is reached through the seam's table only, or tests "
     "cannot make the call fail"),
    ("src tools tests bench examples", None,
     r"\b(?:sprintf|vsprintf|strcpy|strcat|gets)\s*\(",
     "nothing stops it at the end of the buffer; use snprintf or memcpy"),
    ("src", None, r"^extern (?!CF_HIDDEN\b)",
     "where it is only declared the compiler looks its address up at each use; "
     "say CF_HIDDEN (seam/hidden.h)"),
    ("src", None, r"\bstrn?casecmp\s*\(",
     "it asks the program's locale, and in Turkish info is not INFO; use "
     "core/words.h"),
]
EVERYWHERE = [
    (r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X)\b",
     "work that is left is an issue, not a comment"),
    (r"(?<![\w.}])/(?:work|root|home)/\w",
     "a path of one machine means nothing on another"),
]
# In texts of src, but not in those that a GPU runs.
ADDRESS = re.compile(r"%p|%#?l?lx")


def files():
    """Every file of the project, without build folders and hidden ones."""
    for folder, subfolders, names in os.walk(ROOT):
        subfolders[:] = [name for name in subfolders
                         if not NOT_OURS.fullmatch(name) or name == ".ci"]
        for name in sorted(names):
            path = pathlib.Path(folder, name)
            if path.is_file() and not path.is_symlink():
                yield path


def code_lines(lines):
    """The lines with C comments and string contents blanked."""
    inside = False
    for line in lines:
        line = re.sub(r'"(?:\\.|[^"\\])*"', '""', line)
        if inside:
            head, end, line = line.partition("*/")
            if not end:
                yield ""
                continue
        line = re.sub(r"/\*.*?\*/", "", line)
        line, start, _ = line.partition("/*")
        inside = bool(start)
        yield line.partition("//")[0]


def excused(lines, number):
    """Does the line, or the one before, give a reason?"""
    return any("lint-ok: " in line for line in lines[max(0, number - 2):number])


def check_rules(name, lines, report):
    suffix = pathlib.PurePath(name).suffix
    if suffix in (".c", ".h"):
        code = list(code_lines(lines))
        for folders, exempt, pattern, why in RULES:
            if name.split("/")[0] not in folders.split():
                continue
            if exempt and name.startswith(exempt + "/"):
                continue
            for number, line in enumerate(code, 1):
                match = re.search(pattern, line)
                if match and not excused(lines, number):
                    report(number, f"{match[0].strip()!r}: {why}")
    for pattern, why in EVERYWHERE:
        for number, line in enumerate(lines, 1):
            match = re.search(pattern, line)
            if match and not excused(lines, number):
                report(number, f"{match[0]!r}: {why}")


def check_texts(lines, report):
    for number, line in enumerate(lines, 1):
        match = ADDRESS.search(line)
        if match:
            report(number, f"{match[0]!r}: an address is shown by CF_TAG, so "
                           "that a log does not tell where memory is")


def check_lengths(lines, report):
    if len(lines) > MAX_FILE:
        report(1, f"{len(lines)} lines, at most {MAX_FILE}: look for the "
                  "second noun that hides in it")
    start = None
    for number, line in enumerate(lines, 1):
        if line == "{":
            start = number
        elif line.startswith("}") and start:
            if number - start - 1 > MAX_FUNCTION:
                report(start, f"a function of {number - start - 1} lines, at "
                              f"most {MAX_FUNCTION}: it is more than one thought")
            start = None


def check_file(path, faults):
    name = path.relative_to(ROOT).as_posix()

    def report(number, text):
        faults.append(f"{name}:{number}: {text}")

    licensed = (path.suffix in LICENSED or path.name in LICENSED_NAMES
                or name == ".ci/run")
    if not licensed and path.suffix not in TEXT:
        return
    lines = path.read_text().splitlines()
    if licensed and not any("SPDX-License-Identifier: Apache-2.0" in line
                            for line in lines[:2]):
        report(1, "no SPDX line; a file says its licence itself")
    check_rules(name, lines, report)
    if name.startswith("src/") and path.suffix in (".c", ".h"):
        check_lengths(lines, report)
        if not name.endswith("_ptx.h"):  # %p is a register there
            check_texts(lines, report)


def main():
    faults = []
    for path in files():
        check_file(path, faults)
    changelog = (ROOT / "CHANGELOG.md").read_text()
    if not re.search(r"^## Unreleased$", changelog, re.M):
        faults.append("CHANGELOG.md: no section Unreleased; the next change "
                      "would have no place")
    print("\n".join(faults), end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

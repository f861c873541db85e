# SPDX-License-Identifier: Apache-2.0
"""Makes docs/reference/*.md of the headers' comments.

    reference.py            writes the pages
    reference.py --check    says which page is not what it would write

A comment that begins with /** belongs to the declaration behind it: the first
line is "name - what it does.", then a line for each argument, then text. The
comment of a type is the one before it. Pages have the order of the header.
"""
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGES = {"cufile.h": "cufile.md", "opencufile.h": "opencufile.md"}
FAMILY = re.compile(r"/\* (?:-+ (.+)|([a-z][\w ,:]+)) \*/")
CALL = re.compile(r"/\*\*\n(.*?)\*/\n(.*?;)\n", re.S)
TYPE = re.compile(r"(?:/\*(?!\*)((?:(?!\*/).)*)\*/\n)?"
                  r"(typedef (?:enum|struct)\b[^;{]*\{.*?^\} *\w+;|"
                  r"^(?:enum|struct) \w+ \{.*?^\};)", re.S | re.M)

FLAGS = re.compile(r"(?:/\*(?!\*)((?:(?!\*/).)*)\*/\n)?"
                   r"((?:#define CU_FILE_\w+ \S[^\n]*\n){2,})", re.S)


def comment_lines(text):
    return [re.sub(r"^\s*\* ?", "", line).rstrip() for line in text.split("\n")]


def code(text):
    """Words that a reader would type, as code."""
    text = re.sub(r"(?<![\w`])@(\w+)", r"`\1`", text)
    text = re.sub(r"(?<![\w`])((?:cuFile|ocf_|CU_?FILE_|OCF_|O_)\w+\*?)",
                  r"`\1`", text)
    return text.replace("<", "&lt;")


def split_comment(lines):
    """The headline, the arguments and the paragraphs."""
    headline, arguments, text = lines[0], [], []
    i = 1
    while i < len(lines) and lines[i].startswith("@"):
        name, _, meaning = lines[i].partition(":")
        i += 1
        while i < len(lines) and lines[i] and not lines[i].startswith("@"):
            # what goes on: indented, or the arguments' names themselves
            if not meaning:
                more, _, meaning = lines[i].strip().partition(":")
                name += " " + more
            else:
                meaning += " " + lines[i].strip()
            i += 1
        arguments.append((name, meaning.strip()))
    paragraph = []
    for line in [*lines[i:], ""]:
        if line:
            paragraph.append(line.strip())
        elif paragraph:
            text.append(" ".join(paragraph))
            paragraph = []
    return headline, arguments, text


def call_section(comment, declaration):
    lines = comment_lines(comment.strip("\n"))
    headline, arguments, text = split_comment(lines)
    name, _, does = headline.partition(" - ")
    out = [f"### {name}", "", does[:1].upper() + code(does[1:]), "", "```c",
           re.sub(r"\n\t+ *", "\n    ", declaration), "```", ""]
    if arguments:
        out += ["| argument | |", "|---|---|"]
        out += [f"| {code(names)} | {code(meaning)} |"
                for names, meaning in arguments]
        out.append("")
    for paragraph in text:
        out += [code(paragraph), ""]
    return out


def type_name(declaration):
    name = re.search(r"\}\s*(\w+);$", declaration) or \
        re.match(r"((?:enum|struct) \w+)", declaration)
    return name[1]


def type_section(comment, declaration, name=None):
    out = [f"### {name or type_name(declaration)}", ""]
    if comment and not comment.strip().startswith("-"):
        text = " ".join(comment_lines(comment.strip("\n"))).strip()
        out += [code(re.sub(r"\s+", " ", text)), ""]
    return out + ["```c", declaration.expandtabs(4), "```", ""]


def flags_section(comment, definitions):
    names = re.findall(r"#define (\w+)", definitions)
    return type_section(comment, definitions.rstrip(),
                        os.path.commonprefix(names).rpartition("_")[0] + "_...")


def page(header):
    text = (ROOT / "include" / header).read_text()
    found = []
    for match in CALL.finditer(text):
        found.append((match.start(), call_section(match[1], match[2])))
    taken = [match.span() for match in CALL.finditer(text)]
    for match in TYPE.finditer(text):
        if not any(a <= match.start(2) < b for a, b in taken):
            found.append((match.start(2), type_section(match[1], match[2])))
    for match in FLAGS.finditer(text):
        found.append((match.start(2), flags_section(match[1], match[2])))
    for match in FAMILY.finditer(text):
        line = text.rfind("\n", 0, match.start()) + 1
        if match.start() == line:
            title = (match[1] or match[2]).partition(":")[0].strip()
            found.append((match.start(), ["## " + title[:1].upper() + title[1:],
                                          ""]))
    out = [f"# {header}", "",
           f"Made of the comments in [{header}](../../include/{header}) by "
           "`scripts/reference.py`: edit those.", ""]
    opening = re.search(r"/\*\n(.*?)\*/", text, re.S)[1].strip("\n")
    opening = comment_lines(opening)
    for paragraph in "\n".join(opening).split("\n\n"):
        out += [code(re.sub(r"\s+", " ", paragraph).strip()), ""]
    if header == "cufile.h":
        out += error_table(text)
    for _, section in sorted(found, key=lambda item: item[0]):
        out += section
    return "\n".join(without_empty(out)).rstrip() + "\n"


def without_empty(lines):
    """A family with nothing below it is left out."""
    kept = []
    for line in lines:
        if line.startswith("## ") and kept:
            while kept and not kept[-1]:
                kept.pop()
            if kept[-1].startswith("## "):
                kept.pop()
            else:
                kept.append("")
        kept.append(line)
    return kept


def error_table(text):
    rows = re.findall(r'CUFILE_OP\((\d+), (\w+),\s*\\?\s*"([^"]*)"\)', text)
    return ["## Error codes", "",
            "What to do about them: [the guide](../guide.md#errors).", "",
            "| code | name | text |", "|---|---|---|",
            *(f"| {number} | `{name}` | {meaning} |"
              for number, name, meaning in rows), ""]


def main():
    stale = []
    for header, name in PAGES.items():
        path = ROOT / "docs/reference" / name
        made = page(header)
        if "--check" not in sys.argv:
            path.parent.mkdir(exist_ok=True)
            path.write_text(made)
        elif not path.exists() or path.read_text() != made:
            stale.append(f"docs/reference/{name}: not what include/{header} "
                         "says now; python3 scripts/reference.py makes it")
    print("\n".join(stale), end="\n" if stale else "")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# pack.sh BUILD - puts the shared libraries that the built programs need, and
# a GPU machine may lack, into BUILD/deps, so that the tree can be carried, a
# sanitizer's too; and pytest, which is Python alone, where there is one to take.
set -euo pipefail
build=${1:?usage: pack.sh BUILD}
mkdir -p "$build/deps"
sanitizers=$(ldd "$build/src/libcufile.so.0" | grep -oE '^\s*lib[a-z]*san\S*' || true)
for name in libyyjson.so.0 liburing.so.2 libcmocka.so.0 $sanitizers; do
	path=$(ldconfig -p | awk -v n="$name" '$1 == n && !seen++ { print $NF }')
	if [ -z "$path" ]; then
		echo "pack: $name is not installed" >&2
		exit 1
	fi
	cp -L "$path" "$build/deps/"
done

python=/usr/bin/python3
"$python" -c 'import pytest' 2>/dev/null || python=python3
"$python" - "$build/deps/python" <<'PYTHON'
import importlib.util
import pathlib
import shutil
import sys

target = pathlib.Path(sys.argv[1])
if not importlib.util.find_spec("pytest"):
    print("pack: no pytest: the Python package cannot be tested there")
    sys.exit()
target.mkdir(parents=True, exist_ok=True)
for name in ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments",
             "attr", "attrs", "py", "exceptiongroup", "tomli"):
    found = importlib.util.find_spec(name)
    if not found or not found.origin:
        continue
    file = pathlib.Path(found.origin)
    if file.name == "__init__.py":
        shutil.copytree(file.parent, target / name, dirs_exist_ok=True,
                        ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(file, target)
PYTHON

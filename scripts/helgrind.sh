#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# helgrind.sh [PROGRAM...] - the order of locks, and misuse of threads, by
# valgrind. It does not know C11 atomics, so what it says of races is left to
# the thread sanitizer (./dev tsan). Slow: minutes a program.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- build/tests/path/test_path_threads

rules=$(mktemp)
trap 'rm -f "$rules"' EXIT
printf '{\n   races\n   Helgrind:Race\n   obj:*\n}\n' >"$rules"
for program in "$@"; do
	echo "$program"
	valgrind --tool=helgrind --error-exitcode=9 --suppressions="$rules" \
		--history-level=none "$program"
done

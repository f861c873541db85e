#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# run.sh BUILD - runs the tests of a built tree against a real GPU.
#
# The programs are the ones that ./dev test runs with the fake driver; here
# the machine's own libcuda.so.1 stands first on the library path. BUILD/deps
# may hold the shared libraries that this machine lacks (see pack.sh). Real
# clients follow where they are installed, unless the tree is built with the
# address sanitizer, which cannot be preloaded by itself. The last line counts.
# OCF_GPU_PATIENCE: seconds until a program counts as hung (300).
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
build=${1:?usage: run.sh BUILD}
build=$(realpath "$build")

libcuda=$(ldconfig -p | awk '$1 == "libcuda.so.1" && !seen++ { print $NF }')
if [ -z "$libcuda" ]; then
	echo "no libcuda.so.1 on this machine: nothing to test"
	exit 77
fi

work=$(mktemp -d "${TMPDIR:-/var/tmp}/opencufile-gpu.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/lib"
ln -s "$libcuda" "$work/lib/libcuda.so.1"
export LD_LIBRARY_PATH=$work/lib:$build/deps${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export TMPDIR=$work OCF_LIB=$build/src/libcufile.so.0
# libcuda maps memory wherever it likes, and leaves some behind
export ASAN_OPTIONS=${ASAN_OPTIONS:-protect_shadow_gap=0:detect_leaks=0}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-halt_on_error=1:print_stacktrace=1}

passed=0 failed=0 skipped=0

# tally WORD LOG : how many tests cmocka says were so
tally() {
	sed -n "s/.*\[ *$1 *\] \(.*: \)\{0,1\}\([0-9]*\) test.*/\2/p" "$2" |
		awk '{ n += $1 } END { print n + 0 }'
}

# count NAME STATUS LOG : adds a cmocka program's tests, or one for others
count() {
	local name=$1 status=$2 log=$3 p f s
	p=$(tally PASSED "$log") f=$(tally FAILED "$log") s=$(tally SKIPPED "$log")
	if [ "$status" = 77 ]; then
		skip "$name: $(tail -1 "$log")"
		return
	fi
	if [ "$status" != 0 ] && [ "$f" = 0 ]; then
		f=1
	fi
	if [ "$status" = 0 ] && [ "$p" = 0 ] && [ "$s" = 0 ]; then
		p=1
	fi
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
	echo "$([ "$f" = 0 ] && echo "ok     " || echo "FAILED ") $name: $p passed, $f failed, $s skipped"
	[ "$f" = 0 ] || grep -E 'FAILED|Error|error|!=|assert|Traceback' "$log" | head -30
}

# skip WHAT
skip() {
	skipped=$((skipped + 1))
	echo "skip    $1"
}

run() {
	local name=$1
	shift
	timeout "${OCF_GPU_PATIENCE:-300}" "$@" >"$work/log" 2>&1
	count "$name" $? "$work/log"
}

for program in "$build"/tests/behaviour/test_* "$build"/tests/path/test_*; do
	if [ -f "$program" ] && [ -x "$program" ]; then
		run "$(basename "$program")" "$program"
	fi
done

for name in matrix order threads; do
	run "test_path_${name}_many" env CUFILE_ENV_PATH_JSON="$PWD/tests/path/many.json" \
		"$build/tests/path/test_path_$name"
	run "test_path_${name}_apart" env OCF_COMBINE=0 "$build/tests/path/test_path_$name"
done
for name in mapped mapped_batch mapped_fails mapped_files mapped_room mapped_small mapped_stream \
	mapped_witness; do
	run "test_path_${name}_pins" env TEST_PINS=1 "$build/tests/path/test_path_$name"
done
for name in large matrix threads; do
	run "test_path_${name}_pins" env TEST_MAPPED=1 \
		CUFILE_ENV_PATH_JSON="$PWD/tests/path/pins.json" \
		"$build/tests/path/test_path_$name"
done
for name in batch batch_threads; do
	run "test_path_${name}_copies" env OCF_BATCH_KERNEL=0 "$build/tests/path/test_path_$name"
done
run test_volley "$build/tests/unit/test_volley"
run test_shuttle "$build/tests/unit/test_shuttle"

head -c 100000003 /dev/urandom >"$work/source"
run gdscp "$build/tools/gdscp" "$work/source" "$work/copy"
run gdscp_bytes cmp "$work/source" "$work/copy"

# What has the library preloaded, or loads it.
run_clients() {
	local client suite packed
	for client in tests/gpu/client_*.py; do
		run "$(basename "$client" .py)" env LD_PRELOAD="$OCF_LIB" python3 "$client" "$work"
	done

	packed=$build/deps/python # behind what the machine has
	if ! python3 -c 'import pytest' 2>/dev/null && [ -d "$packed" ]; then
		export PYTHONPATH=${PYTHONPATH:+$PYTHONPATH:}$packed
	fi
	if ! python3 -c 'import pytest' 2>/dev/null; then
		skip "python: no pytest"
		return
	fi
	for suite in tests/python/test_*.py; do
		run "python_$(basename "$suite" .py)" env OPENCUFILE_LIBRARY="$OCF_LIB" \
			python3 -B -m pytest -q -rs -p no:cacheprovider "$suite"
	done
}

if ldd "$OCF_LIB" | grep -F libasan.so >/dev/null; then
	skip "clients and python: the library has the address sanitizer in it"
else
	run_clients
fi

line="$passed passed, $failed failed"
[ "$skipped" = 0 ] || line="$line, $skipped skipped"
echo "$line"
[ "$failed" = 0 ]

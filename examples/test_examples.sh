#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# test_examples.sh FOLDER FAKE - runs the examples in FOLDER, with the fake
# driver in the folder FAKE and without any driver.
# The cases are called by name, which shellcheck cannot see:
# shellcheck disable=SC2317
set -uo pipefail
examples=$1
fake=$2
dir=$(mktemp -d "${TMPDIR:-/var/tmp}/test_examples.XXXXXX")
trap 'rm -rf "$dir"' EXIT
export CUFILE_LOGFILE_PATH=$dir/log FAKECUDA_STRICT=1
failed=0

on_gpu() { LD_LIBRARY_PATH=$fake "$@" >"$dir/out"; }
on_host() { "$@" >"$dir/out"; }
says() { grep -q "$1" "$dir/out"; }

batch_copy_copies_through_gpu_memory() {
	on_gpu "$examples/batch_copy" "$dir/large" "$dir/copy" &&
		cmp "$dir/large" "$dir/copy" && says 'through GPU memory'
}

batch_copy_copies_without_a_driver() {
	on_host "$examples/batch_copy" "$dir/small" "$dir/copy" &&
		cmp "$dir/small" "$dir/copy"
}

batch_copy_copies_nothing_too() {
	: >"$dir/empty"
	on_gpu "$examples/batch_copy" "$dir/empty" "$dir/copy" &&
		cmp "$dir/empty" "$dir/copy"
}

batch_copy_leaves_its_source_and_what_was_there() {
	cp "$dir/small" "$dir/kept"
	! on_host "$examples/batch_copy" "$dir/kept" "$dir/kept" 2>/dev/null &&
		! on_host "$examples/batch_copy" "$dir/nothing" "$dir/kept" 2>/dev/null &&
		cmp "$dir/small" "$dir/kept"
}

head -c 70000003 /dev/urandom >"$dir/large"
head -c 1234567 /dev/urandom >"$dir/small"
for case in batch_copy_copies_through_gpu_memory \
	batch_copy_copies_without_a_driver batch_copy_copies_nothing_too \
	batch_copy_leaves_its_source_and_what_was_there; do
	if "$case"; then
		echo "[       OK ] $case"
	else
		echo "[  FAILED  ] $case"
		failed=1
	fi
done
exit "$failed"

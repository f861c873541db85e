#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# pack.sh BUILD - puts the shared libraries that the built programs need, and
# a GPU machine may lack, into BUILD/deps, so that the tree can be carried.
set -euo pipefail
build=${1:?usage: pack.sh BUILD}
mkdir -p "$build/deps"
for name in libyyjson.so.0 liburing.so.2 libcmocka.so.0; do
	path=$(ldconfig -p | awk -v n="$name" '$1 == n { print $NF; exit }')
	if [ -z "$path" ]; then
		echo "pack: $name is not installed" >&2
		exit 1
	fi
	cp -L "$path" "$build/deps/"
done

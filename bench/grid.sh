#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# grid.sh BUILD OUT - the rows of docs/performance.md: every table's cells,
# side by side, as JSON files in the folder OUT.
set -euo pipefail
build=${1:?usage: grid.sh BUILD OUT}
out=${2:?usage: grid.sh BUILD OUT}
cell() {
	local name=$1
	shift
	"$(dirname "$0")/reference.sh" "$build" --seconds 0.3 --json "$out/$name.json" "$@"
}
cell reads --media cached --ops read --sizes 4K,64K,256K,1M,4M,16M,256M
cell threads --media cached --ops read --threads 4,16 --sizes 4K,1M,4M,16M
OCF_COMBINE=1 cell combine --media cached --ops read --threads 16 --sizes 4K,16K,64K
cell direct --media direct --sizes 4K,1M,16M,256M
cell writes --media cached --ops write --sizes 4K,1M,16M,256M
cell host --media cached --ops read --host --sizes 4K,1M,16M

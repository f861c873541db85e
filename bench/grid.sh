#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# grid.sh BUILD OUT [SECTION...] - the tables of docs/performance.md, from reads
# by size to a process at rest: JSON files in the folder OUT, OUT/tables.md,
# OUT/cliffs.txt, OUT/img.
# Without a section: all of them, in about 16 minutes on a machine with a GPU.
#
#   core    single requests: sizes, writes, kinds of memory, alignments, tmpfs
#   scale   4 KiB to 4 GiB on one thread, 1 to 64 threads
#   batch   stream   direct   fresh (first read of a process)   rest
#   hot     a file of 128 MiB that is read again and again
#   shared  large writes to tmpfs, also many at a time
#   gpus    two GPUs, only where it is asked for
#
# A measurement that fails, hangs or takes too long costs its rows only.
# OCF_BENCH_SECONDS and OCF_BENCH_ROUNDS: of each measurement (0.2, of hot files
# 0.5; 3);
# OCF_BENCH_FILE_SIZE: of the data file (1G). OCF_BENCH_PATIENCE: seconds
# until a library counts as hung (6).
set -uo pipefail
build=${1:?usage: grid.sh BUILD OUT [SECTION...]}
out=${2:?usage: grid.sh BUILD OUT [SECTION...]}
shift 2
here=$(dirname "$0")
export OCF_BENCH_FILE=${OCF_BENCH_FILE:-/var/tmp/ocf-bench.data}
names=()
mkdir -p "$out" || exit
made=() # what was there before is another's
for path in "$OCF_BENCH_FILE"{,.out,.big,.hot} /dev/shm/ocf-bench.data; do
	[ -e "$path" ] || made+=("$path")
done
trap 'rm -f "${made[@]}"' EXIT

# cell NAME ARGUMENT... : one run, at most four minutes
cell() {
	local name=$1
	shift
	echo "== $name"
	names+=("$name")
	timeout -k 10 240 "$here/reference.sh" "$build" --keep \
		--seconds "${OCF_BENCH_SECONDS:-0.2}" --rounds "${OCF_BENCH_ROUNDS:-3}" \
		--file-size "${OCF_BENCH_FILE_SIZE:-1G}" \
		--patience "${OCF_BENCH_PATIENCE:-6}" \
		--json "$out/$name.json" "$@" ||
		echo "grid: $name ended with status $?"
}

section_core() {
	cell reads --media cached --ops read --sizes 4K,64K,256K,1M,4M,16M,256M
	cell writes --media cached --ops write --sizes 4K,1M,16M,256M
	cell host --media cached --ops read --memory host --sizes 4K,1M,16M
	cell memory --media cached --ops read --memory managed,pinned --sizes 1M
	cell odd --media cached --align offset,size,buffer --sizes 1M
	cell unregistered --media cached --ops read --register no --sizes 4K,16M
	cell tmpfs --media tmpfs --sizes 4K,16M
	cell small --media cached --ops read --threads 4,16 --sizes 8K,16K,64K
}

section_scale() {
	OCF_BENCH_FILE=$OCF_BENCH_FILE.big cell sizes --media cached --ops read \
		--sizes 4K,16K,64K,256K,1M,4M,16M,64M,256M,1G,4G
	cell threads --media cached --ops read --threads 1,2,4,8,16,32,64 --sizes 4K,1M,16M
	cell few --media cached --ops read --threads 3,5,6,12 --sizes 1M,4M
	cell crowd --media cached --ops read --threads 16,32,64 --sizes 16K,64K,256K,4M
}

section_batch() {
	cell batch --media cached --ops read --batch 32,64,128 --sizes 4K,64K,1M
	cell batch-long --media cached --ops read --batch 1024 --sizes 4K
	cell batch-write --media cached --ops write --batch 32 --sizes 64K
	cell batch-direct --media direct --ops read --batch 32 --sizes 4K,64K,1M
}

section_stream() {
	cell stream --media cached --ops read --stream 8 --streams 1,4 --sizes 4K,64K,256K,1M,16M
	cell stream-write --media cached --ops write --stream 8 --streams 1,4 --sizes 1M
	cell stream-odd --media cached --ops read --stream 8 --register no --align buffer --sizes 64K
}

section_direct() {
	cell direct --media direct --sizes 4K,1M,16M,256M
	cell direct-threads --media direct --ops read --threads 16 --sizes 4K,1M,16M
	cell uncached --media uncached,scan --ops read --sizes 4K,1M,16M
}

# Longer than others: its pages are pinned in the first tenth of a second.
hot() {
	local name=$1
	shift
	OCF_BENCH_SECONDS=${OCF_BENCH_SECONDS:-0.5} OCF_BENCH_FILE=$OCF_BENCH_FILE.hot \
		cell "$name" --media cached --ops read --file-size 128M "$@"
}

section_hot() {
	hot hot --sizes 256K,512K,1M,2M,4M,16M --threads 1,4,16
	hot hot-batch --batch 32 --sizes 256K,512K,1M,2M,4M,16M
	hot hot-stream --stream 8 --sizes 64K,128K,256K,512K,1M,2M,4M,16M,64M
	hot hot-streams --stream 8 --streams 4 --sizes 64K,256K,1M,2M,16M
}

section_shared() {
	cell shared --media tmpfs --ops write --sizes 1M,4M,8M,16M,64M,256M --threads 1,4,16
	cell shared-batch --media tmpfs --ops write --batch 32 --sizes 1M,4M,16M
	cell shared-stream --media tmpfs --ops write --stream 8 --sizes 16M,64M
}

section_gpus() {
	local two=(--media cached --ops read --gpus 2)
	cell gpus "${two[@]}" --threads 2,16 --sizes 4K,64K,1M,16M,256M
	cell gpus-batch "${two[@]}" --threads 2 --batch 32 --sizes 64K,1M
	cell gpus-stream "${two[@]}" --threads 2 --stream 8 --sizes 1M,16M
	hot hot-gpus --gpus 2 --threads 2,8,16 --sizes 256K,1M,4M,16M
	hot hot-gpus-batch --gpus 2 --threads 2 --batch 32 --sizes 256K,1M,4M
	hot hot-gpus-stream --gpus 2 --threads 2 --stream 8 --sizes 256K,1M,4M,16M
}

section_fresh() {
	cell fresh --fresh --ops read --sizes 4K,16M --rounds 5
}

section_rest() {
	cell rest --rest --ops read
}

report() {
	local name files=() charted=()
	for name in "${names[@]}"; do
		[ -s "$out/$name.json" ] || continue
		printf '### %s\n\n' "$name"
		python3 -B "$here/table.py" "$out/$name.json"
		files+=("$out/$name.json")
		[[ $name == hot* ]] || charted+=("$out/$name.json")
	done >"$out/tables.md"
	python3 -B "$here/cliffs.py" "${files[@]}" >"$out/cliffs.txt"
	python3 -B "$here/charts.py" "$out/img" "${charted[@]}" >/dev/null
	cat "$out/tables.md" "$out/cliffs.txt"
}

[ $# -gt 0 ] || set -- core scale batch stream direct fresh rest hot shared
for section in "$@"; do
	if ! declare -F "section_$section" >/dev/null; then
		echo "grid: there is no section $section" >&2
		exit 2
	fi
done
for section in "$@"; do
	"section_$section"
done
report

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# reference.sh BUILD [OCF-BENCH ARGUMENT...] - ours, NVIDIA's library and the
# loop by hand, side by side, on the machine this runs on (as root).
#
# NVIDIA's library takes a file only if udev's database has an entry for its
# disk; containers and small machines have none, so one is made if need be.
set -euo pipefail
build=${1:?usage: reference.sh BUILD [OCF-BENCH ARGUMENT...]}
shift
file=${OCF_BENCH_FILE:-/var/tmp/ocf-bench.data}

reference=$(find /usr/local/cuda*/ -name 'libcufile.so.1.*' 2>/dev/null | sort | tail -1)
[ -n "$reference" ] || { echo "no libcufile of NVIDIA's on this machine" >&2; exit 1; }
entry=/run/udev/data/b$(stat -c '%Hd:%Ld' "$(dirname "$file")")
if [ ! -e "$entry" ]; then
	mkdir -p "$(dirname "$entry")"
	fstype=$(stat -f -c %T "$(dirname "$file")" | sed 's,ext2/ext3,ext4,')
	printf 'I:1\nE:ID_FS_USAGE=filesystem\nE:ID_FS_TYPE=%s\nG:systemd\n' "$fstype" >"$entry"
fi
export LD_LIBRARY_PATH=$build/deps${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
exec "$build/bench/ocf-bench" --lib "ours=$build/src/libcufile.so.0" \
	--lib "nvidia=$reference" --lib byhand --file "$file" "$@"

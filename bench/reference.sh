#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# reference.sh BUILD [OCF-BENCH ARGUMENT...] - ours, NVIDIA's library where it
# is installed, the loop by hand and the limit, side by side, on the machine
# this runs on. On one without a GPU: in host memory.
#
# NVIDIA's library takes a file only if udev's database has an entry for its
# disk; containers and small machines have none, so root makes one if need be.
# OCF_REFERENCE: another path of it, for which no entry is made.
# OCF_BENCH_FILE: where the data file goes.
set -euo pipefail
build=${1:?usage: reference.sh BUILD [OCF-BENCH ARGUMENT...]}
shift
file=${OCF_BENCH_FILE:-/var/tmp/ocf-bench.data}

make_udev_entry() {
	local entry fstype
	entry=/run/udev/data/b$(stat -c '%Hd:%Ld' "$(dirname "$file")")
	[ ! -e "$entry" ] || return 0
	fstype=$(stat -f -c %T "$(dirname "$file")" | sed 's,ext2/ext3,ext4,')
	mkdir -p "$(dirname "$entry")" &&
		printf 'I:1\nE:ID_FS_USAGE=filesystem\nE:ID_FS_TYPE=%s\nG:systemd\n' \
			"$fstype" >"$entry"
}

libraries=(--lib "ours=$build/src/libcufile.so.0")
installed=$(find /usr/local/cuda*/ -name 'libcufile.so.1.*' 2>/dev/null | sort | tail -1 || true)
if [ -n "${OCF_REFERENCE:-}" ]; then
	libraries+=(--lib "nvidia=$OCF_REFERENCE")
elif [ -n "$installed" ]; then
	make_udev_entry || echo "no udev entry: NVIDIA's library may refuse $file" >&2
	libraries+=(--lib "nvidia=$installed")
else
	echo "no libcufile of NVIDIA's on this machine" >&2
fi
export LD_LIBRARY_PATH=$build/deps${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
exec "$build/bench/ocf-bench" "${libraries[@]}" --lib byhand --lib limit \
	--file "$file" "$@"

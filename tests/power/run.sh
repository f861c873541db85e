#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# run.sh BUILD_DIR - cuts the power of an emulated machine after every flush
# of its disks, and looks for what was promised to last.
#
# The guest (guest.c) writes through the library and by pwrite, to ext4 and to
# a bare disk. QEMU keeps a log of all writes and flushes of each disk;
# replay.py makes of it what a disk with a volatile cache has left after a
# power cut in any of the times between two flushes. Exit status 0: every
# promised byte was there, and what nobody promised was missing; 77: it cannot
# be run here.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(realpath "${1:?usage: run.sh BUILD_DIR}")
# shellcheck source=scripts/packages.sh
. "$here/../../scripts/packages.sh"
# shellcheck source=tests/p2p/machine.sh
. "$here/../p2p/machine.sh"

machine_kernel "$build" mkfs.ext4 e2fsck debugfs python3
mkdir -p "$build/power"
cd "$build/power"
machine_root "$build" "$here/init" "$build/tests/power/power_guest" \
	virtio_pci virtio_blk ext4 crc32c_generic

# The file system, or a place for each way; from there on the records.
marks=$((40 << 20))
drives=()
for disk in ext4 raw; do
	rm -f "$disk".*
	truncate -s $((marks * 2)) "$disk.img"
	before=$marks
	if [ "$disk" = ext4 ]; then
		before=$((24 << 20))
		mkfs.ext4 -qF -b 4096 -J size=4 \
			-E lazy_itable_init=0,lazy_journal_init=0 \
			"$disk.img" $((before / 4096))
	fi
	head -c $before "$disk.img" >"$disk.before"
	: >"$disk.log"
	drives+=(-blockdev "driver=file,filename=$disk.img,node-name=$disk-file"
		-blockdev "driver=file,filename=$disk.log,node-name=$disk-log"
		-blockdev "driver=blklogwrites,file=$disk-file,log=$disk-log,log-super-update-interval=1,node-name=$disk"
		-device "virtio-blk-pci,drive=$disk,discard=off,write-zeroes=off")
done

status=0
machine_run 512 "marks=$marks" "${drives[@]}" || status=$?
tr -d '\r' <log.txt | grep -aoE '^not ok.*|^##.*|/[^ ]+ [0-9]+ writes promised|^guest done.*' || true
if [ "$status" != 0 ] || ! grep -aq '^guest done' log.txt ||
	[ "$(grep -acE '^## (ext4|raw): exit status 0' log.txt)" != 2 ]; then
	echo "the machine did not come to its end (status $status); its last lines:"
	tail -n 20 log.txt
	echo "0 passed, 1 failed"
	exit 1
fi
python3 -B "$here/replay.py" "$marks" ext4 raw || status=$?
rm -f ./*.img ./*.before ./*.log
exit "$status"

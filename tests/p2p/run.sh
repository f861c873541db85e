#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# run.sh BUILD_DIR - IO between disks and device memory by the kernel's own
# PCI P2PDMA, in an emulated machine.
#
# The memory of an emulated NVMe controller stands in for a GPU's: the fake
# CUDA driver hands it out as device memory. Three disks behind the same PCIe
# switch reach it (ext4, xfs, raw); one behind another port does not, and one that
# is no NVMe could not. Nothing
# but Debian packages is needed; the kernel is fetched once into the build
# directory. Exit status 0: all is right, 77: it cannot be run here.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(realpath "${1:?usage: run.sh BUILD_DIR}")
# shellcheck source=scripts/packages.sh
. "$here/../../scripts/packages.sh"
# shellcheck source=tests/p2p/machine.sh
. "$here/machine.sh"

machine_kernel "$build" mkfs.ext4 mkfs.xfs
cd "$build/p2p"
machine_root "$build" "$here/init" "$build/tests/p2p/guest" \
	nvme virtio_pci virtio_blk ext4 xfs crc32c_generic

# ------------------------------------------------------------------ the machine
drives=()
for disk in memory ext4 xfs raw far blind; do
	rm -f "$disk.img"
	truncate -s 320M "$disk.img"
	drives+=(-drive "file=$disk.img,if=none,id=$disk,format=raw,cache=unsafe")
done
mkfs.ext4 -qF ext4.img
mkfs.ext4 -qF far.img
mkfs.ext4 -qF blind.img
mkfs.xfs -qf xfs.img

# Without a processor of the kernel's list of those that route between ports,
# only what is behind one switch reaches each other.
status=0
machine_run 768 nvme_core.multipath=N "${drives[@]}" \
	-device pcie-root-port,id=near,chassis=1,slot=1 \
	-device x3130-upstream,id=switch,bus=near \
	-device xio3130-downstream,id=d1,bus=switch,chassis=2,slot=1 \
	-device nvme,serial=MEMORY,drive=memory,cmb_size_mb=64,bus=d1 \
	-device xio3130-downstream,id=d2,bus=switch,chassis=3,slot=2 \
	-device nvme,serial=EXT4,drive=ext4,bus=d2 \
	-device xio3130-downstream,id=d3,bus=switch,chassis=4,slot=3 \
	-device nvme,serial=XFS,drive=xfs,bus=d3 \
	-device xio3130-downstream,id=d4,bus=switch,chassis=5,slot=4 \
	-device nvme,serial=RAW,drive=raw,bus=d4 \
	-device pcie-root-port,id=away,chassis=6,slot=6 \
	-device nvme,serial=FAR,drive=far,bus=away \
	-device virtio-blk-pci,drive=blind || status=$?
rm -f ./*.img

tr -d '\r' <log.txt | grep -aE '^(not )?ok |^##|^# .*error|^device memory|^guest done' || true
echo "file system, direction, door, place in a block: path, copies by the driver"
tr -d '\r' <log.txt | awk '/^## [a-z0-9]+$/ { fs = $2 }
	/^# way / { printf "  %-6s %-6s %-7s %-8s %-7s %s\n", \
		fs, $3, $4, $5, $6, $7 }' | tr -d ':,'
passed=$(grep -acE '^ok [0-9]' log.txt || true)
failed=$(grep -acE '^not ok [0-9]' log.txt || true)
# each program must have come to its end, and the machine to its own
for name in ext4 xfs raw far blind; do
	grep -aq "^## $name: exit status 0" log.txt || failed=$((failed + 1))
done
if [ "$status" != 0 ] || ! grep -aq '^guest done' log.txt; then
	echo "the machine did not come to its end (status $status); its last lines:"
	tail -n 20 log.txt
	failed=$((failed + 1))
fi
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# machine.sh - an emulated machine, of Debian packages alone; sourced.
#
# Its kernel is fetched once into the build directory, its file system is a
# static busybox, one program of ours, and the libraries that this needs.
# Exit status 77 where it cannot be had.
export PATH=$PATH:/usr/sbin:/sbin

skip() {
	echo "skipped: $*"
	exit 77
}

# machine_kernel BUILD_DIR TOOL... : sets kernel (a directory) and version
machine_kernel() {
	local tool
	kernel=$1/p2p/kernel
	shift
	for tool in qemu-system-x86_64 busybox cpio xz depmod modprobe \
		dpkg-deb ldd "$@"; do
		have "$tool" || skip "$tool is not installed (./dev p2p installs it)"
	done
	[ "$(uname -m)" = x86_64 ] ||
		skip "programs of $(uname -m) do not run in an x86-64 machine"
	busybox_is_static ||
		skip "busybox is not the static one (package busybox-static)"
	# p2p and power may run at the same time
	mkdir -p "${kernel%/*}"
	exec 9>"$kernel.lock"
	flock 9
	if [ ! -e "$kernel/ready" ]; then
		rm -rf "$kernel"
		mkdir -p "$kernel"
		p2p_kernel "$kernel" ||
			skip "no Debian kernel with PCI_P2PDMA can be had"
	fi
	exec 9>&-
	version=$(cat "$kernel/ready")
	echo "kernel $version"
}

# machine_root BUILD_DIR INIT PROGRAM MODULE... : makes initrd.gz here
machine_root() {
	local build=$1 init=$2 program=$3 module file name lib
	shift 3
	rm -rf root
	mkdir -p root/{bin,dev,proc,sys,mod,ocf}
	cp "$(command -v busybox)" root/bin/busybox
	install -m 755 "$init" root/init
	cp "$program" root/ocf/guest
	cp -L "$build/src/libcufile.so.0" \
		"$build/tests/fakecuda/libcuda.so.1" root/ocf/
	LD_LIBRARY_PATH=$PWD/root/ocf ldd root/ocf/guest |
		grep -oE '/[^ ]+\.so[^ ]*' | grep -vF "$PWD/" | sort -u |
		while read -r lib; do
			cp --parents -L "$lib" root/
		done
	for module in "$@"; do
		modprobe -d "$kernel" -S "$version" --show-depends "$module" \
			2>/dev/null || true
	done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' |
		while read -r file; do
			name=$(basename "${file%.xz}")
			case $file in
			*.xz) xz -dc "$file" >"root/mod/$name" ;;
			*) cp "$file" "root/mod/$name" ;;
			esac
			echo "$name"
		done >root/mods
	(cd root && find . | cpio -o -H newc --quiet) | gzip -1 >initrd.gz
}

# machine_boot MIB APPEND DEVICE... : in a shell of its own, which QEMU becomes
#
# One thread for both processors: while one of them rewrites the kernel's code
# (static keys), QEMU with a thread for each now and then runs on the other what
# is half written, and one boot in thirty dies of it.
machine_boot() {
	local memory=$1 append=$2
	shift 2
	exec timeout 600 qemu-system-x86_64 -machine q35 -accel tcg,thread=single \
		-cpu max -smp 2 -m "$memory" -nodefaults -nographic -no-reboot \
		-nic none -serial stdio -kernel "$kernel/vmlinuz" \
		-initrd initrd.gz -append "console=ttyS0 quiet panic=-1 $append" \
		"$@" </dev/null >log.txt 2>&1
}

# machine_run MIB APPEND DEVICE... : boots initrd.gz to its end, into log.txt
#
# An emulator that stands still before the machine's first process has said "up"
# has run nothing of ours, and gets a second chance.
machine_run() {
	local pid seconds start status
	for start in 1 2; do
		: >log.txt
		machine_boot "$@" &
		pid=$!
		# shellcheck disable=SC2064 # this machine, whoever ends us
		trap "kill $pid 2>/dev/null || true" EXIT
		for ((seconds = 0; seconds < 180; seconds++)); do
			if grep -aq 'machine up' log.txt || ! kill -0 "$pid" 2>/dev/null; then
				status=0
				wait "$pid" || status=$?
				trap - EXIT
				return "$status"
			fi
			sleep 1
		done
		echo "start $start of 2: the machine was not up after $seconds s"
		kill "$pid"
		wait "$pid" || true
	done
	return 124
}

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# packages.sh - what the project needs from the distribution.
#
# Sourced by ./dev. A need_ function asks for each thing by using it, says
# nothing when all is there, and else installs the packages that are missing.

# shellcheck source=scripts/apt.sh
. "${BASH_SOURCE[0]%/*}/apt.sh"

have_library() { have pkg-config && pkg-config --exists "$1"; }
have_python_module() {
	/usr/bin/python3 -c "import $1" 2>/dev/null ||
		python3 -c "import $1" 2>/dev/null
}
have_libc_headers() {
	echo '#include <stdio.h>' | gcc -E - >/dev/null 2>&1
}

has_new_meson() { have meson && is_version "$(meson --version)" "$(at_least meson)"; }

# missing PACKAGE CHECK... : adds PACKAGE to the list when CHECK fails
missing() {
	local package=$1
	shift
	"$@" || wanted+=("$package")
}

need_build() {
	local wanted=()
	missing gcc have gcc
	missing libc6-dev have_libc_headers
	missing meson has_new_meson
	missing ninja-build have ninja
	missing pkg-config have pkg-config
	missing libcmocka-dev have_library cmocka
	missing libyyjson-dev have_library yyjson
	missing liburing-dev have_library liburing
	missing python3 have python3
	missing python3-pytest have_python_module pytest
	missing python3-numpy have_python_module numpy
	missing spin have spin
	install_packages "${wanted[@]}"
	has_new_meson || die "the meson found first is too old:" \
		"$(meson --version), at least $(at_least meson) is needed"
}

need_lint() {
	local wanted=()
	missing gcc have gcc
	missing g++ have g++
	missing libc6-dev have_libc_headers
	missing python3 have python3
	missing clang have clang
	missing clang-format have clang-format
	missing cppcheck have cppcheck
	missing shellcheck have shellcheck
	missing codespell have codespell
	missing mypy have mypy
	install_packages "${wanted[@]}"
}

need_package() {
	local wanted=()
	missing dpkg-dev have dpkg-shlibdeps
	missing python3-setuptools have_python_module setuptools
	missing python3-wheel have_python_module wheel
	install_packages "${wanted[@]}"
}

busybox_is_static() {
	have busybox && ! ldd "$(command -v busybox)" >/dev/null 2>&1
}

# The emulated machine (tests/p2p); its kernel is not installed but unpacked.
need_p2p() {
	local wanted=() PATH=$PATH:/usr/sbin:/sbin
	missing qemu-system-x86 have qemu-system-x86_64
	missing seabios test -e /usr/share/seabios/bios-256k.bin
	missing busybox-static busybox_is_static
	missing e2fsprogs have mkfs.ext4
	missing xfsprogs have mkfs.xfs
	missing cpio have cpio
	missing xz-utils have xz
	missing kmod have modprobe
	install_packages "${wanted[@]}"
}

# A compiler for aarch64, and what runs its programs here.
need_arm64() {
	local wanted=()
	need_build
	missing gcc-aarch64-linux-gnu have aarch64-linux-gnu-gcc
	missing qemu-user-static have qemu-aarch64-static
	install_packages "${wanted[@]}"
}

need_fuzz() {
	local wanted=()
	need_build
	missing clang have clang
	install_packages "${wanted[@]}"
}

need_format() {
	local wanted=()
	missing clang-format have clang-format
	install_packages "${wanted[@]}"
}

debian_mirror_for() {
	find_mirror debian && return
	say "the apt sources name no Debian mirror to take $1 from"
	return 1
}

# p2p_kernel DIR : a Debian kernel with PCI_P2PDMA, unpacked there, and its
# version in DIR/ready. Those of Debian 12 and 13 have it not, the backports
# of Debian 13 have. Needs no root.
p2p_kernel() {
	local dir=$1 mirror keyring private=() version binary deb
	debian_mirror_for "a kernel" || return
	mkdir -p "$dir/debs"
	dir=$(realpath "$dir")
	private_apt "$dir/apt" trixie-backports main
	say "fetching a kernel of Debian trixie-backports from $mirror"
	apt-get "${private[@]}" update -qq || return
	version=$(apt-cache "${private[@]}" search '^linux-modules-.*-cloud-amd64$' |
		sed -n 's/^linux-modules-\([^ ]*-cloud-amd64\) .*/\1/p' |
		sort -V | tail -1)
	[ -n "$version" ] || return
	binary=linux-binary-$version
	apt-cache "${private[@]}" show "$binary" >/dev/null 2>&1 ||
		binary=linux-binary-unsigned-$version
	(cd "$dir/debs" && apt-get "${private[@]}" download -qq "$binary" \
		"linux-modules-$version" "linux-base-$version") || return
	for deb in "$dir"/debs/*.deb; do
		dpkg-deb -x "$deb" "$dir" || return
	done
	rm -rf "$dir/apt" "$dir/debs"
	[ -e "$dir/lib" ] || ln -s usr/lib "$dir/lib"
	depmod -b "$dir" "$version" || return
	grep -q '^CONFIG_PCI_P2PDMA=y' "$dir/lib/modules/$version/config" || return
	cp "$(find "$dir" -name 'vmlinuz*' -type f | head -1)" "$dir/vmlinuz" &&
		echo "$version" >"$dir/ready"
}

# arm64_root DIR : the libraries for aarch64, of Debian 13, unpacked there, with
# a cross file for meson in DIR/ready. Needs no root.
arm64_root() {
	local dir=$1 mirror keyring private=() deb
	debian_mirror_for libraries || return
	mkdir -p "$dir/apt"
	dir=$(realpath "$dir")
	private_apt "$dir/apt" trixie main
	: >"$dir/apt/status" # nothing is installed: all that they need comes, too
	private+=(-o "Dir::State::status=$dir/apt/status"
		-o APT::Architecture=arm64 -o APT::Architectures::=arm64)
	say "fetching libraries for arm64 of Debian trixie from $mirror"
	apt-get "${private[@]}" update -qq &&
		apt-get "${private[@]}" install -y -qq --download-only \
			--no-install-recommends libc6-dev libcmocka-dev \
			liburing-dev libyyjson-dev >/dev/null || return
	ln -sfn usr/lib "$dir/lib"
	for deb in "$dir"/apt/cache/archives/*.deb; do
		dpkg-deb --fsys-tarfile "$deb" |
			tar -x -C "$dir" --keep-directory-symlink || return
	done
	rm -rf "$dir/apt"
	cat >"$dir/ready" <<-END
		[binaries]
		c = ['aarch64-linux-gnu-gcc', '--sysroot=$dir']
		ar = 'aarch64-linux-gnu-gcc-ar'
		strip = 'aarch64-linux-gnu-strip'
		pkgconfig = 'pkg-config'
		exe_wrapper = ['qemu-aarch64-static', '-L', '$dir']
		[properties]
		sys_root = '$dir'
		pkg_config_libdir = '$dir/usr/lib/aarch64-linux-gnu/pkgconfig'
		[host_machine]
		system = 'linux'
		cpu_family = 'aarch64'
		cpu = 'aarch64'
		endian = 'little'
	END
}

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# control.sh - what the Debian packages are called, hold and say of themselves.
#
# Sourced by scripts/package.sh. A package is a name, the patterns of the
# files it takes from the installed tree, its relations, and two texts.
# libcufile0, libcufile-dev and gds-tools are what Debian and Ubuntu call their
# own packages of NVIDIA's files; ours take their places, in the version of the
# interface, for packages of programs ask for a version. NVIDIA's packages
# (libcufile-13-0 and the like) live under /usr/local/cuda and need no relation.
# shellcheck disable=SC2034,SC2154 # package.sh reads these and gives those

deb_packages=(libcufile0-opencufile libcufile-opencufile-dev opencufile-tools
	opencufile-default python3-cufile)

deb_files() {
	case $1 in
	libcufile0-opencufile)
		echo "usr/lib/$multiarch/libcufile.so.*"
		echo usr/share/opencufile/cufile.json
		echo 'usr/share/man/man[57]/*'
		;;
	libcufile-opencufile-dev)
		echo 'usr/include/*'
		echo "usr/lib/$multiarch/libcufile.so"
		echo "usr/lib/$multiarch/pkgconfig/*"
		echo "usr/lib/$multiarch/cmake/opencufile/*"
		echo 'usr/share/man/man3/*'
		;;
	opencufile-tools)
		echo 'usr/bin/*'
		echo 'usr/share/man/man1/*'
		;;
	opencufile-default)
		echo etc/ld.so.conf.d/0000-opencufile.conf
		echo "usr/lib/$multiarch/opencufile/libcufile.so.0"
		;;
	python3-cufile)
		echo 'usr/lib/python3/dist-packages/*'
		;;
	esac
}

# The fields that differ; $shlibs is what dpkg-shlibdeps found.
deb_fields() {
	local ours="libcufile0-opencufile (= $deb_version)"
	case $1 in
	libcufile0-opencufile)
		echo "Architecture: $arch"
		echo "Multi-Arch: same"
		echo "Section: libs"
		echo "Depends: $shlibs"
		echo "Provides: libcufile0 (= $api)"
		echo "Conflicts: libcufile0"
		echo "Replaces: libcufile0"
		;;
	libcufile-opencufile-dev)
		echo "Architecture: $arch"
		echo "Section: libdevel"
		echo "Depends: $ours"
		echo "Provides: libcufile-dev (= $api)"
		echo "Conflicts: libcufile-dev"
		echo "Replaces: libcufile-dev"
		;;
	opencufile-tools)
		echo "Architecture: $arch"
		echo "Section: utils"
		echo "Depends: python3, $ours, $shlibs"
		echo "Provides: gds-tools"
		echo "Conflicts: gds-tools"
		echo "Replaces: gds-tools"
		;;
	opencufile-default)
		echo "Architecture: $arch"
		echo "Section: admin"
		echo "Depends: $ours"
		;;
	python3-cufile)
		echo "Architecture: all"
		echo "Section: python"
		echo "Depends: python3 (>= 3.9), libcufile0-opencufile (>= $version)"
		;;
	esac
}

deb_text() {
	case $1 in
	libcufile0-opencufile) cat <<-'TEXT' ;;
		files to and from GPU memory, an open libcufile
		 The C library with the 50 calls of cuFile, binary compatible with
		 programs built for NVIDIA's. It needs no kernel module and runs on
		 any file system, and without a GPU with host memory.
		TEXT
	libcufile-opencufile-dev) cat <<-'TEXT' ;;
		files to and from GPU memory, headers
		 cufile.h, opencufile.h, what pkg-config and CMake want to know, and
		 a manual page for each call. No CUDA toolkit is needed.
		TEXT
	opencufile-tools) cat <<-'TEXT' ;;
		files to and from GPU memory, tools
		 gdscheck tells which way bytes go and why, gdsio measures, gdscp
		 copies and verifies, gdsio_verify reads and compares, gds_stats looks
		 at a running process, gds_log_collection.py gathers what a helper
		 needs to see, ocf-run runs any command on this library.
		TEXT
	opencufile-default) cat <<-'TEXT' ;;
		files to and from GPU memory, before all others
		 Makes the loader find this libcufile before the one of a CUDA
		 toolkit under /usr/local/cuda, which stays as it is. Removing the
		 package undoes it.
		TEXT
	python3-cufile) cat <<-'TEXT' ;;
		files to and from GPU memory, for Python
		 The package cufile reads and writes arrays of PyTorch, CuPy, Numba
		 and NumPy, and loads safetensors models into GPU memory.
		TEXT
	esac
}

deb_overrides() {
	case $1 in
	libcufile0-opencufile)
		# what it is in the place of has that name
		echo package-name-doesnt-match-sonames
		# package.sh says why
		echo unstripped-binary-or-object
		;;
	opencufile-tools)
		echo unstripped-binary-or-object
		# NVIDIA's name of it
		echo script-with-language-extension
		;;
	opencufile-default)
		# that is what it is for
		echo package-modifies-ld.so-search-path
		echo package-has-unnecessary-activation-of-ldconfig-trigger
		;;
	esac
}

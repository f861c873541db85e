#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# package.sh TREE OUT - Debian packages and the wheel into OUT, out of the
# build folder TREE, which is made for it. The same sources and compiler give
# the same bytes: SOURCE_DATE_EPOCH is the last commit's time if not set, or that
# of CHANGELOG.md where git cannot tell.
set -euo pipefail
tree=$(realpath -m "${1:?usage: package.sh TREE OUT}")
out=$(realpath -m "${2:?usage: package.sh TREE OUT}")
cd "$(dirname "$0")/.."
root=$PWD
# shellcheck source=scripts/deb/control.sh
. scripts/deb/control.sh

arch=$(dpkg --print-architecture)
api=$(sed -n 's/^#define API_VERSION \(.\)\(..\)0$/\1.\2/p' src/api/driver.c)
multiarch=$(dpkg-architecture -qDEB_HOST_MULTIARCH)
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md)}
stage=$tree/stage # the installed tree, all packages together
maintainer='opencufile authors <opencufile@localhost>'
shlibs=

build_tree() {
	[ -f "$tree/build.ninja" ] ||
		meson setup "$tree" --prefix=/usr --libdir="lib/$multiarch" \
			--buildtype=release -Dtests=false \
			>"$tree.log" 2>&1 || { cat "$tree.log" >&2; return 1; }
	meson compile -C "$tree"
	rm -rf "$stage"
	meson install -C "$tree" --no-rebuild --quiet --destdir "$stage"
	version=$(meson introspect "$tree" --projectinfo |
		sed -n 's/.*"version": "\([^"]*\)".*/\1/p')
	deb_version=$version-1
}

# What meson does not install: the loader's preference, the Python package.
add_rest() {
	local lib=$stage/usr/lib/$multiarch python=$stage/usr/lib/python3/dist-packages
	mkdir -p "$lib/opencufile" "$stage/etc/ld.so.conf.d" "$python"
	ln -s ../libcufile.so.0 "$lib/opencufile/libcufile.so.0"
	echo "/usr/lib/$multiarch/opencufile" >"$stage/etc/ld.so.conf.d/0000-opencufile.conf"
	(cd python && find cufile -name '*.py' -o -name py.typed) |
		(cd python && xargs cp --parents -t "$python")
	find "$stage/usr/share/man" -type f -exec gzip -9n {} +
	# names of functions stay, for gdb, perf and valgrind to show
	strip --strip-debug "$lib"/libcufile.so.*.*.*
	find "$stage/usr/bin" -type f ! -name ocf-run ! -name '*.py' \
		-exec strip --strip-debug {} +
}

# shlibs_of PACKAGE-FOLDER : the distribution's packages that its files need
shlibs_of() {
	local work=$tree/shlibs files
	mapfile -t files < <(find "$1/usr" -type f \( -path '*/bin/*' \
		-o -name '*.so.*' \) ! -name ocf-run ! -name '*.py')
	[ "${#files[@]}" -gt 0 ] || return 0
	rm -rf "$work"
	mkdir -p "$work/debian"
	printf 'Source: opencufile\n\nPackage: x\nArchitecture: any\n' >"$work/debian/control"
	(cd "$work" && dpkg-shlibdeps -O --ignore-missing-info \
		-l"$tree/deb/libcufile0-opencufile/usr/lib/$multiarch" \
		"${files[@]}" 2>"$work/log") |
		sed -n 's/^shlibs:Depends=//p'
}

# take PACKAGE FOLDER : moves its files out of the stage
take() {
	local pattern path
	while read -r pattern; do
		for path in "$stage"/$pattern; do
			[ -e "$path" ] || [ -L "$path" ] ||
				{ echo "package: nothing for $pattern" >&2; return 1; }
			path=${path#"$stage/"}
			mkdir -p "$2/${path%/*}"
			mv "$stage/$path" "$2/$path"
		done
	done < <(deb_files "$1")
}

documents() {
	local folder=$2/usr/share/doc/$1
	mkdir -p "$folder"
	cat >"$folder/copyright" <<-TEXT
		Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
		Upstream-Name: opencufile

		Files: *
		Copyright: 2026 the opencufile authors
		License: Apache-2.0
		 On Debian systems the text is in /usr/share/common-licenses/Apache-2.0.
	TEXT
	gzip -9nc CHANGELOG.md >"$folder/changelog.gz"
	gzip -9n >"$folder/changelog.Debian.gz" <<-TEXT
		opencufile ($deb_version) unstable; urgency=medium

		  * What has changed is in changelog.gz.

		 -- $maintainer  $(LC_ALL=C date -uR -d "@$SOURCE_DATE_EPOCH")
	TEXT
}

# What lintian shall not say of it, for it is meant.
overrides() {
	local folder=$2/usr/share/lintian/overrides
	[ -n "$(deb_overrides "$1")" ] || return 0
	mkdir -p "$folder"
	deb_overrides "$1" | sed "s/^/$1: /" >"$folder/$1"
}

control_files() {
	local name=$1 folder=$2
	mkdir -p "$folder/DEBIAN"
	shlibs=$(shlibs_of "$folder")
	{
		echo "Package: $name"
		echo "Source: opencufile"
		echo "Version: $deb_version"
		echo "Maintainer: $maintainer"
		echo "Priority: optional"
		echo "Installed-Size: $(du -sk --apparent-size "$folder/usr" | cut -f1)"
		deb_fields "$name"
		echo "Description: $(deb_text "$name")"
	} >"$folder/DEBIAN/control"
	case $name in
	libcufile0-opencufile)
		echo "libcufile 0 libcufile0-opencufile | libcufile0" >"$folder/DEBIAN/shlibs"
		echo "activate-noawait ldconfig" >"$folder/DEBIAN/triggers"
		;;
	opencufile-default)
		echo /etc/ld.so.conf.d/0000-opencufile.conf >"$folder/DEBIAN/conffiles"
		echo "activate-noawait ldconfig" >"$folder/DEBIAN/triggers"
		;;
	python3-cufile)
		install -m 755 scripts/deb/python3-cufile.prerm "$folder/DEBIAN/prerm"
		;;
	esac
}

build_deb() {
	local name=$1 folder=$tree/deb/$1
	mkdir -p "$folder"
	take "$name" "$folder"
	documents "$name" "$folder"
	overrides "$name" "$folder"
	control_files "$name" "$folder"
	(cd "$folder" && find . -path ./DEBIAN -prune -o -type f -printf '%P\0' |
		sort -z | xargs -0 md5sum >DEBIAN/md5sums)
	chmod -R u=rwX,go=rX "$folder"
	find "$folder/usr" -type f -name '*.so.*' -exec chmod a-x {} +
	dpkg-deb --root-owner-group -Zxz --build "$folder" "$out" >/dev/null
}

nothing_left() {
	local left
	left=$(find "$stage" ! -type d)
	[ -z "$left" ] || { echo "package: in no package: $left" >&2; return 1; }
}

# bundle_of LIBRARY FOLDER : the library with those that it needs and a machine
# may lack, as the distribution packed them, and what their authors ask to be
# said of them.
bundle_of() {
	local library=$1 folder=$2 path owner
	rm -rf "$folder"
	mkdir -p "$folder/licenses"
	install -m 755 "$library" "$folder/libcufile.so.0"
	ldd "$library" | awk '$3 ~ /\/lib(yyjson|uring)\.so/ { print $3 }' >"$tree/needed"
	while read -r path; do
		install -m 644 "$(realpath "$path")" "$folder/${path##*/}"
		owner=$(dpkg -S "$(realpath "$path")" | cut -d: -f1)
		install -m 644 "/usr/share/doc/$owner/copyright" "$folder/licenses/$owner"
	done <"$tree/needed"
	strip --strip-debug "$folder"/*.so.*
}

# platform_of FOLDER : the wheel's tag, with the oldest libc that will do
platform_of() {
	local libc
	libc=$(readelf -VW "$1"/*.so.* | grep -oE 'GLIBC_[0-9.]+' | sort -Vu | tail -1)
	libc=${libc#GLIBC_}
	echo "manylinux_${libc/./_}_$(uname -m)"
}

build_wheel() {
	local copy=$tree/python bundle=$tree/bundle
	ninja -C "$tree" src/wheel/libcufile.so.0.1.0 >"$tree/wheel.log" ||
		{ cat "$tree/wheel.log" >&2; return 1; }
	bundle_of "$tree/src/wheel/libcufile.so.0.1.0" "$bundle"
	rm -rf "$copy"
	mkdir -p "$copy"
	# without git, or in a tree that is not its own, all that is there
	{ git ls-files -z python | xargs -0 cp --parents -t "$copy"; } 2>/dev/null ||
		cp -r python "$copy"
	chmod -R u=rwX,go=rX "$copy" # whatever umask the tree was fetched with
	install -m 755 tools/ocf-run "$copy/python/ocf-run"
	(cd "$copy/python" && OPENCUFILE_BUNDLE=$bundle OPENCUFILE_RUN=ocf-run \
		OPENCUFILE_PLATFORM=$(platform_of "$bundle") "$python" -c '
import sys
import setuptools.build_meta
setuptools.build_meta.build_wheel(sys.argv[1])' "$out" >"$tree/wheel.log" 2>&1) ||
		{ cat "$tree/wheel.log" >&2; return 1; }
}

python=/usr/bin/python3
"$python" -c 'import setuptools, wheel' 2>/dev/null || python=python3
umask 022
mkdir -p "$tree" "$out"
rm -rf "$tree/deb" "$out"/*.deb "$out"/*.whl
build_tree
add_rest
build_wheel
for package in "${deb_packages[@]}"; do
	build_deb "$package"
done
nothing_left
cd "$root"
ls -l "$out"

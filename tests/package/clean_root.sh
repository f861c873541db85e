#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# clean_root.sh PACKAGES - installs the packages of ./dev package with apt in a
# fresh Debian 13 that debootstrap makes, and uses them there. As root, with a
# mirror in reach; SUITE names another release, ROOT_DIR keeps the root.
# shellcheck disable=SC2016 # what stands in quotes is for the shell inside
set -euo pipefail
packages=$(realpath "${1:?usage: clean_root.sh PACKAGES}")
cd "$(dirname "$0")/../.."
# shellcheck source=scripts/packages.sh
. scripts/packages.sh
suite=${SUITE:-trixie}
mirror=${MIRROR:-$(mirror_of debian || true)}
[ -n "$mirror" ] || die "apt's sources name no Debian mirror: MIRROR=URL"
root=${ROOT_DIR:-$(mktemp -d "${TMPDIR:-/var/tmp}/clean_root.XXXXXX")}
[ -n "${ROOT_DIR:-}" ] || trap 'rm -rf "$root"' EXIT

inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin \
	http_proxy="${http_proxy:-}" https_proxy="${https_proxy:-}" \
	DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 "$@"; }
step() { echo "clean_root: $*"; }

if [ ! -x "$root/usr/bin/apt-get" ]; then
	step "making a $suite in $root"
	debootstrap --variant=minbase "$suite" "$root" "$mirror" >"$root.log" 2>&1 ||
		{ tail -5 "$root.log" >&2; exit 1; }
	rm -f "$root.log"
fi
cp /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true
cp -r /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d/"
mkdir -p "$root/packages"
cp "$packages"/*.deb "$root/packages"
cp tests/package/consumer/consumer.c "$root/packages"

step "installing with apt"
inside sh -c 'apt-get update -qq && apt-get install -y -qq \
	--no-install-recommends /packages/*.deb gcc libc6-dev pkg-config >/dev/null'

step "a file through the tools"
inside sh -ec 'cd /tmp && head -c 3456789 /dev/urandom >source
	gdscp source copy >/dev/null && cmp source copy
	gdscheck -f source | grep -q host
	test "$(ocf-run -n true)" -ef /usr/lib/*-linux-gnu/libcufile.so.0'

step "a program built with pkg-config"
inside sh -ec 'cd /tmp && echo "bytes of a stranger" >file
	gcc -D_GNU_SOURCE /packages/consumer.c -o consumer \
		$(pkg-config --cflags --libs opencufile)
	./consumer file | grep -q "bytes of a stranger"
	./consumer file | grep -q opencufile/libcufile.so.0'

step "Python"
inside python3 -c '
import cufile
with cufile.open("/tmp/source") as file:
    room = bytearray(3456789)
    assert file.read(room) == len(room)
assert room == open("/tmp/source", "rb").read()'

step "removing all of it"
inside sh -ec 'apt-get purge -y -qq libcufile0-opencufile opencufile-default \
		libcufile-opencufile-dev opencufile-tools python3-cufile >/dev/null
	! ldconfig -p | grep -q libcufile
	test -z "$(find / -xdev -name "*cufile*" ! -path "/packages/*" \
		! -path "/var/*" ! -path "/tmp/*")"'
step passed

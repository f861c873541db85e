#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# apt.sh - packages of the distribution, and of a newer release of it.
#
# Sourced by packages.sh. Installs as root or through sudo.

say() { echo "dev: $*"; }
die() {
	echo "dev: $*" >&2
	exit 1
}

have() { command -v "$1" >/dev/null; }

is_root() { [ "$(id -u)" = 0 ]; }
as_root() {
	if is_root; then
		"$@"
	else
		# sudo drops the environment, apt must stay silent.
		sudo DEBIAN_FRONTEND=noninteractive "$@"
	fi
}

# is_version VERSION FIRST : VERSION is FIRST or later
is_version() { [ "$(printf '%s\n' "$1" "$2" | sort -V | head -1)" = "$2" ]; }

# at_least PACKAGE : the first version of it that will do
at_least() { [ "$1" = meson ] && echo 1.0 || echo 0; }

in_release() {
	local version
	version=$(apt-cache madison "$1" 2>/dev/null | head -1 | cut -d'|' -f2 | tr -d ' ')
	[ -n "$version" ] && is_version "$version" "$(at_least "$1")"
}

install_packages() {
	[ $# -gt 0 ] || return 0
	have apt-get || die "missing, and there is no apt-get to install it: $*"
	is_root || have sudo || die "neither root nor sudo to install what is" \
		"missing: as root, run: apt-get install --no-install-recommends $*"
	say "missing: $*; installing with apt-get"
	export DEBIAN_FRONTEND=noninteractive
	as_root apt-get update -qq || say "apt-get update failed; going on with the lists there are"

	local package plain=() newer=()
	for package in "$@"; do
		if in_release "$package"; then
			plain+=("$package")
		else
			newer+=("$package")
		fi
	done
	install_plain "${plain[@]}"
	install_newer "${newer[@]}"
	say "installed: $*"
}

install_plain() {
	[ $# -gt 0 ] || return 0
	as_root apt-get install -y -qq --no-install-recommends "$@" >/dev/null ||
		die "apt-get could not install: $*"
}

# yyjson's library and headers are of one version, and come together.
install_newer() {
	[ $# -gt 0 ] || return 0
	local folder status=0
	[[ " $* " != *" libyyjson-dev "* ]] || set -- libyyjson0 "$@"
	folder=$(mktemp -d)
	fetch_newer "$folder" "$@" &&
		as_root apt-get install -y -qq --no-install-recommends \
			-o APT::Sandbox::User=root "$folder"/*.deb >/dev/null ||
		status=$?
	rm -rf "$folder"
	[ "$status" = 0 ] || die "could not be installed: $*"
}

# fetch_newer FOLDER PACKAGE... : out of Debian 13 or Ubuntu 26.04. Debian 12 and
# Ubuntu 24.04 have no yyjson, and Ubuntu 22.04 no recent meson. Those packages
# depend on nothing that is newer, so they install as they are. Needs no root.
fetch_newer() {
	local folder=$1 mirror keyring release private=() state status=0
	shift
	if find_mirror debian; then
		release=(trixie main)
	elif find_mirror 'ubuntu(-ports)?'; then
		release=(resolute main universe)
	else
		die "this release has no such package, or an old one: please" \
			"install by other means: $*"
	fi
	say "this release has no such package, or an old one: $*;" \
		"taking that of ${release[0]} from $mirror"
	state=$(mktemp -d)
	private_apt "$state" "${release[@]}"
	apt-get "${private[@]}" update -qq &&
		(cd "$folder" && apt-get "${private[@]}" download -qq "$@") || status=$?
	rm -rf "$state"
	return "$status"
}

# The mirror of a distribution that this machine's own sources name, in either
# format.
mirror_of() {
	local etc=${OCF_ETC_APT:-/etc/apt}
	cat "$etc"/sources.list "$etc"/sources.list.d/*.list \
		"$etc"/sources.list.d/*.sources 2>/dev/null |
		grep -v -e '^ *#' -e '//security\.' |
		grep -oE "[a-z+]+://[^] ]+/$1/?( |\$)" | head -1 | tr -d ' '
}

# find_mirror DISTRIBUTION : names one in mirror, and who signs for it in keyring
find_mirror() {
	mirror=$(mirror_of "$1") || true
	keyring=/usr/share/keyrings/${1%%[!a-z]*}-archive-keyring.gpg
	[ -n "$mirror" ] && [ -r "$keyring" ] && have apt-get
}

# private_apt STATE RELEASE COMPONENT... : the options go into private=(). It
# leaves the machine's own sources and lists untouched.
private_apt() {
	local state=$1
	shift
	private=(
		-o "Dir::Etc::sourcelist=$state/sources.list"
		-o Dir::Etc::sourceparts=-
		-o "Dir::State::lists=$state/lists"
		-o "Dir::Cache=$state/cache"
		-o APT::Get::List-Cleanup=0
		-o APT::Sandbox::User=root
	)
	mkdir -p "$state/lists/partial" "$state/cache/archives/partial"
	echo "deb [signed-by=$keyring] $mirror $*" >"$state/sources.list"
}

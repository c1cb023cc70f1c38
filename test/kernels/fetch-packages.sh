#!/bin/sh
# fetch-packages.sh SUITE ARCH PACKAGE…: prints the folder into which these Debian packages are unpacked, downloaded once
# into a cache.
set -eu
suite=$1
arch=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
root=${XDG_CACHE_HOME:-$HOME/.cache}/everyframe/packages/$suite-$arch
missing=
for package; do
	[ -e "$root/.unpacked/$package" ] || missing="$missing $package"
done
if [ -n "$missing" ]; then
	mkdir -p "$root/.unpacked"
	work=$(mktemp -d "$root.XXXXXX")
	trap 'rm -rf "$work"' EXIT
	cd "$work"
	. "$here/private-apt.sh"
	for package in $missing; do
		apt-get download -q "$package" >&2
		dpkg-deb -x ./*.deb "$root"
		rm ./*.deb
		touch "$root/.unpacked/$package"
	done
fi
echo "$root"

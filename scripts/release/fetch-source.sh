#!/bin/sh
# fetch-source.sh SUITE PACKAGE: prints the folder into which a Debian source package is unpacked, with its patches,
# downloaded once into a cache.
set -eu
suite=$1
package=$2
here=$(cd "$(dirname "$0")/../../test/kernels" && pwd)
root=${XDG_CACHE_HOME:-$HOME/.cache}/everyframe/sources/$suite-$package
if [ ! -d "$root" ]; then
	mkdir -p "${root%/*}"
	work=$(mktemp -d "$root.XXXXXX")
	trap 'rm -rf "$work"' EXIT
	cd "$work"
	arch=$(dpkg --print-architecture)
	. "$here/private-apt.sh"
	sed 's/^deb /deb-src /' sources.list >>sources.list
	apt-get update -q --error-on=any >&2
	apt-get source --download-only -q "$package" >&2
	dpkg-source --no-check -x ./*.dsc unpacked >&2
	mv unpacked "$root"
fi
echo "$root"

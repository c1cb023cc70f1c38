#!/bin/sh
# fetch-kernel.sh SUITE [ARCH]: prints the path of the kernel for virtual machines of that suite and architecture (amd64, arm64):
# Debian's cloud kernel, Ubuntu's generic one; downloaded once into a cache.
set -eu
suite=$1
arch=${2:-amd64}
here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/everyframe/kernels
[ "$arch" = amd64 ] && kernel=$cache/$suite.vmlinuz || kernel=$cache/$suite-$arch.vmlinuz
if [ ! -s "$kernel" ]; then
	mkdir -p "$cache"
	work=$(mktemp -d "$cache/$suite.XXXXXX")
	trap 'rm -rf "$work"' EXIT
	cd "$work"
	. "$here/private-apt.sh"
	case $mirror in
	*/ubuntu) newest=linux-image-virtual ;;
	*) newest=linux-image-cloud-$arch ;;
	esac
	release=$(apt-cache depends "$newest" | sed -n 's/.*Depends: linux-image-\([0-9]\)/\1/p')
	# since 7.0 the image is in linux-binary-…, and below /usr
	package=$(apt-cache pkgnames "linux-binary-$release")
	apt-get download -q "${package:-linux-image-$release}" >&2
	dpkg-deb -x ./*.deb root
	mv "$(find root -name 'vmlinuz*' -type f)" "$kernel"
fi
echo "$kernel"

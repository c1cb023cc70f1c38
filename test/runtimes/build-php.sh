#!/bin/sh
# build-php.sh FOLDER VERSION: PHP with threads (ZTS), its JIT and libphp from the source that Debian's mirror has, into
# FOLDER/VERSION, with the flags of the official images. Some ten minutes, once.
set -eu

folder=$1 version=$2
prefix=$folder/$version
[ ! -e "$prefix/.complete" ] || exit 0
work=$folder/build-$version
rm -rf "$prefix" "$work"
mkdir -p "$work"

case $version in
7.4.33) sum=924846abf93bc613815c55dd3f5809377813ac62a9ec4eb3778675b82a27b927 threads=--enable-maintainer-zts ;;
8.2.32) sum=e02aa173c236c12791696254d607da680e6d5516f8f5c2339642de7c4f944bd2 threads=--enable-zts ;;
*)
	echo "$version: its checksum is not known here" >&2
	exit 1
	;;
esac
series=php${version%.*}

/usr/lib/apt/apt-helper -qq -o APT::Sandbox::User=root download-file \
	"http://deb.debian.org/debian/pool/main/p/$series/${series}_$version.orig.tar.xz" "$work/php.tar.xz" "SHA256:$sum" >&2
tar -C "$work" -xf "$work/php.tar.xz"
build() {
	cd "$work/php-$version" &&
		CFLAGS='-O2 -fstack-protector-strong -fpic -fpie' LDFLAGS='-Wl,-O1 -pie' ./configure --prefix="$prefix" \
			--disable-all --disable-cgi --disable-phpdbg --enable-embed --enable-opcache "$threads" &&
		make -s -j"$(nproc)" && make -s install
} >"$work/log" 2>&1
build || {
	tail -n 3 "$work/log" >&2
	exit 1
}
rm -rf "$work"
: >"$prefix/.complete"

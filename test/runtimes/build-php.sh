#!/bin/sh
# build-php.sh FOLDER VERSION: PHP with threads (ZTS), its JIT and libphp from the source that Debian's or Ubuntu's mirror
# has, into FOLDER/VERSION, with the flags of the official images. Some ten minutes, once.
. "$(dirname "$0")/from-source.sh"

version=$2
begin "$1/$version"
case $version in
7.4.33)
	threads=--enable-maintainer-zts
	fetch p/php7.4/php7.4_7.4.33.orig.tar.xz 924846abf93bc613815c55dd3f5809377813ac62a9ec4eb3778675b82a27b927
	;;
8.2.32)
	threads=--enable-zts
	fetch p/php8.2/php8.2_8.2.32.orig.tar.xz e02aa173c236c12791696254d607da680e6d5516f8f5c2339642de7c4f944bd2
	;;
8.5.4)
	threads=--enable-zts
	fetch p/php8.5/php8.5_8.5.4.orig.tar.xz c1569f1f543f6b025c583cdc0e730e5c5833c603618613f1aa8e75d1524b8c91 "$UBUNTU"
	;;
*) refuse "$version: its source and checksum are not known here" ;;
esac

build() {
	cd "$work/php-$version" &&
		CFLAGS='-O2 -fstack-protector-strong -fpic -fpie' LDFLAGS='-Wl,-O1 -pie' ./configure --prefix="$prefix" \
			--disable-all --disable-cgi --disable-phpdbg --enable-embed --enable-opcache "$threads" &&
		make -s -j"$(nproc)" && make -s install
}
finish build

#!/bin/sh
# build-perl.sh FOLDER VERSION VARIANT: Perl from the source that Debian's mirror has, into FOLDER/VERSION-VARIANT.
#   unthreaded   without ithreads, as perlbrew and the official images build it: there is no interpreter, its members are variables
# Minutes, once.
set -eu

folder=$1 version=$2 variant=$3
prefix=$folder/$version-$variant
[ ! -e "$prefix/.complete" ] || exit 0
work=$folder/build-$version-$variant
rm -rf "$prefix" "$work"
mkdir -p "$work"

case $version in
5.36.0) sum=0f386dccbee8e26286404b2cca144e1005be65477979beb9b1ba272d4819bcf0 ;;
*)
	echo "$version: its checksum is not known here" >&2
	exit 1
	;;
esac
[ "$variant" = unthreaded ] || {
	echo "$variant: choose unthreaded" >&2
	exit 1
}

/usr/lib/apt/apt-helper -qq -o APT::Sandbox::User=root download-file \
	"http://deb.debian.org/debian/pool/main/p/perl/perl_$version.orig.tar.xz" "$work/perl.tar.xz" "SHA256:$sum" >&2
tar -C "$work" -xf "$work/perl.tar.xz"
build() {
	cd "$work/perl-$version" &&
		./Configure -des -Dprefix="$prefix" -Dman1dir=none -Dman3dir=none -Uusethreads &&
		make -s -j"$(nproc)" && make -s install
} >"$work/log" 2>&1
build || {
	tail -n 3 "$work/log" >&2
	exit 1
}
rm -rf "$work"
: >"$prefix/.complete"

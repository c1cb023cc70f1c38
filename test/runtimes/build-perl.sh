#!/bin/sh
# build-perl.sh FOLDER VERSION VARIANT: Perl from the source that Debian's mirror has, into FOLDER/VERSION-VARIANT.
#   unthreaded   without ithreads, as perlbrew and the official images build it: there is no interpreter, its members are variables
# Minutes, once.
. "$(dirname "$0")/from-source.sh"

version=$2 variant=$3
[ "$variant" = unthreaded ] || refuse "$variant: choose unthreaded"
begin "$1/$version-$variant"
case $version in
5.36.0) fetch p/perl/perl_5.36.0.orig.tar.xz 0f386dccbee8e26286404b2cca144e1005be65477979beb9b1ba272d4819bcf0 ;;
*) refuse "$version: its source and checksum are not known here" ;;
esac

build() {
	cd "$work/perl-$version" &&
		./Configure -des -Dprefix="$prefix" -Dman1dir=none -Dman3dir=none -Uusethreads &&
		make -s -j"$(nproc)" && make -s install
}
finish build

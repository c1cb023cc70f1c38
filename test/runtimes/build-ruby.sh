#!/bin/sh
# build-ruby.sh FOLDER VERSION: Ruby with YJIT, for which packages have no compiler, from the source that Debian's or Ubuntu's
# mirror has, into FOLDER/VERSION. Needs rustc 1.58 or later; some fifteen minutes, once.
. "$(dirname "$0")/from-source.sh"

version=$2
begin "$1/$version"
case $version in
3.2.3)
	fetch r/ruby3.2/ruby3.2_3.2.3.orig.tar.xz 8a3567ec613c3c4e8b9b324fd1302b44ae342aa036f5081986b112fdede8fdfd "$UBUNTU"
	;;
3.3.8) fetch r/ruby3.3/ruby3.3_3.3.8.orig.tar.xz e2e1233ad275b7623a05edf23a01192626d1da454bdfe353a28a87acd8ef015c ;;
3.4.5) fetch r/ruby3.4/ruby3.4_3.4.5.orig.tar.xz 141fb3b0192b8196361b3b4d6c29fc9b10c0798dbe54ada1539d9f1c311bfcbf ;;
*) refuse "$version: its source and checksum are not known here" ;;
esac
command -v rustc >/dev/null || refuse 'no rustc'

build() {
	# gems that the source comes without are downloaded otherwise
	cd "$work/ruby-$version" && : >gems/bundled_gems &&
		./configure --prefix="$prefix" --enable-shared --enable-yjit --disable-install-doc \
			--with-out-ext=openssl,readline,psych,fiddle optflags=-O2 debugflags= &&
		make -s -j"$(nproc)" && make -s install-arch install-lib
}
finish build

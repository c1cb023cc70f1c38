#!/bin/sh
# build-python.sh FOLDER VERSION VARIANT: CPython from the source that Debian's mirror has, into FOLDER/VERSION-VARIANT.
#   free-threaded   without the interpreter lock
#   musl            with the C library musl, through musl-gcc, and a libffi of its own
# Minutes, once; without OpenSSL, zlib and the like, which no test needs.
. "$(dirname "$0")/from-source.sh"

version=$2 variant=$3
begin "$1/$version-$variant"
case $version in
3.13.5) fetch p/python3.13/python3.13_3.13.5.orig.tar.xz 93e583f243454e6e9e4588ca2c2662206ad961659863277afcdb96801647d640 ;;
3.14.7) fetch p/python3.14/python3.14_3.14.7.orig.tar.xz 3b48dac8fb59f62eaa67ac83c1eb12bda1b7a08406dd286e252c11a66be27f81 ;;
3.15.0rc2) fetch 'p/python3.15/python3.15_3.15.0~rc2.orig.tar.xz' 8d93af5eaaaea5adfd41bd786a7ba3f03f2ad1ab57c6a65e0b963deab91d5ad7 ;;
*) refuse "$version: its source and checksum are not known here" ;;
esac

build() {
	cd "$work/Python-$version" &&
		./configure --prefix="$prefix" --disable-test-modules --without-ensurepip CFLAGS=-g0 "$@" &&
		make -s -j"$(nproc)" && make -s install
}

build_ffi() {
	cd "$work/libffi-3.4.4" &&
		./configure CC="$work/cc" --prefix="$work/ffi" --disable-shared --disable-docs --with-pic \
			--disable-exec-static-tramp &&
		make -s -j"$(nproc)" install
}

build_musl() {
	# CPython's configure asks the compiler for the name that Debian gives to the platform: musl-gcc says the host's
	cat >"$work/cc" <<-'END'
		#!/bin/sh
		case $* in
		*--print-multiarch*) echo "$(uname -m)-linux-musl" ;;
		*) exec musl-gcc "$@" ;;
		esac
	END
	chmod +x "$work/cc"
	# pkg-config would find libraries of glibc
	build_ffi && build CC="$work/cc" PKG_CONFIG=/bin/false \
		LIBFFI_CFLAGS="-I$work/ffi/include" LIBFFI_LIBS="$work/ffi/lib/libffi.a"
}

case $variant in
free-threaded) finish build --disable-gil ;;
musl)
	fetch libf/libffi/libffi_3.4.4.orig.tar.gz d66c56ad259a82cf2a9dfc408b32bf5da52371500b84745f7fb8b645712df676
	finish build_musl
	;;
*) refuse "$variant: choose free-threaded or musl" ;;
esac

#!/bin/sh
# native.sh CPU OUT: what is compiled for a processor, into OUT, to run with glibc 2.28 and no other library than libstdc++
# and libgcc_s, which lie in OUT/lib (docs/decisions/process/releases.md).
set -eu
cd "$(dirname "$0")/../.."
cpu=$1
mkdir -p "$2"
out=$(cd "$2" && pwd)
case $cpu in
x86_64) arch=amd64 ;;
aarch64) arch=arm64 ;;
*)
	echo "native.sh: $cpu is not known" >&2
	exit 2
	;;
esac
fetch=test/kernels/fetch-packages.sh
old=$($fetch bullseye "$arch" libc6 libc6-dev libstdc++6 libgcc-s1)
new=$($fetch bookworm "$arch" libbpf-dev libelf-dev zlib1g-dev linux-libc-dev)
elfutils=$(scripts/release/fetch-source.sh bookworm elfutils)
triplet=$cpu-linux-gnu
mkdir -p "$out/link" "$out/lib" "$out/elfutils"

# Debian's static libraries are for programs alone, not for a library such as the addon.
compile() { # compile NAME FLAGS… FILES…: into lib NAME_pic.a
	name=$1
	shift
	mkdir -p "$out/$name"
	(
		cd "$out/$name"
		"$triplet-gcc" -O2 -fPIC -fvisibility=hidden -w -c -isystem "$new/usr/include" "$@"
	)
	"$triplet-ar" rcsD "$out/link/lib${name}_pic.a" "$out/$name"/*.o
}
if [ ! -f "$out/link/libelf_pic.a" ]; then
	zlib=$(scripts/release/fetch-source.sh bookworm zlib)
	libbpf=$(scripts/release/fetch-source.sh bookworm libbpf)
	compile z -D_LARGEFILE64_SOURCE=1 -DHAVE_UNISTD_H "$zlib"/*.c
	compile bpf -D_LARGEFILE64_SOURCE -D_FILE_OFFSET_BITS=64 "-I$libbpf/include" "-I$libbpf/include/uapi" "$libbpf"/src/*.c
	(
		cd "$out/elfutils"
		"$elfutils/configure" --host="$triplet" --disable-debuginfod --disable-libdebuginfod --disable-nls --without-bzlib \
			--without-lzma --without-zstd CC="$triplet-gcc" \
			CFLAGS="-O2 -Wno-error -ffile-prefix-map=$elfutils=elfutils -isystem $new/usr/include -L$new/usr/lib/$triplet"
		make -s -C lib libeu.a
		make -s -C libelf libelf_pic.a
	) >"$out/elfutils.log" 2>&1 || {
		tail -30 "$out/elfutils.log" >&2
		exit 1
	}
	cp "$out/elfutils/lib/libeu.a" "$out/elfutils/libelf/libelf_pic.a" "$out/link/"
fi

# Its own script names the files of the machine that builds.
libc=$old/lib/$triplet
echo "GROUP ( $libc/libc.so.6 $old/usr/lib/$triplet/libc_nonshared.a AS_NEEDED ( $libc/libpthread.so.0 $(echo "$libc"/ld-2.*.so) ) )" >"$out/link/libc.so"
ln -sf "$libc/libm.so.6" "$out/link/libm.so"
for library in "$old/usr/lib/$triplet/libstdc++.so.6" "$libc/libgcc_s.so.1"; do
	cp -L "$library" "$out/lib/"
done

make -s native CPU="$cpu" OUT="${out#"$PWD"/}" CXX="$triplet-g++" \
	SYSROOT_FLAGS="-isystem $new/usr/include -isystem $new/usr/include/$triplet -L$new/usr/lib/$triplet" SUPERVISE_LINK=-static \
	ADDON_LIBS="scripts/release/glibc-floor.cc -L$out/link -Wl,--exclude-libs,ALL -l:libbpf_pic.a -l:libelf_pic.a -l:libeu.a -l:libz_pic.a"

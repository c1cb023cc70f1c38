#!/bin/sh
# native.sh CPU OUT [ZIG]: what is compiled for a processor, into OUT, to run with glibc 2.28 and no other library than libstdc++
# and libgcc_s, which lie in OUT/lib. With ZIG, a compiler of its own, the addon for musl alone: all else is static or BPF, and
# runs there as it is (docs/decisions/process/releases.md).
set -eu
cd "$(dirname "$0")/../.."
cpu=$1
mkdir -p "$2"
out=$(cd "$2" && pwd)
zig=${3-}
case $cpu in
x86_64) arch=amd64 ;;
aarch64) arch=arm64 ;;
*)
	echo "native.sh: $cpu is not known" >&2
	exit 2
	;;
esac
fetch=test/kernels/fetch-packages.sh
new=$($fetch bookworm "$arch" libbpf-dev libelf-dev zlib1g-dev linux-libc-dev)
triplet=$cpu-linux-gnu
cc=$triplet-gcc cxx=$triplet-g++ ar=$triplet-ar
if [ -n "$zig" ]; then
	cc="$zig cc -target $cpu-linux-musl" cxx="$zig c++ -target $cpu-linux-musl" ar="$zig ar"
fi
mkdir -p "$out/link" "$out/lib"

# Debian's static libraries are for programs alone, not for a library such as the addon.
compile() { # compile NAME FLAGS… FILES…: into lib NAME_pic.a
	name=$1
	shift
	mkdir -p "$out/$name"
	(
		cd "$out/$name"
		# shellcheck disable=SC2086 # words
		$cc -O2 -fPIC -fvisibility=hidden -w -c "$@" -isystem "$new/usr/include" -isystem "$new/usr/include/$triplet"
	)
	# shellcheck disable=SC2086
	$ar rcsD "$out/link/lib${name}_pic.a" "$out/$name"/*.o
}
if [ ! -f "$out/link/libbpf_pic.a" ]; then
	zlib=$(scripts/release/fetch-source.sh bookworm zlib)
	libbpf=$(scripts/release/fetch-source.sh bookworm libbpf)
	elfutils=$(scripts/release/fetch-source.sh bookworm elfutils)
	compile z -D_LARGEFILE64_SOURCE=1 -DHAVE_UNISTD_H "$zlib"/*.c
	compile elf -std=gnu99 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -DHAVE_CONFIG_H "-I$PWD/scripts/release/libelf" \
		"-I$elfutils/lib" "-I$elfutils/libelf" "$elfutils"/libelf/*.c
	compile bpf -D_LARGEFILE64_SOURCE -D_FILE_OFFSET_BITS=64 "-I$libbpf/include" "-I$libbpf/include/uapi" "$libbpf"/src/*.c
fi
headers="-isystem $new/usr/include -isystem $new/usr/include/$triplet"
libraries="-L$out/link -l:libbpf_pic.a -l:libelf_pic.a -l:libz_pic.a"
if [ -n "$zig" ]; then
	make -s "${out#"$PWD"/}/everyframe.node" CPU="$cpu" OUT="${out#"$PWD"/}" CXX="$cxx -s" SYSROOT_FLAGS="-Wno-sign-compare -Wno-missing-field-initializers $headers" ADDON_LIBS="$libraries"
	exit
fi

old=$($fetch bullseye "$arch" libc6 libc6-dev libstdc++6 libgcc-s1)
# Its own script names the files of the machine that builds.
libc=$old/lib/$triplet
echo "GROUP ( $libc/libc.so.6 $old/usr/lib/$triplet/libc_nonshared.a AS_NEEDED ( $libc/libpthread.so.0 $(echo "$libc"/ld-2.*.so) ) )" >"$out/link/libc.so"
ln -sf "$libc/libm.so.6" "$out/link/libm.so"
for library in "$old/usr/lib/$triplet/libstdc++.so.6" "$libc/libgcc_s.so.1"; do
	cp -L "$library" "$out/lib/"
done

make -s native CPU="$cpu" OUT="${out#"$PWD"/}" CXX="$cxx" SYSROOT_FLAGS="$headers -L$new/usr/lib/$triplet" SUPERVISE_LINK=-static \
	ADDON_LIBS="scripts/release/glibc-floor.cc -Wl,--exclude-libs,ALL $libraries"

#!/bin/sh
# make-initramfs.sh OUT PROGRAM…: packs the built product, Node, the programs and what they are linked with into an
# initramfs whose init is guest-init. Needs busybox and cpio. Not compressed: an emulated CPU unpacks slowly.
# PYTHON, PERL: such that go with it, too, as /programs/python and /programs/perl.
# For another processor: CPU says which (aarch64), NODE, PYTHON and PERL where its interpreters are, and SYSROOT where its
# libraries and busybox are.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
out=$1
shift
native=$top/build${CPU:+/$CPU}
sysroot=${SYSROOT:-}
busybox=${sysroot:+$sysroot/bin/busybox}
node=${NODE:-$(readlink -f "$(command -v node)")}

# Paths, in the guest, of the libraries that these files need, and those need in turn.
list_libraries() {
	if [ -z "$sysroot" ]; then
		ldd "$@" 2>/dev/null | awk '/=> \//{ print $3 } /^\t\/lib/{ print $1 }' | sort -u
		return
	fi
	for file; do
		readelf -ld "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p; s/.*interpreter: .*\/\(.*\)\]/\1/p'
	done | sort -u | while read -r name; do
		for folder in "/lib/$CPU-linux-gnu" "/usr/lib/$CPU-linux-gnu"; do
			[ -e "$sysroot$folder/$name" ] || continue
			echo "$folder/$name"
			list_libraries "$sysroot$folder/$name"
		done
	done | sort -u
}

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root/bin" "$root/proc" "$root/sys" "$root/dev" "$root/tmp" "$root/programs" "$root/everyframe/build"
cp "$here/guest-init" "$root/init"
cp "$here/known-programs" "$root/programs/"
cp "${busybox:-$(command -v busybox)}" "$root/bin/busybox"
cp "$node" "$root/bin/node"
cp "$@" "$root/programs/"
cp -a "$top/bin" "$top/dist" "$top/package.json" "$root/everyframe/"
cp -a "$native/"*.bpf.o "$native/everyframe.node" "$native/everyframe-reader" "$native/worker-launcher" "$top/build/otlp.js" "$top/build/web" "$top/build/workers" "$root/everyframe/build/"
cd "$top"
# DuckDB is the collector's, and larger than all the rest
npm ls --omit=dev --all --parseable 2>/dev/null | sed -n "s|^$top/node_modules/||p" | grep -v @duckdb |
	while read -r module; do
		mkdir -p "$root/everyframe/node_modules/$(dirname "$module")"
		[ -e "$root/everyframe/node_modules/$module" ] ||
			cp -a "node_modules/$module" "$root/everyframe/node_modules/$module"
	done
python=
if [ -n "${PYTHON:-}" ]; then
	python=$(readlink -f "$PYTHON")
	name=${python##*/}
	# so that it does not complain
	mkdir -p "$root/usr/bin" "$root/usr/lib/$name/lib-dynload"
	cp "$python" "$root/usr/bin/"
	# its landmark, and what it imports before a script
	cp -r "$sysroot/usr/lib/$name/os.py" "$sysroot/usr/lib/$name/encodings" "$root/usr/lib/$name/"
	ln -s "/usr/bin/$name" "$root/programs/python"
fi
[ -z "${PERL:-}" ] || cp "$PERL" "$root/programs/perl"
# shellcheck disable=SC2086 # none or one
list_libraries "$root/bin/busybox" "$root/bin/node" "$native/everyframe.node" $python ${PERL:-} "$@" |
	while read -r library; do
		mkdir -p "$root$(dirname "$library")"
		cp -L "$sysroot$library" "$root$library"
	done
# where Debian's programs for arm64 look for the loader
[ ! -e "$root/lib/aarch64-linux-gnu" ] || ln -s aarch64-linux-gnu/ld-linux-aarch64.so.1 "$root/lib/ld-linux-aarch64.so.1"
cd "$root"
find . -print0 | cpio --null -o -H newc --quiet >"$out"

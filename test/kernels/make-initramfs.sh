#!/bin/sh
# make-initramfs.sh OUT PROGRAM…: packs the built product, Node, the programs and what they are linked with into an
# initramfs whose init is guest-init. Needs busybox and cpio. Not compressed: an emulated CPU unpacks slowly.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
out=$1
shift
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root/bin" "$root/proc" "$root/sys" "$root/dev" "$root/tmp" "$root/programs" "$root/everyframe/build"
cp "$here/guest-init" "$root/init"
cp "$here/known-programs" "$root/programs/"
cp "$(command -v busybox)" "$(readlink -f "$(command -v node)")" "$root/bin/"
cp "$@" "$root/programs/"
cp -a "$top/bin" "$top/dist" "$top/package.json" "$root/everyframe/"
cd "$top/build"
cp -a everyframe.bpf.o everyframe.node otlp.js web "$root/everyframe/build/"
cd "$top"
# DuckDB is the collector's, and larger than all the rest
npm ls --omit=dev --all --parseable 2>/dev/null | sed -n "s|^$top/node_modules/||p" | grep -v @duckdb |
	while read -r module; do
		mkdir -p "$root/everyframe/node_modules/$(dirname "$module")"
		[ -e "$root/everyframe/node_modules/$module" ] ||
			cp -a "node_modules/$module" "$root/everyframe/node_modules/$module"
	done
ldd "$root/bin/busybox" "$root/bin/node" build/everyframe.node "$root"/programs/* 2>/dev/null |
	awk '/=> \//{ print $3 } /^\t\/lib/{ print $1 }' | sort -u |
	while read -r library; do
		mkdir -p "$root$(dirname "$library")"
		cp -L "$library" "$root$library"
	done
cd "$root"
find . -print0 | cpio --null -o -H newc --quiet >"$out"

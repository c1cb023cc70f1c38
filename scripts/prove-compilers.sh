#!/bin/sh
# Proves that every clang from 14 to 19 builds BPF objects that this kernel takes, whole and for each runtime: compilers come
# from minimal Debian roots, the objects are loaded by the built product. Needs root, debootstrap and 3 GB in $TMPDIR; all is removed again.
#
#   scripts/prove-compilers.sh       after `npm run setup`
set -eu
cd "$(dirname "$0")/.."
repo=$PWD
root=$(mktemp -d)
trap 'rm -rf --one-file-system "$root"' EXIT
# shellcheck disable=SC2016 # apt's placeholders
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | head -n 1)

objects=$(basename -a build/*.bpf.o | grep -v '^test-')
# A copy of the product whose BPF objects can be exchanged.
mkdir "$root/product"
cp -a bin dist build package.json "$root/product/"
ln -s "$repo/node_modules" "$root/product/node_modules"
strip=$(command -v llvm-strip || ls /usr/bin/llvm-strip-* | tail -n 1)

for suite in 'bookworm 14 15 16' 'trixie 17 18 19'; do
	# shellcheck disable=SC2086 # a list
	set -- $suite
	debian=$root/$1
	include=make,libbpf-dev
	for version in "$2" "$3" "$4"; do include=$include,clang-$version; done
	debootstrap --variant=minbase --include="$include" "$1" "$debian" "$mirror" >"$root/log" 2>&1 || {
		tail "$root/log"
		exit 1
	}
	mkdir "$debian/product"
	# all that the Makefile looks for
	git ls-files -z | tar --create --null --files-from=- | tar --extract --directory="$debian/product"
	for version in "$2" "$3" "$4"; do
		rm -f "$root/out.folded"
		for object in $objects; do
			rm -f "$debian/product/build/$object"
			chroot "$debian" make -s -C /product "build/$object" "CLANG=clang-$version" LLVM_STRIP=true
			cp "$debian/product/build/$object" "$root/product/build/$object"
			"$strip" -g "$root/product/build/$object"
		done
		# an agent does without a runtime whose unwinder is refused: this fails
		"$root/product/bin/everyframe" show programs >"$root/programs" || {
			echo "clang-$version: the kernel refuses its object"
			exit 1
		}
		"$root/product/bin/everyframe" record -F 997 -o "$root/out.folded" -- sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done'
		grep -q 'sh;' "$root/out.folded" || {
			echo "clang-$version: the object loads, but no sample came"
			exit 1
		}
		echo "clang-$version: $(tail -n 1 "$root/programs"), $(wc -c <"$root/product/build/everyframe.bpf.o") bytes, loaded, $(awk '{s+=$NF} END {print s}' "$root/out.folded") samples"
	done
	rm -rf --one-file-system "$debian"
done

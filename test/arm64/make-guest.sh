#!/bin/sh
# make-guest.sh OUT ROOT NODE MODULES TESTS…: packs an initramfs for arm64 out of ROOT (Debian's packages, unpacked), this checkout with
# the product built for arm64, NODE and its MODULES. Its init is guest-init, which runs TESTS.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
out=$1 packages=$2 node=$3 modules=$4
shift 4

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
cp -al "$packages/." "$root/"
rm -rf "${root:?}/.complete" "$root/tmp"
mkdir -p "$root/tmp" "$root/proc" "$root/sys" "$root/dev" "$root/everyframe/build/bin"
cp "$here/guest-init" "$root/init"
printf '%s\n' "$@" >"$root/tests"
cd "$top"
git ls-files -z --cached --others --exclude-standard | tar -c --null --ignore-failed-read -T - | tar -x -C "$root/everyframe"
cp -a dist "$root/everyframe/"
cp -a build/aarch64/. build/otlp.js build/web build/workers build/cli "$root/everyframe/build/"
cp "$node" "$root/everyframe/build/bin/"
cp -a "$modules" "$root/everyframe/node_modules"
# large, and no test of a runtime needs them
for unused in @biomejs @duckdb playwright-core knip axe-core typescript/lib/typescript.js; do
	rm -rf "$root/everyframe/node_modules/$unused"
done
cd "$root"
find . -print0 | cpio --null -o -H newc --quiet >"$out"

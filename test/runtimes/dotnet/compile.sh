#!/bin/sh
# compile.sh [--embedded] NAME.cs…: compiles each to NAME.dll beside it, with NAME.pdb, or with the PDB in the assembly. It is
# compiled against .NET 6, whose assemblies all later ones run. Compiler and references are Ubuntu's, unpacked into
# EVERYFRAME_RUNTIMES. What it writes is committed, with its source.
set -eu

fetch=$(dirname "$0")/../fetch-packages.sh
folder=${EVERYFRAME_RUNTIMES:-/tmp/everyframe-runtimes}/dotnet-sdk
debug=portable
[ "$1" != --embedded ] || { debug=embedded && shift; }

"$fetch" "$folder" noble dotnet-sdk-10.0
"$fetch" "$folder" jammy dotnet-targeting-pack-6.0 aspnetcore-targeting-pack-6.0
root=$folder/noble
rm -rf "$root/tmp/src" "$root/tmp/packs"
mkdir -p "$root/tmp/src"
cp -r "$folder/jammy/usr/lib/dotnet/packs" "$root/tmp/packs"
for reference in "$root"/tmp/packs/*/*/ref/*/*.dll; do echo "-reference:${reference#"$root"}"; done >"$root/tmp/references"
csc=$(echo "$root"/usr/lib/dotnet/sdk/*/Roslyn/bincore/csc.dll)
for source; do
	name=$(basename "$source" .cs)
	cp "$source" "$root/tmp/src"
	# shellcheck disable=SC2016 # the inner shell's
	DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1 unshare --mount sh -c \
		'mount --bind /proc "$0/proc" && mount --bind /dev "$0/dev" && exec chroot "$0" "$@"' "$root" \
		/usr/lib/dotnet/dotnet exec "${csc#"$root"}" \
		-nologo -noconfig -nostdlib @/tmp/references -langversion:10 -optimize -unsafe -deterministic \
		-debug:$debug -pathmap:/tmp/src=/src "-out:/tmp/src/$name.dll" "/tmp/src/$name.cs"
	rm "$root/tmp/src/$name.cs"
	cp "$root/tmp/src/$name".* "$(dirname "$source")"
	rm "$root/tmp/src/$name".*
done

#!/bin/sh
# fetch-packages.sh FOLDER debian|ubuntu SUITE PACKAGE…: packages of a suite with what they need, unpacked into
# FOLDER/SUITE, to be run by chroot. It has an apt of its own: the machine's packages and sources stay as they are.
set -eu

folder=$1 distribution=$2 suite=$3
shift 3
root=$folder/$suite
[ ! -e "$root/.complete" ] || exit 0
rm -rf "$root"
mkdir -p "$root/apt/lists/partial" "$root/apt/archives/partial" "$root/apt/etc"
: >"$root/apt/status"
if [ "$distribution" = ubuntu ]; then
	keys=$("$(dirname "$0")/../kernels/fetch-packages.sh" trixie amd64 ubuntu-keyring)
	source="[signed-by=$keys/usr/share/keyrings/ubuntu-archive-keyring.gpg] http://archive.ubuntu.com/ubuntu"
	suites="$suite $suite-updates" components='main universe'
else
	source='[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian'
	suites=$suite components=main
	# it has only what sid lacks
	[ "$suite" != experimental ] || suites="sid experimental"
fi
for each in $suites; do echo "deb $source $each $components"; done >"$root/apt/etc/sources.list"
private_apt() {
	apt-get -qq -o Dir::Etc::sourcelist="$root/apt/etc/sources.list" -o Dir::Etc::sourceparts=/dev/null \
		-o Dir::State::lists="$root/apt/lists" -o Dir::State::status="$root/apt/status" \
		-o Dir::Cache="$root/apt" -o Dir::Cache::archives="$root/apt/archives" \
		-o Acquire::Check-Valid-Until=false -o Acquire::Languages=none -o APT::Sandbox::User=root \
		-o APT::Install-Recommends=false "$@"
}
private_apt update
private_apt install -y --download-only "$@"
# A merged /usr, so that libc is where the loader looks in old and new suites alike.
mkdir -p "$root/usr/bin" "$root/usr/sbin" "$root/usr/lib" "$root/usr/lib64" "$root/tmp" "$root/proc" "$root/dev"
ln -s usr/bin usr/sbin usr/lib usr/lib64 "$root/"
for deb in "$root"/apt/archives/*.deb; do
	dpkg-deb --fsys-tarfile "$deb" | tar -C "$root" -x --keep-directory-symlink --exclude=./usr/share/doc --exclude=./usr/share/man
done
rm -rf "$root/apt"
: >"$root/.complete"

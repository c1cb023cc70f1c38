#!/bin/sh
# fetch-packages.sh FOLDER SUITE PACKAGE…: packages of a suite of Debian's or Ubuntu's with what they need, unpacked into
# FOLDER/SUITE, to be run by chroot; ARCHITECTURE says for which processor, if not this one. It has an apt of its own: the machine's packages and sources stay as they are.
set -eu

folder=$1 suite=$2
shift 2
root=$folder/$suite
[ ! -e "$root/.complete" ] || exit 0
rm -rf "$root"
mkdir -p "$root/apt/lists/partial" "$root/apt/archives/partial" "$root/apt/etc"
: >"$root/apt/status"
here=$(cd "$(dirname "$0")/../kernels" && pwd)
. "$here/suite-source.sh"
arch=${ARCHITECTURE:-$(dpkg --print-architecture)}
for each in $suites; do echo "deb [arch=$arch signed-by=$keyring] $mirror $each $components"; done >"$root/apt/etc/sources.list"
private_apt() {
	apt-get -qq -o Dir::Etc::sourcelist="$root/apt/etc/sources.list" -o Dir::Etc::sourceparts=/dev/null \
		-o Dir::State::lists="$root/apt/lists" -o Dir::State::status="$root/apt/status" \
		-o Dir::Cache="$root/apt" -o Dir::Cache::archives="$root/apt/archives" \
		-o Acquire::Check-Valid-Until=false -o Acquire::Languages=none -o APT::Sandbox::User=root \
		-o APT::Architecture="$arch" -o APT::Architectures="$arch" -o APT::Install-Recommends=false "$@"
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

#!/bin/sh
# Makes a checkout ready to run: system packages, Node packages, build. `--test` adds what the tests need,
# `--test-arm64` what cross-compiling for arm64 and booting its kernels needs beside, `--dist` what a release needs.
# With nothing to do it says nothing and calls neither apt nor npm, so that `npm start` stays fast.
set -eu

cd "$(dirname "$0")/.."
PATH=$PATH:/usr/sbin:/sbin # bpftool lives there, and a user's PATH often lacks it

mode=${1:-}
case $mode in
'' | --test | --test-arm64 | --dist) ;;
*)
	echo "usage: scripts/setup.sh [--test | --test-arm64 | --dist]" >&2
	exit 2
	;;
esac

say() { printf 'set-up: %s\n' "$*"; }
fail() {
	printf 'set-up: %s\n' "$@" >&2
	exit 1
}

# Runs a command with its output in a log; shows how the log begins and ends only if the command fails.
step() {
	log=build/setup-$1.log
	shift
	mkdir -p build
	if ! "$@" >"$log" 2>&1 </dev/null; then
		if [ "$(wc -l <"$log")" -le 40 ]; then
			cat "$log" >&2
		else
			head -n 15 "$log" >&2
			echo '[…]' >&2
			tail -n 20 "$log" >&2
		fi
		fail "failed: $*" "the whole output is in $PWD/$log"
	fi
}

# --- Node --------------------------------------------------------------------------------------------------

command -v node >/dev/null || fail 'Node.js is missing: install Node 20.19 or newer (https://nodejs.org)'
version=$(node --version)
major=${version#v} major=${major%%.*}
minor=${version#v*.} minor=${minor%%.*}
if [ "$major" -lt 20 ] || { [ "$major" -eq 20 ] && [ "$minor" -lt 19 ]; }; then
	fail "Node $version is too old: install Node 20.19 or newer"
fi

# --- System packages ---------------------------------------------------------------------------------------
# Each need is tested by what it provides, so a clang from elsewhere or another distribution's libbpf counts.

packages='' names=''
need() { # need DEBIAN-PACKAGE 'WHAT IT IS' TEST…
	package=$1 name=$2
	shift 2
	"$@" && return
	packages="$packages $package"
	names="$names
  - $name"
}
any_command() {
	for candidate; do
		command -v "$candidate" >/dev/null && return
	done
	return 1
}
any_file() {
	for candidate; do
		[ -e "$candidate" ] && return
	done
	return 1
}

need clang 'clang, 14 or newer' any_command clang-19 clang-18 clang-17 clang-16 clang-15 clang-14 clang
need llvm 'llvm-strip' any_command llvm-strip llvm-strip-19 llvm-strip-18 llvm-strip-17 llvm-strip-16 llvm-strip-15 llvm-strip-14
need make 'make' any_command make
need g++ 'g++, with C++20' any_command g++
need libbpf-dev 'libbpf, 1.1 or newer: headers and library' any_file /usr/include/bpf/libbpf.h
need libelf-dev 'libelf: headers and library' any_file /usr/include/libelf.h
need zlib1g-dev 'zlib: headers and library' any_file /usr/include/zlib.h
need linux-libc-dev 'the kernel'\''s user-space headers' any_file /usr/include/linux/bpf.h
if [ "$mode" = --dist ]; then
	need g++-aarch64-linux-gnu 'g++ for arm64' any_command aarch64-linux-gnu-g++
	need dpkg-dev 'dpkg-source' any_command dpkg-source
	need patchelf 'patchelf' any_command patchelf
	need m4 'm4' any_command m4
	need rpm 'rpmbuild' any_command rpmbuild
	need python3-pip 'pip, which fetches Node and a compiler for musl' any_command pip
	need unzip 'unzip' any_command unzip
	need buildah 'buildah' any_command buildah
	need binutils 'readelf' any_command readelf
	need git 'git' any_command git
fi
if [ "$mode" = --test-arm64 ]; then
	need g++-aarch64-linux-gnu 'g++ for arm64' any_command aarch64-linux-gnu-g++
	need libc6-dev-arm64-cross 'the C library for arm64' any_file /usr/aarch64-linux-gnu/include/stdio.h
	need qemu-system-arm 'qemu for arm64' any_command qemu-system-aarch64
	need binutils 'readelf' any_command readelf
	need cpio 'cpio' any_command cpio
fi
if [ "$mode" = --test ]; then
	need bpftool 'bpftool' any_command bpftool
	need gcc 'gcc' any_command gcc
	need binutils 'readelf and nm of binutils' any_command readelf
	need debuginfod 'debuginfod, the server' any_command debuginfod
	need dwz 'dwz' any_command dwz
	need binutils-aarch64-linux-gnu 'ld and objdump for arm64' any_command aarch64-linux-gnu-ld
	need libc6-arm64-cross 'a C library of arm64, to read' any_file /usr/aarch64-linux-gnu/lib/libc.so.6
	need libstdc++6-arm64-cross 'a C++ library of arm64, to read' any_file /usr/aarch64-linux-gnu/lib/libstdc++.so.6
	need xz-utils 'xz' any_command xz
	need musl-tools 'musl-gcc' any_command musl-gcc
	need libjemalloc2 'jemalloc' any_file /usr/lib/*/libjemalloc.so.2
	need libtcmalloc-minimal4 'tcmalloc' any_file /usr/lib/*/libtcmalloc_minimal.so.4
	need systemtap-sdt-dev 'sys/sdt.h, for probes of programs' any_file /usr/include/sys/sdt.h /usr/include/*/sys/sdt.h
	need rustc 'rustc' any_command rustc
	need clang-format 'clang-format' any_command clang-format
	need python3 'Python 3' any_command python3
	need libpython3-dev 'Python 3, as a library' any_file /usr/lib/*/libpython3.*.so.1.0
	need default-jdk-headless 'Java: java and javac' any_command javac
	need golang-go 'Go' any_command go
	need python3-pip 'pip, which fetches .NET' any_command pip
	need php-cli 'PHP' any_command php
	need ruby 'Ruby' any_command ruby
	need luajit 'LuaJIT' any_command luajit
	need lua5.1 'Lua 5.1' any_command lua5.1
	need lua5.4 'Lua 5.4' any_command lua5.4
	need erlang-base 'Erlang' any_file /usr/lib/erlang/bin/erl
	need protobuf-compiler 'protoc' any_command protoc
	need qemu-system-x86 'qemu for x86-64, to boot other kernels' any_command qemu-system-x86_64
	need busybox-static 'busybox' any_command busybox
	need patchelf 'patchelf' any_command patchelf
	need m4 'm4' any_command m4
	need dpkg-dev 'dpkg-source' any_command dpkg-source
	need cpio 'cpio' any_command cpio
	need chromium 'Chromium' any_command chromium chromium-browser google-chrome
fi

if [ -n "$packages" ]; then
	packages=${packages# }
	command -v apt-get >/dev/null || fail "install these with your distribution's package manager, then run this again:$names"
	[ "$(id -u)" -eq 0 ] || fail "these packages are missing, and installing them needs root. Run
  sudo apt-get install -y $packages
and then this again."
	say "installing with apt: $packages"
	export DEBIAN_FRONTEND=noninteractive
	mkdir -p build
	# One broken source need not matter: the install decides.
	apt-get update >build/setup-apt-update.log 2>&1 ||
		say "apt-get update failed (see $PWD/build/setup-apt-update.log); trying to install all the same"
	# shellcheck disable=SC2086 # a list of packages
	step apt-install apt-get install -y --no-install-recommends $packages
fi

# Ubuntu 22.04 has 0.5, which lacks this header
grep -q 'MAJOR_VERSION [1-9]' /usr/include/bpf/libbpf_version.h 2>/dev/null ||
	fail "this system's libbpf is too old: building needs 1.1 or newer (Debian 12, Ubuntu 24.04)" \
		'a release needs none: docs/installation.md says how it is installed'

# --- Node packages -----------------------------------------------------------------------------------------
# npm writes node_modules/.package-lock.json last, both in `npm ci` and in `npm install`.

# shellcheck disable=SC3013 # dash, bash and busybox all have -nt
if [ ! -e node_modules/.package-lock.json ] || [ package-lock.json -nt node_modules/.package-lock.json ]; then
	say 'installing Node packages (npm ci)'
	step npm npm ci --ignore-scripts --include=dev --no-audit --no-fund
fi

# --- Build -------------------------------------------------------------------------------------------------

if ! make -q >/dev/null 2>&1; then
	say 'building'
	step make make -s -j2
fi

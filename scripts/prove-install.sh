#!/bin/bash
# prove-install.sh [SUITE…|musl]: what `npm run dist` makes, in bare roots of Debian 11, 12 and 13 and of Ubuntu 24.04, and in one
# that has musl and busybox alone: no Node, npm or compiler. As root; needs debootstrap. Prints a line for each thing that was
# tried; ends with 1 at the first that fails. Without arguments the units under systemd, what is for Kubernetes, the image and a machine
# that boots follow, twenty minutes in all: these need what their scripts (prove-units.sh, -deploy, -image, -boot) say.
set -euo pipefail
cd "$(dirname "$0")/.."
roots=${EVERYFRAME_ROOTS:-/var/tmp/everyframe-roots}
release=$PWD/build/release
version=$(node -p 'require("./package.json").version')
name=everyframe-$version-linux-$(dpkg --print-architecture)
here=$PWD/test/kernels # of suite-source.sh
log=$(mktemp)
mounted='' started=''
clean() {
	for process in $started; do kill "$process" 2>/dev/null || true; done
	for place in $mounted; do umount -l "$place" || true; done
	rm -f "$log"
}
trap clean EXIT
command -v debootstrap >/dev/null || {
	echo 'prove-install.sh needs debootstrap: apt-get install debootstrap' >&2
	exit 1
}
say() { printf 'install: %s: %s\n' "$suite" "$*"; }
fail() {
	say "FAILED: $*"
	tail -20 "$log"
	exit 1
}

# A copy that is thrown away, of a root that is made once.
fresh_root() {
	base=$roots/$suite root=$roots/$suite-try
	[ -e "$base/.whole" ] || {
		rm -rf "$base"
		mkdir -p "$roots"
		. "$here/suite-source.sh"
		# Ubuntu's are made alike, also those that this debootstrap does not know
		case $mirror in */ubuntu) script=gutsy ;; *) script= ;; esac
		debootstrap --variant=minbase --keyring="$keyring" --components="${components// /,}" "$suite" "$base" "$mirror" $script >"$log" 2>&1 || fail debootstrap
		touch "$base/.whole"
	}
	rm -rf --one-file-system "$root"
	cp -a --reflink=auto "$base" "$root"
	mount_into_root proc sys
}
mount_into_root() {
	for place; do
		mount --rbind "/$place" "$root/$place"
		mount --make-rslave "$root/$place"
		mounted="$root/$place $mounted"
	done
}
# As Alpine is at its smallest: musl, busybox, and no file of users.
musl_root() {
	root=$roots/musl-try
	rm -rf --one-file-system "$root"
	mkdir -p "$root/bin" "$root/lib" "$root/opt" "$root/root" "$root/tmp" "$root/proc" "$root/sys" "$root/dev"
	packages=$("$here/fetch-packages.sh" trixie "$(dpkg --print-architecture)" musl busybox-static 2>"$log") || fail 'fetch-packages.sh'
	cp "$packages/usr/bin/busybox" "$root/bin/"
	cp "$packages/usr/lib/$(uname -m)-linux-musl/libc.so" "$root/lib/ld-musl-$(uname -m).so.1"
	mount_into_root proc sys dev
	chroot "$root" /bin/busybox --install -s /bin
}
drop_root() {
	for place in $mounted; do umount -l "$place"; done
	mounted=
	rm -rf --one-file-system "$root"
}
inside() { (enter "$@"); }
# In a shell of its own, so that signals to it are for the command.
enter() { exec chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "$@"; }

prove_nothing_there() {
	for tool in node npm gcc cc clang make; do
		if inside sh -c "command -v $tool" >"$log"; then fail "$tool is in the bare root"; fi
	done
}

# A second of work in one function of the shell, and a fork for each turn.
load='i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; for j in 1 2 3 4 5 6 7 8; do ls / >/dev/null; done'

prove_record() { # prove_record COMMAND
	inside "$1" record --force -o /root/x.folded -- sh -c "$load" >"$log" 2>&1 || fail "$1 record"
	samples=$(awk '{ n += $NF } END { print n + 0 }' "$root/root/x.folded")
	[ "$samples" -ge 5 ] || fail "record took $samples samples"
	grep -qE '^[^ ]*(sh|dash|busybox)' "$root/root/x.folded" || fail 'no stack of the shell'
	inside "$1" report /root/x.folded >"$log" 2>&1 || fail report
	say "record: $samples samples, $(wc -l <"$root/root/x.folded") stacks"
}

# Every BPF program, each kind of event but `usdt`, for which a bare root has no program, and waits.
prove_events() { # prove_events COMMAND
	inside "$1" show programs >"$log" 2>&1 || fail 'show programs'
	say "programs: $(grep -c ' ' "$log") loaded"
	# shellcheck disable=SC2016 # another shell's
	work='i=0; while [ $i -lt 5000 ]; do i=$((i+1)); done; for j in 1 2 3 4; do ls / >/dev/null; done; sleep 0.2'
	set -- "$1" sh -c "$work"
	libc=libc
	if [ "$suite" = musl ]; then
		# what a static busybox allocates goes by no symbol
		set -- "$1" "$1" config print
		libc=/lib/ld-musl-$(uname -m).so.1
	fi
	for event in malloc,every=1KiB mmap "uprobe:$libc:malloc" "uretprobe:$libc:malloc" tracepoint:raw_syscalls:sys_enter page-faults context-switches; do
		prove_event "$1" "$event" "${@:2}"
	done
	prove_event "$1" lock "$1" config print
	inside "$1" record --force --off-cpu -o /root/x.pb.gz -- "${@:2}" >"$log" 2>&1 || fail 'record --off-cpu'
	inside "$1" report /root/x.pb.gz --type off_cpu >"$log" 2>&1 || fail 'report --type off_cpu'
	say "off-cpu: $(head -n 1 "$log")"
}
prove_event() { # prove_event COMMAND EVENT PROGRAM…
	product=$1 event=$2
	shift 2
	inside "$product" record --force --event "$event" -o /root/x.folded -- "$@" >"$log" 2>&1 || fail "record --event $event"
	[ -s "$root/root/x.folded" ] || fail "$event: no sample"
	say "$event: $(sed -n '/ written to /s/, written.*//p' "$log")"
}

# The services' file of settings, as a package brings it.
prove_settings() {
	inside everyframe config check >"$log" 2>&1 || fail 'config check'
	inside everyframe config print >"$log" 2>&1 || fail 'config print'
	grep -q 'collection-agent: .*# /etc/everyframe/config.yaml:' "$log" || fail 'config.yaml is not read'
	inside everyframe completion bash >"$log" 2>&1 || fail completion
	for file in man/man1/everyframe-agent.1.gz bash-completion/completions/everyframe everyframe/config.schema.json everyframe/probes.conf; do
		[ -e "$root/usr/share/$file" ] || fail "no $file"
	done
}

prove_run() { # prove_run COMMAND: agent, workers, collector with its store, page
	begin=$(date +%s%N)
	enter "$1" run --page-listen 127.0.0.1:11980 --grpc-listen 127.0.0.1:11900 --http-listen 127.0.0.1:11918 >"$log" 2>&1 &
	started=$!
	page=http://127.0.0.1:11980
	for _ in $(seq 300); do
		if curl -sf "$page/api/v1/values?label=process" | grep -q '"sleep"'; then break; fi
		kill -0 "$started" 2>/dev/null || fail run
		sleep 0.1
	done
	curl -sf "$page/api/v1/values?label=process" | grep -q '"sleep"' || fail 'run: no profile within 30 s'
	say "run: first profile after $((($(date +%s%N) - begin) / 1000000)) ms"
	curl -sf "$page/" | grep -qi '<!doctype html' || fail 'no page'
	kill -TERM "$started"
	wait "$started" || fail "run ended with $?"
	started=
}

prove_tarball() { # prove_tarball NAME
	prove_nothing_there
	tar -xzf "$release/$1.tar.gz" -C "$root/opt"
	product=/opt/$1/bin/everyframe
	inside "$product" --version >"$log" || fail --version
	grep -q "^$version (commit " "$log" || fail 'no commit in --version'
	inside "$product" doctor >"$log" 2>&1 || fail doctor
	prove_record "$product"
	begin=$(date +%s%N)
	inside "$product-write-code" >"$log" 2>&1 || fail write-code
	say "write-code: $((($(date +%s%N) - begin) / 1000000)) ms"
	prove_record "$product"
	prove_events "$product"
	prove_run "$product"
}

# One for another C library says so.
prove_refusal() { # prove_refusal NAME
	tar -xzf "$release/$1.tar.gz" -C "$root/opt"
	if inside "/opt/$1/bin/everyframe" doctor >"$log" 2>&1; then fail "$1 runs here"; fi
	grep -q 'this release needs /lib.*, which is not here' "$log" || fail "$1 does not say what it needs"
}

every_file() { inside find / -xdev \( -path /root -o -path /proc -o -path /sys -o -path /var/lib/dpkg -o -path /var/lib/rpm -o -path /var/log \) -prune -o -print | sort; }

# Installed, installed again over a changed configuration, removed, purged.
prove_deb() {
	fresh_root
	every_file >"$roots/before"
	cp "$release/everyframe_${version}_$(dpkg --print-architecture).deb" "$root/root/x.deb"
	inside dpkg -i /root/x.deb >"$log" 2>&1 || fail 'dpkg -i'
	inside id everyframe-agent >"$log" 2>&1 && inside id everyframe >"$log" 2>&1 || fail 'no users'
	say "deb: $(find "$root/usr/lib/everyframe/build" -name '*.code' | wc -l) files of V8's code made by its installation"
	prove_record /usr/bin/everyframe
	prove_settings
	echo '# mine' >>"$root/etc/everyframe/agent.env"
	mkdir -p "$root/var/lib/everyframe"
	echo kept >"$root/var/lib/everyframe/data"
	inside dpkg -i --force-confdef --force-confold /root/x.deb >"$log" 2>&1 || fail upgrade
	grep -q '# mine' "$root/etc/everyframe/agent.env" || fail 'the upgrade lost the configuration'
	[ -e "$root/var/lib/everyframe/data" ] || fail 'the upgrade lost data'
	inside dpkg -r everyframe >"$log" 2>&1 || fail remove
	[ ! -e "$root/usr/lib/everyframe" ] || fail 'files are left behind'
	[ -e "$root/etc/everyframe/agent.env" ] || fail 'the removal lost the configuration'
	inside dpkg -P everyframe >"$log" 2>&1 || fail purge
	every_file >"$roots/after"
	diff "$roots/before" "$roots/after" | grep -v -e '-$' | grep '^>' >"$log" && fail 'purge left files'
	if inside id everyframe >"$log" 2>&1; then fail 'purge left a user'; fi
	say 'deb: installed, upgraded, removed and purged without a rest'
	drop_root
}

# In a root that has rpm. Its data base knows no glibc of Debian's, hence --nodeps; a plug-in unshares mounts, of which a folder is
# none. Upgraded to a release that has another number.
prove_rpm() {
	cpu=$(uname -m)
	[ "$roots/next/everyframe-$version.1-1.$cpu.rpm" -nt "$release/everyframe-$version-1.$cpu.rpm" ] || {
		rm -rf "$roots/next"
		mkdir -p "$roots/next"
		cp -al "$release/$name" "$roots/next/$name"
		SOURCE_DATE_EPOCH=0 scripts/release/rpm.sh "$roots/next/$name" "$cpu" "$version.1" >"$log" 2>&1 || fail rpm.sh
	}
	fresh_root
	inside sh -c 'apt-get -qq update && apt-get install -y -qq --no-install-recommends rpm passwd' >"$log" 2>&1 || fail 'apt-get install rpm'
	# older ones are patched by Debian to ask for it
	force=$(inside sh -c 'rpm --force-debian --version >/dev/null 2>&1 && echo --force-debian' || true)
	# shellcheck disable=SC2086 # none or one
	rpm() { inside rpm --nodeps --noplugins $force "$@" >"$log" 2>&1 || fail "rpm $*"; }
	every_file >"$roots/before"
	cp "$release/everyframe-$version-1.$cpu.rpm" "$root/root/x.rpm"
	cp "$roots/next/everyframe-$version.1-1.$cpu.rpm" "$root/root/next.rpm"
	rpm -i /root/x.rpm
	inside id everyframe-agent >"$log" 2>&1 && inside id everyframe >"$log" 2>&1 || fail 'no users'
	rpm -V everyframe
	say "rpm: $(find "$root/usr/lib/everyframe/build" -name '*.code' | wc -l) files of V8's code made by its installation"
	prove_record /usr/bin/everyframe
	prove_settings
	echo '# mine' >>"$root/etc/everyframe/agent.env"
	mkdir -p "$root/var/lib/everyframe"
	echo kept >"$root/var/lib/everyframe/data"
	rpm -U /root/next.rpm
	inside rpm -q everyframe >"$log" 2>&1
	grep -q "$version.1-1" "$log" || fail 'not upgraded'
	grep -q '# mine' "$root/etc/everyframe/agent.env" || fail 'the upgrade lost the configuration'
	ls "$root"/usr/lib/everyframe/build/*/*.code >"$log" 2>&1 || fail "the upgrade lost V8's code"
	prove_record /usr/bin/everyframe
	rpm -e everyframe
	[ -e "$root/var/lib/everyframe/data" ] || fail 'the erasure lost data'
	inside id everyframe >"$log" 2>&1 || fail 'the erasure took the user whose data is kept'
	grep -q '# mine' "$root/etc/everyframe/agent.env.rpmsave" || fail 'the erasure lost the configuration'
	rm -r "$root/var/lib/everyframe" "$root/etc/everyframe"
	rpm -i /root/x.rpm
	rpm -e everyframe
	every_file >"$roots/after"
	diff "$roots/before" "$roots/after" | grep -v -e '-$' | grep '^>' >"$log" && fail 'the erasure left files'
	if inside id everyframe >"$log" 2>&1; then fail 'the erasure left a user'; fi
	say 'rpm: installed, upgraded and erased; without data nothing is left'
	drop_root
}

for suite in ${*:-bullseye bookworm trixie noble musl}; do
	if [ "$suite" = musl ]; then
		musl_root
		prove_tarball "$name-musl"
		prove_refusal "$name"
		drop_root
		continue
	fi
	fresh_root
	prove_tarball "$name"
	prove_refusal "$name-musl"
	drop_root
	prove_deb
	prove_rpm
done

if [ $# = 0 ]; then
	for part in units deploy image boot; do "scripts/prove-$part.sh"; done
fi

# Sourced by scripts that build a runtime from the source that Debian's or Ubuntu's mirror has.
set -eu

UBUNTU=http://archive.ubuntu.com/ubuntu/pool

# begin PREFIX: ends the script where it was built already; $work is a folder to build in
begin() {
	prefix=$1 work=$1.build
	[ ! -e "$prefix/.complete" ] || exit 0
	rm -rf "$prefix" "$work"
	mkdir -p "$work"
}

# fetch PATH SHA256 [POOL]: of Debian's pool, unpacked; a release that is in no suite any more stays there for a while
fetch() {
	/usr/lib/apt/apt-helper -qq -o APT::Sandbox::User=root download-file "${3:-http://deb.debian.org/debian/pool}/main/$1" \
		"$work/${1##*/}" "SHA256:$2" >&2
	tar -C "$work" -xf "$work/${1##*/}"
}

# refuse REASON
refuse() {
	echo "$1" >&2
	exit 1
}

# finish COMMAND…: builds into $prefix; where that fails, the last lines of what it printed are the reason
finish() {
	"$@" >"$work/log" 2>&1 || refuse "$(tail -n 3 "$work/log")"
	rm -rf "$work"
	: >"$prefix/.complete"
}

# Sourced with $suite, and this folder as $here: sets $mirror, $keyring, $suites (with its updates) and $components, for
# suites of Debian and of Ubuntu.
# shellcheck shell=sh disable=SC2034,SC2154
case $suite in
focal | jammy | noble | questing | resolute)
	mirror=http://archive.ubuntu.com/ubuntu
	keyring=$("$here/fetch-packages.sh" trixie amd64 ubuntu-keyring)/usr/share/keyrings/ubuntu-archive-keyring.gpg
	suites="$suite $suite-updates" components='main universe'
	;;
*)
	mirror=$(apt-get indextargets --format '$(REPO_URI) $(ORIGIN) $(LABEL) $(COMPONENT)' |
		sed -n 's/ Debian Debian main$//p' | head -n 1)
	[ -n "$mirror" ] || { echo "suite-source.sh: apt's sources name no Debian mirror" >&2; exit 1; }
	keyring=/usr/share/keyrings/debian-archive-keyring.gpg
	suites=$suite components=main
	# it has only what sid lacks
	[ "$suite" != experimental ] || suites="sid experimental"
	;;
esac

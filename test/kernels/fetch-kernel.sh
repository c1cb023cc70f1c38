#!/bin/sh
# fetch-kernel.sh SUITE: prints the path of the cloud kernel of that Debian suite, downloaded once into a cache.
# apt does the work, in a folder of its own: from the mirror, through the proxy and with the checks (signature of the
# suite, SHA256 of its index and of the package) that this machine's apt has. Nothing is installed.
set -eu
suite=$1
arch=amd64
cache=${XDG_CACHE_HOME:-$HOME/.cache}/everyframe/kernels
kernel=$cache/$suite.vmlinuz
if [ ! -s "$kernel" ]; then
	mirror=$(apt-get indextargets --format '$(REPO_URI) $(ORIGIN) $(LABEL) $(COMPONENT)' |
		sed -n 's/ Debian Debian main$//p' | head -n 1)
	[ -n "$mirror" ] || { echo "fetch-kernel.sh: apt's sources name no Debian mirror" >&2; exit 1; }
	mkdir -p "$cache"
	work=$(mktemp -d "$cache/$suite.XXXXXX")
	trap 'rm -rf "$work"' EXIT
	cd "$work"
	mkdir -p lists/partial archives/partial parts
	keyring=/usr/share/keyrings/debian-archive-keyring.gpg
	echo "deb [arch=$arch signed-by=$keyring] $mirror $suite main" >sources.list
	: >status
	cat >apt.conf <<-END
		Dir::Etc::SourceList "$work/sources.list";
		Dir::Etc::SourceParts "$work/parts";
		Dir::State::Lists "$work/lists";
		Dir::State::Status "$work/status";
		Dir::Cache "$work";
		Dir::Cache::Archives "$work/archives";
		APT::Architecture "$arch";
		APT::Architectures { "$arch"; };
		APT::Sandbox::User "";
		Acquire::Languages "none";
		Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
		Acquire::Check-Valid-Until "false";
		Acquire::Retries "2";
	END
	export APT_CONFIG=$work/apt.conf
	apt-get update -q --error-on=any >&2
	release=$(apt-cache depends "linux-image-cloud-$arch" | sed -n 's/.*Depends: linux-image-\([0-9]\)/\1/p')
	# since 7.0 the image is in linux-binary-…, and below /usr
	package=$(apt-cache pkgnames "linux-binary-$release")
	apt-get download -q "${package:-linux-image-$release}" >&2
	dpkg-deb -x ./*.deb root
	mv "$(find root -name 'vmlinuz*' -type f)" "$kernel"
fi
echo "$kernel"

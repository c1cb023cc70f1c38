# Sourced with $suite, $arch and $work set: apt in that folder of its own, so that a package of any Debian suite and
# architecture comes from the mirror, through the proxy and with the checks (signature of the suite, SHA256 of its index
# and of the package) that this machine's apt has. Nothing is installed.
# shellcheck shell=sh disable=SC2154
mirror=$(apt-get indextargets --format '$(REPO_URI) $(ORIGIN) $(LABEL) $(COMPONENT)' |
	sed -n 's/ Debian Debian main$//p' | head -n 1)
[ -n "$mirror" ] || { echo "private-apt.sh: apt's sources name no Debian mirror" >&2; exit 1; }
mkdir -p "$work/lists/partial" "$work/archives/partial" "$work/parts"
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
echo "deb [arch=$arch signed-by=$keyring] $mirror $suite main" >"$work/sources.list"
: >"$work/status"
cat >"$work/apt.conf" <<-END
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

# Sourced with $suite, $arch, $work and this folder as $here: apt in $work of its own, so that a package of any suite of
# Debian's or Ubuntu's and any architecture comes from the mirror, through the proxy and with the checks (signature of the suite, SHA256 of its index
# and of the package) that this machine's apt has. Nothing is installed.
# shellcheck shell=sh disable=SC2154
. "$here/suite-source.sh"
mkdir -p "$work/lists/partial" "$work/archives/partial" "$work/parts"
for each in $suites; do echo "deb [arch=$arch signed-by=$keyring] $mirror $each $components"; done >"$work/sources.list"
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

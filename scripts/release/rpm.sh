#!/bin/sh
# rpm.sh FOLDER CPU VERSION: the .rpm of what `npm run dist` has laid out in FOLDER, beside it, the same bytes each time with the
# same SOURCE_DATE_EPOCH.
set -eu
umask 022
folder=$(cd "$1" && pwd)
cpu=$2 version=$3
cd "$(dirname "$0")/../../deploy"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rpmbuild -bb --quiet --target "$cpu-linux" --define "_topdir $work" --define "_rpmdir $work" --define "deploy $PWD" \
	--define "folder $folder" --define "version_ $version" --define "epoch_ $SOURCE_DATE_EPOCH" rpm/everyframe.spec >"$work/log" 2>&1 || {
	cat "$work/log" >&2
	exit 1
}
mv "$work/$cpu/everyframe-$version-1.$cpu.rpm" "$(dirname "$folder")/"

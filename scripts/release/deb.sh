#!/bin/sh
# deb.sh FOLDER ARCH VERSION: the Debian package of what `npm run dist` has laid out in FOLDER, beside it, the same bytes each
# time with the same SOURCE_DATE_EPOCH.
set -eu
umask 022
folder=$(cd "$1" && pwd)
arch=$2 version=$3
cd "$(dirname "$0")/../../deploy"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/DEBIAN" "$work/usr/lib/systemd/system" "$work/usr/bin" "$work/etc/everyframe" "$work/usr/share/doc/everyframe" "$work/usr/share/everyframe" "$work/usr/lib/sysctl.d"
chmod 755 "$work"
cp -r --no-preserve=mode "$folder" "$work/usr/lib/everyframe"
(cd "$folder" && find . -type f -perm -u+x) | (cd "$work/usr/lib/everyframe" && xargs chmod 755)
mv "$work/usr/lib/everyframe/share/"* "$work/usr/share/"
rmdir "$work/usr/lib/everyframe/share"
gzip -9n "$work/usr/share/man/man1/"*
ln -s ../lib/everyframe/bin/everyframe "$work/usr/bin/everyframe"
cp --no-preserve=mode systemd/*.service "$work/usr/lib/systemd/system/"
cp --no-preserve=mode debian/sysctl.conf "$work/usr/lib/sysctl.d/60-everyframe.conf"
cp --no-preserve=mode debian/*.env config.yaml "$work/etc/everyframe/"
cp --no-preserve=mode config.schema.json systemd/probes.conf "$work/usr/share/everyframe/"
cp --no-preserve=mode "$folder/LICENCES.txt" "$work/usr/share/doc/everyframe/copyright"
for script in postinst prerm postrm; do install -m 755 "debian/$script" "$work/DEBIAN/$script"; done
(cd "$work" && find etc -type f | sort | sed 's|^|/|') >"$work/DEBIAN/conffiles"
cat >"$work/DEBIAN/control" <<END
Package: everyframe
Version: $version
Architecture: $arch
Maintainer: everyframe <dev@everyframe.dev>
Section: devel
Priority: optional
Depends: libc6 (>= 2.28), passwd
Installed-Size: $(du -sk "$work/usr" | cut -f1)
Description: profiler of whole Linux machines
 Every frame of every process, from the kernel through native code to the
 interpreters, as OpenTelemetry profiles and as flame graphs.
END
find "$work" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
dpkg-deb --root-owner-group -Zgzip -z9 --build "$work" "$(dirname "$folder")/everyframe_${version}_$arch.deb" >/dev/null

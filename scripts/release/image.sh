#!/bin/sh
# image.sh FOLDER VERSION COMMIT: an OCI image for both processors of what `npm run dist` has laid out in FOLDER, as an archive
# beside it, made by buildah without a daemon: glibc, a shell, the product, and nothing else. As root. The same bytes each time
# with the same SOURCE_DATE_EPOCH.
set -eu
umask 022
cd "$(dirname "$0")/../.."
folder=$(cd "$1" && pwd)
version=$2 commit=$3
archive=$folder/everyframe-$version-oci.tar
work=$(mktemp -d "$folder/image.XXXXXX")
builder() { buildah --root "$work/storage" --runroot "$work/run" --storage-driver vfs "$@"; }
clean() {
	builder rm --all >/dev/null 2>&1 || true
	rm -rf "$work"
}
trap clean EXIT

# Adds what the image has beside the product to its bills of materials.
name_packages() { # name_packages DEBIAN PRODUCT ARCH
	node - "$@" <<'END'
const fs = require('fs');
const zlib = require('zlib');
const [debian, product, arch] = process.argv.slice(2);
const edit = (name, change) => {
  const value = JSON.parse(fs.readFileSync(`${product}/${name}`));
  change(value);
  fs.writeFileSync(`${product}/${name}`, `${JSON.stringify(value, null, 1)}\n`);
};
for (const [name, license] of [['libc6', 'LGPL-2.1-or-later'], ['busybox-static', 'GPL-2.0-only']]) {
  const changes = zlib.gunzipSync(fs.readFileSync(`${debian}/usr/share/doc/${name}/changelog.Debian.gz`)).toString();
  const version = /\(([^)]+)\)/.exec(changes)[1];
  const purl = `pkg:deb/debian/${name}@${encodeURIComponent(version)}?arch=${arch}`;
  edit('sbom.cdx.json', ({ components }) =>
    components.push({ type: 'library', 'bom-ref': purl, name, version, purl, licenses: [{ expression: license }] }));
  edit('licences.spdx.json', ({ packages, relationships }) => {
    const SPDXID = `SPDXRef-image-${name}`;
    const externalRefs = [{ referenceCategory: 'PACKAGE-MANAGER', referenceType: 'purl', referenceLocator: purl }];
    packages.push({ ...packages.at(-1), SPDXID, name, versionInfo: version, licenseDeclared: license, externalRefs });
    relationships.push({ ...relationships.at(-1), relatedSpdxElement: SPDXID });
  });
}
END
}

lay_out() { # lay_out ARCH CPU INTO
	debian=$(test/kernels/fetch-packages.sh bookworm "$1" libc6 busybox-static)
	product=$folder/everyframe-$version-linux-$1
	triplet=$2-linux-gnu
	for path in bin etc/everyframe "lib/$triplet" lib64 proc sys dev run tmp usr/bin usr/lib usr/share/doc var/tmp var/cache/everyframe var/lib/everyframe; do
		mkdir -p "$3/$path"
	done
	chmod 1777 "$3/tmp" "$3/var/tmp"
	for name in libc.so.6 libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1; do cp "$debian/lib/$triplet/$name" "$3/lib/$triplet/"; done
	case $1 in
	amd64) loader=lib64/ld-linux-x86-64.so.2 ;;
	arm64) loader=lib/ld-linux-aarch64.so.1 ;;
	esac
	cp -L "$debian/$loader" "$3/$loader"
	chmod 755 "$3/$loader"
	cp "$debian/bin/busybox" "$3/bin/"
	for name in sh readlink; do ln -s busybox "$3/bin/$name"; done
	cp -r --no-preserve=mode "$product" "$3/usr/lib/everyframe"
	(cd "$product" && find . -type f -perm -u+x) | (cd "$3/usr/lib/everyframe" && xargs chmod 755)
	ln -s ../lib/everyframe/bin/everyframe "$3/usr/bin/everyframe"
	for name in libc6 busybox-static; do cp --no-preserve=mode "$debian/usr/share/doc/$name/copyright" "$3/usr/share/doc/$name"; done
	name_packages "$debian" "$3/usr/lib/everyframe" "$1"
	printf 'root:x:0:0:root:/:/bin/sh\neveryframe:x:65532:65532::/:/bin/false\nnobody:x:65534:65534::/:/bin/false\n' >"$3/etc/passwd"
	printf 'root:x:0:\neveryframe:x:65532:\nnogroup:x:65534:\n' >"$3/etc/group"
	echo 'hosts: files dns' >"$3/etc/nsswitch.conf"
	chown -R 0:0 "$3"
	# no release writes there: the agent's cache is root's, the collector's data its own
	chmod 700 "$3/var/cache/everyframe" "$3/var/lib/everyframe"
	chown 65532:65532 "$3/var/lib/everyframe"
	find "$3" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
}

created=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)
builder manifest create everyframe >/dev/null
for arch in amd64 arm64; do
	case $arch in amd64) cpu=x86_64 ;; arm64) cpu=aarch64 ;; esac
	lay_out $arch $cpu "$work/$arch"
	container=$(builder from --name "$arch" scratch)
	cp -a "$work/$arch/." "$(builder mount "$container")/"
	builder umount "$container" >/dev/null
	builder config --arch $arch --os linux --user 65532:65532 --workingdir / --entrypoint '["/usr/bin/everyframe"]' \
		--cmd 'collector --data /var/lib/everyframe' --env PATH=/usr/bin:/bin --stop-signal SIGTERM \
		--label org.opencontainers.image.title=everyframe --label "org.opencontainers.image.version=$version" \
		--label "org.opencontainers.image.revision=$commit" --label "org.opencontainers.image.created=$created" \
		--label org.opencontainers.image.licenses=Apache-2.0 "$container"
	builder commit -q --format oci --timestamp "$SOURCE_DATE_EPOCH" --identity-label=false "$container" "everyframe:$arch" >/dev/null
	builder manifest add everyframe "everyframe:$arch" >/dev/null
done
rm -f "$archive"
builder manifest push -q --all everyframe "oci:$work/oci:everyframe:$version"
tar --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --format=gnu --mtime="@$SOURCE_DATE_EPOCH" -cf "$archive" -C "$work/oci" .

#!/bin/sh
# Proves the set-up where nothing is installed yet: in a minimal Debian with this machine's Node, npm and git,
# from a clean clone of HEAD. Needs root, debootstrap and about 3 GB in $TMPDIR; everything is removed again.
#
#   scripts/prove-fresh.sh [SUITE [COMMAND]]     bookworm, 'npm run setup && npm run setup && npm test'
set -eu
cd "$(dirname "$0")/.."

suite=${1:-bookworm}
command=${2:-npm run setup && npm run setup && npm test}

# A mount namespace of its own: whatever ends this script also ends its mounts.
if [ "${EVERYFRAME_IN_NAMESPACE:-}" != yes ]; then
	root=$(mktemp -d)
	status=0
	EVERYFRAME_IN_NAMESPACE=yes EVERYFRAME_ROOT=$root unshare --mount --propagation private "$0" "$suite" "$command" ||
		status=$?
	rm -rf --one-file-system "$root"
	exit $status
fi
root=$EVERYFRAME_ROOT

# The same mirror that this machine uses.
# shellcheck disable=SC2016 # apt's placeholders
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | head -n 1)
echo "fresh: Debian $suite from $mirror in $root"
debootstrap --variant=minbase --include=ca-certificates,git "$suite" "$root" "$mirror" >"$root.log" 2>&1 || {
	tail "$root.log"
	exit 1
}
rm -f "$root.log"
# mktemp makes it for its owner alone, but processes of other users live in there
chmod 755 "$root"

node=$(command -v node)
modules=$(npm root -g 2>/dev/null)
mkdir -p "$root/usr/local/lib/node_modules"
cp "$(readlink -f "$node")" "$root/usr/local/bin/node"
cp -a "$modules/npm" "$root/usr/local/lib/node_modules/"
ln -s ../lib/node_modules/npm/bin/npm-cli.js "$root/usr/local/bin/npm"
ln -s ../lib/node_modules/npm/bin/npx-cli.js "$root/usr/local/bin/npx"
cp /etc/resolv.conf /etc/hosts "$root/etc/"
# A machine behind a proxy trusts authorities of its own.
cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"

# A mount point of its own, as the root of every real machine is.
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
git clone -q . "$root/root/everyframe"

# The root of its mount namespace, as on a real machine: in a chroot nobody may make a user namespace.
mkdir "$root/outside"
registry=$(npm config get registry 2>/dev/null)
cd "$root"
pivot_root . outside
exec chroot . env -i HOME=/root TERM=dumb PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
	NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt npm_config_registry="$registry" \
	sh -c "umount -l /outside && rmdir /outside && cd /root/everyframe && $command"

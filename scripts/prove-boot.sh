#!/bin/bash
# prove-boot.sh: both units on a machine of its own, an emulated one with Debian 12 and systemd: they start as it boots, the agent is
# killed, told to read its settings again, upgraded under load, the clock is set a day forward and back, and the machine boots again.
# As root, after prove-install.sh bookworm; needs qemu-system-x86_64. Ten minutes; ends with 1 at what fails.
set -euo pipefail
cd "$(dirname "$0")/.."
roots=${EVERYFRAME_ROOTS:-/var/tmp/everyframe-roots}
root=$roots/boot
version=$(node -p 'require("./package.json").version')
[ -e "$roots/bookworm/.whole" ] || {
	echo "there is no root $roots/bookworm: scripts/prove-install.sh bookworm makes it" >&2
	exit 1
}
rm -rf --one-file-system "$root" "$root".img "$root".cpio "$root".log
cp -a --reflink=auto "$roots/bookworm" "$root"
inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"; }
inside sh -c 'apt-get -qq update && apt-get -qq install -y --no-install-recommends systemd-sysv dbus curl procps linux-image-cloud-amd64 busybox-static' >"$root.log" 2>&1
cp "build/release/everyframe_${version}_amd64.deb" "$root/root/x.deb"
inside dpkg -i /root/x.deb >>"$root.log" 2>&1
inside systemctl enable everyframe-collector everyframe-agent >>"$root.log" 2>&1

cat >"$root/root/probe.sh" <<'END'
#!/bin/sh
page=http://127.0.0.1:11080
show() { echo "$1: $(for unit in agent collector; do systemctl show "everyframe-$unit" -p Id,ActiveState,NRestarts --value | tr '\n' ' '; done)"; }
stored() { curl -sf "$page/api/v1/status" | sed -n 's/.*"samples":{"received":\([0-9]*\).*/\1/p'; }
# More is stored than before, within minutes: this machine is an emulated one.
more() {
	before=$(stored)
	for _ in $(seq 120); do
		now=$(stored)
		if [ "${now:-0}" -gt "${before:-0}" ]; then show "$1"; return; fi
		sleep 1
	done
	show "FAILED: $1: no new samples"
	journalctl -u everyframe-agent -u everyframe-collector --no-pager -o cat | tail -n 20
	systemctl poweroff
	exit
}
show 'at first'
while :; do :; done &
more 'started as the machine did'
if [ -e /root/booted ]; then
	curl -sf "$page/api/v1/values?label=process&range=all" | grep -q before-the-boot || echo 'FAILED: what was stored before the boot is gone'
	systemctl poweroff
	exit
fi
touch /root/booted
cp /bin/dash /tmp/before-the-boot
/tmp/before-the-boot -c 'while :; do :; done' &
kill -KILL "$(systemctl show everyframe-agent -p MainPID --value)"
sleep 3
more 'agent killed'
systemctl reload everyframe-agent || echo 'FAILED: reload'
more reloaded
dpkg -i --force-confold /root/x.deb >/dev/null 2>&1 || echo 'FAILED: upgrade'
more 'upgraded under load'
date -s '+1 day' >/dev/null
more 'a day forward'
date -s '-1 day' >/dev/null
more 'a day back'
curl -sf "$page/api/v1/values?label=process&range=all" | grep -q before-the-boot || echo 'FAILED: no profile of a program'
journalctl -u everyframe-agent -u everyframe-collector -p warning --no-pager -o cat | sed 's/^/warned: /'
systemctl reboot
END
cat >"$root/etc/systemd/system/probe.service" <<'END'
[Unit]
After=multi-user.target
[Service]
ExecStart=/bin/sh -c "exec sh /root/probe.sh >/dev/ttyS0 2>&1"
KillMode=mixed
TimeoutStopSec=5
[Install]
WantedBy=graphical.target
END
inside systemctl enable probe.service >>"$root.log" 2>&1
inside systemctl set-default graphical.target >>"$root.log" 2>&1

# Its own first root: what the kernel needs to find the disk.
kernel=$(echo "$root"/boot/vmlinuz-*)
modules=$(echo "$root"/lib/modules/*/kernel)
early=$(mktemp -d)
mkdir -p "$early/bin" "$early/dev" "$early/proc" "$early/root"
cp "$root/bin/busybox" "$early/bin/"
{
	echo '#!/bin/busybox sh'
	echo '/bin/busybox mount -t devtmpfs none /dev'
	for name in virtio virtio_ring virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci virtio_blk; do
		file=$(find "$modules" -name "$name.ko")
		[ -n "$file" ] || continue
		cp "$file" "$early/"
		echo "/bin/busybox insmod /$name.ko"
	done
	echo 'while [ ! -e /dev/vda ]; do /bin/busybox sleep 0.1; done'
	echo '/bin/busybox mount -t ext4 /dev/vda /root'
	echo 'exec /bin/busybox switch_root /root /sbin/init'
} >"$early/init"
chmod 755 "$early/init"
(cd "$early" && find . | cpio -o -H newc --quiet) >"$root.cpio"
rm -r "$early"
mke2fs -q -t ext4 -d "$root" "$root.img" 4G

for boot in first second; do
	: >"$root.console"
	timeout 900 qemu-system-x86_64 -accel tcg,thread=multi -cpu max,-cx16 -smp 2 -m 3072 -nographic -nodefaults -no-reboot \
		-serial "file:$root.console" -drive "file=$root.img,if=virtio,format=raw,cache=unsafe" \
		-kernel "$kernel" -initrd "$root.cpio" -append 'console=ttyS0 quiet loglevel=3 no_timer_check systemd.show_status=false' </dev/null || true
	tr -d '\r' <"$root.console" | sed -n "/^[a-z A-Z]*: /s/^/boot: $boot: /p"
	if grep -q FAILED "$root.console" || ! grep -q '^started as' "$root.console"; then
		echo "boot: $boot: FAILED" >&2
		tail -n 20 "$root.console" >&2
		exit 1
	fi
done
rm -rf --one-file-system "$root" "$root".img "$root".cpio

#!/bin/bash
# prove-units.sh: the collector's unit under systemd, in a container of Debian 12 made by prove-install.sh: starts, is told to read its
# settings again, is killed, restarted, and the package installed over it. As root; needs systemd-nspawn. The agent refuses to run in a container.
set -euo pipefail
cd "$(dirname "$0")/.."
roots=${EVERYFRAME_ROOTS:-/var/tmp/everyframe-roots}
root=$roots/units
version=$(node -p 'require("./package.json").version')
[ -e "$roots/bookworm/.whole" ] || {
	echo "there is no root $roots/bookworm: scripts/prove-install.sh bookworm makes it" >&2
	exit 1
}
rm -rf --one-file-system "$root"
cp -a --reflink=auto "$roots/bookworm" "$root"
cp "build/release/everyframe_${version}_$(dpkg --print-architecture).deb" "$root/root/x.deb"
cat >"$root/root/probe.sh" <<'END'
#!/bin/sh
exec >/root/result 2>&1
up() {
	for _ in $(seq 80); do
		if curl -sf http://127.0.0.1:11080/ >/dev/null; then return; fi
		sleep 0.25
	done
	echo 'FAILED: it does not answer'
}
show() { echo "$1: $(systemctl show everyframe-collector -p ActiveState,NRestarts,Result | tr '\n' ' ')"; }
up; show started
echo "notify: $(systemctl show everyframe-collector -p Type,WatchdogUSec,StatusText | tr '\n' ' ')"
systemctl show everyframe-collector -p StatusText | grep -q 'page at' || echo 'FAILED: it was not told to be ready'
printf 'collector:\n  data: /var/lib/everyframe\n  max-disk: 5GiB\n' >/etc/everyframe/config.yaml
systemctl reload everyframe-collector || echo 'FAILED: reload'
sleep 1
journalctl -u everyframe-collector -p warning --no-pager -o cat | grep -q 'max-disk: restart' || echo 'FAILED: what waits for a restart is not told'
echo 'collector: {nonsense: 1}' >>/etc/everyframe/config.yaml
if systemctl reload everyframe-collector; then echo 'FAILED: a wrong file was taken'; fi
up; show reloaded
printf 'collector:\n  data: /var/lib/everyframe\n' >/etc/everyframe/config.yaml
kill -KILL "$(systemctl show everyframe-collector -p MainPID --value)"
sleep 1
up; show killed
systemctl restart everyframe-collector; up; show restarted
dpkg -i --force-confold /root/x.deb >/dev/null; up; show upgraded
systemctl stop everyframe-collector; show stopped
systemd-analyze security everyframe-collector.service everyframe-agent.service --no-pager | tail -2
journalctl -u everyframe-collector --no-pager -b | grep -E '"level":"(warn|error)"' | grep -v 'max-disk: restart' | sed 's/^/FAILED: /'
echo end
systemctl poweroff
END
cat >"$root/etc/systemd/system/probe.service" <<'END'
[Unit]
After=everyframe-collector.service
[Service]
ExecStart=/bin/sh /root/probe.sh
[Install]
WantedBy=multi-user.target
END
chroot "$root" env DEBIAN_FRONTEND=noninteractive sh -ec 'apt-get -qq update
apt-get install -y -qq --no-install-recommends systemd systemd-sysv dbus curl passwd
dpkg -i /root/x.deb
systemctl enable everyframe-collector.service probe.service' >"$roots/units.log" 2>&1
timeout 120 systemd-nspawn -q --register=no --keep-unit --private-network -bD "$root" >>"$roots/units.log" 2>&1 </dev/null || true
sed 's/^/units: /' "$root/root/result"
grep -q '^end' "$root/root/result" && ! grep -q FAILED "$root/root/result"

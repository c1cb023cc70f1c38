#!/bin/bash
# prove-image.sh [SECONDS]: what is in the OCI image of `npm run dist`, and both of its commands run by Podman as the chart runs them: a
# collector without rights that keeps what an agent with six capabilities sends of its host. As root; needs podman, crun, curl.
set -euo pipefail
cd "$(dirname "$0")/.."
# crun refuses a version 2 hierarchy beside those of version 1: out of sight here, in a mount namespace of its own
if [ -z "${EVERYFRAME_UNSHARED:-}" ]; then exec env EVERYFRAME_UNSHARED=1 unshare -m "$0" "$@"; fi
mount --make-rprivate /
if mountpoint -q /sys/fs/cgroup/unified; then umount /sys/fs/cgroup/unified; fi

version=$(node -p 'require("./package.json").version')
archive=build/release/everyframe-$version-oci.tar
image=localhost/everyframe:$version
work=$(mktemp -d /var/tmp/everyframe-image.XXXXXX)
log=$work/log
sleeper='' pods=''
engine() { podman --root "$work/storage" --runroot "$work/run" --storage-driver vfs --cgroup-manager cgroupfs "$@"; }
clean() {
	if [ -n "$pods" ]; then engine rm -f -t 5 $pods >/dev/null 2>&1 || true; fi
	if [ -n "$sleeper" ]; then kill "$sleeper" 2>/dev/null || true; fi
	engine rmi -a -f >/dev/null 2>&1 || true
	rm -rf --one-file-system "$work"
}
trap clean EXIT
say() { printf 'image: %s\n' "$*"; }
fail() {
	say "FAILED: $*"
	tail -20 "$log"
	exit 1
}
until_true() { # until_true SECONDS COMMAND…
	for _ in $(seq $(($1 * 5))); do
		if "${@:2}" >"$log" 2>&1; then return; fi
		sleep 0.2
	done
	return 1
}

mkdir "$work/oci"
tar -xf "$archive" -C "$work/oci"
node - "$work/oci" >"$log" <<'END' || fail 'the index'
const fs = require('fs');
const [folder] = process.argv.slice(2);
const blob = ({ digest }) => JSON.parse(fs.readFileSync(`${folder}/blobs/${digest.replace(':', '/')}`));
const [index] = JSON.parse(fs.readFileSync(`${folder}/index.json`)).manifests;
const sizes = blob(index).manifests.map(({ platform, ...manifest }) => {
  const { config, layers } = blob(manifest);
  const { architecture, config: { User, Entrypoint } } = blob(config);
  const mib = layers.reduce((sum, { size }) => sum + size, 0) / 2 ** 20;
  if (architecture !== platform.architecture || User !== '65532:65532' || Entrypoint[0] !== '/usr/bin/everyframe' || mib >= 120) process.exit(1);
  return `${architecture} ${mib.toFixed(1)} MiB`;
});
if (sizes.length !== 2) process.exit(1);
console.log(sizes.join(', '));
END
say "one index: $(cat "$log")"
# its bill of materials names what no tarball has
layer=$(node -p 'const fs = require("fs"), f = process.argv[1]; const b = ({ digest }) => JSON.parse(fs.readFileSync(`${f}/blobs/${digest.replace(":", "/")}`)); b(b(JSON.parse(fs.readFileSync(`${f}/index.json`)).manifests[0]).manifests[0]).layers[0].digest.replace(":", "/")' "$work/oci")
tar -xzOf "$work/oci/blobs/$layer" usr/lib/everyframe/sbom.cdx.json >"$work/sbom.json" 2>"$log" || fail 'no bill of materials'
for part in '"name": "busybox-static"' '"name": "libc6"' '"name": "node"'; do grep -qF "$part" "$work/sbom.json" || fail "the bill of materials lacks $part"; done
engine pull -q "oci-archive:$archive" >"$log" 2>&1 || fail pull
# Podman's filter with what containerd's has for CAP_BPF and CAP_PERFMON, which before 2026 it refuses to all but CAP_SYS_ADMIN
node - "$work/seccomp.json" <<'END'
const fs = require('fs');
const filter = JSON.parse(fs.readFileSync('/usr/share/containers/seccomp.json'));
const gated = ['bpf', 'perf_event_open'];
for (const rule of filter.syscalls) rule.names = rule.names.filter((name) => !gated.includes(name));
filter.syscalls = filter.syscalls.filter(({ names }) => names.length > 0);
filter.syscalls.push({ names: gated, action: 'SCMP_ACT_ALLOW', args: [] });
fs.writeFileSync(process.argv[2], JSON.stringify(filter));
END
# no more descriptors than a shell may have that cannot raise limits
common="--security-opt seccomp=$work/seccomp.json --ulimit nofile=4096:4096 --ulimit nproc=4096:4096"
manifest=deploy/kubernetes/everyframe.yaml
token=0123456789abcdef0123456789abcdef
printf %s $token >"$work/token"
echo "authorization=Bearer $token" >"$work/headers"
chmod 755 "$work"

# As the manifest has them, but for two ports of metrics on one network.
start() { # start CONTAINER OPTIONS…
	node dist/scripts/podman-options.js "$manifest" "$1" "$work" >"$work/$1.options" || fail "options of $1"
	sed -i "s/:9464$/:$([ "$1" = agent ] && echo 9465 || echo 9464)/; s/^$/${image//\//\\\/}/" "$work/$1.options"
	mapfile -t options <"$work/$1.options"
	# shellcheck disable=SC2086 # words
	engine run -d --name "$1" $common "${@:2}" "${options[@]}" >"$log" 2>&1 || fail "run $1"
	pods="$pods $1"
}
pid_of() { engine inspect --format '{{.State.Pid}}' "$1"; }
fetch() { nsenter --net="/proc/$collector/ns/net" curl -sf "${@:2}" "http://127.0.0.1:$1"; }
api() { fetch "11080$1" -u "x:$token"; }

engine run --rm --network none --ulimit nofile=4096:4096 --ulimit nproc=4096:4096 --read-only "$image" --version >"$log" 2>&1 || fail --version
grep -qE "^$version \(commit [0-9a-f]{12}" "$log" || fail 'no commit in --version'
start collector --network none
collector=$(pid_of collector)
until_true 30 api /api/v1/status || {
	engine logs collector
	fail 'the collector does not answer'
}
# a process of the host, whose name nobody else has
cp "$(command -v sh)" "$work/everyframe-load"
nice "$work/everyframe-load" -c 'while :; do :; done' &
sleeper=$!
echo '127.0.0.1 localhost everyframe-collector' >"$work/hosts"
start agent --network container:collector -v "$work/hosts:/etc/hosts:ro"
seen() { api '/api/v1/values?label=process' | grep -F '"everyframe-load'; }
until_true 60 seen || {
	engine logs agent
	fail 'no profile of a process of the host'
}
kill "$sleeper"
sleeper=
for label in host k8s.node.name; do
	api "/api/v1/values?label=$label" >"$log" || fail "values of $label"
	grep -qF '"node-7"' "$log" || fail "the node is not $label"
done
# without the token
for url in 11080/healthz 11080/readyz 9465/healthz 9465/readyz; do
	until_true 10 fetch "$url" || fail "no answer from $url"
done
for port in 9464 9465; do
	fetch "$port/metrics" -o "$log" || fail "no answer from $port"
	grep -q '^everyframe_' "$log" || fail "no metrics at $port"
done
say 'collector and agent of the manifest: a process of the host has its profile and the name of the node, probes and metrics answer'
engine exec agent /usr/bin/everyframe doctor >"$log" 2>&1 || fail doctor
say "doctor in the agent's container: $(tail -n 1 "$log")"

rights() { # rights CONTAINER: user and effective capabilities of its first process
	awk '/^Uid|^CapEff|^NoNewPrivs/ { printf "%s%s ", $1, $2 }' "/proc/$(pid_of "$1")/status"
}
[ "$(rights collector)" = 'Uid:65532 CapEff:0000000000000000 NoNewPrivs:1 ' ] || fail "the collector is $(rights collector)"
[ "$(rights agent)" = 'Uid:0 CapEff:000001c400080004 NoNewPrivs:1 ' ] || fail "the agent is $(rights agent)"
say "rights: collector $(rights collector), agent $(rights agent)"
sleep "${1:-0}"
# Limits hold: nothing was reclaimed or killed for want of memory. Version 1 and 2 of cgroups.
memory_of() { # memory_of CONTAINER: MiB at most, and how often its limit was met
	line=$(grep -E '^[0-9]+:(memory|[a-z,]*,memory[a-z,]*)?:' "/proc/$(pid_of "$1")/cgroup" | sort -r | head -n 1)
	group=/sys/fs/cgroup${line##*:}
	[ -d "$group" ] || group=/sys/fs/cgroup/memory${line##*:}
	peak=$(cat "$group/memory.max_usage_in_bytes" "$group/memory.peak" 2>/dev/null | head -n 1)
	met=$(cat "$group/memory.failcnt" 2>/dev/null || awk '$1 == "max" { print $2 }' "$group/memory.events")
	echo "$((peak >> 20)) $met"
}
for pod in agent:512 collector:2048; do
	read -r peak met <<<"$(memory_of "${pod%:*}")"
	{ [ "$met" = 0 ] && [ "$peak" -gt 20 ] && [ "$peak" -lt "${pod#*:}" ]; } || fail "memory of $pod: $peak MiB, limit met $met times"
	say "${pod%:*}: at most $peak of ${pod#*:} MiB, caches of files included"
done
for pod in agent collector; do
	begin=$(date +%s%N)
	engine stop -t 20 "$pod" >"$log" 2>&1 || fail "stop $pod"
	code=$(engine inspect --format '{{.State.ExitCode}}' "$pod")
	[ "$code" = 0 ] || {
		engine logs "$pod" | tail
		fail "$pod ended with $code"
	}
	say "$pod stopped in $((($(date +%s%N) - begin) / 1000000)) ms"
done
[ -n "$(ls "$work/collector/data")" ] || fail 'nothing was kept'

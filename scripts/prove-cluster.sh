#!/bin/bash
# prove-cluster.sh FOLDER: the chart, as docs/kubernetes.md has it, in a Kubernetes of one node that scripts/cluster builds into FOLDER (half an hour, once)
# and starts in namespaces of its own: API server, scheduler, kubelet, kube-proxy, CoreDNS, containerd, a registry. With OTELCOL, an OpenTelemetry Collector
# that has k8s_attributes, names of pods too. As root, after `npm run dist`; needs Go 1.24, buildah, skopeo, docker-registry, containerd, runc,
# containernetworking-plugins, iptables, curl; cgroups of version 1, or all of version 2.
set -euo pipefail
folder=$(mkdir -p "$1" && cd "$1" && pwd)
cd "$(dirname "$0")/.."
helm=${HELM:-${XDG_CACHE_HOME:-$HOME/.cache}/everyframe/go/helm}
if [ -z "${EVERYFRAME_UNSHARED:-}" ]; then
	[ -x "$helm" ] || { echo "cluster: $helm is missing: scripts/prove-deploy.sh builds it" >&2; exit 1; }
	scripts/cluster/build.sh "$folder"
	exec env EVERYFRAME_UNSHARED=1 unshare -n -m "$0" "$folder"
fi
version=$(node -p 'require("./package.json").version')
registry=10.99.0.1:5000
log=$folder/log
export PATH=$folder/bin:$PATH KUBECONFIG=$folder/run/admin.conf
forward='' otelcol=''
clean() {
	for pid in $forward $otelcol; do kill "$pid" 2>/dev/null || true; done
	scripts/cluster/stop.sh "$folder" >"$folder/stop.log" 2>&1 || true
}
trap clean EXIT
say() { printf 'cluster: %s\n' "$*"; }
fail() {
	say "FAILED: $*"
	tail -n 20 "$log"
	kubectl get pods -A -o wide
	kubectl get events -A | tail -n 10
	exit 1
}
until_true() { # until_true SECONDS COMMAND…
	for _ in $(seq $(($1 * 2))); do
		if "${@:2}" >"$log" 2>&1; then return; fi
		sleep 0.5
	done
	return 1
}
own() { kubectl -n everyframe "$@"; }
release() { "$helm" "$1" everyframe deploy/helm/everyframe -n everyframe "${@:2}" >"$log" 2>&1 || fail "helm $*"; }
rolled_out() {
	for one in daemonset/everyframe-agent statefulset/everyframe-collector; do
		own rollout status "$one" --timeout=180s >"$log" 2>&1 || fail "$one does not come up"
	done
}
token() { own get secret everyframe-token -o 'go-template={{ index .data "token" | base64decode }}'; }
agent() { own get pod -l app.kubernetes.io/component=agent --field-selector=status.phase=Running -o name; }
api() { curl -sf -u "x:$(token)" "http://$(own get service everyframe-collector -o 'jsonpath={.spec.clusterIP}'):11080/api/v1/$1"; }
has_value() { api "values?label=$1" >"$folder/values" && grep -qF "\"value\":\"$2\"" "$folder/values"; }
stored() { api status | node -p 'JSON.parse(fs.readFileSync(0)).samples.stored'; }
volume() { # volume NAME
	mkdir -p "$folder/run/$1"
	kubectl apply -f - >"$log" <<-END
		apiVersion: v1
		kind: PersistentVolume
		metadata: { name: $1 }
		spec:
		  capacity: { storage: 20Gi }
		  accessModes: [ReadWriteOnce]
		  local: { path: $folder/run/$1 }
		  nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [{ key: kubernetes.io/hostname, operator: Exists }] }] } }
	END
}

scripts/cluster/start.sh "$folder"
say "$(kubectl get nodes -o 'jsonpath={.items[0].status.nodeInfo.kubeletVersion}, {.items[0].status.nodeInfo.containerRuntimeVersion}, Linux {.items[0].status.nodeInfo.kernelVersion}')"
skopeo copy -q --all --dest-tls-verify=false "oci-archive:build/release/everyframe-$version-oci.tar" "docker://$registry/everyframe:$version"
volume volume-1

# a wrong image first: the next upgrade mends it
release install --create-namespace --set image.repository=$registry/no-such-image
kubectl label namespace everyframe pod-security.kubernetes.io/enforce=privileged >"$log"
until_true 60 sh -c 'kubectl -n everyframe get pods | grep -c ImagePullBackOff | grep -qx 2' || fail 'the wrong image is not refused'
first=$(token)
release upgrade --set image.repository=$registry/everyframe
rolled_out
[ "$(token)" = "$first" ] || fail 'an upgrade changes the token'
say 'install, label, upgrade: agent and collector are ready, the token is kept'

own port-forward service/everyframe-collector 11080 >"$folder/forward.log" 2>&1 &
forward=$!
page() { [ "$(curl -s -o "$folder/page" -w '%{http_code}' "${@:2}" http://localhost:11080/)" = "$1" ]; }
until_true 20 page 401 || fail 'the page is open, or not there'
page 200 -u "any:$(token)" || fail 'the token does not open the page'

kubectl create namespace shop >"$log"
kubectl apply -f - >"$log" <<END
apiVersion: apps/v1
kind: Deployment
metadata: { name: orders, namespace: shop }
spec:
  selector: { matchLabels: { app: orders } }
  template:
    metadata: { labels: { app: orders } }
    spec:
      containers:
        - name: orders
          image: $registry/everyframe:$version
          command: [/usr/lib/everyframe/lib/node, -e, 'function countOrders(n) { let s = 0; for (let i = 0; i < n; i++) s += Math.sqrt(i); return s; } for (;;) countOrders(1e6);']
          resources: { limits: { cpu: 300m, memory: 128Mi } }
END
kubectl -n shop rollout status deployment/orders --timeout=120s >"$log" 2>&1 || fail 'the load does not come up'
pod_of() { kubectl -n shop get pod -l app=orders -o "jsonpath={.items[0]$1}"; }
container=$(pod_of .status.containerStatuses[0].containerID)
until_true 60 has_value container.id "${container#*//}" || fail 'no profile has the container of a pod'
has_value k8s.node.name node-1 || fail 'no name of the node'
say 'profiles of a pod have the ID of its container'

own exec "$(agent)" -- everyframe doctor >"$log" 2>&1 || fail doctor
say "doctor in the agent's pod: $(tail -n 1 "$log")"
for pod in "$(agent) agent" 'everyframe-collector-0 collector'; do
	own exec "${pod% *}" -- everyframe support-bundle -o - >"$folder/bundle.tar.gz" 2>"$log" || fail "support-bundle of $pod"
	tar -xzOf "$folder/bundle.tar.gz" "everyframe-support/counters/${pod#* }.txt" >"$log" || fail "the support bundle of $pod"
	grep -q '^everyframe_' "$log" || fail "no counters of $pod"
done
for group in "$(pod_of .metadata.uid)" "$container" "pod$(pod_of .metadata.uid)*"; do
	own exec "$(agent)" -- everyframe record --cgroup "$group" -d 2s --format folded -o - >"$folder/folded" 2>"$log" || fail "record --cgroup $group"
	grep -q countOrders "$folder/folded" || fail "--cgroup $group has no samples of the pod"
	grep -qE 'of 1 process ' "$log" || fail "--cgroup $group has other processes too"
done
say 'support bundles have counters; --cgroup takes the UID of a pod and the ID of a container'

rights() { # rights PATTERN: of the process, and the mode of its seccomp filter
	awk '/^Uid|^CapEff|^NoNewPrivs|^Seccomp:/ { printf "%s%s ", $1, $2 }' "/proc/$(pgrep -of "$1")/status"
}
[ "$(rights 'cli/sampling.cjs agent --config=/etc/everyframe/config')" = 'Uid:0 CapEff:000001c400080004 NoNewPrivs:1 Seccomp:2 ' ] || fail "rights of the agent"
[ "$(rights 'cli/main.js collector --config=/etc/everyframe/config')" = 'Uid:65532 CapEff:0000000000000000 NoNewPrivs:1 Seccomp:2 ' ] || fail "rights of the collector"

old=$(agent)
release upgrade --reuse-values --set agent.settings.samples-per-second=49
rolled_out
[ "$(agent)" != "$old" ] || fail 'other settings start no new agent'
own logs daemonset/everyframe-agent >"$log"
grep -q 'sampling each CPU 49 times' "$log" || fail 'the setting does not arrive'
before=$(api status | node -p 'JSON.parse(fs.readFileSync(0)).store.samples')
own delete pod everyframe-collector-0 >"$log"
rolled_out
until_true 20 api status || fail 'the collector does not answer'
[ "$(api status | node -p 'JSON.parse(fs.readFileSync(0)).store.samples')" -ge "$before" ] || fail 'samples are lost with the pod'
arrives() { [ "$(stored)" -gt 0 ]; }
until_true 60 arrives || fail 'the agent does not come back to a new collector'
say "other settings start another agent; a new collector has the $before samples of the old one, and gets more"

if [ -n "${OTELCOL:-}" ]; then
	kubectl create namespace observability >"$log"
	kubectl apply -f deploy/opentelemetry/rbac.yaml >"$log"
	sed "s/token: node-[0-9a-f]*/token: $(kubectl -n observability create token opentelemetry-collector)/" "$folder/run/node.conf" >"$folder/run/otelcol.conf"
	EVERYFRAME_COLLECTOR=$(own get service everyframe-collector -o 'jsonpath={.spec.clusterIP}'):11000 EVERYFRAME_TOKEN=$(token) KUBERNETES_AUTH=kubeConfig \
		KUBECONFIG=$folder/run/otelcol.conf "$OTELCOL" --config deploy/opentelemetry/kubernetes.yaml --feature-gates=service.profilesSupport >"$folder/otelcol.log" 2>&1 &
	otelcol=$!
	release upgrade --reuse-values --set agent.collectionAgent=10.99.0.1:4317 --set agent.collectionAgentTls=false
	rolled_out
	for value in k8s.pod.name="$(pod_of .metadata.name)" k8s.namespace.name=shop k8s.deployment.name=orders k8s.container.name=orders k8s.daemonset.name=everyframe-agent; do
		until_true 60 has_value "${value%%=*}" "${value#*=}" || fail "no $value"
	done
	say "an OpenTelemetry Collector with the rights of rbac.yaml gives profiles the names of pods"
fi

memory_of() { # memory_of COMPONENT: MiB at most, and how often its limit was met; version 1 and 2 of cgroups
	uid=$(own get pod -l app.kubernetes.io/component="$1" -o 'jsonpath={.items[0].metadata.uid}')
	peak=$(find /sys/fs/cgroup -path "*/pod$uid/memory.max_usage_in_bytes" -o -path "*/pod$uid/memory.peak" | head -n 1)
	group=${peak%/*}
	peak=$(cat "$peak")
	met=$(cat "$group/memory.failcnt" 2>/dev/null || awk '$1 == "max" { print $2 }' "$group/memory.events")
	echo "$((peak >> 20)) $met"
}
for pod in agent:512 collector:2048; do
	read -r peak met <<<"$(memory_of "${pod%:*}")"
	{ [ "$met" = 0 ] && [ "$peak" -gt 20 ] && [ "$peak" -lt "${pod#*:}" ]; } || fail "memory of $pod: $peak MiB, limit met $met times"
	say "${pod%:*}: at most $peak of ${pod#*:} MiB, caches of files included"
done

"$helm" uninstall everyframe -n everyframe --wait >"$log" 2>&1 || fail uninstall
until_true 60 sh -c '! kubectl -n everyframe get pods -o name | grep -q .' || fail 'pods are left'
left=$(kubectl api-resources --namespaced --verbs=list -o name | paste -sd , | xargs -I{} kubectl -n everyframe get {} -o name 2>/dev/null | grep everyframe | grep -v '^event' || true)
[ "$left" = persistentvolumeclaim/data-everyframe-collector-0 ] || fail "left behind: $left"
if kubectl get priorityclass -o name | grep everyframe; then fail 'the priority class is left'; fi
kubectl delete namespace everyframe --timeout=60s >"$log"
say 'uninstall leaves the claim of the volume, and nothing else'

volume volume-2
sed "s|image: everyframe:|image: $registry/everyframe:|" deploy/kubernetes/everyframe.yaml | kubectl apply -f - >"$log" || fail 'the manifest is refused'
secret=$(openssl rand -hex 32)
own create secret generic everyframe-token --from-literal=token="$secret" --from-literal=headers="authorization=Bearer $secret" >"$log"
rolled_out
until_true 60 arrives || fail 'nothing arrives'
say 'the manifest without Helm: the same'

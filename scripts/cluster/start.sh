#!/bin/bash
# start.sh FOLDER: starts the Kubernetes that build.sh put into FOLDER, in network and mount namespaces of the caller's own (unshare -n -m),
# and returns when its node is ready. State, logs and the numbers of its processes go to FOLDER/run. As root; needs containerd, runc,
# the CNI plugins, docker-registry, skopeo, iptables. Everything listens in the caller's network namespace alone, and so asks for little.
set -euo pipefail
cd "$1"
folder=$PWD
PATH=$folder/bin:$PATH
node=node-1 address=10.99.0.1 services=10.96.0.0/16 pods=10.98.0.0/24
registry=$address:5000
export KUBECONFIG=$folder/run/admin.conf
mkdir run run/cni run/log run/pki

start() { # start NAME COMMAND…
	setsid "${@:2}" >"run/log/$1" 2>&1 &
	echo $! >>run/pids
}
until_true() { # until_true SECONDS COMMAND…
	for _ in $(seq $(($1 * 2))); do
		if "${@:2}" >run/log/waiting 2>&1; then return; fi
		sleep 0.5
	done
	echo "cluster: ${*:2}: not after $1 s: $folder/run/log" >&2
	tail -n 3 run/log/* >&2
	return 1
}

# the kubelet sets these for the whole machine: stop.sh sets them back
sysctl vm.overcommit_memory vm.panic_on_oom kernel.panic kernel.panic_on_oops kernel.keys.root_maxkeys kernel.keys.root_maxbytes >run/sysctls

mount --make-rshared /
ip link set lo up
ip link add node type bridge
ip address add $address/24 dev node
ip link set node up
ip route add default dev node
sysctl -qw net.ipv4.ip_forward=1

openssl genrsa -out run/pki/accounts.key 2048 2>run/log/openssl
token=$(openssl rand -hex 16)
cat >run/pki/tokens.csv <<END
admin-$token,admin,admin,system:masters
node-$token,system:node:$node,node,system:nodes
manager-$token,system:kube-controller-manager,manager
scheduler-$token,system:kube-scheduler,scheduler
proxy-$token,system:kube-proxy,proxy
END
for user in admin node manager scheduler proxy; do
	cat >run/$user.conf <<-END
		apiVersion: v1
		kind: Config
		clusters: [{ name: c, cluster: { server: "https://$address:6443", certificate-authority: $folder/run/pki/apiserver.crt } }]
		users: [{ name: u, user: { token: $user-$token } }]
		contexts: [{ name: x, context: { cluster: c, user: u } }]
		current-context: x
	END
done

start etcd etcd --data-dir run/etcd --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
	--listen-peer-urls http://127.0.0.1:2380 --unsafe-no-fsync
start apiserver kube-apiserver --etcd-servers=http://127.0.0.1:2379 --advertise-address=$address --bind-address=$address --cert-dir=run/pki \
	--token-auth-file=run/pki/tokens.csv --authorization-mode=Node,RBAC --service-cluster-ip-range=$services --kubelet-preferred-address-types=InternalIP --enable-admission-plugins=NodeRestriction \
	--service-account-issuer=https://kubernetes.default.svc --service-account-signing-key-file=run/pki/accounts.key --service-account-key-file=run/pki/accounts.key
until_true 120 kubectl get --raw /readyz
start manager kube-controller-manager --kubeconfig=run/manager.conf --use-service-account-credentials --leader-elect=false \
	--service-account-private-key-file=run/pki/accounts.key --root-ca-file=run/pki/apiserver.crt --cluster-cidr=$pods
start scheduler kube-scheduler --kubeconfig=run/scheduler.conf --leader-elect=false
start proxy kube-proxy --kubeconfig=run/proxy.conf --cluster-cidr=$pods --hostname-override=$node --proxy-mode=iptables --conntrack-max-per-core=0
cat >run/Corefile <<END
.:53 {
	bind $address
	errors
	ready $address:8181
	kubernetes cluster.local {
		kubeconfig $folder/run/admin.conf
	}
}
END
start coredns coredns -conf run/Corefile

cat >run/cni/10-pods.conflist <<END
{ "cniVersion": "0.4.0", "name": "pods", "plugins": [
	{ "type": "bridge", "bridge": "pods", "isGateway": true, "ipMasq": true, "hairpinMode": true,
		"ipam": { "type": "host-local", "dataDir": "$folder/run/addresses", "ranges": [[{ "subnet": "$pods" }]], "routes": [{ "dst": "0.0.0.0/0" }] } },
	{ "type": "portmap", "capabilities": { "portMappings": true } }] }
END
cat >run/registry.yaml <<END
version: 0.1
storage: { filesystem: { rootdirectory: $folder/run/registry } }
http: { addr: "$registry" }
END
start registry docker-registry serve run/registry.yaml
until_true 30 curl -sf http://$registry/v2/
skopeo copy -q --dest-tls-verify=false oci-archive:pause.tar docker://$registry/pause:1

# a machine may keep even root from lowering scores of the out-of-memory killer
cat >run/containerd.toml <<END
version = 2
root = "$folder/run/containerd"
state = "$folder/run/containerd-state"
[grpc]
address = "$folder/run/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "$registry/pause:1"
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/usr/lib/cni"
conf_dir = "$folder/run/cni"
[plugins."io.containerd.grpc.v1.cri".registry.mirrors."$registry"]
endpoint = ["http://$registry"]
END
start containerd containerd --config run/containerd.toml
until_true 30 ctr --address run/containerd.sock version
cat >run/kubelet.yaml <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
containerRuntimeEndpoint: unix://$folder/run/containerd.sock
cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
authentication: { anonymous: { enabled: true }, webhook: { enabled: false } }
authorization: { mode: AlwaysAllow }
clusterDomain: cluster.local
clusterDNS: [$address]
podLogsDir: $folder/run/pod-logs
volumePluginDir: $folder/run/volume-plugins
resolvConf: ""
END
start kubelet kubelet --config=run/kubelet.yaml --kubeconfig=run/node.conf --root-dir="$folder/run/kubelet" --hostname-override=$node --node-ip=$address
until_true 120 kubectl wait --for=condition=Ready node/$node --timeout=2s
until_true 30 curl -sf http://$address:8181/ready

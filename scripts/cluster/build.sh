#!/bin/bash
# build.sh FOLDER: what a Kubernetes of one node needs, into FOLDER/bin and FOLDER/pause.tar: Kubernetes, etcd and CoreDNS from Go's module proxy,
# and the pause image. The first time it takes half an hour of two cores. Needs Go 1.24 or newer (GO=… names it), cc, buildah.
set -euo pipefail
mkdir -p "$1/source" "$1/bin"
cd "$1"
go=${GO:-go}
kubernetes=v1.34.4 coredns=v1.13.2 etcd=v3.6.6

if [ ! -x bin/coredns ]; then
	cd source
	# what Kubernetes' own go.mod takes from folders of its repository is in modules of the same version
	"$go" mod download "k8s.io/kubernetes@$kubernetes"
	staged=$(awk '$2 == "=>" && $3 ~ /^.\/staging/ { print $1 }' "$("$go" env GOMODCACHE)/k8s.io/kubernetes@$kubernetes/go.mod")
	printf 'module cluster\n\ngo 1.24.0\n\nrequire (\n\tk8s.io/kubernetes %s\n\tgithub.com/coredns/coredns %s\n\tgo.etcd.io/etcd/server/v3 %s\n)\n' \
		"$kubernetes" "$coredns" "$etcd" >go.mod
	for module in $staged; do echo "replace $module => $module v0${kubernetes#v1}"; done >>go.mod
	# CoreDNS with the plugins that a cluster needs
	cat >main.go <<-'END'
		package main

		import (
			"github.com/coredns/coredns/core/dnsserver"
			_ "github.com/coredns/coredns/plugin/bind"
			_ "github.com/coredns/coredns/plugin/errors"
			_ "github.com/coredns/coredns/plugin/kubernetes"
			_ "github.com/coredns/coredns/plugin/ready"

			"github.com/coredns/coredns/coremain"
		)

		func main() {
			dnsserver.Directives = []string{"bind", "ready", "errors", "kubernetes"}
			coremain.Run()
		}
	END
	programs=(kube-apiserver kube-controller-manager kube-proxy kube-scheduler kubectl kubelet)
	programs=("${programs[@]/#/k8s.io/kubernetes/cmd/}")
	{ printf '//go:build tools\n\npackage main\n\n'; printf 'import _ "%s"\n' go.etcd.io/etcd/server/v3 "${programs[@]}"; } >tools.go
	"$go" mod tidy -e >tidy.log 2>&1 || { tail tidy.log; exit 1; }
	version=k8s.io/component-base/version
	CGO_ENABLED=0 "$go" build -trimpath -ldflags "-s -w -X $version.gitVersion=$kubernetes -X $version.gitMajor=1 -X $version.gitMinor=34" \
		-o ../bin/ "${programs[@]}"
	CGO_ENABLED=0 "$go" build -trimpath -ldflags '-s -w' -o ../bin/etcd go.etcd.io/etcd/server/v3
	CGO_ENABLED=0 "$go" build -trimpath -ldflags '-s -w' -o ../bin/coredns .
	cd ..
fi

if [ ! -e pause.tar ]; then
	printf '#include <signal.h>\n#include <unistd.h>\nint main(void) { signal(SIGTERM, _exit); for (;;) pause(); }\n' >source/pause.c
	cc -static -Os -o source/pause source/pause.c
	builder() { buildah --root "$PWD/source/storage" --runroot "$PWD/source/run" --storage-driver vfs "$@"; }
	container=$(builder from scratch)
	cp source/pause "$(builder mount "$container")/pause"
	builder config --entrypoint '["/pause"]' "$container"
	builder commit -q "$container" localhost/pause:1 >/dev/null
	builder push -q localhost/pause:1 oci-archive:pause.tar:localhost/pause:1
	builder rm --all >/dev/null
	builder rmi -a -f >/dev/null
	rm -rf source/storage source/run
fi

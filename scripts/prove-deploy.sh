#!/bin/bash
# prove-deploy.sh [--write]: what deploy/ has for Kubernetes, with Helm and the Kubernetes types from Go's module proxy: the chart
# is linted, rendered with each case of deploy/helm/cases and compared with what is committed, decoded strictly, validated by the
# API server's code, and held against the Pod Security Standards; values that make no sense are refused. --write renews what is committed, deploy/kubernetes too.
# Needs Go 1.24 or newer (GO=… names it), or HELM=… and DEPLOY_CHECK=… that were built before.
set -euo pipefail
cd "$(dirname "$0")/.."
write=${1:-}
go=${GO:-go}
tools=${XDG_CACHE_HOME:-$HOME/.cache}/everyframe/go
helm=${HELM:-$tools/helm} check=${DEPLOY_CHECK:-$tools/deploy-check}
helm_version=v3.19.5 kubernetes=1.31.0
chart=deploy/helm/everyframe
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
say() { printf 'deploy: %s\n' "$*"; }
fail() {
	say "FAILED: $*"
	exit 1
}

# Of another folder than the checkout, which is not a Go module.
if [ ! -x "$helm" ]; then (cd "$work" && GOBIN=$tools "$go" install "helm.sh/helm/v3/cmd/helm@$helm_version"); fi
if [ -z "${DEPLOY_CHECK:-}" ]; then (cd scripts/deploy-check && "$go" build -o "$check" .); fi

render() { "$helm" template everyframe "$chart" --namespace everyframe --kube-version "$kubernetes" "$@"; }

# Without what only Helm knows, and with the namespace.
as_manifest() { # as_manifest CASE
	cat <<-END
		# Made of deploy/helm/everyframe by \`scripts/prove-deploy.sh --write\`: docs/kubernetes.md says how to apply it.
		apiVersion: v1
		kind: Namespace
		metadata:
		  name: everyframe
		  labels:
		    # the agent needs it; the collector would do with "restricted"
		    pod-security.kubernetes.io/enforce: privileged
	END
	grep -vE '^ *(helm.sh/chart|app.kubernetes.io/managed-by): |^# Source: ' "$work/$1.yaml"
}
golden_of() { # golden_of CASE
	case $1 in
	plain) echo deploy/kubernetes/everyframe.yaml ;;
	clickhouse) echo deploy/kubernetes/everyframe-clickhouse.yaml ;;
	*) echo "deploy/helm/cases/$1.golden.yaml" ;;
	esac
}

for values in deploy/helm/cases/*.values.yaml; do
	case=$(basename "$values" .values.yaml)
	"$helm" lint "$chart" --strict --quiet --kube-version "$kubernetes" -f "$values" || fail "lint with $values"
	render -f "$values" >"$work/$case.yaml" || fail "template with $values"
	golden=$(golden_of "$case")
	case $golden in
	deploy/kubernetes/*) as_manifest "$case" >"$work/$case.new" ;;
	*) cp "$work/$case.yaml" "$work/$case.new" ;;
	esac
	if [ "$write" = --write ]; then cp "$work/$case.new" "$golden"; fi
	diff -u "$golden" "$work/$case.new" || fail "$golden is not what the chart renders: --write renews it"
	"$check" "$work/$case.new" || fail "$golden"
done
# with Secrets of its own, which are new each time
render --set clickhouse.enabled=true >"$work/own-secrets.yaml"
"$check" "$work/own-secrets.yaml" || fail 'Secrets of its own'
grep -qE '^  headers: "authorization=Bearer [A-Za-z0-9]{40}"$' "$work/own-secrets.yaml" || fail 'no token'

refused() { # refused WHY FLAGS…
	why=$1
	shift
	if render "$@" >"$work/out" 2>&1; then fail "$* was not refused"; fi
	grep -qE "$why" "$work/out" || {
		cat "$work/out"
		fail "$* was refused for another reason than \"$why\""
	}
}
refused 'more than one needs clickhouse' --set collector.replicas=2
refused 'token.existingSecret is needed' --set 'token.tenants={shop}'
refused 'tenants' --set 'token.existingSecret=x,token.tenants={Shop}'
refused 'agent.collectionAgent is needed' --set collector.enabled=false
refused 'give one of them' --set clickhouse.enabled=true,clickhouse.existingSecret=x
refused 'agnet' --set agnet.enabled=true
refused 'memory' --set 'agent.resources.limits.memory=null'
refused 'extraCapabilities' --set 'agent.extraCapabilities={NET_ADMIN}'
refused 'digest' --set image.digest=latest
refused 'Samples_Per_Second' --set agent.settings.Samples_Per_Second=5
# the checks themselves
unfit() { # unfit SED
	sed "$1" deploy/kubernetes/everyframe.yaml >"$work/unfit.yaml"
	if cmp -s deploy/kubernetes/everyframe.yaml "$work/unfit.yaml"; then fail "$1 changes nothing"; fi
	if "$check" "$work/unfit.yaml" >"$work/out"; then fail "passes the check with $1"; fi
}
unfit 's/hostPID/hostPid/'
unfit 's/apps\/v1/apps\/v1beta3/'
unfit 's/name: cache, mountPath/name: cash, mountPath/'
unfit 's/targetPort: page/targetPort: no_page/'
unfit 's/runAsNonRoot: true/runAsNonRoot: false/'
unfit 's/hostPID: true/&\n      hostNetwork: true/'
"$check" deploy/opentelemetry/rbac.yaml || fail rbac.yaml
say 'lint, seven cases, strict decoding, validation, Pod Security Standards, ten refusals: ok'

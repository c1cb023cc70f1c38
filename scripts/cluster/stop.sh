#!/bin/bash
# stop.sh FOLDER: ends what start.sh started, the pods' processes too, and removes FOLDER/run.
set -uo pipefail
cd "$1/run" || exit 0
end() { # end PID…: waits until they are gone
	kill "$@" 2>/dev/null
	for _ in $(seq 100); do
		kill -0 "$@" 2>/dev/null || return
		sleep 0.1
	done
	kill -KILL "$@" 2>/dev/null
}
# the kubelet first, which would start them again
kubelet=$(tail -n 1 pids)
end "$kubelet"
runtime() { ctr --address containerd.sock -n k8s.io "$@"; }
for task in $(runtime tasks ls -q); do runtime tasks rm -f "$task" >/dev/null 2>&1; done
for container in $(runtime containers ls -q); do runtime containers rm "$container" >/dev/null 2>&1; done
for pid in $(tac pids); do end "$pid"; done
sysctl -q -p sysctls
# deepest first
awk -v run="$PWD/" 'index($5, run) == 1 { print $5 }' /proc/self/mountinfo | sort -r | xargs -r umount -l
find /sys/fs/cgroup -depth -path '*/kubepods*' -type d -exec rmdir {} + 2>/dev/null
cd / && rm -rf --one-file-system "$OLDPWD"

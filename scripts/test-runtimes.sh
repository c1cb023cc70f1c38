#!/bin/sh
# The runtime tests with every version that can be had; what they show goes into docs/interpreters and the agent.
# Arguments go to vitest.
set -u
cd "$(dirname "$0")/.." || exit 1

RUNTIMES=all scripts/test.sh --project live test/runtimes/ "$@"
status=$?
make -s && node dist/scripts/runtime-support.js --record build/test.json || status=1
exit $status

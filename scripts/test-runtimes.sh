#!/bin/sh
# The runtime tests with every version that can be had; what they show goes into docs/interpreters and the agent.
# Arguments are files to which it is limited, and options for vitest: `scripts/test-runtimes.sh test/runtimes/lua.test.ts`.
set -u
cd "$(dirname "$0")/.." || exit 1

case " $* " in *' test/runtimes/'*) ;; *) set -- test/runtimes/ "$@" ;; esac

RUNTIMES=all scripts/test.sh --project live "$@"
status=$?
make -s && node dist/scripts/runtime-support.js --record build/test.json || status=1
exit $status

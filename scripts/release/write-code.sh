#!/bin/sh
# everyframe-write-code: keeps beside the product what V8 makes of its code on this machine, which saves a third to a half of
# each start. Not part of a release, since V8 writes other bytes each time. --remove takes it away.
set -eu
self=$(readlink -f -- "$0")
root=${self%/bin/*}
rm -f "$root"/build/cli/*.code "$root"/build/show/*.code "$root"/build/workers/*.code
if [ "${1-}" = --remove ]; then exit; fi
export EVERYFRAME_WRITE_CODE=1
for command in agent run record top; do "$root/bin/everyframe" "$command" --help >/dev/null; done
"$root/bin/everyframe" show symbol --json "$root/build/show/example" 0x1100 >/dev/null
node=$root/lib/node
"$node" "$root/dist/scripts/write-worker-code.js" "$root/build/workers/$("$node" -p 'process.version + "-" + process.arch').code"

#!/bin/sh
# Every static check; runs them all, then says which failed. Needs a built checkout (`npm run setup`).
set -u
cd "$(dirname "$0")/.." || exit 1
PATH=$PWD/node_modules/.bin:$PATH

failed=''
check() { # check NAME COMMAND…
	name=$1
	shift
	output=$("$@" 2>&1)
	status=$?
	if [ $status -eq 0 ]; then
		echo "lint: $name: ok"
	else
		printf '%s\nlint: %s: FAILED (%s)\n' "$output" "$name" "$*"
		failed="$failed $name"
	fi
}

# The layer rules; a TypeScript that dependency-cruiser can't load would make it see nothing, and pass.
check_layers() {
	report=$(depcruise --config .dependency-cruiser.cjs --output-type err agent collector common otlp-client cli) || {
		echo "$report"
		return 1
	}
	modules=$(printf '%s' "$report" | sed -n 's/.*(\([0-9]*\) modules.*/\1/p')
	sources=$(find agent collector common otlp-client cli -name '*.ts' -o -name '*.tsx' | wc -l)
	if [ "$sources" -lt 30 ] || [ "${modules:-0}" -lt "$sources" ]; then
		echo "dependency-cruiser saw ${modules:-0} modules of $sources: does it support this TypeScript?"
		return 1
	fi
}

# Circles between folders; first that the rules see those of test/fixtures/circles.
check_circles() {
	for rule in no-cycle no-cycle-of-folders; do
		config=.dependency-cruiser.cjs
		[ $rule = no-cycle ] || config=.dependency-cruiser.folders.cjs
		depcruise --config $config --metrics --output-type err test/fixtures/circles | grep -q "error $rule: test/fixtures/circles/one" || {
			echo "$config does not see the circle in test/fixtures/circles"
			return 1
		}
	done
	depcruise --config .dependency-cruiser.folders.cjs --metrics --output-type err agent collector common otlp-client cli &&
		node dist/scripts/draw-folders.js --check
}

# Not those two: tables laid out by hand.
check_c_format() {
	git ls-files -- 'ebpf/*.[ch]' 'addon/*.cc' 'addon/*.hh' 'supervisor/*.cc' 'confine/*.cc' 'confine/*.hh' | grep -v -e '^ebpf/vmlinux\.h$' -e '^ebpf/counters\.h$' |
		xargs clang-format --dry-run --Werror
}

check biome biome check --error-on-warnings .
check types tsc -p tsconfig.check.json
[ ! -f collector/web/tsconfig.json ] || check page-types tsc -p collector/web --noEmit
check layers check_layers
check circles check_circles
check unused knip --no-progress
check headers scripts/check-headers.sh
check generated node dist/scripts/generate-records.js --check
check supported node dist/scripts/runtime-support.js --check
check docs node dist/scripts/check-docs.js
if command -v clang-format >/dev/null; then
	check c-format check_c_format
else
	echo 'lint: c-format: skipped, clang-format is not installed'
fi

[ -z "$failed" ] || {
	echo "lint: failed:$failed"
	exit 1
}

#!/bin/sh
# Static checks, then every test; ends with vitest's summary and the line "N passed, N failed, N skipped".
# Arguments go to vitest: `scripts/test.sh --project unit`, `scripts/test.sh test/doctor.test.ts`.
set -u
cd "$(dirname "$0")/.." || exit 1
PATH=$PWD/node_modules/.bin:$PATH

lint=0
[ $# -gt 0 ] || scripts/lint.sh || lint=1

mkdir -p build
rm -f build/test.json
vitest run --reporter=default --reporter=./test/support/skip-reasons.ts --reporter=json --outputFile.json=build/test.json "$@"
tests=$?

[ $lint -eq 0 ] || echo 'The static checks failed: see the lines that start with "lint:" above.'
# shellcheck disable=SC2016 # JavaScript
node -e '
	const report = JSON.parse(fs.readFileSync("build/test.json"));
	// A file that failed before or outside its tests counts as one failure.
	const broken = report.testResults.filter(
		(file) => file.status === "failed" && !file.assertionResults.some((test) => test.status === "failed"),
	).length;
	const skipped = report.numPendingTests + report.numTodoTests;
	console.log(`${report.numPassedTests} passed, ${report.numFailedTests + broken} failed, ${skipped} skipped`);
' || echo 'vitest wrote no report: it ended before the tests did'
[ $lint -eq 0 ] && [ $tests -eq 0 ]

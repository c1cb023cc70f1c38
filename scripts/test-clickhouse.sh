#!/bin/sh
# Tests the store in ClickHouse against its engine: chdb, the engine as a library, which npm has. Not part of npm test,
# since it is 550 MiB; it stays in ~/.cache/everyframe/chdb.
set -u
cd "$(dirname "$0")/.." || exit 1
version=3.4.0
folder=${XDG_CACHE_HOME:-$HOME/.cache}/everyframe/chdb
if ! grep -qs "\"version\": \"$version\"" "$folder/node_modules/chdb/package.json"; then
	mkdir -p "$folder"
	npm install --prefix "$folder" --ignore-scripts --no-audit --no-fund "chdb@$version" || {
		echo "test:clickhouse: skipped: chdb $version can't be had from npm, see above"
		exit 0
	}
fi
if ! (cd "$folder" && node -e "const { Session } = require('chdb'); new Session().cleanup()"); then
	echo "test:clickhouse: skipped: chdb $version does not run on this machine ($(uname -m)), see above"
	exit 0
fi
CHDB_FOLDER=$folder exec node_modules/.bin/vitest run --project live test/clickhouse

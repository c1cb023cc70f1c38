#!/bin/sh
# What people open profiles with, from its own registry, opens what we write: the Firefox Profiler's importer
# (@firefox-devtools/profiler-cli, which wants Node 24), inferno, which takes minutes to build, and flamegraph.pl, which
# Debian has within its package of a Perl profiler.
set -eu
cd "$(dirname "$0")/.."
cache=${XDG_CACHE_HOME:-$HOME/.cache}/everyframe/viewers
mkdir -p "$cache/bin"

# their versions are part of the test: newer ones are tried on purpose
firefox=$cache/node_modules/@firefox-devtools/profiler-cli/dist/profiler-cli.js
if [ ! -f "$firefox" ]; then
	# --ignore-scripts: node-linux-… is the program itself, the package `node` would only download it once more
	npm install --prefix "$cache" --no-audit --no-fund --ignore-scripts \
		@firefox-devtools/profiler-cli@0.10.0 "node-linux-$(node -p process.arch)@24.21.0"
fi
node24=$(find "$cache/node_modules" -path '*/bin/node' -type f | head -n 1)
printf '#!/bin/sh\nexec "%s" "%s" "$@"\n' "$node24" "$firefox" >"$cache/bin/profiler-cli"
chmod +x "$cache/bin/profiler-cli"

if [ ! -x "$cache/bin/flamegraph.pl" ]; then
	package=$(mktemp -d)
	(cd "$package" && apt-get -qq -o APT::Sandbox::User="$(id -un)" download libdevel-nytprof-perl && dpkg -x libdevel-nytprof-perl_*.deb .)
	install -m 755 "$package/usr/share/perl5/Devel/NYTProf/flamegraph.pl" "$cache/bin/"
	rm -r "$package"
fi

if command -v cargo >/dev/null; then
	[ -x "$cache/bin/inferno-flamegraph" ] || cargo install --quiet --locked --root "$cache" inferno@0.12.8
else
	echo 'left out: inferno is not built, because cargo is not installed'
fi
scripts/setup.sh --test
PATH=$cache/bin:$PWD/node_modules/.bin:$PATH exec vitest run --project live --silent=false test/formats.test.ts

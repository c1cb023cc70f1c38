# Builds the whole product into build/ (BPF object, addon, generated code, page) and dist/ (TypeScript).
# What knows the processor goes into $(OUT): "make CPU=aarch64 native" cross-compiles, with the Debian packages that
# test/kernels/fetch-packages.sh has unpacked into $(SYSROOT).
HOST_CPU := $(shell uname -m)
CPU := $(HOST_CPU)
OUT := build$(if $(filter-out $(HOST_CPU),$(CPU)),/$(CPU))
ifneq ($(OUT),build)
CXX := $(CPU)-linux-gnu-g++
SYSROOT_FLAGS := -isystem $(SYSROOT)/usr/include -L$(SYSROOT)/usr/lib/$(CPU)-linux-gnu \
	-Wl,-rpath-link,$(SYSROOT)/usr/lib/$(CPU)-linux-gnu:$(SYSROOT)/lib/$(CPU)-linux-gnu
endif
# Others with `npm run dist` (scripts/release/native.sh).
ADDON_LIBS := -lbpf
SUPERVISE_LINK := -static-libstdc++ -static-libgcc
BPF_ARCH := $(subst x86_64,x86,$(subst aarch64,arm64,$(CPU)))
# Any clang from 14 on builds the BPF object; the newest that is installed is taken.
CLANG ?= $(shell for v in 19 18 17 16 15 14; do command -v clang-$$v && break; done || command -v clang)
LLVM_STRIP ?= $(shell command -v llvm-strip || ls /usr/bin/llvm-strip-* 2>/dev/null | tail -1)
NODE_INCLUDE := node_modules/node-api-headers/include
ADDON_INCLUDE := node_modules/node-addon-api

# NAME-6.1 is for kernels up to that one, which lack a function that NAME calls; deferred-6.18 is for 6.18 alone.
EVERY_KERNEL := everyframe off-cpu waiting events allocations returns
BPF_OBJECTS := $(EVERY_KERNEL) $(EVERY_KERNEL:%=%-6.1) deferred deferred-6.18
NATIVE := $(BPF_OBJECTS:%=%.bpf.o) everyframe.node everyframe-reader supervise worker-launcher

all: $(NATIVE:%=build/%) build/otlp.js build/web/index.html dist/.stamp build/show/.stamp build/cli/.stamp build/workers/.stamp build/telemetry/otlp.cjs

native: $(NATIVE:%=$(OUT)/%)

# For scripts/release.
list-native:
	@echo $(NATIVE)

$(OUT)/deferred-6.18.bpf.o: BPF_DEFINES := -DEF_TASK_WORK_IMPL
$(OUT)/deferred-6.18.bpf.o: BPF_SOURCE := deferred
$(OUT)/%-6.1.bpf.o: BPF_DEFINES := -DEF_NO_RDONLY_CAST
compile_bpf = $(CLANG) $(BPF_DEFINES) -O2 -g -ffile-prefix-map=$(CURDIR)=. -Wall -Wextra -Wno-missing-declarations -Werror -target bpf -mcpu=v2 -D__TARGET_ARCH_$(BPF_ARCH) $(BPF_INCLUDES) \
	-idirafter /usr/include/$(shell uname -m)-linux-gnu -c $(1) -o $@.tmp && $(LLVM_STRIP) -g $@.tmp && mv $@.tmp $@
# Of each runtime's folder: what memory.h and runtimes.h include.
build/include/runtime-%.h: ebpf/runtimes.def Makefile
	@mkdir -p build/include
	sed -n 's|^RUNTIME([A-Z0-9_]*, \([a-z0-9_]*\),.*|#include "\1/$*.h"|p' $< > $@
BPF_INCLUDES := -Iebpf -Ibuild/include
BPF_HEADERS := $(wildcard ebpf/*.h ebpf/*/*.h) ebpf/runtimes.def build/include/runtime-state.h build/include/runtime-unwind.h
$(OUT)/%.bpf.o: $(wildcard ebpf/*.c) $(BPF_HEADERS) Makefile
	@mkdir -p $(OUT)
	$(call compile_bpf,ebpf/$(or $(BPF_SOURCE),$(*:%-6.1=%)).bpf.c)

# Sources of samples that only test/sources has: not part of the product.
build/test-sources.bpf.o: test/sources/sources.bpf.c $(BPF_HEADERS) Makefile
	@mkdir -p build
	$(call compile_bpf,$<)

# The unwinders as an ordinary program, for test/unwinders: not part of the product.
build/unwinders: $(wildcard test/unwinders/*.[ch] test/unwinders/shim/bpf/*.h) $(BPF_HEADERS) Makefile
	@mkdir -p build
	gcc -std=gnu17 -O1 -g -D__TARGET_ARCH_x86 -Wall -Wextra -Wno-unused-parameter -Wno-unknown-pragmas -Wno-sign-compare -Werror \
		-fsanitize=address,undefined -fno-sanitize-recover=all -Itest/unwinders/shim $(BPF_INCLUDES) \
		test/unwinders/unwinders.c test/unwinders/host.c -o $@

# Static: it is small then, and needs nothing where it runs.
$(OUT)/everyframe-reader: $(wildcard addon/reader/*.cc addon/reader/*.hh) addon/descriptor-message.hh confine/memory-file.hh confine/rights.hh Makefile
	@mkdir -p $(OUT)
	$(CXX) -std=c++20 -Os -static -Wall -Wextra -Werror addon/reader/*.cc -o $@ $(SYSROOT_FLAGS)

$(OUT)/everyframe.node: $(wildcard addon/*.cc addon/*.hh addon/reader/*.hh) Makefile
	@mkdir -p $(OUT)
	$(CXX) -std=c++20 -O2 -fPIC -shared -fvisibility=hidden -Wall -Wextra -Wno-unused-parameter -Werror -DNAPI_VERSION=9 -DNODE_ADDON_API_DISABLE_DEPRECATED \
		-isystem $(ADDON_INCLUDE) -isystem $(NODE_INCLUDE) addon/*.cc -o $@ \
		$(SYSROOT_FLAGS) $(ADDON_LIBS)

$(OUT)/supervise: supervisor/supervise.cc Makefile
	@mkdir -p $(OUT)
	$(CXX) -std=c++20 -O2 -Wall -Wextra -Werror $(SUPERVISE_LINK) $< -o $@ $(SYSROOT_FLAGS)

# Starts the agent's workers, without rights and within limits. Static as the reader: the opener stays beside each worker.
$(OUT)/worker-launcher: $(wildcard confine/*.cc confine/*.hh) addon/open-below.cc addon/open-below.hh addon/descriptor-message.hh Makefile
	@mkdir -p $(OUT)
	$(CXX) -std=c++20 -Os -static -Wall -Wextra -Werror confine/*.cc addon/open-below.cc -o $@ $(SYSROOT_FLAGS)

# OTLP's protobuf code: a protobufjs static module, imported as #otlp (package.json, "imports").
build/otlp.js: $(shell find proto -name '*.proto') package-lock.json
	@mkdir -p build
	node_modules/.bin/pbjs -t static-module -w es6 --force-long -p proto -o $@ opentelemetry/proto/collector/profiles/v1development/profiles_service.proto
	node_modules/.bin/pbts -o build/otlp.d.ts $@

build/web/index.html: $(shell find collector/web -type f) package-lock.json
	node scripts/build-web.mjs

SOURCES := $(shell find agent collector common otlp-client cli scripts test -name '*.ts' -not -name '*.test.ts')
dist/.stamp: $(SOURCES) tsconfig.json package.json build/otlp.js
	node_modules/.bin/tsc -b
	@touch $@

# Commands as one file, which start in a third to half of the time, and the code that V8 makes of it (cli/bundle-start.ts).
# Code that V8 has from a file can't import() what is not part of it.
BUNDLE := node_modules/.bin/esbuild --bundle --platform=node --format=cjs --target=node20.19 --minify-syntax --log-level=warning \
	--supported:dynamic-import=false \
	--define:import.meta.url=bundleUrl --define:import.meta.dirname=__dirname --define:import.meta.filename=__filename \
	--banner:js="const bundleUrl = require('node:url').pathToFileURL(__filename).href;"

# esbuild leaves letters beyond ASCII in comments and regular expressions only; one of them in a comment, and V8 keeps the
# whole text of the file in memory with two bytes a letter.
ASCII_COMMENTS := LC_ALL=C sed -i '/^[[:space:]]*\(\/\/\|\/\*\|\*\)/ s/[\x80-\xff]/?/g'

# `node --enable-source-maps build/show/symbol-bundle.cjs` makes the stack traces of `show symbol` those of the sources.
build/show/.stamp: dist/.stamp
	@mkdir -p build/show && rm -f build/show/*
	$(BUNDLE) --minify-whitespace --sourcemap --outfile=build/show/symbol-bundle.cjs cli/show-symbol-main.ts
	$(BUNDLE) --outfile=build/show/symbol.cjs cli/bundle-start.ts
	echo 'namespace a { template <class T> T f(T x) { return x + 1; } template int f(int); }' | \
		g++ -g -ffile-prefix-map=$(CURDIR)=. -shared -fPIC -o build/show/example -x c++ -
	EVERYFRAME_WRITE_CODE=1 bin/everyframe show symbol --json build/show/example \
		$$(nm build/show/example | awk '/_ZN1a1f/ { print "0x" $$1 }') >/dev/null
	@touch $@

# What samples. Lines stay, for stack traces.
build/cli/.stamp: dist/.stamp bin/everyframe
	@mkdir -p build/cli && rm -f build/cli/*
	$(BUNDLE) --outfile=build/cli/sampling-bundle.cjs cli/sampling-main.ts
	$(ASCII_COMMENTS) build/cli/sampling-bundle.cjs
	$(BUNDLE) --outfile=build/cli/sampling.cjs cli/bundle-start.ts
	for command in agent run record top; do EVERYFRAME_WRITE_CODE=1 bin/everyframe $$command --help >/dev/null || exit 1; done
	@touch $@

# The agent's workers, as one file, with the code that V8 makes of it, and what starts it, whose text Node is given. Lines stay, for
# stack traces.
build/workers/.stamp: dist/.stamp build/show/.stamp build/worker-launcher build/everyframe.node
	@mkdir -p build/workers && rm -f build/workers/*
	$(BUNDLE) --outfile=build/workers/worker.cjs agent/worker-main/worker.ts
	$(BUNDLE) --minify-whitespace --outfile=build/workers/start.cjs agent/worker-main/worker-start.ts
	$(ASCII_COMMENTS) build/workers/worker.cjs
	node dist/scripts/write-worker-code.js build/workers/$$(node -p 'process.version + "-" + process.arch').code
	@touch $@

# Beside the commands, which load it where it is asked for.
build/telemetry/otlp.cjs: dist/.stamp
	@mkdir -p build/telemetry
	$(BUNDLE) --minify-whitespace --outfile=$@ cli/telemetry/otlp.ts

clean:
	rm -rf build dist tsconfig.tsbuildinfo

.PHONY: all native list-native clean

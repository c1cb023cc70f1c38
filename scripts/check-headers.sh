#!/bin/sh
# Compiles each BPF header alone: what it needs it includes.
set -u
cd "$(dirname "$0")/.." || exit 1
make -s build/include/runtime-state.h build/include/runtime-unwind.h || exit 1
clang=$(for v in 19 18 17 16 15 14; do command -v clang-$v && break; done || command -v clang)
failed=0
for header in $(git ls-files 'ebpf/*.h'); do
	case $header in *arm64*) target=arm64 ;; *) target=x86 ;; esac
	"$clang" -fsyntax-only -Wall -Wextra -Wno-unused-parameter -Wno-unused-function -Wno-missing-declarations -Werror \
		-target bpf -mcpu=v2 -D__TARGET_ARCH_$target -Iebpf -Ibuild/include \
		-idirafter "/usr/include/$(uname -m)-linux-gnu" -x c "$header" || failed=1
done
exit $failed

// SPDX-License-Identifier: Apache-2.0
#include "uprobe-multi.hh"

#include <bpf/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <thread>

namespace {
constexpr uint32_t kAtReturn = 1;  // BPF_F_UPROBE_MULTI_RETURN

// What BPF_LINK_CREATE reads of union bpf_attr: include/uapi/linux/bpf.h.
struct LinkCreate {
  uint32_t program_fd;
  uint32_t target_fd;
  uint32_t attach_type;
  uint32_t flags;
  uint64_t path;
  uint64_t offsets;
  uint64_t counters;  // ref_ctr_offsets
  uint64_t cookies;
  uint32_t count;
  uint32_t uprobe_flags;
  uint32_t pid;  // 0: all processes
  uint32_t unused;
};
static_assert(sizeof(LinkCreate) == 64);

uint64_t AddressOf(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }
}  // namespace

int OpenUprobeLink(int program_fd, const UprobePlaces& places) {
  LinkCreate attr = {};
  attr.program_fd = program_fd;
  attr.attach_type = kTraceUprobeMulti;
  attr.path = AddressOf(places.path);
  attr.offsets = AddressOf(places.offsets);
  attr.counters = AddressOf(places.counters);
  attr.count = places.count;
  attr.uprobe_flags = places.is_at_return ? kAtReturn : 0;
  int fd = syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));
  return fd < 0 ? -errno : fd;
}

void CloseUprobeLinks(const std::vector<int>& fds) {
  std::vector<std::jthread> threads;
  for (int fd : fds) {
    try {
      threads.emplace_back(close, fd);
    } catch (const std::system_error&) {  // the limit of threads
      close(fd);
    }
  }
}

bool HasUprobeMulti() {
  const bpf_insn nothing[] = {
      {BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, 0},
      {BPF_JMP | BPF_EXIT, 0, 0, 0, 0},
  };
  LIBBPF_OPTS(bpf_prog_load_opts, options);
  options.expected_attach_type = static_cast<bpf_attach_type>(kTraceUprobeMulti);
  int program = bpf_prog_load(BPF_PROG_TYPE_KPROBE, nullptr, "GPL", nothing, 2, &options);
  if (program < 0) return false;
  // a kernel that knows the call gets as far as to see that a directory is not a file
  const uint64_t offset = 0;
  int link = OpenUprobeLink(program, {"/", &offset, nullptr, 1, false});
  close(program);
  if (link >= 0) close(link);
  return link == -EBADF;
}

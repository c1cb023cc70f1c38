// SPDX-License-Identifier: Apache-2.0
// Links that run a program at many places of a file at once: BPF_TRACE_UPROBE_MULTI, Linux 6.6. The headers and the
// libbpf of Debian 12 are older, so the call is made here.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

// enum bpf_attach_type; programs, and those that they jump to, are loaded with it.
constexpr int kTraceUprobeMulti = 48;

// Places in a file, through which any process may have it mapped.
struct UprobePlaces {
  const char* path;
  const uint64_t* offsets;
  const uint64_t* counters;  // offsets of u16 that the kernel raises in each process; 0: none
  size_t count;
  bool is_at_return;  // functions begin there, and the program runs when they return
};

// The descriptor of the link, or -errno where the kernel refuses any of the places: then there is none.
int OpenUprobeLink(int program_fd, const UprobePlaces& places);

// All at once: each waits for the kernel, together hardly longer than one.
void CloseUprobeLinks(const std::vector<int>& fds);

// Asks the kernel, which takes the rights to load a program.
bool HasUprobeMulti();

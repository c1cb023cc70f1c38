// SPDX-License-Identifier: Apache-2.0
#include "user-reads.hh"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iterator>

namespace {
// After libbpf has put bpf_probe_read in their place, and before the kernel sees it.
void PutBack(bpf_program* program) {
  auto* instructions = const_cast<bpf_insn*>(bpf_program__insns(program));
  for (size_t i = 0; i < bpf_program__insn_cnt(program); i++) {
    bpf_insn& call = instructions[i];
    if (call.code != (BPF_JMP | BPF_CALL) || call.src_reg != 0) continue;
    if (call.imm == BPF_FUNC_probe_read) call.imm = BPF_FUNC_probe_read_user;
    if (call.imm == BPF_FUNC_probe_read_str) call.imm = BPF_FUNC_probe_read_user_str;
  }
}

// As libbpf's own for "tp_btf/NAME", which a handler takes the place of.
int FindTracepoint(const bpf_program* program, bpf_prog_load_opts* options) {
  const char* name = strchr(bpf_program__section_name(program), '/');
  int type = name ? libbpf_find_vmlinux_btf_id(name + 1, BPF_TRACE_RAW_TP) : -EINVAL;
  if (type < 0) return type;
  options->attach_btf_id = type;
  return 0;
}

int Prepare(bpf_program* program, bpf_prog_load_opts* options, long) {
  PutBack(program);
  return bpf_program__type(program) == BPF_PROG_TYPE_TRACING ? FindTracepoint(program, options) : 0;
}

int AttachTracepoint(const bpf_program* program, long, bpf_link** link) {
  *link = bpf_program__attach_trace(program);
  return *link ? 0 : -errno;
}
}  // namespace

// Not by libbpf_probe_bpf_helper(), which (1.1) does not understand the refusal of Linux 6.12.
bool HasKernelReads() {
  const bpf_insn reads_null[] = {
      {BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_1, BPF_REG_10, 0, 0}, {BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_1, 0, 0, -8},
      {BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_2, 0, 0, 8},          {BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_3, 0, 0, 0},
      {BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_probe_read_kernel},  {BPF_JMP | BPF_EXIT, 0, 0, 0, 0},
  };
  int program = bpf_prog_load(BPF_PROG_TYPE_PERF_EVENT, nullptr, "GPL", reads_null, std::size(reads_null), nullptr);
  if (program < 0) return program != -EINVAL;
  close(program);
  return true;
}

void KeepUserReads() {
  static bool is_done = false;
  if (is_done) return;
  is_done = true;
  LIBBPF_OPTS(libbpf_prog_handler_opts, plain, .prog_prepare_load_fn = Prepare);
  LIBBPF_OPTS(libbpf_prog_handler_opts, tracing, .prog_prepare_load_fn = Prepare, .prog_attach_fn = AttachTracepoint);
  libbpf_register_prog_handler("perf_event", BPF_PROG_TYPE_PERF_EVENT, bpf_attach_type{}, &plain);
  libbpf_register_prog_handler("kprobe", BPF_PROG_TYPE_KPROBE, bpf_attach_type{}, &plain);
  libbpf_register_prog_handler("raw_tp+", BPF_PROG_TYPE_RAW_TRACEPOINT, bpf_attach_type{}, &plain);
  libbpf_register_prog_handler("tp_btf+", BPF_PROG_TYPE_TRACING, BPF_TRACE_RAW_TP, &tracing);
}

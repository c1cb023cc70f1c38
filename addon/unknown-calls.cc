// SPDX-License-Identifier: Apache-2.0
#include "unknown-calls.hh"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <cerrno>
#include <cstring>
#include <mutex>

namespace {
// libbpf has written the number of each function that the kernel has into the call, and 0 for one that it has not.
bool IsUnknownCall(const bpf_insn& instruction) {
  return instruction.code == (BPF_JMP | BPF_CALL) && instruction.src_reg == BPF_PSEUDO_KFUNC_CALL &&
         instruction.imm == 0;
}

// libbpf calls it when the instructions are as the kernel gets them.
int LeaveOut(bpf_program* program, bpf_prog_load_opts*, long) {
  auto* instructions = const_cast<bpf_insn*>(bpf_program__insns(program));
  for (size_t i = 0; i < bpf_program__insn_cnt(program); i++) {
    if (!IsUnknownCall(instructions[i])) continue;
    instructions[i] = {};
    instructions[i].code = BPF_ALU64 | BPF_MOV | BPF_K;  // r0 = 0, as the call would have set r0
  }
  return 0;
}

// What else libbpf's own handler of these sections does: the section names what it is attached to.
int LeaveOutAndFindTarget(bpf_program* program, bpf_prog_load_opts* options, long type) {
  const char* slash = strchr(bpf_program__section_name(program), '/');
  if (!slash) return -EINVAL;
  int id = libbpf_find_vmlinux_btf_id(slash + 1, static_cast<bpf_attach_type>(type));
  if (id < 0) return id;
  options->attach_btf_id = id;
  return LeaveOut(program, options, 0);
}

int AttachToTarget(const bpf_program* program, long, bpf_link** link) {
  *link = bpf_program__attach_trace(program);
  return *link ? 0 : -errno;
}

// `sections`: of one name, or with a + also of those that begin with it and a /
void Register(const char* sections, bpf_prog_type type, libbpf_prog_prepare_load_fn_t prepare,
              bpf_attach_type attach = bpf_attach_type{}, libbpf_prog_attach_fn_t attach_to = nullptr) {
  LIBBPF_OPTS(libbpf_prog_handler_opts, options);
  options.cookie = attach;
  options.prog_prepare_load_fn = prepare;
  options.prog_attach_fn = attach_to;
  libbpf_register_prog_handler(sections, type, attach, &options);
}

void RegisterAll() {
  if (libbpf_major_version() > 1 || libbpf_minor_version() >= 2) return;
  Register("perf_event", BPF_PROG_TYPE_PERF_EVENT, LeaveOut);
  Register("kprobe", BPF_PROG_TYPE_KPROBE, LeaveOut);
  Register("raw_tp+", BPF_PROG_TYPE_RAW_TRACEPOINT, LeaveOut);
  Register("tp_btf+", BPF_PROG_TYPE_TRACING, LeaveOutAndFindTarget, BPF_TRACE_RAW_TP, AttachToTarget);
  Register("iter+", BPF_PROG_TYPE_TRACING, LeaveOutAndFindTarget, BPF_TRACE_ITER);
}
}  // namespace

void LeaveOutUnknownCalls() {
  static std::once_flag once;
  std::call_once(once, RegisterAll);
}

// SPDX-License-Identifier: Apache-2.0
// The BPF programs of the whole machine: which there are, and where their machine code lies. Needs CAP_SYS_ADMIN.
#include <bpf/bpf.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <vector>

#include "maps.hh"

namespace {
// A program has 256 functions at most (BPF_MAX_SUBPROGS in include/linux/bpf_verifier.h).
constexpr uint32_t kMaxFunctions = 1024;

// nextBpfProgram(after): the lowest ID above `after`, 0 where there is none, or -errno.
Napi::Value NextProgram(const Napi::CallbackInfo& info) {
  uint32_t next = 0;
  int failed = bpf_prog_get_next_id(info[0].As<Napi::Number>().Uint32Value(), &next);
  double result = !failed ? next : errno == ENOENT ? 0 : -errno;
  return Napi::Number::New(info.Env(), result);
}

// Address and length of each function, into `addresses` and `lengths`; how many there are, or -1.
int ReadFunctions(int fd, std::vector<uint64_t>& addresses, std::vector<uint32_t>& lengths) {
  bpf_prog_info program = {};
  uint32_t bytes = sizeof(program);
  if (bpf_obj_get_info_by_fd(fd, &program, &bytes)) return -1;
  uint32_t count = std::min({program.nr_jited_ksyms, program.nr_jited_func_lens, kMaxFunctions});
  addresses.assign(count, 0);
  lengths.assign(count, 0);
  program = {};
  program.nr_jited_ksyms = program.nr_jited_func_lens = count;
  program.jited_ksyms = reinterpret_cast<uint64_t>(addresses.data());
  program.jited_func_lens = reinterpret_cast<uint64_t>(lengths.data());
  bytes = sizeof(program);
  return bpf_obj_get_info_by_fd(fd, &program, &bytes) ? -1 : static_cast<int>(count);
}

// bpfProgramCode(id): address and bytes of each of its functions, one behind the other; undefined where it is gone.
Napi::Value ProgramCode(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  int fd = bpf_prog_get_fd_by_id(info[0].As<Napi::Number>().Uint32Value());
  if (fd < 0) return env.Undefined();
  std::vector<uint64_t> addresses;
  std::vector<uint32_t> lengths;
  int count = ReadFunctions(fd, addresses, lengths);
  close(fd);
  if (count < 0) return env.Undefined();
  auto code = Napi::BigUint64Array::New(env, 2 * count);
  for (int i = 0; i < count; i++) {
    code[2 * i] = addresses[i];
    code[2 * i + 1] = lengths[i];
  }
  return code;
}
}  // namespace

void DefineBpfPrograms(Napi::Env env, Napi::Object exports) {
  exports.Set("nextBpfProgram", Napi::Function::New(env, NextProgram));
  exports.Set("bpfProgramCode", Napi::Function::New(env, ProgramCode));
}

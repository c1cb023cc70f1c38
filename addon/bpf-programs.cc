// SPDX-License-Identifier: Apache-2.0
// The BPF programs of the whole machine: which there are, where their machine code lies, and its names. Needs
// CAP_SYS_ADMIN.
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
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

constexpr size_t kTagBytes = 8;

struct ProgramInfo {
  bpf_prog_info info = {};
  // Of each function.
  std::vector<uint64_t> addresses;
  std::vector<uint32_t> lengths;
  std::vector<std::array<uint8_t, kTagBytes>> tags;
  std::vector<bpf_func_info> functions;
};

// False where the kernel does not say.
bool ReadProgram(int fd, ProgramInfo& program) {
  bpf_prog_info sizes = {};
  uint32_t bytes = sizeof(sizes);
  if (bpf_obj_get_info_by_fd(fd, &sizes, &bytes)) return false;
  uint32_t count = std::min({sizes.nr_jited_ksyms, sizes.nr_jited_func_lens, kMaxFunctions});
  program.addresses.assign(count, 0);
  program.lengths.assign(count, 0);
  program.tags.assign(std::min(sizes.nr_prog_tags, count), {});
  bool has_types = sizes.btf_id && sizes.func_info_rec_size == sizeof(bpf_func_info);
  program.functions.assign(has_types ? std::min(sizes.nr_func_info, count) : 0, {});
  bpf_prog_info& info = program.info;
  info.nr_jited_ksyms = info.nr_jited_func_lens = count;
  info.jited_ksyms = reinterpret_cast<uint64_t>(program.addresses.data());
  info.jited_func_lens = reinterpret_cast<uint64_t>(program.lengths.data());
  info.nr_prog_tags = program.tags.size();
  info.prog_tags = reinterpret_cast<uint64_t>(program.tags.data());
  info.nr_func_info = program.functions.size();
  info.func_info_rec_size = sizeof(bpf_func_info);
  info.func_info = reinterpret_cast<uint64_t>(program.functions.data());
  bytes = sizeof(info);
  return !bpf_obj_get_info_by_fd(fd, &info, &bytes);
}

// As kallsyms would name it (bpf_prog_get_full_symbol in kernel/bpf/core.c): bpf_prog_TAG_NAME.
std::string NameOf(const ProgramInfo& program, const btf* types, size_t function) {
  const bool is_main = function == 0;
  const uint8_t* tag = is_main || function >= program.tags.size() ? program.info.tag : program.tags[function].data();
  std::string name = "bpf_prog_";
  for (size_t i = 0; i < kTagBytes; i++) {
    constexpr char kDigits[] = "0123456789abcdef";
    name += kDigits[tag[i] >> 4];
    name += kDigits[tag[i] & 15];
  }
  const char* own = nullptr;
  if (types && function < program.functions.size()) {
    const btf_type* type = btf__type_by_id(types, program.functions[function].type_id);
    if (type) own = btf__name_by_offset(types, type->name_off);
  }
  // without types the kernel calls all functions but the first one F
  const std::string fallback =
      is_main ? std::string(program.info.name, strnlen(program.info.name, BPF_OBJ_NAME_LEN)) : "F";
  const std::string last = own && *own ? own : fallback;
  return last.empty() ? name : name + "_" + last;
}

// bpfProgramFunctions(id, named): { start, bytes, name } of each; undefined where the program is gone.
Napi::Value ProgramFunctions(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  int fd = bpf_prog_get_fd_by_id(info[0].As<Napi::Number>().Uint32Value());
  if (fd < 0) return env.Undefined();
  ProgramInfo program;
  bool is_read = ReadProgram(fd, program);
  close(fd);
  if (!is_read) return env.Undefined();
  const bool is_named = info[1].As<Napi::Boolean>();
  btf* types = is_named && !program.functions.empty() ? btf__load_from_kernel_by_id(program.info.btf_id) : nullptr;
  if (libbpf_get_error(types)) types = nullptr;
  auto functions = Napi::Array::New(env, program.addresses.size());
  for (size_t i = 0; i < program.addresses.size(); i++) {
    auto function = Napi::Object::New(env);
    function.Set("start", Napi::BigInt::New(env, program.addresses[i]));
    function.Set("bytes", Napi::Number::New(env, program.lengths[i]));
    if (is_named) function.Set("name", NameOf(program, types, i));
    functions[i] = function;
  }
  btf__free(types);
  return functions;
}
}  // namespace

void DefineBpfPrograms(Napi::Env env, Napi::Object exports) {
  exports.Set("nextBpfProgram", Napi::Function::New(env, NextProgram));
  exports.Set("bpfProgramFunctions", Napi::Function::New(env, ProgramFunctions));
}

// SPDX-License-Identifier: Apache-2.0
// What raw tracepoints are called with, out of the kernel's BTF.
#include <bpf/btf.h>
#include <errno.h>

#include <memory>
#include <string>

#include "maps.hh"
#include "object.hh"

namespace {
using Btf = std::unique_ptr<btf, decltype(&btf__free)>;

Btf KernelBtf(Napi::Env env) {
  btf* kernel = btf__load_vmlinux_btf();
  if (!kernel) throw SystemError(env, "cannot read the kernel's type information /sys/kernel/btf/vmlinux", errno);
  return {kernel, btf__free};
}

const btf_type* Plain(const btf* kernel, uint32_t id) {
  const btf_type* type = btf__type_by_id(kernel, id);
  while (type && (btf_is_mod(type) || btf_is_typedef(type))) type = btf__type_by_id(kernel, type->type);
  return type;
}

// Of the function that calls whoever listens; its first parameter is the listener's own.
const btf_type* ParametersOf(const btf* kernel, const std::string& tracepoint) {
  int id = btf__find_by_name_kind(kernel, ("__traceiter_" + tracepoint).c_str(), BTF_KIND_FUNC);
  const btf_type* function = id > 0 ? btf__type_by_id(kernel, id) : nullptr;
  return function ? btf__type_by_id(kernel, function->type) : nullptr;
}

bool IsNumber(const btf_type* type) { return type && (btf_is_int(type) || btf_is_any_enum(type) || btf_is_ptr(type)); }

struct Member {
  uint32_t offset;
  const btf_type* type;
};

// A member of a struct, or of what stands in it without a name; false where there is none that is a whole number.
bool FindMember(const btf* kernel, const btf_type* type, const std::string& name, uint32_t base, int depth,
                Member* found) {
  if (!type || !btf_is_composite(type) || depth > 8) return false;
  const btf_member* members = btf_members(type);
  for (uint32_t i = 0; i < btf_vlen(type); i++) {
    uint32_t at = base + btf_member_bit_offset(type, i) / 8;
    const btf_type* inner = Plain(kernel, members[i].type);
    std::string own = btf__name_by_offset(kernel, members[i].name_off);
    if (own.empty() && FindMember(kernel, inner, name, at, depth + 1, found)) return true;
    if (own != name) continue;
    *found = {at, inner};
    return IsNumber(inner) && !btf_member_bitfield_size(type, i);
  }
  return false;
}

Napi::Value Describe(Napi::Env env, uint32_t argument, double offset, const btf_type* type) {
  Napi::Object field = Napi::Object::New(env);
  field.Set("argument", argument);
  field.Set("offset", offset);
  field.Set("bytes", btf_is_ptr(type) ? 8 : type->size);
  field.Set("isSigned", btf_is_int(type) ? bool(btf_int_encoding(type) & BTF_INT_SIGNED) : bool(btf_kflag(type)));
  return field;
}

// tracepointField(tracepoint, field): { argument, offset, bytes, isSigned } or undefined
Napi::Value Field(const Napi::CallbackInfo& info) {
  Btf kernel = KernelBtf(info.Env());
  std::string field = info[1].As<Napi::String>();
  size_t dot = field.find('.');
  const btf_type* proto = ParametersOf(kernel.get(), info[0].As<Napi::String>());
  for (uint32_t i = 1; proto && i < btf_vlen(proto); i++) {
    const btf_param& parameter = btf_params(proto)[i];
    if (field.substr(0, dot) != btf__name_by_offset(kernel.get(), parameter.name_off)) continue;
    const btf_type* type = Plain(kernel.get(), parameter.type);
    if (dot == std::string::npos)
      return IsNumber(type) ? Describe(info.Env(), i - 1, -1, type) : info.Env().Undefined();
    Member member;
    const btf_type* target = type && btf_is_ptr(type) ? Plain(kernel.get(), type->type) : nullptr;
    if (!FindMember(kernel.get(), target, field.substr(dot + 1), 0, 0, &member)) return info.Env().Undefined();
    return Describe(info.Env(), i - 1, member.offset, member.type);
  }
  return info.Env().Undefined();
}

// tracepointNames(): of those that the kernel has, but for its modules'.
Napi::Value Names(const Napi::CallbackInfo& info) {
  static const std::string kPrefix = "btf_trace_";
  Btf kernel = KernelBtf(info.Env());
  Napi::Array names = Napi::Array::New(info.Env());
  for (uint32_t id = 1; id < btf__type_cnt(kernel.get()); id++) {
    const btf_type* type = btf__type_by_id(kernel.get(), id);
    std::string name = btf_is_typedef(type) ? btf__name_by_offset(kernel.get(), type->name_off) : "";
    if (name.rfind(kPrefix, 0) == 0) names.Set(names.Length(), name.substr(kPrefix.size()));
  }
  return names;
}

// tracepointFields(tracepoint): names of the arguments
Napi::Value Fields(const Napi::CallbackInfo& info) {
  Btf kernel = KernelBtf(info.Env());
  Napi::Array names = Napi::Array::New(info.Env());
  const btf_type* proto = ParametersOf(kernel.get(), info[0].As<Napi::String>());
  for (uint32_t i = 1; proto && i < btf_vlen(proto); i++)
    names.Set(i - 1, btf__name_by_offset(kernel.get(), btf_params(proto)[i].name_off));
  return names;
}
}  // namespace

void DefineTracepoints(Napi::Env env, Napi::Object exports) {
  exports.Set("tracepointField", Napi::Function::New(env, Field));
  exports.Set("tracepointNames", Napi::Function::New(env, Names));
  exports.Set("tracepointFields", Napi::Function::New(env, Fields));
}

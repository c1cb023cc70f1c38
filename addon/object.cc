// SPDX-License-Identifier: Apache-2.0
#include "object.hh"

#include <signal.h>

#include <cstring>
#include <string>

namespace {
// Enough for the end of a verifier log, where the reason stands.
constexpr size_t kLogLimit = 16 * 1024;
thread_local std::string libbpf_log;

int Print(libbpf_print_level level, const char* format, va_list args) {
  if (level == LIBBPF_DEBUG) return 0;
  char line[4096];
  int n = vsnprintf(line, sizeof(line), format, args);
  if (n > 0) libbpf_log.append(line, std::min<size_t>(n, sizeof(line) - 1));
  if (libbpf_log.size() > kLogLimit) libbpf_log.erase(0, libbpf_log.size() - kLogLimit);
  return n;
}
// The verifier gives up with EAGAIN when a signal waits for the thread (a profiler's timer is enough).
int LoadWithoutSignals(bpf_object* object) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = bpf_object__load(object);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return error;
}
}  // namespace

void CaptureLibbpfLog() { libbpf_set_print(Print); }

std::string TakeLibbpfLog() {
  std::string log;
  log.swap(libbpf_log);
  return log;
}

Napi::Error SystemError(Napi::Env env, const std::string& what, int error) {
  std::string message = what + ": " + strerror(error);
  Napi::Error result = Napi::Error::New(env, message);
  result.Set("errno", Napi::Number::New(env, error));
  result.Set("code", Napi::String::New(env, strerrorname_np(error) ? strerrorname_np(error) : "UNKNOWN"));
  result.Set("log", Napi::String::New(env, TakeLibbpfLog()));
  return result;
}

Napi::Function BpfObject::Define(Napi::Env env) {
  return DefineClass(env, "BpfObject",
                     {InstanceMethod("mapFd", &BpfObject::MapFd), InstanceMethod("programFd", &BpfObject::ProgramFd),
                      InstanceMethod("attachRawTracepoint", &BpfObject::AttachRawTracepoint),
                      InstanceMethod("close", &BpfObject::Close)});
}

// new BpfObject(path, { rodata: Buffer, maxEntries: { map: n }, skip: string[] })
BpfObject::BpfObject(const Napi::CallbackInfo& info) : Napi::ObjectWrap<BpfObject>(info) {
  Napi::Env env = info.Env();
  std::string path = info[0].As<Napi::String>();
  Napi::Object options = info[1].As<Napi::Object>();
  TakeLibbpfLog();
  object_ = bpf_object__open_file(path.c_str(), nullptr);
  if (!object_) throw SystemError(env, "cannot open the BPF object " + path, errno);

  auto rodata = options.Get("rodata").As<Napi::Buffer<uint8_t>>();
  bpf_map* map;
  bpf_object__for_each_map(map, object_) {
    // libbpf names it "<object>.rodata"
    if (strstr(bpf_map__name(map), ".rodata") && bpf_map__value_size(map) == rodata.Length()) {
      int error = bpf_map__set_initial_value(map, rodata.Data(), rodata.Length());
      if (error) throw SystemError(env, "cannot set the BPF configuration", -error);
    }
  }
  Napi::Object sizes = options.Get("maxEntries").As<Napi::Object>();
  Napi::Array names = sizes.GetPropertyNames();
  for (uint32_t i = 0; i < names.Length(); i++) {
    std::string name = names.Get(i).As<Napi::String>();
    bpf_map* sized = bpf_object__find_map_by_name(object_, name.c_str());
    if (!sized) throw Napi::Error::New(env, "the BPF object has no map " + name);
    bpf_map__set_max_entries(sized, sizes.Get(name).As<Napi::Number>().Uint32Value());
  }
  Napi::Array skip = options.Get("skip").As<Napi::Array>();
  for (uint32_t i = 0; i < skip.Length(); i++) {
    std::string name = skip.Get(i).As<Napi::String>();
    bpf_program* program = bpf_object__find_program_by_name(object_, name.c_str());
    if (program) bpf_program__set_autoload(program, false);
  }
  int error = LoadWithoutSignals(object_);
  if (error) {
    Napi::Error failure = SystemError(env, "the kernel refused the BPF programs", -error);
    Release();
    throw failure;
  }
}

BpfObject::~BpfObject() { Release(); }

void BpfObject::Release() {
  for (bpf_link* link : links_) bpf_link__destroy(link);
  links_.clear();
  if (object_) bpf_object__close(object_);
  object_ = nullptr;
}

Napi::Value BpfObject::MapFd(const Napi::CallbackInfo& info) {
  std::string name = info[0].As<Napi::String>();
  int fd = object_ ? bpf_object__find_map_fd_by_name(object_, name.c_str()) : -EBADF;
  if (fd < 0) throw SystemError(info.Env(), "no BPF map " + name, -fd);
  return Napi::Number::New(info.Env(), fd);
}

Napi::Value BpfObject::ProgramFd(const Napi::CallbackInfo& info) {
  std::string name = info[0].As<Napi::String>();
  bpf_program* program = object_ ? bpf_object__find_program_by_name(object_, name.c_str()) : nullptr;
  int fd = program ? bpf_program__fd(program) : -ENOENT;
  if (fd < 0) throw SystemError(info.Env(), "no loaded BPF program " + name, -fd);
  return Napi::Number::New(info.Env(), fd);
}

Napi::Value BpfObject::AttachRawTracepoint(const Napi::CallbackInfo& info) {
  std::string name = info[0].As<Napi::String>();
  std::string tracepoint = info[1].As<Napi::String>();
  bpf_program* program = object_ ? bpf_object__find_program_by_name(object_, name.c_str()) : nullptr;
  if (!program) throw SystemError(info.Env(), "no BPF program " + name, ENOENT);
  bpf_link* link = bpf_program__attach_raw_tracepoint(program, tracepoint.c_str());
  if (!link) throw SystemError(info.Env(), "cannot attach to the raw tracepoint " + tracepoint, errno);
  links_.push_back(link);
  return info.Env().Undefined();
}

Napi::Value BpfObject::Close(const Napi::CallbackInfo& info) {
  Release();
  return info.Env().Undefined();
}

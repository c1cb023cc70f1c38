// SPDX-License-Identifier: Apache-2.0
#include "object.hh"

#include <signal.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "uprobe-multi.hh"
#include "user-reads.hh"

// Since glibc 2.32; the addon of `npm run dist` runs with older ones too. Node's own knows fewer names.
extern "C" __attribute__((weak)) const char* strerrorname_np(int) noexcept;
extern "C" const char* uv_err_name(int);

namespace {
// Enough for the end of a verifier log, where the reason stands.
constexpr size_t kLogLimit = 16 * 1024;
// Two lines of figures a program ("processed N insns (limit 1000000) ..."), and notes on its functions.
constexpr size_t kStatsBytes = 256 * 1024;
constexpr int kLogStats = 4;  // the kernel's BPF_LOG_STATS
constexpr char kRefused[] = "the kernel refused the BPF programs";
thread_local std::string libbpf_log;

int Print(libbpf_print_level level, const char* format, va_list args) {
  if (level == LIBBPF_DEBUG) return 0;
  // A verifier's log is one message of many megabytes.
  va_list again;
  va_copy(again, args);
  int n = vsnprintf(nullptr, 0, format, args);
  std::string text(std::max(n, 0) + 1, '\0');
  vsnprintf(text.data(), text.size(), format, again);
  va_end(again);
  libbpf_log.append(text, 0, text.size() - 1);
  if (libbpf_log.size() > kLogLimit) libbpf_log.erase(0, libbpf_log.size() - kLogLimit);
  return n;
}
// The verifier gives up with EAGAIN when a signal waits for the thread (a profiler's timer is enough).
int LoadWithoutSignals(bpf_object* object) {
  TakeLibbpfLog();
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = bpf_object__load(object);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return error;
}

// The object's own thread loads; nothing else may use the object until the promise is settled.
class Load : public Napi::AsyncWorker {
 public:
  Load(const Napi::CallbackInfo& info, bpf_object* object)
      : AsyncWorker(info.Env()),
        deferred_(Napi::Promise::Deferred::New(info.Env())),
        self_(Napi::Persistent(info.This().As<Napi::Object>())),
        object_(object) {}
  Napi::Promise Promise() const { return deferred_.Promise(); }
  void Execute() override {
    error_ = LoadWithoutSignals(object_);
    log_ = TakeLibbpfLog();
  }
  void OnOK() override {
    if (error_)
      deferred_.Reject(SystemError(Env(), kRefused, -error_, log_).Value());
    else
      deferred_.Resolve(Env().Undefined());
  }

 private:
  Napi::Promise::Deferred deferred_;
  Napi::ObjectReference self_;
  bpf_object* object_;
  int error_ = 0;
  std::string log_;
};
}  // namespace

void CaptureLibbpfLog() { libbpf_set_print(Print); }

const char* ErrorName(int error) {
  const char* name = strerrorname_np ? strerrorname_np(error) : uv_err_name(-error);
  return name ? name : "UNKNOWN";
}

std::string TakeLibbpfLog() {
  std::string log;
  log.swap(libbpf_log);
  return log;
}

Napi::Error SystemError(Napi::Env env, const std::string& what, int error) {
  return SystemError(env, what, error, TakeLibbpfLog());
}

Napi::Error SystemError(Napi::Env env, const std::string& what, int error, const std::string& log) {
  std::string message = what + ": " + strerror(error);
  Napi::Error result = Napi::Error::New(env, message);
  result.Set("errno", Napi::Number::New(env, error));
  result.Set("code", Napi::String::New(env, ErrorName(error)));
  result.Set("log", Napi::String::New(env, log));
  return result;
}

Napi::Function BpfObject::Define(Napi::Env env) {
  return DefineClass(
      env, "BpfObject",
      {InstanceMethod("load", &BpfObject::Load), InstanceMethod("loadSync", &BpfObject::LoadSync),
       InstanceMethod("mapFd", &BpfObject::MapFd), InstanceMethod("programFd", &BpfObject::ProgramFd),
       InstanceMethod("attachRawTracepoint", &BpfObject::AttachRawTracepoint),
       InstanceMethod("attach", &BpfObject::Attach), InstanceMethod("attachUprobe", &BpfObject::AttachUprobe),
       InstanceMethod("attachUprobes", &BpfObject::AttachUprobes), InstanceMethod("detach", &BpfObject::Detach),
       InstanceMethod("askForStats", &BpfObject::AskForStats),
       InstanceMethod("verifierStats", &BpfObject::VerifierStats), InstanceMethod("close", &BpfObject::Close)});
}

// new BpfObject(path, { rodata: Buffer, maxEntries: { map: n }, programs: string[], skipMaps: string[],
//                       share: BpfObject[], uprobeMulti: boolean, kernelReads: boolean, kernelTypes: string }): opened,
// not loaded. Maps that one of `share` has are taken from there; with `uprobeMulti` probes in user code are set by
// attachUprobes(); `kernelReads` is what probeFeatures() says. Types are looked for in the file `kernelTypes` alone,
// not in those of the kernel's modules; '': there, too.
BpfObject::BpfObject(const Napi::CallbackInfo& info) : Napi::ObjectWrap<BpfObject>(info) {
  Napi::Env env = info.Env();
  std::string path = info[0].As<Napi::String>();
  Napi::Object options = info[1].As<Napi::Object>();
  TakeLibbpfLog();
  std::string types = options.Get("kernelTypes").As<Napi::String>();
  LIBBPF_OPTS(bpf_object_open_opts, open);
  if (!types.empty()) open.btf_custom_path = types.c_str();
  if (!options.Get("kernelReads").As<Napi::Boolean>()) KeepUserReads();
  object_ = bpf_object__open_file(path.c_str(), &open);
  if (!object_) throw SystemError(env, "cannot open the BPF object " + path, errno);
  SelectPrograms(Names(options.Get("programs")));
  if (options.Get("uprobeMulti").As<Napi::Boolean>()) UseUprobeMulti();
  for (const std::string& name : Names(options.Get("skipMaps"))) bpf_map__set_autocreate(FindMap(env, name), false);
  Napi::Object sizes = options.Get("maxEntries").As<Napi::Object>();
  for (const std::string& name : Names(sizes.GetPropertyNames()))
    bpf_map__set_max_entries(FindMap(env, name), sizes.Get(name).As<Napi::Number>().Uint32Value());
  SetRodata(env, options.Get("rodata").As<Napi::Buffer<uint8_t>>());
  Napi::Array share = options.Get("share").As<Napi::Array>();
  for (uint32_t i = 0; i < share.Length(); i++) ShareMaps(env, *Unwrap(share.Get(i).As<Napi::Object>()));
}

std::vector<std::string> BpfObject::Names(Napi::Value value) {
  Napi::Array array = value.As<Napi::Array>();
  std::vector<std::string> names;
  for (uint32_t i = 0; i < array.Length(); i++) names.push_back(array.Get(i).As<Napi::String>());
  return names;
}

bpf_map* BpfObject::FindMap(Napi::Env env, const std::string& name) {
  bpf_map* map = bpf_object__find_map_by_name(object_, name.c_str());
  if (!map) throw Napi::Error::New(env, "the BPF object has no map " + name);
  return map;
}

void BpfObject::SelectPrograms(const std::vector<std::string>& wanted) {
  bpf_program* program;
  bpf_object__for_each_program(program, object_) {
    bool is_wanted = std::find(wanted.begin(), wanted.end(), bpf_program__name(program)) != wanted.end();
    bpf_program__set_autoload(program, is_wanted);
  }
}

void BpfObject::UseUprobeMulti() {
  bpf_program* program;
  bpf_object__for_each_program(program, object_) {
    if (bpf_program__type(program) == BPF_PROG_TYPE_KPROBE)
      bpf_program__set_expected_attach_type(program, static_cast<bpf_attach_type>(kTraceUprobeMulti));
  }
}

void BpfObject::SetRodata(Napi::Env env, Napi::Buffer<uint8_t> rodata) {
  bpf_map* map;
  bpf_object__for_each_map(map, object_) {
    // libbpf names it "<object>.rodata"
    if (!strstr(bpf_map__name(map), ".rodata") || bpf_map__value_size(map) != rodata.Length()) continue;
    int error = bpf_map__set_initial_value(map, rodata.Data(), rodata.Length());
    if (error) throw SystemError(env, "cannot set the BPF configuration", -error);
  }
}

void BpfObject::ShareMaps(Napi::Env env, const BpfObject& other) {
  bpf_map* map;
  bpf_object__for_each_map(map, object_) {
    if (bpf_map__is_internal(map)) continue;
    int fd = bpf_object__find_map_fd_by_name(other.object_, bpf_map__name(map));
    if (fd < 0) continue;
    int error = bpf_map__reuse_fd(map, fd);
    if (error) throw SystemError(env, std::string("cannot share the BPF map ") + bpf_map__name(map), -error);
  }
}

// load(): Promise<void>, on the thread pool; rejects with an Error of SystemError()
Napi::Value BpfObject::Load(const Napi::CallbackInfo& info) {
  auto* worker = new ::Load(info, object_);
  worker->Queue();
  return worker->Promise();
}

Napi::Value BpfObject::LoadSync(const Napi::CallbackInfo& info) {
  int error = LoadWithoutSignals(object_);
  if (error) throw SystemError(info.Env(), kRefused, -error);
  return info.Env().Undefined();
}

BpfObject::~BpfObject() { Release(); }

void BpfObject::DestroyLinks() {
  for (bpf_link* link : links_) bpf_link__destroy(link);
  links_.clear();
  CloseUprobeLinks(uprobe_links_);
  uprobe_links_.clear();
}

void BpfObject::Release() {
  DestroyLinks();
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

bpf_program* BpfObject::FindProgram(Napi::Env env, const std::string& name) {
  bpf_program* program = object_ ? bpf_object__find_program_by_name(object_, name.c_str()) : nullptr;
  if (!program) throw SystemError(env, "no BPF program " + name, ENOENT);
  return program;
}

Napi::Value BpfObject::AttachRawTracepoint(const Napi::CallbackInfo& info) {
  std::string name = info[0].As<Napi::String>();
  std::string tracepoint = info[1].As<Napi::String>();
  bpf_program* program = FindProgram(info.Env(), name);
  bpf_link* link = bpf_program__attach_raw_tracepoint(program, tracepoint.c_str());
  if (!link) throw SystemError(info.Env(), "cannot attach to the raw tracepoint " + tracepoint, errno);
  links_.push_back(link);
  return info.Env().Undefined();
}

// attach(program): where its section says
Napi::Value BpfObject::Attach(const Napi::CallbackInfo& info) {
  std::string name = info[0].As<Napi::String>();
  bpf_program* program = FindProgram(info.Env(), name);
  bpf_link* link = bpf_program__attach(program);
  if (!link) throw SystemError(info.Env(), "cannot attach the BPF program " + name, errno);
  links_.push_back(link);
  return info.Env().Undefined();
}

// attachUprobe(program, path, offset, counterOffset, isAtReturn): at an offset of a file, in all processes, or when the
// function there returns; the kernel raises the u16 at counterOffset, if that is not 0, in each process (the semaphore
// of a USDT probe)
Napi::Value BpfObject::AttachUprobe(const Napi::CallbackInfo& info) {
  std::string name = info[0].As<Napi::String>();
  std::string path = info[1].As<Napi::String>();
  bpf_program* program = FindProgram(info.Env(), name);
  LIBBPF_OPTS(bpf_uprobe_opts, options);
  options.ref_ctr_offset = info[3].As<Napi::Number>().Int64Value();
  options.retprobe = info[4].As<Napi::Boolean>().Value();
  bpf_link* link =
      bpf_program__attach_uprobe_opts(program, -1, path.c_str(), info[2].As<Napi::Number>().Int64Value(), &options);
  if (!link) throw SystemError(info.Env(), "cannot set a probe in " + path, errno);
  links_.push_back(link);
  return info.Env().Undefined();
}

// attachUprobes(program, path, offsets: BigUint64Array, counterOffsets: BigUint64Array, isAtReturn): as attachUprobe(),
// at all of them by one link or at none
Napi::Value BpfObject::AttachUprobes(const Napi::CallbackInfo& info) {
  bpf_program* program = FindProgram(info.Env(), info[0].As<Napi::String>());
  std::string path = info[1].As<Napi::String>();
  auto offsets = info[2].As<Napi::BigUint64Array>();
  auto counters = info[3].As<Napi::BigUint64Array>();
  bool is_at_return = info[4].As<Napi::Boolean>();
  int link = OpenUprobeLink(bpf_program__fd(program),
                            {path.c_str(), offsets.Data(), counters.Data(), offsets.ElementLength(), is_at_return});
  if (link < 0) throw SystemError(info.Env(), "cannot set probes in " + path, -link);
  uprobe_links_.push_back(link);
  return info.Env().Undefined();
}

// detach(): from everywhere
Napi::Value BpfObject::Detach(const Napi::CallbackInfo& info) {
  DestroyLinks();
  return info.Env().Undefined();
}

// askForStats(): to be called before loading
Napi::Value BpfObject::AskForStats(const Napi::CallbackInfo& info) {
  bpf_program* program;
  bpf_object__for_each_program(program, object_) {
    if (!bpf_program__autoload(program)) continue;
    std::vector<char>& buffer = stats_[bpf_program__name(program)];
    buffer.assign(kStatsBytes, 0);
    bpf_program__set_log_level(program, kLogStats);
    bpf_program__set_log_buf(program, buffer.data(), buffer.size());
  }
  return info.Env().Undefined();
}

// verifierStats(): { program: text }
Napi::Value BpfObject::VerifierStats(const Napi::CallbackInfo& info) {
  Napi::Object result = Napi::Object::New(info.Env());
  for (const auto& [name, text] : stats_) result.Set(name, std::string(text.data(), strnlen(text.data(), text.size())));
  return result;
}

Napi::Value BpfObject::Close(const Napi::CallbackInfo& info) {
  Release();
  return info.Env().Undefined();
}

// SPDX-License-Identifier: Apache-2.0
// A BPF object: programs, maps and their attachments. All calls on the JavaScript thread; load() works on another one,
// and until its promise is settled the caller makes no other call.
#pragma once
#include <bpf/libbpf.h>
#include <napi.h>

#include <map>
#include <string>
#include <vector>

class BpfObject : public Napi::ObjectWrap<BpfObject> {
 public:
  static Napi::Function Define(Napi::Env env);
  explicit BpfObject(const Napi::CallbackInfo& info);
  ~BpfObject() override;

 private:
  Napi::Value Load(const Napi::CallbackInfo& info);
  Napi::Value LoadSync(const Napi::CallbackInfo& info);
  Napi::Value MapFd(const Napi::CallbackInfo& info);
  Napi::Value ProgramFd(const Napi::CallbackInfo& info);
  Napi::Value AttachRawTracepoint(const Napi::CallbackInfo& info);
  Napi::Value Attach(const Napi::CallbackInfo& info);
  Napi::Value AttachUprobe(const Napi::CallbackInfo& info);
  Napi::Value AttachUprobes(const Napi::CallbackInfo& info);
  Napi::Value Detach(const Napi::CallbackInfo& info);
  Napi::Value AskForStats(const Napi::CallbackInfo& info);
  Napi::Value VerifierStats(const Napi::CallbackInfo& info);
  Napi::Value Close(const Napi::CallbackInfo& info);
  static std::vector<std::string> Names(Napi::Value value);
  bpf_map* FindMap(Napi::Env env, const std::string& name);
  bpf_program* FindProgram(Napi::Env env, const std::string& name);
  void SelectPrograms(const std::vector<std::string>& wanted);
  void UseUprobeMulti();
  void SetRodata(Napi::Env env, Napi::Buffer<uint8_t> rodata);
  void ShareMaps(Napi::Env env, const BpfObject& other);
  void DestroyLinks();
  void Release();

  bpf_object* object_ = nullptr;
  std::vector<bpf_link*> links_;
  std::vector<int> uprobe_links_;
  std::map<std::string, std::vector<char>> stats_;  // by program; the kernel writes them while it loads
};

// The last lines that libbpf printed on this thread (verifier log included); taking them empties the store.
std::string TakeLibbpfLog();
void CaptureLibbpfLog();
// An Error with `errno` set to the number and `code` to its text, e.g. "bpf_object__load: EPERM …".
Napi::Error SystemError(Napi::Env env, const std::string& what, int error);
Napi::Error SystemError(Napi::Env env, const std::string& what, int error, const std::string& log);

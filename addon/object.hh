// SPDX-License-Identifier: Apache-2.0
// A loaded BPF object: programs, maps and their attachments. All calls on the JavaScript thread.
#pragma once
#include <bpf/libbpf.h>
#include <napi.h>

#include <vector>

class BpfObject : public Napi::ObjectWrap<BpfObject> {
 public:
  static Napi::Function Define(Napi::Env env);
  explicit BpfObject(const Napi::CallbackInfo& info);
  ~BpfObject() override;

 private:
  Napi::Value MapFd(const Napi::CallbackInfo& info);
  Napi::Value ProgramFd(const Napi::CallbackInfo& info);
  Napi::Value AttachRawTracepoint(const Napi::CallbackInfo& info);
  Napi::Value Close(const Napi::CallbackInfo& info);
  void Release();

  bpf_object* object_ = nullptr;
  std::vector<bpf_link*> links_;
};

// The last lines that libbpf printed on this thread (verifier log included); taking them empties the store.
std::string TakeLibbpfLog();
void CaptureLibbpfLog();
// An Error with `errno` set to the number and `code` to its text, e.g. "bpf_object__load: EPERM …".
Napi::Error SystemError(Napi::Env env, const std::string& what, int error);

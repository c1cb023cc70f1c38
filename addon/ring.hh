// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <bpf/libbpf.h>
#include <napi.h>

#include <thread>

// The consumer side of a BPF ring buffer. Records are copied out on the JavaScript thread, in batches and only
// when it asks; a thread of its own does nothing but sleep until BPF wakes it and pass that on.
class Ring : public Napi::ObjectWrap<Ring> {
 public:
  static Napi::Function Define(Napi::Env env);
  explicit Ring(const Napi::CallbackInfo& info);
  ~Ring() override;

 private:
  struct Batch {
    uint8_t* data;
    size_t capacity;
    size_t used;
  };
  static int Copy(void* context, void* data, size_t size);
  Napi::Value Drain(const Napi::CallbackInfo& info);
  Napi::Value Close(const Napi::CallbackInfo& info);
  bool Watch(int ring_fd);
  void WaitForWakeups();
  void Stop();

  ring_buffer* ring_ = nullptr;
  Batch batch_ = {};
  int stop_fd_ = -1;  // readable once the thread is to end
  int poll_fd_ = -1;
  std::thread waiter_;
  Napi::ThreadSafeFunction on_wake_;
};

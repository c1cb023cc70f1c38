// SPDX-License-Identifier: Apache-2.0
#include "ring.hh"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstring>

#include "object.hh"

Napi::Function Ring::Define(Napi::Env env) {
  return DefineClass(env, "Ring", {InstanceMethod("drain", &Ring::Drain), InstanceMethod("close", &Ring::Close)});
}

// new Ring(mapFd, onWake)
Ring::Ring(const Napi::CallbackInfo& info) : Napi::ObjectWrap<Ring>(info) {
  int fd = info[0].As<Napi::Number>().Int32Value();
  ring_ = ring_buffer__new(fd, Copy, &batch_, nullptr);
  if (!ring_) throw SystemError(info.Env(), "cannot map the ring buffer", errno);
  // copied by libbpf's callback, which sees this object only through the batch
  batch_ = {nullptr, 0, 0};
  stop_fd_ = eventfd(0, EFD_CLOEXEC);
  // one call may wait: further wake-ups before it ran say nothing new
  on_wake_ = Napi::ThreadSafeFunction::New(info.Env(), info[1].As<Napi::Function>(), "ring", 1, 1);
  on_wake_.Unref(info.Env());
  waiter_ = std::thread(&Ring::WaitForWakeups, this, fd);
}

Ring::~Ring() { Stop(); }

void Ring::WaitForWakeups(int ring_fd) {
  int poll = epoll_create1(EPOLL_CLOEXEC);
  epoll_event event = {};
  event.events = EPOLLIN | EPOLLET;  // edges: data stays in the ring until JavaScript drains it
  event.data.fd = ring_fd;
  epoll_ctl(poll, EPOLL_CTL_ADD, ring_fd, &event);
  event.events = EPOLLIN;
  event.data.fd = stop_fd_;
  epoll_ctl(poll, EPOLL_CTL_ADD, stop_fd_, &event);
  for (;;) {
    epoll_event ready[2];
    int n = epoll_wait(poll, ready, 2, -1);
    if (n < 0 && errno != EINTR) break;
    bool stop = false;
    for (int i = 0; i < n; i++) stop |= ready[i].data.fd == stop_fd_;
    if (stop) break;
    if (n > 0) on_wake_.NonBlockingCall();
  }
  close(poll);
}

// Each record becomes: u32 size, u32 zero, the bytes, padding to 8. A negative return ends the drain after this
// record was taken, so there is always room for the next one.
int Ring::Copy(void* context, void* data, size_t size) {
  auto* batch = static_cast<Batch*>(context);
  size_t padded = (size + 7) & ~size_t{7};
  if (batch->used + 8 + padded > batch->capacity) return -ENOSPC;
  uint32_t header[2] = {static_cast<uint32_t>(size), 0};
  memcpy(batch->data + batch->used, header, 8);
  memcpy(batch->data + batch->used + 8, data, size);
  batch->used += 8 + padded;
  // BPF writes no record larger than its per-CPU scratch memory, 32 KiB
  return batch->used + 32768 > batch->capacity ? -ENOSPC : 0;
}

// drain(buffer): bytes written; call again while it is more than half full
Napi::Value Ring::Drain(const Napi::CallbackInfo& info) {
  auto buffer = info[0].As<Napi::Buffer<uint8_t>>();
  if (!ring_ || buffer.Length() < 65536) return Napi::Number::New(info.Env(), 0);
  batch_ = {buffer.Data(), buffer.Length(), 0};
  int result = ring_buffer__consume(ring_);
  size_t used = batch_.used;
  batch_ = {nullptr, 0, 0};
  if (result < 0 && result != -ENOSPC) throw SystemError(info.Env(), "cannot drain the ring buffer", -result);
  return Napi::Number::New(info.Env(), used);
}

void Ring::Stop() {
  if (!ring_) return;
  uint64_t one = 1;
  if (write(stop_fd_, &one, sizeof(one)) == sizeof(one)) waiter_.join();
  on_wake_.Release();
  close(stop_fd_);
  ring_buffer__free(ring_);
  ring_ = nullptr;
}

Napi::Value Ring::Close(const Napi::CallbackInfo& info) {
  Stop();
  return info.Env().Undefined();
}

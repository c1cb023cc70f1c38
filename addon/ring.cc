// SPDX-License-Identifier: Apache-2.0
#include "ring.hh"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstring>
#include <system_error>

#include "object.hh"

Napi::Function Ring::Define(Napi::Env env) {
  return DefineClass(env, "Ring", {InstanceMethod("drain", &Ring::Drain), InstanceMethod("close", &Ring::Close)});
}

// new Ring(mapFd, onWake)
Ring::Ring(const Napi::CallbackInfo& info) : Napi::ObjectWrap<Ring>(info) {
  Napi::Env env = info.Env();
  int fd = info[0].As<Napi::Number>().Int32Value();
  try {
    ring_ = ring_buffer__new(fd, Copy, &batch_, nullptr);
    if (!ring_) throw SystemError(env, "cannot map the ring buffer", errno);
    if (!Watch(fd)) throw SystemError(env, "cannot wait for the ring buffer", errno);
    // one call may wait: further wake-ups before it ran say nothing new
    on_wake_ = Napi::ThreadSafeFunction::New(env, info[1].As<Napi::Function>(), "ring", 1, 1);
    on_wake_.Unref(env);
    waiter_ = std::thread(&Ring::WaitForWakeups, this);
  } catch (const std::system_error& error) {
    Stop();
    throw SystemError(env, "cannot start a thread for the ring buffer", error.code().value());
  } catch (...) {
    // no destructor runs for what was not constructed
    Stop();
    throw;
  }
}

Ring::~Ring() { Stop(); }

// False with errno where a descriptor is missing.
bool Ring::Watch(int ring_fd) {
  stop_fd_ = eventfd(0, EFD_CLOEXEC);
  poll_fd_ = stop_fd_ < 0 ? -1 : epoll_create1(EPOLL_CLOEXEC);
  if (poll_fd_ < 0) return false;
  epoll_event event = {};
  event.events = EPOLLIN | EPOLLET;  // edges: data stays in the ring until JavaScript drains it
  event.data.fd = ring_fd;
  if (epoll_ctl(poll_fd_, EPOLL_CTL_ADD, ring_fd, &event)) return false;
  event.events = EPOLLIN;
  event.data.fd = stop_fd_;
  return epoll_ctl(poll_fd_, EPOLL_CTL_ADD, stop_fd_, &event) == 0;
}

void Ring::WaitForWakeups() {
  for (;;) {
    epoll_event ready[2];
    int n = epoll_wait(poll_fd_, ready, 2, -1);
    if (n < 0 && errno != EINTR) break;
    bool stop = false;
    for (int i = 0; i < n; i++) stop |= ready[i].data.fd == stop_fd_;
    if (stop) break;
    if (n > 0) on_wake_.NonBlockingCall();
  }
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
  if (waiter_.joinable()) {
    // an eventfd takes it unless its counter is full
    eventfd_write(stop_fd_, 1);
    waiter_.join();
  }
  if (static_cast<napi_threadsafe_function>(on_wake_)) on_wake_.Release();
  on_wake_ = Napi::ThreadSafeFunction();
  for (int* fd : {&stop_fd_, &poll_fd_}) {
    if (*fd >= 0) close(*fd);
    *fd = -1;
  }
  ring_buffer__free(ring_);
  ring_ = nullptr;
}

Napi::Value Ring::Close(const Napi::CallbackInfo& info) {
  Stop();
  return info.Env().Undefined();
}

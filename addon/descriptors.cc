// SPDX-License-Identifier: Apache-2.0
// Descriptors that go to another process, and come from it. All calls on the JavaScript thread.
#include <fcntl.h>
#include <napi.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "descriptor-message.hh"
#include "maps.hh"
#include "object.hh"

namespace {
// The kernel's SCM_MAX_FD is 253.
constexpr size_t kMaxAtOnce = 200;

// One byte, so that there is a message. Returns the error number.
int Send(int socket, const int* fds, size_t count) {
  char byte = 0;
  iovec part = {&byte, 1};
  std::vector<char> control(CMSG_SPACE(count * sizeof(int)));
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(count * sizeof(int));
  memcpy(CMSG_DATA(header), fds, count * sizeof(int));
  return sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? errno : 0;
}

// Puts what came with one message behind `fds`; -1 where there is no message.
ssize_t Receive(int socket, char* bytes, size_t size, std::vector<int>* fds) {
  iovec part = {bytes, size};
  std::vector<char> control(CMSG_SPACE(kMaxAtOnce * sizeof(int)));
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t count;
  do count = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  while (count < 0 && errno == EINTR);
  if (count < 0) return -1;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    size_t bytes_of_fds = header->cmsg_len - CMSG_LEN(0);
    size_t before = fds->size();
    fds->resize(before + bytes_of_fds / sizeof(int));
    memcpy(fds->data() + before, CMSG_DATA(header), bytes_of_fds);
  }
  return count;
}

// socketPair(): two connected sockets, which keep messages apart
Napi::Value SocketPair(const Napi::CallbackInfo& info) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
    throw SystemError(info.Env(), "cannot make sockets", errno);
  Napi::Array pair = Napi::Array::New(info.Env(), 2);
  pair[0u] = Napi::Number::New(info.Env(), ends[0]);
  pair[1u] = Napi::Number::New(info.Env(), ends[1]);
  return pair;
}

// sendDescriptors(socket, fds): never waits
void SendDescriptors(const Napi::CallbackInfo& info) {
  int socket = info[0].As<Napi::Number>().Int32Value();
  Napi::Array list = info[1].As<Napi::Array>();
  std::vector<int> fds(list.Length());
  for (uint32_t i = 0; i < fds.size(); i++) fds[i] = list.Get(i).As<Napi::Number>().Int32Value();
  for (size_t at = 0; at < fds.size(); at += kMaxAtOnce) {
    int error = Send(socket, fds.data() + at, std::min(kMaxAtOnce, fds.size() - at));
    if (error) throw SystemError(info.Env(), "cannot pass descriptors on", error);
  }
}

// receiveDescriptors(socket, count): waits for them
Napi::Value ReceiveDescriptors(const Napi::CallbackInfo& info) {
  int socket = info[0].As<Napi::Number>().Int32Value();
  size_t count = info[1].As<Napi::Number>().Uint32Value();
  std::vector<int> fds;
  char byte;
  while (fds.size() < count)
    if (Receive(socket, &byte, 1, &fds) <= 0) throw SystemError(info.Env(), "no descriptors have come", errno);
  Napi::Array list = Napi::Array::New(info.Env(), fds.size());
  for (uint32_t i = 0; i < fds.size(); i++) list[i] = Napi::Number::New(info.Env(), fds[i]);
  return list;
}

// ask(socket, request, fd, answer): sends the request, with the descriptor unless it is negative, and waits for the
// answer, which is put into a buffer. The descriptor that came with it, or -1.
Napi::Value AskOver(const Napi::CallbackInfo& info) {
  int socket = info[0].As<Napi::Number>().Int32Value();
  auto request = info[1].As<Napi::Buffer<char>>();
  int fd = info[2].As<Napi::Number>().Int32Value();
  auto answer = info[3].As<Napi::Buffer<char>>();
  iovec part = {answer.Data(), answer.Length()};
  int came;
  if (SendWithDescriptor(socket, request.Data(), request.Length(), fd) < 0 ||
      ReceiveWithDescriptor(socket, &part, 1, &came) != static_cast<ssize_t>(answer.Length()))
    throw SystemError(info.Env(), "no answer has come", errno);
  return Napi::Number::New(info.Env(), came);
}

// duplicate(fd): another descriptor of the same open file
Napi::Value Duplicate(const Napi::CallbackInfo& info) {
  int fd = fcntl(info[0].As<Napi::Number>().Int32Value(), F_DUPFD_CLOEXEC, 0);
  if (fd < 0) throw SystemError(info.Env(), "cannot duplicate a descriptor", errno);
  return Napi::Number::New(info.Env(), fd);
}
}  // namespace

void DefineDescriptors(Napi::Env env, Napi::Object exports) {
  exports.Set("socketPair", Napi::Function::New(env, SocketPair));
  exports.Set("sendDescriptors", Napi::Function::New(env, SendDescriptors));
  exports.Set("receiveDescriptors", Napi::Function::New(env, ReceiveDescriptors));
  exports.Set("ask", Napi::Function::New(env, AskOver));
  exports.Set("duplicate", Napi::Function::New(env, Duplicate));
}

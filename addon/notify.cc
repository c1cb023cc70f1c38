// SPDX-License-Identifier: Apache-2.0
// The one thing that Node has no words for when it speaks to a service manager: a datagram to a Unix socket.
#include <napi.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>

#include "maps.hh"

// sendDatagram(path: string, text: string): number, 0 or a negative errno; a path that begins with "@" is an abstract
// name
static Napi::Value SendDatagram(const Napi::CallbackInfo& info) {
  auto answer = [&](int error) { return Napi::Number::New(info.Env(), -error); };
  std::string path = info[0].As<Napi::String>(), text = info[1].As<Napi::String>();
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) return answer(ENAMETOOLONG);
  memcpy(address.sun_path, path.data(), path.size());
  if (path[0] == '@') address.sun_path[0] = 0;
  int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return answer(errno);
  socklen_t length = offsetof(sockaddr_un, sun_path) + path.size();
  ssize_t sent = sendto(fd, text.data(), text.size(), MSG_NOSIGNAL, reinterpret_cast<sockaddr*>(&address), length);
  int error = sent < 0 ? errno : 0;
  close(fd);
  return answer(error);
}

void DefineNotify(Napi::Env env, Napi::Object exports) {
  exports.Set("sendDatagram", Napi::Function::New(env, SendDatagram));
}

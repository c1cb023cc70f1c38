// SPDX-License-Identifier: Apache-2.0
// Paths that other programs name, looked up without leaving a directory tree.
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "maps.hh"

namespace {
// While names are moved or mounted meanwhile the kernel can't tell whether ".." leads outside, and says EAGAIN.
constexpr int kAttempts = 16;

// openInRoot(rootFd, path): descriptor that can be asked what it is and no more (O_PATH), or -errno.
// "/", ".." and symbolic links stay below rootFd; those of /proc that lead anywhere are not followed.
Napi::Value OpenInRoot(const Napi::CallbackInfo& info) {
  int root = info[0].As<Napi::Number>().Int32Value();
  std::string path = info[1].As<Napi::String>().Utf8Value();
  open_how how = {};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  int fd = -1;
  errno = EAGAIN;
  for (int i = 0; fd < 0 && errno == EAGAIN && i < kAttempts; i++)
    fd = syscall(SYS_openat2, root, path.c_str(), &how, sizeof(how));
  return Napi::Number::New(info.Env(), fd < 0 ? -errno : fd);
}
}  // namespace

void DefineFiles(Napi::Env env, Napi::Object exports) {
  exports.Set("openInRoot", Napi::Function::New(env, OpenInRoot));
}

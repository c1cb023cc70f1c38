// SPDX-License-Identifier: Apache-2.0
// Paths that other programs name, looked up without leaving a directory tree.
#include <bpf/bpf.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "maps.hh"
#include "object.hh"

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

// One page of the file is enough for the kernel to say which file it is; nothing of it is read.
size_t PageBytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

// mapFile(fd): address of its first page, which stays mapped until unmapFile(address)
Napi::Value MapFile(const Napi::CallbackInfo& info) {
  int fd = info[0].As<Napi::Number>().Int32Value();
  void* address = mmap(nullptr, PageBytes(), PROT_READ, MAP_PRIVATE, fd, 0);
  if (address == MAP_FAILED) throw SystemError(info.Env(), "cannot map a file", errno);
  return Napi::BigInt::New(info.Env(), reinterpret_cast<uint64_t>(address));
}

Napi::Value UnmapFile(const Napi::CallbackInfo& info) {
  bool lossless;
  uint64_t address = info[0].As<Napi::BigInt>().Uint64Value(&lossless);
  munmap(reinterpret_cast<void*>(address), PageBytes());
  return info.Env().Undefined();
}

// runProgram(programFd, argument): runs a raw tracepoint's program once, in this thread
Napi::Value RunProgram(const Napi::CallbackInfo& info) {
  bool lossless;
  uint64_t argument = info[1].As<Napi::BigInt>().Uint64Value(&lossless);
  LIBBPF_OPTS(bpf_test_run_opts, options, .ctx_in = &argument, .ctx_size_in = sizeof(argument));
  if (bpf_prog_test_run_opts(info[0].As<Napi::Number>().Int32Value(), &options))
    throw SystemError(info.Env(), "cannot run a BPF program", errno);
  return info.Env().Undefined();
}
}  // namespace

void DefineFiles(Napi::Env env, Napi::Object exports) {
  exports.Set("mapFile", Napi::Function::New(env, MapFile));
  exports.Set("unmapFile", Napi::Function::New(env, UnmapFile));
  exports.Set("runProgram", Napi::Function::New(env, RunProgram));
  exports.Set("openInRoot", Napi::Function::New(env, OpenInRoot));
}

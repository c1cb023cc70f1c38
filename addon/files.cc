// SPDX-License-Identifier: Apache-2.0
// Paths that other programs name, looked up without leaving a directory tree.
#include <bpf/bpf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "maps.hh"
#include "mount-identity.hh"
#include "object.hh"
#include "open-below.hh"

namespace {
// openInRoot(rootFd, path): descriptor that can be asked what it is and no more (O_PATH), or -errno.
Napi::Value OpenInRootOf(const Napi::CallbackInfo& info) {
  std::string path = info[1].As<Napi::String>().Utf8Value();
  return Napi::Number::New(info.Env(), OpenInRoot(info[0].As<Napi::Number>().Int32Value(), path.c_str()));
}

// openBelow(rootFd, path, { uid, gid, mode, reader, readerGroup }): the same, led by nobody but these
Napi::Value OpenBelowFor(const Napi::CallbackInfo& info) {
  std::string path = info[1].As<Napi::String>().Utf8Value();
  Napi::Object of = info[2].As<Napi::Object>();
  auto number = [&](const char* name) { return of.Get(name).ToNumber().Uint32Value(); };
  Owner owner = {.uid = number("uid"),
                 .gid = number("gid"),
                 .mode = number("mode"),
                 .reader = number("reader"),
                 .reader_group = number("readerGroup")};
  return Napi::Number::New(info.Env(), OpenBelow(info[0].As<Napi::Number>().Int32Value(), path.c_str(), owner));
}

// rootIdentity(path): see MountIdentity; undefined where there is none
Napi::Value RootIdentity(const Napi::CallbackInfo& info) {
  std::string identity = MountIdentity(info[0].As<Napi::String>().Utf8Value().c_str());
  return identity.empty() ? info.Env().Undefined() : Napi::String::New(info.Env(), identity);
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

// runIterator(programFd): runs an iterator's program over all that it iterates, in this thread
Napi::Value RunIterator(const Napi::CallbackInfo& info) {
  constexpr char kFailed[] = "cannot run a BPF iterator";
  int link = bpf_link_create(info[0].As<Napi::Number>().Int32Value(), 0, BPF_TRACE_ITER, nullptr);
  if (link < 0) throw SystemError(info.Env(), kFailed, -link);
  int iterator = bpf_iter_create(link);
  close(link);
  if (iterator < 0) throw SystemError(info.Env(), kFailed, -iterator);
  // it writes nothing: each read goes through as many as the kernel likes to do at once
  char byte;
  ssize_t count;
  do count = read(iterator, &byte, 1);
  while (count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR)));
  int error = count < 0 ? errno : 0;
  close(iterator);
  if (error) throw SystemError(info.Env(), kFailed, error);
  return info.Env().Undefined();
}
}  // namespace

void DefineFiles(Napi::Env env, Napi::Object exports) {
  exports.Set("mapFile", Napi::Function::New(env, MapFile));
  exports.Set("unmapFile", Napi::Function::New(env, UnmapFile));
  exports.Set("runProgram", Napi::Function::New(env, RunProgram));
  exports.Set("runIterator", Napi::Function::New(env, RunIterator));
  exports.Set("openInRoot", Napi::Function::New(env, OpenInRootOf));
  exports.Set("openBelow", Napi::Function::New(env, OpenBelowFor));
  exports.Set("rootIdentity", Napi::Function::New(env, RootIdentity));
}

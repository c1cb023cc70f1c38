// SPDX-License-Identifier: Apache-2.0
// The agent's side of its reader (reader/reader.cc): each read has a deadline, and who misses it is killed.
#include <fcntl.h>
#include <napi.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "reader/protocol.hh"
#include "object.hh"

extern char** environ;

namespace {
using Clock = std::chrono::steady_clock;

// How long the kernel may take for a page that comes from a disk.
constexpr int kDeadlineMs = 50;
// And for a file, through its directories.
constexpr int kOpenDeadlineMs = 1000;
// Of a reader that only waits for a CPU.
constexpr int kBusyDeadlineMs = 1000;
// Killed ones that the kernel does not let go yet.
constexpr size_t kMaxStuck = 16;

int MillisSince(Clock::time_point start) {
  return static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start).count());
}

// Does it wait for nothing but a CPU?
bool IsRunnable(pid_t pid) {
  char path[64], text[512];
  snprintf(path, sizeof(path), "/proc/%d/stat", pid);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  ssize_t count = read(fd, text, sizeof(text) - 1);
  close(fd);
  if (count <= 0) return false;
  text[count] = 0;
  const char* end = strrchr(text, ')');
  return end && end[1] == ' ' && end[2] == 'R';
}

// A reader that is started when it is needed, and again after it was killed. Used by one thread at a time.
class ReaderProcess {
 public:
  ReaderProcess(std::string executable, std::string proc, int deadline_ms)
      : executable_(std::move(executable)), proc_(std::move(proc)), deadline_ms_(deadline_ms) {}
  ReaderProcess(const ReaderProcess&) = delete;
  ~ReaderProcess() { Stop(); }

  // Bytes of the answer, or -errno. `opened`: the descriptor that came with it, else left as it is.
  int Ask(const ReaderRequest& request, size_t request_bytes, uint8_t* into, int* opened = nullptr) {
    if (int error = Start()) return error;
    if (send(socket_, &request, request_bytes, MSG_NOSIGNAL) < 0) {
      Kill();
      return -EPIPE;
    }
    if (int error = Wait()) return error;
    uint8_t head[kAnswerHead];
    iovec parts[] = {{head, sizeof(head)}, {into, request.length}};
    msghdr message = {};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    if (recvmsg(socket_, &message, MSG_CMSG_CLOEXEC) < static_cast<ssize_t>(sizeof(head))) {
      Kill();
      return -EPIPE;
    }
    const cmsghdr* rights = CMSG_FIRSTHDR(&message);
    if (opened && rights && rights->cmsg_type == SCM_RIGHTS) memcpy(opened, CMSG_DATA(rights), sizeof(int));
    int32_t result;
    memcpy(&result, head, sizeof(result));
    return std::min<int32_t>(result, request.length);
  }

  size_t CountStuck() {
    Reap();
    return stuck_.size();
  }

  void Stop() {
    if (socket_ >= 0) Kill();
    Reap();
  }

 private:
  // Until the answer is there.
  int Wait() {
    Clock::time_point start = Clock::now();
    while (true) {
      pollfd answer = {.fd = socket_, .events = POLLIN, .revents = 0};
      if (poll(&answer, 1, deadline_ms_) > 0) return 0;
      int waited = MillisSince(start);
      if (waited < deadline_ms_) continue;
      bool is_busy = IsRunnable(pid_) && waited < kBusyDeadlineMs + deadline_ms_;
      // it may have answered just now
      if (is_busy || poll(&answer, 1, 0) > 0) continue;
      Kill();
      return -ETIMEDOUT;
    }
  }

  int Start() {
    if (socket_ >= 0) return 0;
    Reap();
    if (stuck_.size() >= kMaxStuck) return -EAGAIN;
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends)) return -EPIPE;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    // no duplicate of itself: that would keep its flag to be closed
    int theirs = ends[1] == kReaderSocket ? dup(ends[1]) : ends[1];
    posix_spawn_file_actions_adddup2(&actions, theirs, kReaderSocket);
    char* arguments[] = {const_cast<char*>("everyframe-reader"), proc_.data(), nullptr};
    char* environment[] = {nullptr};
    int error = posix_spawn(&pid_, executable_.c_str(), &actions, nullptr, arguments, environment);
    posix_spawn_file_actions_destroy(&actions);
    if (theirs != ends[1]) close(theirs);
    close(ends[1]);
    if (error) {
      close(ends[0]);
      return -EPIPE;
    }
    socket_ = ends[0];
    return 0;
  }

  void Kill() {
    close(socket_);
    socket_ = -1;
    kill(pid_, SIGKILL);
    stuck_.push_back(pid_);
  }

  void Reap() {
    std::erase_if(stuck_, [](pid_t pid) { return waitpid(pid, nullptr, WNOHANG) != 0; });
  }

  const std::string executable_;
  std::string proc_;
  const int deadline_ms_;
  int socket_ = -1;
  pid_t pid_ = 0;
  std::vector<pid_t> stuck_;
};

// Used by one thread.
class Reader : public Napi::ObjectWrap<Reader> {
 public:
  explicit Reader(const Napi::CallbackInfo& info)
      : Napi::ObjectWrap<Reader>(info),
        process_(info[0].As<Napi::String>().Utf8Value(), info[1].As<Napi::String>().Utf8Value(), kDeadlineMs) {}

  static Napi::Function Define(Napi::Env env) {
    return DefineClass(
        env, "Reader",
        {InstanceMethod("readMemory", &Reader::ReadMemory), InstanceMethod("readFile", &Reader::ReadFile),
         InstanceMethod("stuck", &Reader::CountStuck), InstanceMethod("close", &Reader::Close)});
  }

 private:
  // readMemory(pid, address, session, buffer): bytes, or -errno; -ETIMEDOUT where it takes too long, -EAGAIN where too
  // many readers are stuck, -EPIPE where there is none
  Napi::Value ReadMemory(const Napi::CallbackInfo& info) {
    auto buffer = info[3].As<Napi::Uint8Array>();
    ReaderRequest request = {.kind = ReaderKind::kMemory,
                             .pid = info[0].As<Napi::Number>().Int32Value(),
                             .address = static_cast<uint64_t>(info[1].As<Napi::Number>().Int64Value()),
                             .length = static_cast<uint32_t>(std::min<size_t>(buffer.ByteLength(), kMaxRead)),
                             .session = info[2].As<Napi::Number>().Uint32Value(),
                             .name = {}};
    return Napi::Number::New(info.Env(), process_.Ask(request, kRequestHead, buffer.Data()));
  }

  // readFile(pid, name, maxBytes): a file of the process's folder, or -errno
  Napi::Value ReadFile(const Napi::CallbackInfo& info) {
    std::string name = info[1].As<Napi::String>().Utf8Value();
    size_t max = info[2].As<Napi::Number>().Uint32Value();
    ReaderRequest request = {.kind = ReaderKind::kFile,
                             .pid = info[0].As<Napi::Number>().Int32Value(),
                             .address = 0,
                             .length = kMaxRead,
                             .session = --file_session_,
                             .name = {}};
    if (name.size() >= sizeof(request.name) || name.find('/') != std::string::npos)
      return Napi::Number::New(info.Env(), -EINVAL);
    memcpy(request.name, name.data(), name.size());
    std::vector<uint8_t> bytes;
    while (bytes.size() < max) {
      size_t at = bytes.size();
      bytes.resize(at + kMaxRead);
      int count = process_.Ask(request, kRequestHead + name.size() + 1, bytes.data() + at);
      bytes.resize(at + std::max(count, 0));
      if (count < 0) return Napi::Number::New(info.Env(), count);
      if (count == 0) break;
    }
    return Napi::Buffer<uint8_t>::Copy(info.Env(), bytes.data(), std::min(bytes.size(), max));
  }

  Napi::Value CountStuck(const Napi::CallbackInfo& info) {
    return Napi::Number::New(info.Env(), static_cast<double>(process_.CountStuck()));
  }

  void Close(const Napi::CallbackInfo&) { process_.Stop(); }

  ReaderProcess process_;
  uint32_t file_session_ = 0;
};
// Two at a time, so that one that hangs holds up nobody for long.
struct Opener {
  std::mutex mutex;
  std::unique_ptr<ReaderProcess> process;
};
Opener openers[2];
std::atomic<unsigned> next_opener;

class LookAtFile : public Napi::AsyncWorker {
 public:
  LookAtFile(Napi::Env env, std::string executable, std::string path, ReaderKind kind)
      : Napi::AsyncWorker(env),
        deferred_(Napi::Promise::Deferred::New(env)),
        executable_(std::move(executable)),
        path_(std::move(path)),
        kind_(kind) {}
  Napi::Promise Promise() const { return deferred_.Promise(); }

 protected:
  void Execute() override {
    if (path_.size() >= sizeof(ReaderRequest::name)) {
      result_ = -ENAMETOOLONG;
      return;
    }
    ReaderRequest request = {.kind = kind_, .pid = 0, .address = 0, .length = sizeof(file_), .session = 0, .name = {}};
    memcpy(request.name, path_.data(), path_.size());
    Opener& opener = openers[next_opener++ % 2];
    std::lock_guard lock(opener.mutex);
    if (!opener.process) opener.process = std::make_unique<ReaderProcess>(executable_, "/proc", kOpenDeadlineMs);
    result_ = opener.process->Ask(request, kRequestHead + path_.size() + 1, reinterpret_cast<uint8_t*>(&file_), &fd_);
  }

  void OnOK() override {
    if (result_ < 0) {
      deferred_.Resolve(Napi::Number::New(Env(), result_));
      return;
    }
    Napi::Object found = Napi::Object::New(Env());
    found.Set("fd", fd_);
    found.Set("mode", file_.mode);
    found.Set("dev", Napi::BigInt::New(Env(), file_.device));
    found.Set("ino", Napi::BigInt::New(Env(), file_.inode));
    found.Set("size", Napi::BigInt::New(Env(), file_.size));
    found.Set("ctimeNs", Napi::BigInt::New(Env(), file_.ctime_ns));
    deferred_.Resolve(found);
  }

 private:
  Napi::Promise::Deferred deferred_;
  const std::string executable_;
  const std::string path_;
  const ReaderKind kind_;
  ReaderFile file_ = {};
  int result_ = 0;
  int fd_ = -1;
};

// lookAtFile(executable, path, open): a promise of what is there, opened for reading if it is a regular file, or -errno
Napi::Value LookAt(const Napi::CallbackInfo& info) {
  ReaderKind kind = info[2].As<Napi::Boolean>().Value() ? ReaderKind::kOpen : ReaderKind::kStat;
  auto* worker =
      new LookAtFile(info.Env(), info[0].As<Napi::String>().Utf8Value(), info[1].As<Napi::String>().Utf8Value(), kind);
  worker->Queue();
  return worker->Promise();
}
}  // namespace

void DefineReader(Napi::Env env, Napi::Object exports) {
  exports.Set("Reader", Reader::Define(env));
  exports.Set("lookAtFile", Napi::Function::New(env, LookAt));
}

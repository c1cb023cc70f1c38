// SPDX-License-Identifier: Apache-2.0
// The agent's side of its reader (reader/reader.cc): each read has a deadline, and who misses it is killed.
#include <fcntl.h>
#include <napi.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
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

#include "descriptor-message.hh"
#include "object.hh"
#include "reader/protocol.hh"

extern char** environ;

namespace {
using Clock = std::chrono::steady_clock;

// How long the kernel may take for a page that comes from a disk.
constexpr int kDeadlineMs = 50;
// And for a file, through its directories.
constexpr int kOpenDeadlineMs = 1000;
// Of a reader that only waits for a CPU.
constexpr int kBusyDeadlineMs = 1000;
// Killed ones that the kernel does not let go yet: in all, and for the sake of one owner, who must not end reading for
// others. What root's processes have mapped may be anybody's.
constexpr size_t kMaxStuck = 32;
constexpr size_t kMaxStuckOfOwner = 2;
constexpr size_t kMaxStuckOfRoot = 8;
// Each user of the host has so many subordinate ones from there on (useradd(8)); namespaces give them away freely.
constexpr int64_t kFirstSubordinate = 100000;
constexpr int64_t kSubordinates = 65536;
// Of files whose process is gone: the device, above all users.
constexpr int64_t kDeviceOwner = 1ll << 32;

// Who pays for a reader that hangs: the user of a process, else whoever has mounted what the file lies on.
int64_t OwnerOf(const std::string& proc, pid_t pid, uint32_t device) {
  struct stat stats;
  if (pid <= 0 || stat((proc + '/' + std::to_string(pid)).c_str(), &stats) || stats.st_uid == 0)
    return device ? kDeviceOwner + device : 0;
  int64_t uid = stats.st_uid;
  return uid < kFirstSubordinate ? uid : uid - (uid - kFirstSubordinate) % kSubordinates;
}

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

  // Bytes of the answer, or -errno: -ETIMEDOUT where it takes too long, -EAGAIN where too many readers are stuck in
  // all, -EBUSY where those of this owner are, -EPIPE where there is none. `opened`: the descriptor that came with it,
  // else left as it is. `given`: goes with the request. `mask`: the answer's.
  int Ask(const ReaderRequest& request, size_t request_bytes, uint8_t* into, uint32_t device = 0, int given = -1,
          int* opened = nullptr, uint32_t* mask = nullptr) {
    Reap();
    // the usual case costs nothing
    if (!stuck_.empty() && IsStuckFor(OwnerOf(proc_, request.pid, device))) return -EBUSY;
    if (int error = Start()) return error;
    if (SendWithDescriptor(socket_, &request, request_bytes, given) < 0) {
      Kill(0);
      return -EPIPE;
    }
    uint8_t head[kAnswerHead];
    iovec parts[] = {{head, sizeof(head)}, {into, request.length}};
    int came;
    ssize_t count = Receive(parts, 2, &came);
    if (count < 0 && errno == EAGAIN) {
      Kill(OwnerOf(proc_, request.pid, device));
      return -ETIMEDOUT;
    }
    if (count < static_cast<ssize_t>(sizeof(head))) {
      Kill(0);
      return -EPIPE;
    }
    if (opened && came >= 0)
      *opened = came;
    else if (came >= 0)
      close(came);
    int32_t result;
    memcpy(&result, head, sizeof(result));
    if (mask) memcpy(mask, head + sizeof(result), sizeof(*mask));
    return std::min<int32_t>(result, request.length);
  }

  // 0 where none was started, or it was killed.
  pid_t Pid() const { return socket_ >= 0 ? pid_ : 0; }

  size_t CountStuck() {
    Reap();
    return stuck_.size();
  }

  void Stop() {
    if (socket_ >= 0) Kill(0);
    Reap();
  }

 private:
  bool IsStuckFor(int64_t owner) const {
    size_t count = std::count_if(stuck_.begin(), stuck_.end(), [&](const Stuck& one) { return one.owner == owner; });
    return count >= (owner == 0 ? kMaxStuckOfRoot : kMaxStuckOfOwner);
  }

  // Waits for the answer; -1 and EAGAIN where it takes too long.
  ssize_t Receive(iovec* parts, size_t part_count, int* came) {
    Clock::time_point start = Clock::now();
    while (true) {
      ssize_t count = ReceiveWithDescriptor(socket_, parts, part_count, came);
      if (count >= 0 || errno != EAGAIN) return count;
      int waited = MillisSince(start);
      if (waited < deadline_ms_ || (IsRunnable(pid_) && waited < kBusyDeadlineMs + deadline_ms_)) continue;
      // it may have answered just now
      return ReceiveWithDescriptor(socket_, parts, part_count, came, MSG_DONTWAIT);
    }
  }

  int Start() {
    if (socket_ >= 0) return 0;
    if (stuck_.size() >= kMaxStuck) return -EAGAIN;
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends)) return -EPIPE;
    // waiting costs no call of its own
    timeval deadline = {.tv_sec = deadline_ms_ / 1000, .tv_usec = deadline_ms_ % 1000 * 1000};
    setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof(deadline));
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    // no duplicate of itself: that would keep its flag to be closed
    int theirs = ends[1] == kReaderSocket ? dup(ends[1]) : ends[1];
    posix_spawn_file_actions_adddup2(&actions, theirs, kReaderSocket);
    char* arguments[] = {const_cast<char*>("everyframe-reader"), proc_.data(), nullptr};
    char* environment[] = {nullptr};
    // Ctrl-C is for the agent, which still reads while it ends
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    int error = posix_spawn(&pid_, executable_.c_str(), &actions, &attributes, arguments, environment);
    posix_spawnattr_destroy(&attributes);
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

  void Kill(int64_t owner) {
    close(socket_);
    socket_ = -1;
    kill(pid_, SIGKILL);
    stuck_.push_back({pid_, owner});
  }

  void Reap() {
    if (stuck_.empty()) return;
    std::erase_if(stuck_, [](const Stuck& one) { return waitpid(one.pid, nullptr, WNOHANG) != 0; });
  }

  struct Stuck {
    pid_t pid;
    int64_t owner;
  };

  const std::string executable_;
  std::string proc_;
  const int deadline_ms_;
  int socket_ = -1;
  pid_t pid_ = 0;
  std::vector<Stuck> stuck_;
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
        {InstanceMethod("readMemory", &Reader::ReadMemory), InstanceMethod("readPages", &Reader::ReadPages),
         InstanceMethod("readFile", &Reader::ReadFile), InstanceMethod("stuck", &Reader::CountStuck),
         InstanceMethod("pid", &Reader::Pid), InstanceMethod("close", &Reader::Close)});
  }

 private:
  // readMemory(pid, address, session, buffer): bytes, or -errno
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

  // readPages(pid, addresses, session, buffer): one bit for each page that was read, or -errno
  Napi::Value ReadPages(const Napi::CallbackInfo& info) {
    auto addresses = info[1].As<Napi::Float64Array>();
    auto buffer = info[3].As<Napi::Uint8Array>();
    size_t count = std::min<size_t>({addresses.ElementLength(), buffer.ByteLength() / kPageBytes, kMaxPages});
    ReaderRequest request = {.kind = ReaderKind::kPages,
                             .pid = info[0].As<Napi::Number>().Int32Value(),
                             .address = 0,
                             .length = static_cast<uint32_t>(count) * kPageBytes,
                             .session = info[2].As<Napi::Number>().Uint32Value(),
                             .name = {}};
    for (size_t i = 0; i < count; i++) {
      uint64_t address = static_cast<uint64_t>(addresses[i]);
      memcpy(request.name + i * sizeof(address), &address, sizeof(address));
    }
    uint32_t mask = 0;
    size_t bytes = kRequestHead + count * sizeof(uint64_t);
    int result = process_.Ask(request, bytes, buffer.Data(), 0, -1, nullptr, &mask);
    return Napi::Number::New(info.Env(), result < 0 ? result : static_cast<double>(mask));
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

  Napi::Value Pid(const Napi::CallbackInfo& info) { return Napi::Number::New(info.Env(), process_.Pid()); }

  void Close(const Napi::CallbackInfo&) { process_.Stop(); }

  ReaderProcess process_;
  uint32_t file_session_ = 0;
};

// One of the processes that read beside the main thread.
struct Opener {
  std::mutex mutex;
  ReaderProcess process;
};

// A request that a thread of libuv's pool waits for. It resolves to a negative errno, or to what `Result` makes of it.
class AsyncRequest : public Napi::AsyncWorker {
 public:
  AsyncRequest(Napi::Env env, std::shared_ptr<Opener> opener, ReaderKind kind, pid_t pid)
      : Napi::AsyncWorker(env), deferred_(Napi::Promise::Deferred::New(env)), opener_(std::move(opener)) {
    request_ = {.kind = kind, .pid = pid, .address = 0, .length = sizeof(ReaderFile), .session = 0, .name = {}};
  }
  Napi::Value Start() {
    Queue();
    return deferred_.Promise();
  }
  // False where the name is too long.
  bool SetName(const std::string& name) {
    if (name.size() >= sizeof(request_.name)) return false;
    memcpy(request_.name, name.data(), name.size());
    name_bytes_ = name.size() + 1;
    return true;
  }
  Napi::Value Fail(int error) {
    deferred_.Resolve(Napi::Number::New(Env(), error));
    Napi::Value promise = deferred_.Promise();
    delete this;
    return promise;
  }

  ReaderRequest request_;
  size_t name_bytes_ = 0;
  uint32_t device_ = 0;
  // Its own duplicate, since its owner may close it meanwhile.
  int given_ = -1;

 protected:
  ~AsyncRequest() override {
    if (given_ >= 0) close(given_);
  }

  void Execute() override {
    bytes_.resize(request_.length);
    result_ = Ask(bytes_.data());
  }

  int Ask(uint8_t* into) {
    std::lock_guard lock(opener_->mutex);
    return opener_->process.Ask(request_, kRequestHead + name_bytes_, into, device_, given_, &opened_);
  }

  void OnOK() override { deferred_.Resolve(result_ < 0 ? Napi::Number::New(Env(), result_) : Result(Env())); }

  // What was found of a file.
  virtual Napi::Value Result(Napi::Env env) {
    ReaderFile file = {};
    memcpy(&file, bytes_.data(), std::min<size_t>(sizeof(file), static_cast<size_t>(result_)));
    Napi::Object found = Napi::Object::New(env);
    found.Set("fd", opened_);
    found.Set("mode", file.mode);
    found.Set("uid", file.uid);
    found.Set("gid", file.gid);
    found.Set("links", static_cast<double>(file.links));
    found.Set("dev", Napi::BigInt::New(env, file.device));
    found.Set("ino", Napi::BigInt::New(env, file.inode));
    found.Set("size", Napi::BigInt::New(env, file.size));
    found.Set("ctimeNs", Napi::BigInt::New(env, file.ctime_ns));
    found.Set("mtimeNs", Napi::BigInt::New(env, file.mtime_ns));
    return found;
  }

  Napi::Promise::Deferred deferred_;
  const std::shared_ptr<Opener> opener_;
  std::vector<uint8_t> bytes_;
  int result_ = 0;
  int opened_ = -1;
};

class BytesRequest : public AsyncRequest {
 public:
  using AsyncRequest::AsyncRequest;
  // Of a file of the process's folder: from its begin, until it ends or has that many.
  size_t whole_up_to_ = 0;

 protected:
  void Execute() override {
    if (whole_up_to_ == 0) return AsyncRequest::Execute();
    // one thread's reads of one file: another's in between would begin a session of their own
    std::lock_guard lock(opener_->mutex);
    static std::atomic<uint32_t> sessions = 0;
    request_.session = ++sessions | 1u << 31;
    request_.length = kMaxRead;
    size_t done = 0;
    while (done < whole_up_to_) {
      bytes_.resize(done + kMaxRead);
      int count = opener_->process.Ask(request_, kRequestHead + name_bytes_, bytes_.data() + done, device_);
      if (count <= 0) {
        result_ = count;
        break;
      }
      done += count;
    }
    if (result_ == 0) result_ = static_cast<int>(std::min(done, whole_up_to_));
  }

  Napi::Value Result(Napi::Env env) override { return Napi::Buffer<uint8_t>::Copy(env, bytes_.data(), result_); }
};

// Reads beside the main thread, in two processes, so that one that hangs holds up nobody for long. Every method but the
// last two returns a promise, of a negative errno where it fails; `pid` is the process for whose sake it is read, which
// pays.
class AsyncReader : public Napi::ObjectWrap<AsyncReader> {
 public:
  explicit AsyncReader(const Napi::CallbackInfo& info) : Napi::ObjectWrap<AsyncReader>(info) {
    std::string executable = info[0].As<Napi::String>().Utf8Value(), proc = info[1].As<Napi::String>().Utf8Value();
    for (auto& opener : openers_) opener.reset(new Opener{{}, {executable, proc, kOpenDeadlineMs}});
  }

  static Napi::Function Define(Napi::Env env) {
    return DefineClass(
        env, "AsyncReader",
        {InstanceMethod("lookAt", &AsyncReader::LookAt), InstanceMethod("openBelow", &AsyncReader::OpenBelow),
         InstanceMethod("readMemory", &AsyncReader::ReadMemory), InstanceMethod("readFile", &AsyncReader::ReadFile),
         InstanceMethod("read", &AsyncReader::Read), InstanceMethod("stat", &AsyncReader::Stat),
         InstanceMethod("copyPages", &AsyncReader::CopyPages), InstanceMethod("stuck", &AsyncReader::CountStuck),
         InstanceMethod("close", &AsyncReader::Close)});
  }

 private:
  template <class Request>
  Request* Make(const Napi::CallbackInfo& info, ReaderKind kind, uint32_t lane) {
    return new Request(info.Env(), openers_[lane % 2], kind, info[0].As<Napi::Number>().Int32Value());
  }

  // lookAt(pid, device, path, open): what is there, opened for reading if it is a regular file
  Napi::Value LookAt(const Napi::CallbackInfo& info) {
    bool open_it = info[3].As<Napi::Boolean>().Value();
    auto* request = Make<AsyncRequest>(info, open_it ? ReaderKind::kOpen : ReaderKind::kStat, next_++);
    request->device_ = info[1].As<Napi::Number>().Uint32Value();
    if (!request->SetName(info[2].As<Napi::String>().Utf8Value())) return request->Fail(-ENAMETOOLONG);
    return request->Start();
  }

  // openBelow(pid, root, path): as lookAt, through no link
  Napi::Value OpenBelow(const Napi::CallbackInfo& info) {
    auto* request = Make<AsyncRequest>(info, ReaderKind::kOpenBelow, next_++);
    std::string name = info[1].As<Napi::String>().Utf8Value() + '\0' + info[2].As<Napi::String>().Utf8Value();
    if (!request->SetName(name)) return request->Fail(-ENAMETOOLONG);
    return request->Start();
  }

  // readMemory(pid, address, length, session): bytes; within one session the process is the one that was opened first
  Napi::Value ReadMemory(const Napi::CallbackInfo& info) {
    uint32_t session = info[3].As<Napi::Number>().Uint32Value();
    auto* request = Make<BytesRequest>(info, ReaderKind::kMemory, session);
    request->request_.address = static_cast<uint64_t>(info[1].As<Napi::Number>().Int64Value());
    request->request_.length = std::min(info[2].As<Napi::Number>().Uint32Value(), kMaxRead);
    request->request_.session = session;
    return request->Start();
  }

  // readFile(pid, name, maxBytes): a file of the process's folder
  Napi::Value ReadFile(const Napi::CallbackInfo& info) {
    auto* request = Make<BytesRequest>(info, ReaderKind::kFile, next_++);
    request->whole_up_to_ = std::max(info[2].As<Napi::Number>().Uint32Value(), 1u);
    if (!request->SetName(info[1].As<Napi::String>().Utf8Value())) return request->Fail(-ENAMETOOLONG);
    return request->Start();
  }

  // read(pid, fd, offset, length): bytes
  Napi::Value Read(const Napi::CallbackInfo& info) {
    auto* request = Make<BytesRequest>(info, ReaderKind::kRead, next_++);
    request->given_ = fcntl(info[1].As<Napi::Number>().Int32Value(), F_DUPFD_CLOEXEC, 0);
    if (request->given_ < 0) return request->Fail(-errno);
    request->request_.address = static_cast<uint64_t>(info[2].As<Napi::Number>().Int64Value());
    request->request_.length = std::min(info[3].As<Napi::Number>().Uint32Value(), kMaxRead);
    return request->Start();
  }

  // stat(pid, fd): what it is
  Napi::Value Stat(const Napi::CallbackInfo& info) {
    auto* request = Make<AsyncRequest>(info, ReaderKind::kStatOpen, next_++);
    request->given_ = fcntl(info[1].As<Napi::Number>().Int32Value(), F_DUPFD_CLOEXEC, 0);
    return request->given_ < 0 ? request->Fail(-errno) : request->Start();
  }

  // copyPages(pid, device, directory, fd, size, ranges): copies pages of mapped files to where they stand in the file.
  // `directory`: the process's in /proc; fd: the copy so far, or -1 for a new one of `size` bytes, which comes with the
  // answer; ranges: address, offset in the file and length of each. The answer's `size`: bytes that were copied.
  Napi::Value CopyPages(const Napi::CallbackInfo& info) {
    auto* request = Make<AsyncRequest>(info, ReaderKind::kCopyPages, next_++);
    request->device_ = info[1].As<Napi::Number>().Uint32Value();
    std::string directory = info[2].As<Napi::String>().Utf8Value();
    int fd = info[3].As<Napi::Number>().Int32Value();
    auto numbers = info[5].As<Napi::Float64Array>();
    size_t count = numbers.ElementLength() / 3;
    if (directory.size() >= kRangesAt || count > kMaxRanges) return request->Fail(-E2BIG);
    if (fd >= 0 && (request->given_ = fcntl(fd, F_DUPFD_CLOEXEC, 0)) < 0) return request->Fail(-errno);
    request->SetName(directory);
    request->request_.address = static_cast<uint64_t>(info[4].As<Napi::Number>().Int64Value());
    for (size_t i = 0; i < count; i++) {
      PageRange range = {static_cast<uint64_t>(numbers[3 * i]), static_cast<uint64_t>(numbers[3 * i + 1]),
                         static_cast<uint64_t>(numbers[3 * i + 2])};
      memcpy(request->request_.name + kRangesAt + i * sizeof(range), &range, sizeof(range));
    }
    request->name_bytes_ = kRangesAt + count * sizeof(PageRange);
    return request->Start();
  }

  Napi::Value CountStuck(const Napi::CallbackInfo& info) {
    size_t count = 0;
    for (auto& opener : openers_) {
      // one that is asked just now is none that is stuck
      std::unique_lock lock(opener->mutex, std::try_to_lock);
      if (lock) count += opener->process.CountStuck();
    }
    return Napi::Number::New(info.Env(), static_cast<double>(count));
  }

  void Close(const Napi::CallbackInfo&) {
    for (auto& opener : openers_) {
      std::lock_guard lock(opener->mutex);
      opener->process.Stop();
    }
  }

  std::shared_ptr<Opener> openers_[2];
  uint32_t next_ = 0;
};
}  // namespace

void DefineReader(Napi::Env env, Napi::Object exports) {
  exports.Set("Reader", Reader::Define(env));
  exports.Set("AsyncReader", AsyncReader::Define(env));
}

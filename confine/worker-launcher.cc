// SPDX-License-Identifier: Apache-2.0
// Starts a worker of the agent: Node with the agent's bundle for workers,
// without rights, within limits. All that Node needs is opened before it gives
// up the right to: the checkout may lie where only its owner, or root, can go.
//
//   worker-launcher OPTION VALUE… -- NODE-ARGUMENT…
//
// The worker finds: 3 and 4, sockets of the agent; 5, the opener (see
// opener.hh), a process that keeps the right to read; 6, the bundle; 7, V8's
// code of it, if there is any; 8, the addon.
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include "descriptor.hh"
#include "memory-file.hh"
#include "opener.hh"
#include "rights.hh"

namespace {
using confine::Descriptor;

constexpr int kOpenerFd = 5;
constexpr int kBundleFd = 6;
constexpr int kCodeFd = 7;
constexpr int kAddonFd = 8;
// While they are opened, above all of those.
constexpr int kLowest = 16;
// 64 executables with a few descriptors each (symbol-service.ts).
constexpr rlim_t kMaxFiles = 1024;
// A scratch file may have 512 MiB (scratch-file.ts).
constexpr rlim_t kMaxFileBytes = 1 << 30;
constexpr uint64_t kOpenerRights = confine::Bit(CAP_DAC_READ_SEARCH) | confine::Bit(CAP_SYS_PTRACE);

struct Options {
  pid_t parent = 0;
  rlim_t data_bytes = 0;
  std::string node, bundle, code, addon;
  confine::OpenerPlaces places;
  std::vector<char*> node_arguments;
};

// The agent passes it on, as why the worker failed (worker-process.ts).
[[noreturn]] void Fail(const std::string& what) {
  fprintf(stderr, "worker-launcher: cannot %s: %s\n", what.c_str(), strerror(errno));
  _exit(126);
}

Options Parse(int argc, char** argv) {
  Options options;
  int i = 1;
  for (; i + 1 < argc && strcmp(argv[i], "--") != 0; i += 2) {
    std::string name = argv[i], value = argv[i + 1];
    if (name == "--parent") options.parent = atoi(argv[i + 1]);
    if (name == "--data-bytes") options.data_bytes = strtoull(argv[i + 1], nullptr, 10);
    if (name == "--node") options.node = value;
    if (name == "--bundle") options.bundle = value;
    if (name == "--code") options.code = value;
    if (name == "--addon") options.addon = value;
    if (name == "--cache") options.places.cache = value;
    if (name == "--scratch") options.places.scratch = value;
  }
  options.node_arguments.push_back(argv[0]);
  for (i++; i < argc; i++) options.node_arguments.push_back(argv[i]);
  options.node_arguments.push_back(nullptr);
  return options;
}

// Out of the way of those numbers; one that has its number already would be closed as Node starts.
int Raise(int fd) { return fcntl(fd, F_DUPFD_CLOEXEC, kLowest); }

int OpenHigh(const std::string& path) {
  Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return file ? Raise(file.get()) : -1;
}

// A copy in memory: the linker opens it by name once more, when only what all
// may read can be opened.
int CopyToMemory(const std::string& path) {
  Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  Descriptor copy(confine::CreateMemoryFile("everyframe.node"));
  struct stat stats;
  if (!file || !copy || fstat(file.get(), &stats)) return -1;
  for (off_t left = stats.st_size; left > 0;) {
    ssize_t count = sendfile(copy.get(), file.get(), nullptr, left);
    if (count <= 0) return -1;
    left -= count;
  }
  return Raise(copy.get());
}

void Place(int fd, int number) {
  if (fd >= 0 && dup2(fd, number) < 0) Fail("move descriptor " + std::to_string(fd) + " to " + std::to_string(number));
}

// Its worker is its parent: it ends with it.
void StartOpener(const Options& options) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends)) Fail("make sockets for the opener");
  pid_t worker = getpid();
  pid_t opener = fork();
  if (opener < 0) Fail("start the opener");
  if (opener == 0) {
    if (!confine::DieWithParent(worker)) _exit(0);
    Place(ends[1], 0);
    if (close_range(3, ~0U, 0))
      for (int fd = 3; fd < 64; fd++) close(fd);
    confine::KeepCapabilities(kOpenerRights);
    confine::ServeOpener(0, options.places);
    _exit(0);
  }
  Place(Raise(ends[0]), kOpenerFd);
}

void LimitWorker(const Options& options) {
  confine::Limit(RLIMIT_CORE, 0);
  confine::Limit(RLIMIT_NOFILE, kMaxFiles);
  confine::Limit(RLIMIT_FSIZE, kMaxFileBytes);
  if (options.data_bytes > 0) confine::Limit(RLIMIT_DATA, options.data_bytes);
  // what the kernel ends first where memory is short
  Descriptor score(open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
  if (score && write(score.get(), "1000", 4) < 0) {
    // it stays as it was
  }
}

// libuv of Node 22 makes a ring for its own use when it starts, and aborts where the worker's filter of system calls
// (addon/seccomp.cc) then keeps it from that. Without one it does without. Number 425 on every processor.
void RefuseRings() {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog filter = {uint16_t{std::size(code)}, code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
    Fail("refuse rings");
}
}  // namespace

int main(int argc, char** argv) {
  Options options = Parse(argc, argv);
  if (!confine::DieWithParent(options.parent)) return 0;
  int node = OpenHigh(options.node);
  if (node < 0) Fail("open " + options.node);
  int bundle = OpenHigh(options.bundle);
  if (bundle < 0) Fail("open " + options.bundle);
  int addon = CopyToMemory(options.addon);
  if (addon < 0) Fail("copy " + options.addon + " to memory");
  int code = OpenHigh(options.code);
  // Node would take the number for something of its own
  if (code < 0) code = OpenHigh("/dev/null");
  // Ctrl-C is for the agent, which ends its workers once it needs them no more
  setpgid(0, 0);
  StartOpener(options);
  Place(bundle, kBundleFd);
  Place(code, kCodeFd);
  Place(addon, kAddonFd);
  LimitWorker(options);
  confine::KeepCapabilities(0);
  RefuseRings();
  // Not fexecve(): where the kernel has TOMOYO, as Debian's have, that fails without /dev/fd, which small containers
  // lack.
  std::string name = "/proc/self/fd/" + std::to_string(node);
  execve(name.c_str(), options.node_arguments.data(), environ);
  Fail("execute " + options.node + " as " + name);
}

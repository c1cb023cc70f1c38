// SPDX-License-Identifier: Apache-2.0
// Reads for the agent what may never come: memory of other processes, and what
// /proc makes of it. Behind a page there can be a file server or a user-space
// fault handler that does not answer, and a thread that waits for one can't be
// helped. So this process waits, and the agent kills it when it takes too long.
// It allocates nothing and parses nothing.
#include "protocol.hh"

#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace {
constexpr int kMaxOpen = 8;

struct OpenFile {
  int fd = -1;
  ReaderKind kind = ReaderKind::kMemory;
  int32_t pid = 0;
  uint32_t session = 0;
};

OpenFile open_files[kMaxOpen];
int next_open = 0;
ReaderAnswer answer;

// What reading needs and no more, for good. Where a right is missing the reads
// that need it fail.
void GiveUpRights() {
  __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct data[2] = {};
  if (syscall(SYS_capget, &header, data)) return;
  // the last one for the links of /proc to mapped files
  uint32_t keep[2] = {1u << CAP_SYS_PTRACE | 1u << CAP_DAC_READ_SEARCH, 1u << (CAP_CHECKPOINT_RESTORE - 32)};
  for (int capability = 0; capability <= CAP_LAST_CAP; capability++)
    if (!(keep[capability / 32] & 1u << capability % 32)) prctl(PR_CAPBSET_DROP, capability);
  for (int i = 0; i < 2; i++) {
    data[i].permitted &= keep[i];
    data[i].effective = data[i].permitted;
    data[i].inheritable = 0;
  }
  syscall(SYS_capset, &header, data);
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

int Open(const char* proc, const ReaderRequest& request) {
  const char* name = request.kind == ReaderKind::kMemory ? "mem" : request.name;
  for (OpenFile& file : open_files) {
    if (file.fd < 0) continue;
    if (file.session != request.session) {
      close(file.fd);
      file.fd = -1;
    } else if (file.pid == request.pid && file.kind == request.kind) {
      return file.fd;
    }
  }
  char path[512];
  snprintf(path, sizeof(path), "%.400s/%d/%.64s", proc, request.pid, name);
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (fd < 0) return -errno;
  OpenFile& slot = open_files[next_open++ % kMaxOpen];
  if (slot.fd >= 0) close(slot.fd);
  slot = {.fd = fd, .kind = request.kind, .pid = request.pid, .session = request.session};
  return fd;
}

int Read(const char* proc, const ReaderRequest& request) {
  int fd = Open(proc, request);
  if (fd < 0) return fd;
  uint32_t length = request.length < kMaxRead ? request.length : kMaxRead;
  ssize_t count = request.kind == ReaderKind::kMemory
                      ? pread(fd, answer.bytes, length, static_cast<off_t>(request.address))
                      : read(fd, answer.bytes, length);
  return count < 0 ? -errno : static_cast<int>(count);
}
// First as a name alone: opening a device or a pipe can block or do things. Through that name nobody can swap it.
int LookAt(const ReaderRequest& request, int* opened) {
  // of a request that failed
  static int name = -1;
  if (name >= 0) close(name);
  name = open(request.name, O_PATH | O_CLOEXEC);
  struct stat stats;
  if (name < 0 || fstat(name, &stats)) return -errno;
  if (request.kind == ReaderKind::kOpen && S_ISREG(stats.st_mode)) {
    char link[64], edge;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", name);
    *opened = open(link, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (*opened < 0) return -errno;
    // a file server that doesn't answer is met here, and not by who reads the file next
    off_t last = stats.st_size > 0 ? stats.st_size - 1 : 0;
    if (pread(*opened, &edge, 1, 0) < 0 || pread(*opened, &edge, 1, last) < 0) return -errno;
  }
  ReaderFile file = {.device = stats.st_dev,
                     .inode = stats.st_ino,
                     .size = static_cast<uint64_t>(stats.st_size),
                     .ctime_ns = stats.st_ctim.tv_sec * 1000000000l + stats.st_ctim.tv_nsec,
                     .mode = stats.st_mode,
                     .unused = 0};
  memcpy(answer.bytes, &file, sizeof(file));
  return sizeof(file);
}

bool Answer(int descriptor) {
  iovec part = {&answer, kAnswerHead + (answer.result > 0 ? answer.result : 0)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (descriptor >= 0 && answer.result > 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(head), &descriptor, sizeof(int));
  }
  bool is_sent = sendmsg(kReaderSocket, &message, MSG_NOSIGNAL) >= 0;
  if (descriptor >= 0) close(descriptor);
  return is_sent;
}
}  // namespace

int main(int count, char** arguments) {
  const char* proc = count > 1 ? arguments[1] : "/proc";
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  rlimit none = {0, 0}, few = {32, 32};
  setrlimit(RLIMIT_CORE, &none);
  setrlimit(RLIMIT_NOFILE, &few);
  GiveUpRights();
  static ReaderRequest request;
  while (recv(kReaderSocket, &request, sizeof(request), 0) >= static_cast<ssize_t>(kRequestHead)) {
    request.name[sizeof(request.name) - 1] = 0;
    int descriptor = -1;
    bool is_path = request.kind == ReaderKind::kOpen || request.kind == ReaderKind::kStat;
    answer.result = is_path ? LookAt(request, &descriptor) : Read(proc, request);
    if (!Answer(descriptor)) return 1;
  }
  return 0;
}

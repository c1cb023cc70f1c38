// SPDX-License-Identifier: Apache-2.0
// Reads for the agent what may never come: memory of other processes, and what
// /proc makes of it. Behind a page there can be a file server or a user-space
// fault handler that does not answer, and a thread that waits for one can't be
// helped. So this process waits, and the agent kills it when it takes too long.
// It allocates nothing and parses nothing.
#include "protocol.hh"

#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "../../confine/memory-file.hh"
#include "../../confine/rights.hh"
#include "../descriptor-message.hh"

namespace {
constexpr int kMaxOpen = 8;
// What reading needs; the last one for the links of /proc to mapped files.
// Where one is missing the reads that need it fail.
constexpr uint64_t kRights =
    confine::Bit(CAP_SYS_PTRACE) | confine::Bit(CAP_DAC_READ_SEARCH) | confine::Bit(CAP_CHECKPOINT_RESTORE);
constexpr uint32_t kLeastPage = 4096;
// Documentation/admin-guide/mm/pagemap.rst
constexpr uint64_t kPresent = 1ull << 63, kIsOfFile = 1ull << 61;

struct OpenFile {
  int fd = -1;
  ReaderKind kind = ReaderKind::kMemory;
  int32_t pid = 0;
  uint32_t session = 0;
};

const uint32_t kPage = static_cast<uint32_t>(sysconf(_SC_PAGESIZE));
OpenFile open_files[kMaxOpen];
int next_open = 0;
ReaderAnswer answer;

int Open(const char* proc, const ReaderRequest& request, ReaderKind kind, const char* name) {
  for (OpenFile& file : open_files) {
    if (file.fd < 0) continue;
    if (file.session != request.session) {
      close(file.fd);
      file.fd = -1;
    } else if (file.pid == request.pid && file.kind == kind) {
      return file.fd;
    }
  }
  char path[512];
  snprintf(path, sizeof(path), "%.400s/%d/%.64s", proc, request.pid, name);
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (fd < 0) return -errno;
  OpenFile& slot = open_files[next_open++ % kMaxOpen];
  if (slot.fd >= 0) close(slot.fd);
  slot = {.fd = fd, .kind = kind, .pid = request.pid, .session = request.session};
  return fd;
}

int OpenMemory(const char* proc, const ReaderRequest& request) {
  return Open(proc, request, ReaderKind::kMemory, "mem");
}

int ReadPages(const char* proc, const ReaderRequest& request, uint32_t bytes) {
  int fd = OpenMemory(proc, request);
  if (fd < 0) return fd;
  uint64_t addresses[kMaxPages];
  uint32_t count = std::min<uint32_t>((bytes - kRequestHead) / sizeof(uint64_t), kMaxPages);
  memcpy(addresses, request.name, count * sizeof(uint64_t));
  for (uint32_t i = 0; i < count; i++) {
    char* into = answer.bytes + i * kPageBytes;
    if (pread(fd, into, kPageBytes, static_cast<off_t>(addresses[i])) == kPageBytes) answer.mask |= 1u << i;
  }
  return static_cast<int>(count * kPageBytes);
}

int Read(const char* proc, const ReaderRequest& request) {
  bool is_memory = request.kind == ReaderKind::kMemory;
  int fd = is_memory ? OpenMemory(proc, request) : Open(proc, request, request.kind, request.name);
  if (fd < 0) return fd;
  uint32_t length = request.length < kMaxRead ? request.length : kMaxRead;
  ssize_t count =
      is_memory ? pread(fd, answer.bytes, length, static_cast<off_t>(request.address)) : read(fd, answer.bytes, length);
  return count < 0 ? -errno : static_cast<int>(count);
}

int Describe(const struct stat& stats) {
  ReaderFile file = {.device = stats.st_dev,
                     .inode = stats.st_ino,
                     .size = static_cast<uint64_t>(stats.st_size),
                     .ctime_ns = stats.st_ctim.tv_sec * 1000000000l + stats.st_ctim.tv_nsec,
                     .mtime_ns = stats.st_mtim.tv_sec * 1000000000l + stats.st_mtim.tv_nsec,
                     .links = stats.st_nlink,
                     .uid = stats.st_uid,
                     .gid = stats.st_gid,
                     .mode = stats.st_mode,
                     .unused = 0};
  memcpy(answer.bytes, &file, sizeof(file));
  return sizeof(file);
}

// Takes the name over, which may be -1 and errno.
int LookAt(int name, bool open_it, int* opened) {
  // of a request that failed
  static int last_name = -1;
  if (last_name >= 0) close(last_name);
  last_name = name;
  struct stat stats;
  if (name < 0 || fstat(name, &stats)) return -errno;
  if (open_it && S_ISREG(stats.st_mode)) {
    char link[64], edge;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", name);
    *opened = open(link, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (*opened < 0) return -errno;
    // a file server that doesn't answer is met here, and not by who reads the file next
    off_t last = stats.st_size > 0 ? stats.st_size - 1 : 0;
    if (pread(*opened, &edge, 1, 0) < 0 || pread(*opened, &edge, 1, last) < 0) return -errno;
  }
  return Describe(stats);
}

// First as a name alone: opening a device or a pipe can block or do things. Through that name nobody can swap it.
int OpenName(const ReaderRequest& request) {
  if (request.kind != ReaderKind::kOpenBelow) return open(request.name, O_PATH | O_CLOEXEC);
  const char* path = request.name + strnlen(request.name, sizeof(request.name) / 2) + 1;
  int root = open(request.name, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root < 0) return -1;
  open_how how = {};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  int name = syscall(SYS_openat2, root, path, &how, sizeof(how));
  int error = errno;
  close(root);
  errno = error;
  return name;
}

// Bits of the pages that begin at `address`.
bool ReadPageMap(int pagemap, uint64_t address, uint64_t* bits, uint32_t pages) {
  ssize_t bytes = pages * sizeof(uint64_t);
  return pread(pagemap, bits, bytes, static_cast<off_t>(address / kPage * sizeof(uint64_t))) == bytes;
}

// Pages that are the file's own. A process can write over what it has mapped privately, and has its own copy of that
// page then, which says nothing of the file.
uint64_t CopyRange(int memory, int pagemap, int target, const PageRange& range) {
  uint64_t copied = 0;
  constexpr uint32_t kMostPages = kMaxRead / kLeastPage;
  static const char zeros[kMaxRead] = {};
  uint64_t before[kMostPages], after[kMostPages];
  for (uint64_t done = 0; done < range.length; done += kMaxRead) {
    uint64_t at = range.address + done;
    uint32_t pages = (std::min<uint64_t>(range.length - done, kMaxRead) + kPage - 1) / kPage;
    if (!ReadPageMap(pagemap, at, before, pages)) break;
    bool is_read[kMostPages];
    bool all = pread(memory, answer.bytes, pages * kPage, at) == pages * kPage;
    for (uint32_t i = 0; i < pages; i++)
      is_read[i] = all || pread(memory, answer.bytes + i * kPage, kPage, at + i * kPage) == kPage;
    if (!ReadPageMap(pagemap, at, after, pages)) break;
    for (uint32_t i = 0; i < pages; i++) {
      bool was_private = (before[i] & kPresent) && !(before[i] & kIsOfFile);
      bool is_of_file = (after[i] & kPresent) && (after[i] & kIsOfFile);
      const char* page = answer.bytes + i * kPage;
      if (!is_read[i] || was_private || !is_of_file || memcmp(page, zeros, kPage) == 0) continue;
      uint64_t place = done + i * kPage;
      uint64_t length = std::min<uint64_t>(kPage, range.length - place);
      if (pwrite(target, page, length, range.offset + place) == static_cast<ssize_t>(length)) copied += length;
    }
  }
  return copied;
}

int CopyPages(const ReaderRequest& request, uint32_t bytes, int given, int* opened) {
  char path[kRangesAt + 16];
  snprintf(path, sizeof(path), "%.*s/mem", static_cast<int>(kRangesAt), request.name);
  int memory = open(path, O_RDONLY | O_CLOEXEC);
  if (memory < 0) return -errno;
  snprintf(path, sizeof(path), "%.*s/pagemap", static_cast<int>(kRangesAt), request.name);
  int pagemap = open(path, O_RDONLY | O_CLOEXEC);
  int target = given >= 0 ? dup(given) : confine::CreateMemoryFile("everyframe-image");
  int result = 0;
  if (pagemap < 0 || target < 0 || (given < 0 && ftruncate(target, static_cast<off_t>(request.address)))) {
    result = -errno;
  } else {
    const char* end = reinterpret_cast<const char*>(&request) + bytes;
    struct stat none = {};
    for (const char* at = request.name + kRangesAt; at + sizeof(PageRange) <= end; at += sizeof(PageRange)) {
      PageRange range;
      memcpy(&range, at, sizeof(range));
      none.st_size += static_cast<off_t>(CopyRange(memory, pagemap, target, range));
    }
    result = Describe(none);
  }
  close(memory);
  if (pagemap >= 0) close(pagemap);
  if (result > 0 && given < 0)
    *opened = target;
  else if (target >= 0)
    close(target);
  return result;
}

int ReadGiven(const ReaderRequest& request, int given) {
  struct stat stats;
  if (request.kind == ReaderKind::kStatOpen) return fstat(given, &stats) ? -errno : Describe(stats);
  uint32_t length = std::min(request.length, kMaxRead);
  ssize_t count = pread(given, answer.bytes, length, static_cast<off_t>(request.address));
  return count < 0 ? -errno : static_cast<int>(count);
}

int Handle(const char* proc, const ReaderRequest& request, uint32_t bytes, int given, int* opened) {
  switch (request.kind) {
    case ReaderKind::kMemory:
    case ReaderKind::kFile:
      return Read(proc, request);
    case ReaderKind::kOpen:
    case ReaderKind::kStat:
    case ReaderKind::kOpenBelow:
      return LookAt(OpenName(request), request.kind != ReaderKind::kStat, opened);
    case ReaderKind::kRead:
    case ReaderKind::kStatOpen:
      return ReadGiven(request, given);
    case ReaderKind::kPages:
      return ReadPages(proc, request, bytes);
    case ReaderKind::kCopyPages:
      return CopyPages(request, bytes, given, opened);
  }
  return -EINVAL;
}

// Its bytes, 0 when the agent is gone. The descriptor that came with it, else -1.
uint32_t Receive(ReaderRequest* request, int* given) {
  iovec part = {request, sizeof(*request)};
  ssize_t count = ReceiveWithDescriptor(kReaderSocket, &part, 1, given);
  if (count < static_cast<ssize_t>(kRequestHead)) return 0;
  request->name[sizeof(request->name) - 1] = 0;
  return static_cast<uint32_t>(count);
}

bool Answer(int descriptor) {
  bool has_bytes = answer.result > 0;
  size_t size = kAnswerHead + (has_bytes ? answer.result : 0);
  bool is_sent = SendWithDescriptor(kReaderSocket, &answer, size, has_bytes ? descriptor : -1) >= 0;
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
  confine::KeepCapabilities(kRights);
  static ReaderRequest request;
  while (true) {
    int given, opened = -1;
    uint32_t bytes = Receive(&request, &given);
    if (bytes == 0) return 0;
    answer.mask = 0;
    answer.result = Handle(proc, request, bytes, given, &opened);
    if (given >= 0) close(given);
    if (!Answer(opened)) return 1;
  }
}

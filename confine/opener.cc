// SPDX-License-Identifier: Apache-2.0
#include "opener.hh"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "../addon/descriptor-message.hh"
#include "../addon/open-below.hh"
#include "cache-files.hh"
#include "descriptor.hh"

namespace confine {
namespace {
// In front of a path: five numbers.
constexpr size_t kMaxHead = 64;
constexpr int kRead = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;

// Reading a regular file of these takes from others what they wait for
// (trace_pipe, kmsg), or has no end. From include/uapi/linux/magic.h;
// agent/files/file-opener.ts has the same.
constexpr uint32_t kPseudoFileSystems[] = {
    0x9fa0,      // proc
    0x62656572,  // sysfs
    0x64626720,  // debugfs
    0x74726163,  // tracefs
    0x73636673,  // securityfs
    0x0027e0eb,  // cgroup
    0x63677270,  // cgroup2
    0xcafe4a11,  // bpf
    0x62656570,  // configfs
    0x6165676c,  // pstore
    0xde5e81e4,  // efivarfs
    0xf97cff8c,  // selinuxfs
};

bool IsPseudo(int fd) {
  struct statfs stats;
  if (fstatfs(fd, &stats)) return true;
  for (uint32_t magic : kPseudoFileSystems)
    if (static_cast<uint32_t>(stats.f_type) == magic) return true;
  return false;
}

class Opener {
 public:
  explicit Opener(const OpenerPlaces& places)
      : places_(places), cache_(places.cache), root_(open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)) {}

  // The descriptor that goes with the answer, or -1.
  Descriptor Serve(std::string_view request, const Descriptor& passed, Answer* answer) {
    std::string argument(request.substr(1));
    switch (static_cast<Ask>(request[0])) {
      case Ask::kLook:
        return Look(passed, argument, answer);
      case Ask::kOpen:
        return OpenLooked(answer);
      case Ask::kOfProcess:
        return OfProcess(argument, answer);
      case Ask::kScratch:
        return Scratch(answer);
      default:
        return cache_.Serve(static_cast<Ask>(request[0]), argument, answer);
    }
  }

 private:
  Descriptor Fail(Answer* answer) {
    answer->error = errno;
    return Descriptor();
  }

  // As a bare name (O_PATH), which has no effect on what it leads to.
  Descriptor Look(const Descriptor& root, const std::string& argument, Answer* answer) {
    looked_ = Descriptor();
    size_t space = argument.find(' ');
    std::string path = space == std::string::npos ? "" : argument.substr(space + 1);
    Owner owner;
    may_open_ = sscanf(argument.c_str(), "%u:%u:%u:%u:%u ", &owner.uid, &owner.gid, &owner.mode, &owner.reader,
                       &owner.reader_group) == 5;
    int below = root ? root.get() : root_.get();
    int fd = may_open_ ? OpenBelow(below, path.c_str(), owner) : OpenInRoot(below, path.c_str());
    looked_ = Descriptor(fd);
    if (fd < 0)
      answer->error = -fd;
    else
      Describe(fd, answer);
    return Descriptor();
  }

  void Describe(int fd, Answer* answer) {
    struct stat stats;
    if (fstat(fd, &stats)) {
      answer->error = errno;
      return;
    }
    answer->mode = stats.st_mode;
    answer->dev = stats.st_dev;
    answer->ino = stats.st_ino;
    answer->size = stats.st_size;
    answer->ctime_ns = stats.st_ctim.tv_sec * 1'000'000'000LL + stats.st_ctim.tv_nsec;
    answer->uid = stats.st_uid;
    answer->gid = stats.st_gid;
    answer->is_pseudo = IsPseudo(fd);
  }

  // Whatever the worker says: no device, pipe or file of /proc is ever opened.
  Descriptor OpenLooked(Answer* answer) {
    Describe(looked_.get(), answer);
    if (answer->error || !may_open_ || !S_ISREG(answer->mode) || answer->is_pseudo) {
      errno = EACCES;
      return Fail(answer);
    }
    std::string link = "/proc/self/fd/" + std::to_string(looked_.get());
    Descriptor file(open(link.c_str(), kRead));
    looked_ = Descriptor();
    return file ? std::move(file) : Fail(answer);
  }

  Descriptor OfProcess(const std::string& argument, Answer* answer) {
    size_t slash = argument.find('/');
    std::string what = slash == std::string::npos ? "" : argument.substr(slash + 1);
    int pid = atoi(argument.c_str());
    bool is_root = what == "root";
    errno = EINVAL;
    if (pid <= 0 || !(is_root || what == "stat" || what == "status")) return Fail(answer);
    std::string path = "/proc/" + std::to_string(pid) + "/" + what;
    Descriptor file(open(path.c_str(), is_root ? O_PATH | O_DIRECTORY | O_CLOEXEC : kRead));
    return file ? std::move(file) : Fail(answer);
  }

  Descriptor Scratch(Answer* answer) {
    errno = ENOENT;
    Descriptor file(places_.scratch.empty() ? -1 : OpenNameless(places_.scratch));
    return file ? std::move(file) : Fail(answer);
  }

  static int OpenNameless(const std::string& directory) {
    int fd = open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0) return fd;
    // overlayfs of old kernels, network file systems
    std::string path = directory + "/.everyframe-XXXXXX";
    fd = mkostemp(path.data(), O_CLOEXEC);
    if (fd >= 0) unlink(path.c_str());
    return fd;
  }

  const OpenerPlaces& places_;
  CacheFiles cache_;
  Descriptor root_;
  Descriptor looked_;
  bool may_open_ = false;
};

}  // namespace

void ServeOpener(int socket, const OpenerPlaces& places) {
  Opener opener(places);
  // what is cut is still too long for the kernel
  char request[PATH_MAX + kMaxHead];
  for (;;) {
    iovec part = {request, sizeof(request)};
    int came;
    ssize_t size = ReceiveWithDescriptor(socket, &part, 1, &came);
    if (size <= 0) return;
    Descriptor passed(came);
    Answer answer;
    Descriptor file = opener.Serve({request, static_cast<size_t>(size)}, passed, &answer);
    if (SendWithDescriptor(socket, &answer, sizeof(answer), file.get()) != sizeof(answer)) return;
  }
}
}  // namespace confine

// SPDX-License-Identifier: Apache-2.0
#include "open-below.hh"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <string>

namespace {
// While names are moved or mounted meanwhile the kernel can't say whether ".." leads outside, and says EAGAIN.
constexpr int kAttempts = 16;
// As in the kernel.
constexpr int kMaxLinks = 40;

int Open(int root, const char* path, uint64_t flags, uint64_t resolve) {
  open_how how = {};
  how.flags = O_PATH | O_CLOEXEC | flags;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | resolve;
  int fd = -1;
  errno = EAGAIN;
  for (int i = 0; fd < 0 && errno == EAGAIN && i < kAttempts; i++)
    fd = syscall(SYS_openat2, root, path, &how, sizeof(how));
  return fd < 0 ? -errno : fd;
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.Release()) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int Get() const { return fd_; }
  int Release() {
    int fd = fd_;
    fd_ = -1;
    return fd;
  }

 private:
  int fd_;
};

// As the kernel knows it from the look-up: a file server is not asked again.
bool Stat(int fd, struct statx* stats) {
  return statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, stats) == 0;
}

// Component by component, links by hand: of each it is to be known who could have put it there.
class Walk {
 public:
  Walk(int root, const char* path, const Owner& owner) : root_(root), rest_(path), owner_(owner) {}

  int Run() {
    struct statx stats = {};
    if (!Stat(root_, &stats)) return -errno;
    root_uid_ = stats.stx_uid;
    if (int error = Enter(stats)) return error;
    std::string name;
    while (true) {
      NextName(&name);
      // a directory, whatever is looked for
      if (name.empty()) return -EISDIR;
      if (name == "..") {
        if (int error = Leave()) return error;
        continue;
      }
      std::string path = done_;
      path += '/';
      path += name;
      Descriptor file(Open(root_, path.c_str(), O_NOFOLLOW, RESOLVE_NO_SYMLINKS));
      if (file.Get() < 0) return file.Get();
      if (!Stat(file.Get(), &stats)) return -errno;
      if (!IsFixed(stats)) return -EPERM;
      int error = 0;
      if (S_ISLNK(stats.stx_mode))
        error = Follow(file.Get());
      else if (IsLast())
        return IsTrusted(stats) ? file.Release() : -EPERM;
      else if (!S_ISDIR(stats.stx_mode))
        return -ENOTDIR;
      else {
        done_ = path;
        error = Enter(stats);
      }
      if (error) return error;
    }
  }

 private:
  // '' where none is left.
  void NextName(std::string* name) {
    do {
      size_t from = std::min(rest_.find_first_not_of('/', at_), rest_.size());
      at_ = std::min(rest_.find('/', from), rest_.size());
      name->assign(rest_, from, at_ - from);
    } while (*name == ".");
  }

  bool IsLast() const { return rest_.find_first_not_of('/', at_) == std::string::npos; }

  // Into a directory, from which the next name is taken.
  int Enter(const struct statx& directory) {
    if (!MayPass(directory)) return -EACCES;
    is_safe_ = IsTrusted(directory);
    // in it only who owns a name can give it away
    is_sticky_ = IsTrustedUid(directory.stx_uid) && (directory.stx_mode & S_ISVTX) != 0;
    return 0;
  }

  bool MayPass(const struct statx& directory) const {
    mode_t mode = directory.stx_mode;
    return owner_.reader == 0 || (mode & S_IXOTH) != 0 ||
           (directory.stx_uid == owner_.reader && (mode & S_IXUSR) != 0) ||
           (directory.stx_gid == owner_.reader_group && (mode & S_IXGRP) != 0);
  }

  int Leave() {
    size_t slash = done_.rfind('/');
    done_.erase(slash == std::string::npos ? 0 : slash);
    return EnterAgain();
  }

  int EnterAgain() {
    Descriptor directory(Open(root_, done_.empty() ? "/" : done_.c_str(), O_DIRECTORY, RESOLVE_NO_SYMLINKS));
    if (directory.Get() < 0) return directory.Get();
    struct statx stats = {};
    return Stat(directory.Get(), &stats) ? Enter(stats) : -errno;
  }

  int Follow(int link) {
    if (++links_ > kMaxLinks) return -ELOOP;
    char target[PATH_MAX];
    ssize_t length = readlinkat(link, "", target, sizeof(target));
    if (length < 0) return -errno;
    if (length == 0 || length == static_cast<ssize_t>(sizeof(target))) return -ENAMETOOLONG;
    rest_ = std::string(target, length) + rest_.substr(at_);
    at_ = 0;
    if (rest_.size() > 4 * PATH_MAX) return -ENAMETOOLONG;
    if (target[0] != '/') return 0;
    done_.clear();
    return EnterAgain();
  }

  // Nobody else put it there.
  bool IsFixed(const struct statx& entry) const { return is_safe_ || (is_sticky_ && IsTrustedUid(entry.stx_uid)); }

  // Nobody else can change it.
  bool IsTrusted(const struct statx& file) const {
    if (owner_.uid == kAnybody) return true;
    bool is_of_group = file.stx_gid == 0 || ((owner_.mode & S_IWGRP) != 0 && file.stx_gid == owner_.gid);
    return IsTrustedUid(file.stx_uid) && ((file.stx_mode & S_IWGRP) == 0 || is_of_group) &&
           ((file.stx_mode & S_IWOTH) == 0 || (owner_.mode & S_IWOTH) != 0);
  }

  bool IsTrustedUid(uid_t uid) const {
    return uid == 0 || uid == owner_.uid || uid == root_uid_ || owner_.uid == kAnybody;
  }

  const int root_;
  // Without links, from "/"; '' for the root.
  std::string done_;
  std::string rest_;
  // The rest begins there.
  size_t at_ = 0;
  const Owner& owner_;
  uid_t root_uid_ = 0;
  int links_ = 0;
  bool is_safe_ = false;
  bool is_sticky_ = false;
};
}  // namespace

int OpenInRoot(int root, const char* path) { return Open(root, path, 0, 0); }

int OpenBelow(int root, const char* path, const Owner& owner) { return Walk(root, path, owner).Run(); }

// SPDX-License-Identifier: Apache-2.0
#include "cache-files.hh"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

namespace confine {
namespace {
// FILE or FOLDER/FILE, of letters, digits, '-' and '.', none of which begins
// with a dot.
bool IsName(const std::string& name) {
  int folders = 0;
  char before = '/';
  for (char c : name) {
    bool is_plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
    if (c == '/') folders++;
    if (!is_plain && !(c == '.' && before != '/') && !(c == '/' && before != '/')) return false;
    before = c;
  }
  return !name.empty() && before != '/' && folders <= 1;
}

struct Kept {
  std::string name;
  uint64_t bytes;
  int64_t used_at;
};

// `name` ends in `ending`, or in that and '.' and digits, as half-written ones
// do.
bool HasEnding(const std::string& name, const std::string& ending) {
  size_t last = name.find_last_not_of("0123456789");
  bool is_partial = last != std::string::npos && last + 1 < name.size() && name[last] == '.';
  return name.ends_with(ending) || (is_partial && name.substr(0, last).ends_with(ending));
}

std::vector<Kept> List(int folder, const std::string& ending) {
  std::vector<Kept> files;
  std::unique_ptr<DIR, int (*)(DIR*)> directory(fdopendir(dup(folder)), closedir);
  if (!directory) return files;
  while (const dirent* entry = readdir(directory.get())) {
    struct stat stats;
    if (!HasEnding(entry->d_name, ending) || fstatat(folder, entry->d_name, &stats, AT_SYMLINK_NOFOLLOW)) continue;
    files.push_back({entry->d_name, static_cast<uint64_t>(stats.st_size),
                     stats.st_mtim.tv_sec * 1'000'000'000LL + stats.st_mtim.tv_nsec});
  }
  return files;
}
}  // namespace

CacheFiles::CacheFiles(const std::string& directory)
    : directory_(directory.empty() ? -1 : open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {}

Descriptor CacheFiles::Serve(Ask what, const std::string& argument, Answer* answer) {
  int at = directory_.get();
  size_t end = argument.find('\0');
  std::string name = argument.substr(0, end);
  std::string other = end == std::string::npos ? "" : argument.substr(end + 1);
  bool is_name = IsName(name) && (what != Ask::kCacheKeep || IsName(other));
  int fd = -1;
  int error = EINVAL;
  auto note = [&error](int result) { error = result < 0 ? errno : 0; };
  if (what == Ask::kCachePrune) {
    error = Prune(argument);
  } else if (is_name) {
    if (what == Ask::kCacheRead) note(fd = openat(at, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (what == Ask::kCacheNew) note(fd = openat(at, name.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600));
    if (what == Ask::kCacheDrop) note(unlinkat(at, name.c_str(), 0));
    if (what == Ask::kCacheTouch) note(utimensat(at, name.c_str(), nullptr, AT_SYMLINK_NOFOLLOW));
    if (what == Ask::kCacheKeep) {
      // to rename it over the old one would wait for the disk on ext4, for
      // seconds where that is busy
      unlinkat(at, other.c_str(), 0);
      note(renameat(at, name.c_str(), at, other.c_str()));
    }
  }
  answer->error = error;
  return Descriptor(fd);
}

int CacheFiles::Prune(const std::string& argument) {
  unsigned long long max_bytes = 0;
  unsigned max_files = 0;
  int read = 0;
  if (sscanf(argument.c_str(), "%llu %u %n", &max_bytes, &max_files, &read) < 2 || read == 0) return EINVAL;
  std::string place = argument.substr(read);
  size_t slash = place.find('/');
  if (slash == std::string::npos || (slash > 0 && !IsName(place.substr(0, slash)))) return EINVAL;
  std::string folder = slash == 0 ? "." : place.substr(0, slash);
  Descriptor directory(openat(directory_.get(), folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory) return errno;
  std::vector<Kept> files = List(directory.get(), place.substr(slash + 1));
  std::sort(files.begin(), files.end(), [](const Kept& a, const Kept& b) { return a.used_at > b.used_at; });
  uint64_t total = 0;
  for (size_t i = 0; i < files.size(); i++) {
    total += files[i].bytes;
    if (total > max_bytes || i >= max_files) unlinkat(directory.get(), files[i].name.c_str(), 0);
  }
  return 0;
}
}  // namespace confine

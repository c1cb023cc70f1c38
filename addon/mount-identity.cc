// SPDX-License-Identifier: Apache-2.0
// By the kernel's own statx: musl's has no number of a mount. Its header can't be had beside the C library's
// <sys/stat.h>.
#include "mount-identity.hh"

#include <fcntl.h>
#include <linux/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>

std::string MountIdentity(const char* path) {
  constexpr unsigned kUniqueMountId = 0x4000;
  constexpr unsigned kMask = STATX_INO | STATX_MNT_ID | kUniqueMountId;
  struct statx stats = {};
  if (syscall(SYS_statx, AT_FDCWD, path, AT_STATX_DONT_SYNC, kMask, &stats)) return "";
  char identity[96];
  snprintf(identity, sizeof(identity), "%llu:%u:%u:%llu", static_cast<unsigned long long>(stats.stx_mnt_id),
           stats.stx_dev_major, stats.stx_dev_minor, static_cast<unsigned long long>(stats.stx_ino));
  return identity;
}

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/mman.h>

#include <cerrno>

namespace confine {
// Since 6.3; where vm.memfd_noexec is 2, nothing else is allowed.
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#endif

// A file in memory that is never a program; a library in it can be mapped all
// the same. Its descriptor, or -1 and errno.
inline int CreateMemoryFile(const char* name) {
  int fd = memfd_create(name, MFD_CLOEXEC | MFD_NOEXEC_SEAL);
  return fd >= 0 || errno != EINVAL ? fd : memfd_create(name, MFD_CLOEXEC);
}
}  // namespace confine

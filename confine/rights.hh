// SPDX-License-Identifier: Apache-2.0
// What a process gives up before it sees foreign bytes. What the kernel refuses
// is left as it is: all of it is a second wall behind the limits, and a process
// without privileges has little to give up.
#pragma once
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>

namespace confine {
// Bits of a set of capabilities.
constexpr uint64_t Bit(int capability) { return uint64_t{1} << capability; }

// The bounding set keeps `kept`, and so do the others of this thread; nothing
// can be gained again, by exec neither.
inline void KeepCapabilities(uint64_t kept) {
  for (int i = 0; i < 64 && prctl(PR_CAPBSET_READ, i, 0, 0, 0) >= 0; i++)
    if (!(kept & Bit(i))) prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct now[2] = {};
  if (syscall(SYS_capget, &header, now)) return;
  __user_cap_data_struct left[2] = {};
  for (int i = 0; i < 2; i++)
    left[i].effective = left[i].permitted = now[i].permitted & static_cast<uint32_t>(kept >> (32 * i));
  syscall(SYS_capset, &header, left);
}

// Never above what it is already.
inline void Limit(__rlimit_resource resource, rlim_t most) {
  rlimit limit = {};
  if (getrlimit(resource, &limit)) return;
  if (limit.rlim_max > most) limit.rlim_max = most;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(resource, &limit);
}

// Ends with its parent, however that ends. False where `parent` has ended
// already.
inline bool DieWithParent(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  return getppid() == parent;
}
}  // namespace confine

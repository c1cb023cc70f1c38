// SPDX-License-Identifier: Apache-2.0
// Rights of this process, given up for good.
//
// Capabilities, the bounding set and "no new privileges" belong to a thread, and Node has threads before the first line
// of JavaScript runs: so each thread gives up its own, in a signal handler, as the C library does for setuid(2)
// (nptl(7)). The signal is the one that it does that with, since no thread can block that: pthread_sigmask(3) leaves it
// out, and Node's inspector blocks all others.
#include <dirent.h>
#include <linux/capability.h>
#include <napi.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <set>

#include "maps.hh"
#include "object.hh"

namespace {
constexpr int kEveryThreadSignal = 33;
constexpr int kLastCapability = 63;
// Passes over all threads; a thread may start another one while it still has its rights.
constexpr int kMaxPasses = 100;
constexpr int kMaxWaitMs = 2000;

// As the kernel takes it: sigaction(3) refuses this signal.
struct KernelAction {
  void (*handler)(int, siginfo_t*, void*);
  unsigned long flags;
  void (*restorer)();
  uint64_t mask;
};

struct Rights {
  uint64_t permitted;
  uint64_t bounding;
};

Rights kept;
std::atomic<int> failure;
std::atomic<pid_t> answered;

// 0, or the number of the error. Nothing but system calls: it runs in a signal handler.
int Restrict(const Rights& keep) {
  // only with CAP_SETPCAP; whoever lacks that can't get anything from the bounding set either, without new privileges
  for (int i = 0; i <= kLastCapability; i++)
    if (!(keep.bounding >> i & 1) && prctl(PR_CAPBSET_DROP, i, 0, 0, 0)) break;
  if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)) return errno;
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[2] = {};
  if (syscall(SYS_capget, &header, sets)) return errno;
  for (int i = 0; i < 2; i++) {
    uint32_t word = keep.permitted >> (32 * i);
    sets[i] = {sets[i].effective & word, sets[i].permitted & word, 0};
  }
  if (syscall(SYS_capset, &header, sets)) return errno;
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? errno : 0;
}

void OnSignal(int, siginfo_t* info, void*) {
  if (info->si_code != SI_TKILL || info->si_pid != getpid()) return;
  int before = errno;
  if (int failed = Restrict(kept)) failure = failed;
  answered = pid_t(syscall(SYS_gettid));
  errno = before;
}

int SetAction(int signal, const KernelAction* action, KernelAction* old) {
  return syscall(SYS_rt_sigaction, signal, action, old, sizeof(uint64_t));
}

// The C library's way back from a handler, which x86-64 has no other of.
KernelAction OurAction() {
  struct sigaction ours = {}, before = {};
  ours.sa_sigaction = OnSignal;
  ours.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  sigfillset(&ours.sa_mask);
  sigaction(SIGRTMAX, &ours, &before);
  KernelAction action = {};
  SetAction(SIGRTMAX, nullptr, &action);
  sigaction(SIGRTMAX, &before, nullptr);
  return action;
}

// False where it does not answer in time. One that ends meanwhile has no rights left.
bool RestrictThread(pid_t thread) {
  answered = 0;
  if (syscall(SYS_tgkill, getpid(), thread, kEveryThreadSignal)) return errno == ESRCH;
  for (int waited = 0; answered != thread; waited++) {
    if (syscall(SYS_tgkill, getpid(), thread, 0) && errno == ESRCH) return true;
    if (waited > kMaxWaitMs * 10) return false;
    timespec moment = {0, 100'000};
    nanosleep(&moment, nullptr);
  }
  return true;
}

// Threads of this process that are not in `done`, which they are added to; -1: /proc does not show them.
int RestrictOthers(std::set<pid_t>& done) {
  std::unique_ptr<DIR, int (*)(DIR*)> tasks(opendir("/proc/self/task"), closedir);
  if (!tasks) return -1;
  int found = 0;
  while (dirent* entry = readdir(tasks.get())) {
    pid_t thread = atoi(entry->d_name);
    if (thread <= 0 || !done.insert(thread).second) continue;
    found++;
    if (!RestrictThread(thread)) failure = ETIMEDOUT;
  }
  return found;
}

int RestrictAll(const Rights& keep) {
  kept = keep;
  failure = Restrict(keep);
  if (failure) return failure;
  KernelAction action = OurAction(), before = {};
  if (SetAction(kEveryThreadSignal, &action, &before)) return errno;
  std::set<pid_t> done = {pid_t(syscall(SYS_gettid))};
  int passes = 0, found = 1;
  while (found > 0 && !failure && passes++ < kMaxPasses) found = RestrictOthers(done);
  if (found != 0 && !failure) failure = found < 0 ? ENOENT : EAGAIN;
  SetAction(kEveryThreadSignal, &before, nullptr);
  return failure;
}

// dropRights(permitted: bigint, bounding: bigint), bit n for capability n: for every thread, and for good
void DropRights(const Napi::CallbackInfo& info) {
  bool lossless;
  Rights keep = {info[0].As<Napi::BigInt>().Uint64Value(&lossless), info[1].As<Napi::BigInt>().Uint64Value(&lossless)};
  if (int failed = RestrictAll(keep)) throw SystemError(info.Env(), "cannot give up rights", failed);
}
}  // namespace

void DefineRights(Napi::Env env, Napi::Object exports) {
  exports.Set("dropRights", Napi::Function::New(env, DropRights));
}

// SPDX-License-Identifier: Apache-2.0
// The system calls that are left to a worker, which has all files that it reads as descriptors. It takes no path to
// anything, makes no process and no socket, and reaches no other process.
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <napi.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <vector>

#include "maps.hh"
#include "object.hh"

namespace {
#if defined(__x86_64__)
constexpr uint32_t kArch = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArch = AUDIT_ARCH_AARCH64;
#else
constexpr uint32_t kArch = 0;
#endif

constexpr uint32_t kAllowed[] = {
    // open files
    SYS_read,
    SYS_readv,
    SYS_pread64,
    SYS_preadv,
    SYS_write,
    SYS_writev,
    SYS_pwrite64,
    SYS_pwritev,
    SYS_lseek,
    SYS_close,
    SYS_fstat,
    SYS_fstatfs,
    SYS_ftruncate,
    SYS_dup,
    SYS_dup3,
    SYS_fadvise64,
    // memory; V8 writes code
    SYS_mmap,
    SYS_munmap,
    SYS_mprotect,
    SYS_mremap,
    SYS_madvise,
    SYS_brk,
    SYS_mincore,
    SYS_membarrier,
#ifdef SYS_pkey_alloc
    SYS_pkey_alloc,
    SYS_pkey_free,
    SYS_pkey_mprotect,
#endif
    // threads of its own, and time
    SYS_futex,
    SYS_set_robust_list,
    SYS_rseq,
    SYS_exit,
    SYS_exit_group,
    SYS_sched_yield,
    SYS_sched_getaffinity,
    SYS_sched_getparam,
    SYS_sched_getscheduler,
    SYS_getpriority,
    SYS_gettid,
    SYS_getpid,
    SYS_nanosleep,
    SYS_clock_nanosleep,
    SYS_clock_gettime,
    SYS_clock_getres,
    SYS_gettimeofday,
    SYS_restart_syscall,
    SYS_getcpu,
    // signals to itself
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_sigaltstack,
    // the event loop, and the sockets that it has
    SYS_epoll_create1,
    SYS_epoll_ctl,
    SYS_epoll_pwait,
    SYS_eventfd2,
    SYS_pipe2,
    SYS_ppoll,
    SYS_sendmsg,
    SYS_recvmsg,
    SYS_sendto,
    SYS_recvfrom,
    SYS_shutdown,
    SYS_getsockopt,
    SYS_timerfd_create,
    SYS_timerfd_settime,
#ifdef SYS_epoll_wait
    SYS_epoll_wait,
    SYS_poll,
    SYS_pipe,
    SYS_dup2,
    SYS_time,
    SYS_arch_prctl,
#endif
    // facts
    SYS_getrandom,
    SYS_uname,
    SYS_sysinfo,
    SYS_getrusage,
    SYS_getuid,
    SYS_geteuid,
    SYS_getgid,
    SYS_getegid,
};

// Of fcntl(2). Not F_SETOWN: with F_SETSIG the kernel sends any signal to any process for it.
constexpr uint32_t kDescriptorCommands[] = {F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL, F_SETFL};

constexpr uint32_t kNumber = offsetof(seccomp_data, nr);
constexpr uint32_t kArchitecture = offsetof(seccomp_data, arch);
// Low half; both processors are little endian.
constexpr uint32_t Argument(int i) { return offsetof(seccomp_data, args) + 8 * i; }

constexpr uint32_t Errno(int error) { return SECCOMP_RET_ERRNO | static_cast<uint32_t>(error); }

class Filter {
 public:
  Filter() {
    Load(kArchitecture);
    ReturnUnless(kArch, SECCOMP_RET_KILL_PROCESS);
    Load(kNumber);
    for (uint32_t number : kAllowed) ReturnIf(number, SECCOMP_RET_ALLOW);
    // the C library then falls back to clone(), whose flags can be looked at
    ReturnIf(SYS_clone3, Errno(ENOSYS));
    AllowThreads();
    for (uint32_t command : kDescriptorCommands) AllowIf(SYS_fcntl, 1, command);
    AllowIf(SYS_tgkill, 0, static_cast<uint32_t>(getpid()));
    AllowIf(SYS_kill, 0, static_cast<uint32_t>(getpid()));
    AllowIf(SYS_prlimit64, 0, 0);
    AllowIf(SYS_prctl, 0, PR_SET_NAME);
    // anonymous memory gets a name
    AllowIf(SYS_prctl, 0, 0x53564d41);
    Return(Errno(EPERM));
  }

  // In all threads. The error number.
  int Install() {
    sock_fprog program = {static_cast<unsigned short>(code_.size()), code_.data()};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return errno;
    long result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
    return result == 0 ? 0 : result > 0 ? EAGAIN : errno;
  }

 private:
  void Load(uint32_t offset) { code_.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset)); }
  void Return(uint32_t what) { code_.push_back(BPF_STMT(BPF_RET | BPF_K, what)); }
  void ReturnIf(uint32_t value, uint32_t what) {
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1));
    Return(what);
  }
  void ReturnUnless(uint32_t value, uint32_t what) {
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 1, 0));
    Return(what);
  }
  // The system call, if its argument is `value`.
  void AllowIf(uint32_t number, int argument, uint32_t value) {
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 4));
    Load(Argument(argument));
    ReturnIf(value, SECCOMP_RET_ALLOW);
    Load(kNumber);
  }
  void AllowThreads() {
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4));
    Load(Argument(0));
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1));
    Return(SECCOMP_RET_ALLOW);
    Load(kNumber);
  }

  std::vector<sock_filter> code_;
};

// confine(): from now on no thread of this process can do more than compute on what it has; 0 or the error number
Napi::Value Confine(const Napi::CallbackInfo& info) {
  int error = kArch == 0 ? ENOSYS : Filter().Install();
  return Napi::Number::New(info.Env(), error);
}
}  // namespace

void DefineSeccomp(Napi::Env env, Napi::Object exports) { exports.Set("confine", Napi::Function::New(env, Confine)); }

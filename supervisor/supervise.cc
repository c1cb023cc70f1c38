// SPDX-License-Identifier: Apache-2.0
// supervise PROGRAM ARGUMENT...: starts a program, and again when it was killed, crashed, or asks for it.
//
// It stands above `everyframe run`, whose agent is root and reads what strangers wrote: when that dies, its collector
// and all that it holds live on, and the agent starts again. No Node of its own: this takes 1 MiB where that takes 40.
//
// The program finds two descriptors by EVERYFRAME_SUPERVISOR=LIFE,NOTE and hands LIFE on to what it starts:
//   LIFE  a pipe to read: what happened to the program, a line of JSON each; its end is the end of all of this
//   NOTE  a file in memory, for what a successor has to know; it begins with the process ID of what outlives the
//   program
// How an end is taken: exit code 75 (EX_TEMPFAIL) asks for a new start; a signal is one; so is any failure once NOTE is
// not empty, since then something lives that needs the program. Everything else is passed through as the own end.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {
constexpr int kStartAgain = 75;
constexpr int64_t kFirstWaitMs = 1000;
constexpr int64_t kMaxWaitMs = 128'000;
// A life that long forgives the ones before it.
constexpr int64_t kCalmMs = 300'000;
// Nothing lives yet that needs the program: then it may simply not be able to run here.
constexpr int kMaxFirstTries = 5;
// For what outlives the program to end in order.
constexpr int64_t kEndMs = 8000;

int64_t Now(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return int64_t(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
}

// Whether standard error is a stream of journald, by device and inode (systemd.exec(5)).
bool IsJournal() {
  const char* stream = getenv("JOURNAL_STREAM");
  struct stat errors;
  return stream && fstat(2, &errors) == 0 &&
         std::to_string(errors.st_dev) + ":" + std::to_string(errors.st_ino) == stream;
}

std::string Escaped(const std::string& text) {
  std::string escaped;
  for (char c : text) {
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += static_cast<unsigned char>(c) < ' ' ? '?' : c;
  }
  return escaped;
}

// As the agent logs (cli/program/logger.ts): for people on a terminal, JSON elsewhere, for journald with its priority.
void Log(const std::string& text) {
  if (isatty(2)) {
    fprintf(stderr, "everyframe: %s\n", text.c_str());
    return;
  }
  int64_t ms = Now(CLOCK_REALTIME);
  time_t seconds = ms / 1000;
  tm utc;
  char time[32];
  strftime(time, sizeof(time), "%Y-%m-%dT%H:%M:%S", gmtime_r(&seconds, &utc));
  fprintf(stderr, "%s{\"level\":\"error\",\"time\":\"%s.%03dZ\",\"name\":\"everyframe\",\"msg\":\"%s\"}\n",
          IsJournal() ? "<3>" : "", time, int(ms % 1000), Escaped(text).c_str());
}

[[noreturn]] void Fail(const char* what) {
  Log(std::string(what) + ": " + strerror(errno));
  exit(1);
}

struct Signals {
  sigset_t taken;
  sigset_t before;
};

// Those that end it, those that it passes on, and the end of a child.
Signals BlockSignals() {
  Signals signals;
  sigemptyset(&signals.taken);
  for (int signal : {SIGCHLD, SIGTERM, SIGINT, SIGUSR1, SIGUSR2}) sigaddset(&signals.taken, signal);
  struct sigaction hangup;
  sigaction(SIGHUP, nullptr, &hangup);
  // nohup(1) has it ignored
  if (hangup.sa_handler != SIG_IGN) sigaddset(&signals.taken, SIGHUP);
  sigprocmask(SIG_BLOCK, &signals.taken, &signals.before);
  signal(SIGPIPE, SIG_IGN);
  return signals;
}

class Supervisor {
 public:
  Supervisor(char** program, const Signals& signals) : program_(program), signals_(signals) {
    int pipe_fds[2];
    if (pipe(pipe_fds) || (note_ = memfd_create("everyframe-note", 0)) < 0) Fail("cannot start");
    // not for a successor that is somebody else
    fchmod(note_, 0600);
    life_ = pipe_fds[0];
    told_ = pipe_fds[1];
    fcntl(told_, F_SETFD, FD_CLOEXEC);
    fcntl(told_, F_SETFL, O_NONBLOCK);
    setenv("EVERYFRAME_SUPERVISOR", (std::to_string(life_) + "," + std::to_string(note_)).c_str(), 1);
    // what the program has started becomes a child of this when the program is gone
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  }

  // The end of the program, as waitpid(2) has it; 0 where it was told to stop while there was none.
  int Run() {
    for (;;) {
      Start();
      if (child_ > 0) {
        Tell("running");
        while (child_ > 0) Take(-1);
        if (stopping_ || !IsFailure()) return End(status_);
      }
      PlanNext();
      Tell("waiting");
      for (int64_t ms; !stopping_ && (ms = next_try_ - Now(CLOCK_MONOTONIC)) > 0;) Take(ms);
      if (stopping_) return End(0);
      is_waiting_ = false;
    }
  }

 private:
  // Without a child where the machine has no room for one, as when memory runs out: only what has never run ends by
  // that.
  void Start() {
    started_ms_ = Now(CLOCK_REALTIME);
    started_ = Now(CLOCK_MONOTONIC);
    pid_t parent = getpid();
    child_ = fork();
    start_error_ = child_ < 0 ? errno : 0;
    if (child_ < 0 && restarts_ == 0) Fail("cannot start a process");
    if (child_ != 0) return;
    // without this it would live on when this is killed
    prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
    if (getppid() != parent) _exit(1);
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, &signals_.before, nullptr);
    execvp(program_[0], program_);
    Log(std::string("cannot run ") + program_[0] + ": " + strerror(errno));
    _exit(127);
  }

  // One signal, if one comes within that time; -1: any time.
  void Take(int64_t ms) {
    siginfo_t info;
    timespec limit = {ms / 1000, ms % 1000 * 1'000'000};
    int signal = ms < 0 ? sigwaitinfo(&signals_.taken, &info) : sigtimedwait(&signals_.taken, &info, &limit);
    if (signal == SIGCHLD) Reap();
    if (signal <= 0 || signal == SIGCHLD) return;
    if (signal != SIGUSR1 && signal != SIGUSR2) stopping_ = true;
    // a terminal has sent it to the whole group
    if (child_ > 0 && info.si_code != SI_KERNEL) kill(child_, signal);
  }

  void Reap() {
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
      if (pid != child_) continue;
      child_ = 0;
      status_ = status;
    }
  }

  void PlanNext() {
    if (Now(CLOCK_MONOTONIC) - started_ >= kCalmMs) wait_ = kFirstWaitMs;
    ended_ms_ = Now(CLOCK_REALTIME);
    next_try_ = Now(CLOCK_MONOTONIC) + wait_;
    next_try_ms_ = ended_ms_ + wait_;
    is_waiting_ = true;
    restarts_++;
    std::string what =
        start_error_ ? std::string("cannot be started (") + strerror(start_error_) : "ended (" + HowItEnded();
    Log("the agent " + what + "): it starts again in " + std::to_string(wait_ / 1000) + " s, restart " +
        std::to_string(restarts_) + "; nothing is sampled meanwhile");
    wait_ = std::min(wait_ * 2, kMaxWaitMs);
  }

  bool IsFailure() const {
    bool has_left_something = NotedProcess() > 0;
    if (!has_left_something && restarts_ >= kMaxFirstTries) return false;
    if (WIFEXITED(status_))
      return WEXITSTATUS(status_) == kStartAgain || (has_left_something && WEXITSTATUS(status_) != 0);
    // by hand, before it could take the signal
    return WTERMSIG(status_) != SIGTERM && WTERMSIG(status_) != SIGINT && WTERMSIG(status_) != SIGHUP;
  }

  std::string HowItEnded() const {
    if (WIFEXITED(status_) && WEXITSTATUS(status_) == kStartAgain) return "with its collector";
    if (WIFEXITED(status_)) return "exit code " + std::to_string(WEXITSTATUS(status_));
    int signal = WTERMSIG(status_);
    std::string name = SignalName(signal);
    return signal == SIGKILL ? name + ", as when memory runs out" : name;
  }

  static std::string SignalName(int signal) {
    const char* name = sigabbrev_np(signal);
    return name ? std::string("SIG") + name : "signal " + std::to_string(signal);
  }

  // A line to who reads LIFE; dropped where nobody has read the ones before.
  void Tell(const char* state) {
    std::string line = "{\"state\":\"" + std::string(state) + "\",\"restarts\":" + std::to_string(restarts_) +
                       ",\"startedMs\":" + std::to_string(started_ms_);
    if (restarts_ > 0) {
      bool exited = WIFEXITED(status_);
      line += ",\"lastExit\":{\"code\":" + (exited ? std::to_string(WEXITSTATUS(status_)) : "null") +
              ",\"signal\":" + (exited ? "null" : "\"" + SignalName(WTERMSIG(status_)) + "\"") +
              ",\"atMs\":" + std::to_string(ended_ms_) + "}";
    }
    if (is_waiting_) line += ",\"nextTryMs\":" + std::to_string(next_try_ms_);
    line += "}\n";
    if (write(told_, line.data(), line.size()) < 0) return;
  }

  // What outlives the program, 0: nothing that is noted.
  pid_t NotedProcess() const {
    char text[16] = {};
    return pread(note_, text, sizeof(text) - 1, 0) > 0 ? atoi(text) : 0;
  }

  // Ends what is left, in order if it will, and returns the end to pass through.
  int End(int status) {
    Tell("stopping");
    close(told_);
    int64_t end = Now(CLOCK_MONOTONIC) + kEndMs;
    pid_t left = NotedProcess();
    while (waitpid(-1, nullptr, WNOHANG) >= 0) {
      int64_t ms = end - Now(CLOCK_MONOTONIC);
      if (ms <= 0) break;
      Take(std::min<int64_t>(ms, 100));
    }
    // a child of this, and not another process that has its number by now
    if (left > 0 && waitpid(left, nullptr, WNOHANG) == 0) kill(left, SIGKILL);
    return status;
  }

  char** program_;
  Signals signals_;
  int life_ = -1, told_ = -1, note_ = -1;
  pid_t child_ = 0;
  int status_ = 0;
  int start_error_ = 0;
  bool stopping_ = false, is_waiting_ = false;
  int restarts_ = 0;
  int64_t wait_ = kFirstWaitMs;
  int64_t started_ = 0, next_try_ = 0;                       // CLOCK_MONOTONIC
  int64_t started_ms_ = 0, ended_ms_ = 0, next_try_ms_ = 0;  // Unix time
};
}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: supervise PROGRAM [ARGUMENT...]\n");
    return 2;
  }
  int status = Supervisor(argv + 1, BlockSignals()).Run();
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  // its end is ours, without a core of our own
  rlimit none = {};
  setrlimit(RLIMIT_CORE, &none);
  int last = WTERMSIG(status);
  signal(last, SIG_DFL);
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_UNBLOCK, &all, nullptr);
  raise(last);
  return 128 + last;
}

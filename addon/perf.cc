// SPDX-License-Identifier: Apache-2.0
// cpu-clock perf events and what the running kernel offers.
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "maps.hh"
#include "object.hh"
#include "uprobe-multi.hh"
#include "user-reads.hh"

namespace {
// perfOpen(cpu, { type, config, period, frequency, includeIdle }, programFd): fd of a disabled event that runs the
// program after each `period` of it, or, where that is 0, `frequency` times a second
Napi::Value Open(const Napi::CallbackInfo& info) {
  Napi::Object event = info[1].As<Napi::Object>();
  auto number = [&](const char* name) { return event.Get(name).As<Napi::Number>().Int64Value(); };
  int cpu = info[0].As<Napi::Number>().Int32Value();
  perf_event_attr attr = {};
  attr.size = sizeof(attr);
  attr.type = number("type");
  attr.config = number("config");
  attr.freq = !number("period");
  if (attr.freq)
    attr.sample_freq = number("frequency");
  else
    attr.sample_period = number("period");
  attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED;
  attr.disabled = 1;
  attr.exclude_idle = !event.Get("includeIdle").As<Napi::Boolean>().Value();
  int fd = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
  if (fd < 0) throw SystemError(info.Env(), "cannot open the event on CPU " + std::to_string(cpu), errno);
  if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, info[2].As<Napi::Number>().Int32Value())) {
    int error = errno;
    close(fd);
    throw SystemError(info.Env(), "cannot attach the sampler to the event of CPU " + std::to_string(cpu), error);
  }
  return Napi::Number::New(info.Env(), fd);
}

// Starts the events one after another, so that the CPUs' timers are spread over one period.
class Enable : public Napi::AsyncWorker {
 public:
  Enable(Napi::Env env, std::vector<int> fds, uint64_t gap_ns)
      : AsyncWorker(env), deferred_(Napi::Promise::Deferred::New(env)), fds_(std::move(fds)), gap_ns_(gap_ns) {}
  Napi::Promise Promise() const { return deferred_.Promise(); }
  void Execute() override {
    timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    for (int fd : fds_) {
      if (ioctl(fd, PERF_EVENT_IOC_ENABLE, 0)) failed_++;
      uint64_t ns = next.tv_nsec + gap_ns_;
      next.tv_sec += ns / 1000000000;
      next.tv_nsec = ns % 1000000000;
      while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, nullptr) == EINTR) {
      }
    }
  }
  void OnOK() override { deferred_.Resolve(Napi::Number::New(Env(), failed_)); }
  void OnError(const Napi::Error& error) override { deferred_.Reject(error.Value()); }

 private:
  Napi::Promise::Deferred deferred_;
  std::vector<int> fds_;
  uint64_t gap_ns_;
  uint32_t failed_ = 0;
};

std::vector<int> Fds(Napi::Value value) {
  Napi::Array array = value.As<Napi::Array>();
  std::vector<int> fds;
  for (uint32_t i = 0; i < array.Length(); i++) fds.push_back(array.Get(i).As<Napi::Number>().Int32Value());
  return fds;
}

// perfEnable(fds, gapNs): Promise<number of events that could not be started>
Napi::Value EnableAll(const Napi::CallbackInfo& info) {
  auto* worker = new Enable(info.Env(), Fds(info[0]), info[1].As<Napi::Number>().Int64Value());
  worker->Queue();
  return worker->Promise();
}

Napi::Value DisableAll(const Napi::CallbackInfo& info) {
  for (int fd : Fds(info[0])) ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
  return info.Env().Undefined();
}

// perfEnabledNs(fd): how long the event has been enabled, which stands still for good once its CPU has been off; -1
// where the kernel does not say
Napi::Value EnabledNs(const Napi::CallbackInfo& info) {
  uint64_t count_and_time[2];
  ssize_t bytes = read(info[0].As<Napi::Number>().Int32Value(), count_and_time, sizeof(count_and_time));
  bool is_read = bytes == sizeof(count_and_time);
  return Napi::Number::New(info.Env(), is_read ? static_cast<double>(count_and_time[1]) : -1);
}

Napi::Value CloseFd(const Napi::CallbackInfo& info) {
  close(info[0].As<Napi::Number>().Int32Value());
  return info.Env().Undefined();
}

// The bits that are left of a return address, all set, once the processor has taken the signature of pointer
// authentication away (xpaclri; bit 55 says that it is not a kernel address). A processor without it does nothing.
uint64_t CodeAddressMask() {
#ifdef __aarch64__
  uint64_t address = ~(uint64_t{1} << 55);
  asm("mov x30, %0\n\thint #7\n\tmov %0, x30" : "+r"(address) : : "x30");
  return address;
#else
  return ~uint64_t{0};
#endif
}

// probeFeatures(): { rdonlyCast, kernelReads, taskWork, taskWorkImpl, taskPtRegs, pageBytes, codeAddressMask }: each
// found by asking the kernel or the processor, not by its version
Napi::Value Probe(const Napi::CallbackInfo& info) {
  Napi::Object result = Napi::Object::New(info.Env());
  btf* kernel = btf__load_vmlinux_btf();
  if (!kernel)
    throw SystemError(info.Env(), "cannot read the kernel's type information /sys/kernel/btf/vmlinux", errno);
  bool cast = btf__find_by_name_kind(kernel, "bpf_rdonly_cast", BTF_KIND_FUNC) > 0;
  bool work = btf__find_by_name_kind(kernel, "bpf_task_work_schedule_resume", BTF_KIND_FUNC) > 0;
  bool work_impl = btf__find_by_name_kind(kernel, "bpf_task_work_schedule_resume_impl", BTF_KIND_FUNC) > 0;
  btf__free(kernel);
  int regs = libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, BPF_FUNC_task_pt_regs, nullptr);
  result.Set("rdonlyCast", cast);
  result.Set("kernelReads", HasKernelReads());
  result.Set("taskPtRegs", regs == 1);
  result.Set("taskWork", work);
  result.Set("taskWorkImpl", work_impl);
  result.Set("pageBytes", static_cast<double>(sysconf(_SC_PAGESIZE)));
  result.Set("codeAddressMask", Napi::BigInt::New(info.Env(), CodeAddressMask()));
  TakeLibbpfLog();
  return result;
}

// hasUprobeMulti(): boolean
Napi::Value UprobeMulti(const Napi::CallbackInfo& info) { return Napi::Boolean::New(info.Env(), HasUprobeMulti()); }

uint64_t ReadClock(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return uint64_t(now.tv_sec) * 1000000000 + now.tv_nsec;
}

// monotonicNs(): bigint, CLOCK_MONOTONIC, the clock of the records
Napi::Value MonotonicNs(const Napi::CallbackInfo& info) {
  return Napi::BigInt::New(info.Env(), ReadClock(CLOCK_MONOTONIC));
}

// threadCpuMicros(): number, CPU time of the calling thread
Napi::Value ThreadCpuMicros(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), ReadClock(CLOCK_THREAD_CPUTIME_ID) / 1e3);
}

// CPU time of all threads of a process; negative where there is none.
double CpuMicrosOf(uint32_t pid) {
  // its clock, as clock_getcpuclockid(3) makes it: 2 stands for run time
  clockid_t clock = clockid_t(~pid) << 3 | 2;
  timespec now;
  return clock_gettime(clock, &now) ? -1 : now.tv_sec * 1e6 + now.tv_nsec / 1e3;
}

double CpuMicrosOf(const rusage& usage) {
  return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 + usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
}

// processCpuMicros(pid): number | undefined, CPU time of all threads of a process
Napi::Value ProcessCpuMicros(const Napi::CallbackInfo& info) {
  double micros = CpuMicrosOf(info[0].As<Napi::Number>().Uint32Value());
  return micros < 0 ? info.Env().Undefined() : Napi::Number::New(info.Env(), micros);
}

// familyCpuMicros(pids): number, CPU time of this process, of its children that have ended, and of those that are named
Napi::Value FamilyCpuMicros(const Napi::CallbackInfo& info) {
  rusage own, ended;
  getrusage(RUSAGE_SELF, &own);
  getrusage(RUSAGE_CHILDREN, &ended);
  double micros = CpuMicrosOf(own) + CpuMicrosOf(ended);
  Napi::Array pids = info[0].As<Napi::Array>();
  for (uint32_t i = 0; i < pids.Length(); i++)
    micros += std::max(CpuMicrosOf(pids.Get(i).As<Napi::Number>().Uint32Value()), 0.0);
  return Napi::Number::New(info.Env(), micros);
}

// unixOffsetNs(): bigint, what to add to CLOCK_MONOTONIC for Unix time, as of now
Napi::Value UnixOffsetNs(const Napi::CallbackInfo& info) {
  uint64_t before = ReadClock(CLOCK_MONOTONIC);
  uint64_t unix_time = ReadClock(CLOCK_REALTIME);
  uint64_t after = ReadClock(CLOCK_MONOTONIC);
  return Napi::BigInt::New(info.Env(), unix_time - before - (after - before) / 2);
}
}  // namespace

void DefinePerf(Napi::Env env, Napi::Object exports) {
  exports.Set("perfOpen", Napi::Function::New(env, Open));
  exports.Set("perfEnable", Napi::Function::New(env, EnableAll));
  exports.Set("perfDisable", Napi::Function::New(env, DisableAll));
  exports.Set("perfEnabledNs", Napi::Function::New(env, EnabledNs));
  exports.Set("closeFd", Napi::Function::New(env, CloseFd));
  exports.Set("probeFeatures", Napi::Function::New(env, Probe));
  exports.Set("hasUprobeMulti", Napi::Function::New(env, UprobeMulti));
  exports.Set("monotonicNs", Napi::Function::New(env, MonotonicNs));
  exports.Set("threadCpuMicros", Napi::Function::New(env, ThreadCpuMicros));
  exports.Set("processCpuMicros", Napi::Function::New(env, ProcessCpuMicros));
  exports.Set("familyCpuMicros", Napi::Function::New(env, FamilyCpuMicros));
  exports.Set("unixOffsetNs", Napi::Function::New(env, UnixOffsetNs));
}

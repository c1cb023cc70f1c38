// SPDX-License-Identifier: Apache-2.0
// BPF maps by descriptor. Keys and values are Buffers of exactly the map's sizes (the caller knows them from
// the generated records). Calls that may wait for an RCU grace period run on the thread pool.
#include "maps.hh"

#include <bpf/bpf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "object.hh"

namespace {
using Bytes = Napi::Buffer<uint8_t>;

int Fd(const Napi::CallbackInfo& info) { return info[0].As<Napi::Number>().Int32Value(); }

// mapLookup(fd, key, valueBytes): Buffer | undefined
Napi::Value Lookup(const Napi::CallbackInfo& info) {
  auto key = info[1].As<Bytes>();
  auto value = Bytes::New(info.Env(), info[2].As<Napi::Number>().Uint32Value());
  if (bpf_map_lookup_elem(Fd(info), key.Data(), value.Data())) {
    if (errno == ENOENT) return info.Env().Undefined();
    throw SystemError(info.Env(), "cannot read a BPF map", errno);
  }
  return value;
}

// mapUpdate(fd, key, value, flags)
Napi::Value Update(const Napi::CallbackInfo& info) {
  auto key = info[1].As<Bytes>();
  auto value = info[2].As<Bytes>();
  if (bpf_map_update_elem(Fd(info), key.Data(), value.Data(), info[3].As<Napi::Number>().Uint32Value()))
    throw SystemError(info.Env(), "cannot write a BPF map", errno);
  return info.Env().Undefined();
}

// mapDelete(fd, key): boolean, false where there was no such key
Napi::Value Delete(const Napi::CallbackInfo& info) {
  auto key = info[1].As<Bytes>();
  if (bpf_map_delete_elem(Fd(info), key.Data())) {
    if (errno == ENOENT) return Napi::Boolean::New(info.Env(), false);
    throw SystemError(info.Env(), "cannot delete from a BPF map", errno);
  }
  return Napi::Boolean::New(info.Env(), true);
}

// mapNextKey(fd, key | undefined, keyBytes): Buffer | undefined
Napi::Value NextKey(const Napi::CallbackInfo& info) {
  const void* key = info[1].IsUndefined() ? nullptr : info[1].As<Bytes>().Data();
  auto next = Bytes::New(info.Env(), info[2].As<Napi::Number>().Uint32Value());
  if (bpf_map_get_next_key(Fd(info), key, next.Data())) {
    if (errno == ENOENT) return info.Env().Undefined();
    throw SystemError(info.Env(), "cannot walk a BPF map", errno);
  }
  return next;
}

// mapReadAll(fd, keyBytes, valueBytes): Buffer, each key with its value behind it; of a hash table. Entries that come
// or go meanwhile may be missing.
Napi::Value ReadAll(const Napi::CallbackInfo& info) {
  constexpr uint32_t kAtOnce = 4096;
  size_t key_bytes = info[1].As<Napi::Number>().Uint32Value();
  size_t value_bytes = info[2].As<Napi::Number>().Uint32Value();
  std::vector<uint8_t> keys(kAtOnce * key_bytes), values(kAtOnce * value_bytes), all;
  uint32_t in = 0, out = 0;
  for (bool is_first = true, is_last = false; !is_last; is_first = false) {
    uint32_t count = kAtOnce;
    int error =
        bpf_map_lookup_batch(Fd(info), is_first ? nullptr : &in, &out, keys.data(), values.data(), &count, nullptr);
    if (error && errno != ENOENT) throw SystemError(info.Env(), "cannot read a BPF map", errno);
    is_last = error;
    in = out;
    for (uint32_t i = 0; i < count; i++) {
      all.insert(all.end(), &keys[i * key_bytes], &keys[i * key_bytes] + key_bytes);
      all.insert(all.end(), &values[i * value_bytes], &values[i * value_bytes] + value_bytes);
    }
  }
  return Bytes::Copy(info.Env(), all.data(), all.size());
}

// mapMemory(fd, bytes): ArrayBuffer, the values of an array that was made with BPF_F_MMAPABLE; BPF and user space write
// to it at the same time.
Napi::Value MapMemory(const Napi::CallbackInfo& info) {
  size_t bytes = info[1].As<Napi::Number>().Uint32Value();
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, Fd(info), 0);
  if (memory == MAP_FAILED) throw SystemError(info.Env(), "cannot map a BPF map", errno);
  return Napi::ArrayBuffer::New(info.Env(), memory, bytes, [bytes](Napi::Env, void* data) { munmap(data, bytes); });
}

// sumPerCpu(fd, first, entries): Float64Array, entries of a per-CPU array of u64 from the first on, summed over the
// CPUs
Napi::Value SumPerCpu(const Napi::CallbackInfo& info) {
  uint32_t first = info[1].As<Napi::Number>().Uint32Value();
  uint32_t entries = info[2].As<Napi::Number>().Uint32Value();
  int cpus = libbpf_num_possible_cpus();
  if (cpus <= 0) throw SystemError(info.Env(), "cannot count the CPUs", -cpus);
  std::vector<uint64_t> values(cpus);
  auto sums = Napi::Float64Array::New(info.Env(), entries);
  for (uint32_t i = 0; i < entries; i++) {
    uint32_t key = first + i;
    if (bpf_map_lookup_elem(Fd(info), &key, values.data()))
      throw SystemError(info.Env(), "cannot read a counter", errno);
    uint64_t sum = 0;
    for (uint64_t value : values) sum += value;
    sums[i] = static_cast<double>(sum);
  }
  return sums;
}

// Makes the inner map of one file and publishes it. Publishing waits for a grace period, hence off-thread.
class InstallTable : public Napi::AsyncWorker {
 public:
  InstallTable(Napi::Env env, int outer, uint32_t index, Bytes image, uint32_t block)
      : AsyncWorker(env),
        deferred_(Napi::Promise::Deferred::New(env)),
        outer_(outer),
        index_(index),
        image_(Napi::Persistent(image)),
        data_(image.Data()),
        bytes_(image.Length()),
        block_(block) {}
  Napi::Promise Promise() const { return deferred_.Promise(); }

  void Execute() override {
    uint32_t blocks = bytes_ / block_;
    LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_INNER_MAP);
    int inner = bpf_map_create(BPF_MAP_TYPE_ARRAY, "ef_table", 4, block_, blocks, &options);
    if (inner < 0)
      return SetError("cannot create an unwind table of " + std::to_string(bytes_) + " bytes: " + strerror(errno));
    for (uint32_t i = 0; i < blocks; i++) {
      if (bpf_map_update_elem(inner, &i, data_ + size_t{i} * block_, BPF_ANY)) {
        SetError(std::string("cannot fill an unwind table: ") + strerror(errno));
        close(inner);
        return;
      }
    }
    if (bpf_map_update_elem(outer_, &index_, &inner, BPF_ANY))
      SetError(std::string("cannot publish an unwind table: ") + strerror(errno));
    close(inner);
  }
  void OnOK() override { deferred_.Resolve(Env().Undefined()); }
  void OnError(const Napi::Error& error) override { deferred_.Reject(error.Value()); }

 private:
  Napi::Promise::Deferred deferred_;
  int outer_;
  uint32_t index_;
  Napi::Reference<Bytes> image_;  // keeps the bytes alive while the pool thread copies them
  const uint8_t* data_;
  size_t bytes_;
  uint32_t block_;
};

// installTable(outerFd, index, image, blockBytes): Promise<void>
Napi::Value Install(const Napi::CallbackInfo& info) {
  auto image = info[2].As<Bytes>();
  uint32_t block = info[3].As<Napi::Number>().Uint32Value();
  if (!block || image.Length() == 0 || image.Length() % block)
    throw Napi::RangeError::New(info.Env(), "a table image must be whole blocks");
  auto* worker = new InstallTable(info.Env(), Fd(info), info[1].As<Napi::Number>().Uint32Value(), image, block);
  worker->Queue();
  return worker->Promise();
}

// The kernel ends each removal with a grace period, some ten milliseconds. Those that begin together share one, hence a
// thread for each; of the thread pool all of them take one.
class RemoveTables : public Napi::AsyncWorker {
 public:
  RemoveTables(Napi::Env env, int outer, std::vector<uint32_t> indices)
      : AsyncWorker(env), deferred_(Napi::Promise::Deferred::New(env)), outer_(outer), indices_(std::move(indices)) {}
  Napi::Promise Promise() const { return deferred_.Promise(); }
  void Execute() override {
    std::atomic<int> error = 0;
    for (size_t begin = 0; begin < indices_.size(); begin += kAtOnce) {
      size_t end = std::min(begin + kAtOnce, indices_.size());
      std::vector<std::jthread> others;
      for (size_t i = begin + 1; i < end; i++) others.emplace_back([&, i] { RemoveOne(i, error); });
      RemoveOne(begin, error);
    }
    if (error) SetError(std::string("cannot remove an unwind table: ") + strerror(error));
  }
  void OnOK() override { deferred_.Resolve(Env().Undefined()); }
  void OnError(const Napi::Error& error) override { deferred_.Reject(error.Value()); }

 private:
  static constexpr size_t kAtOnce = 32;
  void RemoveOne(size_t i, std::atomic<int>& error) const {
    if (bpf_map_delete_elem(outer_, &indices_[i]) && errno != ENOENT) error = errno;
  }
  Napi::Promise::Deferred deferred_;
  int outer_;
  std::vector<uint32_t> indices_;
};

// removeTables(outerFd, indices: Uint32Array): Promise<void>
Napi::Value Remove(const Napi::CallbackInfo& info) {
  auto indices = info[1].As<Napi::Uint32Array>();
  std::vector<uint32_t> copy(indices.Data(), indices.Data() + indices.ElementLength());
  auto* worker = new RemoveTables(info.Env(), Fd(info), std::move(copy));
  worker->Queue();
  return worker->Promise();
}
}  // namespace

void DefineMaps(Napi::Env env, Napi::Object exports) {
  exports.Set("mapLookup", Napi::Function::New(env, Lookup));
  exports.Set("mapUpdate", Napi::Function::New(env, Update));
  exports.Set("mapDelete", Napi::Function::New(env, Delete));
  exports.Set("mapNextKey", Napi::Function::New(env, NextKey));
  exports.Set("mapReadAll", Napi::Function::New(env, ReadAll));
  exports.Set("mapMemory", Napi::Function::New(env, MapMemory));
  exports.Set("sumPerCpu", Napi::Function::New(env, SumPerCpu));
  exports.Set("installTable", Napi::Function::New(env, Install));
  exports.Set("removeTables", Napi::Function::New(env, Remove));
}

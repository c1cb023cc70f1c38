// SPDX-License-Identifier: Apache-2.0
#include <napi.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <vector>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace {
// Smaller ones are not worth a system call.
constexpr uint64_t kMinResidentKib = 512;

struct Mapping {
  uint64_t start = 0;
  uint64_t end = 0;
  bool is_of_file = false;
  bool is_writable = false;
  uint64_t resident_kib = 0;
  // Pages that are ours alone, such as what the dynamic linker has relocated.
  uint64_t anonymous_kib = 0;
};

// Its pages come back from the page cache as they were.
bool IsDroppable(const Mapping& mapping) {
  return mapping.is_of_file && !mapping.is_writable && mapping.anonymous_kib == 0 &&
         mapping.resident_kib >= kMinResidentKib;
}

// KiB dropped.
uint64_t Drop(const Mapping& mapping) {
  if (!IsDroppable(mapping)) return 0;
  void* start = reinterpret_cast<void*>(mapping.start);
  return madvise(start, mapping.end - mapping.start, MADV_DONTNEED) ? 0 : mapping.resident_kib;
}

// V8 begins to mark, in steps between other work, once objects are said to hold that much more outside of its heap
// since it last did. A collection that is asked for by name stops the thread for as long as all of it takes.
constexpr int64_t kExternalPressure = 65 << 20;

void BeginCollection(const Napi::CallbackInfo& info) {
  Napi::MemoryManagement::AdjustExternalMemory(info.Env(), kExternalPressure);
  Napi::MemoryManagement::AdjustExternalMemory(info.Env(), -kExternalPressure);
}

// Gives back the pages that malloc keeps without need, of all threads' arenas. Nothing to do with other C libraries.
void ReleaseFreeMemory(const Napi::CallbackInfo&) {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

// What the last look found droppable. A worker, which is confined after its first look, can't look again; it loads no
// library from then on, so that nothing else comes to lie there.
std::vector<Mapping>& KnownCode() {
  static std::vector<Mapping> known;
  return known;
}

// Unmaps the pages of executables that this process only reads: those that starting needed and nothing since. The
// others are mapped again when they are touched, 16 at a time. Returns how many bytes were unmapped; 0 where that can't
// be known.
Napi::Value ReleaseCode(const Napi::CallbackInfo& info) {
  std::unique_ptr<FILE, int (*)(FILE*)> smaps(fopen("/proc/self/smaps", "re"), fclose);
  if (!smaps) {
    for (const Mapping& mapping : KnownCode()) Drop(mapping);
    return Napi::Number::New(info.Env(), 0);
  }
  KnownCode().clear();
  char line[4352];
  Mapping mapping;
  uint64_t dropped_kib = 0;
  while (fgets(line, sizeof(line), smaps.get())) {
    unsigned long start = 0, end = 0, kib = 0;
    char rights[5] = "", path = 0;
    int fields = sscanf(line, "%lx-%lx %4s %*x %*x:%*x %*u %c", &start, &end, rights, &path);
    if (fields >= 3) {
      dropped_kib += Drop(mapping);
      if (IsDroppable(mapping)) KnownCode().push_back(mapping);
      mapping = {.start = start, .end = end, .is_of_file = fields == 4 && path == '/', .is_writable = rights[1] == 'w'};
    } else if (sscanf(line, "Rss: %lu", &kib) == 1) {
      mapping.resident_kib = kib;
    } else if (sscanf(line, "Anonymous: %lu", &kib) == 1) {
      mapping.anonymous_kib = kib;
    }
  }
  dropped_kib += Drop(mapping);
  return Napi::Number::New(info.Env(), dropped_kib * 1024.0);
}
}  // namespace

void DefineMemory(Napi::Env env, Napi::Object exports) {
  exports.Set("beginCollection", Napi::Function::New(env, BeginCollection));
  exports.Set("releaseFreeMemory", Napi::Function::New(env, ReleaseFreeMemory));
  exports.Set("releaseCode", Napi::Function::New(env, ReleaseCode));
}

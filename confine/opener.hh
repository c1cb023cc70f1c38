// SPDX-License-Identifier: Apache-2.0
// Opens files for a worker that can open nothing itself. Asked over a socket
// that keeps messages apart, one request at a time, it answers with an Answer
// and, where something was opened, its descriptor.
//
// It may wait for ever, for a file system that never answers: it is a process
// of its own, and is killed with its worker.
#pragma once
#include <cstdint>
#include <string>

namespace confine {
// First byte of a request; what follows.
enum class Ask : char {
  // "UID:GID:MODE:READER:GROUP" as of an Owner (addon/open-below.hh) or "-", ' ', path; with the descriptor of a root,
  // without one below our own. Answers what it leads to.
  kLook = 'l',
  kOpen = 'o',        // the file that was looked at last, for reading; not where that was without an owner
  kOfProcess = 'r',   // PID, '/', "root", "stat" or "status"
  kCacheRead = 'c',   // name
  kCacheNew = 'n',    // name: a new file of that name
  kCacheKeep = 'k',   // name, '\0', other name: renames it, in place of what was there
  kCacheDrop = 'd',   // name
  kCacheTouch = 't',  // name: it was used now
  kCachePrune = 'p',  // bytes, ' ', files, ' ', folder, '/', ending: the least
                      // recently used of them leave
  kScratch = 'x',     // a new file without a name
};

// As agent/worker-main/opener-client.ts reads it.
struct Answer {
  int32_t error = 0;  // errno; 0: fine
  uint32_t mode = 0;
  uint64_t dev = 0;
  uint64_t ino = 0;
  uint64_t size = 0;
  int64_t ctime_ns = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint32_t is_pseudo = 0;  // of /proc, /sys or the like
};

struct OpenerPlaces {
  std::string cache;    // '' where nothing is kept
  std::string scratch;  // '' where no disk can be written to
};

// Until the other end is closed.
void ServeOpener(int socket, const OpenerPlaces& places);
}  // namespace confine

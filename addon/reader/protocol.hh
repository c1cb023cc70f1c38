// SPDX-License-Identifier: Apache-2.0
// Between the agent and its reader: one request at a time over a socket of kind
// SEQPACKET, and an answer to each.
#ifndef EVERYFRAME_READER_PROTOCOL_HH
#define EVERYFRAME_READER_PROTOCOL_HH

#include <cstdint>

constexpr int kReaderSocket = 3;
constexpr uint32_t kMaxRead = 64 << 10;

enum class ReaderKind : uint32_t {
  // Memory of a process.
  kMemory = 1,
  // The next bytes of a file of its folder in /proc.
  kFile = 2,
  // Opens a regular file by its path for reading, and reads its first and last
  // bytes; anything else is only looked at.
  kOpen = 3,
  // Looks at a path.
  kStat = 4,
};

struct ReaderRequest {
  ReaderKind kind;
  int32_t pid;
  uint64_t address;
  uint32_t length;
  // What is open from an earlier request is used again within one session.
  uint32_t session;
  // Ends with NUL; what is behind it is not sent.
  char name[4096];
};

// Of kOpen and kStat, in the answer's bytes. The descriptor comes beside it.
struct ReaderFile {
  uint64_t device;
  uint64_t inode;
  uint64_t size;
  int64_t ctime_ns;
  uint32_t mode;
  uint32_t unused;
};

struct ReaderAnswer {
  // Bytes that follow, or -errno.
  int32_t result;
  uint32_t unused;
  char bytes[kMaxRead];
};

constexpr uint32_t kRequestHead = 24;
constexpr uint32_t kAnswerHead = 8;
static_assert(sizeof(ReaderRequest) == kRequestHead + 4096 && sizeof(ReaderAnswer) == kAnswerHead + kMaxRead);

#endif

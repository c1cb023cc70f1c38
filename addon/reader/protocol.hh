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
  // As kOpen, below the root of a process and through no symbolic link.
  // `name`: the root, NUL, the path.
  kOpenBelow = 5,
  // Bytes of the file whose descriptor comes with the request.
  kRead = 6,
  // Looks at that file.
  kStatOpen = 7,
  // Copies pages that a process has mapped of a file to where they stand in the
  // file, into the descriptor that comes with the request or a new one. `name`:
  // folder of the process in /proc, NUL; behind kRangesAt bytes, PageRanges.
  kCopyPages = 8,
  // Pages of a process's memory, of 4 KiB each, one behind the other. `name`:
  // their addresses, of 64 bits. The answer's mask has a bit for each that was read.
  kPages = 9,
};

struct PageRange {
  // In the process.
  uint64_t address;
  // In the file.
  uint64_t offset;
  uint64_t length;
};
constexpr uint32_t kPageBytes = 4096;
constexpr uint32_t kMaxPages = kMaxRead / kPageBytes;
constexpr uint32_t kRangesAt = 256;
constexpr uint32_t kMaxRanges = 128;

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

// Of those that open or look, in the answer's bytes. The descriptor comes beside it.
struct ReaderFile {
  uint64_t device;
  uint64_t inode;
  // Of kCopyPages: bytes that were copied.
  uint64_t size;
  int64_t ctime_ns;
  int64_t mtime_ns;
  uint64_t links;
  uint32_t uid;
  uint32_t gid;
  uint32_t mode;
  uint32_t unused;
};

struct ReaderAnswer {
  // Bytes that follow, or -errno.
  int32_t result;
  // Of kPages: which of them were read.
  uint32_t mask;
  char bytes[kMaxRead];
};

constexpr uint32_t kRequestHead = 24;
constexpr uint32_t kAnswerHead = 8;
static_assert(kMaxPages <= 32);
static_assert(sizeof(ReaderRequest) == kRequestHead + 4096 && sizeof(ReaderAnswer) == kAnswerHead + kMaxRead);
static_assert(kRangesAt + kMaxRanges * sizeof(PageRange) <= sizeof(ReaderRequest::name));

#endif

// SPDX-License-Identifier: Apache-2.0
// Files of the cache, for a worker that opens nothing itself. What is in them
// the worker judges.
#pragma once
#include <string>

#include "descriptor.hh"
#include "opener.hh"

namespace confine {
class CacheFiles {
 public:
  // '': there is none.
  explicit CacheFiles(const std::string& directory);

  // The descriptor that goes with the answer, if any.
  Descriptor Serve(Ask what, const std::string& argument, Answer* answer);

 private:
  int Prune(const std::string& argument);

  Descriptor directory_;
};
}  // namespace confine

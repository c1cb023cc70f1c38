// Exceptions in flight. search: the runtime looks for a handler, 30 calls up. cleanup: destructors run on the way.
#include <cstdint>
#include <cstring>
#include <stdexcept>

volatile uint64_t sink;

__attribute__((noinline)) void spin(uint64_t n) {
  for (uint64_t i = 0; i < n; i++) sink = sink + i * i;
}

struct Guard {
  uint64_t work;
  __attribute__((noinline)) ~Guard() { spin(work); }
};

__attribute__((noinline)) int recurse(int depth, uint64_t work) {
  Guard guard{work};
  if (depth == 1) throw std::runtime_error("the bottom");
  return recurse(depth - 1, work) + 1;
}

int main(int argc, char** argv) {
  uint64_t work = argc > 1 && !strcmp(argv[1], "cleanup") ? 200000 : 0;
  for (;;) {
    try {
      sink = sink + recurse(30, work);
    } catch (const std::exception& e) {
      sink = sink + strlen(e.what());
    }
  }
}

// One translation unit of the large program; UNIT's digits are replaced in the object file for each copy.
#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>
namespace unit_0000 {
template <int N> struct Key { int a; std::string text; bool operator<(const Key &o) const { return a != o.a ? a < o.a : text < o.text; } };
template <int N> struct Work {
  std::map<Key<N>, std::vector<Key<N>>> groups;
  std::unordered_map<std::string, std::deque<Key<N>>> queues;
  static inline int mix(int x) { return (x * 31) ^ (x >> 3) ^ N; }
  static inline int twice(int x) { return mix(x) + mix(x + N); }
  static inline int four(int x) { return twice(x) ^ twice(x + 1); }
  __attribute__((noinline)) int add(const std::string &text, int x) {
    Key<N> key{four(x), text};
    groups[key].push_back(key);
    queues[text].push_back(key);
    return static_cast<int>(groups.size() + queues[text].size());
  }
  __attribute__((noinline)) int total() {
    int sum = 0;
    for (auto &[key, list] : groups) {
      std::sort(list.begin(), list.end(), [](const Key<N> &a, const Key<N> &b) { return four(a.a) < four(b.a); });
      sum = std::accumulate(list.begin(), list.end(), sum, [](int s, const Key<N> &k) { return s + mix(k.a); });
    }
    std::set<std::string> names;
    for (auto &[text, queue] : queues) { names.insert(text); sum += static_cast<int>(queue.size()); }
    std::ostringstream out;
    for (const auto &name : names) out << name << sum;
    return sum + static_cast<int>(out.str().size());
  }
};
template <int N> int run(int x) {
  Work<N> work;
  for (int i = 0; i < x; i++) work.add(std::to_string(i % 7), i);
  return work.total();
}
template <int... N> int all(int x, std::integer_sequence<int, N...>) { return (run<N>(x) + ...); }
int entry(int x) { return all(x, std::make_integer_sequence<int, COUNT>()); }
}  // namespace unit_0000

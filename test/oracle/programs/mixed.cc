// The C++ half of a program that is optimised as one at link time, for test/oracle/symbols-main.ts.
#include <cstdint>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

struct entry;
extern "C" {
uint64_t table_add(const char *key, uint64_t value);
size_t table_sort(entry **out, size_t room);
const char *entry_key(const entry *);
uint64_t entry_value(const entry *);
}

namespace words {

class Counter {
 public:
  void feed(std::istream &in) {
    for (std::string word; in >> word;) count(word, 1);
  }
  void count(const std::string &word, uint64_t times) {
    if (table_add(word.c_str(), times) > most_) most_ = times, common_ = word;
    byLength_[word.size()] += times;
  }
  void print(std::ostream &out) const {
    std::vector<entry *> entries(1000);
    entries.resize(table_sort(entries.data(), entries.size()));
    for (const auto *one : entries) out << entry_key(one) << ' ' << entry_value(one) << '\n';
    for (const auto &[length, times] : byLength_) out << length << ": " << times << '\n';
    out << common_ << '\n';
  }

 private:
  uint64_t most_ = 0;
  std::string common_;
  std::map<std::size_t, uint64_t> byLength_;
};

}  // namespace words

int main(int count, char **arguments) {
  words::Counter counter;
  for (int i = 0; i < count; i++) {
    std::istringstream text(arguments[i]);
    counter.feed(text);
  }
  counter.print(std::cout);
}

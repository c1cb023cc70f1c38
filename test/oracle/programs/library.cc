// Much code out of few lines: templates and inlined calls of the standard library, for test/oracle/symbols-main.ts.
#include <algorithm>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

namespace shapes {

struct Square {
  double side;
  double area() const { return side * side; }
};

struct Circle {
  double radius;
  double area() const { return 3.14159 * radius * radius; }
};

using Shape = std::variant<Square, Circle>;

double total(const std::vector<Shape> &all) {
  return std::accumulate(all.begin(), all.end(), 0.0, [](double sum, const Shape &shape) {
    return sum + std::visit([](const auto &one) { return one.area(); }, shape);
  });
}

}  // namespace shapes

template <typename Key>
static std::map<Key, std::vector<std::string>> group(const std::vector<std::string> &words, std::function<Key(const std::string &)> key) {
  std::map<Key, std::vector<std::string>> groups;
  for (const auto &word : words) groups[key(word)].push_back(word);
  for (auto &[_, list] : groups) std::sort(list.begin(), list.end());
  return groups;
}

static std::vector<std::string> split(const std::string &text) {
  static const std::regex word("[[:alpha:]]+|[0-9]+(\\.[0-9]*)?");
  std::vector<std::string> words;
  for (std::sregex_iterator at(text.begin(), text.end(), word), end; at != end; ++at) words.push_back(at->str());
  return words;
}

template <int Depth>
struct Nest {
  __attribute__((always_inline)) static inline int run(int x) { return Nest<Depth - 1>::run(x * 3 + Depth) ^ (x >> Depth); }
};
template <>
struct Nest<0> {
  static inline int run(int x) { return x + 1; }
};

class Node {
 public:
  virtual ~Node() = default;
  virtual std::string show() const = 0;
};

class Leaf : public Node {
 public:
  explicit Leaf(int value) : value_(value) {}
  std::string show() const override { return std::to_string(value_); }

 private:
  int value_;
};

class Branch : public Node {
 public:
  void add(std::unique_ptr<Node> node) { nodes_.push_back(std::move(node)); }
  std::string show() const override {
    std::ostringstream out;
    for (const auto &node : nodes_) out << '(' << node->show() << ')';
    return out.str();
  }

 private:
  std::deque<std::unique_ptr<Node>> nodes_;
};

int main(int count, char **arguments) {
  std::vector<std::string> words;
  for (int i = 0; i < count; i++)
    for (auto &word : split(arguments[i])) words.push_back(std::move(word));
  auto lengths = group<std::size_t>(words, [](const std::string &word) { return word.size(); });
  auto firsts = group<char>(words, [](const std::string &word) { return word.front(); });
  std::unordered_map<std::string, int> counts;
  for (const auto &word : words) counts[word]++;
  std::mt19937 random(count);
  std::shuffle(words.begin(), words.end(), random);
  std::stable_sort(words.begin(), words.end(), std::greater<>());
  std::set<std::string> unique(words.begin(), words.end());
  auto root = std::make_unique<Branch>();
  for (int i = 0; i < count; i++) root->add(std::make_unique<Leaf>(Nest<6>::run(i)));
  std::thread([&] { std::cout << root->show() << '\n'; }).join();
  for (const auto &entry : std::filesystem::directory_iterator(".")) {
    std::ifstream file(entry.path());
    std::string line;
    while (std::getline(file, line)) unique.insert(line);
  }
  std::cout << shapes::total({shapes::Square{1}, shapes::Circle{2}}) << lengths.size() << firsts.size() << counts.size() << unique.size() << '\n';
}

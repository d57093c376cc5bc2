// Replays the seeds of one target, then random mutations of them. Same arguments, same texts:
//   placement_replay CORPUS [MUTATIONS [SEED]]
// Ends with status 1 at the first text that makes the parser do anything but read or refuse it,
// that takes more than a second of this process's time, or after which the process has held more
// than 256 MiB. The text is left behind as a file, whose name is printed.
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "target.h"

namespace placet::fuzz {
namespace {

constexpr double kMostSeconds = 1.0;
constexpr long kMostKibibytes = 256L << 10;
constexpr std::size_t kLongest = std::size_t{1} << 16;

// Tokens that parsers trip over.
const std::vector<std::string> kTokens = {"0",
                                          "-1",
                                          "1e999",
                                          "NaN",
                                          "Infinity",
                                          "9223372036854775807",
                                          "18446744073709551616",
                                          "1e18",
                                          "-0.0",
                                          "null",
                                          "true",
                                          "{}",
                                          "[]",
                                          "\"\"",
                                          "{\"",
                                          "\":",
                                          "[[",
                                          "}}",
                                          ",",
                                          ":",
                                          "=",
                                          "\n",
                                          "\r\n",
                                          "\t",
                                          "\"",
                                          "\\u0000",
                                          "\xef\xbb\xbf",
                                          "\xff\xfe",
                                          "(",
                                          ")",
                                          "*",
                                          "+",
                                          ";",
                                          "\\",
                                          "'''",
                                          "S*",
                                          "batch",
                                          "@",
                                          "/",
                                          "..",
                                          "1/0",
                                          "999999999999"};

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::string> read_corpus(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> texts;
  texts.reserve(paths.size());
  for (const auto& path : paths) texts.push_back(read_file(path));
  return texts;
}

class Mutator {
 public:
  Mutator(const std::vector<std::string>& corpus, unsigned seed)
      : corpus_(corpus), generator_(seed) {}

  std::string next() {
    std::string text = any_seed();
    for (std::size_t edits = 1 + below(4); edits > 0; --edits) edit(text);
    if (text.size() > kLongest) text.resize(kLongest);
    return text;
  }

 private:
  std::size_t below(std::size_t n) {
    return n == 0 ? 0 : std::uniform_int_distribution<std::size_t>(0, n - 1)(generator_);
  }
  const std::string& any_seed() { return corpus_[below(corpus_.size())]; }

  void edit(std::string& text) {
    const std::size_t at = below(text.size() + 1);
    const std::size_t length = std::min(text.size() - at, 1 + below(below(8) == 0 ? 200 : 8));
    switch (below(8)) {
      case 0:
        text.erase(at, length);
        return;
      case 1:
        text.insert(at, kTokens[below(kTokens.size())]);
        return;
      case 2:
        text.replace(at, length, kTokens[below(kTokens.size())]);
        return;
      case 3:
        text.insert(at, text.substr(at, length));
        return;
      case 4:
        splice(text, at);
        return;
      case 5:
        repeat(text, at, length);
        return;
      case 6:
        digit(text);
        return;
      default:
        if (at < text.size()) text[at] = static_cast<char>(below(256));
    }
  }

  void splice(std::string& text, std::size_t at) {
    const std::string& other = any_seed();
    const std::size_t from = below(other.size() + 1);
    text.replace(at, text.size() - at, other, from, std::string::npos);
  }

  void repeat(std::string& text, std::size_t at, std::size_t length) {
    const std::string part = text.substr(at, length);
    std::string many;
    for (std::size_t i = 2 + below(below(16) == 0 ? 3000 : 20); i > 0; --i) many += part;
    text.insert(at, many);
  }

  void digit(std::string& text) {
    std::vector<std::size_t> digits;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] >= '0' && text[i] <= '9') digits.push_back(i);
    }
    if (digits.empty()) return;
    text[digits[below(digits.size())]] = static_cast<char>('0' + below(10));
  }

  const std::vector<std::string>& corpus_;
  std::mt19937 generator_;
};

double process_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

[[noreturn]] void report(const std::string& text, const std::string& fault) {
  const std::string name = "fault-" + std::string(target_name());
  std::ofstream(name, std::ios::binary) << text;
  std::fprintf(stderr, "%s: %s; the text is in %s (%zu bytes)\n",
               std::string(target_name()).c_str(), fault.c_str(), name.c_str(), text.size());
  std::exit(1);
}

/// Reads one text; true if it was taken, false if it was refused.
bool try_one(const std::string& text) {
  const double begin = process_seconds();
  bool taken = true;
  try {
    read_one(text);
  } catch (const InputError& error) {
    taken = false;
    if (std::string_view(error.what()).empty()) report(text, "refused without a message");
  } catch (const std::exception& error) {
    report(text, std::string("threw: ") + error.what());
  }
  if (process_seconds() - begin > kMostSeconds) report(text, "took more than a second");
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
#ifndef __SANITIZE_ADDRESS__
  if (used.ru_maxrss > kMostKibibytes) report(text, "took more than 256 MiB");
#endif
  return taken;
}

int replay(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: replay CORPUS [MUTATIONS [SEED]]\n");
    return 2;
  }
  const std::vector<std::string> corpus = read_corpus(argv[1]);
  const int mutations = argc > 2 ? std::atoi(argv[2]) : 0;
  const int seed = argc > 3 ? std::atoi(argv[3]) : 1;
  if (corpus.empty()) {
    std::fprintf(stderr, "%s holds no seeds\n", argv[1]);
    return 2;
  }
  int taken = 0;
  for (const std::string& text : corpus) taken += try_one(text) ? 1 : 0;
  const int good_seeds = taken;
  Mutator mutator(corpus, static_cast<unsigned>(seed));
  for (int i = 0; i < mutations; ++i) taken += try_one(mutator.next()) ? 1 : 0;
  std::printf("%s: %zu seeds (%d read), %d mutations (%d read)\n",
              std::string(target_name()).c_str(), corpus.size(), good_seeds, mutations,
              taken - good_seeds);
  return 0;
}

}  // namespace
}  // namespace placet::fuzz

int main(int argc, char** argv) { return placet::fuzz::replay(argc, argv); }

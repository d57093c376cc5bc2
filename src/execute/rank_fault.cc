#include "execute/rank_fault.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "program/fault.h"
#include "units/error.h"
#include "units/nearest.h"
#include "units/trimmed.h"

namespace placet {
namespace {

constexpr std::array<std::string_view, 5> kWords = {"kill", "stall", "fail", "corrupt", "slow"};
constexpr double kMostSeconds = 3600;

class RankFaultReader {
 public:
  explicit RankFaultReader(std::string text) : text_(std::move(text)) {}

  RankFault read(std::size_t kind, std::string_view inside) {
    fault_.kind = static_cast<RankFault::Kind>(kind);
    bool has_rank = false;
    while (!inside.empty()) {
      const std::size_t comma = inside.find(',');
      const std::string part{trimmed(inside.substr(0, comma))};
      inside = comma == std::string_view::npos ? "" : inside.substr(comma + 1);
      const std::size_t equals = part.find('=');
      const std::string key{trimmed(part.substr(0, equals))};
      set(key, equals == std::string::npos ? std::string()
                                           : std::string(trimmed(part.substr(equals + 1))));
      has_rank = has_rank || key == "rank";
    }
    if (!has_rank) refuse_part("", "names no rank", "rank=N: " + example());
    return fault_;
  }

 private:
  bool is_slow() const { return fault_.kind == RankFault::Kind::slow; }
  std::string example() const {
    const std::string word(kWords[static_cast<std::size_t>(fault_.kind)]);
    return word + (is_slow() ? "(rank=1, seconds=0.5)" : "(rank=1, step=2)");
  }

  [[noreturn]] void refuse_part(const std::string& value, const std::string& problem,
                                const std::string& allowed, const std::string& near = {}) const {
    throw InputError({.where = "--fault \"" + text_ + "\"",
                      .value = value,
                      .problem = problem,
                      .allowed = allowed,
                      .nearest = near});
  }

  void set(const std::string& key, const std::string& value) {
    const std::string other = is_slow() ? "seconds" : "step";
    const std::vector<std::string> keys = {"rank", other};
    if (key == "rank") {
      fault_.rank = static_cast<int>(number<long>(key, value, 0, 1'000'000));
    } else if (key == other && is_slow()) {
      fault_.seconds = number<double>(key, value, 0, kMostSeconds);
    } else if (key == other) {
      fault_.step = static_cast<int>(number<long>(key, value, 1, 1'000'000));
    } else {
      refuse_part(key, "is not a key of this fault", "rank or " + other, nearest(key, keys));
    }
  }

  template <class T>
  T number(const std::string& key, const std::string& value, T least, T most) const {
    T found{};
    const char* end = value.data() + value.size();
    const auto [stop, error] = std::from_chars(value.data(), end, found);
    if (error == std::errc{} && stop == end && found >= least && found <= most) return found;
    const bool whole = static_cast<T>(0.5) == T{};
    refuse_part(value, "is no value of " + key,
                (whole ? "a whole number from " : "a number from ") +
                    std::to_string(static_cast<long>(least)) + " to " +
                    std::to_string(static_cast<long>(most)));
  }

  std::string text_;
  RankFault fault_;
};

}  // namespace

namespace {

/// A word that is no fault of a program either and near one of a rank is meant as that.
void require_other_fault(const std::string& word, const std::string& fault) {
  std::vector<std::string> words = rank_fault_words();
  for (int op = 0; op < kFaultOpCount; ++op) {
    words.emplace_back(name_of(static_cast<FaultOp>(op)));
    if (word == words.back()) return;
  }
  const std::string near = nearest(word, words);
  if (std::ranges::find(kWords, near) == kWords.end()) return;
  throw InputError({.where = "--fault \"" + fault + "\"",
                    .value = word,
                    .allowed = "a fault of the program or of a rank",
                    .nearest = near});
}

}  // namespace

std::vector<std::string> rank_fault_words() { return {kWords.begin(), kWords.end()}; }

std::optional<RankFault> rank_fault_from(const std::string& text) {
  const std::string fault{trimmed(text)};
  const std::size_t open = fault.find('(');
  const auto word = std::ranges::find(kWords, trimmed(std::string_view(fault).substr(0, open)));
  if (word == kWords.end()) {
    require_other_fault(std::string(trimmed(std::string_view(fault).substr(0, open))), fault);
    return std::nullopt;
  }
  if (open == std::string::npos || !fault.ends_with(')')) {
    refuse("--fault", fault, "does not say of which rank", std::string(*word) + "(rank=1)");
  }
  const std::string_view inside = std::string_view(fault).substr(open + 1, fault.size() - open - 2);
  return RankFaultReader(fault).read(static_cast<std::size_t>(word - kWords.begin()), inside);
}

}  // namespace placet

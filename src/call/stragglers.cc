#include "call/stragglers.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "units/error.h"
#include "units/number.h"

namespace placet {
namespace {

constexpr double kLeastFactor = 0.01;
constexpr double kMostFactor = 100;

Straggler straggler_of(const std::string& word, std::size_t stages) {
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos) {
    refuse("--straggler", word, "has no factor", "STAGE=FACTOR, such as 0=1.3");
  }
  std::string_view name = std::string_view(word).substr(0, equals);
  constexpr std::string_view kPrefix = "stage ";
  if (name.starts_with(kPrefix)) name.remove_prefix(kPrefix.size());
  const std::optional<int> stage = number_in<int>(name);
  if (!stage || *stage < 0 || static_cast<std::size_t>(*stage) >= stages) {
    refuse("--straggler", word, "names no stage of the job",
           stages == 1 ? "0, the job's only stage"
                       : "a stage from 0 to " + std::to_string(stages - 1));
  }
  const std::optional<double> factor = number_in<double>(std::string_view(word).substr(equals + 1));
  if (!factor || !(*factor >= kLeastFactor && *factor <= kMostFactor)) {
    refuse("--straggler", word, "has no factor in range", "0.01 to 100");
  }
  return {.stage = *stage, .factor = *factor};
}

}  // namespace

std::vector<Straggler> read_stragglers(const std::vector<std::string>& words, std::size_t stages) {
  std::vector<Straggler> out;
  for (const std::string& word : words) {
    const Straggler straggler = straggler_of(word, stages);
    const bool known = std::ranges::any_of(
        out, [&](const Straggler& other) { return other.stage == straggler.stage; });
    if (known) refuse("--straggler", word, "names a stage for the second time", "each stage once");
    out.push_back(straggler);
  }
  return out;
}

}  // namespace placet

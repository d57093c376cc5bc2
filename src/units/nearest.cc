#include "units/nearest.h"

#include <algorithm>
#include <vector>

namespace placet {
namespace {

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

std::string shortest_beginning_with(std::string_view word,
                                    std::span<const std::string> candidates) {
  const std::string* best = nullptr;
  for (const std::string& candidate : candidates) {
    const bool begins = !word.empty() && lower_case(candidate).starts_with(word);
    if (begins && (best == nullptr || candidate.size() < best->size())) best = &candidate;
  }
  return best == nullptr ? std::string() : *best;
}

}  // namespace

// Row i of the table holds the distances from the first i characters of a to each beginning of b.
// Only the last two rows are needed to compute the next: the one before for edits of one character,
// the one before that for swaps.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before.swap(last);
    last.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, last[j] + 1, row[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::string nearest(std::string_view word, std::span<const std::string> candidates) {
  constexpr std::size_t kLongestWord = 200;  // nobody means a name by more
  if (word.size() > kLongestWord) return {};
  const std::string wanted = lower_case(word);
  const std::string* best = nullptr;
  std::size_t least = (word.size() + 2) / 3 + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(wanted, lower_case(candidate));
    if (distance < least) {
      least = distance;
      best = &candidate;
    }
  }
  return best != nullptr ? *best : shortest_beginning_with(wanted, candidates);
}

}  // namespace placet

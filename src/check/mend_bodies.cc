// Bodies that are alike but for one step: the same layer, the same stage on other devices.
#include <algorithm>

#include "check/mend_changes.h"

namespace placet {
namespace {

/// Steps in which two bodies that one move tells apart differ.
constexpr std::size_t kLongestShift = 24;

using Listed = MendChanges::Listed;

/// Where two lists of steps differ: `left` steps of the one, `right` of the other, from `front` on.
struct Gap {
  std::size_t front = 0;
  std::size_t left = 0;
  std::size_t right = 0;
};

Gap gap_between(const std::vector<Step>& a, const std::vector<Step>& b) {
  const auto [x, y] = std::ranges::mismatch(a, b);
  const auto front = static_cast<std::size_t>(x - a.begin());
  std::size_t back = 0;
  while (back < std::min(a.size(), b.size()) - front &&
         a[a.size() - 1 - back] == b[b.size() - 1 - back]) {
    ++back;
  }
  return {.front = front, .left = a.size() - back - front, .right = b.size() - back - front};
}

/// The step that the other body has in this place.
void become(MendChanges& changes, const Listed& mine, const Gap& gap, const std::vector<Step>& b) {
  MendPlace place = mine.place;
  place.at = gap.front;
  const Instruction* now = gap.left == 0 ? nullptr : instruction_of((*mine.steps)[gap.front]);
  const Instruction* then = gap.right == 0 ? nullptr : instruction_of(b[gap.front]);
  if ((gap.left > 0 && now == nullptr) || (gap.right > 0 && then == nullptr)) return;
  if (now != nullptr && then != nullptr) return changes.replace(*now, *then);
  if (now != nullptr) return changes.remove(*now);
  const Instruction* next =
      gap.front < mine.steps->size() ? instruction_of((*mine.steps)[gap.front]) : nullptr;
  if (next != nullptr) return changes.put_before(*next, *then);
  changes.put_at(place, *then);
}

/// The first or the last step of what differs moved to the other end, or both exchanged, if that is
/// all.
void shift(MendChanges& changes, const Listed& mine, const Gap& gap, const std::vector<Step>& b) {
  const auto a_first = mine.steps->begin() + static_cast<std::ptrdiff_t>(gap.front);
  const auto b_first = b.begin() + static_cast<std::ptrdiff_t>(gap.front);
  const auto n = static_cast<std::ptrdiff_t>(gap.left);
  const bool down = *a_first == b_first[n - 1] && std::equal(a_first + 1, a_first + n, b_first);
  const bool up = a_first[n - 1] == *b_first && std::equal(a_first, a_first + n - 1, b_first + 1);
  const Instruction* first = instruction_of(*a_first);
  const Instruction* last = instruction_of(a_first[n - 1]);
  if (down && first != nullptr) changes.move(*first, gap.front + gap.left);
  if (up && last != nullptr) changes.move(*last, gap.front);
  const bool crossed = *a_first == b_first[n - 1] && a_first[n - 1] == *b_first &&
                       std::equal(a_first + 1, a_first + n - 1, b_first + 1);
  if (crossed && first != nullptr && last != nullptr) changes.exchange(*first, *last);
}

void compare(MendChanges& changes, const Listed& mine, const Listed& other) {
  const std::vector<Step>& a = *mine.steps;
  const std::vector<Step>& b = *other.steps;
  if (a.size() > b.size() + 1 || b.size() > a.size() + 1) return;
  const Gap gap = gap_between(a, b);
  if (gap.left + gap.right == 0) return;
  if (gap.left <= 1 && gap.right <= 1) return become(changes, mine, gap, b);
  if (gap.left == gap.right && gap.left <= kLongestShift) shift(changes, mine, gap, b);
}

}  // namespace

void mend_like_other_bodies(MendChanges& changes) {
  for (const Listed& mine : changes.lists()) {
    for (const Listed& other : changes.lists()) {
      if (&mine != &other) compare(changes, mine, other);
    }
  }
}

}  // namespace placet

// Bodies that are alike but for one step: the same layer, the same stage on other devices.
#include <algorithm>
#include <cstdint>

#include "check/mend_changes.h"
#include "units/hash.h"

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

template <class Steps>
Gap gap_between(const Steps& a, const Steps& b) {
  const auto [x, y] = std::ranges::mismatch(a, b);
  const auto front = static_cast<std::size_t>(x - a.begin());
  std::size_t back = 0;
  while (back < std::min(a.size(), b.size()) - front &&
         a[a.size() - 1 - back] == b[b.size() - 1 - back]) {
    ++back;
  }
  return {.front = front, .left = a.size() - back - front, .right = b.size() - back - front};
}

/// Unlike steps may have the same one.
std::uint64_t number_of(const Step& step) {
  const Instruction* i = instruction_of(step);
  if (i == nullptr) return step.what.index();
  std::uint64_t number =
      mixed(static_cast<std::uint64_t>(i->kind), static_cast<std::uint64_t>(i->kernel));
  for (const std::vector<BufferRef>* list : {&i->inputs, &i->outputs}) {
    for (const BufferRef& ref : *list)
      number = mixed(number, static_cast<std::uint64_t>(ref.family));
  }
  return number;
}

/// Of all steps. A pipeline has thousands of lists, each of which is compared with every other.
std::vector<std::uint64_t> numbers_of(const std::vector<Step>& steps) {
  std::vector<std::uint64_t> out(steps.size());
  std::ranges::transform(steps, out.begin(), number_of);
  return out;
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

bool is_short(const Gap& gap) {
  const bool one_step = gap.left <= 1 && gap.right <= 1;
  return one_step || (gap.left == gap.right && gap.left <= kLongestShift);
}

void compare(MendChanges& changes, const Listed& mine, const Listed& other) {
  const std::vector<Step>& b = *other.steps;
  const Gap gap = gap_between(*mine.steps, b);
  if (gap.left + gap.right == 0 || !is_short(gap)) return;
  if (gap.left <= 1 && gap.right <= 1) return become(changes, mine, gap, b);
  shift(changes, mine, gap, b);
}

}  // namespace

void mend_like_other_bodies(MendChanges& changes) {
  const std::vector<Listed>& lists = changes.lists();
  std::vector<std::vector<std::uint64_t>> numbers(lists.size());
  std::ranges::transform(lists, numbers.begin(),
                         [](const Listed& list) { return numbers_of(*list.steps); });
  for (std::size_t i = 0; i < lists.size(); ++i) {
    for (std::size_t k = 0; k < lists.size(); ++k) {
      const std::size_t mine = numbers[i].size();
      const std::size_t other = numbers[k].size();
      if (i == k || mine > other + 1 || other > mine + 1) continue;
      if (is_short(gap_between(numbers[i], numbers[k]))) compare(changes, lists[i], lists[k]);
    }
  }
}

}  // namespace placet

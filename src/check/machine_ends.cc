// How a step ends: which classes wait for ever, and which of them only because another one does.
#include <algorithm>
#include <cstddef>

#include "check/machine.h"
#include "units/at.h"

namespace placet {

/// Whether the class still comes to an instruction of that kind in this step.
template <class Accept>
bool Machine::has_left(int c, Accept accept) const {
  const Runner& runner = runners_[at(c)];
  for (std::size_t k = runner.next; k < runner.list.size(); ++k) {
    const Instruction* i = runner.list[k].instruction;
    if (i == nullptr || (i->step != 0 && i->step != step_ + 1)) continue;
    if (accept(*i)) return true;
  }
  return false;
}

bool Machine::will_send(int from, int to) const {
  return has_left(from, [&](const Instruction& i) {
    return i.kind == InstructionKind::send && class_at(from, i.axes.at(0), i.peer) == to;
  });
}

/// Whether what a class waits for stands in the way of all that would bring it: these wait as well.
bool Machine::will_come(int c) const {
  const Instruction& i = *runners_[at(c)].instruction;
  if (i.kind == InstructionKind::receive) {
    const int from = class_at(c, i.axes.at(0), i.peer);
    return from >= 0 && will_send(from, c);
  }
  const std::vector<int> members = members_of(c, i);
  return std::ranges::all_of(members, [&](int m) {
    return has_left(
        m, [&](const Instruction& other) { return meet(other, i) && other.outputs == i.outputs; });
  });
}

/// All classes are through, and all messages taken.
void Machine::require_end() {
  const auto is_through = [&](int c) {
    return runners_[at(c)].next >= runners_[at(c)].list.size();
  };
  for (int c = 0; c < static_cast<int>(runners_.size()); ++c) {
    if (is_through(c)) continue;
    stuck_ = true;
    Breach& one = breaches_.emplace_back();
    one = {.what = "waits for ever: what it needs is never sent", .origin = here(c)};
    one.origin.time += static_cast<std::int64_t>(runners_[at(c)].next);
    one.follows = will_come(c);
  }
  for (auto& [ends, queue] : messages_) {
    for (const Message& message : queue) {
      breaches_.push_back({.what = "is a message that is never received",
                           .origin = message.origin,
                           .follows = !is_through(ends.second)});
    }
    queue.clear();
  }
}

}  // namespace placet

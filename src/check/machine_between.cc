// The machine between two steps (docs/theory.md §6.6): the next one may know of the state what is
// compared, and that what begins every step as zero is zero. So what holds for one step holds for
// all that follow.
#include <set>

#include "check/machine.h"
#include "units/at.h"

namespace placet {

/// What a buffer that is held holds when the next step begins.
Content Machine::known_of(const Initial& initial, Content content) {
  for (std::size_t p = 0; p < initial.pieces.size() && p < content.pieces.size(); ++p) {
    Tensor& t = content.pieces[p];
    if (initial.pieces[p].kind != StateRef::Kind::zero) {
      // The reference goes on with one node of what it made as well.
      if (is_complete(t)) t.items = {nodes_.item_of(nodes_.node_of(t))};
    } else if (!forgets_) {
      continue;
    } else if (t.items.empty()) {
      zeros_.emplace(&initial, p);
    } else {
      t.items = {odd_item(t, "what the step before left")};
    }
  }
  return content;
}

void Machine::keep_what_is_known() {
  zeros_.clear();
  for (int c = 0; c < static_cast<int>(runners_.size()); ++c) keep_what_is_known(c);
}

void Machine::keep_what_is_known(int c) {
  Slots& slots = runners_[at(c)].slots;
  std::set<const Slot*> held;
  for (const Initial& initial : program_.classes[at(c)].initial) {
    Slot* slot = slots.find(initial.buffer, {});
    if (slot == nullptr || !slot->written) continue;
    held.insert(slot);
    Content known = known_of(initial, *slot->value.content);
    if (known == *slot->value.content) continue;
    slot->value = interned(std::move(known), slot->value.micro_batch);
  }
  if (!forgets_) return;
  slots.for_each([&](Slot& slot) {
    if (!slot.written || held.contains(&slot)) return;
    Content odd = whole_of(slot.value);
    for (Tensor& t : odd.pieces) t.items = {odd_item(t, "what the step before left")};
    slot.value = interned(std::move(odd), slot.value.micro_batch);
  });
}

bool Machine::keeps_zero(int device_class, const Initial& initial, std::size_t piece) const {
  if (!zeros_.contains({&initial, piece})) return true;
  const Content* content = content_of(device_class, initial.buffer);
  return content != nullptr && piece < content->pieces.size() &&
         content->pieces[piece].items.empty();
}

}  // namespace placet

// The machine between two steps (docs/theory.md §6.6): the next one may know of the state what is
// compared, and that what begins every step as zero is zero. So what holds for one step holds for
// all that follow.
#include <algorithm>
#include <optional>
#include <set>

#include "check/machine.h"
#include "units/at.h"

namespace placet {

/// What the next step knows of a tensor that is held; none: what it holds, as it is.
std::optional<Item> Machine::known_of(const Initial& initial, std::size_t piece,
                                      const Tensor& held) {
  if (initial.pieces[piece].kind != StateRef::Kind::zero) {
    if (!is_complete(held)) return std::nullopt;
    // The reference goes on with one node of what it made as well.
    const Item one = nodes_.item_of(nodes_.node_of(held));
    const bool is_one = held.items.size() == 1 && held.items[0] == one;
    return is_one ? std::nullopt : std::optional(one);
  }
  if (!forgets_) return std::nullopt;
  if (!held.items.empty()) return odd_item(held, kLeftBefore);
  zeros_.emplace(&initial, piece);
  return std::nullopt;
}

/// The same of all that a buffer holds; none: nothing of it changes.
std::optional<Content> Machine::known_of(const Initial& initial, const Content& held) {
  std::optional<Content> known;
  for (std::size_t p = 0; p < std::min(initial.pieces.size(), held.pieces.size()); ++p) {
    const std::optional<Item> item = known_of(initial, p, held.pieces[p]);
    if (!item) continue;
    if (!known) known = held;
    become(known->pieces[p], *item);
  }
  return known;
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
    std::optional<Content> known = known_of(initial, *slot->value.content);
    if (known) slot->value = interned(std::move(*known), slot->value.micro_batch);
  }
  if (!forgets_) return;
  slots.for_each([&](Slot& slot) {
    if (!slot.written || held.contains(&slot)) return;
    Content odd = whole_of(slot.value);
    for (Tensor& t : odd.pieces) become(t, odd_item(t, kLeftBefore));
    slot.value = interned(std::move(odd), slot.value.micro_batch);
  });
}

bool Machine::stands_as_begun() {
  for (int c = 0; c < static_cast<int>(runners_.size()); ++c) {
    if (!stands_as_begun(c)) return false;
  }
  return true;
}

bool Machine::stands_as_begun(int c) {
  Slots& slots = runners_[at(c)].slots;
  std::set<const Slot*> begun;
  for (const Initial& initial : program_.classes[at(c)].initial) {
    const Slot* slot = slots.find(initial.buffer, {});
    begun.insert(slot);
    // Samples are brought anew.
    const bool brought = std::ranges::any_of(
        initial.pieces, [](const StateRef& piece) { return piece.kind == StateRef::Kind::input; });
    if (brought) continue;
    if (slot == nullptr || !slot->alive || !slot->written) return false;
    if (!same_shape(*slot->value.content, type_of(initial.buffer.family))) return false;
  }
  bool others = false;
  slots.for_each([&](const Slot& slot) { others = others || !begun.contains(&slot); });
  return !others;
}

bool Machine::keeps_zero(int device_class, const Initial& initial, std::size_t piece) const {
  if (!zeros_.contains({&initial, piece})) return true;
  const Content* content = content_of(device_class, initial.buffer);
  return content != nullptr && piece < content->pieces.size() &&
         content->pieces[piece].items.empty();
}

}  // namespace placet

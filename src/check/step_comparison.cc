#include "check/step_comparison.h"

#include <algorithm>

#include "check/empty.h"
#include "units/at.h"

namespace placet {

bool StepComparison::holds_all() {
  for (int c = 0; c < static_cast<int>(program_.classes.size()); ++c) {
    const DeviceClass& mine = program_.classes[at(c)];
    const auto right = [&](const Initial& buffer) { return holds(c, buffer); };
    if (!std::ranges::all_of(mine.initial, right)) return false;
    if (!std::ranges::all_of(mine.results, right)) return false;
  }
  return true;
}

bool StepComparison::holds(int c, const Initial& buffer) {
  const Content& typed = machine_.type_of(buffer.buffer.family);
  for (std::size_t p = 0; p < buffer.pieces.size(); ++p) {
    if (!holds(c, buffer, p, typed)) return false;
  }
  return true;
}

bool StepComparison::holds(int c, const Initial& buffer, std::size_t piece, const Content& typed) {
  const StateRef& ref = buffer.pieces[piece];
  if (ref.kind == StateRef::Kind::input) return true;
  if (ref.kind == StateRef::Kind::zero) return machine_.keeps_zero(c, buffer, piece);
  const Content* content = machine_.content_of(c, buffer.buffer);
  const bool right = !nodes_.is_odd(reference_.value_of(ref)) &&
                     machine_.is_of_its_micro_batch(c, buffer.buffer) &&
                     is_placed(content, typed, piece) && is_complete(content->pieces[piece]) &&
                     nodes_.node_of(content->pieces[piece]) == reference_.value_of(ref);
  return right || has_no_entries(program_, program_.classes[at(c)], typed, piece);
}

bool StepComparison::is_placed(const Content* content, const Content& typed, std::size_t piece) {
  if (content == nullptr || piece >= content->pieces.size()) return false;
  // Where a part of a row lies depends on all its tensors.
  if (!typed.flat.empty()) return same_shape(*content, typed);
  return content->flat.empty() && content->pieces[piece].dims == typed.pieces[piece].dims &&
         content->pieces[piece].cuts == typed.pieces[piece].cuts;
}

}  // namespace placet

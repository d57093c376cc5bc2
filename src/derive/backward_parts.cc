#include "derive/backward_parts.h"

#include <algorithm>
#include <utility>

#include "derive/partial_sums.h"
#include "model/gradients.h"
#include "units/at.h"

namespace placet {
namespace {

/// Whether an operator's weights' part reads what the operator saves: a norm's offset needs nothing
/// of it.
bool weights_read(const UnitKind& kind, const Operator& op) {
  if (op.kind != OpKind::norm) return trains(kind, op);
  return !op.parameters.empty() && kind.parameters[at(op.parameters.front())].trainable;
}

/// Backward in two parts, from the last operator to the first: buffers of gradients with their
/// holders. One that the weights' part needs stays, and what is added to it then makes a new one.
class PartsWalk {
 public:
  PartsWalk(const UnitKind& kind, const PreparedKind& prepared, bool all_share)
      : kind_(kind),
        prepared_(prepared),
        all_share_(all_share),
        buffer_of_(kind.values.size(), -1) {
    if (prepared.output < 0 || !prepared.gradients.values[at(prepared.output)]) return;
    buffer_of_[at(prepared.output)] = make(prepared.output);
    if (!all_share) ++buffers_.front().holders;
  }

  void read(std::size_t o, PreparedKind& out) {
    if (!out.operators[o].backward) return;
    const Operator& op = kind_.operators[o];
    PreparedParts& parts = out.operators[o].parts;
    for (std::size_t i = 0; i < op.inputs.size(); ++i) read_input(op, i, parts);
    // Of two kernels, each gives a share; the gradient that came in is still there for the second.
    const bool two_kernels = !out.operators[o].inner_gradients.empty();
    if (two_kernels && trains(kind_, op)) {
      parts.added.insert(parts.added.end(), parts.made.begin(), parts.made.end());
    }
    if (trains(kind_, op)) carry(op, static_cast<int>(o), parts);
    for (int v : op.outputs) {
      if (const int own = std::exchange(buffer_of_[at(v)], -1); own >= 0) let_go(own, parts);
    }
  }

  /// After all operators: which of them is the last in backward that takes each buffer.
  void release(PreparedKind& out) const {
    for (const Buffer& own : buffers_) {
      if (own.last_taker >= 0)
        out.operators[at(own.last_taker)].parts.released.push_back(own.value);
    }
  }

 private:
  struct Buffer {
    int value = 0;  // whose size it has
    int holders = 1;
    int last_taker = -1;  // operator; -1: no weights' part takes it
  };

  int make(int v) {
    buffers_.push_back({.value = v});
    return static_cast<int>(buffers_.size()) - 1;
  }

  void let_go(int buffer, PreparedParts& parts) {
    Buffer& own = buffers_[at(buffer)];
    if (--own.holders == 0 && own.last_taker < 0) parts.dead.push_back(own.value);
  }

  void read_input(const Operator& op, std::size_t i, PreparedParts& parts) {
    const int v = op.inputs[i];
    if (!prepared_.gradients.values[at(v)]) return;
    int& own = buffer_of_[at(v)];
    const int from = gradient_source(op, i, all_share_);
    if (own < 0 && from >= 0 && buffer_of_[at(from)] >= 0) {
      own = buffer_of_[at(from)];
      // What is passed on vanishes with the last that has it; or stays to the unit's end.
      buffers_[at(own)].holders += all_share_ ? 1 : 2;
      return;
    }
    if (own >= 0 && buffers_[at(own)].holders == 1 && buffers_[at(own)].last_taker < 0) {
      parts.added.push_back(v);
      return;
    }
    parts.made.push_back(v);
    if (own >= 0) let_go(own, parts);
    own = make(v);
  }

  void carry(const Operator& op, int number, PreparedParts& parts) {
    for (int v : op.outputs) {
      const int buffer = buffer_of_[at(v)];
      if (buffer < 0) continue;
      int& taker = buffers_[at(buffer)].last_taker;
      if (taker < 0) parts.carried.push_back(buffers_[at(buffer)].value);
      taker = number;
    }
  }

  const UnitKind& kind_;
  const PreparedKind& prepared_;
  bool all_share_;
  std::vector<int> buffer_of_;  // by value; -1: it has no gradient
  std::vector<Buffer> buffers_;
};

/// Where a norm keeps its input in fp32 and the normalized numbers apart, its weights multiply in a
/// kernel of their own, which keeps the numbers for the gradient of the weights: of none, nothing.
std::uint16_t without_own_factor(const Operator& op, std::uint16_t internals) {
  constexpr unsigned kFactor = 1U << static_cast<unsigned>(internal::kNormNormalized) |
                               1U << static_cast<unsigned>(internal::kNormNormalizedFp32);
  constexpr unsigned kInput = 1U << static_cast<unsigned>(internal::kNormInputFp32);
  const bool apart = op.kind == OpKind::norm && (internals & kInput) != 0;
  return static_cast<std::uint16_t>(apart ? internals & ~kFactor : internals);
}

}  // namespace

bool writes_in_place(OpKind kind) { return kind == OpKind::bias || kind == OpKind::position; }

int gradient_source(const Operator& op, std::size_t i, bool all_share) {
  if (op.outputs.empty()) return -1;
  if (writes_in_place(op.kind)) {
    const bool passes = i < op.outputs.size() && (all_share || i == 0);
    return passes ? op.outputs[i] : -1;
  }
  const bool shares = all_share || i + 1 == op.inputs.size();
  return op.kind == OpKind::residual_add && shares ? op.outputs.front() : -1;
}

std::vector<int> saved_by(const UnitKind& kind, const PreparedKind& prepared, std::size_t number,
                          const SavedTable& table) {
  if (!prepared.operators[number].backward) return {};
  const Operator& op = kind.operators[number];
  const SavedSlots& slots = table[static_cast<std::size_t>(op.kind)];
  std::vector<int> saved;
  auto take = [&](const std::vector<int>& values, std::uint16_t mask) {
    for (std::size_t i = 0; i < values.size() && i < 16; ++i) {
      if ((unsigned{mask} >> i & 1U) != 0) saved.push_back(values[i]);
    }
  };
  if (!(is_contraction(op.kind) && is_frozen(kind, op))) take(op.inputs, slots.inputs);
  if (prepared.operators[number].narrow) {
    for (int& v : saved) v += static_cast<int>(kind.values.size());
  }
  if (prepared.operators[number].casts_weights) saved.push_back(cast_of(kind, number));
  take(op.outputs, slots.outputs);
  take(op.internals,
       is_frozen(kind, op) ? without_own_factor(op, slots.internals) : slots.internals);
  return saved;
}

void read_parts(const UnitKind& kind, const Profile& profile, PreparedKind& out) {
  PartsWalk walk(kind, out, profile.residual_shares_gradient);
  for (std::size_t o = kind.operators.size(); o-- > 0;) walk.read(o, out);
  walk.release(out);
}

void note_weights(const UnitKind& kind, const PreparedKind& prepared, const SavedTable& table,
                  SavedPlan& plan) {
  plan.done_weights.assign(kind.operators.size(), {});
  std::vector<bool> there(at(prepared.stored), false);
  for (int v : plan.kept) there[at(v)] = true;
  for (int v : plan.rebuilt) there[at(v)] = true;
  for (std::size_t o = 0; o < kind.operators.size(); ++o) {
    if (!weights_read(kind, kind.operators[o])) continue;
    for (int v : saved_by(kind, prepared, o, table)) {
      const int root = root_of(kind, prepared, v);
      if (!there[at(root)]) continue;
      there[at(root)] = false;
      plan.for_weights.push_back(root);
      plan.done_weights[o].push_back(root);
    }
  }
}

}  // namespace placet

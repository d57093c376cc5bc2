// Rule 4 of docs/theory.md §4 for attention over a sequence that axes divide.
#include <algorithm>
#include <iterator>

#include "derive/exchange_memory.h"
#include "derive/unit_traffic.h"
#include "units/at.h"
#include "units/checked.h"

namespace placet {
namespace {

/// Attention over a sequence that axes divide: what their exchanges move.
class AttentionTraffic {
 public:
  AttentionTraffic(UnitTraffic& unit, std::size_t op)
      : unit_(unit), number_(op), op_(unit.kind.operators[op]), again_(unit.starts_again(op)) {}

  /// Axes with the same exchange are one group.
  void write() {
    if (op_.inputs.size() < 3 || op_.outputs.empty()) return;
    AxisMask seen = 0;
    for (std::size_t a = 0; a < unit_.axis_count() && a < unit_.job.attention.size(); ++a) {
      if (!exchanges(a) || (seen >> a & 1U) != 0) continue;
      mask_ = axes_like(a);
      seen |= mask_;
      degree_ = degree_of(unit_.job.placement, mask_);
      write_steps(unit_.job.attention[a].steps);
    }
  }

 private:
  bool exchanges(std::size_t a) const {
    return unit_.axis(a).how.cut == Cut::sequence && unit_.axis(a).degree > 1;
  }

  /// Axes from `a` on with the same exchange.
  AxisMask axes_like(std::size_t a) const {
    AxisMask mask = 0;
    for (std::size_t b = a; b < unit_.job.attention.size(); ++b) {
      const bool alike = exchanges(b) && unit_.job.attention[b] == unit_.job.attention[a];
      if (alike) mask |= axis_bit(static_cast<int>(b));
    }
    return mask;
  }

  void write_steps(const std::vector<ExchangeStep>& steps) {
    for (const ExchangeStep& step : steps) {
      if (step.in_backward) continue;
      write_step(step, Phase::forward);
      if (again_) write_step(step, Phase::backward);
    }
    if (!unit_.prepared.operators[number_].backward) return;
    std::vector<ExchangeStep> backward;
    std::ranges::copy_if(steps, std::back_inserter(backward),
                         [](const ExchangeStep& step) { return step.in_backward; });
    if (unit_.job.profile.ring_carries_gradients && goes_round(backward)) {
      write_carried(backward[0], backward[1]);
      return;
    }
    for (const ExchangeStep& step : backward) write_step(step, Phase::backward);
  }

  static bool goes_round(const std::vector<ExchangeStep>& steps) {
    using Movement = ExchangeStep::Movement;
    return steps.size() == 2 && steps[0].movement == Movement::pieces && steps[0].together &&
           steps[1].movement == Movement::pieces_sum && steps[1].together;
  }

  /// Pieces and the gradients that belong to them travel in one message, the gradients one round
  /// later: n messages in place of 2 (n - 1), of the same bytes.
  void write_carried(const ExchangeStep& pieces, const ExchangeStep& gradients) {
    const std::int64_t first = part_of(pieces);
    const std::int64_t last = part_of(gradients);
    send("attention.pieces", Collective::send_recv, Phase::backward, first, 1);
    send("attention.pieces_and_gradients", Collective::send_recv, Phase::backward,
         checked_add(first, last, "attention exchange"), degree_ - 2);
    send("attention.gradients", Collective::send_recv, Phase::backward, last, 1);
  }

  int value_of(AttentionTensor tensor) const {
    return exchanged_value(op_, tensor, unit_.job.profile);
  }

  /// Of gradients those that backward makes.
  bool is_there(AttentionTensor tensor) const {
    const auto made = [&](std::size_t input) {
      return unit_.prepared.gradients.values[at(op_.inputs[input])];
    };
    switch (tensor) {
      case AttentionTensor::query_gradient:
        return made(0);
      case AttentionTensor::keys_gradient:
        return made(1);
      case AttentionTensor::values_gradient:
        return made(2);
      case AttentionTensor::query:
      case AttentionTensor::keys:
      case AttentionTensor::values:
      case AttentionTensor::output:
      case AttentionTensor::output_gradient:
        return true;
    }
    return true;
  }

  std::int64_t part_of(const ExchangeStep& step) const {
    std::int64_t sum = 0;
    for (AttentionTensor tensor : step.tensors) {
      if (!is_there(tensor)) continue;
      sum = checked_add(sum, moved_of(step, value_of(tensor)), "attention exchange");
    }
    return sum;
  }

  /// Elements of a value that a step moves. Where heads go to more devices than there are key and
  /// value heads, r of them share a head: each gets it (and gives back its part of its gradient, to
  /// be added where the tokens are), so that r times the value moves. Case: 8 heads over 16
  /// devices: 2.
  std::int64_t moved_of(const ExchangeStep& step, int v) const {
    using Movement = ExchangeStep::Movement;
    const std::int64_t own = unit_.local.values[at(v)];
    if (step.movement != Movement::heads && step.movement != Movement::tokens) return own;
    return checked_multiply(own, sharers_of(v), "attention exchange");
  }

  std::int64_t sharers_of(int v) const {
    const std::vector<Dim>& dims = unit_.kind.values[at(v)].dims;
    const auto heads = std::ranges::find(dims, Index::kv_head, &Dim::index);
    if (heads == dims.end()) return 1;
    const IndexSet kv = bit_of(Index::kv_head);
    return copies_of_heads(unit_.job.placement, *heads, unit_.axes_that_cut(number_, kv, 0),
                           degree_);
  }

  void write_step(const ExchangeStep& step, Phase phase) {
    if (step.together) {
      move(step, "attention.exchange", phase, part_of(step));
      return;
    }
    for (AttentionTensor tensor : step.tensors) {
      if (!is_there(tensor)) continue;
      const int v = value_of(tensor);
      move(step, unit_.kind.values[at(v)].name, phase, moved_of(step, v));
    }
  }

  /// Elements of a value along whole sequences, from this device's part.
  std::int64_t whole_of(std::int64_t part) const {
    return along_whole_sequence(unit_.layout, mask_, part);
  }

  void move(const ExchangeStep& step, std::string_view what, Phase phase, std::int64_t part) {
    using Movement = ExchangeStep::Movement;
    switch (step.movement) {
      case Movement::gather:
        send(what, Collective::all_gather, phase, whole_of(part), 1);
        return;
      case Movement::scatter_sum:
        send(what, Collective::reduce_scatter, phase, whole_of(part), 1);
        return;
      case Movement::pieces:
      case Movement::pieces_sum:
        send(what, Collective::send_recv, phase, part, degree_ - 1);
        return;
      case Movement::heads:
      case Movement::tokens:
        send(what, Collective::all_to_all, phase, part, 1);
        return;
    }
  }

  void send(std::string_view what, Collective collective, Phase phase, std::int64_t elements,
            std::int64_t count) {
    if (count <= 0) return;
    unit_.add({.what = what,
               .collective = collective,
               .phase = phase,
               .axes = mask_,
               .elements = elements,
               .dtype = unit_.job.precision.compute,
               .count = count});
  }

  UnitTraffic& unit_;
  std::size_t number_ = 0;
  const Operator& op_;
  bool again_ = false;
  AxisMask mask_ = 0;
  std::int64_t degree_ = 1;
};

}  // namespace

void write_attention(UnitTraffic& unit, std::size_t op) { AttentionTraffic(unit, op).write(); }

}  // namespace placet

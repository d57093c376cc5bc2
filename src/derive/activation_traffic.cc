// Rules 4 and 6 of docs/theory.md §4: values between operators, and what recomputation repeats.
//
// For every value and every axis we ask in which layout its producer leaves it and in which its
// consumers need it, forward and backward. Along a tensor axis the residual stream is R or S(token);
// inside a parallel region tokens are whole, values that carry a cut index are S of it, contractions
// over a cut index leave P, and the gradient of a value without the cut index is P. Axes with the
// same transition form one group.
#include <algorithm>
#include <array>

#include "derive/communication.h"
#include "units/checked.h"
#include "units/shares.h"

namespace placet {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

IndexSet indices_in(const std::vector<Dim>& dims) {
  IndexSet set = 0;
  for (const Dim& dim : dims) set |= bit_of(dim.index);
  return set;
}

bool is_contraction(OpKind kind) {
  return kind == OpKind::linear || kind == OpKind::grouped_linear || kind == OpKind::embedding;
}

/// Operators that are linear in their activation inputs: a partial sum may pass through them.
bool passes_partial(OpKind kind) {
  return kind == OpKind::linear || kind == OpKind::residual_add || kind == OpKind::dropout;
}

bool carries_gradient(const Value& value) {
  return value.type != ValueType::int64 && value.type != ValueType::mask;
}

/// Transitions of one value, by axis.
struct Transitions {
  AxisMask gathered = 0;       // forward S(token) -> R
  AxisMask scattered = 0;      // forward P -> S(token)
  AxisMask reduced = 0;        // forward P -> R
  AxisMask back_scattered = 0; // gradient P -> S(token)
  AxisMask back_reduced = 0;   // gradient P -> R
  AxisMask back_gathered = 0;  // gradient S(token) -> R
  AxisMask regathered = 0;     // the whole input again, for the weights' gradient
  bool consumer_recomputed = false;
  bool producer_recomputed = false;
};

class ActivationTraffic {
 public:
  ActivationTraffic(const Layout& layout, int unit, bool recomputed)
      : layout_(layout),
        job_(*layout.job),
        local_(layout.units[at(unit)]),
        kind_(job_.model.kinds[at(local_.kind)]),
        prepared_(layout.prepared->kinds[at(local_.kind)]),
        plan_(recomputed ? prepared_.recomputed : prepared_.plain) {}

  std::vector<UnitTerm> collect() {
    values_.resize(kind_.values.size());
    for (std::size_t a = 0; a < job_.placement.axes.size(); ++a) read_axis(a);
    for (std::size_t v = 0; v < values_.size(); ++v) write_value(v);
    for (const Operator& op : kind_.operators) {
      const bool again = is_recomputed(op);
      if (op.kind == OpKind::attention) write_attention(op, again);
      if (op.kind == OpKind::dispatch) write_routing(op, true, again);
      if (op.kind == OpKind::combine) write_routing(op, false, again);
      if (op.kind == OpKind::loss) write_loss(op);
      if (op.kind == OpKind::norm) write_norm(op, again);
    }
    return std::move(terms_);
  }

 private:
  const AxisPlacement& axis(std::size_t a) const { return job_.placement.axes[a]; }

  const How& how_for(std::size_t a, std::size_t op) const {
    return how_of(axis(a), prepared_.operators[op].classes, std::nullopt);
  }

  bool is_recomputed(const Operator& op) const {
    return std::ranges::find(plan_.modules, op.module) != plan_.modules.end();
  }

  bool is_routed_work(const Operator& op) const {
    return op.kind == OpKind::dispatch || op.kind == OpKind::combine ||
           std::ranges::any_of(op.inputs, [&](int v) { return prepared_.values[at(v)].routed; });
  }

  /// Indices the operator runs over, cut or not.
  IndexSet indices_of_operator(const Operator& op) const {
    IndexSet set = 0;
    for (int v : op.inputs) set |= indices_in(kind_.values[at(v)].dims);
    for (int v : op.outputs) set |= indices_in(kind_.values[at(v)].dims);
    for (int p : op.parameters) set |= indices_in(kind_.parameters[at(p)].dims);
    return set;
  }

  /// Reads one axis: which values are partial along it, entered, left.
  void read_axis(std::size_t a) {
    if (axis(a).degree == 1) return;
    const AxisMask bit = axis_bit(static_cast<int>(a));
    const How& stream = axis(a).how;
    const bool split = stream.cut == Cut::tensor &&
                       stream.modes.activations == Mode::sharded_gather;
    std::vector<bool> partial(kind_.values.size(), false);
    for (std::size_t o = 0; o < kind_.operators.size(); ++o) {
      const Operator& op = kind_.operators[o];
      const How& how = how_for(a, o);
      if (is_routed_work(op) || how.cut != Cut::tensor) continue;
      const IndexSet all = indices_of_operator(op);
      read_inputs(o, how, all, split, bit, partial);
      if (op.region == Region::parallel || is_contraction(op.kind)) {
        mark_partial(op, how.tensor_indices & all, partial);
      }
    }
  }

  void mark_partial(const Operator& op, IndexSet cut, std::vector<bool>& partial) const {
    const bool passes = passes_partial(op.kind) && std::ranges::any_of(op.inputs, [&](int v) {
      return partial[at(v)];
    });
    for (int v : op.outputs) {
      const IndexSet own = indices_in(kind_.values[at(v)].dims);
      partial[at(v)] = passes || (is_contraction(op.kind) && (cut & ~own) != 0);
    }
  }

  /// What the operator's inputs need along one axis.
  void read_inputs(std::size_t o, const How& how, IndexSet all, bool split, AxisMask bit,
                   std::vector<bool>& partial) {
    const Operator& op = kind_.operators[o];
    const bool inside = op.region == Region::parallel;
    for (int v : op.inputs) {
      const Value& value = kind_.values[at(v)];
      if (!carries_gradient(value)) continue;
      Transitions& t = values_[at(v)];
      const IndexSet own = indices_in(value.dims);
      const bool carries_cut = (own & how.tensor_indices) != 0;
      if (partial[at(v)]) {
        if (inside && passes_partial(op.kind) && (all & how.tensor_indices) == 0) continue;
        leave(t, v, inside, split, bit);
        partial[at(v)] = false;
        continue;
      }
      if (!inside || carries_cut) continue;
      const bool cut_here = (all & how.tensor_indices) != 0;
      enter(t, op, v, {split, cut_here}, bit);
    }
  }

  /// A partial value where it is needed whole: on the stream or by another operator inside.
  void leave(Transitions& t, int v, bool inside, bool split, AxisMask bit) const {
    if (inside || !split) {
      t.reduced |= bit;
    } else {
      t.scattered |= bit;
      t.back_gathered |= bit;
    }
    note_producer(t, v);
  }

  void note_producer(Transitions& t, int v) const {
    const int producer = prepared_.values[at(v)].producer;
    t.producer_recomputed =
        producer >= 0 && is_recomputed(kind_.operators[at(producer)]);
  }

  struct Entry {
    bool split = false;     // the stream is divided along the axis
    bool cut_here = false;  // the operator has a cut index of its own
  };

  /// A value without the cut index used inside a parallel region: gathered if it comes from a divided
  /// stream; its gradient is partial.
  void enter(Transitions& t, const Operator& op, int v, Entry entry, AxisMask bit) const {
    const Value& value = kind_.values[at(v)];
    const bool from_stream = value.region == Region::residual;
    if (!from_stream) {
      // Made inside by an operator that has a cut index: its gradient must be whole there.
      const int producer = prepared_.values[at(v)].producer;
      const bool linear_chain =
          producer >= 0 && passes_partial(kind_.operators[at(producer)].kind) &&
          (indices_of_operator(kind_.operators[at(producer)]) & kTensorIndices) == 0;
      if (entry.cut_here && !linear_chain) t.back_reduced |= bit;
      return;
    }
    t.consumer_recomputed = t.consumer_recomputed || is_recomputed(op);
    if (!entry.split) {
      t.back_reduced |= bit;
      return;
    }
    t.gathered |= bit;
    t.back_scattered |= bit;
    const bool kept_as_part = job_.profile.gathered_input == GatheredInput::shard;
    if (kept_as_part && needs_input_again(op)) t.regathered |= bit;
  }

  /// A contraction with trainable weights needs its whole input for their gradient.
  bool needs_input_again(const Operator& op) const {
    return is_contraction(op.kind) && std::ranges::any_of(op.parameters, [&](int p) {
      return kind_.parameters[at(p)].trainable;
    });
  }

  Dtype dtype_of(const Value& value) const {
    return value.type == ValueType::fp32 ? Dtype::fp32 : job_.precision.compute;
  }

  void add(std::string_view what, Collective collective, Phase phase, AxisMask axes,
           std::int64_t elements, Dtype dtype, std::int64_t count = 1,
           ReduceOp op = ReduceOp::none) {
    const std::int64_t group = degree_of(job_.placement, axes);
    if (group <= 1 || elements == 0) return;
    const bool reduces =
        collective == Collective::all_reduce || collective == Collective::reduce_scatter;
    if (reduces && op == ReduceOp::none) op = ReduceOp::sum;
    terms_.push_back({{.axes = axes, .collective = collective, .op = op,
                       .state = State::activations, .what = what, .unit = kind_.name,
                       .dtype = dtype, .phase = phase, .payload = bytes_of(elements, dtype),
                       .count = count, .group = group},
                      true});
  }

  void write_value(std::size_t v) {
    const Transitions& t = values_[v];
    const Value& value = kind_.values[v];
    const Dtype dtype = dtype_of(value);
    const std::int64_t whole =
        value.region == Region::residual ? local_.gathered[v] : local_.values[v];
    const auto forward = Phase::forward;
    const auto backward = Phase::backward;
    add(value.name, Collective::all_gather, forward, t.gathered, whole, dtype);
    add(value.name, Collective::reduce_scatter, forward, t.scattered, whole, dtype);
    add(value.name, Collective::all_reduce, forward, t.reduced, whole, dtype);
    if (t.consumer_recomputed) {
      add(value.name, Collective::all_gather, backward, t.gathered, whole, dtype);
    }
    if (t.producer_recomputed) {
      add(value.name, Collective::reduce_scatter, backward, t.scattered, whole, dtype);
      add(value.name, Collective::all_reduce, backward, t.reduced, whole, dtype);
    }
    add(value.name, Collective::all_gather, backward, t.regathered, whole, dtype);
    add(value.name, Collective::all_gather, backward, t.back_gathered, whole, dtype);
    add(value.name, Collective::reduce_scatter, backward, t.back_scattered, whole, dtype);
    add(value.name, Collective::all_reduce, backward, t.back_reduced, whole, dtype);
  }

  std::size_t attention_value(const Operator& op, AttentionTensor tensor) const {
    switch (tensor) {
      case AttentionTensor::query:
      case AttentionTensor::query_gradient: return at(op.inputs[0]);
      case AttentionTensor::keys:
      case AttentionTensor::keys_gradient: return at(op.inputs[1]);
      case AttentionTensor::values:
      case AttentionTensor::values_gradient: return at(op.inputs[2]);
      case AttentionTensor::output:
      case AttentionTensor::output_gradient: return at(op.outputs[0]);
    }
    return at(op.outputs[0]);
  }

  void write_attention(const Operator& op, bool again) {
    if (op.inputs.size() < 3 || op.outputs.empty()) return;
    for (std::size_t a = 0; a < job_.placement.axes.size(); ++a) {
      if (axis(a).how.cut != Cut::sequence || axis(a).degree == 1) continue;
      if (a >= job_.attention.size()) continue;
      for (const ExchangeStep& step : job_.attention[a].steps) {
        const Phase phase = step.in_backward ? Phase::backward : Phase::forward;
        write_exchange(op, step, a, phase);
        if (again && !step.in_backward) write_exchange(op, step, a, Phase::backward);
      }
    }
  }

  void write_exchange(const Operator& op, const ExchangeStep& step, std::size_t a, Phase phase) {
    std::int64_t together = 0;
    for (AttentionTensor tensor : step.tensors) {
      const std::size_t v = attention_value(op, tensor);
      if (step.together) {
        together = checked_add(together, local_.values[v], "attention exchange");
      } else {
        write_movement(step, kind_.values[v].name, a, phase, local_.values[v]);
      }
    }
    if (step.together) write_movement(step, "attention.exchange", a, phase, together);
  }

  void write_movement(const ExchangeStep& step, std::string_view what, std::size_t a, Phase phase,
                      std::int64_t part) {
    using Movement = ExchangeStep::Movement;
    const AxisMask bit = axis_bit(static_cast<int>(a));
    const std::int64_t degree = axis(a).degree;
    const Dtype dtype = job_.precision.compute;
    const std::int64_t whole = checked_multiply(part, degree, "attention exchange");
    switch (step.movement) {
      case Movement::gather:
        add(what, Collective::all_gather, phase, bit, whole, dtype);
        return;
      case Movement::scatter_sum:
        add(what, Collective::reduce_scatter, phase, bit, whole, dtype);
        return;
      case Movement::pieces:
      case Movement::pieces_sum:
        add(what, Collective::send_recv, phase, bit, part, dtype, degree - 1);
        return;
      case Movement::heads:
      case Movement::tokens:
        add(what, Collective::all_to_all, phase, bit, part, dtype);
        return;
    }
  }

  /// Axes around routed work: those whose devices own different experts and hold different tokens
  /// (all-to-all), those along which tokens must be made whole first (gather), and those whose
  /// stream is whole, so that each device contributes a part of the result (sum).
  struct RoutedAxes {
    AxisMask exchanged = 0;
    AxisMask gathered = 0;
    AxisMask summed = 0;
  };

  RoutedAxes routed_axes(std::size_t op) const {
    RoutedAxes out;
    for (std::size_t a = 0; a < job_.placement.axes.size(); ++a) {
      const How& stream = axis(a).how;
      if (stream.cut == Cut::layer || axis(a).degree == 1) continue;
      const How& expert = how_for(a, op);
      const bool whole =
          stream.cut == Cut::tensor && stream.modes.activations != Mode::sharded_gather;
      const AxisMask bit = axis_bit(static_cast<int>(a));
      if (whole) {
        out.summed |= bit;
      } else if (expert.cut == Cut::expert) {
        out.exchanged |= bit;
      } else if (expert.cut == Cut::tensor) {
        out.gathered |= bit;
      }
    }
    return out;
  }

  /// The operator of the routed experts themselves (dispatch and combine have no parameters).
  std::size_t expert_operator() const {
    for (std::size_t o = 0; o < kind_.operators.size(); ++o) {
      if (kind_.operators[o].kind == OpKind::grouped_linear) return o;
    }
    return 0;
  }

  void write_routing(const Operator& op, bool is_dispatch, bool again) {
    const RoutedAxes axes = routed_axes(expert_operator());
    const int routed = is_dispatch ? op.outputs.front() : op.inputs.front();
    const int stream = is_dispatch ? op.inputs.front() : op.outputs.front();
    const Value& value = kind_.values[at(routed)];
    const Dtype dtype = job_.precision.compute;
    std::int64_t sent = checked_multiply(layout_.residual_tokens, layout_.micro_batch, "tokens");
    for (const Dim& dim : value.dims) {
      if (dim.index != Index::sample && dim.index != Index::token) {
        sent = checked_multiply(sent, dim.size, "routed tokens");
      }
    }
    const std::int64_t whole =
        checked_multiply(sent, degree_of(job_.placement, axes.gathered), "routed tokens");
    auto move = [&](Phase phase, bool outward) {
      add(value.name, Collective::all_to_all, phase, axes.exchanged, sent, dtype);
      add(value.name, outward ? Collective::all_gather : Collective::reduce_scatter, phase,
          axes.gathered, whole, dtype);
      if (!outward) {
        add(kind_.values[at(stream)].name, Collective::all_reduce, phase, axes.summed,
            local_.values[at(stream)], dtype);
      }
    };
    move(Phase::forward, is_dispatch);
    move(Phase::backward, !is_dispatch);
    if (again) move(Phase::backward, is_dispatch);
  }

  /// Softmax statistics of a loss whose vocabulary is cut: largest logit, sum of exponentials,
  /// logit of the target, one fp32 number per token each.
  void write_loss(const Operator& op) {
    const std::size_t o = static_cast<std::size_t>(&op - kind_.operators.data());
    const Value& logits = kind_.values[at(op.inputs.front())];
    const IndexSet own = indices_in(logits.dims);
    AxisMask axes = 0;
    for (std::size_t a = 0; a < job_.placement.axes.size(); ++a) {
      const How& how = how_for(a, o);
      if (how.cut == Cut::tensor && contains(own & how.tensor_indices, Index::vocab)) {
        axes |= axis_bit(static_cast<int>(a));
      }
    }
    const std::int64_t tokens = checked_multiply(layout_.tokens, layout_.micro_batch, "tokens");
    const auto reduce = Collective::all_reduce;
    add("loss.max", reduce, Phase::forward, axes, tokens, Dtype::fp32, 1, ReduceOp::max);
    if (job_.profile.fuses_loss_sums) {
      add("loss.sums", reduce, Phase::forward, axes, 2 * tokens, Dtype::fp32);
      return;
    }
    add("loss.target", reduce, Phase::forward, axes, tokens, Dtype::fp32);
    add("loss.sum", reduce, Phase::forward, axes, tokens, Dtype::fp32);
  }

  /// A norm over a stream whose hidden index is cut needs its statistics summed, both ways.
  void write_norm(const Operator& op, bool again) {
    const std::size_t o = static_cast<std::size_t>(&op - kind_.operators.data());
    AxisMask axes = 0;
    for (std::size_t a = 0; a < job_.placement.axes.size(); ++a) {
      const How& how = how_for(a, o);
      if (how.cut == Cut::tensor && contains(how.tensor_indices, Index::hidden) &&
          contains(indices_in(kind_.values[at(op.inputs.front())].dims), Index::hidden)) {
        axes |= axis_bit(static_cast<int>(a));
      }
    }
    if (axes == 0) return;
    const std::int64_t tokens =
        checked_multiply(layout_.residual_tokens, layout_.micro_batch, "tokens");
    const auto reduce = Collective::all_reduce;
    add("norm.statistics", reduce, Phase::forward, axes, tokens, Dtype::fp32);
    if (again) add("norm.statistics", reduce, Phase::backward, axes, tokens, Dtype::fp32);
    add("norm.gradient", reduce, Phase::backward, axes, tokens, Dtype::fp32);
  }

  const Layout& layout_;
  const Job& job_;
  const LocalUnit& local_;
  const UnitKind& kind_;
  const PreparedKind& prepared_;
  const SavedPlan& plan_;
  std::vector<Transitions> values_;
  std::vector<UnitTerm> terms_;
};

}  // namespace

std::vector<UnitTerm> activation_traffic(const Layout& layout, int unit, bool recomputed) {
  return ActivationTraffic(layout, unit, recomputed).collect();
}

}  // namespace placet

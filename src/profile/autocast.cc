#include "profile/autocast.h"

#include <algorithm>

#include "units/at.h"

namespace placet {
namespace {

/// A norm that takes a mean off has two statistics of each token.
bool is_layer_norm(const UnitKind& kind, const Operator& op) {
  if (op.kind != OpKind::norm || op.internals.empty()) return false;
  const std::vector<Dim>& dims = kind.values[at(op.internals.front())].dims;
  return std::ranges::any_of(dims, [](const Dim& d) { return d.index == Index::other; });
}

class UnitFormats {
 public:
  UnitFormats(const Job& job, UnitKind& kind) : job_(job), kind_(kind) {}

  /// `stream`: whether what comes in is wide.
  void set(bool stream) {
    if (stream && !kind_.values.empty()) widen(0);
    for (const Operator& op : kind_.operators) {
      if (op.kind == OpKind::loss || !gives_wide(op)) continue;
      for (int v : op.outputs) widen(v);
      // What a norm has scaled goes back to the format of its input before its weights come in.
      if (op.kind == OpKind::norm && !is_wide(op.inputs.front())) continue;
      for (int v : op.internals) widen(v);
    }
  }

  /// Whether what the last operator gives is wide.
  bool hands_on_wide() const {
    if (kind_.operators.empty() || kind_.operators.back().outputs.empty()) return false;
    return is_wide(kind_.operators.back().outputs.front());
  }

 private:
  bool is_wide(int v) const { return kind_.values[at(v)].type == ValueType::fp32; }

  void widen(int v) {
    ValueType& type = kind_.values[at(v)].type;
    if (type == ValueType::compute) type = ValueType::fp32;
  }

  bool gives_wide(const Operator& op) const {
    if (is_cast(job_.profile, op)) return false;
    if (op.kind == OpKind::dropout && feeds_wide_adapter(op)) return true;
    if (op.kind == OpKind::bias) return is_wide(op.inputs.front());  // of a product, inside of it
    const auto wide_weight = [&](int p) { return is_wide_in_use(job_, kind_.parameters[at(p)]); };
    return is_layer_norm(kind_, op) ||
           std::ranges::any_of(op.inputs, [&](int v) { return is_wide(v); }) ||
           std::ranges::any_of(op.parameters, wide_weight);
  }

  /// Whether a low-rank adapter takes what the operator gives, which its module has cast before to
  /// the format of the adapter.
  bool feeds_wide_adapter(const Operator& op) const {
    return std::ranges::any_of(kind_.operators, [&](const Operator& reader) {
      if (reader.parameters.empty() || reader.inputs.front() != op.outputs.front()) return false;
      const Parameter& weight = kind_.parameters[at(reader.parameters.front())];
      return contains(weight.classes, TensorClass::adapters) && is_wide_in_use(job_, weight);
    });
  }

  const Job& job_;
  UnitKind& kind_;
};

}  // namespace

bool is_cast(const Profile& profile, const Operator& op) {
  return std::ranges::find(profile.autocasts, op.kind) != profile.autocasts.end();
}

bool is_wide_in_use(const Job& job, const Parameter& parameter) {
  const std::int64_t computed = bits_of(job.precision.compute);
  const bool gathered = std::ranges::any_of(job.placement.axes, [](const AxisPlacement& axis) {
    return axis.how.modes.parameters == Mode::sharded_gather;
  });
  return bits_of(parameter.dtype.value_or(job.precision.parameters)) > computed &&
         (!gathered || bits_of(job.precision.gather) > computed);
}

void set_formats(Job& job) {
  if (job.profile.autocasts.empty() || bits_of(job.precision.compute) >= 32) return;
  bool stream = false;  // residual sums stay in the format that the embedding gives
  for (UnitKind& kind : job.model.kinds) {
    UnitFormats formats(job, kind);
    formats.set(kind.role != UnitRole::embedding && stream);
    if (kind.role == UnitRole::embedding) stream = formats.hands_on_wide();
  }
}

}  // namespace placet

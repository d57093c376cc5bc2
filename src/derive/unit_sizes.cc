#include "derive/unit_sizes.h"

#include <algorithm>

#include "derive/exchange_memory.h"
#include "derive/narrow_products.h"
#include "derive/partial_sums.h"
#include "derive/routed_exchange.h"
#include "model/gradients.h"
#include "profile/autocast.h"
#include "units/at.h"
#include "units/checked.h"

namespace placet {
namespace {

/// Of one value: a petabyte on one device, and the sums over a unit stay far below 2^63.
constexpr std::int64_t kMostElements = std::int64_t{1} << 50;

void forget_logits(const UnitView& unit, std::vector<std::int64_t>& sizes) {
  for (const Operator& op : unit.kind.operators) {
    if (op.kind != OpKind::loss) continue;
    for (int v : op.inputs) sizes[at(v)] = 0;
    for (int v : op.internals) sizes[at(v)] = 0;
  }
}

/// What a product casts of its weights.
std::int64_t bytes_of_casts(const UnitView& unit, const Operator& op) {
  std::int64_t bytes = 0;
  for (int p : op.parameters) {
    if (!is_wide_in_use(unit.job, unit.kind.parameters[at(p)])) continue;
    const std::int64_t elements = unit.local.parameters[at(p)].elements;
    bytes += in_bytes(bytes_of(elements, unit.job.precision.compute));
  }
  return bytes;
}

std::int64_t type_bits(const UnitView& unit, ValueType type) {
  switch (type) {
    case ValueType::compute:
      return bits_of(unit.job.precision.compute);
    case ValueType::fp32:
      return 32;
    case ValueType::mask:
      return 8;
    case ValueType::int64:
      return 64;
  }
  return 0;
}

const How* checkpoint_how(const AxisPlacement& axis) {
  const How* found = nullptr;
  for (const Override& o : axis.overrides) {
    if (std::holds_alternative<Checkpoints>(o.selector)) found = &o.how;
  }
  return found;
}

/// Tensor axes that divide checkpoints although the stream is whole there.
AxisMask checkpoint_axes(const Placement& placement) {
  AxisMask axes = 0;
  for (std::size_t a = 0; a < placement.axes.size(); ++a) {
    const AxisPlacement& axis = placement.axes[a];
    const How* how = checkpoint_how(axis);
    const bool divided_already = axis.how.modes.activations == Mode::sharded_gather;
    if (how != nullptr && axis.how.cut == Cut::tensor && !divided_already &&
        how->modes.activations == Mode::sharded_gather) {
      axes |= axis_bit(static_cast<int>(a));
    }
  }
  return axes;
}

/// Whether backward finds a value, kept or made again.
bool is_there_in_backward(const UnitView& unit, std::size_t stored) {
  return unit.plan.is_kept[stored] ||
         std::ranges::find(unit.plan.rebuilt, static_cast<int>(stored)) != unit.plan.rebuilt.end();
}

/// Elements of a value: an input gathered for a parallel region is kept as the device's own part or
/// whole, as the profile says; of what only the stream takes backward finds what the stream has.
std::int64_t stored_elements(const UnitView& unit, std::size_t stored, std::size_t v) {
  const PreparedValue& value = unit.prepared.values[v];
  const bool kept = unit.plan.is_kept[stored] && !unit.plan.whole_unit;
  if (kept && unit.job.profile.gathered_input == GatheredInput::whole && value.enters_parallel) {
    return unit.local.gathered[v];
  }
  const bool on_stream = is_for_stream(value) && is_there_in_backward(unit, stored);
  return on_stream ? stream_elements(unit, v) : unit.local.values[v];
}

/// Bytes of a value where it is kept; a checkpoint may be divided once more.
std::int64_t stored_bytes(const UnitView& unit, std::size_t stored) {
  if (const auto op = casting_operator(unit.kind, static_cast<int>(stored))) {
    return bytes_of_casts(unit, unit.kind.operators[*op]);
  }
  const std::size_t v = at(value_of(unit.kind, static_cast<int>(stored)));
  std::int64_t elements = stored_elements(unit, stored, v);
  if (unit.plan.whole_unit && stored == 0)
    elements = own_part(unit.layout, elements, checkpoint_axes(unit.job.placement));
  return bytes_of_value(unit, stored, elements);
}

Rational host_part(const How& how) {
  if (how.modes.activations == Mode::offloaded) return Rational(1);
  const auto& offload = how.offload[static_cast<std::size_t>(State::activations)];
  return offload ? offload->fraction : Rational(0);
}

Rational activation_host_part(const Placement& placement) {
  Rational part(0);
  for (const AxisPlacement& axis : placement.axes) {
    part = std::max(part, host_part(axis.how));
  }
  return part;
}

Rational checkpoint_host_part(const Placement& placement) {
  Rational part = activation_host_part(placement);
  for (const AxisPlacement& axis : placement.axes) {
    if (const How* how = checkpoint_how(axis)) part = std::max(part, host_part(*how));
  }
  return part;
}

bool is_on_nvme(const How& how) {
  const auto& offload = how.offload[static_cast<std::size_t>(State::activations)];
  return offload && offload->medium == Medium::nvme;
}

/// Keys and values that are exchanged for heads stand on the device as often as they were sent:
/// so the core reads and keeps them.
void copy_shared_heads(const UnitView& unit, std::vector<std::int64_t>& sizes) {
  if (unit.layout.sequence_axes == 0) return;
  for (const Operator& op : unit.kind.operators) {
    if (op.kind != OpKind::attention || op.inputs.size() < 3) continue;
    for (const AttentionTensor tensor : {AttentionTensor::keys, AttentionTensor::values}) {
      const int v = exchanged_value(op, tensor, unit.job.profile);
      std::int64_t& size = sizes[at(unit.prepared.values[at(v)].root)];
      size = checked_multiply(size, copies_of_heads(unit.layout, unit.local, v),
                              "bytes of an activation");
    }
  }
}

/// Whether an operator keeps value v among its inputs.
bool keeps_input(const UnitView& unit, const Operator& op, int v) {
  if (is_contraction(op.kind) && is_frozen(unit.kind, op)) return false;
  const unsigned slots = unit.job.profile.saved[static_cast<std::size_t>(op.kind)].inputs;
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    if (op.inputs[i] == v && (slots >> i & 1U) != 0) return true;
  }
  return false;
}

}  // namespace

std::vector<std::int64_t> second_layouts(const UnitView& unit,
                                         const std::vector<std::int64_t>& sizes) {
  std::vector<std::int64_t> second(sizes.size(), 0);
  if (!exchanges_heads(unit.job)) return second;
  for (const Operator& op : unit.kind.operators) {
    if (op.kind != OpKind::attention) continue;
    const int result = op.outputs.front();
    const unsigned slots = unit.job.profile.saved[static_cast<std::size_t>(op.kind)].outputs;
    const bool is_read = std::ranges::any_of(unit.kind.operators, [&](const Operator& other) {
      return &other != &op && keeps_input(unit, other, result);
    });
    if ((slots & 1U) != 0 && is_read) second[at(result)] = sizes[at(result)];
  }
  return second;
}

std::int64_t bytes_of_value(const UnitView& unit, std::size_t v, std::int64_t elements) {
  if (elements > kMostElements) throw_overflow("bytes of an activation", "product");
  const int number = static_cast<int>(v);
  if (is_copy(unit.kind, number)) {
    const StorageFormat format = format_of_copies(unit.job);
    const std::int64_t copies = unit.prepared.values[at(value_of(unit.kind, number))].copies;
    return copies *
           in_bytes(bytes_of(elements, format.dtype) + bytes_of(elements, format.constants));
  }
  return (elements * type_bits(unit, unit.kind.values[v].type) + 7) / 8;
}

bool is_for_stream(const PreparedValue& value) {
  return value.leaves_parallel && !value.taken_inside && !value.on_stream && !value.routed;
}

std::int64_t elements_on_stream(const Layout& layout, std::int64_t elements) {
  return elements / std::max<std::int64_t>(1, layout.tokens) * layout.residual_tokens;
}

std::int64_t stream_elements(const UnitView& unit, std::size_t v) {
  return elements_on_stream(unit.layout, unit.local.values[v]);
}

std::size_t taken_by(const UnitView& unit, const Operator& op, std::size_t v) {
  const auto o = static_cast<std::size_t>(&op - unit.kind.operators.data());
  return unit.prepared.operators[o].narrow ? unit.kind.values.size() + v : v;
}

std::vector<std::int64_t> kept_sizes(const UnitView& unit, const RoutedExchange& routed) {
  std::vector<std::int64_t> sizes;
  const std::size_t stored = at(unit.prepared.stored);
  sizes.reserve(stored);
  for (std::size_t v = 0; v < stored; ++v) sizes.push_back(stored_bytes(unit, v));
  if (unit.job.profile.fuses_output_and_loss) forget_logits(unit, sizes);
  copy_shared_heads(unit, sizes);
  if (routed.returned >= 0) sizes[at(routed.returned)] = routed.with_tokens;
  return sizes;
}

Rational kept_off_device(const UnitView& unit) {
  const Placement& placement = unit.job.placement;
  return unit.plan.whole_unit ? checkpoint_host_part(placement) : activation_host_part(placement);
}

bool keeps_on_nvme(const UnitView& unit) {
  return std::ranges::any_of(unit.job.placement.axes, [&](const AxisPlacement& axis) {
    const How* how = unit.plan.whole_unit ? checkpoint_how(axis) : nullptr;
    return is_on_nvme(axis.how) || (how != nullptr && is_on_nvme(*how));
  });
}

}  // namespace placet

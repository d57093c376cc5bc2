#include "lower/update_numbers.h"

#include <utility>

#include "lower/unit_passes.h"
#include "program/kernel_text.h"
#include "units/at.h"
#include "units/error.h"

namespace placet {
namespace {

const BufferType kNumber{.dtype = Dtype::fp32, .pieces = {{}}, .flat = {}};

}  // namespace

bool UpdateNumbers::needs_gradients() const {
  const Reference& reference = in_.model.reference;
  return reference.norm_kernel >= 0 || reference.overflow_kernel >= 0;
}

void UpdateNumbers::make(const std::vector<OwnGradient>& gradients) {
  const Reference& reference = in_.model.reference;
  std::vector<BufferRef> inputs;
  if (reference.norm_kernel >= 0) {
    inputs.push_back(sum_over({.kernel = reference.norm_kernel, .name = "norm"}, gradients));
  }
  if (!reference.numbers.empty()) inputs.push_back(number_buffer(in_, 0));
  if (reference.clip_kernel >= 0) {
    taken_.push_back(make_number("limit"));
    call(reference.clip_kernel, inputs, {taken_.back()}, "limit");
  }
  if (reference.overflow_kernel >= 0) {
    taken_.push_back(
        sum_over({.kernel = reference.overflow_kernel, .name = "overflow"}, gradients));
  }
}

void UpdateNumbers::finish() {
  const Reference& reference = in_.model.reference;
  if (!reference.numbers.empty()) {
    std::vector<BufferRef> numbers;
    for (std::size_t n = 0; n < reference.numbers.size(); ++n) {
      numbers.push_back(number_buffer(in_, n));
    }
    std::vector<BufferRef> inputs = numbers;
    inputs.push_back(taken_.back());
    call(reference.adjust_kernel, std::move(inputs), std::move(numbers), "loss-scale");
  }
  for (const BufferRef& ref : made_) {
    w_.free(ref);
  }
}

BufferRef UpdateNumbers::make_number(const std::string& name) {
  made_.push_back({.family = w_.family(name, kNumber, Indexing::none)});
  w_.alloc(made_.back());
  return made_.back();
}

/// Each owner adds its own; what several hold counts in equal shares.
BufferRef UpdateNumbers::sum_over(const Sum& sum, const std::vector<OwnGradient>& gradients) {
  const BufferRef total = make_number(sum.name);
  w_.zero(total);
  for (const OwnGradient& gradient : gradients) add_part(sum, gradient, total);
  w_.reduce({total}, all_owners(), Combine::sum, sum.name);
  return total;
}

void UpdateNumbers::add_part(const Sum& sum, const OwnGradient& gradient, const BufferRef& total) {
  const BufferRef part{.family = w_.family(sum.name + ".part", kNumber, Indexing::none)};
  const AxisList owners = all_owners();
  const std::size_t pieces = gradient.plan->pieces.size();
  const bool apart = pieces > 1 && gradient.left.empty();
  if (!gradient.left.empty()) require_equal_sharers(gradient, owners);
  for (std::size_t i = 0; i < (apart ? pieces : 1); ++i) {
    BufferRef own = gradient.buffer;
    if (apart) own.piece = static_cast<int>(i);
    w_.alloc(part);
    call(sum.kernel, {own}, {part}, gradient.plan->name);
    add_scaled(sum, part, sharers(gradient, i, owners), total);
    w_.free(part);
  }
}

void UpdateNumbers::add_scaled(const Sum& sum, const BufferRef& part, std::int64_t sharers,
                               const BufferRef& total) {
  if (sharers > 1) {
    Instruction scale{.kind = InstructionKind::scale};
    scale.kernel =
        w_.add_kernel(kernel_from("kernel scaled(x[...]) -> (y[...]) {\n y[...] = x[...]\n}"));
    scale.inputs = {part};
    scale.outputs = {part};
    scale.factor = Rational(1, sharers);
    scale.label = sum.name;
    w_.add(std::move(scale));
  }
  w_.move(InstructionKind::accumulate, part, total);
}

AxisList UpdateNumbers::owner_axes(const ParameterPlan& plan) const {
  AxisList axes = united(plan.cut, plan.owned);
  if (layer_part_ >= 0) axes = united(axes, {layer_part_});
  return axes;
}

AxisList UpdateNumbers::all_owners() const {
  AxisList owners;
  for (const UnitParameters& unit : table_.parameters) {
    for (const ParameterPlan& plan : unit.plans) {
      if (plan.trainable) owners = united(owners, owner_axes(plan));
    }
  }
  return owners;
}

/// How many devices of the owners hold the same part.
std::int64_t UpdateNumbers::sharers(const OwnGradient& gradient, std::size_t piece,
                                    const AxisList& owners) const {
  AxisList divided = gradient.left;
  for (const Division& by : gradient.plan->spread[piece].by) divided = united(divided, axes_of(by));
  if (layer_part_ >= 0) divided = united(divided, {layer_part_});
  std::int64_t n = gradient.holders;
  for (int a : minus(owners, divided)) n *= in_.mesh.axes[at(a)].degree;
  return n;
}

/// Parts of a row of pieces that different numbers of devices hold cannot be told apart.
void UpdateNumbers::require_equal_sharers(const OwnGradient& gradient,
                                          const AxisList& owners) const {
  for (std::size_t i = 1; i < gradient.plan->pieces.size(); ++i) {
    if (sharers(gradient, i, owners) != sharers(gradient, 0, owners)) {
      refuse("--placement", gradient.plan->name,
             "has key and value rows that several devices hold, in shards of a limited gradient: "
             "no step program yet",
             "tensor axes of at most as many devices as key and value heads");
    }
  }
}

void UpdateNumbers::call(int model_kernel, std::vector<BufferRef> inputs,
                         std::vector<BufferRef> outputs, const std::string& label) {
  Instruction instruction{.kind = InstructionKind::norm};
  instruction.kernel = w_.add_kernel(in_.model.kernels[at(model_kernel)]);
  instruction.inputs = std::move(inputs);
  instruction.outputs = std::move(outputs);
  instruction.label = label;
  w_.add(std::move(instruction));
}

}  // namespace placet

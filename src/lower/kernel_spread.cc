#include "lower/kernel_spread.h"

#include <algorithm>

#include "units/at.h"

namespace placet {
namespace {

/// Axes that divide dims of a product which the result does not have.
AxisList summed(const Product& product, const Operand& result, const std::vector<Division>& by) {
  AxisList axes;
  const auto add = [&](int d) {
    const bool kept = std::ranges::find(result.dims, d) != result.dims.end();
    if (!kept) axes = united(axes, axes_of(by[at(d)]));
  };
  for (const Operand& o : product.operands) std::ranges::for_each(o.dims, add);
  return axes;
}

/// Whether some dim of the product's operands is divided by one of the axes: then devices along it
/// would each take another part of the product.
bool divides_one_of(const Product& product, const std::vector<Division>& by, const AxisList& axes) {
  return std::ranges::any_of(product.operands, [&](const Operand& o) {
    return std::ranges::any_of(o.dims,
                               [&](int d) { return !common(axes_of(by[at(d)]), axes).empty(); });
  });
}

/// The partial axes of the factor of a product that has any; none if two have, or if it is no sum,
/// or divided.
std::optional<AxisList> partial_factor(const Product& product, const std::vector<Division>& by,
                                       const std::vector<PartialResult>& tensors) {
  AxisList axes;
  for (const Operand& o : product.operands) {
    const PartialResult& partial = tensors[at(o.tensor)];
    if (partial.axes.empty()) continue;
    if (!axes.empty() || partial.op != Combine::sum) return std::nullopt;
    if (divides_one_of(product, by, partial.axes)) return std::nullopt;
    axes = partial.axes;
  }
  return axes;
}

/// The partial axes of a linear statement's result; none if its products differ in them or one has
/// two partial factors.
std::optional<AxisList> of_products(const Statement& s, const std::vector<Division>& by,
                                    const std::vector<PartialResult>& tensors) {
  std::optional<AxisList> all;
  for (const Product& product : s.products) {
    const std::optional<AxisList> factor = partial_factor(product, by, tensors);
    if (!factor) return std::nullopt;
    const AxisList axes = united(summed(product, s.result, by), *factor);
    if (all && *all != axes) return std::nullopt;
    all = axes;
  }
  return all ? *all : AxisList{};
}

}  // namespace

std::optional<std::vector<PartialResult>> results_of(const Kernel& kernel,
                                                     const std::vector<Division>& by,
                                                     const std::vector<AxisList>& inputs) {
  std::vector<PartialResult> tensors(kernel.tensors.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) tensors[i].axes = inputs[i];
  for (const Statement& s : kernel.statements) {
    PartialResult& result = tensors[at(s.result.tensor)];
    if (s.is_linear()) {
      const auto axes = of_products(s, by, tensors);
      if (!axes) return std::nullopt;
      result.axes = *axes;
      continue;
    }
    for (const Operand& o : s.operands) {
      if (!tensors[at(o.tensor)].axes.empty()) return std::nullopt;
    }
    for (int d : s.reduced) result.axes = united(result.axes, axes_of(by[at(d)]));
    result.op = s.combine;
  }
  std::vector<PartialResult> out;
  out.reserve(at(kernel.outputs));
  for (int o = 0; o < kernel.outputs; ++o) out.push_back(tensors[at(kernel.inputs + o)]);
  return out;
}

}  // namespace placet

#include "check/over_rows.h"

#include <algorithm>

#include "units/at.h"

namespace placet {
namespace {

bool has_rows(const Kernel& kernel, const std::vector<int>& dims) {
  return std::ranges::any_of(dims, [&](int d) { return kernel.dims[at(d)].name == kAnyDims; });
}

/// Nothing: it is made of all of them together.
std::optional<OverRow> over_row(const Kernel& kernel, const Statement& s) {
  const auto is_row = [&](const Operand& o) { return has_rows(kernel, o.dims); };
  const auto takes_row = [&](const Product& p) { return std::ranges::any_of(p.operands, is_row); };
  if (has_rows(kernel, s.whole)) return std::nullopt;
  if (has_rows(kernel, s.result.dims)) return OverRow::each;
  if (std::ranges::any_of(s.products, takes_row)) {
    if (!std::ranges::all_of(s.products, takes_row)) return std::nullopt;
    return OverRow::sum;
  }
  if (std::ranges::none_of(s.operands, is_row)) return OverRow::none;
  const bool is_sum = has_rows(kernel, s.reduced) && s.combine == Combine::sum;
  return is_sum ? std::optional(OverRow::sum) : std::nullopt;
}

}  // namespace

std::optional<std::vector<OverRow>> over_rows(const Kernel& kernel) {
  std::vector<OverRow> out(kernel.tensors.size(), OverRow::none);
  const auto takes_sum = [&](const Operand& o) { return out[at(o.tensor)] == OverRow::sum; };
  for (const Statement& s : kernel.statements) {
    const std::optional<OverRow> made = over_row(kernel, s);
    const bool of_sum = std::ranges::any_of(s.operands, takes_sum) ||
                        std::ranges::any_of(s.products, [&](const Product& p) {
                          return std::ranges::any_of(p.operands, takes_sum);
                        });
    if (!made || of_sum) return std::nullopt;
    out[at(s.result.tensor)] = *made;
  }
  return out;
}

bool are_rows_alike(const Kernel& kernel, const std::vector<ContentView>& inputs) {
  const ContentView* row = nullptr;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!has_rows(kernel, kernel.tensors[i].dims)) continue;
    if (row != nullptr && !same_shape(*row, inputs[i])) return false;
    row = &inputs[i];
  }
  return true;
}

}  // namespace placet

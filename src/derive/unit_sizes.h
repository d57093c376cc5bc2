// Bytes of the values of one unit where they are kept for backward (docs/theory.md §3.2). Inside
// of the files that write unit_memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "derive/routed_exchange.h"
#include "derive/unit_view.h"
#include "derive/whole_operands.h"
#include "units/at.h"

namespace placet {

/// Bytes of `elements` of value v, or of a copy of one (prepared.h). Throws InputError past 2^50
/// elements.
std::int64_t bytes_of_value(const UnitView& unit, std::size_t v, std::int64_t elements);

/// Bytes of each value, and of each copy, where it is kept: an input gathered for a parallel region
/// is kept as the device's own part or whole, as the profile says; a checkpoint may be divided once
/// more; keys and values exchanged for heads stand on the device as often as they were sent; what
/// comes back from experts is there for the device's own tokens.
std::vector<std::int64_t> kept_sizes(const UnitView& unit, const RoutedExchange& routed);

/// Bytes of a second copy where a value is kept, by value: of what an attention core makes, where
/// axes exchange heads for tokens. The core's backward reads it by heads, the product behind it by
/// tokens. Case: sp=2:heads of 4 tokens x 2 heads x 4 in bf16: 32 bytes of 2 tokens, and 32 of one
/// head.
std::vector<std::int64_t> second_layouts(const UnitView& unit,
                                         const std::vector<std::int64_t>& sizes);

/// Whether a value of a parallel region is taken on the stream alone: what backward finds of it,
/// for the norm behind a projection, is divided as the stream is. Case: tp=2:tp+sp of a block with
/// a norm behind its projection y [token, hidden]: y is a sum that goes to its parts, and each
/// device keeps the half of y that its norm reads.
bool is_for_stream(const PreparedValue& value);

/// What the stream has of a value of a parallel region with so many elements: its share of the
/// tokens, along all axes that divide the stream.
std::int64_t elements_on_stream(const Layout& layout, std::int64_t elements);

/// Elements of such a value on the stream.
std::int64_t stream_elements(const UnitView& unit, std::size_t v);

/// What operator `op` takes of value v: itself, or its copy in the products' format.
std::size_t taken_by(const UnitView& unit, const Operator& op, std::size_t v);

/// Calls visit(v, elements) for every operand of an operator that is whole while it runs, and
/// divided where it comes from or goes to: inputs gathered along the tokens or the columns of the
/// stream, outputs that are sums of whole columns. Where axes cut both sides of matrices.
template <class Visit>
void for_each_whole_operand(const UnitView& unit, const Operator& op, Visit visit) {
  const Placement& placement = unit.job.placement;
  const auto o = static_cast<std::size_t>(&op - unit.kind.operators.data());
  const PlacedOperator placed{.placement = placement,
                              .kind = unit.kind,
                              .op = op,
                              .classes = unit.prepared.operators[o].classes};
  for (int v : op.inputs) {
    const bool enters =
        op.region == Region::parallel && unit.prepared.values[at(v)].enters_parallel;
    const std::int64_t part = unit.local.values[at(v)];
    const std::int64_t tokens = enters ? unit.local.gathered[at(v)] : part;
    const std::int64_t whole = tokens * degree_of(placement, axes_of_whole_input(placed, v));
    if (whole != part) visit(v, whole);
  }
  for (int v : op.outputs) {
    const std::int64_t part = unit.local.values[at(v)];
    const std::int64_t whole = part * degree_of(placement, axes_of_whole_output(placed, v));
    if (whole != part) visit(v, whole);
  }
}

/// The part of what the unit keeps that is off the device, and whether it is on NVMe.
Rational kept_off_device(const UnitView& unit);
bool keeps_on_nvme(const UnitView& unit);

}  // namespace placet

// What a buffer holds, in terms of the reference (docs/theory.md §6.5). Inside of check/.
//
// A tensor of a device is a sum of nodes (check/nodes.h), each with a factor, restricted to a part
// of its dims and, where a sum is not complete, to a part of what is summed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "check/items.h"
#include "check/region.h"
#include "units/rational.h"

namespace placet {

/// A tensor of a device: its logical dims with their cuts, and what it is a sum of. All items have
/// the same dims.
struct Tensor {
  std::vector<int> dims;
  std::vector<Splits> cuts;
  Items items;  // by node; empty: zero
  /// Inverses of single numbers that all of it is multiplied by, in order (check/scales.h); of zero
  /// none.
  std::vector<NodeId> scales = {};

  friend bool operator==(const Tensor&, const Tensor&) = default;
};

std::uint64_t hash_of(const Tensor& tensor);
/// `hash` with one more number in it.
std::uint64_t mixed(std::uint64_t hash, const Rational& value);

/// The factor that all of an item has, of incomplete ones that of their shares; none: they differ.
std::optional<Rational> scale_of(const Item& item);

/// By what they are a part of, then by their open sums.
void sort_shares(std::vector<Share>& shares);

/// Whether no axis divides two of these sums: one that does gives each device its part of one with
/// its part of the other, and adding these up is not the sum over both.
bool is_one_sum_each(const std::vector<OpenSum>& sums);

/// Whether some node is there as a whole and in parts.
bool has_parts_and_whole(const Tensor& tensor);

/// Adds the axes along which parts of a share are missing; `micro_axis` where those of other
/// micro-batches are.
void add_missing_axes(const Share& share, int micro_axis, std::vector<int>& axes);

/// Those of all shares, each once, in order.
std::vector<int> missing_axes(const Tensor& tensor, int micro_axis);

bool is_complete(const Tensor& tensor);

/// Makes it this and nothing else.
inline void become(Tensor& tensor, Item item) {
  tensor.items = {std::move(item)};
  tensor.scales.clear();
}

/// Whether some share of what is not complete is one of these.
template <class Which>
bool any_share(const Tensor& tensor, Which which) {
  return std::any_of(tensor.items.first_in_doubt(), tensor.items.end(),
                     [&](const Item& item) { return std::ranges::any_of(item.shares, which); });
}

/// Whether some item is a maximum of which parts are missing: it takes part in no sum.
bool has_open_maximum(const Tensor& tensor);

/// Turns items whose shares are complete into complete ones. Shares that differ in one thing only,
/// of which device along an axis a sum has its part, are the sum over all parts once there is one
/// for every device.
void settle(Tensor& tensor, const Regions& regions);

/// Every part that is named by a device along an axis, of the device `by` places further on
/// instead. False: a part is one of which that cannot be said.
bool shift_all(Tensor& tensor, int axis, std::int64_t by, const Regions& regions);

/// Which parts of a sum that is added up part by part are missing or there more than once, in
/// words, of the first such sum. Empty: none is added up so, or not along one axis alone.
/// Case: parts 0 and 2 places further on of 3: "the part of the device 1 place further on along cp
/// is missing".
std::string wrong_parts(const Tensor& tensor, const Regions& regions);

/// Which micro-batches all its sums over them lack, in words. Empty: none, or not the same ones.
/// Case: runs of 0 and 3 of five: "micro-batches 1 to 2 and 4 are missing".
std::string missing_micro_batches(const Tensor& tensor, std::int64_t micro_batches);

/// The same with every number of the value multiplied.
Share scaled(Share share, const Rational& by);
Tensor scaled(Tensor tensor, const Rational& by);

/// What can be taken out of all items: of one item its factor; of several that have the same but
/// for the sign, its size; else 1.
Rational common_factor(const Tensor& tensor);

/// How often each item takes part, over what is a factor of all: A - 2 B has 1 and -2, and 2 A,
/// which is one item, has 1. An item counts as often as its shares do in the first micro-batch, and
/// once where these differ or are too large to be told.
std::vector<Rational> proportions_of(const Tensor& tensor);

/// Items that are incomplete in the same way, by their numbers.
std::vector<std::vector<std::size_t>> incomplete_alike(const Tensor& tensor);

/// The complete tensor that an incomplete one is a part of, over its scales.
Tensor completed(const Tensor& tensor);

/// Whether adding `more` of one micro-batch only makes the last runs of all shares one longer, and
/// completes nothing: the sum is over micro-batches up to this one, and all else is equal.
bool extends(const Tensor& sum, const Tensor& more, std::int64_t micro_batch,
             std::int64_t micro_batches);

/// Gives what is of the value's own micro-batch the number of that one, added to what is of it
/// already.
void name_micro_batch(Tensor& tensor, std::int64_t micro_batch);

/// Makes the last runs of all shares so much longer. Each has some.
void extend(Tensor& sum, std::int64_t by);

/// a += b where both have the same dims, cuts and scales: items of a node are one; shares that
/// differ in their micro-batches only are one. True: some node was in both. If it was not, and what
/// was added was settled, the sum is.
bool add_to(Tensor& a, const Tensor& b);

}  // namespace placet

// What a class has no entries of in a collective (docs/theory.md §6.5): it is whatever the others
// hold there, and its share of a sum over nothing is zero.
#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <set>

#include "check/empty.h"
#include "check/machine.h"
#include "check/scales.h"
#include "units/at.h"

namespace placet {
namespace {

/// Takes shares of sums out of a list; a maximum over nothing is not zero.
template <class Which>
void drop_shares_of(std::vector<Item>& items, Which which) {
  std::vector<Item> left;
  left.reserve(items.size());
  for (Item& item : items) {
    const bool stays = item.complete() || item.combine != Combine::sum;
    if (!stays) std::erase_if(item.shares, which);
    if (stays || !item.shares.empty()) left.push_back(std::move(item));
  }
  items = std::move(left);
}

template <class Which>
void drop_shares(Content& content, Which which) {
  for (Tensor& tensor : content.pieces) {
    tensor.items.edit_incomplete([&](std::vector<Item>& items) { drop_shares_of(items, which); });
  }
}

/// The axes of a row's divisions that cuts have closed and are else the same; none: they are not.
/// Case: of [a b] the cuts [closed a, b]: a.
std::optional<AxisList> closed_axes(const Splits& flat, const Splits& cuts) {
  AxisList closed;
  for (std::size_t k = 0; k < flat.size(); ++k) {
    if (k < cuts.size() && cuts[k] == flat[k]) continue;
    const bool fits = k >= cuts.size() || (!cuts[k].open && cuts[k].axis == flat[k].axis &&
                                           cuts[k].joint == flat[k].joint);
    if (!fits) return std::nullopt;
    closed.push_back(flat[k].axis);
  }
  if (cuts.size() > flat.size()) return std::nullopt;
  return closed;
}

/// Whether a dim of the row's tensors that is divided so is still summed part by part where the row
/// is.
bool is_open_there(const Share& share, NodeId node, const Splits& cuts) {
  return std::ranges::any_of(
      share.open, [&](const OpenSum& o) { return o.node == node && o.dim >= 0 && o.cuts == cuts; });
}

/// The axes that divide tensors of a row along which its sum at a node is not of the device's own
/// part any more.
AxisList summed_inside(const Rows::Row& row, const Share& share, NodeId node) {
  AxisList axes;
  for (const Tensor& t : row.shape.pieces) {
    for (const Splits& cuts : t.cuts) {
      if (is_open_there(share, node, cuts)) continue;
      std::ranges::transform(cuts, std::back_inserter(axes), &Split::axis);
    }
  }
  return axes;
}

/// The row of elements over which a share is summed; none: over no row.
std::optional<int> row_summed(const Share& share) {
  const auto sum = std::ranges::find_if(share.open, [](const OpenSum& o) { return o.dim < 0; });
  return sum == share.open.end() ? std::nullopt : std::optional(sum->dim);
}

std::set<int> rows_summed(const Content& content) {
  std::set<int> rows;
  const auto note = [&](const Share& share) {
    if (const auto row = row_summed(share)) rows.insert(*row);
  };
  for (const Tensor& tensor : content.pieces) {
    for (const Item& item : tensor.items) std::ranges::for_each(item.shares, note);
  }
  return rows;
}

bool has_share(const Tensor& tensor, NodeId node, const Share& like) {
  return std::ranges::any_of(tensor.items, [&](const Item& item) {
    return item.node == node && std::ranges::any_of(item.shares, [&](const Share& s) {
             return s.of == like.of && s.open == like.open;
           });
  });
}

/// Adds those shares of another tensor that this one has not.
template <class Which>
void add_shares(Tensor& tensor, const Tensor& other, Which which) {
  if (tensor.items.empty()) tensor.scales = other.scales;
  if (tensor.scales != other.scales) return;
  for (const Item& item : other.items) {
    if (item.combine != Combine::sum) continue;
    for (const Share& share : item.shares) {
      if (!which(share) || has_share(tensor, item.node, share)) continue;
      Item one = item;
      one.shares = {share};
      const Tensor more{
          .dims = tensor.dims, .cuts = tensor.cuts, .items = {std::move(one)}, .scales = {}};
      add_to(tensor, more);
    }
  }
  if (tensor.items.empty()) tensor.scales.clear();
}

template <class Which>
void add_shares(Content& content, const Content& other, Which which) {
  for (std::size_t p = 0; p < other.pieces.size(); ++p) {
    add_shares(content.pieces[p], other.pieces[p], which);
  }
}

/// Puts a tensor of a full content in place of those that have no entries of it. What else a row
/// has stays of its own micro-batch, so that of another one it is left alone.
void fill_empty(const std::vector<std::size_t>& empty, const Content& full, std::size_t piece,
                std::vector<Content>& contents) {
  for (const std::size_t m : empty) {
    Content& own = contents[m];
    if (!same_shape(full, own)) continue;
    const bool takes_over = own.micro_batch < 0 || own.pieces.size() == 1;
    const bool agrees = full.micro_batch < 0 || full.micro_batch == own.micro_batch;
    if (!takes_over && !agrees) continue;
    own.pieces[piece] = full.pieces[piece];
    if (takes_over) own.micro_batch = full.micro_batch;
  }
}

}  // namespace

/// What a class has no entries of is the same as what one that has some holds there.
void Machine::level_empty(const std::vector<int>& members, std::vector<Content>& contents) const {
  for (std::size_t p = 0; p < contents[0].pieces.size(); ++p) level_empty(members, p, contents);
}

void Machine::level_empty(const std::vector<int>& members, std::size_t piece,
                          std::vector<Content>& contents) const {
  std::vector<std::size_t> empty;
  const Content* full = nullptr;
  for (std::size_t m = 0; m < contents.size(); ++m) {
    const DeviceClass& mine = program_.classes[at(members[m])];
    const bool there = piece < contents[m].pieces.size();
    if (there && has_no_entries(program_, mine, contents[m], piece)) {
      empty.push_back(m);
    } else if (full == nullptr) {
      full = &contents[m];
    }
  }
  if (full != nullptr) fill_empty(empty, *full, piece, contents);
}

/// What the class has no entries of is nothing. True: something was said to be there.
bool Machine::clear_empty(int c, Numbered& value) {
  Content content;
  for (std::size_t p = 0; p < value.content->pieces.size(); ++p) {
    const bool empty = has_no_entries(program_, program_.classes[at(c)], *value.content, p);
    if (!empty || value.content->pieces[p].items.empty()) continue;
    if (content.pieces.empty()) content = whole_of(value);
    content.pieces[p].items = {};
    content.pieces[p].scales.clear();
  }
  if (content.pieces.empty()) return false;
  value = interned(std::move(content), value.micro_batch);
  return true;
}

/// Whether the share is a sum over a part of a row that is empty on all devices of a class: over
/// the parts of all devices along the axes over which it is summed.
bool Machine::is_over_nothing(int c, const Share& share) const {
  return std::ranges::any_of(share.open, [&](const OpenSum& o) {
    if (o.dim >= 0) return false;
    const Rows::Row& row = kernels_.rows().at(o.dim);
    const std::optional<AxisList> summed = closed_axes(row.shape.flat, o.cuts);
    if (!summed) return false;
    DeviceClass devices;
    devices.box = program_.classes[at(c)].box;
    const auto clear = [&](int a) {
      if (at(a) < devices.box.size()) devices.box[at(a)].clear();
    };
    std::ranges::for_each(*summed, clear);
    std::ranges::for_each(summed_inside(row, share, o.node), clear);
    return has_no_entries(program_, devices, row.shape, row.piece);
  });
}

/// A share over nothing is zero, whatever is said of it: where all classes of a row then hold the
/// same, those shares are put as the classes have them that have entries there, else as the first
/// has them.
void Machine::level_empty_sums(const std::vector<int>& members, const std::vector<std::size_t>& row,
                               std::vector<Content>& contents) const {
  const auto is_alike = [&](std::size_t m) { return contents[m] == contents[row[0]]; };
  if (std::ranges::all_of(row, is_alike)) return;
  std::vector<Content> before;
  std::vector<Content> known;
  for (const std::size_t m : row) {
    if (!same_shape(contents[m], contents[row[0]])) return;
    before.push_back(contents[m]);
    known.push_back(contents[m]);
    drop_shares(known.back(), [&](const Share& s) { return is_over_nothing(members[m], s); });
  }
  std::vector<Content> levelled = known;
  std::set<int> told;  // rows of which a class has entries, or an earlier one has told
  const auto is_told = [&](const Share& s) {
    const std::optional<int> own = row_summed(s);
    return !own || told.contains(*own);
  };
  const auto add = [&](std::size_t k, const Content& other) {
    add_shares(levelled[k], other,
               [&](const Share& s) { return !is_told(s) && is_over_nothing(members[row[k]], s); });
  };
  for (const Content& other : known) {
    for (std::size_t k = 0; k < row.size(); ++k) add(k, other);
  }
  for (const Content& other : known) told.merge(rows_summed(other));
  for (const Content& other : before) {
    for (std::size_t k = 0; k < row.size(); ++k) add(k, other);
    told.merge(rows_summed(other));
  }
  if (std::ranges::adjacent_find(levelled, std::not_equal_to<>()) != levelled.end()) return;
  for (std::size_t k = 0; k < row.size(); ++k) contents[row[k]] = std::move(levelled[k]);
}

}  // namespace placet

#include "check/content.h"

#include <set>
#include <utility>

#include "units/hash.h"

namespace placet {
namespace {

/// Axes that divide tensors of a row but not this one, into parts of several lengths.
AxisList shifting_axes(const Content& row, std::size_t piece, const Regions& regions) {
  std::set<int> own;
  for (const Splits& cuts : row.pieces[piece].cuts) {
    for (const Split& split : cuts) own.insert(split.axis);
  }
  std::set<int> found;
  const auto note = [&](int dim, const Splits& cuts) {
    if (regions.have_one_length(regions.extent_of(dim), cuts)) return;
    for (const Split& split : cuts) {
      if (split.open && !own.contains(split.axis)) found.insert(split.axis);
    }
  };
  for (const Tensor& t : row.pieces) {
    for (std::size_t d = 0; d < t.dims.size(); ++d) note(t.dims[d], t.cuts[d]);
  }
  return {found.begin(), found.end()};
}

}  // namespace

std::uint64_t hash_of(const Content& content) {
  std::uint64_t hash =
      mixed(hash_of(content.flat), static_cast<std::uint64_t>(content.micro_batch));
  for (const Tensor& t : content.pieces) hash = mixed(hash, hash_of(t));
  return hash;
}

int Rows::number_of(const ContentView& content, std::size_t piece, const Regions& regions) {
  Row row{.piece = piece};
  if (content.is_row()) row.shape.flat = *content.flat;
  for (const Tensor& t : content.pieces) {
    row.shape.pieces.push_back({.dims = t.dims, .cuts = t.cuts, .items = {}});
  }
  row.shifting = shifting_axes(row.shape, piece, regions);
  auto found = std::ranges::find(rows_, row);
  if (found == rows_.end()) found = rows_.insert(rows_.end(), std::move(row));
  return -1 - static_cast<int>(found - rows_.begin());
}

bool Rows::shifts(const OpenSum& sum, int axis) const {
  if (sum.dim >= 0) return false;
  const AxisList& axes = at(sum.dim).shifting;
  return std::ranges::find(axes, axis) != axes.end();
}

bool same_shape(const Content& a, const Content& b) { return same_shape(view_of(a), view_of(b)); }

bool same_shape(const ContentView& a, const ContentView& b) {
  if (a.is_row() != b.is_row() || (a.is_row() && *a.flat != *b.flat)) return false;
  if (a.pieces.size() != b.pieces.size()) return false;
  for (std::size_t p = 0; p < a.pieces.size(); ++p) {
    if (a.pieces[p].dims != b.pieces[p].dims || a.pieces[p].cuts != b.pieces[p].cuts) return false;
  }
  return true;
}

bool is_zero(const Content& content) {
  return std::ranges::all_of(content.pieces, [](const Tensor& t) { return t.items.empty(); });
}

bool is_odd(const Content& content) {
  return std::ranges::any_of(content.pieces, [](const Tensor& t) { return t.items.any_odd(); });
}

void settle_micro_batch(Content& content, int micro_axis) {
  if (content.micro_batch < 0 || is_divided(content, micro_axis)) return;
  for (Tensor& t : content.pieces) name_micro_batch(t, content.micro_batch);
  content.micro_batch = -1;
}

bool is_divided(const Splits& cuts, int axis) {
  return std::ranges::any_of(cuts, [&](const Split& c) { return c.axis == axis && c.open; });
}

bool is_divided(const Content& content, int axis) {
  const auto divides = [&](const Splits& cuts) { return is_divided(cuts, axis); };
  return divides(content.flat) || std::ranges::any_of(content.pieces, [&](const Tensor& t) {
           return std::ranges::any_of(t.cuts, divides);
         });
}

}  // namespace placet

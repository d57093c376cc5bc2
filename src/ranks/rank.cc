#include "ranks/rank.h"

#include <algorithm>

#include "units/at.h"

namespace placet::ranks {
namespace {

/// The runs as far as they lie in the part of the row that is there, by place in that part.
std::vector<Run> clipped(const std::vector<Run>& runs, const Part& part) {
  std::vector<Run> inside;
  for (const Run& run : runs) {
    const std::int64_t begin = std::max(run.to, part.begin);
    const std::int64_t end = std::min(run.to + run.length, part.begin + part.size);
    if (begin >= end) continue;
    inside.push_back(
        {.from = run.from + (begin - run.to), .to = begin - part.begin, .length = end - begin});
  }
  return inside;
}

}  // namespace

RankImage::RankImage(const Program& program, const Listing& listing,
                     const ProgramCoordinates& place, OperationList& memory)
    : program_(program), listing_(listing) {
  ProgramCoordinates coordinates = place;
  for (const Form& form : listing.forms) {
    coordinates.back() = form.micro_batch;
    shapes_.push_back(shape_of(program, program.families[at(form.family)].type, coordinates));
  }
  // A slot is as large as its largest form.
  std::vector<std::int64_t> largest(program.families.size(), 0);
  for (std::size_t f = 0; f < shapes_.size(); ++f) {
    std::int64_t& size = largest[at(listing.forms[f].family)];
    size = std::max(size, shapes_[f].flat.size);
  }
  for (const Slot& slot : listing.slots) {
    elements_.push_back(largest[at(slot.family)]);
    addresses_.push_back(memory.reserve(elements_.back()));
  }
}

std::vector<BufferPlace> RankImage::buffers(int rank) const {
  std::vector<BufferPlace> all;
  all.reserve(addresses_.size());
  for (std::size_t s = 0; s < addresses_.size(); ++s) {
    all.push_back({.rank = rank,
                   .slot = static_cast<int>(s),
                   .family = listing_.slots[s].family,
                   .address = addresses_[s],
                   .elements = elements_[s]});
  }
  return all;
}

const LocalShape& RankImage::shape(const ListedRef& ref) const { return shapes_[at(ref.form)]; }

BufferView RankImage::view(const ListedRef& ref) const { return view_of(shape(ref), ref.piece); }

std::int64_t RankImage::address(const ListedRef& ref) const { return addresses_[at(ref.slot)]; }

const PieceType* RankImage::piece(const ListedRef& ref) const {
  const BufferType& type = program_.families[at(listing_.forms[at(ref.form)].family)].type;
  if (ref.piece >= 0) return &type.pieces[at(ref.piece)];
  return type.pieces.size() == 1 ? type.pieces.data() : nullptr;
}

std::string RankImage::add_regions(const ReferenceRun& reference, const ListedRef& buffer,
                                   const std::vector<StateRef>& pieces,
                                   std::vector<Region>& regions) const {
  const BufferType& type = program_.families[at(listing_.forms[at(buffer.form)].family)].type;
  const std::size_t first = buffer.piece < 0 ? 0 : at(buffer.piece);
  const std::size_t count = buffer.piece < 0 ? type.pieces.size() : 1;
  if (pieces.size() != count) return "a buffer begins with another number of pieces than it has";
  for (std::size_t i = 0; i < count; ++i) {
    const LocalPiece& local = shape(buffer).pieces[first + i];
    Region region{.kind = pieces[i].kind, .buffer = buffer};
    region.buffer.piece = static_cast<int>(first + i);
    region.runs = {{.from = 0, .to = 0, .length = local.size}};
    if (region.kind != StateRef::Kind::zero) {
      region.tensor = reference.find(pieces[i], program_.reference);
      std::string problem = take_part(type.pieces[first + i], local, region);
      if (!problem.empty()) return problem;
    }
    for (Run& run : region.runs) run.to += local.row;
    region.runs = clipped(region.runs, shape(buffer).flat);
    for (Run& run : region.runs) run.to += address(buffer);
    regions.push_back(std::move(region));
  }
  return "";
}

/// The runs from the reference's tensor to the piece.
std::string RankImage::take_part(const PieceType& type, const LocalPiece& local, Region& region) {
  if (region.tensor == nullptr) return "a buffer is a tensor that the reference does not have";
  std::vector<int> dims;
  dims.reserve(type.dims.size());
  for (const DividedDim& d : type.dims) dims.push_back(d.dim);
  if (dims != region.tensor->dims) {
    return "a buffer has other dims than '" + region.tensor->name + "', which it is";
  }
  const Extents origin(local.extents.size(), 0);
  region.runs =
      runs_between({region.tensor->extents, local.begins}, {local.extents, origin}, local.extents);
  for (Run& run : region.runs) run.from += region.tensor->address;
  return "";
}

}  // namespace placet::ranks

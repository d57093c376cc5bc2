#include "algebra/rank.h"

#include <algorithm>

namespace placet::algebra {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

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

RankImage::RankImage(const Program& program, const Listing& listing, const ProgramCoordinates& at_,
                     OperationList& memory)
    : program_(program), listing_(listing) {
  ProgramCoordinates coordinates = at_;
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
    addresses_.push_back(memory.reserve(largest[at(slot.family)]));
  }
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
  const Family& family = program_.families[at(listing_.forms[at(buffer.form)].family)];
  const std::string name = "the buffer '" + family.name + "'";
  const std::size_t first = buffer.piece < 0 ? 0 : at(buffer.piece);
  const std::size_t count = buffer.piece < 0 ? family.type.pieces.size() : 1;
  if (pieces.size() != count) return name + " begins with another number of pieces than it has";
  for (std::size_t i = 0; i < count; ++i) {
    const LocalPiece& local = shape(buffer).pieces[first + i];
    Region region{
        .buffer = {.slot = buffer.slot, .form = buffer.form, .piece = static_cast<int>(first + i)}};
    std::vector<Run> runs{{.from = 0, .to = 0, .length = local.size}};
    if (pieces[i].kind != StateRef::Kind::zero) {
      region.tensor = reference.find(pieces[i], program_.reference);
      if (region.tensor == nullptr) return name + " is a tensor that the reference does not have";
      std::vector<int> dims;
      for (const DividedDim& d : family.type.pieces[first + i].dims) dims.push_back(d.dim);
      if (dims != region.tensor->dims) {
        return name + " has other dims than '" + region.tensor->name + "'";
      }
      const Extents origin(local.extents.size(), 0);
      runs = runs_between({region.tensor->extents, local.begins}, {local.extents, origin},
                          local.extents);
      for (Run& run : runs) run.from += region.tensor->address;
    }
    for (Run& run : runs) run.to += local.row;
    region.runs = clipped(runs, shape(buffer).flat);
    for (Run& run : region.runs) run.to += address(buffer);
    regions.push_back(std::move(region));
  }
  return "";
}

}  // namespace placet::algebra

// What buffers hold beside what their types say, and whether they have the room for it.
#include <algorithm>

#include "check/empty.h"
#include "check/fit.h"
#include "check/machine.h"
#include "units/at.h"

namespace placet {

/// What is noted of a content where it is written, and what is asked of it.
void Machine::look_at(int c, const BufferRef& ref, const Arguments& a, const Numbered& value) {
  const bool as_typed = has_type(ref, *value.content);
  // Where what is held is wrong, the finding says so.
  if (!as_typed && labels_types_ && !is_odd(*value.content)) note_label(c, ref);
  if (traces_ && scaled_.insert(value.number).second) note_scales(c, value);
  const std::int64_t mine = value_of(ref.micro_batch, a);
  const bool elsewhere =
      value.micro_batch >= 0 && value.micro_batch != mine && has_uneven_micro_batches(ref.family);
  if (!as_typed || elsewhere) require_room(c, ref, value, elsewhere ? mine : -1);
}

/// Whether a buffer's part of one micro-batch may be longer than that of another one.
bool Machine::has_uneven_micro_batches(int family) {
  return std::ranges::any_of(type_of(family).pieces, [&](const Tensor& t) {
    for (std::size_t d = 0; d < t.dims.size(); ++d) {
      const bool parted = is_divided(t.cuts[d], regions_.micro_axis());
      const std::int64_t extent = program_.dims[at(t.dims[d])].extent;
      if (parted && !regions_.have_one_length(extent, t.cuts[d])) return true;
    }
    return false;
  });
}

bool Machine::has_uneven_micro_batches() {
  for (int family = 0; family < static_cast<int>(program_.families.size()); ++family) {
    if (has_uneven_micro_batches(family)) return true;
  }
  return false;
}

/// Whether all parts of both are as long, and these are the same.
bool Machine::has_even_room(const Content& type, int piece, const Content& given) const {
  const std::size_t first = piece < 0 ? 0 : at(piece);
  const std::size_t count = piece < 0 ? type.pieces.size() : 1;
  bool same = type.flat.empty() && given.flat.empty() && given.pieces.size() == count;
  for (std::size_t p = 0; same && p < count; ++p) {
    const Tensor& room = type.pieces[first + p];
    const Tensor& own = given.pieces[p];
    same = room.dims.size() == own.dims.size();
    for (std::size_t d = 0; same && d < own.dims.size(); ++d) {
      same = even_length(room, d) > 0 && even_length(room, d) == even_length(own, d);
    }
  }
  return same;
}

/// The length of all devices' parts of a dim; 0: they differ.
std::int64_t Machine::even_length(const Tensor& t, std::size_t dim) const {
  const std::int64_t extent = program_.dims[at(t.dims[dim])].extent;
  return regions_.have_one_length(extent, t.cuts[dim]) ? length_of(extent, t.cuts[dim], regions_)
                                                       : 0;
}

/// Whether a tensor of which the class has entries is made of what cannot be right.
bool Machine::is_odd_somewhere(int c, const Content& content) const {
  for (std::size_t p = 0; p < content.pieces.size(); ++p) {
    if (!content.pieces[p].items.any_odd()) continue;
    if (!has_no_entries(program_, program_.classes[at(c)], content, p)) return true;
  }
  return false;
}

/// A buffer has the room for what it is given, of the micro-batch `mine` if that is of another one
/// (-1: it is not).
void Machine::require_room(int c, const BufferRef& ref, const Numbered& value, std::int64_t mine) {
  // What cannot be right has no shape to go by; the sizes of the buffers are asked in any case.
  if (is_odd(*value.content)) return;
  is_own_ = true;  // other devices, and other micro-batches, have other extents
  const MicroBatchPair which{.of_type = mine, .of_given = mine < 0 ? -1 : value.micro_batch};
  const auto fits = [&] {
    return has_even_room(type_of(ref.family), ref.piece, *value.content) ||
           has_room({program_, program_.classes[at(c)], which}, type_of(ref.family), ref.piece,
                    *value.content);
  };
  bool good = false;
  if (value.number < 0 || mine >= 0) {
    good = fits();
  } else {
    const auto [found, fresh] = rooms_.try_emplace({c, ref.family, ref.piece, value.number}, false);
    if (fresh) found->second = fits();
    good = found->second;
  }
  if (good) return;
  breach(c, "'" + program_.families[at(ref.family)].name + "' is given what it has no room for");
}

/// What an instruction of one device moves goes into a buffer of the right size, of another
/// micro-batch too: of one micro-batch it was asked by types (`find_misfits`).
void Machine::require_room_between(int c, const Instruction& i, const Arguments& a) {
  for (std::size_t b = 0; b < i.inputs.size() && b < i.outputs.size(); ++b) {
    const BufferRef& from = i.inputs[b];
    const BufferRef& to = i.outputs[b];
    if (from.micro_batch == to.micro_batch) continue;
    if (!has_uneven_micro_batches(from.family) && !has_uneven_micro_batches(to.family)) continue;
    is_own_ = true;  // other micro-batches have other lengths
    const Buffer held = buffer_of(c, from, a);
    const Buffer given = buffer_of(c, to, a);
    const bool fits = moves_whole(i.kind) ? are_as_large(held, given, {})
                                          : is_as_long_in(held, given.micro_batch);
    if (!fits) breach(c, "its buffers do not fit each other");
  }
}

/// Whether a buffer's element of its micro-batch has the extents of that of another one.
bool Machine::is_as_long_in(const Buffer& buffer, std::int64_t micro_batch) {
  const Content& type = type_of(buffer.ref->family);
  Content own = type;
  if (buffer.ref->piece >= 0) own.pieces = {type.pieces[at(buffer.ref->piece)]};
  const MicroBatchPair which{.of_type = micro_batch, .of_given = buffer.micro_batch};
  return has_room({program_, program_.classes[at(buffer.device_class)], which}, type,
                  buffer.ref->piece, own);
}

/// Types are labels: what a buffer holds follows from what made it.
bool Machine::has_type(const BufferRef& ref, const Content& content) {
  const Content& type = type_of(ref.family);
  const std::vector<Tensor>& pieces = content.pieces;
  const std::size_t first = ref.piece < 0 ? 0 : at(ref.piece);
  const std::size_t count = ref.piece < 0 ? type.pieces.size() : 1;
  bool same = content.flat == type.flat && pieces.size() == count;
  for (std::size_t p = 0; same && p < pieces.size(); ++p) {
    const Tensor& declared = type.pieces[first + p];
    same = pieces[p].dims == declared.dims && pieces[p].cuts == declared.cuts;
  }
  return same;
}

/// Of two names of the same entries, the buffer's type has one: it is what tensors that meet and
/// what the end of a step asks for have. No entry is taken for another one by it.
Machine::Numbered Machine::named_as_typed(int c, const BufferRef& ref, const Numbered& value) {
  if (value.number < 0 || has_type(ref, *value.content) || is_odd(*value.content)) return value;
  is_own_ = true;  // other devices have other parts
  const auto [found, fresh] =
      named_as_typed_.try_emplace({c, ref.family, ref.piece, value.number}, value);
  if (fresh) found->second = typed_alike(c, ref, value);
  Numbered out = found->second;
  out.micro_batch = value.micro_batch;
  return out;
}

Machine::Numbered Machine::typed_alike(int c, const BufferRef& ref, const Numbered& value) {
  const Content& type = type_of(ref.family);
  Content out = whole_of(value);
  if (ref.piece >= 0 || out.pieces.size() != type.pieces.size()) return value;
  for (const Content* content : {&type, value.content.get()}) {
    if (is_divided(*content, regions_.micro_axis())) return value;
  }
  out.flat = type.flat;
  for (std::size_t p = 0; p < out.pieces.size(); ++p) {
    if (out.pieces[p].dims != type.pieces[p].dims) return value;
    out.pieces[p].cuts = type.pieces[p].cuts;
  }
  if (!is_same_part(program_, program_.classes[at(c)], type, *value.content)) return value;
  return interned(std::move(out), value.micro_batch);
}

void Machine::note_label(int c, const BufferRef& ref) {
  if (labels_.size() >= kMostBreaches) return;
  const std::string& name = program_.families[at(ref.family)].name;
  const std::string what = "'" + name + "' holds another part than its type says";
  const bool told = std::ranges::any_of(labels_, [&](const Breach& b) { return b.what == what; });
  if (!told) labels_.push_back({.what = what, .origin = here(c)});
}

std::int64_t Machine::elements_of(const Content& content) const {
  std::int64_t sum = 0;
  for (const Tensor& t : content.pieces) {
    std::int64_t elements = 1;
    for (std::size_t d = 0; d < t.dims.size(); ++d) {
      elements *= length_of(program_.dims[at(t.dims[d])].extent, t.cuts[d], regions_);
    }
    sum += elements;
  }
  return sum;
}

const Content& Machine::type_of(int family) {
  std::optional<Content>& known = types_[at(family)];
  if (known) return *known;
  const BufferType& type = program_.families[at(family)].type;
  Content out;
  for (const PieceType& piece : type.pieces) {
    Tensor& t = out.pieces.emplace_back();
    for (const DividedDim& d : piece.dims) {
      t.dims.push_back(d.dim);
      t.cuts.push_back(regions_.cuts_of(program_.dims[at(d.dim)].extent, d.by, d.shift));
    }
  }
  out.flat = regions_.cuts_of(elements_of(out), one_by_one(type.flat));
  return known.emplace(std::move(out));
}

/// The content that the type of a buffer stands for, of these tensors.
Content Machine::typed(const BufferRef& ref, const std::vector<NodeId>& nodes) {
  Content out = type_of(ref.family);
  for (std::size_t p = 0; p < out.pieces.size() && p < nodes.size(); ++p) {
    if (nodes[p] < 0) continue;
    out.pieces[p].items = {nodes_.item_of(nodes[p])};
  }
  if (is_divided(out, regions_.micro_axis())) out.micro_batch = ref.micro_batch.offset;
  return out;
}

}  // namespace placet

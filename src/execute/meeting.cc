#include "execute/meeting.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "units/at.h"
#include "units/error.h"
#include "units/shares.h"

namespace placet::execute {
namespace {

using ranks::BufferView;
using ranks::Extents;
using ranks::Member;

/// Labels of parts: what goes straight to a member, and what goes round.
constexpr std::uint64_t kRound = std::uint64_t{1} << 32U;

std::int64_t length_along(const BufferView& view, int dim) {
  if (dim == kFlat) return view.size;
  ensure(view.extents != nullptr && at(dim) < view.extents->size(), "a buffer has the dim");
  return (*view.extents)[at(dim)];
}

/// The elements of a part of a tensor along a dim, row by row.
void add_part(const BufferView& view, std::int64_t address, int dim, const Part& part,
              Stretches& to) {
  const std::int64_t begin = address + view.offset;
  if (dim == kFlat) {
    if (part.size > 0) to.push_back({begin + part.begin, part.size});
    return;
  }
  Extents size = *view.extents;
  Extents begins(size.size(), 0);
  size[at(dim)] = part.size;
  begins[at(dim)] = part.begin;
  const Extents origin(size.size(), 0);
  for (const ranks::Run& run : ranks::runs_between({*view.extents, begins}, {size, origin}, size)) {
    to.push_back({begin + run.from, run.length});
  }
}

void add_whole(const BufferView& view, std::int64_t address, Stretches& to) {
  if (view.size > 0) to.push_back({address + view.offset, view.size});
}

/// As far as it lies in a part of the row of all tensors.
void add_of_row(const BufferView& view, std::int64_t address, std::int64_t row, const Part& part,
                Stretches& to) {
  const std::int64_t first = std::max(row, part.begin);
  const std::int64_t last = std::min(row + view.size, part.begin + part.size);
  if (first < last) to.push_back({address + view.offset + first - row, last - first});
}

std::int64_t bits_in(const Stretches& stretches, const std::vector<Dtype>& formats) {
  std::int64_t bits = 0;
  for (const Stretch& s : stretches) bits += s.length * bits_of(formats[at(s.address)]);
  return bits;
}

void flip_a_bit(Number& x) { x.high ^= Wide{1} << 60; }
template <class Real>
void flip_a_bit(Real& x) {
  x = x == 0 ? Real{1} : x * Real{2};  // a bit of the exponent
}

/// Canonical numbers rest as they are.
void round_to(Dtype, Number&) {}
template <class Real>
void round_to(Dtype format, Real& x) {
  x = static_cast<Real>(rounded_to(format, static_cast<double>(x)));
}

/// Adds what one more member gives, or keeps the larger. False: out of range.
template <class Stored>
bool combine(const Parcel<Stored>& one, Combine how, Parcel<Stored>& all) {
  ensure(one.numbers.size() == all.numbers.size(), "all members give as much");
  bool fits = true;
  for (std::size_t e = 0; e < all.levels.size(); ++e) {
    all.levels[e] = std::max(all.levels[e], one.levels[e]);
  }
  for (std::size_t e = 0; e < all.numbers.size(); ++e) {
    if (how == Combine::sum) {
      fits = add_to(all.numbers[e], one.numbers[e]) && fits;
    } else if (all.numbers[e] < one.numbers[e]) {
      all.numbers[e] = one.numbers[e];
    }
  }
  return fits;
}

bool goes_round(InstructionKind kind) {
  return kind == InstructionKind::all_gather || kind == InstructionKind::broadcast;
}

}  // namespace

template <class Numbers>
Parcel<typename Numbers::Stored> taken(const Memory<Numbers>& memory, const Stretches& from) {
  Parcel<typename Numbers::Stored> out;
  std::int64_t size = 0;
  for (const Stretch& s : from) size += s.length;
  out.numbers.resize(at(size));
  out.levels.resize(Memory<Numbers>::kHasLevels ? at(size) : 0);
  std::int64_t next = 0;
  for (const Stretch& s : from) {
    std::copy_n(memory.numbers.begin() + s.address, s.length, out.numbers.begin() + next);
    if constexpr (Memory<Numbers>::kHasLevels) {
      std::copy_n(memory.levels.begin() + s.address, s.length, out.levels.begin() + next);
    }
    next += s.length;
  }
  return out;
}

template <class Numbers>
void store(RankMemory<Numbers>& memory, const Stretches& to,
           const Parcel<typename Numbers::Stored>& parcel) {
  std::size_t next = 0;
  for (const Stretch& s : to) {
    ensure(at(s.length) <= parcel.numbers.size() - next, "as much comes as is taken");
    const auto from = static_cast<std::ptrdiff_t>(next);
    const auto numbers = memory.numbers.numbers.begin() + s.address;
    std::copy_n(parcel.numbers.begin() + from, s.length, numbers);
    if constexpr (Memory<Numbers>::kHasLevels) {
      std::copy_n(parcel.levels.begin() + from, s.length,
                  memory.numbers.levels.begin() + s.address);
    }
    for (std::int64_t k = 0; k < s.length && memory.rounds; ++k) {
      round_to(memory.formats[at(s.address + k)], numbers[k]);
    }
    next += at(s.length);
  }
  ensure(next == parcel.numbers.size(), "all that comes is taken");
}

template <class Numbers>
void spoil_if_due(RankMemory<Numbers>& memory, Parcel<typename Numbers::Stored>& parcel) {
  if (parcel.numbers.empty() || !std::exchange(memory.spoils_next, false)) return;
  flip_a_bit(parcel.numbers[0]);
}

template <class Numbers>
Meeting<Numbers>::Meeting(MeetingPlan plan, RankMemory<Numbers>& memory)
    : plan_(std::move(plan)), memory_(memory), expected_(size(), false), came_(size()) {
  const auto found = std::ranges::find(plan_.members, memory.rank);
  ensure(found != plan_.members.end(), "a rank is of the group that it meets");
  own_ = static_cast<std::size_t>(found - plan_.members.begin());
}

template <class Numbers>
Label Meeting<Numbers>::label(std::uint64_t part) const {
  return {.group = plan_.label.group, .meeting = plan_.label.meeting, .part = part};
}

template <class Numbers>
Part Meeting<Numbers>::part_of_member(std::int64_t whole, int dim, std::size_t member) const {
  const AxisList& axes = plan_.what->axes;
  const Division by = dim == kFlat ? one_by_one(axes) : Division{axes};
  return part_of(whole, by, memory_.program.axes, memory_.mesh.at(plan_.members[member]));
}

template <class Numbers>
std::int64_t Meeting<Numbers>::row() const {
  std::int64_t size = 0;
  for (const Member& tensor : plan_.tensors) size += tensor.to.size;
  return size;
}

/// Of the row of all tensors, where a member adds up.
template <class Numbers>
Part Meeting<Numbers>::row_part(std::size_t member) const {
  const auto n = static_cast<std::int64_t>(size());
  const auto index = static_cast<std::int64_t>(member);
  return {.begin = share_begin(row(), n, index), .size = share_of(row(), n, index)};
}

/// What a member takes of an exchange: its part of the dim that is taken apart, or, where the same
/// one is put together again, an even part.
template <class Numbers>
Part Meeting<Numbers>::split_part(const Member& tensor, std::size_t member) const {
  const Instruction& what = *plan_.what;
  const std::int64_t whole = length_along(tensor.from, what.dim);
  if (what.dim != what.into) return part_of_member(whole, what.dim, member);
  const auto n = static_cast<std::int64_t>(size());
  const auto index = static_cast<std::int64_t>(member);
  return {.begin = share_begin(whole, n, index), .size = share_of(whole, n, index)};
}

template <class Numbers>
Stretches Meeting<Numbers>::given_to(std::size_t member, std::vector<std::int64_t>& lengths) const {
  const Instruction& what = *plan_.what;
  Stretches out;
  std::int64_t begin = 0;
  for (const Member& tensor : plan_.tensors) {
    const auto& [from, address] = std::tie(tensor.from, tensor.from_address);
    if (what.kind == Kind::all_reduce) {
      add_of_row(from, address, begin, row_part(member), out);
      begin += from.size;
    } else if (what.kind == Kind::reduce_scatter) {
      const std::int64_t whole = length_along(from, what.dim);
      add_part(from, address, what.dim, part_of_member(whole, what.dim, member), out);
    } else if (what.kind == Kind::all_to_all) {
      const Part part = split_part(tensor, member);
      add_part(from, address, what.dim, part, out);
      const bool same = what.dim == what.into;
      lengths.push_back(same ? part.size : length_along(from, what.into));
    } else {
      add_whole(from, address, out);
    }
  }
  return out;
}

/// Where what comes from a member is stored. Of an exchange all must have come.
template <class Numbers>
Stretches Meeting<Numbers>::taken_from(std::size_t member) const {
  const Instruction& what = *plan_.what;
  Stretches out;
  std::int64_t begin = 0;
  for (std::size_t t = 0; t < plan_.tensors.size(); ++t) {
    const auto& [to, address] = std::tie(plan_.tensors[t].to, plan_.tensors[t].to_address);
    if (what.kind == Kind::all_reduce) {
      add_of_row(to, address, begin, row_part(member), out);
      begin += to.size;
    } else if (what.kind == Kind::all_gather) {
      const std::int64_t whole = length_along(to, what.dim);
      add_part(to, address, what.dim, part_of_member(whole, what.dim, member), out);
    } else if (what.kind == Kind::all_to_all) {
      Part joined{.size = came_[member]->lengths.at(t)};
      for (std::size_t i = 0; i < member; ++i) joined.begin += came_[i]->lengths.at(t);
      add_part(to, address, what.into, joined, out);
    } else {
      add_whole(to, address, out);
    }
  }
  return out;
}

/// Sends a member what is its, or keeps it where that is this rank.
template <class Numbers>
void Meeting<Numbers>::give(Communicator& communicator, std::size_t member) {
  std::vector<std::int64_t> lengths;
  const Stretches from = given_to(member, lengths);
  Parcel<Stored> parcel = taken(memory_.numbers, from);
  parcel.lengths = std::move(lengths);
  if (member == own_) {
    came_[own_] = std::move(parcel);
    return;
  }
  spoil_if_due(memory_, parcel);
  communicator.send(plan_.members[member], label(own_), packed(parcel),
                    {.collective = collective_of(plan_.what->kind),
                     .axes = in_order(plan_.what->axes),
                     .bits = bits_in(from, memory_.formats)});
}

template <class Numbers>
void Meeting<Numbers>::begin(Communicator& communicator) {
  const Instruction& what = *plan_.what;
  communicator.ledger.begin_call(collective_of(what.kind), in_order(what.axes));
  if (goes_round(what.kind)) {
    Stretches from;
    const bool gives = what.kind == Kind::all_gather || own_ == at(what.peer);
    for (const Member& tensor : plan_.tensors) {
      if (gives) add_whole(tensor.from, tensor.from_address, from);
    }
    return begin_round(communicator, taken(memory_.numbers, from));
  }
  if (what.kind == Kind::permute) {
    const auto n = static_cast<std::int64_t>(size());
    const auto shift = static_cast<std::size_t>((what.shift % n + n) % n);
    expected_[(own_ + shift) % size()] = true;
    return give(communicator, (own_ + size() - shift) % size());
  }
  expected_.assign(size(), true);
  for (std::size_t k = 0; k < size(); ++k) give(communicator, (own_ + k) % size());
}

/// A part of this rank's own is stored and sent on its way; of a broadcast only one has some.
template <class Numbers>
void Meeting<Numbers>::begin_round(Communicator& communicator, Parcel<Stored> own) {
  rounds_ = true;
  const bool one_origin = plan_.what->kind == Kind::broadcast;
  const std::size_t first = one_origin ? at(plan_.what->peer) : own_;
  if (!one_origin || first == own_) {
    store(memory_, taken_from(own_), own);
    if (size() > 1) {
      spoil_if_due(memory_, own);
      pass_on(communicator, own_, packed(own));
    }
  }
  origin_ = one_origin ? first : before(own_);
  left_ = size() - 1;
  if (one_origin) left_ = first == own_ ? 0 : 1;
}

template <class Numbers>
void Meeting<Numbers>::pass_on(Communicator& communicator, std::size_t origin, const Bytes& bytes) {
  if (after(own_) == origin) return;  // it has come round
  const std::size_t stage = plan_.what->kind == Kind::all_reduce ? 1 : 0;
  communicator.send(plan_.members[after(own_)], label(kRound + origin), bytes,
                    {.collective = collective_of(plan_.what->kind),
                     .axes = in_order(plan_.what->axes),
                     .stage = stage,
                     .bits = bits_in(taken_from(origin), memory_.formats)});
}

template <class Numbers>
Progress Meeting<Numbers>::advance(Communicator& communicator) {
  Progress most = Progress::none;
  if (!std::exchange(begun_, true)) {
    begin(communicator);
    most = Progress::some;
  }
  const Progress more = rounds_ ? go_round(communicator) : collect(communicator);
  return std::max(most, more);
}

template <class Numbers>
Progress Meeting<Numbers>::collect(Communicator& communicator) {
  bool all = true;
  for (std::size_t k = 0; k < size(); ++k) {
    if (!expected_[k] || came_[k]) continue;
    const auto bytes = communicator.receive(plan_.members[k], label(k));
    if (bytes) came_[k] = unpacked<Stored>(*bytes);
    all = all && bytes.has_value();
  }
  return all ? end_of_collecting(communicator) : Progress::none;
}

template <class Numbers>
Progress Meeting<Numbers>::end_of_collecting(Communicator& communicator) {
  const Kind kind = plan_.what->kind;
  if (kind == Kind::all_reduce || kind == Kind::reduce_scatter) {
    std::optional<Parcel<Stored>> sum = combined();
    if (!sum) return Progress::out_of_range;
    if (kind == Kind::all_reduce) {
      begin_round(communicator, *std::move(sum));
      return std::max(Progress::some, go_round(communicator));
    }
    store(memory_, taken_from(own_), *sum);
    return Progress::done;
  }
  for (std::size_t k = 0; k < size(); ++k) {
    if (expected_[k]) store(memory_, taken_from(k), *came_[k]);
  }
  return Progress::done;
}

template <class Numbers>
Progress Meeting<Numbers>::go_round(Communicator& communicator) {
  Progress progress = Progress::none;
  while (left_ > 0) {
    const int from = plan_.members[before(own_)];
    const auto bytes = communicator.receive(from, label(kRound + origin_));
    if (!bytes) return progress;
    progress = Progress::some;
    store(memory_, taken_from(origin_), unpacked<Stored>(*bytes));
    pass_on(communicator, origin_, *bytes);
    origin_ = before(origin_);
    --left_;
  }
  return Progress::done;
}

/// All that came, added up or the largest of it. None: out of range.
template <class Numbers>
std::optional<Parcel<typename Numbers::Stored>> Meeting<Numbers>::combined() {
  Parcel<Stored> out = *std::move(came_[0]);
  bool fits = true;
  for (std::size_t k = 1; k < size(); ++k) fits = combine(*came_[k], plan_.what->op, out) && fits;
  if (!fits) return std::nullopt;
  return out;
}

template class Meeting<CanonicalNumbers>;
template class Meeting<PlainNumbers<float>>;
template class Meeting<PlainNumbers<double>>;

template Parcel<Number> taken(const Memory<CanonicalNumbers>&, const Stretches&);
template Parcel<float> taken(const Memory<PlainNumbers<float>>&, const Stretches&);
template Parcel<double> taken(const Memory<PlainNumbers<double>>&, const Stretches&);
template void spoil_if_due(RankMemory<CanonicalNumbers>&, Parcel<Number>&);
template void spoil_if_due(RankMemory<PlainNumbers<float>>&, Parcel<float>&);
template void spoil_if_due(RankMemory<PlainNumbers<double>>&, Parcel<double>&);
template void store(RankMemory<CanonicalNumbers>&, const Stretches&, const Parcel<Number>&);
template void store(RankMemory<PlainNumbers<float>>&, const Stretches&, const Parcel<float>&);
template void store(RankMemory<PlainNumbers<double>>&, const Stretches&, const Parcel<double>&);

}  // namespace placet::execute

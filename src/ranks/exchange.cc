#include "ranks/exchange.h"

#include <algorithm>
#include <span>

#include "units/error.h"
#include "units/shares.h"

namespace placet::ranks {
namespace {

/// A buffer as a tensor with a dim that is taken apart or put together.
struct Side {
  Extents extents;
  std::int64_t address = 0;
};

constexpr const char* kNoTensor = "a dim is named, but a buffer is a part of a tensor or several";
constexpr const char* kSizes = "the sizes of the buffers do not fit each other";

/// False: the dim does not exist.
bool side_of(const BufferView& view, std::int64_t address, int dim, Side& side) {
  side.address = address + view.offset;
  if (dim == kFlat) {
    side.extents = {view.size};
    return true;
  }
  if (view.extents == nullptr || dim < 0 || static_cast<std::size_t>(dim) >= view.extents->size()) {
    return false;
  }
  side.extents = *view.extents;
  return true;
}

std::size_t position_of(int dim) { return dim == kFlat ? 0 : static_cast<std::size_t>(dim); }

/// A box to be taken from each of several tensors of the same extents, combined, and put at another
/// place into each of several.
struct Movement {
  std::span<const Side> from;
  Extents from_begin;
  std::span<const Side> to;
  Extents to_begin;
  Extents size;
};

bool inside(const Extents& begin, const Extents& size, const Extents& extents) {
  if (extents.size() != size.size()) return false;
  for (std::size_t d = 0; d < size.size(); ++d) {
    if (begin[d] + size[d] > extents[d]) return false;
  }
  return true;
}

/// False: the box does not lie inside.
bool add_movement(OperationList& list, const Movement& m) {
  for (const Side& side : m.from) {
    if (side.extents != m.from[0].extents) return false;
  }
  for (const Side& side : m.to) {
    if (side.extents != m.to[0].extents) return false;
  }
  if (!inside(m.from_begin, m.size, m.from[0].extents) ||
      !inside(m.to_begin, m.size, m.to[0].extents)) {
    return false;
  }
  const std::vector<Run> runs =
      runs_between({m.from[0].extents, m.from_begin}, {m.to[0].extents, m.to_begin}, m.size);
  for (const Run& run : runs) {
    std::vector<std::int64_t> sources;
    std::vector<std::int64_t> targets;
    for (const Side& side : m.from) sources.push_back(side.address + run.from);
    for (const Side& side : m.to) targets.push_back(side.address + run.to);
    list.add_transfer(run.length, sources, targets);
  }
  return true;
}

Extents zeros(const Extents& like) { return Extents(like.size(), 0); }

Extents at_dim(const Extents& like, std::size_t dim, std::int64_t value) {
  Extents begin = zeros(like);
  begin[dim] = value;
  return begin;
}

/// Both sides of all members; dims may differ (all-to-all).
struct Group {
  std::vector<Side> from;
  std::vector<Side> to;
};

bool group_of(const std::vector<Member>& members, int from_dim, int to_dim, Group& group) {
  for (const Member& m : members) {
    Side from;
    Side to;
    if (!side_of(m.from, m.from_address, from_dim, from)) return false;
    if (!side_of(m.to, m.to_address, to_dim, to)) return false;
    group.from.push_back(std::move(from));
    group.to.push_back(std::move(to));
  }
  return true;
}

std::string add_all_gather(OperationList& list, const Group& group, std::size_t dim) {
  std::int64_t begin = 0;
  for (const Side& part : group.from) {
    const bool fits = add_movement(list, {.from = {&part, 1},
                                          .from_begin = zeros(part.extents),
                                          .to = group.to,
                                          .to_begin = at_dim(part.extents, dim, begin),
                                          .size = part.extents});
    if (!fits) return kSizes;
    begin += part.extents[dim];
  }
  return begin == group.to[0].extents[dim] ? "" : kSizes;
}

std::string add_reduce_scatter(OperationList& list, const Group& group, std::size_t dim) {
  std::int64_t begin = 0;
  for (const Side& part : group.to) {
    const bool fits = add_movement(list, {.from = group.from,
                                          .from_begin = at_dim(part.extents, dim, begin),
                                          .to = {&part, 1},
                                          .to_begin = zeros(part.extents),
                                          .size = part.extents});
    if (!fits) return kSizes;
    begin += part.extents[dim];
  }
  return begin == group.from[0].extents[dim] ? "" : kSizes;
}

/// The part along `split` that member k takes of every other one; of member n, where all ends.
Part part_for(const Group& group, std::size_t split, std::size_t k) {
  Part part;
  for (std::size_t i = 0; i < k; ++i) part.begin += group.to[i].extents[split];
  if (k < group.to.size()) part.size = group.to[k].extents[split];
  return part;
}

/// The same within one dim, where what is taken is put together again.
Part even_part(const Group& group, std::int64_t whole, std::size_t k) {
  const auto n = static_cast<std::int64_t>(group.from.size());
  const auto index = static_cast<std::int64_t>(k);
  return {.begin = share_begin(whole, n, index), .size = share_of(whole, n, index)};
}

/// Member k takes part k along `split` of all and puts them one after the other along `join`.
std::string add_taken(OperationList& list, const Group& group, std::size_t k, std::size_t split,
                      std::size_t join) {
  std::int64_t joined = 0;
  for (const Side& from : group.from) {
    const std::int64_t whole = from.extents[split];
    const Part part = split == join ? even_part(group, whole, k) : part_for(group, split, k);
    Extents size = from.extents;
    size[split] = part.size;
    const bool fits = add_movement(list, {.from = {&from, 1},
                                          .from_begin = at_dim(size, split, part.begin),
                                          .to = {&group.to[k], 1},
                                          .to_begin = at_dim(size, join, joined),
                                          .size = size});
    if (!fits) return kSizes;
    joined += size[join];
  }
  return joined == group.to[k].extents[join] ? "" : kSizes;
}

std::string add_all_to_all(OperationList& list, const Group& group, std::size_t split,
                           std::size_t join) {
  const std::int64_t end = part_for(group, split, group.to.size()).begin;
  std::string problem = split == join || end == group.from[0].extents[split] ? "" : kSizes;
  for (std::size_t k = 0; k < group.to.size() && problem.empty(); ++k) {
    problem = add_taken(list, group, k, split, join);
  }
  return problem;
}

/// Sources and targets element by element: the members that give, and all that take.
std::string add_whole(OperationList& list, const std::vector<Member>& members,
                      std::span<const Member> givers) {
  std::vector<std::int64_t> sources;
  std::vector<std::int64_t> targets;
  const std::int64_t size = members[0].to.size;
  for (const Member& m : givers) {
    if (m.from.size != size) return kSizes;
    sources.push_back(m.from_address + m.from.offset);
  }
  for (const Member& m : members) {
    if (m.to.size != size) return kSizes;
    targets.push_back(m.to_address + m.to.offset);
  }
  list.add_transfer(size, sources, targets);
  return "";
}

/// Each member takes what the one `shift` places further on has.
std::string add_permute(OperationList& list, const std::vector<Member>& members,
                        std::int64_t shift) {
  const auto n = static_cast<std::int64_t>(members.size());
  for (std::int64_t k = 0; k < n; ++k) {
    const Member& to = members[static_cast<std::size_t>(k)];
    const Member& from = members[static_cast<std::size_t>(((k + shift) % n + n) % n)];
    if (from.from.size != to.to.size) return kSizes;
    list.add_transfer(to.to.size, {from.from_address + from.from.offset},
                      {to.to_address + to.to.offset});
  }
  return "";
}

}  // namespace

std::string add_collective(OperationList& list, const Instruction& instruction,
                           const std::vector<Member>& members) {
  const InstructionKind kind = instruction.kind;
  if (kind == InstructionKind::all_reduce) return add_whole(list, members, members);
  if (kind == InstructionKind::permute) return add_permute(list, members, instruction.shift);
  if (kind == InstructionKind::broadcast) {
    const auto peer = static_cast<std::size_t>(instruction.peer);
    if (peer >= members.size()) return "the one that sends is not in the group";
    return add_whole(list, members, {&members[peer], 1});
  }
  const bool is_exchange = kind == InstructionKind::all_to_all;
  if (is_exchange && (instruction.dim == kFlat) != (instruction.into == kFlat)) {
    return "an all-to-all is between two dims of a tensor, or within the row of its elements";
  }
  Group group;
  const int to_dim = is_exchange ? instruction.into : instruction.dim;
  if (!group_of(members, instruction.dim, to_dim, group)) return kNoTensor;
  const std::size_t dim = position_of(instruction.dim);
  if (kind == InstructionKind::all_gather) return add_all_gather(list, group, dim);
  if (kind == InstructionKind::reduce_scatter) return add_reduce_scatter(list, group, dim);
  ensure(is_exchange, "a collective that all members of a group take part in");
  for (const Side& side : group.to) {
    if (side.extents.size() != group.from[0].extents.size() || dim >= side.extents.size()) {
      return kSizes;
    }
  }
  return add_all_to_all(list, group, dim, position_of(instruction.into));
}

std::string add_local(OperationList& list, InstructionKind kind, const Member& buffers) {
  const std::int64_t to = buffers.to_address + buffers.to.offset;
  if (kind == InstructionKind::zero) {
    list.add_transfer(buffers.to.size, {}, {to});
    return "";
  }
  if (buffers.from.size != buffers.to.size) return kSizes;
  std::vector<std::int64_t> sources{buffers.from_address + buffers.from.offset};
  if (kind == InstructionKind::accumulate) sources.push_back(to);
  list.add_transfer(buffers.to.size, sources, {to});
  return "";
}

std::string add_slice(OperationList& list, int dim, const Part& part, const Member& buffers) {
  Side from;
  Side to;
  if (!side_of(buffers.from, buffers.from_address, dim, from) ||
      !side_of(buffers.to, buffers.to_address, dim, to)) {
    return kNoTensor;
  }
  const std::size_t d = position_of(dim);
  if (to.extents.size() != from.extents.size() || to.extents[d] != part.size) return kSizes;
  const bool fits = add_movement(list, {.from = {&from, 1},
                                        .from_begin = at_dim(to.extents, d, part.begin),
                                        .to = {&to, 1},
                                        .to_begin = zeros(to.extents),
                                        .size = to.extents});
  return fits ? "" : kSizes;
}

}  // namespace placet::ranks

#include "derive/parameter_messages.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "units/at.h"
#include "units/checked.h"
#include "units/shares.h"

namespace placet {
namespace {

constexpr std::size_t kUsualTerms = 8;  // saves growing

/// Elements of one tensor in a message between its `degree` shards, padding included.
std::int64_t padded_elements(const Profile& profile, const LocalParameter& parameter,
                             std::int64_t degree) {
  const bool gathered = (parameter.rests_in_part | parameter.persistent) != 0;
  const std::int64_t pad = gathered && profile.gathered_grain ? 1 : profile.pad_elements;
  switch (grain_of(profile, parameter)) {
    case ShardGrain::element:
      return parameter.elements;
    case ShardGrain::unit:
    case ShardGrain::everything:
      return padded(parameter.elements, profile.align_elements);
    case ShardGrain::tensor:
      return padded(parameter.elements, std::lcm(degree * pad, profile.pad_total_elements));
    case ShardGrain::row:
      return checked_multiply(padded(parameter.rows, degree),
                              parameter.elements / std::max<std::int64_t>(1, parameter.rows),
                              "padding");
  }
  return parameter.elements;
}

}  // namespace

ParameterMessages::ParameterMessages(const Layout& of, int number)
    : layout(of),
      job(*of.job),
      profile(job.profile),
      unit(of.units[at(number)]),
      kind(job.model.kinds[at(unit.kind)]) {
  terms_.reserve(kUsualTerms);
}

void ParameterMessages::add(const ParameterMove& move, AxisMask axes, std::int64_t elements,
                            std::int64_t group) {
  if (only_host_copies_ && move.collective != Collective::host_copy) return;
  axes = real_axes(job.placement, axes);
  if (axes == 0 && group == 0) return;
  if (group == 0) group = degree_of(job.placement, axes);
  if ((group <= 1 && move.collective != Collective::host_copy) || elements == 0) return;
  Bytes payload = bytes_of(elements, move.dtype);
  if (move.constants != nullptr) payload += bytes_of(elements, *move.constants);
  CommunicationTerm made = term_of(move, axes, payload, group);
  made.unit = kind.name;
  made.nvme = move.nvme;
  made.apart = move.apart;
  made.sent = sent_of_shards(move, axes, elements, group);
  UnitTerm* known = known_message(move, made);
  if (known != nullptr && move.grain == MessageGrain::tensor) {
    ++known->term.count;
    return;
  }
  if (known != nullptr) {
    known->term.payload += payload;
    known->term.sent += made.sent;
  } else {
    terms_.push_back({.term = made,
                      .per_micro_batch = move.per_micro_batch,
                      .grain = move.grain,
                      .sharded = move.sharded,
                      .shard_of = move.shard_of});
    known = &terms_.back();
  }
  add_tensor(*known, in_bytes(payload));
}

/// The message that a tensor joins or, if each has its own, repeats; none: it is the first.
UnitTerm* ParameterMessages::known_message(const ParameterMove& move,
                                           const CommunicationTerm& made) {
  const bool each = move.grain == MessageGrain::tensor;
  for (UnitTerm& known : terms_) {
    const bool same_message = known.grain == move.grain && known.sharded == move.sharded &&
                              known.shard_of == move.shard_of &&
                              known.per_micro_batch == move.per_micro_batch;
    if (!same_message || (each && known.term.payload != made.payload)) continue;
    if (is_same_movement(known.term, made)) return &known;
  }
  return nullptr;
}

/// Notes a tensor of a message that is cut into buckets, or another part of the last one.
void ParameterMessages::add_tensor(UnitTerm& term, std::int64_t size) const {
  if (term.grain != MessageGrain::bucket) return;
  if (term.tensors.empty()) term.tensors.emplace_back();
  std::vector<std::int64_t>& tensors = term.tensors.front().bytes;
  if (tensors.empty() || term.last_tensor != tensor_) {
    tensors.push_back(size);
  } else {
    tensors.back() += size;
  }
  term.last_tensor = tensor_;
}

/// Where each tensor has shards of its own, a message of several is as uneven as all of them
/// together: what its busiest device sends in one call. 0 for other messages, which are divided
/// as a whole. Case: two tensors of 3 elements in fp32, gathered over 2 devices: 16 bytes, not
/// 12.
Bytes ParameterMessages::sent_of_shards(const ParameterMove& move, AxisMask axes,
                                        std::int64_t elements, std::int64_t group) const {
  const bool shards =
      move.collective == Collective::all_gather || move.collective == Collective::reduce_scatter;
  const bool whole = group == degree_of(job.placement, axes);
  if (!shards || !whole || profile.grain != ShardGrain::element) return {};
  const std::int64_t entries = move.entries > 0 ? move.entries : elements;
  const std::int64_t own = smallest_part(job.placement, entries, axes) * (elements / entries);
  return bytes_of(elements, move.dtype) - bytes_of(own, move.dtype);
}

std::int64_t ParameterMessages::padded(const LocalParameter& parameter, AxisMask axes) const {
  return axes == 0 ? parameter.elements
                   : padded_elements(profile, parameter, degree_of(job.placement, axes));
}

std::vector<UnitTerm> ParameterMessages::take() {
  if (profile.grain != ShardGrain::unit) return std::move(terms_);
  for (UnitTerm& term : terms_) {
    if (!term.sharded || term.grain != MessageGrain::unit) continue;
    const std::int64_t elements = in_bytes(term.term.payload) * 8 / bits_of(term.term.dtype);
    term.term.payload = bytes_of(padded_message(profile, term, elements), term.term.dtype);
    term.term.sent = {};
  }
  return std::move(terms_);
}

}  // namespace placet

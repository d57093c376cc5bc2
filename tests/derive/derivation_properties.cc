#include "derive/derivation_properties.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "derive/kept_tensors.h"
#include "derive/layout.h"
#include "derive/reserve.h"
#include "derive/stages.h"
#include "units/at.h"
#include "units/error.h"

namespace placet::testing {
namespace {

// --- sums

AssertionResult memory_adds_up(const MemoryClass& memory) {
  std::array<Bytes, kMemoryCategoryCount> alive{};
  std::array<Bytes, 4> rest{};
  std::array<Bytes, 4> host{};
  std::array<Bytes, 4> nvme{};
  for (const MemoryTerm& term : memory.terms) {
    const auto category = static_cast<std::size_t>(term.category);
    // Parts of a flat buffer may be rounded up less often than those of its tensors.
    const bool takes_away = term.what == "padding and rounding of flat buffers";
    const bool negative = term.bytes < Bytes() || term.rest < Bytes() || term.host < Bytes();
    if (negative && !takes_away) {
      return AssertionFailure() << "negative term " << term.what;
    }
    alive[category] += term.bytes;
    if (category < 4) rest[category] += term.rest;
    if (category < 4) host[category] += term.host;
    if (category < 4) nvme[category] += term.nvme;
  }
  if (alive != memory.at_peak) return AssertionFailure() << "terms alive at the peak";
  Bytes peak;
  for (const Bytes part : memory.at_peak) peak += part;
  if (peak != memory.peak) return AssertionFailure() << "parts of the peak";
  for (std::size_t s = 0; s < 4; ++s) {
    if (rest[s] != memory.at_rest[s]) return AssertionFailure() << "terms at rest of state " << s;
  }
  if (host != memory.on_host) return AssertionFailure() << "terms on the host";
  if (nvme != memory.on_nvme) return AssertionFailure() << "terms on NVMe";
  Bytes highest;
  for (const InstantBytes& instant : memory.instants) highest = std::max(highest, instant.bytes);
  if (highest != memory.peak) return AssertionFailure() << "the peak is not the highest instant";
  return AssertionSuccess();
}

/// What is kept, tensor by tensor, is what the activations at rest are.
AssertionResult tensors_add_up(const Job& job, const MemoryClass& memory) {
  Bytes kept;
  for (const KeptTensor& tensor : kept_tensors(job, memory)) kept += tensor.bytes;
  if (kept == memory.at_rest[3]) return AssertionSuccess();
  return AssertionFailure() << "kept tensors: " << in_bytes(kept) << " of "
                            << in_bytes(memory.at_rest[3]);
}

/// The table of transitions, written once more: bytes sent by the busiest of n devices in one call.
std::int64_t sent_by_table(const CommunicationTerm& term) {
  const std::int64_t b = in_bytes(term.payload);
  const std::int64_t bits = bits_of(term.dtype);
  const std::int64_t own = bits >= 8 ? b / (bits / 8) / term.group * (bits / 8) : b / term.group;
  switch (term.collective) {
    case Collective::all_reduce:
      return 2 * (b - own);
    case Collective::reduce_scatter:
    case Collective::all_gather:
    case Collective::all_to_all:
      return b - own;
    case Collective::send_recv:
    case Collective::broadcast:
    case Collective::host_copy:
      return b;
  }
  return -1;
}

/// Uneven shares send more: the busiest device keeps the smallest of them.
bool has_shares(const Placement& placement, AxisMask axes) {
  for (std::size_t a = 0; a < placement.axes.size(); ++a) {
    if ((axes >> a & 1U) != 0 && !placement.axes[a].shares.empty()) return true;
  }
  return false;
}

AssertionResult traffic_adds_up(const Job& job, const CommunicationClass& traffic) {
  Bytes total;
  for (const CommunicationTerm& term : traffic.terms) {
    if (term.count < 1 || term.group < 1 || term.payload < Bytes()) {
      return AssertionFailure() << "a call that is none: " << term.what;
    }
    const std::int64_t even = term.count * sent_by_table(term);
    const std::int64_t whole = 2 * term.count * in_bytes(term.payload);
    const bool uneven = has_shares(job.placement, term.axes);
    const std::int64_t sent = in_bytes(term.sent);
    // One element more or less: whose share is the smallest depends on the shares, not on rounding.
    const std::int64_t element =
        2 * term.count * std::max<std::int64_t>(1, bits_of(term.dtype) / 8);
    // Where each tensor of a message has shards of its own, all that do not come out even add up.
    const bool shards =
        term.collective == Collective::all_gather || term.collective == Collective::reduce_scatter;
    const bool apart = shards && job.profile.grain == ShardGrain::element;
    if (uneven || apart ? sent + element < even || sent > whole : sent != even) {
      return AssertionFailure() << term.what << " sends " << sent << ", not " << even;
    }
    if (job.placement.axes.size() < 64 && term.axes >> job.placement.axes.size() != 0) {
      return AssertionFailure() << term.what << " goes along an axis that is not there";
    }
    total += term.sent;
  }
  if (total != traffic.sent) return AssertionFailure() << "terms of communication";
  return AssertionSuccess();
}

// --- the same figures

using TermKey =
    std::tuple<AxisMask, Collective, ReduceOp, State, std::string_view, std::string_view, Dtype,
               Phase, std::int64_t, std::int64_t, std::int64_t, std::int64_t>;

/// The mask as it was before axis `split` became two; without a split axis, the mask itself.
AxisMask merged(AxisMask mask, std::optional<std::size_t> split) {
  if (!split) return mask;
  const AxisMask low = mask & ((AxisMask{1} << *split) - 1);
  const AxisMask pair = (mask >> *split & 3U) != 0 ? AxisMask{1} << *split : 0;
  const AxisMask high = mask >> (*split + 2) << (*split + 1);
  return low | pair | high;
}

std::vector<TermKey> keys_of(const CommunicationClass& traffic, std::optional<std::size_t> split) {
  std::vector<TermKey> keys;
  keys.reserve(traffic.terms.size());
  for (const CommunicationTerm& t : traffic.terms) {
    keys.emplace_back(merged(t.axes, split), t.collective, t.op, t.state, t.what, t.unit, t.dtype,
                      t.phase, in_bytes(t.payload), t.count, t.group, in_bytes(t.sent));
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

AssertionResult same_memory(const MemoryClass& a, const MemoryClass& b) {
  if (a.at_rest != b.at_rest) return AssertionFailure() << "bytes at rest of stage " << a.stage;
  if (a.on_nvme != b.on_nvme) return AssertionFailure() << "bytes on NVMe, stage " << a.stage;
  if (a.on_host != b.on_host) return AssertionFailure() << "bytes on the host, stage " << a.stage;
  if (a.at_peak != b.at_peak || a.peak != b.peak || a.peak_instant != b.peak_instant) {
    return AssertionFailure() << "peak of stage " << a.stage << ": " << in_bytes(a.peak) << " and "
                              << in_bytes(b.peak);
  }
  if (a.stage != b.stage || a.devices != b.devices || a.peak_unit != b.peak_unit) {
    return AssertionFailure() << "devices or running unit of stage " << a.stage;
  }
  return AssertionSuccess();
}

std::string text_of(const TermKey& key) {
  return std::string(std::get<4>(key)) + " (" + std::string(std::get<5>(key)) + "), " +
         std::string(name_of(std::get<1>(key))) + ", axes " + std::to_string(std::get<0>(key)) +
         ", payload " + std::to_string(std::get<8>(key)) + ", count " +
         std::to_string(std::get<9>(key)) + ", group " + std::to_string(std::get<10>(key));
}

AssertionResult same_traffic(const CommunicationClass& a, const CommunicationClass& b,
                             std::optional<std::size_t> split) {
  const std::vector<TermKey> ours = keys_of(a, std::nullopt);
  const std::vector<TermKey> theirs = keys_of(b, split);
  if (ours == theirs) return AssertionSuccess();
  AssertionResult failure = AssertionFailure() << "collectives of stage " << a.stage;
  std::vector<TermKey> only;
  std::set_difference(ours.begin(), ours.end(), theirs.begin(), theirs.end(),
                      std::back_inserter(only));
  for (const TermKey& key : only) failure << "\n  first only: " << text_of(key);
  only.clear();
  std::set_difference(theirs.begin(), theirs.end(), ours.begin(), ours.end(),
                      std::back_inserter(only));
  for (const TermKey& key : only) failure << "\n  second only: " << text_of(key);
  return failure;
}

AssertionResult same_but_for_split(const Derivation& a, const Derivation& b,
                                   std::optional<std::size_t> split) {
  if (a.memory.size() != b.memory.size() || a.communication.size() != b.communication.size()) {
    return AssertionFailure() << "number of classes";
  }
  for (std::size_t c = 0; c < a.memory.size(); ++c) {
    if (AssertionResult same = same_memory(a.memory[c], b.memory[c]); !same) return same;
  }
  for (std::size_t c = 0; c < a.communication.size(); ++c) {
    AssertionResult same = same_traffic(a.communication[c], b.communication[c], split);
    if (!same) return same;
  }
  return AssertionSuccess();
}

// --- splitting

std::int64_t smallest_factor(std::int64_t n) {
  for (std::int64_t f = 2; f * f <= n; ++f) {
    if (n % f == 0) return f;
  }
  return n;
}

// --- counting

/// The How of a parameter, read once more: later classes win.
const How& how_for(const AxisPlacement& axis, const Parameter& parameter, const UnitKind& kind,
                   const Unit& unit) {
  const How* how = &axis.how;
  for (const Override& one : axis.overrides) {
    const auto* named = std::get_if<TensorClass>(&one.selector);
    const auto* range = std::get_if<BlockRange>(&one.selector);
    const bool block = kind.role == UnitRole::block;
    const bool in_range =
        range != nullptr && block && range->first <= unit.number && unit.number <= range->last;
    if (in_range || (named != nullptr && contains(parameter.classes, *named))) how = &one.how;
  }
  return *how;
}

bool has_index(const Parameter& parameter, Index index) {
  return std::ranges::any_of(parameter.dims, [&](const Dim& d) { return d.index == index; });
}

const Dim* dim_cut_by(const Parameter& parameter, IndexSet indices) {
  for (const Dim& dim : parameter.dims) {
    if (contains(indices, dim.index)) return &dim;
  }
  return nullptr;
}

/// How many devices hold each element of a parameter's state among those that host its unit; 0
/// where it does not rest at all.
std::int64_t holders(const Job& job, const Parameter& parameter, const UnitKind& kind,
                     const Unit& unit, State state) {
  std::int64_t copies = 1;
  std::int64_t head_cuts = 1;
  const Dim* heads = nullptr;
  for (const AxisPlacement& axis : job.placement.axes) {
    const How& how = how_for(axis, parameter, kind, unit);
    const Mode mode = how.modes[state];
    if (mode == Mode::materialized) return 0;
    if (axis.how.cut == Cut::layer) continue;
    bool divides = mode != Mode::replicated;
    if (how.cut == Cut::tensor) {
      const Dim* dim = dim_cut_by(parameter, how.tensor_indices);
      divides = dim != nullptr;
      if (dim != nullptr && dim->index == Index::kv_head) {
        heads = dim;
        head_cuts *= axis.degree;
      }
    } else if (how.cut == Cut::expert) {
      divides =
          contains(parameter.classes, TensorClass::experts) && has_index(parameter, Index::expert);
    }
    if (!divides) copies *= axis.degree;
  }
  const bool repeated =
      heads != nullptr && heads->parts < head_cuts && head_cuts % heads->parts == 0;
  return repeated ? copies * (head_cuts / heads->parts) : copies;
}

std::int64_t blocks_alive_at_most(const Job& job, const Stage& stage) {
  std::int64_t blocks = 0;
  for (const auto& chunk : stage.chunks) {
    for (const int u : chunk) {
      const UnitKind& kind = job.model.kinds[at(job.model.units[at(u)].kind)];
      blocks += static_cast<std::int64_t>(3 * kind.values.size() + 6 * kind.parameters.size());
    }
  }
  return blocks;
}

}  // namespace

std::int64_t bits_per_element(const Job& job, const Parameter& parameter, State state) {
  const Dtype dtype = parameter.dtype ? *parameter.dtype : job.precision.parameters;
  if (state == State::parameters) return bits_of(dtype);
  if (!parameter.trainable) return 0;
  if (state == State::gradients) return bits_of(job.precision.gradients);
  std::int64_t bits = 0;
  for (const OptimizerState& one : states_of(job.optimizer, parameter)) bits += bits_of(one.dtype);
  const bool master = bits_of(dtype) < 32 && job.optimizer.keeps_master && job.precision.master;
  return bits + (master ? bits_of(*job.precision.master) : 0);
}

AssertionResult terms_add_up(const Job& job, const Derivation& derivation) {
  if (!derivation.meaningful) {
    const bool empty = derivation.memory.empty() && derivation.communication.empty();
    return empty ? AssertionSuccess() : AssertionFailure() << "figures without meaning";
  }
  Bytes peak;
  Bytes sent;
  std::int64_t devices = 0;
  for (const MemoryClass& memory : derivation.memory) {
    if (AssertionResult sums = memory_adds_up(memory); !sums) return sums;
    if (AssertionResult sums = tensors_add_up(job, memory); !sums) return sums;
    peak = std::max(peak, memory.peak);
    devices += memory.devices;
  }
  for (const CommunicationClass& traffic : derivation.communication) {
    if (AssertionResult sums = traffic_adds_up(job, traffic); !sums) return sums;
    sent = std::max(sent, traffic.sent);
  }
  if (peak != derivation.peak) return AssertionFailure() << "the largest peak";
  if (sent != derivation.sent) return AssertionFailure() << "the most sent";
  if (devices != derivation.devices) return AssertionFailure() << "devices of the classes";
  return AssertionSuccess();
}

AssertionResult same_figures(const Derivation& a, const Derivation& b) {
  return same_but_for_split(a, b, std::nullopt);
}

AssertionResult splitting_changes_nothing(Job& job, const Prepared& prepared,
                                          const Derivation& whole, RandomJobs& random) {
  std::vector<std::size_t> choices;
  for (std::size_t a = 0; a < job.placement.axes.size(); ++a) {
    const AxisPlacement& axis = job.placement.axes[a];
    if (axis.shares.empty() && smallest_factor(axis.degree) != axis.degree) choices.push_back(a);
  }
  if (choices.empty()) return AssertionSuccess();
  const std::size_t chosen = random.any_of(choices);
  const Placement placement = job.placement;
  const std::vector<AttentionExchange> attention = job.attention;
  const auto place = static_cast<std::ptrdiff_t>(chosen);
  AxisPlacement inner = job.placement.axes[chosen];
  AxisPlacement& outer = job.placement.axes[chosen];
  inner.axis = AxisName("inner");
  inner.degree = smallest_factor(outer.degree);
  outer.degree /= inner.degree;
  if (random.one_in(2)) std::swap(outer.degree, inner.degree);
  job.placement.axes.insert(job.placement.axes.begin() + place + 1, inner);
  const AttentionExchange exchange = attention[chosen];
  job.attention.insert(job.attention.begin() + place + 1, exchange);
  const Derivation split = derive(job, prepared);
  job.placement = placement;
  job.attention = attention;
  AssertionResult same = same_but_for_split(whole, split, chosen);
  if (same) return same;
  return AssertionFailure() << "splitting axis " << placement.axes[chosen].axis.text() << ": "
                            << same.message();
}

/// A tensor apart, where it is made of segments.
std::vector<Parameter> parts_of(const Parameter& parameter) {
  if (parameter.segments.empty()) return {parameter};
  std::vector<Parameter> parts;
  for (const Dim& segment : parameter.segments) {
    parts.push_back(parameter);
    parts.back().dims[at(segmented_dim(parameter))] = segment;
  }
  return parts;
}

std::int64_t counted_bytes(const Job& job, State state) {
  std::int64_t others = 1;
  for (const AxisPlacement& axis : job.placement.axes) {
    if (axis.how.cut != Cut::layer) others *= axis.degree;
  }
  std::int64_t sum = 0;
  for (const Stage& stage : stages_of(job)) {
    for (const auto& chunk : stage.chunks) {
      for (const int u : chunk) {
        const Unit& unit = job.model.units[at(u)];
        const UnitKind& kind = job.model.kinds[at(unit.kind)];
        for (const Parameter& parameter : kind.parameters) {
          if (is_second_use(job.model, stage, parameter)) continue;
          for (const Parameter& part : parts_of(parameter)) {
            sum += elements_of(part.dims) * holders(job, part, kind, unit, state) *
                   bits_per_element(job, part, state) / 8;
          }
        }
      }
    }
  }
  return sum;
}

std::array<std::int64_t, 3> summed_resting_bytes(const Job& job) {
  std::array<std::int64_t, 3> sum{};
  for (std::int64_t rank = 0; rank < devices_of(job.placement); ++rank) {
    const RestingBytes own = resting_bytes(job, Rank{rank});
    for (std::size_t s = 0; s < 3; ++s)
      sum[s] += in_bytes(own.device[s] + own.host[s] + own.nvme[s]);
  }
  return sum;
}

bool replay_covers(const Job& job) {
  if (job.profile.name != "placet") return false;
  for (const UnitKind& kind : job.model.kinds) {
    if (kind.role == UnitRole::mtp) return false;
  }
  if (job.recompute.kind == Recompute::Kind::selective) return false;
  const auto covers = [&](const How& how) {
    const Mode kept = how.modes.activations;
    return how.cut != Cut::layer && kept != Mode::offloaded && !how.offload[3] &&
           how.prefetch.value_or(0) == 0 && (how.cut != Cut::tensor || kept == Mode::replicated) &&
           how.modes.gradients == (how.cut == Cut::batch || how.cut == Cut::sequence
                                       ? Mode::replicated
                                       : Mode::sharded);
  };
  return std::ranges::all_of(job.placement.axes, [&](const AxisPlacement& axis) {
    return covers(axis.how) && std::ranges::all_of(axis.overrides, [&](const Override& one) {
             return covers(one.how);
           });
  });
}

bool keeps_parts(const Job& job, const Prepared& prepared) {
  const Layout layout = lay_out(job, prepared);
  return std::ranges::any_of(layout.units, [](const LocalUnit& unit) {
    return std::ranges::any_of(unit.parameters, [](const LocalParameter& parameter) {
      return (parameter.kept != 0 && parameter.keep == Keep::none) ||
             (parameter.kept_step != 0 && parameter.keep != Keep::step);
    });
  });
}

AssertionResult replay_agrees(const Job& job, const Prepared& prepared, const Derivation& whole) {
  const std::vector<Stage> stages = stages_of(job);
  for (const MemoryClass& memory : whole.memory) {
    const Layout layout = memory.coordinates.empty() ? lay_out(job, prepared)
                                                     : lay_out(job, prepared, memory.coordinates);
    const Reservation replay = reserve(layout, memory.stage);
    const std::int64_t more = in_bytes(replay.alive) - in_bytes(memory.peak);
    const std::int64_t most = 512 * blocks_alive_at_most(job, stages[at(memory.stage)]);
    if (more < 0 || more > most) {
      return AssertionFailure() << "stage " << memory.stage << ": the replay has "
                                << in_bytes(replay.alive) << " bytes alive, the derivation "
                                << in_bytes(memory.peak) << " at " << peak_text(job, memory)
                                << ", difference " << more << ", rounding at most " << most;
    }
  }
  return AssertionSuccess();
}

namespace {

void check_job(Job& job, RandomJobs& random) {
  const Prepared prepared = prepare(job);
  const Derivation whole = derive(job, prepared);
  ASSERT_TRUE(whole.meaningful) << random.describe(job);
  EXPECT_TRUE(terms_add_up(job, whole)) << random.describe(job);
  EXPECT_TRUE(same_figures(whole, derive(job))) << random.describe(job);
  EXPECT_TRUE(splitting_changes_nothing(job, prepared, whole, random)) << random.describe(job);
  if (job.profile.name != "placet") return;
  EXPECT_TRUE(refining_never_raises(job, prepared, whole, random)) << random.describe(job);
  if (replay_covers(job) && random.one_in(8) && !keeps_parts(job, prepared)) {
    EXPECT_TRUE(replay_agrees(job, prepared, whole)) << random.describe(job);
  }
}

}  // namespace

int check_placements(std::uint32_t seed, int per_model, std::size_t shard) {
  RandomJobs random(seed, {});
  int jobs = 0;
  int refused = 0;
  for (std::size_t m = shard; m < random.models().size(); m += 4) {
    Job job;
    job.model = random.model(random.models()[m]);
    for (int i = 0; i < per_model && !::testing::Test::HasFailure(); ++i, ++jobs) {
      random.place(job);
      try {
        check_job(job, random);
      } catch (const InputError&) {
        ++refused;  // a figure beyond 64 bits
      }
    }
  }
  EXPECT_LT(refused, jobs / 1'000 + 1);
  return jobs;
}

}  // namespace placet::testing

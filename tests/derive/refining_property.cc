// Dividing a state along one more axis never raises what a device holds of it, but for what
// rounding adds (docs/theory.md §2, §4.3).
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "derive/derivation_properties.h"
#include "derive/layout.h"
#include "derive/stages.h"
#include "units/at.h"

namespace placet::testing {
namespace {

struct Refinement {
  How* how = nullptr;
  std::int64_t degree = 1;  // of its axis
  State state = State::parameters;
  Mode to = Mode::sharded;
};

Bytes all_media(const MemoryClass& memory, std::size_t s) {
  return memory.at_rest[s] + memory.on_host[s] + memory.on_nvme[s];
}

/// Whether all shares of a sequence's tokens are equal; where they are not, a part that is gathered
/// again counts as so many of the largest.
bool all_tokens_divide(const Job& job) {
  std::int64_t parts = 1;
  for (const AxisPlacement& axis : job.placement.axes) {
    if (axis.how.cut != Cut::tensor && axis.how.cut != Cut::sequence) continue;
    if (!axis.shares.empty()) return false;
    parts *= axis.degree;
  }
  return job.batch.sequence % parts == 0;
}

void collect(How& how, std::int64_t degree, bool tokens_divide, std::vector<Refinement>& out) {
  for (const State state : kStates) {
    if (how.modes[state] != Mode::replicated) continue;
    if (state == State::activations && !tokens_divide) continue;
    // A stream that is divided in its columns is not divided in its tokens as well.
    const bool columns = how.cut == Cut::tensor && contains(how.tensor_indices, Index::hidden);
    if (state == State::activations && columns) continue;
    for (const Mode to : {Mode::sharded, Mode::sharded_gather}) {
      if (is_meaningful(how.cut, state, to)) out.push_back({&how, degree, state, to});
    }
  }
}

Mode& mode_of(Modes& modes, State state) {
  switch (state) {
    case State::parameters:
      return modes.parameters;
    case State::optimizer:
      return modes.optimizer;
    case State::gradients:
      return modes.gradients;
    case State::activations:
      break;
  }
  return modes.activations;
}

/// What rounding may add to a state of a stage (docs/theory.md §2, Shares). Which axis divides a
/// tensor's row first depends on messages; with shares the parts differ by two elements at most for
/// each axis that has some.
Bytes rounding_of_shares(const Job& job, const Stage& stage, State state) {
  const auto uneven = std::ranges::count_if(job.placement.axes, [](const AxisPlacement& axis) {
    return axis.how.cut != Cut::layer && !axis.shares.empty();
  });
  std::int64_t bits = 0;
  for_each_unit(stage, [&](int u) {
    for (const Parameter& p : job.model.kinds[at(job.model.units[at(u)].kind)].parameters) {
      bits += state == State::activations ? 0 : 2 * uneven * bits_per_element(job, p, state);
    }
  });
  return bytes(bits / 8);
}

/// Axes along which a block's experts are divided among devices.
AxisMask expert_axes(const Job& job, const Unit& unit) {
  AxisMask out = 0;
  for (std::size_t a = 0; a < job.placement.axes.size(); ++a) {
    const How& how = how_of(job.placement.axes[a], bit_of(TensorClass::experts), unit.number);
    if (how.cut == Cut::expert) out |= axis_bit(static_cast<int>(a));
  }
  return out;
}

/// By what factor activations may rise where the stream is divided by `degree` more devices. Of
/// experts with a capacity each device's tokens have y slots per expert, rounded up; of n parts
/// each has ceil(y / n), all of them less than y + n (docs/theory.md §4.3, Routed tokens).
double rise_of_slots(const Job& job, std::int64_t degree) {
  if (job.routing.kind != Routing::Kind::capacity) return 1;
  std::int64_t tokens = job.batch.sequence;
  for (const AxisPlacement& axis : job.placement.axes) {
    const bool divides =
        axis.how.cut == Cut::sequence ||
        (axis.how.cut == Cut::tensor && axis.how.modes.activations == Mode::sharded_gather);
    if (divides) tokens /= axis.degree;
  }
  const std::int64_t choices = job.batch.micro * tokens * job.model.figures.experts_per_token;
  double rise = 1;
  for (const Unit& unit : job.model.units) {
    const AxisMask divided = expert_axes(job, unit);
    const bool is_block = job.model.kinds[at(unit.kind)].role == UnitRole::block;
    if (divided == 0 || job.model.figures.experts == 0 || !is_block) continue;
    const auto experts =
        static_cast<double>(largest_part(job.placement, job.model.figures.experts, divided));
    const double slots =
        std::ceil(static_cast<double>(choices) * in_double(job.routing.capacity) / experts);
    rise = std::max(rise, 1 + static_cast<double>(degree - 1) / slots);
  }
  return rise;
}

}  // namespace

AssertionResult refining_never_raises(Job& job, const Prepared& prepared, const Derivation& whole,
                                      RandomJobs& random) {
  const bool tokens_divide = all_tokens_divide(job);
  std::vector<Refinement> choices;
  for (AxisPlacement& axis : job.placement.axes) {
    collect(axis.how, axis.degree, tokens_divide, choices);
    for (Override& one : axis.overrides) collect(one.how, axis.degree, tokens_divide, choices);
  }
  if (choices.empty()) return AssertionSuccess();
  const Refinement& chosen = random.any_of(choices);
  Mode& mode = mode_of(chosen.how->modes, chosen.state);
  const Mode before = std::exchange(mode, chosen.to);
  const Derivation refined = derive(job, prepared);
  mode = before;
  // The weights' part of a split backward reads gradients that were gathered for the inputs' part:
  // where the stream is whole, they are the stream's own; where it is divided, they stand beside
  // it.
  const bool gathers_more = chosen.state == State::activations &&
                            pipeline_degree(job.placement) > 1 &&
                            splits_backward(job.schedule.order);
  const std::size_t states = gathers_more ? 3 : 4;
  const std::vector<Stage> stages = stages_of(job);
  const double slots = chosen.state == State::activations ? rise_of_slots(job, chosen.degree) : 1.0;
  for (std::size_t c = 0; c < whole.memory.size(); ++c) {
    for (std::size_t s = 0; s < states; ++s) {
      const Bytes was = all_media(whole.memory[c], s);
      const Bytes is = all_media(refined.memory[c], s);
      if (is <= was) continue;
      const Stage& stage = stages[at(whole.memory[c].stage)];
      const double most = static_cast<double>(in_bytes(was)) * (s == 3 ? slots : 1.0);
      const Bytes rounded = rounding_of_shares(job, stage, static_cast<State>(s));
      if (static_cast<double>(in_bytes(is - rounded)) > most) {
        return AssertionFailure() << name_of(chosen.state) << " from R to " << symbol_of(chosen.to)
                                  << " raises state " << s << " of stage " << c << " from "
                                  << in_bytes(was) << " to " << in_bytes(is);
      }
    }
  }
  return AssertionSuccess();
}

}  // namespace placet::testing

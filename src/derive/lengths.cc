#include "derive/lengths.h"

#include <algorithm>

#include "derive/communication.h"
#include "derive/layout.h"
#include "derive/stages.h"
#include "profile/lengths.h"
#include "units/at.h"
#include "units/shares.h"

namespace placet {
namespace {

std::int64_t sequence_degree(const Placement& placement) {
  std::int64_t degree = 1;
  for (const AxisPlacement& axis : placement.axes) {
    if (axis.how.cut == Cut::sequence) degree *= axis.degree;
  }
  return degree;
}

/// The job as the devices see it that share one sample of this length: so many along the sequence,
/// each with so many samples.
Job job_of_length(const Job& job, std::int64_t tokens, const LengthPlace& place) {
  Job out = job;
  std::int64_t left = place.devices;
  for (AxisPlacement& axis : out.placement.axes) {
    if (axis.how.cut != Cut::sequence) continue;
    axis.degree = left;
    left = 1;
  }
  out.batch.micro *= place.samples;
  out.batch.global *= place.samples;
  out.batch.sequence = tokens;
  return out;
}

/// Bytes that the exchanges of attention send per device and step, on the stage that sends most.
Bytes exchanged(const Job& job, const Prepared& prepared) {
  const Layout layout = lay_out(job, prepared);
  Bytes most;
  for (const CommunicationClass& one : derive_communication(layout, stages_of(job))) {
    Bytes sum;
    for (const CommunicationTerm& term : one.terms) {
      const bool exchange = term.state == State::activations && term.axes != 0 &&
                            (term.axes & ~layout.sequence_axes) == 0;
      if (exchange) sum += term.sent;
    }
    most = std::max(most, sum);
  }
  return most;
}

LengthUse use_of(const Job& job, const Prepared& prepared, const SampleLength& length,
                 std::int64_t at_once) {
  const LengthPlace place = place_of_length(length.tokens, at_once);
  const std::int64_t held = largest_share(length.tokens, place.devices) * place.samples;
  return {.tokens = length.tokens,
          .share = length.share,
          .devices = place.devices,
          .samples = place.samples,
          .rounds = length.share * slots_of_length(length.tokens, at_once),
          .held = held,
          .pairs = Rational(held) * Rational(length.tokens),
          .exchanged = place.devices == 1
                           ? Bytes()
                           : exchanged(job_of_length(job, length.tokens, place), prepared)};
}

}  // namespace

std::optional<LengthSpread> spread_of_lengths(const Job& job, const Prepared& prepared) {
  if (job.batch.lengths.empty()) return std::nullopt;
  LengthSpread out{.samples = job.batch.samples};
  out.at_once = tokens_at_once(job.batch.sequence, sequence_degree(job.placement));
  const Rational rounds = mean_slots(job.batch.lengths, out.at_once);
  Rational most_held, most_pairs, mean_pairs, mean_exchanged;
  for (const SampleLength& length : job.batch.lengths) {
    LengthUse use = use_of(job, prepared, length, out.at_once);
    use.rounds = use.rounds / rounds;
    out.mean_held += use.rounds * Rational(use.held);
    mean_pairs += use.rounds * use.pairs;
    mean_exchanged += use.rounds * Rational(in_bytes(use.exchanged));
    most_held = std::max(most_held, Rational(use.held));
    most_pairs = std::max(most_pairs, use.pairs);
    out.most_exchanged = std::max(out.most_exchanged, use.exchanged);
    out.uses.push_back(use);
  }
  out.held_imbalance = most_held / out.mean_held;
  out.pair_imbalance = most_pairs / mean_pairs;
  out.mean_exchanged = part_rounded_up(bytes(1), mean_exchanged);
  return out;
}

}  // namespace placet

// A job with what was derived from it: what reports are made of.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "derive/derivation.h"
#include "derive/lengths.h"
#include "derive/time.h"
#include "profile/job.h"

namespace placet {

/// The derivation's terms point into the job, which therefore stays where it is.
struct Judged {
  std::shared_ptr<const Job> job;
  Derivation derivation;
  std::optional<LengthSpread> lengths;  // of jobs whose samples have several
  std::optional<TimeDerivation> time;   // of those that are compared on a cluster
};

/// Whether the judgement asked for is good: it fits, or is tight, and no rule is broken.
bool is_good(const Derivation& derivation);
bool breaks_no_rule(const Derivation& derivation);

/// One sentence: "fits: 54.3 GB of 84.9 GB per device (64 %)", or what stands against it.
std::string verdict_of(const Derivation& derivation);

/// Devices between neighbours along an axis: the product of the degrees inside it.
std::int64_t stride_of(const Placement& placement, std::size_t axis);

/// How a state lives along an axis, and what of it an option moves off the device: "S*",
/// "S* on nvme", "S 1/2 on host".
std::string mode_text(const How& how, State state);

/// The link that an axis's groups cross; empty without a cluster.
std::string link_of_axis(const Job& job, std::size_t axis);

/// The link of a term of device `stage` of the pipeline: the host link for host copies; empty
/// without a cluster.
std::string link_of_term(const Job& job, const CommunicationTerm& term, int stage);

/// Names of the axes of a mask, outermost first.
std::vector<std::string> axis_names(const Job& job, AxisMask axes);

/// Bytes, and their ratio to others, for people; "-" where nothing could be derived.
std::string figure_of(const Derivation& derivation, Bytes amount);
std::string ratio_of(const Derivation& derivation, Bytes amount, Bytes base);

/// The class that needs most of its devices' memory.
const MemoryClass& fullest(const Derivation& derivation);
/// The class that sends most.
const CommunicationClass& busiest(const Derivation& derivation);

/// Terms of one kind together: what one line of a table of communication says.
struct CommunicationLine {
  std::vector<std::string> axes;
  Collective collective = Collective::all_reduce;
  State state = State::activations;
  std::string link;
  std::int64_t group = 1;
  std::int64_t calls = 0;
  Bytes sent;
};

/// Terms added up by axes, collective, state and group, the most bytes first (of equals in the
/// order of the terms).
std::vector<CommunicationLine> lines_of(const Job& job, const CommunicationClass& communication);

/// Micro-batches per step and device; 0 if the batch does not divide.
std::int64_t micro_batches_of(const Job& job);

}  // namespace placet

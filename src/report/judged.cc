#include "report/judged.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "cluster/cluster.h"
#include "report/human.h"
#include "units/error.h"

namespace placet {
namespace {

// Rules with at least one error, each once: a rule may be broken in many places.
std::size_t broken_rules(const Derivation& derivation) {
  std::set<std::string> rules;
  for (const Finding& finding : derivation.findings) {
    if (finding.severity == Severity::error) rules.insert(finding.rule);
  }
  return rules.size();
}

std::string why_tight(const Derivation& derivation) {
  if (std::ranges::any_of(derivation.memory, &MemoryClass::gives_back)) {
    return "it runs only because the allocator gives cached blocks back when the device is full";
  }
  return fmt::format("less than {:g} % is left", 100 * kFitMargin);
}

std::string capacity_sentence(const Derivation& derivation) {
  if (derivation.capacity == Bytes()) {
    return fmt::format("needs {} per device; no cluster was given to judge it against",
                       human_bytes(most_needed(derivation)));
  }
  const MemoryClass& most = fullest(derivation);
  const double part = 100 * (needed(most) / most.capacity);
  const std::string of =
      fmt::format("{} of {} per device", human_bytes(needed(most)), human_bytes(most.capacity));
  if (needed(most) > most.capacity) {
    return fmt::format("does not fit: {} ({:.0f} %), {} too much", of, part,
                       human_bytes(needed(most) - most.capacity));
  }
  if (derivation.fit == FitGrade::fits) return fmt::format("fits: {} ({:.0f} %)", of, part);
  if (derivation.fit == FitGrade::tight) {
    return fmt::format("tight: {} ({:.0f} %), {}", of, part, why_tight(derivation));
  }
  return fmt::format("does not fit: a host needs {} of {}", human_bytes(derivation.host_used),
                     human_bytes(derivation.host_capacity));
}

}  // namespace

bool is_good(const Derivation& derivation) {
  return runs(derivation) && breaks_no_rule(derivation);
}

bool breaks_no_rule(const Derivation& derivation) { return broken_rules(derivation) == 0; }

std::string verdict_of(const Derivation& derivation) {
  if (!derivation.meaningful) {
    return "no figures: the placement has no meaning as it is written; rule meaning is broken";
  }
  const std::size_t broken = broken_rules(derivation);
  std::string sentence = capacity_sentence(derivation);
  if (broken > 0) sentence += fmt::format("; {} rule{} broken", broken, broken == 1 ? "" : "s");
  return sentence;
}

std::int64_t stride_of(const Placement& placement, std::size_t axis) {
  std::int64_t stride = 1;
  for (std::size_t i = axis + 1; i < placement.axes.size(); ++i) stride *= placement.axes[i].degree;
  return stride;
}

std::string mode_text(const How& how, State state) {
  std::string text(symbol_of(how.modes[state]));
  const auto& offload = how.offload[static_cast<std::size_t>(state)];
  if (!offload) return text;
  if (offload->fraction != Rational(1)) text += " " + to_string(offload->fraction);
  return text + (offload->medium == Medium::nvme ? " on nvme" : " on host");
}

std::string link_of_axis(const Job& job, std::size_t axis) {
  if (!job.cluster || job.placement.axes[axis].degree < 2) return {};
  return level_of(*job.cluster, job.placement.axes[axis].degree, stride_of(job.placement, axis))
      .link;
}

std::string link_of_term(const Job& job, const CommunicationTerm& term, int stage) {
  if (term.collective == Collective::host_copy) return "host";
  return job.cluster ? level_of_term(job, term, stage).link : std::string();
}

std::vector<std::string> axis_names(const Job& job, AxisMask axes) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < job.placement.axes.size(); ++i) {
    if ((axes & axis_bit(static_cast<int>(i))) == 0) continue;
    names.emplace_back(job.placement.axes[i].axis.text());
  }
  return names;
}

std::string figure_of(const Derivation& derivation, Bytes amount) {
  return derivation.meaningful ? human_bytes(amount) : "-";
}

std::string ratio_of(const Derivation& derivation, Bytes amount, Bytes base) {
  return derivation.meaningful ? human_ratio(amount, base) : "-";
}

const MemoryClass& fullest(const Derivation& derivation) {
  ensure(!derivation.memory.empty(), "a derivation has at least one class of devices");
  const auto used = [](const MemoryClass& memory) {
    const double part = memory.capacity > Bytes() ? needed(memory) / memory.capacity : 0;
    return std::pair(part, needed(memory));
  };
  return *std::ranges::max_element(derivation.memory, {}, used);
}

const CommunicationClass& busiest(const Derivation& derivation) {
  ensure(!derivation.communication.empty(), "a derivation has at least one class of devices");
  return *std::max_element(derivation.communication.begin(), derivation.communication.end(),
                           [](const auto& a, const auto& b) { return a.sent < b.sent; });
}

std::vector<CommunicationLine> lines_of(const Job& job, const CommunicationClass& communication) {
  std::vector<CommunicationLine> lines;
  for (const CommunicationTerm& term : communication.terms) {
    CommunicationLine line{.axes = axis_names(job, term.axes),
                           .collective = term.collective,
                           .state = term.state,
                           .link = link_of_term(job, term, communication.stage),
                           .group = term.group};
    const auto same = [&](const CommunicationLine& other) {
      return other.axes == line.axes && other.collective == line.collective &&
             other.state == line.state && other.group == line.group && other.link == line.link;
    };
    auto it = std::find_if(lines.begin(), lines.end(), same);
    if (it == lines.end()) it = lines.insert(lines.end(), line);
    it->calls += term.count;
    it->sent += term.sent;
  }
  std::stable_sort(lines.begin(), lines.end(),
                   [](const auto& a, const auto& b) { return a.sent > b.sent; });
  return lines;
}

std::int64_t micro_batches_of(const Job& job) {
  std::int64_t samples = job.batch.micro;
  for (const AxisPlacement& axis : job.placement.axes) {
    if (axis.how.cut == Cut::batch) samples *= axis.degree;
  }
  return samples > 0 && job.batch.global % samples == 0 ? job.batch.global / samples : 0;
}

}  // namespace placet

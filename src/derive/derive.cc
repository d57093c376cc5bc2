#include "derive/derive.h"

#include <algorithm>
#include <iterator>

#include "derive/communication.h"
#include "derive/device_classes.h"
#include "derive/fit.h"
#include "derive/laid_out.h"
#include "derive/layout.h"
#include "derive/memory.h"
#include "derive/rules.h"
#include "derive/stage_devices.h"
#include "derive/stages.h"
#include "units/at.h"
#include "units/checked.h"
#include "units/error.h"

namespace placet {
namespace {

/// Memory of each stage; where axes have shares, of each class of devices within it.
std::vector<MemoryClass> memory_classes(const Job& job, const Prepared& prepared,
                                        const LaidOut& laid_out, const PipelineMoments& moments) {
  const Layout& layout = laid_out.layout;
  const std::vector<Stage>& stages = laid_out.stages;
  const std::vector<ShareClass> shares = share_classes(job.placement);
  if (shares.size() == 1) return derive_memory(layout, stages, laid_out.units, moments);
  std::vector<MemoryClass> classes;
  for (const ShareClass& own : shares) {
    const Layout part = lay_out(job, prepared, own.coordinates);
    for (MemoryClass& memory : derive_memory(part, stages, units_by_stage(part, stages), moments)) {
      memory.devices = own.devices / layout.stages;
      memory.shares = own.name;
      memory.coordinates = own.coordinates;
      classes.push_back(std::move(memory));
    }
  }
  std::ranges::stable_sort(classes, {}, &MemoryClass::stage);
  return classes;
}

/// What the class that sends most sends over each set of axes.
std::vector<AxesBytes> sent_over_axes(const std::vector<CommunicationClass>& classes) {
  std::vector<AxesBytes> out;
  const auto busiest = std::ranges::max_element(classes, {}, &CommunicationClass::sent);
  if (busiest == classes.end()) return out;
  for (const CommunicationTerm& term : busiest->terms) {
    auto known = std::ranges::find(out, term.axes, &AxesBytes::axes);
    if (known == out.end()) known = out.insert(known, {.axes = term.axes});
    known->sent += term.sent;
  }
  return out;
}

/// Findings that need the figures.
void judge_links(const Job& job, Derivation& out) {
  if (!job.cluster) return;
  std::vector<Finding> advice = advise_link_order(job, sent_over_axes(out.communication));
  out.findings.insert(out.findings.end(), std::move_iterator(advice.begin()),
                      std::move_iterator(advice.end()));
}

/// The composition rules; of a placement that means nothing, all there is to say.
Derivation judge_rules(const Job& job) {
  Derivation out;
  out.devices = devices_of(job.placement);
  out.findings = check_rules(job);
  out.meaningful = std::ranges::find(out.findings, "meaning", &Finding::rule) == out.findings.end();
  if (out.meaningful) return out;
  judge_capacity(job, out);
  out.fit = FitGrade::too_large;
  return out;
}

void fill(Derivation& out, const Prepared& prepared, const LaidOut& laid_out,
          const PipelineMoments& moments) {
  const Job& job = *laid_out.layout.job;
  out.memory = memory_classes(job, prepared, laid_out, moments);
  out.communication = class_per_stage(laid_out.kinds, laid_out.stages);
  for (const MemoryClass& memory : out.memory) out.peak = std::max(out.peak, memory.peak);
  for (const CommunicationClass& traffic : out.communication) {
    out.sent = std::max(out.sent, traffic.sent);
  }
  judge_capacity(job, out);
  judge_links(job, out);
}

std::vector<std::int64_t> coordinates_of(const Placement& placement, Rank rank) {
  ensure(rank.index >= 0 && rank.index < devices_of(placement), "the rank is of the mesh");
  std::vector<std::int64_t> coordinates(placement.axes.size(), 0);
  std::int64_t left = rank.index;
  for (std::size_t a = placement.axes.size(); a-- > 0;) {
    coordinates[a] = left % placement.axes[a].degree;
    left /= placement.axes[a].degree;
  }
  return coordinates;
}

std::size_t stage_index(const Placement& placement, const std::vector<std::int64_t>& coordinates) {
  std::int64_t index = 0;
  for (std::size_t a = 0; a < placement.axes.size(); ++a) {
    if (placement.axes[a].how.cut != Cut::layer) continue;
    index = index * placement.axes[a].degree + coordinates[a];
  }
  return static_cast<std::size_t>(index);
}

}  // namespace

Derivation derive(const Job& job) { return derive(job, prepare(job)); }

Derivation derive(const Job& job, const Prepared& prepared) {
  Derivation out = judge_rules(job);
  if (!out.meaningful) return out;
  const LaidOut laid_out = lay_out_whole(job, prepared);
  fill(out, prepared, laid_out, moments_of(laid_out.layout));
  judge_reserved(laid_out, prepared, out);
  if (out.fit == FitGrade::tight) out.findings.push_back(tight_finding(out));
  return out;
}

namespace {

/// `known`: the moments of its schedule; none: to be found.
WholeDerivation whole(const Job& job, const Prepared& prepared, const PipelineMoments* known) {
  WholeDerivation out{.derivation = judge_rules(job), .time = {}};
  if (!out.derivation.meaningful) return out;
  const LaidOut laid_out = lay_out_whole(job, prepared);
  const PipelineMoments own = known == nullptr ? moments_of(laid_out.layout) : PipelineMoments();
  fill(out.derivation, prepared, laid_out, known == nullptr ? own : *known);
  if (job.cluster && !job.cluster->groups.empty()) out.time = time_of(laid_out);
  return out;
}

}  // namespace

WholeDerivation derive_all(const Job& job, const Prepared& prepared) {
  return whole(job, prepared, nullptr);
}

WholeDerivation derive_all(const Job& job, const Prepared& prepared,
                           const PipelineMoments& moments) {
  return whole(job, prepared, &moments);
}

LaidOut lay_out_whole(const Job& job, const Prepared& prepared) {
  LaidOut out{.layout = lay_out(job, prepared), .stages = stages_of(job)};
  out.units = units_by_stage(out.layout, out.stages);
  out.messages = messages_of_units(out.layout);
  out.kinds = stage_kinds(out.layout, out.stages, out.units, out.messages);
  return out;
}

RestingBytes resting_bytes(const Job& job, Rank rank) {
  const Prepared prepared = prepare(job);
  const std::vector<std::int64_t> coordinates = coordinates_of(job.placement, rank);
  const Layout layout = lay_out(job, prepared, coordinates);
  const std::vector<Stage> stages = stages_of(job);
  const Stage& stage = stages[stage_index(job.placement, coordinates)];
  const std::vector<MemoryClass> memory = derive_memory(layout, {stage});
  const MemoryClass& own = memory.front();
  RestingBytes out{.device = own.at_rest, .host = own.on_host, .nvme = own.on_nvme};
  for (std::size_t s = 0; s < out.host.size(); ++s) out.host[s] -= own.staged[s];
  return out;
}

std::string class_name(const Job& job, int stage) {
  const bool staged = std::ranges::any_of(job.placement.axes, [](const AxisPlacement& axis) {
    return axis.how.cut == Cut::layer && axis.degree > 1;
  });
  return staged ? "stage " + std::to_string(stage) : "every device";
}

std::string class_name(const Job& job, const MemoryClass& memory) {
  std::string name = class_name(job, memory.stage);
  if (memory.shares.empty()) return name;
  return (name.starts_with("stage") ? name + ", " : "devices of ") + memory.shares;
}

std::string peak_text(const Job& job, const MemoryClass& memory) {
  std::string text(name_of(memory.peak_instant));
  if (memory.peak_unit < 0) return text;
  const Unit& unit = job.model.units[at(memory.peak_unit)];
  const UnitKind& kind = job.model.kinds[at(unit.kind)];
  text += " of " + kind.name;
  if (kind.role == UnitRole::block) text += ' ' + std::to_string(unit.number);
  return text;
}

}  // namespace placet

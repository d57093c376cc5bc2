#include "search/state_costs.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "derive/collective_time.h"
#include "derive/communication.h"
#include "derive/layout.h"
#include "derive/moved_states.h"
#include "derive/rules.h"
#include "derive/state_bytes.h"
#include "derive/update_time.h"
#include "units/at.h"
#include "units/checked.h"

namespace placet {
namespace {

/// Whether units travel together in the messages.
bool is_joined(const UnitTerm& term) {
  return term.grain == MessageGrain::everything || term.grain == MessageGrain::bucket;
}

bool is_counted(const GatherTerms& gathers, const UnitTerm& term) {
  if (term.term.state == State::activations) return false;
  // A model's last block may be gathered once only.
  return gathers.last_block == Keep::none || term.term.phase != Phase::backward;
}

/// By phase: bytes of the model's messages in which units travel together, more than a device has.
using JoinedBytes = std::array<std::int64_t, 4>;

/// A unit's part of a message that carries all of the model's, which takes least for each byte.
/// Case: 2 of 10 units of 1 s each and 3 s of latency: 2 x 13 / 10 s of 5 s.
double part_of_joined(const UnitTerm& term, const JoinedBytes& joined, const GroupSet& devices,
                      MessageTimer& timer) {
  const std::int64_t whole = joined[at(static_cast<int>(term.term.phase))];
  if (whole == 0) return 0;
  CommunicationTerm all = term.term;
  all.payload = bytes(whole);
  const double part = term.term.payload / all.payload;
  return in_seconds(timer.call(all, devices)) * part * kDips;
}

/// A message, on devices of these groups.
void add_message(const UnitTerm& term, const JoinedBytes& joined, const GroupSet& devices,
                 MessageTimer& timer, UnitStateCost& cost) {
  double time = 0;
  if (is_joined(term)) {
    time = part_of_joined(term, joined, devices, timer);
  } else {
    time = in_seconds(timer.all(term.term, devices));
    (term.per_micro_batch ? cost.sent_each : cost.sent_once) += sent_by(term.term);
  }
  switch (term.term.phase) {
    case Phase::forward:
    case Phase::backward:
      (term.per_micro_batch ? cost.each : cost.once) += time;
      return;
    case Phase::reduce:
      cost.reduce += time;
      return;
    case Phase::update:
      if (term.term.state == State::parameters) cost.after += time;
      return;
  }
}

bool shares_tensors(const UnitKind& kind) {
  return std::ranges::any_of(kind.parameters,
                             [](const Parameter& p) { return p.tied.has_value(); });
}

}  // namespace

void lower_to(const StateCosts& costs, StateCosts& out) {
  if (out.empty()) out = costs;
  for (std::size_t k = 0; k < costs.size(); ++k) {
    const UnitStateCost& from = costs[k];
    UnitStateCost& to = out[k];
    to = {.parameters = std::min(to.parameters, from.parameters),
          .optimizer = std::min(to.optimizer, from.optimizer),
          .gradients = std::min(to.gradients, from.gradients),
          .gathered = std::min(to.gathered, from.gathered),
          .kept = std::min(to.kept, from.kept),
          .kept_step = std::min(to.kept_step, from.kept_step),
          .update = std::min(to.update, from.update),
          .on_host = std::min(to.on_host, from.on_host),
          .on_drives = std::min(to.on_drives, from.on_drives),
          .each = std::min(to.each, from.each),
          .once = std::min(to.once, from.once),
          .reduce = std::min(to.reduce, from.reduce),
          .after = std::min(to.after, from.after),
          .sent_each = std::min(to.sent_each, from.sent_each),
          .sent_once = std::min(to.sent_once, from.sent_once)};
  }
}

double update_seconds(const StateCosts& costs, const std::vector<std::int32_t>& units) {
  UpdateSeconds all;
  for (std::size_t k = 0; k < costs.size(); ++k) {
    all += static_cast<double>(units[k]) * UpdateSeconds{.device = costs[k].update,
                                                         .host = costs[k].on_host,
                                                         .drives = costs[k].on_drives};
  }
  return all.total();
}

namespace {

/// What a parameter that is gathered for use takes while it is whole.
void add_gathered(const Job& job, const Parameter& parameter, const LocalParameter& own,
                  UnitStateCost& cost) {
  if ((own.rests_in_part | own.materialized) == 0) return;
  const std::int64_t whole = in_bytes(gathered_bytes(job, parameter, own.elements));
  cost.gathered += whole;
  if (own.keep != Keep::none) cost.kept += whole;
  if (own.keep == Keep::step) cost.kept_step += whole;
}

/// The parameter with no part rounded up, where parts of several tensors are rounded as one.
LocalParameter unrounded(const Job& job, const LocalParameter& own) {
  LocalParameter out = own;
  if (job.profile.flat_rest == FlatRest::none) return out;
  for (std::size_t s = 0; s < out.rest.size(); ++s) {
    const std::int64_t parts = degree_of(job.placement, own.divided[s]);
    out.rest[s] = std::min(out.rest[s], out.elements / parts);
  }
  return out;
}

/// The states of one parameter, and its update.
void add_parameter(const Layout& layout, const UpdateRates& rates, const Parameter& parameter,
                   const LocalParameter& own, UnitStateCost& cost) {
  const Job& job = *layout.job;
  const StateBytes bytes = state_bytes(job, parameter, unrounded(job, own));
  cost.parameters += bytes.device[0];
  cost.optimizer += bytes.device[1];
  cost.gradients += bytes.device[2];
  add_gathered(job, parameter, own, cost);
  const UpdateSeconds update = parameter_update(layout, parameter, own, rates);
  cost.update += update.device;
  cost.on_host += update.host;
  cost.on_drives += update.drives;
}

/// All that a unit has of its own.
void add_parameters(const Layout& layout, const LocalUnit& unit, const UpdateRates& rates,
                    UnitStateCost& cost) {
  const UnitKind& kind = layout.job->model.kinds[at(unit.kind)];
  for (std::size_t p = 0; p < kind.parameters.size(); ++p) {
    if (kind.parameters[p].tied) continue;
    add_parameter(layout, rates, kind.parameters[p], unit.parameters[p], cost);
  }
}

/// What rests, and the update by the rates of each standing.
StateCosts resting_costs(const PlanSpace& space, const Layout& layout,
                         const std::vector<UpdateRates>& rates) {
  StateCosts out(space.costed_kinds());
  for (const LocalUnit& local : layout.units) {
    StateCosts least;
    for (std::size_t s = 0; s < rates.size(); ++s) {
      UnitStateCost own;
      add_parameters(layout, local, rates[s], own);
      lower_to({own}, least);
      out[at(space.costed_kind(local.kind, s))] = own;
    }
    out[at(space.costed_kind(local.kind, space.anywhere()))] = least.front();
  }
  return out;
}

/// Layouts of one plan's states under all offloads, one after the other, with what does not depend
/// on them worked out once.
class MovedLayouts {
 public:
  MovedLayouts(const PlanSpace& space, Workbench& bench)
      : space_(space), bench_(bench), timer_(bench.job), units_(bench.job.model.kinds.size()) {
    for (const Unit& unit : bench.job.model.units) ++units_[at(unit.kind)];
  }

  /// Of the job on the bench.
  const Layout& lay_out_next() {
    const Placement& placement = bench_.job.placement;
    if (layout_ && differ_in_moved_alone(laid_out_, placement)) {
      read_moved(*layout_);
    } else {
      layout_ = lay_out_parameters(bench_.job, bench_.plain);
      others_.clear();
    }
    laid_out_ = placement;
    return *layout_;
  }

  void add_messages(StateCosts& costs) {
    if (others_.empty()) read_others();
    for (std::size_t u = 0; u < layout_->units.size(); ++u) {
      if (!has_messages(u)) continue;
      std::vector<UnitStateCost> sent = others_[u];
      for (const UnitTerm& term : host_traffic(*layout_, static_cast<int>(u))) time(term, sent);
      const int kind = layout_->units[u].kind;
      StateCosts least;
      for (std::size_t s = 0; s < sent.size(); ++s) {
        lower_to({sent[s]}, least);
        add(sent[s], costs[at(space_.costed_kind(kind, s))]);
      }
      if (sent.size() > 1) {
        add(least.front(), costs[at(space_.costed_kind(kind, space_.anywhere()))]);
      }
    }
  }

 private:
  bool has_messages(std::size_t unit) const {
    const UnitKind& kind = bench_.job.model.kinds[at(kind_of(unit))];
    return kind.role == UnitRole::block && !shares_tensors(kind);
  }

  /// All messages but copies between device and host.
  void read_others() {
    others_.assign(layout_->units.size(), std::vector<UnitStateCost>(space_.standings().size()));
    std::vector<std::vector<UnitTerm>> traffic;
    traffic.reserve(others_.size());
    joined_ = {};
    for (std::size_t u = 0; u < others_.size(); ++u) {
      traffic.push_back(parameter_traffic(*layout_, static_cast<int>(u), {}));
      for (const UnitTerm& term : traffic.back()) add_joined(term, units_[at(kind_of(u))]);
    }
    for (std::size_t u = 0; u < others_.size(); ++u) {
      if (!has_messages(u)) continue;
      for (const UnitTerm& term : traffic[u]) {
        if (term.term.collective != Collective::host_copy) time(term, others_[u]);
      }
    }
  }

  void add_joined(const UnitTerm& term, std::int64_t units) {
    if (!is_joined(term)) return;
    std::int64_t& whole = joined_[at(static_cast<int>(term.term.phase))];
    const std::int64_t own = checked_multiply(in_bytes(term.term.payload), units, "bytes sent");
    whole = checked_add(whole, own, "bytes sent");
  }

  int kind_of(std::size_t unit) const { return layout_->units[unit].kind; }

  /// Adds a message to what each standing sends.
  void time(const UnitTerm& term, std::vector<UnitStateCost>& sent) {
    if (!is_counted(layout_->plan.gathers, term)) return;
    for (std::size_t s = 0; s < sent.size(); ++s) {
      add_message(term, joined_, space_.standings()[s], timer_, sent[s]);
    }
  }

  static void add(const UnitStateCost& messages, UnitStateCost& cost) {
    cost.each += messages.each;
    cost.once += messages.once;
    cost.reduce += messages.reduce;
    cost.after += messages.after;
    cost.sent_each += messages.sent_each;
    cost.sent_once += messages.sent_once;
  }

  const PlanSpace& space_;
  Workbench& bench_;
  MessageTimer timer_;
  std::vector<std::int64_t> units_;  // of the model by kind
  JoinedBytes joined_{};
  std::optional<Layout> layout_;
  Placement laid_out_;
  std::vector<std::vector<UnitStateCost>> others_;  // by local unit, standing; empty: not looked at
};

}  // namespace

MovableStates state_costs(const PlanSpace& space, const Plan& plan, bool accumulates,
                          const std::function<bool(const StateCosts&)>& fits, Workbench& bench) {
  Plan alone = plan;
  alone.micro_batch = 1;
  alone.recompute = 0;
  alone.split = kNoSplit;
  std::vector<UpdateRates> rates;
  for (const GroupSet& devices : space.standings()) {
    rates.push_back(update_rates(*bench.job.cluster, devices));
  }
  MovedLayouts layouts(space, bench);
  MovableStates out;
  for (const std::int16_t offload : space.offloads()) {
    alone.offload = offload;
    space.apply(alone, bench.job);
    bench.job.recompute = {};
    bench.job.batch.global = PlanSpace::samples_at_once(alone) * (accumulates ? 2 : 1);
    if (is_refused(bench.job, bit_of(JobPart::states))) {
      ++out.refused;
      continue;
    }
    StateCosts costs = resting_costs(space, layouts.lay_out_next(), rates);
    if (!fits(costs)) continue;
    layouts.add_messages(costs);
    out.fitting.push_back({.offload = offload, .costs = std::move(costs)});
  }
  return out;
}

}  // namespace placet

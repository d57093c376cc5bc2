// Traffic between the stages of a layer cut: what crosses their boundaries, and gradients of
// tensors that several of them hold.
#include <algorithm>
#include <optional>

#include "derive/communication.h"
#include "derive/shared_tensors.h"
#include "derive/stage_terms.h"
#include "units/at.h"
#include "units/checked.h"
#include "units/shares.h"

namespace placet {
namespace {

/// Whether a neighbouring virtual stage stands on this device (the turn of a vee, or of a table).
bool stays_here(const Schedule& schedule, const Stage& stage, std::int64_t neighbour) {
  return (schedule.hosting == Hosting::vee || schedule.hosting == Hosting::table) &&
         std::ranges::find(stage.virtual_stages, neighbour) != stage.virtual_stages.end();
}

class BetweenStages {
 public:
  BetweenStages(const Layout& layout, const Stage& stage, std::vector<CommunicationTerm>& terms)
      : layout_(layout),
        job_(*layout.job),
        profile_(job_.profile),
        stage_(stage),
        terms_(terms),
        shared_(job_, stage) {}

  /// Activations (and their gradients) that cross stage boundaries.
  void add_boundaries() {
    const std::optional<CommunicationTerm> crossing = boundary();
    if (!crossing) return;
    const Crossings crossed = crossings_of(layout_, stage_);
    add_crossing(*crossing, "boundary activations", Phase::forward, crossed.out, crossed.in);
    add_crossing(*crossing, "boundary gradients", Phase::backward, crossed.back, crossed.returned);
  }

  /// Tensors hosted on several devices of the layer axes: their gradients are partial over the
  /// hosts. Those that make the same transition over further axes are one group with them, and
  /// written there (parameter_traffic).
  void add_shared() {
    std::int64_t elements = 0;
    for_each_unit(stage_, [&](int u) {
      elements = checked_add(elements, shared_elements(u), "gradients of shared tensors");
    });
    if (elements == 0) return;
    terms_.push_back({.axes = layout_.layer_axes,
                      .collective = Collective::all_reduce,
                      .op = ReduceOp::sum,
                      .state = State::gradients,
                      .what = "gradients of shared tensors",
                      .dtype = job_.precision.reduce,
                      .phase = Phase::reduce,
                      .payload = bytes_of(elements, job_.precision.reduce),
                      .count = 1,
                      .group = 2});
  }

 private:
  /// The stream as it stands between blocks; none in a model without operators.
  std::optional<CommunicationTerm> boundary() const {
    for (const LocalUnit& unit : layout_.units) {
      const UnitKind& kind = job_.model.kinds[at(unit.kind)];
      if (kind.role != UnitRole::block || kind.values.empty()) continue;
      return CommunicationTerm{.axes = layout_.layer_axes,
                               .collective = Collective::send_recv,
                               .state = State::activations,
                               .dtype = job_.precision.compute,
                               .payload = bytes_of(unit.values.front(), job_.precision.compute),
                               .group = 2};
    }
    return std::nullopt;
  }

  void add_crossing(CommunicationTerm term, std::string_view what, Phase phase, std::int64_t sends,
                    std::int64_t receives) {
    term.what = what;
    term.phase = phase;
    const AxisMask whole = layout_.tensor_axes & ~layout_.split_residual_axes;
    const bool parts = profile_.sends_boundary_in_parts && degree_of(job_.placement, whole) > 1;
    CommunicationTerm gather = term;
    if (parts) {
      const std::int64_t elements = in_bytes(term.payload) * 8 / bits_of(term.dtype);
      term.payload =
          bytes_of(largest_share(elements, degree_of(job_.placement, whole)), term.dtype);
    }
    term.count = sends;
    if (sends > 0) terms_.push_back(term);
    if (!parts || receives == 0) return;
    gather.axes = whole;
    gather.group = degree_of(job_.placement, whole);
    gather.collective = Collective::all_gather;
    gather.count = receives;
    terms_.push_back(gather);
  }

  std::int64_t shared_elements(int u) const {
    const LocalUnit& local = layout_.units[at(layout_.unit_of[at(u)])];
    const UnitKind& kind = kind_of(u);
    if (!shared_.may_share(local.kind)) return 0;
    std::int64_t elements = 0;
    for (std::size_t p = 0; p < kind.parameters.size(); ++p) {
      const LocalParameter& parameter = local.parameters[p];
      const bool joined = degree_of(job_.placement, reduced_with_hosts(layout_, parameter)) > 1;
      if (!parameter.trainable || joined || !shared_.is_elsewhere(u, p)) continue;
      elements += profile_.shared_gradients_whole ? parameter.elements
                                                  : left_after_scatter(layout_, parameter);
    }
    return elements;
  }

  const UnitKind& kind_of(int u) const {
    return job_.model.kinds[at(job_.model.units[at(u)].kind)];
  }

  const Layout& layout_;
  const Job& job_;
  const Profile& profile_;
  const Stage& stage_;
  std::vector<CommunicationTerm>& terms_;
  SharedTensors shared_;
};

}  // namespace

Crossings crossings_of(const Layout& layout, const Stage& stage) {
  if (layout.stages == 1) return {};
  const Schedule& schedule = layout.job->schedule;
  const std::int64_t virtuals = virtual_stages(schedule, layout.stages);
  const std::int64_t m = micro_batches_of_chunk(layout);
  Crossings sent;
  for (std::size_t c = 0; c < stage.virtual_stages.size(); ++c) {
    const std::int64_t own = stage.virtual_stages[c];
    const bool goes_on = own + 1 < virtuals && !stays_here(schedule, stage, own + 1);
    const bool comes_in = own > 0 && !stays_here(schedule, stage, own - 1);
    if (goes_on) sent.out += m;
    if (goes_on && stage.backward.hands_back(own + 1)) sent.returned += m;
    if (comes_in) sent.in += m;
    if (comes_in && stage.backward.hands_back(own)) sent.back += m;
  }
  return sent;
}

void write_between_stages(const Layout& layout, const Stage& stage,
                          std::vector<CommunicationTerm>& terms) {
  if (layout.stages == 1) return;
  BetweenStages between(layout, stage, terms);
  between.add_boundaries();
  between.add_shared();
}

}  // namespace placet

// Rule 4 of docs/theory.md §4 for routed tokens.
#include <algorithm>

#include "derive/unit_traffic.h"
#include "units/at.h"
#include "units/checked.h"
#include "units/shares.h"

namespace placet {
namespace {

/// Tokens on their way to their experts, or back.
class RoutingTraffic {
 public:
  explicit RoutingTraffic(UnitTraffic& unit) : unit_(unit), axes_(routed_axes(unit)) {}

  /// `outward`: the operator sends; otherwise it receives. Backward goes the other way.
  void write(std::size_t o, bool outward) {
    const Operator& op = unit_.kind.operators[o];
    routed_ = at(outward ? op.outputs.front() : op.inputs.front());
    stream_ = at(outward ? op.inputs.front() : op.outputs.front());
    auto go = [&](Phase phase, bool out) {
      switch (unit_.job.profile.token_dispatch) {
        case TokenDispatch::exchange:
        case TokenDispatch::exchange_once:
          exchange(phase, out);
          return;
        case TokenDispatch::gather:
          gather(phase, axes_.exchanged | axes_.gathered, out);
          return;
        case TokenDispatch::whole_then_exchange:
          exchange_whole(phase, out);
          return;
      }
    };
    go(Phase::forward, outward);
    if (unit_.prepared.operators[o].backward) go(Phase::backward, !outward);
    if (unit_.starts_again(o)) go(Phase::backward, outward);
  }

 private:
  /// Tokens that a device sends.
  std::int64_t sent() const { return sent_elements(unit_, axes_, static_cast<int>(routed_)); }

  /// Tokens that a device gets from its experts: what they have received, which need not be what it
  /// sent.
  std::int64_t returned() const { return unit_.local.values[routed_]; }

  /// Experts with so many slots each are sent all of them, full or not.
  bool sends_slots() const { return unit_.job.routing.kind == Routing::Kind::capacity; }

  void exchange(Phase phase, bool outward) {
    const std::int64_t spread = degree_of(unit_.job.placement, axes_.gathered);
    const std::int64_t own =
        outward && !sends_slots() ? sent() : returned() / std::max<std::int64_t>(1, spread);
    send(Collective::all_to_all, phase, axes_.exchanged, once_per_device(own));
    send(outward ? Collective::all_gather : Collective::reduce_scatter, phase, axes_.gathered,
         checked_multiply(own, spread, "routed tokens"));
  }

  /// Of k choices on g devices min(k, g) are sent, where a token goes once to each device. Case: 8
  /// choices over 4 devices: half.
  std::int64_t once_per_device(std::int64_t elements) const {
    if (unit_.job.profile.token_dispatch != TokenDispatch::exchange_once) return elements;
    const std::int64_t choices =
        std::max<std::int64_t>(1, unit_.job.model.figures.experts_per_token);
    const std::int64_t devices = degree_of(unit_.job.placement, axes_.exchanged);
    return elements / choices * std::min(choices, devices);
  }

  /// Every device gets the tokens of all and gives back its part of the results.
  void gather(Phase phase, AxisMask axes, bool outward) {
    const std::int64_t whole = checked_multiply(
        unit_.local.values[stream_], degree_of(unit_.job.placement, axes), "gathered tokens");
    send(outward ? Collective::all_gather : Collective::reduce_scatter, phase, axes, whole);
  }

  /// Tokens are whole along the tensor axes before they are sent, once per choice: by all devices
  /// of an axis that cuts the experts, in turn by those of an axis that does not.
  void exchange_whole(Phase phase, bool outward) {
    gather(phase, unit_.layout.split_residual_axes, outward);
    const std::int64_t spread = degree_of(unit_.job.placement, axes_.gathered);
    send(
        Collective::all_to_all, phase, axes_.exchanged,
        outward && !sends_slots() ? checked_multiply(sent(), spread, "routed tokens") : returned());
  }

  void send(Collective collective, Phase phase, AxisMask axes, std::int64_t elements) {
    unit_.add({.what = unit_.kind.values[routed_].name,
               .collective = collective,
               .phase = phase,
               .axes = axes,
               .elements = elements,
               .dtype = unit_.job.precision.compute});
  }

  UnitTraffic& unit_;
  RoutedAxes axes_;
  std::size_t routed_ = 0;
  std::size_t stream_ = 0;
};

}  // namespace

void write_sent_tokens(UnitTraffic& unit, std::size_t op) { RoutingTraffic(unit).write(op, true); }

void write_returned_tokens(UnitTraffic& unit, std::size_t op) {
  RoutingTraffic(unit).write(op, false);
}

}  // namespace placet

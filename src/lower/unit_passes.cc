#include "lower/unit_passes.h"

#include <algorithm>
#include <map>
#include <memory>

#include "lower/parameter_uses.h"
#include "lower/stages.h"
#include "lower/unit_applications.h"
#include "lower/unit_backward.h"
#include "lower/unit_forward.h"
#include "lower/unit_values.h"
#include "units/at.h"

namespace placet {
namespace {

std::string_view mark_of(Again again) {
  switch (again) {
    case Again::nothing:
      return "";
    case Again::modules:
      return ".partly-recomputed";
    case Again::everything:
      return ".recomputed";
  }
  return "";
}

class UnitPasses {
 public:
  UnitPasses(Lowering& in, const UnitParameters& parameters, int kind, Again again)
      : in_(in),
        name_(word_of(in.job.model.kinds[at(kind)].name) + parameters.mark +
              std::string(mark_of(again))),
        uses_(in, parameters),
        applications_(in, kind, again),
        values_(in, parameters, kind),
        forward_(in, applications_, values_, kind),
        backward_(in, applications_, values_, forward_, uses_) {
    values_.keep_copies_of(applications_.kept_both_ways);
  }

  UnitProcedures write() {
    UnitProcedures out;
    begin("forward.", StepPhase::forward);
    uses_.gather(false);
    forward_.write();
    for (int v : applications_.kept) {
      if (applications_.is_checkpoint(v)) {
        values_.bring(v, values_.parts_of(v, applications_.checkpoint_axes));
      }
      if (applications_.kept_on_host) values_.move_to(Medium::host, v);
    }
    for (int v : applications_.kept) left_[v] = values_.all_of(v);
    // Without a backward, forward is the last that uses the parameters.
    uses_.let_go(applications_.backward.empty());
    out.forward = end();
    if (applications_.backward.empty()) return out;
    begin("backward.", StepPhase::backward);
    backward_.write(left_);
    out.backward = end();
    if (!splits_backward(in_.job)) return out;
    begin("backward-inputs.", StepPhase::backward);
    backward_.write_inputs(left_);
    out.backward_inputs = end();
    begin("backward-weights.", StepPhase::backward);
    backward_.write_weights();
    out.backward_weights = end();
    return out;
  }

  /// Axes along which each plan's gradient came out partial.
  const std::map<int, std::vector<AxisList>>& partial_of_plans() const { return uses_.partial; }

 private:
  void begin(const std::string& pass, StepPhase phase) {
    in_.program.procedures.push_back({.name = pass + name_, .body = {}});
    body_.clear();
    in_.writer.write_to(body_);
    in_.writer.forget_buffers();
    in_.writer.set_phase(phase);
  }

  int end() {
    in_.program.procedures.back().body = std::move(body_);
    values_.clear();
    return static_cast<int>(in_.program.procedures.size()) - 1;
  }

  Lowering& in_;
  std::string name_;
  std::vector<Step> body_;
  ParameterUses uses_;
  UnitApplications applications_;
  UnitValues values_;
  UnitForward forward_;
  UnitBackward backward_;
  std::map<int, std::vector<Held>> left_;  // kept values as forward leaves them
};

}  // namespace

UnitProcedures write_unit(Lowering& in, UnitParameters& parameters, int kind, Again again) {
  UnitPasses passes(in, parameters, kind, again);
  const UnitProcedures out = passes.write();
  for (const auto& [p, pieces] : passes.partial_of_plans()) {
    parameters.plans[at(p)].piece_partial = pieces;
    parameters.plans[at(p)].partial = common_partial(pieces);
  }
  return out;
}

}  // namespace placet

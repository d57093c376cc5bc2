// Parameters inside a unit's procedures: brought together for use, let go, and their gradients
// handed over. Inside of lower/.
#pragma once

#include <map>
#include <vector>

#include "lower/unit_passes.h"

namespace placet {

class ParameterUses {
 public:
  ParameterUses(Lowering& in, const UnitParameters& parameters)
      : in_(in), w_(in.writer), parameters_(parameters) {}

  /// Rests in part, used whole: gathered before the unit, one message for all of it. `again`: in
  /// backward.
  void gather(bool again);
  /// Frees what was gathered; what is kept for backward only where `last`.
  void let_go(bool last);

  /// The buffer that takes the gradient of a parameter of the reference, made with the plan's first
  /// piece. Plans whose last piece this is are added to `finished`.
  BufferRef gradient(int parameter, const Spread& spread, std::vector<int>& finished);
  /// A gradient that is not scattered in this pass goes into the buffer of the step.
  void settle(int plan);
  /// Gradients that go to their owners in each micro-batch: one message for the unit.
  void scatter_gradients();

  /// By plan and piece, the axes along which the gradient came out partial.
  std::map<int, std::vector<AxisList>> partial;

 private:
  struct Weight {
    Held held;
    int missing = 0;
  };

  void gather(const ParameterPlan& plan, Gathers& gathers);
  void drop_parts();
  BufferRef gradient_buffer(const ParameterPlan& plan, bool own);
  void add_to_step(const ParameterPlan& plan, const BufferRef& share);
  void leave_waiting();
  void add_waiting(const ParameterPlan& plan, const BufferRef& sum);

  Lowering& in_;
  Writer& w_;
  const UnitParameters& parameters_;
  std::map<int, Weight> weights_;
  std::vector<Held> parts_;
};

}  // namespace placet

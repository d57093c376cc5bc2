// The ports of a pipeline: one for each direction of each link of each stage's device. Inside of
// simulation.cc.
#pragma once

#include <vector>

#include "derive/step_parts.h"
#include "simulate/flows.h"
#include "simulate/pass_steps.h"

namespace placet {

class Ports {
 public:
  explicit Ports(const StepParts& parts)
      : parts_(parts), links_(static_cast<int>(parts.links.size())) {}

  int count() const { return static_cast<int>(parts_.stages()) * links_ * 2; }
  int links() const { return links_; }
  int out_of(std::int64_t stage, int link) const { return number(stage, link) * 2; }
  int into(std::int64_t stage, int link) const { return number(stage, link) * 2 + 1; }

  /// What a collective along axes uses.
  std::vector<PortUse> of(std::int64_t stage, AxisMask axes) const;

  /// What messages that hide behind the kernels of a step use, on the mean over the kernels' time.
  std::vector<PortUse> beside(std::int64_t stage, const PassStep& step) const;

  /// What a message from a stage to another uses; to itself, at the turn of a vee, nothing.
  std::vector<PortUse> between(std::int64_t from, std::int64_t to) const;

 private:
  int number(std::int64_t stage, int link) const { return static_cast<int>(stage) * links_ + link; }

  const StepParts& parts_;
  int links_;
};

}  // namespace placet

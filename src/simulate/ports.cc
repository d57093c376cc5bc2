#include "simulate/ports.h"

#include <algorithm>

namespace placet {

std::vector<PortUse> Ports::of(std::int64_t stage, AxisMask axes) const {
  std::vector<PortUse> ports;
  for (const LinkUse& use : parts_.use_of(axes)) {
    ports.push_back({out_of(stage, use.link), use.part});
    ports.push_back({into(stage, use.link), use.part});
  }
  return ports;
}

std::vector<PortUse> Ports::beside(std::int64_t stage, const PassStep& step) const {
  std::vector<PortUse> ports;
  for (const auto& [axes, time] : step.beside.parts) {
    const double part = std::min(1.0, in_seconds(time) / step.time);
    for (const PortUse& use : of(stage, axes)) ports.push_back({use.port, use.part * part});
  }
  return ports;
}

std::vector<PortUse> Ports::between(std::int64_t from, std::int64_t to) const {
  std::vector<PortUse> ports;
  if (from == to) return ports;
  for (const LinkUse& use : parts_.message_use) {
    ports.push_back({out_of(from, use.link), use.part});
    ports.push_back({into(to, use.link), use.part});
  }
  return ports;
}

}  // namespace placet

#include "simulate/flows.h"

#include <algorithm>

#include "units/at.h"
#include "units/error.h"

namespace placet {
namespace {

void insert_once(std::vector<int>& list, int value) {
  if (std::ranges::find(list, value) == list.end()) list.push_back(value);
}

}  // namespace

FlowClock::FlowClock(const std::vector<double>& shares, int ports) : ports_(at(ports)) {
  for (const double share : shares) devices_.push_back({.messages = {}, .share = share});
}

int FlowClock::any_number() {
  if (free_.empty()) {
    flows_.emplace_back();
    return static_cast<int>(flows_.size()) - 1;
  }
  const int f = free_.back();
  free_.pop_back();
  return f;
}

int FlowClock::start(FlowStart what) {
  ensure(what.work > 0, "a flow has work");
  const int f = any_number();
  Flow& own = flow(f);
  own = {.what = std::move(what), .since = now_, .version = own.version + 1, .order = ++started_};
  own.left = own.what.work;
  Device& device = devices_[at(own.what.device)];
  switch (own.what.role) {
    case FlowStart::Role::pass:
      ensure(device.pass < 0, "a device does one thing at a time");
      device.pass = f;
      break;
    case FlowStart::Role::beside:
    case FlowStart::Role::reduction:
      device.messages.push_back(f);
      break;
    case FlowStart::Role::lone:
      set_running(f, true);
      changed_lone_.push_back(f);
      settle();
      return f;
  }
  refresh(own.what.device);
  settle();
  return f;
}

void FlowClock::release(int device) {
  devices_[at(device)].released = true;
  refresh(device);
  settle();
}

std::optional<FlowEnd> FlowClock::next() {
  while (!events_.empty()) {
    const Event event = events_.top();
    events_.pop();
    Flow& own = flow(event.flow);
    if (own.ended || own.version != event.version) continue;
    now_ = std::max(now_, event.time);
    own.ended = true;
    set_running(event.flow, false);
    Device& device = devices_[at(own.what.device)];
    if (device.pass == event.flow) device.pass = -1;
    std::erase(device.messages, event.flow);
    for (const PortUse& use : own.what.ports) {
      ports_[at(use.port)].used += use.part * own.what.work;
    }
    free_.push_back(event.flow);
    refresh(own.what.device);
    settle();
    return FlowEnd{event.flow, now_};
  }
  return std::nullopt;
}

bool FlowClock::may_run(const Flow& own) const {
  if (own.what.role != FlowStart::Role::reduction) return true;
  const Device& device = devices_[at(own.what.device)];
  if (device.pass < 0) return device.released;
  return flows_[at(device.pass)].what.lets_reductions;
}

/// What a flow does while it runs its ports feel.
void FlowClock::set_running(int f, bool running) {
  Flow& own = flow(f);
  if (own.running == running) return;
  own.running = running;
  for (const PortUse& use : own.what.ports) {
    Port& port = ports_[at(use.port)];
    std::erase_if(port.flows, [f](const auto& entry) { return entry.first == f; });
    if (running) port.flows.emplace_back(f, use.part);
    insert_once(changed_ports_, use.port);
  }
}

/// Who of a device may run now.
void FlowClock::refresh(int device) {
  const Device& own = devices_[at(device)];
  if (own.pass >= 0) set_running(own.pass, true);
  for (const int f : own.messages) set_running(f, may_run(flow(f)));
  insert_once(changed_devices_, device);
}

/// How much a port slows its flows, and whom that reaches.
void FlowClock::settle_port(Port& port) {
  double load = 0;
  for (const auto& entry : port.flows) load += entry.second;
  port.slow = load > 1 ? 1 / load : 1;
  for (const auto& entry : port.flows) {
    const Flow& own = flow(entry.first);
    const bool lone = own.what.role == FlowStart::Role::lone;
    insert_once(lone ? changed_lone_ : changed_devices_, lone ? entry.first : own.what.device);
  }
}

/// New rates for all whom a change reaches.
void FlowClock::settle() {
  for (const int p : changed_ports_) settle_port(ports_[at(p)]);
  for (const int f : changed_lone_) {
    if (!flow(f).ended) set_rate(f, slowed(flow(f)));
  }
  for (const int d : changed_devices_) refresh_rates(d);
  changed_ports_.clear();
  changed_lone_.clear();
  changed_devices_.clear();
}

void FlowClock::refresh_rates(int device) {
  const Device& own = devices_[at(device)];
  if (own.pass < 0) {
    for (const int f : own.messages) set_rate(f, flow(f).running ? slowed(flow(f)) : 0);
    return;
  }
  double beside = 0;
  for (const int f : own.messages) beside += flow(f).running ? 1 : 0;
  const double pass = slowed(flow(own.pass));
  const double lost = 1 / (1 + beside * own.share);
  set_rate(own.pass, pass * lost);
  for (const int f : own.messages) {
    set_rate(f, flow(f).running ? std::min(pass, slowed(flow(f))) * lost : 0);
  }
}

double FlowClock::slowed(const Flow& own) const {
  double least = 1;
  for (const PortUse& use : own.what.ports) {
    least = std::min(least, ports_[at(use.port)].slow);
  }
  return least;
}

void FlowClock::set_rate(int f, double rate) {
  Flow& own = flow(f);
  if (own.rate == rate) return;
  const double done = own.rate * (now_ - own.since);
  own.left = std::max(0.0, own.left - done);
  own.rate = rate;
  own.since = now_;
  ++own.version;
  if (rate > 0) events_.push({now_ + own.left / rate, own.order, own.version, f});
}

}  // namespace placet

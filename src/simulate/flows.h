// Work in flight, at rates that depend on what else is: the clock of the simulation
// (docs/theory.md §7.8). Flows that use a port at once share it; a device's pass and the messages
// of states beside it slow each other.
#pragma once

#include <cstdint>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

namespace placet {

/// What a flow occupies of a port (one direction of a device's link) at its full rate, 0 to 1.
struct PortUse {
  int port = 0;
  double part = 1;
};

/// A piece of work of so many seconds when nothing slows it.
struct FlowStart {
  enum class Role : std::uint8_t {
    pass,       // what a device computes, or waits for in the midst of it; one at a time
    beside,     // a message of a state: it and the pass slow each other
    reduction,  // likewise; it moves only beside passes that let it, and once the device is done
    lone        // a message between stages
  };
  Role role = Role::lone;
  int device = 0;
  double work = 0;
  bool lets_reductions = false;  // of a pass
  std::vector<PortUse> ports;
};

struct FlowEnd {
  int flow = 0;
  double time = 0;
};

/// Rates. A port whose flows occupy more than all of it slows each of them by the same factor; a
/// flow goes as fast as its slowest port lets it. While a pass runs with n messages beside it, it
/// goes at 1 / (1 + n share) of that rate, and they at the same, or slower where a port says so.
/// Two flows that end at one instant end in the order in which they were started.
class FlowClock {
 public:
  /// `shares`: by device.
  FlowClock(const std::vector<double>& shares, int ports);

  /// Begins now; returns its number. REQUIRES: work > 0.
  int start(FlowStart flow);

  /// Reductions of the device need no pass from now on.
  void release(int device);

  /// Moves on to the next end of a flow; none: nothing is in flight.
  std::optional<FlowEnd> next();

  double now() const { return now_; }

  /// Seconds of a port that the flows which ended took of it.
  double used(int port) const { return ports_[static_cast<std::size_t>(port)].used; }

 private:
  struct Flow {
    FlowStart what;
    double left = 0;
    double rate = 0;
    double since = 0;
    std::int64_t version = 0;  // of its rate; numbers are used again, versions are not
    std::int64_t order = 0;    // of its start
    bool running = false;
    bool ended = false;
  };
  struct Port {
    std::vector<std::pair<int, double>> flows;  // running ones
    double used = 0;
    double slow = 1;  // factor of its flows
  };
  struct Device {
    int pass = -1;
    std::vector<int> messages;
    bool released = false;
    double share = 0;
  };
  struct Event {
    double time = 0;
    std::int64_t order = 0;
    std::int64_t version = 0;
    int flow = 0;
    bool operator>(const Event& other) const {
      return time != other.time ? time > other.time : order > other.order;
    }
  };

  int any_number();
  Flow& flow(int f) { return flows_[static_cast<std::size_t>(f)]; }
  bool may_run(const Flow& flow) const;
  void set_running(int f, bool running);
  void refresh(int device);
  void settle_port(Port& port);
  void settle();
  void set_rate(int f, double rate);
  double slowed(const Flow& flow) const;
  void refresh_rates(int device);

  double now_ = 0;
  std::int64_t started_ = 0;
  std::vector<Flow> flows_;
  std::vector<int> free_;
  std::vector<Port> ports_;
  std::vector<Device> devices_;
  std::vector<int> changed_ports_, changed_devices_, changed_lone_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
};

}  // namespace placet

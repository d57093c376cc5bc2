#include "meet/meeting.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "units/at.h"

namespace placet::testing {
namespace {

/// The axis of the placement that an axis of the program is, or is a part of ("tp", "tp.0").
int placed_axis(const Job& job, const std::string& name) {
  for (std::size_t a = 0; a < job.placement.axes.size(); ++a) {
    const std::string_view own = job.placement.axes[a].axis.text();
    if (name == own) return static_cast<int>(a);
    if (name.starts_with(own) && name[own.size()] == '.') return static_cast<int>(a);
  }
  return -1;
}

std::string names_of(const Job& job, AxisMask mask) {
  std::string text;
  for (std::size_t a = 0; a < job.placement.axes.size(); ++a) {
    const AxisPlacement& axis = job.placement.axes[a];
    if ((mask >> a & 1U) == 0 || axis.degree == 1) continue;
    text += (text.empty() ? "" : " ") + std::string(axis.axis.text());
  }
  return text;
}

/// A message in words, alike on both sides.
struct Words {
  std::string collective, axes, op, dtype, phase;
  std::int64_t group = 1, payload = 0;

  std::string text() const {
    return collective + (op.empty() ? "" : " " + op) + " of " + std::to_string(payload) +
           " bytes of " + dtype + " among " + std::to_string(group) + " over " + axes + ", " +
           phase;
  }
};

/// Calls by message, and what they send together. Copies over the host link are no messages of a
/// group: how many a unit's bytes come in, and of which formats, says nothing, and their bytes are
/// compared.
void note(Words words, std::int64_t calls, Bytes sent, std::map<std::string, std::int64_t>& out) {
  if (words.collective == name_of(Collective::host_copy)) {
    calls *= words.payload;
    words.payload = 1;
    words.dtype = name_of(Dtype::uint8);
  }
  out["bytes sent by " + words.text()] += in_bytes(sent);
  out[words.text()] += calls;
}

/// States of several formats are one message of bytes there, and one of the first's format here:
/// the master's, if there is one.
Dtype format_of(const Job& job, const CommunicationTerm& term) {
  if (term.state != State::optimizer || term.dtype != Dtype::uint8) return term.dtype;
  const Precision& precision = job.precision;
  const bool master = bits_of(precision.parameters) < 32 && job.optimizer.keeps_master;
  return master && precision.master ? *precision.master : job.optimizer.states.front().dtype;
}

std::map<std::string, std::int64_t> derived_messages(const Job& job,
                                                     const CommunicationClass& traffic) {
  std::map<std::string, std::int64_t> out;
  for (const CommunicationTerm& t : traffic.terms) {
    const bool reduces =
        t.collective == Collective::all_reduce || t.collective == Collective::reduce_scatter;
    const Words words{.collective = std::string(name_of(t.collective)),
                      .axes = names_of(job, t.axes),
                      .op = reduces ? std::string(name_of(t.op)) : "",
                      .dtype = std::string(name_of(format_of(job, t))),
                      .phase = std::string(name_of(t.phase)),
                      .group = t.group,
                      .payload = in_bytes(t.payload)};
    note(words, t.count, t.sent, out);
  }
  return out;
}

Collective collective_of(InstructionKind kind) {
  static const std::map<InstructionKind, Collective> kNames{
      {InstructionKind::all_reduce, Collective::all_reduce},
      {InstructionKind::reduce_scatter, Collective::reduce_scatter},
      {InstructionKind::all_gather, Collective::all_gather},
      {InstructionKind::all_to_all, Collective::all_to_all},
      {InstructionKind::broadcast, Collective::broadcast},
      {InstructionKind::permute, Collective::send_recv},
      {InstructionKind::send, Collective::send_recv},
      {InstructionKind::host_copy, Collective::host_copy}};
  return kNames.at(kind);
}

std::map<std::string, std::int64_t> counted_messages(const Job& job, const Program& program,
                                                     const Tally& tally) {
  std::map<std::string, std::int64_t> out;
  for (const TalliedMessage& m : tally.messages) {
    AxisMask mask = 0;
    for (int a : m.axes) mask |= axis_bit(placed_axis(job, program.axes[at(a)].name));
    const bool reduces =
        m.kind == InstructionKind::all_reduce || m.kind == InstructionKind::reduce_scatter;
    const Words words{.collective = std::string(name_of(collective_of(m.kind))),
                      .axes = names_of(job, mask),
                      .op = reduces ? (m.op == Combine::sum ? "sum" : "max") : "",
                      .dtype = std::string(name_of(m.dtype)),
                      .phase = std::string(name_of(m.phase)),
                      .group = m.group,
                      .payload = in_bytes(m.payload)};
    note(words, m.count, m.sent * m.count, out);
  }
  return out;
}

/// The device of the program that the class of the derivation speaks of.
ProgramCoordinates device_of(const Job& job, const Program& program, int device_class,
                             const MemoryClass& memory) {
  ProgramCoordinates out = first_of(program, program.classes[at(device_class)]);
  std::vector<std::int64_t> left = memory.coordinates;
  if (left.empty()) return out;
  for (std::size_t a = program.axes.size() - 1; a-- > 0;) {
    const int placed = placed_axis(job, program.axes[a].name);
    if (job.placement.axes[at(placed)].how.cut == Cut::layer) continue;
    out[a] = left[at(placed)] % program.axes[a].degree;
    left[at(placed)] /= program.axes[a].degree;
  }
  return out;
}

/// Of a class, the device with the largest shares: the closed form's messages are its.
ProgramCoordinates largest_of(const Program& program, const DeviceClass& device_class) {
  ProgramCoordinates out = first_of(program, device_class);
  for (std::size_t a = 0; a + 1 < program.axes.size(); ++a) {
    const std::vector<std::int64_t>& shares = program.axes[a].shares;
    if (!shares.empty()) out[a] = std::ranges::max_element(shares) - shares.begin();
  }
  return out;
}

/// Bytes at rest by state, device and host, by the names that lowering gives: of parameters "w.",
/// of gradients "g."; samples and the loss are no state.
std::array<std::array<std::int64_t, 3>, 2> counted_rest(const Program& program,
                                                        const DeviceClass& device_class,
                                                        const Tally& tally) {
  std::array<std::array<std::int64_t, 3>, 2> out{};
  std::vector<bool> is_state(program.families.size(), false);
  for (const Initial& initial : device_class.initial) {
    const StateRef::Kind kind = initial.pieces.front().kind;
    const std::string& name = program.families[at(initial.buffer.family)].name;
    const bool is_gradient = kind == StateRef::Kind::zero && name.starts_with("g.");
    is_state[at(initial.buffer.family)] =
        kind == StateRef::Kind::parameter || kind == StateRef::Kind::state || is_gradient;
  }
  for (const FamilyBytes& own : tally.at_rest) {
    const Family& family = program.families[at(own.family)];
    if (!is_state[at(own.family)]) continue;
    const std::size_t state = family.name.starts_with("w.")   ? 0
                              : family.name.starts_with("g.") ? 2
                                                              : 1;
    out[family.on_host ? 1 : 0][state] += in_bytes(own.bytes);
  }
  return out;
}

/// The job with samples of no size: the program has all of a step's, which rest, and the closed
/// form those of the micro-batches in flight.
Job without_samples(Job job) {
  for (UnitKind& kind : job.model.kinds) {
    std::vector<bool> made(kind.values.size(), false);
    for (const Operator& op : kind.operators) {
      for (const int v : op.outputs) made[at(v)] = true;
    }
    for (std::size_t v = 0; v < kind.values.size(); ++v) {
      if (made[v] || kind.values[v].type != ValueType::int64) continue;
      kind.values[v].dims = {{.size = 0}};
    }
  }
  return job;
}

/// The phase of the program that an instant of the closed form falls into. Reductions and updates
/// are one: what a unit without messages needs, it has when its turn comes.
StepPhase phase_of(Instant instant) {
  switch (instant) {
    case Instant::start:
    case Instant::forward:
    case Instant::loss:
      return StepPhase::forward;
    case Instant::backward:
      return StepPhase::backward;
    case Instant::reduction:
    case Instant::update:
      return StepPhase::update;
  }
  return StepPhase::update;
}

/// Bytes alive by phase in the closed form.
std::array<Bytes, 4> derived_phases(const MemoryClass& memory) {
  std::array<Bytes, 4> out;
  for (const InstantBytes& own : memory.instants) {
    Bytes& most = out[static_cast<std::size_t>(phase_of(own.instant))];
    most = std::max(most, own.bytes);
  }
  return out;
}

class Meeting {
 public:
  Meeting(const Job& job, const Derivation& derivation, const Program& program)
      : job_(job), derivation_(derivation), program_(program) {}

  std::vector<Difference> compare() {
    for (const MemoryClass& memory : derivation_.memory) {
      const int c = class_of(memory.stage);
      const ProgramCoordinates where = device_of(job_, program_, c, memory);
      compare_memory(c, memory, tally(program_, c, where));
    }
    const Derivation alone = derive(without_samples(job_));
    for (const CommunicationClass& traffic : alone.communication) {
      const int c = class_of(traffic.stage);
      const ProgramCoordinates where = largest_of(program_, program_.classes[at(c)]);
      compare_messages(traffic, tally(program_, c, where));
    }
    for (const MemoryClass& memory : alone.memory) {
      const int c = class_of(memory.stage);
      compare_phases(memory, phase_memory(program_, c, device_of(job_, program_, c, memory)));
    }
    return std::move(out_);
  }

 private:
  /// Classes of the program stand in the order of the stages.
  int class_of(int stage) const { return program_.classes.size() == 1 ? 0 : stage; }

  void compare_messages(const CommunicationClass& traffic, const Tally& tally) {
    const auto derived = derived_messages(job_, traffic);
    const auto counted = counted_messages(job_, program_, tally);
    const std::string name = class_name(job_, traffic.stage) + ": ";
    for (const auto& [words, calls] : derived) {
      const auto other = counted.find(words);
      note(Figure::messages, name + words, calls, other == counted.end() ? 0 : other->second);
    }
    for (const auto& [words, calls] : counted) {
      if (!derived.contains(words)) note(Figure::messages, name + words, 0, calls);
    }
  }

  void compare_memory(int c, const MemoryClass& memory, const Tally& tally) {
    const std::string name = class_name(job_, memory) + ": ";
    const auto rest = counted_rest(program_, program_.classes[at(c)], tally);
    for (std::size_t s = 0; s < 3; ++s) {
      const std::string state(name_of(static_cast<State>(s)));
      note(Figure::rest, name + state + " at rest", in_bytes(memory.at_rest[s]), rest[0][s]);
      const Bytes there = memory.on_host[s] - memory.staged[s] + memory.on_nvme[s];
      note(Figure::rest, name + state + " on host", in_bytes(there), rest[1][s]);
    }
  }

  void compare_phases(const MemoryClass& memory, const std::array<PhaseMemory, 4>& counted) {
    const std::array<Bytes, 4> derived = derived_phases(memory);
    const std::string name = class_name(job_, memory) + ": ";
    Bytes most;  // of the step
    for (std::size_t p = 0; p < derived.size(); ++p) {
      // A phase in which nothing runs has no moment of its own in the program.
      if (counted[p].bytes == Bytes()) continue;
      const std::string phase(name_of(static_cast<StepPhase>(p)));
      note(Figure::peak, name + "most in " + phase, in_bytes(derived[p]),
           in_bytes(counted[p].bytes));
      most = std::max(most, counted[p].bytes);
    }
    note(Figure::peak, name + "peak", in_bytes(*std::ranges::max_element(derived)), in_bytes(most));
  }

  void note(Figure figure, const std::string& of, std::int64_t derived, std::int64_t counted) {
    if (derived == counted) return;
    out_.push_back({.figure = figure, .of = of, .derived = derived, .counted = counted});
  }

  const Job& job_;
  const Derivation& derivation_;
  const Program& program_;
  std::vector<Difference> out_;
};

}  // namespace

std::string text_of(const Difference& difference) {
  return difference.of + ": derived " + std::to_string(difference.derived) + ", counted " +
         std::to_string(difference.counted);
}

std::vector<Difference> differences(const Job& job, const Derivation& derivation,
                                    const Program& program) {
  return Meeting(job, derivation, program).compare();
}

}  // namespace placet::testing

#include "check/tally.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "check/places.h"
#include "check/repeating.h"
#include "program/sizes.h"
#include "units/at.h"
#include "units/checked.h"

namespace placet {
namespace {

using Body = std::vector<Step>;

/// How often a step of a body does what it is written for.
std::int64_t runs_of(const Step& step) {
  const auto* loop = std::get_if<Loop>(&step.what);
  return loop == nullptr ? 1 : rounds_of(*loop);
}

/// Liveness on one medium, by the bytes of one element of each family (0: on the other medium).
class Liveness {
 public:
  Liveness(const Program& program, std::vector<std::int64_t> sizes)
      : program_(program), sizes_(std::move(sizes)) {}

  TalliedPeak peak(const DeviceClass& device_class) {
    std::vector<std::int64_t> alive(sizes_.size(), 0);
    std::int64_t rest = 0;
    for (const Initial& initial : device_class.initial) {
      ++alive[at(initial.buffer.family)];
      rest = checked_add(rest, sizes_[at(initial.buffer.family)], "bytes alive");
    }
    TalliedPeak out;
    const Effect& effect = effect_of(device_class.body);
    if (effect.most != kNothing) {
      descend(device_class.body, {}, alive, out);
    }
    out.bytes = bytes(effect.most == kNothing ? rest : checked_add(rest, effect.most, "bytes"));
    for (std::size_t f = 0; f < alive.size(); ++f) {
      if (alive[f] * sizes_[f] == 0) continue;
      out.families.push_back({.family = static_cast<int>(f), .bytes = bytes(alive[f] * sizes_[f])});
    }
    return out;
  }

 private:
  static constexpr std::int64_t kNothing = std::numeric_limits<std::int64_t>::min();

  /// What a body does to the bytes alive: what it adds in the end, the most it adds on its way, and
  /// in which step, in which run of that step's loop.
  struct Effect {
    std::int64_t net = 0;
    std::int64_t most = kNothing;
    std::size_t step = 0;
    std::int64_t run = 0;

    void raise(std::int64_t now, std::size_t in_step, std::int64_t in_run = 0) {
      if (now > most) {
        most = now;
        step = in_step;
        run = in_run;
      }
    }
  };

  /// Buffers are alive from their allocation on, and fullest where something runs or one is freed.
  void add_instruction(const Instruction& i, std::size_t step, Effect& out) const {
    if (i.kind == InstructionKind::alloc) {
      for (const BufferRef& ref : i.outputs) out.net += sizes_[at(ref.family)];
      return;
    }
    out.raise(out.net, step);
    if (i.kind != InstructionKind::free) return;
    for (const BufferRef& ref : i.inputs) out.net -= sizes_[at(ref.family)];
  }

  /// A body run `runs` times: its fullest run is the last where it leaves something behind.
  static void add_body(const Effect& body, std::int64_t runs, std::size_t step, Effect& out) {
    const std::int64_t fullest = body.net > 0 ? runs - 1 : 0;
    if (body.most != kNothing) {
      out.raise(out.net + checked_multiply(body.net, fullest, "bytes") + body.most, step, fullest);
    }
    out.net = checked_add(out.net, checked_multiply(body.net, runs, "bytes"), "bytes");
  }

  const Effect& effect_of(const Body& body) {
    const auto known = effects_.find(&body);
    if (known != effects_.end()) return known->second;
    Effect out;
    for (std::size_t s = 0; s < body.size(); ++s) {
      if (const auto* instruction = std::get_if<Instruction>(&body[s].what)) {
        add_instruction(*instruction, s, out);
      } else if (const auto* call = std::get_if<Call>(&body[s].what)) {
        add_body(effect_of(program_.procedures[at(call->procedure)].body), 1, s, out);
      } else if (const auto* loop = std::get_if<Loop>(&body[s].what)) {
        add_body(effect_of(loop->body), rounds_of(*loop), s, out);
      }
    }
    return effects_.emplace(&body, out).first->second;
  }

  /// Buffers by family that a body leaves behind.
  const std::vector<std::int64_t>& left_by(const Body& body) {
    const auto known = left_.find(&body);
    if (known != left_.end()) return known->second;
    std::vector<std::int64_t> out(sizes_.size(), 0);
    for (const Step& step : body) add_left(step, runs_of(step), out);
    return left_.emplace(&body, std::move(out)).first->second;
  }

  void add_left(const Step& step, std::int64_t runs, std::vector<std::int64_t>& alive) {
    const auto add = [&](const Body& body, std::int64_t times) {
      const std::vector<std::int64_t>& left = left_by(body);
      for (std::size_t f = 0; f < alive.size(); ++f) alive[f] += left[f] * times;
    };
    if (const auto* i = std::get_if<Instruction>(&step.what)) {
      if (i->kind == InstructionKind::alloc) {
        for (const BufferRef& ref : i->outputs) ++alive[at(ref.family)];
      } else if (i->kind == InstructionKind::free) {
        for (const BufferRef& ref : i->inputs) --alive[at(ref.family)];
      }
    } else if (const auto* call = std::get_if<Call>(&step.what)) {
      add(program_.procedures[at(call->procedure)].body, runs);
    } else if (const auto* loop = std::get_if<Loop>(&step.what)) {
      add(loop->body, runs);
    }
  }

  /// Follows the fullest instant down into calls and loops; `alive` becomes what is alive there.
  void descend(const Body& body, const Arguments& arguments, std::vector<std::int64_t>& alive,
               TalliedPeak& out) {
    const Effect effect = effect_of(body);
    for (std::size_t s = 0; s < effect.step; ++s) add_left(body[s], runs_of(body[s]), alive);
    const Step& step = body[effect.step];
    if (const auto* instruction = std::get_if<Instruction>(&step.what)) {
      out.at = instruction;
      out.arguments = arguments;
    } else if (const auto* call = std::get_if<Call>(&step.what)) {
      const Arguments inner{.unit = value_of(call->unit, arguments),
                            .micro_batch = value_of(call->micro_batch, arguments)};
      descend(program_.procedures[at(call->procedure)].body, inner, alive, out);
    } else if (const auto* loop = std::get_if<Loop>(&step.what)) {
      add_left(step, effect.run, alive);
      Arguments inner = arguments;
      const std::int64_t value =
          loop->first + (loop->last < loop->first ? -effect.run : effect.run);
      (loop->variable == IndexTerm::Variable::unit ? inner.unit : inner.micro_batch) = value;
      descend(loop->body, inner, alive, out);
    }
  }

  const Program& program_;
  std::vector<std::int64_t> sizes_;
  std::map<const Body*, Effect> effects_;
  std::map<const Body*, std::vector<std::int64_t>> left_;
};

/// Messages of one class.
class Messages {
 public:
  Messages(const Program& program, const DeviceClass& device_class, const ProgramCoordinates& at)
      : program_(program), at_(at) {
    calls_.assign(program.procedures.size(), 0);
    visited_.assign(program.procedures.size(), false);
    visit(device_class.body, 1);
    order_procedures(device_class.body);
    // Callers stand behind what they call.
    for (std::size_t i = order_.size(); i-- > 0;) {
      visit(program.procedures[order_[i]].body, calls_[order_[i]]);
    }
  }

  std::vector<TalliedMessage> take() {
    std::vector<TalliedMessage> out;
    out.reserve(messages_.size());
    for (auto& [key, message] : messages_) out.push_back(std::move(message));
    return out;
  }

 private:
  using Key =
      std::tuple<InstructionKind, AxisList, std::int64_t, Combine, Dtype, StepPhase, Bytes, Bytes>;

  void visit(const Body& body, std::int64_t times) {
    for (const Step& step : body) {
      if (const auto* instruction = std::get_if<Instruction>(&step.what)) {
        if (sends(*instruction)) add(*instruction, times);
      } else if (const auto* call = std::get_if<Call>(&step.what)) {
        calls_[at(call->procedure)] += times;
      } else if (const auto* loop = std::get_if<Loop>(&step.what)) {
        visit(loop->body, checked_multiply(times, rounds_of(*loop), "calls"));
      }
    }
  }

  /// Procedures in the order in which their bodies end.
  void order_procedures(const Body& body) {
    for (const Step& step : body) {
      if (const auto* loop = std::get_if<Loop>(&step.what)) order_procedures(loop->body);
      const auto* call = std::get_if<Call>(&step.what);
      if (call == nullptr || visited_[at(call->procedure)]) continue;
      visited_[at(call->procedure)] = true;
      order_procedures(program_.procedures[at(call->procedure)].body);
      order_.push_back(at(call->procedure));
    }
  }

  static bool sends(const Instruction& i) {
    if (i.kind == InstructionKind::host_copy) return true;
    return is_collective(i.kind) && i.kind != InstructionKind::receive;
  }

  void add(const Instruction& i, std::int64_t times) {
    if (times == 0) return;
    TalliedMessage made{.kind = i.kind, .axes = i.axes, .group = group_of(i), .phase = i.phase};
    std::ranges::sort(made.axes);
    const bool reduces =
        i.kind == InstructionKind::all_reduce || i.kind == InstructionKind::reduce_scatter;
    if (reduces) made.op = i.op;
    const bool pair = i.kind == InstructionKind::send || i.kind == InstructionKind::host_copy;
    if (made.group <= 1 && !pair) return;
    measure(i, made);
    Key key{made.kind,  made.axes,  made.group,   made.op,
            made.dtype, made.phase, made.payload, made.sent};
    TalliedMessage& known = messages_.try_emplace(std::move(key), made).first->second;
    known.count = checked_add(known.count, times, "calls");
  }

  std::int64_t group_of(const Instruction& i) const {
    if (i.kind == InstructionKind::send) return 2;
    if (!i.among.empty()) return static_cast<std::int64_t>(i.among.size());
    std::int64_t group = 1;
    for (int a : i.axes) group = checked_multiply(group, program_.axes[at(a)].degree, "devices");
    return group;
  }

  /// Payload, format and bytes sent, by the table of docs/theory.md §4.1.
  void measure(const Instruction& i, TalliedMessage& out) const {
    const bool gathers = i.kind == InstructionKind::all_gather;
    const std::vector<BufferRef>& whole = gathers ? i.outputs : i.inputs;
    const std::vector<BufferRef>& made = i.outputs.empty() ? i.inputs : i.outputs;
    // What changes its format travels in that of the result.
    out.dtype = dtype_of(made.front());
    out.payload = bytes_of_all(whole, made, at_);
    out.sent = out.payload;
    if (i.kind == InstructionKind::all_reduce) {
      out.sent = 2 * (out.payload - even_share(whole, out.group));
    } else if (i.kind == InstructionKind::all_to_all) {
      out.sent = out.payload - even_share(whole, out.group);
    } else if (i.kind == InstructionKind::reduce_scatter || gathers) {
      out.sent = out.payload - smallest_part(gathers ? i.inputs : i.outputs, made, i.axes);
    }
  }

  std::int64_t entries_of(const BufferRef& ref, const ProgramCoordinates& where) const {
    const BufferType& type = program_.families[at(ref.family)].type;
    if (ref.piece < 0) return stored_entries(program_, type, where);
    const BufferType piece{.dtype = type.dtype, .pieces = {type.pieces[at(ref.piece)]}, .flat = {}};
    return stored_entries(program_, piece, where);
  }

  Dtype dtype_of(const BufferRef& ref) const {
    return program_.families[at(ref.family)].type.dtype;
  }

  /// Each of several buffers in the format of what it becomes.
  Bytes bytes_of_all(const std::vector<BufferRef>& refs, const std::vector<BufferRef>& made,
                     const ProgramCoordinates& where) const {
    Bytes sum;
    for (std::size_t i = 0; i < refs.size(); ++i) {
      sum += bytes_of(entries_of(refs[i], where), dtype_of(made[std::min(i, made.size() - 1)]));
    }
    return sum;
  }

  /// The smallest share of whole entries in an even division of the message.
  Bytes even_share(const std::vector<BufferRef>& refs, std::int64_t group) const {
    std::int64_t entries = 0;
    for (const BufferRef& ref : refs) entries += entries_of(ref, at_);
    return bytes_of(entries / group, program_.families[at(refs.front().family)].type.dtype);
  }

  /// The smallest part that a device of the group has: of even axes the last one's, of axes with
  /// shares any.
  Bytes smallest_part(const std::vector<BufferRef>& refs, const std::vector<BufferRef>& made,
                      const AxisList& axes) const {
    ProgramCoordinates where = at_;
    Bytes smallest = bytes(std::numeric_limits<std::int64_t>::max());
    const auto vary = [&](const auto& self, std::size_t i) -> void {
      if (i == axes.size()) {
        smallest = std::min(smallest, bytes_of_all(refs, made, where));
        return;
      }
      const ProgramAxis& axis = program_.axes[at(axes[i])];
      const std::int64_t first = axis.shares.empty() ? axis.degree - 1 : 0;
      for (std::int64_t c = first; c < axis.degree; ++c) {
        where[at(axes[i])] = c;
        self(self, i + 1);
      }
    };
    vary(vary, 0);
    return smallest;
  }

  const Program& program_;
  const ProgramCoordinates& at_;
  std::vector<std::int64_t> calls_;  // by procedure
  std::vector<bool> visited_;
  std::vector<std::size_t> order_;
  std::map<Key, TalliedMessage> messages_;
};

/// The devices of a class that axes with shares tell apart.
std::vector<ProgramCoordinates> distinct_devices(const Program& program, const DeviceClass& c) {
  std::vector<ProgramCoordinates> devices{first_of(program, c)};
  for (int a = 0; at(a) + 1 < program.axes.size(); ++a) {
    if (program.axes[at(a)].shares.empty()) continue;
    std::vector<ProgramCoordinates> more;
    for (const std::int64_t x : coordinates_of(program, c, a)) {
      std::ranges::move(spread(devices, a, {x}), std::back_inserter(more));
    }
    devices = std::move(more);
  }
  return devices;
}

}  // namespace

ProgramCoordinates first_of(const Program& program, const DeviceClass& device_class) {
  ProgramCoordinates first(program.axes.size(), 0);
  for (std::size_t a = 0; a < device_class.box.size() && a < first.size(); ++a) {
    if (!device_class.box[a].empty()) first[a] = device_class.box[a].front();
  }
  return first;
}

Tally tally(const Program& program, int device_class, const ProgramCoordinates& where) {
  const DeviceClass& c = program.classes[at(device_class)];
  std::vector<std::int64_t> device(program.families.size(), 0);
  std::vector<std::int64_t> host(program.families.size(), 0);
  for (std::size_t f = 0; f < program.families.size(); ++f) {
    const Family& family = program.families[f];
    (family.on_host ? host : device)[f] = in_bytes(stored_bytes(program, family.type, where));
  }
  Tally out;
  std::vector<std::int64_t> rest(program.families.size(), 0);
  for (const Initial& initial : c.initial) {
    const std::size_t f = at(initial.buffer.family);
    out.rest += bytes(device[f]);
    out.host_rest += bytes(host[f]);
    rest[f] += device[f] + host[f];
  }
  for (std::size_t f = 0; f < rest.size(); ++f) {
    if (rest[f] == 0) continue;
    out.at_rest.push_back({.family = static_cast<int>(f), .bytes = bytes(rest[f])});
  }
  out.peak = Liveness(program, std::move(device)).peak(c);
  out.host_peak = Liveness(program, std::move(host)).peak(c);
  out.messages = Messages(program, c, where).take();
  for (const TalliedMessage& message : out.messages) out.sent += message.sent * message.count;
  return out;
}

Tally tally(const Program& program, int device_class) {
  Tally largest;
  bool any = false;
  for (const ProgramCoordinates& where :
       distinct_devices(program, program.classes[at(device_class)])) {
    Tally own = tally(program, device_class, where);
    if (!any || own.peak.bytes > largest.peak.bytes) largest = std::move(own);
    any = true;
  }
  return largest;
}

}  // namespace placet

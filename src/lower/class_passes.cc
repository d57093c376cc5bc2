#include "lower/class_passes.h"

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <set>
#include <span>

#include "lower/rounds.h"
#include "units/at.h"
#include "units/error.h"

namespace placet {
namespace {

IndexTerm constant(std::int64_t value) {
  return {.variable = IndexTerm::Variable::none, .offset = value};
}

class ClassWriter {
 public:
  ClassWriter(Lowering& in, const UnitTable& table, const std::vector<StagePlan>& stages,
              const StagePlan& stage)
      : in_(in),
        w_(in.writer),
        table_(table),
        stages_(stages),
        stage_(stage),
        again_(table.again.at(stage.coordinate)) {}

  DeviceClass write() {
    DeviceClass out;
    layer_ = layer_axis(in_.job.placement);
    out.name = layer_ < 0 ? "all" : "stage-" + std::to_string(stage_.coordinate);
    out.box.resize(in_.program.axes.size() - 1);
    if (layer_ >= 0) {
      layer_part_ = in_.mesh.parts[at(layer_)].front();
      out.box[at(layer_part_)] = {stage_.coordinate};
    }
    const std::vector<HeldPlan> held = plans_held(in_, table_, stage_);
    target_ = &out.body;
    w_.write_to(out.body);
    w_.set_phase(StepPhase::forward);
    begin_step(held);
    if (layer_ < 0) {
      write_micro_batches(out.body);
    } else {
      write_turns(out.body);
    }
    end_kept(held);
    if (hosts_loss()) finish_loss(out);
    write_update(in_, table_, stage_);
    if (hosts_loss()) w_.free(count_buffer(in_));
    hold_initial(out, held);
    return out;
  }

 private:
  int kind_of(int u) const { return in_.job.model.units[at(u)].kind; }

  bool has_loss(const StagePlan& stage, std::size_t chunk) const {
    return std::ranges::any_of(stage.chunks[chunk], [&](int u) {
      return in_.model.reference.kinds[at(kind_of(u))].loss >= 0;
    });
  }

  bool hosts_loss(const StagePlan& stage) const {
    for (std::size_t c = 0; c < stage.chunks.size(); ++c) {
      if (has_loss(stage, c)) return true;
    }
    return false;
  }
  bool hosts_loss() const { return hosts_loss(stage_); }

  /// Whether a chunk takes an input of the step: its units do, or their losses are weighted by it.
  bool takes(std::size_t chunk, int input) const {
    if (input == in_.model.reference.weights && has_loss(stage_, chunk)) return true;
    return std::ranges::any_of(stage_.chunks[chunk], [&](int u) {
      const std::vector<ReferenceValue>& values = in_.model.reference.kinds[at(kind_of(u))].values;
      return std::ranges::find(values, input, &ReferenceValue::input) != values.end();
    });
  }

  /// The micro-batches of which the device takes an input.
  std::vector<MicroBatches> taken(int input) const {
    std::vector<MicroBatches> out;
    for (std::size_t c = 0; c < stage_.chunks.size(); ++c) {
      const MicroBatches& own = stage_.micro_batches[c];
      if (takes(c, input) && std::ranges::find(out, own) == out.end()) out.push_back(own);
    }
    return out;
  }

  // --- the beginning

  void begin_step(const std::vector<HeldPlan>& held) {
    for (const HeldPlan& h : held) {
      if (h.plan->trainable) w_.zero(buffer_of(h, h.plan->gradient));
    }
    if (hosts_loss()) {
      w_.zero(loss_buffer(in_));
      count_tokens();
    }
    gather_kept(held);
  }

  /// The weights of all tokens of the step, before the first loss.
  void count_tokens() {
    const BufferRef total = count_buffer(in_);
    w_.alloc(total);
    w_.zero(total);
    std::int64_t counted = 0;
    for (const MicroBatches& own : taken(in_.model.reference.weights)) {
      add_weights(own, total);
      counted += own.last - own.first + 1;
    }
    w_.reduce({total}, token_axes(), Combine::sum, "tokens");
    if (counted < in_.mesh.micro_batches) add_over_stages(total, "tokens");
  }

  void add_weights(const MicroBatches& own, const BufferRef& total) {
    const int part = w_.family("tokens.part", {.dtype = Dtype::fp32, .pieces = {{}}, .flat = {}},
                               Indexing::none);
    Loop loop{.variable = IndexTerm::Variable::micro_batch,
              .first = own.first,
              .last = own.last,
              .body = {}};
    std::vector<Step>& outer = *target_;
    w_.write_to(loop.body);
    w_.alloc({.family = part});
    Instruction count{.kind = InstructionKind::compute};
    count.kernel = w_.add_kernel(in_.model.kernels[at(in_.model.reference.count_kernel)]);
    count.inputs = {input_buffer(in_, in_.model.reference.weights)};
    count.outputs = {{.family = part}};
    count.label = "tokens";
    w_.add(std::move(count));
    w_.move(InstructionKind::accumulate, {.family = part}, total);
    w_.free({.family = part});
    outer.push_back({std::move(loop)});
    w_.write_to(outer);
  }

  /// Axes that divide the tokens of a step.
  AxisList token_axes() const {
    return in_.layouts.axes_where([&](std::size_t a) {
      return in_.layouts.is_batch(a) || in_.layouts.axis(a).how.cut == Cut::sequence;
    });
  }

  /// A sum over the stages that have a loss.
  void add_over_stages(const BufferRef& total, const std::string& label) {
    std::vector<std::int64_t> among;
    for (const StagePlan& s : stages_) {
      if (hosts_loss(s)) among.push_back(s.coordinate);
    }
    if (among.size() < 2) return;
    if (static_cast<int>(among.size()) == in_.mesh.axes[at(layer_part_)].degree) among.clear();
    w_.reduce({total}, {layer_part_}, Combine::sum, label, among);
  }

  /// The loss of the step is that of all devices. Its buffer rests: whoever reads it does so after
  /// the step.
  void finish_loss(DeviceClass& out) {
    w_.set_phase(StepPhase::update);
    w_.reduce({loss_buffer(in_)}, token_axes(), Combine::sum, "loss");
    add_over_stages(loss_buffer(in_), "loss");
    out.initial.push_back({.buffer = loss_buffer(in_), .pieces = {{}}});
    out.results.push_back({.buffer = loss_buffer(in_), .pieces = {{.kind = StateRef::Kind::loss}}});
  }

  /// Parameters that stay gathered over the whole step, unit by unit: the parts that they are
  /// gathered from are there for one unit at a time.
  void gather_kept(const std::vector<HeldPlan>& all) {
    for (std::size_t begin = 0; begin < all.size();) {
      std::size_t end = begin;
      while (end < all.size() && all[end].user == all[begin].user) ++end;
      gather_kept_of_unit(std::span(all).subspan(begin, end - begin));
      begin = end;
    }
  }

  void gather_kept_of_unit(std::span<const HeldPlan> unit) {
    Gathers gathers;
    for (const HeldPlan& held : unit) {
      const ParameterPlan& plan = *held.plan;
      if (plan.keep != Keep::step || plan.whole == plan.rest) continue;
      const BufferRef whole = buffer_of(held, plan.whole);
      w_.alloc(whole);
      const std::optional<BufferRef> part = part_of(held, whole);
      if (!part) continue;
      Instruction& gather = gathers[{plan.gathered, gathered_in(plan, in_.job.precision)}];
      gather.kind = InstructionKind::all_gather;
      gather.axes = plan.gathered;
      gather.inputs.push_back(*part);
      gather.outputs.push_back(whole);
      gather.label = "parameters";
    }
    for (auto& [how, gather] : gathers) w_.add(std::move(gather));
    for (const BufferRef& part : parts_) w_.free(part);
    parts_.clear();
  }

  /// What is gathered: the part that rests, or a copy of it where it rests on the host or is made
  /// from the master. None: nothing is to be gathered, and the copy went into `whole`.
  std::optional<BufferRef> part_of(const HeldPlan& held, const BufferRef& whole) {
    const ParameterPlan& plan = *held.plan;
    const BufferRef from = buffer_of(held, plan.materialized ? plan.master : plan.rest);
    const bool host = plan.on_host[plan.materialized ? 1 : 0];
    const InstructionKind copy = host ? InstructionKind::host_copy : InstructionKind::copy;
    if (plan.gathered.empty()) {
      w_.move(copy, from, whole);
      return std::nullopt;
    }
    if (!host && !plan.materialized) return from;
    const BufferType type =
        parameter_type(plan, plan.gathered, gathered_in(plan, in_.job.precision));
    parts_.push_back(buffer_of(held, w_.family("part." + plan.name, type, Indexing::unit)));
    w_.alloc(parts_.back());
    w_.move(copy, from, parts_.back());
    return parts_.back();
  }

  void end_kept(const std::vector<HeldPlan>& held) {
    for (const HeldPlan& h : held) {
      if (h.plan->keep != Keep::step || h.plan->whole == h.plan->rest) continue;
      w_.free(buffer_of(h, h.plan->whole));
    }
  }

  // --- micro-batches

  int procedure_of(int u, Work::Kind kind) const {
    const UnitProcedures& p =
        table_.procedures.at({kind_of(u), again_[at(u)], u == table_.last_block});
    switch (kind) {
      case Work::Kind::forward:
        return p.forward;
      case Work::Kind::backward:
        return p.backward;
      case Work::Kind::backward_input:
        return p.backward_inputs;
      case Work::Kind::backward_weight:
        return p.backward_weights;
    }
    fail_internally("every kind of work has a procedure");
  }

  /// Runs of units with one procedure are loops.
  void call_units(std::vector<Step>& body, const std::vector<int>& units, Work::Kind kind,
                  const IndexTerm& micro) {
    std::vector<int> order = units;
    if (kind != Work::Kind::forward) std::ranges::reverse(order);
    for (std::size_t i = 0; i < order.size();) {
      const int procedure = procedure_of(order[i], kind);
      std::size_t end = i + 1;
      while (end < order.size() && procedure_of(order[end], kind) == procedure) ++end;
      if (procedure < 0) {  // nothing that it makes is asked for
        i = end;
        continue;
      }
      Call call{.procedure = procedure, .unit = {}, .micro_batch = micro};
      if (end - i == 1) {
        call.unit = constant(order[i]);
        body.push_back({call});
      } else {
        call.unit = {.variable = IndexTerm::Variable::unit, .offset = 0};
        Loop loop{.variable = IndexTerm::Variable::unit,
                  .first = order[i],
                  .last = order[end - 1],
                  .body = {}};
        loop.body.push_back({call});
        body.push_back({std::move(loop)});
      }
      i = end;
    }
  }

  void write_micro_batches(std::vector<Step>& body) {
    Loop loop{.variable = IndexTerm::Variable::micro_batch,
              .first = 0,
              .last = in_.mesh.micro_batches - 1,
              .body = {}};
    const IndexTerm micro{.variable = IndexTerm::Variable::micro_batch, .offset = 0};
    call_units(loop.body, stage_.chunks.front(), Work::Kind::forward, micro);
    call_units(loop.body, stage_.chunks.front(), Work::Kind::backward, micro);
    body.push_back({std::move(loop)});
  }

  /// The micro-batch by its number, or in a loop by what the loop counts.
  struct Counted {
    std::optional<std::int64_t> from;  // of the loop's first round; none: there is no loop

    IndexTerm of(std::int64_t micro_batch) const {
      if (!from) return constant(micro_batch);
      return {.variable = IndexTerm::Variable::micro_batch, .offset = micro_batch - *from};
    }
  };

  /// The stage's work in its order; what repeats itself is a loop over micro-batches.
  void write_turns(std::vector<Step>& body) {
    const std::vector<Turn> turns = turns_of_stage();
    for (const Rounds& part : rounds_of(turns)) {
      const std::span round = std::span(turns).subspan(part.first, part.period);
      if (part.rounds == 1) {
        write_round(round, {});
      } else {
        write_rounds(round, part, body);
      }
    }
  }

  /// The loop counts the earliest micro-batch of a round.
  void write_rounds(std::span<const Turn> round, const Rounds& part, std::vector<Step>& body) {
    std::int64_t first = round.front().work.micro_batch;
    for (const Turn& turn : round) first = std::min(first, turn.work.micro_batch);
    Loop loop{.variable = IndexTerm::Variable::micro_batch,
              .first = first,
              .last = first + part.by * (part.rounds - 1),
              .body = {}};
    target_ = &loop.body;
    w_.write_to(loop.body);
    write_round(round, {first});
    body.push_back({std::move(loop)});
    target_ = &body;
    w_.write_to(body);
  }

  void write_round(std::span<const Turn> round, const Counted& counted) {
    for (const Turn& turn : round) write_turn(turn, counted);
  }

  /// A piece of work: what it needs from another stage, its units, and what it gives to another.
  void write_turn(const Turn& turn, const Counted& counted) {
    const Work& work = turn.work;
    w_.set_phase(work.kind == Work::Kind::forward ? StepPhase::forward : StepPhase::backward);
    for (const StageMessage& message : turn.received) receive(message, counted);
    for (const SharedWhole& whole : turn.begun) w_.alloc(whole_at(whole));
    call_units(*target_, stage_.chunks[at(work.chunk)], work.kind, counted.of(work.micro_batch));
    for (const SharedWhole& whole : turn.ended) w_.free(whole_at(whole));
    if (turn.sent) send(*turn.sent, counted);
  }

  std::vector<Turn> turns_of_stage() {
    std::vector<Turn> out;
    out.reserve(stage_.work.size());
    for (const Work& work : stage_.work) {
      Turn& turn = out.emplace_back(Turn{.work = work});
      if (const auto needed = message_before(stage_, work)) {
        turn.received = received_for(*needed);
      }
      if (work.kind == Work::Kind::forward) turn.begun = begun_sharing(work.chunk);
      const bool done =
          work.kind == Work::Kind::backward || work.kind == Work::Kind::backward_weight;
      if (done) turn.ended = ended_sharing(work.chunk);
      turn.sent = message_after(stage_, work);
    }
    return out;
  }

  /// Gathered parameters of a chunk that are there for all its micro-batches under way.
  std::set<SharedWhole> shared_in_flight(std::int64_t chunk) const {
    std::set<SharedWhole> out;
    for (int u : stage_.chunks[at(chunk)]) {
      for (const ParameterPlan& plan : parameters_of(table_, u, kind_of(u)).plans) {
        if (!plan.shared_in_flight || plan.whole == plan.rest) continue;
        out.emplace(plan.whole, plan.owner < 0 ? u : plan.owner);
      }
    }
    return out;
  }

  std::vector<SharedWhole> begun_sharing(std::int64_t chunk) {
    std::vector<SharedWhole> out;
    for (const SharedWhole& one : shared_in_flight(chunk)) {
      if (under_way_[one]++ == 0) out.push_back(one);
    }
    return out;
  }

  std::vector<SharedWhole> ended_sharing(std::int64_t chunk) {
    std::vector<SharedWhole> out;
    for (const SharedWhole& one : shared_in_flight(chunk)) {
      if (--under_way_[one] == 0) out.push_back(one);
    }
    return out;
  }

  static BufferRef whole_at(const SharedWhole& whole) {
    return {.family = whole.first, .unit = constant(whole.second), .micro_batch = {}};
  }

  BufferRef stream_of(const StageMessage& message, const Counted& counted) {
    int& family = streams_[message.gradient ? 1 : 0];
    if (family < 0) family = stream_buffer(in_, message.gradient, 0).family;
    return {.family = family,
            .unit = constant(message.unit),
            .micro_batch = counted.of(message.micro_batch)};
  }

  Instruction transfer(InstructionKind kind, const StageMessage& message, std::int64_t peer) const {
    Instruction instruction{.kind = kind};
    instruction.axes = {layer_part_};
    instruction.peer = peer;
    instruction.label = message.gradient ? "d.stream" : "stream";
    return instruction;
  }

  /// Messages between two devices arrive as they were sent: those that are needed later, but were
  /// sent before this one, are taken first. None: it is here already.
  std::vector<StageMessage> received_for(const StageMessage& needed) {
    auto [found, fresh] = arriving_.try_emplace(needed.from);
    std::deque<StageMessage>& queue = found->second;
    if (fresh) queue = messages_between(stages_, needed.from, stage_.coordinate);
    const auto last = std::ranges::find(queue, needed);
    if (last == queue.end()) return {};
    std::vector<StageMessage> out(queue.begin(), last + 1);
    queue.erase(queue.begin(), last + 1);
    return out;
  }

  void receive(const StageMessage& message, const Counted& counted) {
    const BufferRef ref = stream_of(message, counted);
    w_.alloc(ref);
    Instruction instruction = transfer(InstructionKind::receive, message, message.from);
    instruction.outputs = {ref};
    w_.add(std::move(instruction));
  }

  void send(const StageMessage& message, const Counted& counted) {
    const BufferRef ref = stream_of(message, counted);
    Instruction instruction = transfer(InstructionKind::send, message, message.to);
    instruction.inputs = {ref};
    w_.add(std::move(instruction));
    w_.free(ref);
  }

  // --- the initial state

  void hold_initial(DeviceClass& out, const std::vector<HeldPlan>& held) {
    for (const HeldPlan& h : held) hold_plan(out, h);
    for (int input = 0; input < static_cast<int>(in_.model.reference.inputs.size()); ++input) {
      for (const MicroBatches& own : taken(input)) hold_input(out, input, own);
    }
    for (std::size_t n = 0; n < in_.model.reference.numbers.size(); ++n) {
      const StateRef number{.kind = StateRef::Kind::number, .tensor = static_cast<int>(n)};
      out.initial.push_back({.buffer = number_buffer(in_, n), .pieces = {number}});
    }
  }

  void hold_input(DeviceClass& out, int input, const MicroBatches& own) {
    BufferRef ref = input_buffer(in_, input);
    for (std::int64_t j = own.first; j <= own.last; ++j) {
      ref.micro_batch = constant(j);
      out.initial.push_back(
          {.buffer = ref, .pieces = {{.kind = StateRef::Kind::input, .unit = 0, .tensor = input}}});
    }
  }

  static void hold_plan(DeviceClass& out, const HeldPlan& held) {
    const ParameterPlan& plan = *held.plan;
    const auto hold = [&](int family, StateRef::Kind kind, int state) {
      if (family < 0) return;
      Initial initial{.buffer = buffer_of(held, family), .pieces = {}};
      for (int piece : plan.pieces) {
        initial.pieces.push_back(
            {.kind = kind, .unit = held.unit, .tensor = piece, .state = state});
      }
      out.initial.push_back(std::move(initial));
    };
    hold(plan.rest, StateRef::Kind::parameter, 0);
    hold(plan.master, StateRef::Kind::parameter, 0);
    for (std::size_t s = 0; s < plan.states.size(); ++s) {
      hold(plan.states[s], StateRef::Kind::state, static_cast<int>(s));
    }
    if (plan.gradient >= 0) {
      out.initial.push_back({.buffer = buffer_of(held, plan.gradient),
                             .pieces = std::vector<StateRef>(plan.pieces.size())});
    }
  }

  Lowering& in_;
  Writer& w_;
  const UnitTable& table_;
  const std::vector<StagePlan>& stages_;
  const StagePlan& stage_;
  const std::vector<Again>& again_;  // by unit
  std::vector<Step>* target_ = nullptr;
  std::array<int, 2> streams_{-1, -1};  // families of what is sent, and of its gradient
  std::vector<BufferRef> parts_;        // on their way to be gathered
  std::map<std::int64_t, std::deque<StageMessage>> arriving_;  // by the device that sends
  std::map<SharedWhole, std::int64_t> under_way_;              // micro-batches
  int layer_ = -1;
  int layer_part_ = -1;
};

}  // namespace

BufferRef buffer_of(const HeldPlan& held, int family) {
  BufferRef ref{.family = family, .unit = constant(held.unit), .micro_batch = {}};
  return ref;
}

namespace {

/// The tensors that units hold, each once: a shared one in its owner's plan, and among the owner's
/// where that is a unit of the stage.
class HeldPlans {
 public:
  HeldPlans(const Lowering& in, const UnitTable& table, const StagePlan& stage)
      : in_(in), table_(table), stage_(stage) {}

  void add_unit(int u) {
    for (const ParameterPlan& plan : plans_of(u)) {
      if (plan.owner < 0) {
        add(u, u, plan);
      } else if (!hosts(plan.owner)) {
        add_owner(u, plan);
      }
    }
  }

  std::vector<HeldPlan> take() { return std::move(held_); }

 private:
  const std::vector<ParameterPlan>& plans_of(int u) const {
    return table_.parameters[at(in_.job.model.units[at(u)].kind)].plans;
  }

  bool hosts(int unit) const {
    return std::ranges::any_of(stage_.chunks, [unit](const std::vector<int>& chunk) {
      return std::ranges::find(chunk, unit) != chunk.end();
    });
  }

  void add(int u, int user, const ParameterPlan& plan) {
    if (seen_.emplace(u, &plan).second) held_.push_back({u, user, &plan});
  }

  void add_owner(int user, const ParameterPlan& shared) {
    for (const ParameterPlan& own : plans_of(shared.owner)) {
      const bool same = own.rest == shared.rest && own.gradient == shared.gradient;
      if (same) add(shared.owner, user, own);
    }
  }

  const Lowering& in_;
  const UnitTable& table_;
  const StagePlan& stage_;
  std::set<std::pair<int, const ParameterPlan*>> seen_;
  std::vector<HeldPlan> held_;
};

}  // namespace

std::vector<HeldPlan> plans_held(const Lowering& in, const UnitTable& table,
                                 const StagePlan& stage) {
  HeldPlans plans(in, table, stage);
  for (const auto& chunk : stage.chunks) {
    for (int u : chunk) plans.add_unit(u);
  }
  return plans.take();
}

void find_holders(const Lowering& in, const std::vector<StagePlan>& stages, UnitTable& table) {
  for (const StagePlan& stage : stages) {
    for (const HeldPlan& held : plans_held(in, table, stage)) {
      table.holders[{held.unit, held.plan}].push_back(stage.coordinate);
    }
  }
}

void write_class(Lowering& in, const UnitTable& table, const std::vector<StagePlan>& stages,
                 const StagePlan& stage) {
  in.program.classes.push_back(ClassWriter(in, table, stages, stage).write());
}

}  // namespace placet

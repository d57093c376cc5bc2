#include "lower/class_passes.h"

#include <algorithm>
#include <optional>

#include "units/error.h"

namespace placet {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

IndexTerm constant(std::int64_t value) {
  return {.variable = IndexTerm::Variable::none, .offset = value};
}

class ClassWriter {
 public:
  ClassWriter(Lowering& in, const UnitTable& table, const std::vector<StagePlan>& stages,
              const StagePlan& stage)
      : in_(in), w_(in.writer), table_(table), stages_(stages), stage_(stage) {
    last_stage_ = 0;
    for (const StagePlan& s : stages_) {
      for (std::int64_t v : s.virtual_stages) last_stage_ = std::max(last_stage_, v);
    }
  }

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
      for (const Work& work : stage_.work) write_work(work);
    }
    w_.write_to(out.body);
    end_kept(held);
    if (hosts_loss()) finish_loss(out);
    write_update(in_, table_, stages_, stage_);
    if (hosts_loss()) free_buffer(count_buffer(in_));
    hold_initial(out, held);
    return out;
  }

 private:
  int kind_of(int u) const { return in_.job.model.units[at(u)].kind; }
  const UnitParameters& parameters_of(int u) const { return table_.parameters[at(kind_of(u))]; }

  bool hosts_loss() const {
    return std::ranges::any_of(stage_.chunks, [&](const auto& chunk) {
      return std::ranges::any_of(
          chunk, [&](int u) { return in_.model.reference.kinds[at(kind_of(u))].loss >= 0; });
    });
  }

  void free_buffer(const BufferRef& ref) {
    Instruction free{.kind = InstructionKind::free};
    free.inputs = {ref};
    w_.add(std::move(free));
  }

  void alloc_buffer(const BufferRef& ref) {
    Instruction alloc{.kind = InstructionKind::alloc};
    alloc.outputs = {ref};
    w_.add(std::move(alloc));
  }

  void zero(const BufferRef& ref) {
    Instruction instruction{.kind = InstructionKind::zero};
    instruction.outputs = {ref};
    w_.add(std::move(instruction));
  }

  // --- the beginning

  void begin_step(const std::vector<HeldPlan>& held) {
    for (const HeldPlan& h : held) {
      if (h.plan->trainable) zero(buffer_of(h, h.plan->gradient));
    }
    if (hosts_loss()) {
      zero(loss_buffer(in_));
      count_tokens();
    }
    gather_kept(held);
  }

  /// The weights of all tokens of the step, before the first loss.
  void count_tokens() {
    const BufferRef total = count_buffer(in_);
    alloc_buffer(total);
    zero(total);
    const int part = w_.family("tokens.part", {.dtype = Dtype::fp32, .pieces = {{}}, .flat = {}},
                               Indexing::none);
    Loop loop{.variable = IndexTerm::Variable::micro_batch,
              .first = 0,
              .last = in_.mesh.micro_batches - 1,
              .body = {}};
    std::vector<Step>& outer = *target_;
    w_.write_to(loop.body);
    alloc_buffer({.family = part});
    Instruction count{.kind = InstructionKind::compute};
    count.kernel = w_.add_kernel(in_.model.kernels[at(in_.model.reference.count_kernel)]);
    count.inputs = {input_buffer(in_, in_.model.reference.weights)};
    count.outputs = {{.family = part}};
    count.label = "tokens";
    w_.add(std::move(count));
    w_.move(InstructionKind::accumulate, {.family = part}, total);
    free_buffer({.family = part});
    outer.push_back({std::move(loop)});
    w_.write_to(outer);
    w_.reduce({total}, token_axes(), Combine::sum, "tokens");
  }

  /// Axes that divide the tokens of a step.
  AxisList token_axes() const {
    return in_.layouts.axes_where([&](std::size_t a) {
      return in_.layouts.is_batch(a) || in_.layouts.axis(a).how.cut == Cut::sequence;
    });
  }

  /// The loss of the step is that of all devices. Its buffer rests: whoever reads it does so after
  /// the step.
  void finish_loss(DeviceClass& out) {
    w_.set_phase(StepPhase::update);
    w_.reduce({loss_buffer(in_)}, token_axes(), Combine::sum, "loss");
    out.initial.push_back({.buffer = loss_buffer(in_), .pieces = {{}}});
    out.results.push_back({.buffer = loss_buffer(in_), .pieces = {{.kind = StateRef::Kind::loss}}});
  }

  /// Parameters that stay gathered over the whole step.
  void gather_kept(const std::vector<HeldPlan>& all) {
    std::map<std::pair<int, AxisList>, Instruction> gathers;
    for (const HeldPlan& held : all) {
      const ParameterPlan& plan = *held.plan;
      if (plan.keep != Keep::step || plan.whole == plan.rest) continue;
      const BufferRef whole = buffer_of(held, plan.whole);
      alloc_buffer(whole);
      const std::optional<BufferRef> part = part_of(held, whole);
      if (!part) continue;
      Instruction& gather = gathers[{held.user, plan.gathered}];
      gather.kind = InstructionKind::all_gather;
      gather.axes = plan.gathered;
      gather.inputs.push_back(*part);
      gather.outputs.push_back(whole);
      gather.label = "parameters";
    }
    for (auto& [message, gather] : gathers) w_.add(std::move(gather));
    for (const BufferRef& part : parts_) free_buffer(part);
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
    const BufferType type = parameter_type(plan, plan.gathered, in_.job.precision.gather);
    parts_.push_back(buffer_of(held, w_.family("part." + plan.name, type, Indexing::unit)));
    alloc_buffer(parts_.back());
    w_.move(copy, from, parts_.back());
    return parts_.back();
  }

  void end_kept(const std::vector<HeldPlan>& held) {
    for (const HeldPlan& h : held) {
      if (h.plan->keep != Keep::step || h.plan->whole == h.plan->rest) continue;
      free_buffer(buffer_of(h, h.plan->whole));
    }
  }

  // --- micro-batches

  int procedure_of(int u, bool forward) const {
    const UnitProcedures& p = table_.procedures.at({kind_of(u), table_.recomputed[at(u)]});
    return forward ? p.forward : p.backward;
  }

  /// Runs of units with one procedure are loops.
  void call_units(std::vector<Step>& body, const std::vector<int>& units, bool forward,
                  const IndexTerm& micro) {
    std::vector<int> order = units;
    if (!forward) std::ranges::reverse(order);
    for (std::size_t i = 0; i < order.size();) {
      const int procedure = procedure_of(order[i], forward);
      std::size_t end = i + 1;
      while (end < order.size() && procedure_of(order[end], forward) == procedure) ++end;
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
    call_units(loop.body, stage_.chunks.front(), true, micro);
    call_units(loop.body, stage_.chunks.front(), false, micro);
    body.push_back({std::move(loop)});
  }

  void write_work(const Work& work) {
    const std::vector<int>& units = stage_.chunks[static_cast<std::size_t>(work.chunk)];
    const std::int64_t stage = stage_.virtual_stages[static_cast<std::size_t>(work.chunk)];
    if (units.empty()) return;
    switch (work.kind) {
      case Work::Kind::forward:
        w_.set_phase(StepPhase::forward);
        if (stage > 0) receive(false, units.front(), work.micro_batch, stage - 1);
        call_units(*target_, units, true, constant(work.micro_batch));
        if (stage < last_stage_) send(false, units.back() + 1, work.micro_batch, stage + 1);
        return;
      case Work::Kind::backward:
        w_.set_phase(StepPhase::backward);
        if (stage < last_stage_) receive(true, units.back() + 1, work.micro_batch, stage + 1);
        call_units(*target_, units, false, constant(work.micro_batch));
        if (stage > 0) send(true, units.front(), work.micro_batch, stage - 1);
        return;
      case Work::Kind::backward_input:
      case Work::Kind::backward_weight:
        throw InputError({.where = "--placement",
                          .value = in_.job.schedule.name,
                          .problem = "splits backward, which has no step program yet",
                          .allowed = {},
                          .nearest = {},
                          .excerpt = {}});
    }
  }

  std::int64_t device_of(std::int64_t stage) const {
    for (const StagePlan& s : stages_) {
      if (std::ranges::find(s.virtual_stages, stage) != s.virtual_stages.end()) {
        return s.coordinate;
      }
    }
    fail_internally("every virtual stage is on a device");
  }

  BufferRef stream_at(bool gradient, int u, std::int64_t j) {
    BufferRef ref = stream_buffer(in_, gradient, 0);
    ref.unit = constant(u);
    ref.micro_batch = constant(j);
    return ref;
  }

  void receive(bool gradient, int u, std::int64_t j, std::int64_t stage) {
    const std::int64_t peer = device_of(stage);
    if (peer == stage_.coordinate) return;
    const BufferRef ref = stream_at(gradient, u, j);
    alloc_buffer(ref);
    Instruction instruction{.kind = InstructionKind::receive};
    instruction.outputs = {ref};
    instruction.axes = {layer_part_};
    instruction.peer = peer;
    instruction.label = gradient ? "d.stream" : "stream";
    w_.add(std::move(instruction));
  }

  void send(bool gradient, int u, std::int64_t j, std::int64_t stage) {
    const std::int64_t peer = device_of(stage);
    if (peer == stage_.coordinate) return;
    const BufferRef ref = stream_at(gradient, u, j);
    Instruction instruction{.kind = InstructionKind::send};
    instruction.inputs = {ref};
    instruction.axes = {layer_part_};
    instruction.peer = peer;
    instruction.label = gradient ? "d.stream" : "stream";
    w_.add(std::move(instruction));
    free_buffer(ref);
  }

  // --- the initial state

  void hold_initial(DeviceClass& out, const std::vector<HeldPlan>& held) {
    for (const HeldPlan& h : held) hold_plan(out, h);
    const bool first = stage_.virtual_stages.front() == 0 ||
                       std::ranges::find(stage_.virtual_stages, 0) != stage_.virtual_stages.end();
    for (int input = 0; input < static_cast<int>(in_.model.reference.inputs.size()); ++input) {
      if (input == 0 ? !first : !hosts_loss()) continue;
      for (std::int64_t j = 0; j < in_.mesh.micro_batches; ++j) {
        BufferRef ref = input_buffer(in_, input);
        ref.micro_batch = constant(j);
        out.initial.push_back(
            {.buffer = ref,
             .pieces = {{.kind = StateRef::Kind::input, .unit = 0, .tensor = input}}});
      }
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
  std::vector<Step>* target_ = nullptr;
  std::vector<BufferRef> parts_;  // on their way to be gathered
  std::int64_t last_stage_ = 0;
  int layer_ = -1;
  int layer_part_ = -1;
};

}  // namespace

BufferRef buffer_of(const HeldPlan& held, int family) {
  BufferRef ref{.family = family, .unit = constant(held.unit), .micro_batch = {}};
  return ref;
}

std::vector<HeldPlan> plans_held(const Lowering& in, const UnitTable& table,
                                 const StagePlan& stage) {
  std::map<std::pair<int, const ParameterPlan*>, bool> seen;
  std::vector<HeldPlan> out;
  const auto kind_of = [&](int u) { return in.job.model.units[at(u)].kind; };
  const auto hold = [&](int u, int user, const ParameterPlan* plan) {
    if (seen.emplace(std::pair{u, plan}, true).second) out.push_back({u, user, plan});
  };
  const auto hold_owner = [&](int user, const ParameterPlan& shared) {
    for (const ParameterPlan& own : table.parameters[at(kind_of(shared.owner))].plans) {
      if (own.rest == shared.rest && own.gradient == shared.gradient)
        hold(shared.owner, user, &own);
    }
  };
  for (const auto& chunk : stage.chunks) {
    for (int u : chunk) {
      for (const ParameterPlan& plan : table.parameters[at(kind_of(u))].plans) {
        if (plan.owner < 0) {
          hold(u, u, &plan);
        } else {
          hold_owner(u, plan);
        }
      }
    }
  }
  return out;
}

void write_class(Lowering& in, const UnitTable& table, const std::vector<StagePlan>& stages,
                 const StagePlan& stage) {
  in.program.classes.push_back(ClassWriter(in, table, stages, stage).write());
}

}  // namespace placet

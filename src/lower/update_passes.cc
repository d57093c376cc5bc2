#include <algorithm>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "lower/class_passes.h"
#include "lower/update_numbers.h"
#include "lower/whole_update.h"
#include "units/at.h"
#include "units/error.h"

namespace placet {
namespace {

/// The part of the mesh that divides layers; -1: none does.
int layer_part_of(const Lowering& in) {
  const int layer = layer_axis(in.job.placement);
  return layer < 0 ? -1 : in.mesh.parts[at(layer)].front();
}

class UpdateWriter {
 public:
  UpdateWriter(Lowering& in, const UnitTable& table, const StagePlan& stage)
      : in_(in),
        w_(in.writer),
        table_(table),
        stage_(stage),
        layer_part_(layer_part_of(in)),
        numbers_(in, table, layer_part_) {}

  void write() {
    for (const HeldPlan& held : plans_held(in_, table_, stage_)) {
      if (held.plan->trainable) updates_.push_back({.held = held, .gradient = {}, .made = false});
    }
    // One message of each sort for a unit.
    const std::vector<UnitUpdates> units = units_updated();
    for (const UnitUpdates& unit : units) {
      w_.set_phase(StepPhase::update);
      for (Update& u : unit) take_from_host(u);
      w_.set_phase(StepPhase::reduce);
      reduce_shared_heads(unit);
      reduce_gradients(unit);
    }
    join_shared();
    w_.set_phase(StepPhase::update);
    const bool all_first = numbers_.needs_gradients();
    if (all_first) {
      for (const UnitUpdates& unit : units) gather_gradients(unit);
      numbers_.make(own_gradients());
    }
    for (const UnitUpdates& unit : units) {
      if (!all_first) gather_gradients(unit);
      update_unit(unit);
    }
    numbers_.finish();
  }

 private:
  using Copies = std::vector<std::pair<BufferRef, BufferRef>>;

  struct Update {
    HeldPlan held;
    BufferRef gradient;  // as the update takes it
    bool made = false;   // it is a buffer of its own
    AxisList left;       // axes that divide it by elements
    BufferRef part;      // the updated part of the parameter, if it has to be sent
    bool sends = false;
    std::vector<BufferRef> state;  // master and states as the update takes them
    Copies back;                   // copies after the update: from, to
  };

  using UnitUpdates = std::span<Update>;

  /// Updates of one unit stand together.
  std::vector<UnitUpdates> units_updated() {
    std::vector<UnitUpdates> out;
    for (std::size_t i = 0; i < updates_.size();) {
      std::size_t end = i;
      while (end < updates_.size() && updates_[end].held.user == updates_[i].held.user) ++end;
      out.emplace_back(updates_.begin() + static_cast<std::ptrdiff_t>(i), end - i);
      i = end;
    }
    return out;
  }

  BufferRef make(const Update& u, const std::string& name, const AxisList& flat, Dtype dtype,
                 bool host = false) {
    const ParameterPlan& plan = *u.held.plan;
    const BufferRef ref = buffer_of(
        u.held,
        w_.family(name + "." + plan.name, parameter_type(plan, flat, dtype), Indexing::unit, host));
    w_.alloc(ref);
    return ref;
  }

  /// One more gradient for a message: what it brings is the gradient from there on, and what it
  /// took is spent if it was made here.
  static void replace_gradient(Update& u, const BufferRef& by, Instruction& message,
                               std::vector<BufferRef>& spent) {
    message.inputs.push_back(u.gradient);
    message.outputs.push_back(by);
    message.label = "gradients";
    if (u.made) spent.push_back(u.gradient);
    u.gradient = by;
    u.made = true;
  }

  /// Axes along which gradients are scattered at the end, in the order in which they divide rows.
  static AxisList owners_of(const ParameterPlan& plan) {
    AxisList out = plan.owned;
    const AxisList more = minus(plan.deferred, plan.owned);
    out.insert(out.end(), more.begin(), more.end());
    return out;
  }

  /// Axes along which the gradient is still to be put together.
  AxisList open_axes(const ParameterPlan& plan) const {
    AxisList open = plan.partial;
    for (const UnitParameters& unit : table_.parameters) {
      for (const ParameterPlan& other : unit.plans) {
        if (other.owner >= 0 && other.gradient == plan.gradient) open = united(open, other.partial);
      }
    }
    return minus(minus(open, plan.scattered), summed_each(plan, open));
  }

  /// What all pieces of one unit have in common travels in one message: of gradients as they are,
  /// or of what was scattered before.
  struct Message {
    AxisList axes;
    AxisList scattered_along;
    bool shared_heads = false;  // sums among devices that hold the same heads travel apart
    auto operator<=>(const Message&) const = default;
  };

  /// Key and value rows of fused tensors whose heads several devices share.
  void reduce_shared_heads(const UnitUpdates& unit) {
    PieceSums pieces;
    for (const Update& u : unit) {
      const ParameterPlan& plan = *u.held.plan;
      if (plan.scattered.empty()) note_pieces(u.gradient, plan.piece_partial, pieces);
    }
    reduce_pieces(w_, pieces);
  }

  /// Sums are made in their own format: where gradients rest in another, in a copy. Gives what is
  /// summed, and notes what goes back afterwards: from, to.
  BufferRef in_reduce_format(Update& u, Copies& back) {
    const Dtype format = in_.job.precision.reduce;
    if (w_.family_at(u.gradient.family).type.dtype == format) return u.gradient;
    const BufferRef copy = make(u, "sum", u.left, format);
    w_.move(InstructionKind::copy, u.gradient, copy);
    back.emplace_back(copy, u.gradient);
    return copy;
  }

  void take_back(const Copies& back) {
    for (const auto& [from, to] : back) {
      w_.move(InstructionKind::copy, from, to);
      w_.free(from);
    }
  }

  /// To the owners first, then among those that own the same.
  void reduce_gradients(const UnitUpdates& unit) {
    std::map<Message, Instruction> scatters;
    std::map<Message, std::vector<BufferRef>> sums;
    std::vector<BufferRef> spent;
    Copies back;
    for (Update& u : unit) {
      const ParameterPlan& plan = *u.held.plan;
      const AxisList open = open_axes(plan);
      const AxisList to_owner = common(owners_of(plan), open);
      if (!to_owner.empty()) {
        u.left.insert(u.left.end(), to_owner.begin(), to_owner.end());
        const BufferRef own = make(u, "own", u.left, in_.job.precision.reduce);
        Instruction& scatter = scatters[{.axes = to_owner, .scattered_along = {}}];
        scatter.kind = InstructionKind::reduce_scatter;
        scatter.axes = to_owner;
        replace_gradient(u, own, scatter, spent);
      }
      const AxisList rest = minus(open, to_owner);
      if (rest.empty()) continue;
      const BufferRef summed = in_reduce_format(u, back);
      const AxisList shared = common(rest, plan.shared);
      const AxisList own = minus(rest, plan.shared);
      if (!own.empty()) sums[{own, to_owner, false}].push_back(summed);
      if (!shared.empty()) sums[{shared, to_owner, true}].push_back(summed);
    }
    for (auto& [message, instruction] : scatters) w_.add(std::move(instruction));
    for (const BufferRef& part : spent) w_.free(part);
    for (auto& [message, buffers] : sums) {
      w_.reduce(buffers, message.axes, Combine::sum, "gradients");
    }
    take_back(back);
  }

  /// Coordinates of the stages that hold a tensor.
  const std::vector<std::int64_t>& holders(const HeldPlan& held) const {
    return table_.holders.at({held.unit, held.plan});
  }

  /// A tensor that several stages hold has a part of its gradient on each. All of them take their
  /// tensors in the order of the model, whatever order they host them in.
  void join_shared() {
    if (layer_part_ < 0) return;
    std::vector<Update*> shared;
    for (Update& u : updates_) {
      if (holders(u.held).size() > 1) shared.push_back(&u);
    }
    std::ranges::stable_sort(shared, {}, [](const Update* u) { return u->held.unit; });
    for (Update* u : shared) {
      Copies back;
      w_.reduce({in_reduce_format(*u, back)}, {layer_part_}, Combine::sum, "shared-gradients",
                among_stages(holders(u->held)));
      take_back(back);
    }
  }

  /// Empty where all stages take part.
  std::vector<std::int64_t> among_stages(const std::vector<std::int64_t>& among) const {
    const bool all =
        static_cast<std::int64_t>(among.size()) == in_.mesh.axes[at(layer_part_)].degree;
    return all ? std::vector<std::int64_t>{} : among;
  }

  /// Gradients as they are before the first update.
  std::vector<OwnGradient> own_gradients() const {
    std::vector<OwnGradient> out;
    out.reserve(updates_.size());
    for (const Update& u : updates_) {
      out.push_back(
          {.plan = u.held.plan,
           .buffer = u.gradient,
           .left = u.left,
           .holders = layer_part_ < 0 ? 1 : static_cast<std::int64_t>(holders(u.held).size())});
    }
    return out;
  }

  // --- the update

  /// Unit by unit: what rests in smaller parts is put together for one unit at a time.
  void update_unit(const UnitUpdates& unit) {
    for (Update& u : unit) hold_state(u);
    for (Update& u : unit) bring_gradient(u);
    gather_state(unit);
    for (Update& u : unit) update(u);
    for (const Update& u : unit) return_state(u);
    spread_parameters(unit);
    for (const BufferRef& ref : temporary_) w_.free(ref);
    temporary_.clear();
  }

  /// The master, if there is one, then the states of the rule, where they rest.
  static std::vector<int> families_of_state(const ParameterPlan& plan) {
    std::vector<int> families = plan.states;
    if (plan.has_master) families.insert(families.begin(), plan.master);
    return families;
  }

  static void hold_state(Update& u) {
    for (int family : families_of_state(*u.held.plan)) {
      u.state.push_back(buffer_of(u.held, family));
    }
  }

  /// One message for a unit.
  void gather_state(const UnitUpdates& unit) {
    std::map<AxisList, Instruction> gathers;
    for (Update& u : unit) {
      const ParameterPlan& plan = *u.held.plan;
      if (plan.regathered.empty() || u.state.empty()) continue;
      Instruction& gather = gathers[plan.regathered];
      gather.kind = InstructionKind::all_gather;
      gather.axes = plan.regathered;
      gather.label = "optimizer-state";
      for (BufferRef& state : u.state) {
        const Family& rest = w_.family_at(state.family);
        const BufferRef whole = make(u, "whole." + rest.name.substr(0, rest.name.find('.')),
                                     plan.owned, rest.type.dtype);
        gather.inputs.push_back(state);
        gather.outputs.push_back(whole);
        state = whole;
      }
    }
    for (auto& [axes, gather] : gathers) w_.add(std::move(gather));
  }

  /// What was put together is cut down again.
  void return_state(const Update& u) {
    const ParameterPlan& plan = *u.held.plan;
    if (plan.regathered.empty()) return;
    const std::vector<int> families = families_of_state(plan);
    for (std::size_t s = 0; s < families.size(); ++s) {
      slice(u.state[s], buffer_of(u.held, families[s]), plan.regathered, plan.name);
      w_.free(u.state[s]);
    }
  }

  /// Of the rule of a piece: all have one, but for matrices, of which each has that of its dims.
  const Kernel& rule_kernel(const ParameterPlan& plan, std::size_t piece) const {
    return in_.model.kernels[at(in_.model.reference.rules[at(plan.rules[piece])].kernel)];
  }

  static bool takes_any_dims(const Kernel& rule) { return rule.dims.front().name == kAnyDims; }

  void update(Update& u) {
    const ParameterPlan& plan = *u.held.plan;
    const BufferRef own = plan.has_master ? u.state.front() : updated_part(u);
    std::vector<BufferRef> inputs{own};
    inputs.insert(inputs.end(), u.state.begin() + (plan.has_master ? 1 : 0), u.state.end());
    std::vector<BufferRef> outputs = inputs;
    inputs.push_back(u.gradient);
    inputs.insert(inputs.end(), numbers_.taken().begin(), numbers_.taken().end());
    const Instruction update{.kind = InstructionKind::update,
                             .inputs = std::move(inputs),
                             .outputs = std::move(outputs),
                             .label = plan.name};
    if (takes_any_dims(rule_kernel(plan, 0))) {
      apply(rule_kernel(plan, 0), update);
    } else {
      update_each_piece(plan, update);
    }
    if (u.made) temporary_.push_back(u.gradient);
    if (plan.has_master) from_master(u);
    for (const auto& [from, to] : u.back) bring(from, to);
  }

  void apply(const Kernel& rule, Instruction update) {
    update.kernel = w_.add_kernel(rule);
    w_.add(std::move(update));
  }

  /// The matrices of a fused tensor one after the other.
  void update_each_piece(const ParameterPlan& plan, const Instruction& whole) {
    const auto count = plan.pieces.size();
    for (std::size_t piece = 0; piece < count; ++piece) {
      Instruction update = count > 1 ? of_piece(whole, static_cast<int>(piece)) : whole;
      const AxisList together = put_together(in_, plan, piece);
      if (together.empty()) {
        apply(rule_kernel(plan, piece), std::move(update));
      } else {
        write_whole_update(in_, plan, piece, update, together);
      }
    }
  }

  Instruction of_piece(Instruction update, int piece) const {
    for (std::vector<BufferRef>* refs : {&update.inputs, &update.outputs}) {
      for (BufferRef& ref : *refs) {
        if (has_pieces(ref)) ref.piece = piece;
      }
    }
    return update;
  }

  /// Not so the factor of all gradients.
  bool has_pieces(const BufferRef& ref) const {
    return w_.family_at(ref.family).type.pieces.size() > 1;
  }

  /// Without a master, the parameter itself is updated: the owner's part of it, where the optimizer
  /// state is. Notes how it goes back to where it rests.
  BufferRef updated_part(Update& u) {
    const ParameterPlan& plan = *u.held.plan;
    const Dtype dtype = in_.job.precision.parameters;
    BufferRef own = buffer_of(u.held, plan.rest);
    const auto move_to = [&](const std::string& name, const AxisList& flat, bool host) {
      const BufferRef there = make(u, name, flat, dtype, host);
      temporary_.push_back(there);
      bring(own, there);
      u.back.insert(u.back.begin(), {there, own});
      own = there;
    };
    const AxisList owners = minus(plan.owned, plan.rests);
    if (!minus(plan.rests, plan.owned).empty()) {
      refuse("--placement", plan.name,
             "rests in smaller parts than it is updated in, without a master: no step program yet",
             "optimizer state divided as the parameters are");
    }
    if (plan.on_host[0] && !plan.on_host[1]) move_to("here", plan.rests, false);
    if (!owners.empty()) {
      u.part = make(u, "updated", plan.owned, dtype, plan.on_host[0] && plan.on_host[1]);
      temporary_.push_back(u.part);
      slice(own, u.part, owners, plan.name);
      own = u.part;
      u.back.clear();  // what is put together goes back, not what it was cut from
      u.sends = true;
    }
    if (plan.on_host[1] && !plan.on_host[0]) {
      move_to("there", owners.empty() ? plan.rests : plan.owned, true);
    }
    return own;
  }

  /// Gradients that rest on the host come back where the device updates.
  void take_from_host(Update& u) {
    const ParameterPlan& plan = *u.held.plan;
    u.left = plan.scattered;
    u.gradient = buffer_of(u.held, plan.gradient);
    if (!plan.on_host[2] || plan.on_host[1]) return;
    const BufferRef here = make(u, "from-host", u.left, plan.sums_in);
    w_.move(InstructionKind::host_copy, u.gradient, here);
    u.gradient = here;
    u.made = true;
  }

  /// Gradients of parts that the update sees whole: one message for a unit.
  void gather_gradients(const UnitUpdates& unit) {
    std::map<Message, Instruction> gathers;
    std::vector<BufferRef> parts;
    for (Update& u : unit) {
      const AxisList gathered = minus(u.left, u.held.plan->owned);
      if (gathered.empty()) continue;
      const AxisList kept = minus(u.left, gathered);
      // Parts along other axes than the innermost do not follow each other.
      if (!std::equal(kept.begin(), kept.end(), u.left.begin())) {
        refuse("--placement", u.held.plan->name,
               "has its gradient scattered per micro-batch along other axes than its optimizer "
               "state: no step program yet",
               "gradients scattered along axes that divide the optimizer state too");
      }
      u.left = kept;
      const BufferRef whole = make(u, "gathered", u.left, in_.job.precision.gradients);
      Instruction& gather = gathers[{gathered}];
      gather.kind = InstructionKind::all_gather;
      gather.axes = gathered;
      replace_gradient(u, whole, gather, parts);
    }
    for (auto& [message, instruction] : gathers) w_.add(std::move(instruction));
    for (const BufferRef& part : parts) w_.free(part);
  }

  /// The gradient divided as the optimizer's state is, and on its medium.
  void bring_gradient(Update& u) {
    const ParameterPlan& plan = *u.held.plan;
    const AxisList sliced = minus(plan.owned, u.left);
    const auto change = [&](InstructionKind kind, const AxisList& axes, const AxisList& flat) {
      const BufferRef next = make(u, "for-update", flat, in_.job.precision.gradients);
      Instruction instruction{.kind = kind};
      instruction.inputs = {u.gradient};
      instruction.outputs = {next};
      instruction.axes = axes;
      instruction.label = "gradients";
      w_.add(std::move(instruction));
      if (u.made) w_.free(u.gradient);
      u.gradient = next;
      u.made = true;
      u.left = flat;
    };
    if (!sliced.empty()) change(InstructionKind::slice, sliced, plan.owned);
    if (plan.on_host[1] && !plan.on_host[2]) {
      const BufferRef host = make(u, "host-gradient", u.left, in_.job.precision.gradients, true);
      w_.move(InstructionKind::host_copy, u.gradient, host);
      if (u.made) w_.free(u.gradient);
      u.gradient = host;
      u.made = true;
    }
  }

  /// The parameter again from its master: its part, which is sent where it rests whole.
  void from_master(Update& u) {
    const ParameterPlan& plan = *u.held.plan;
    if (plan.materialized) return;
    const BufferRef master = u.state.front();
    const BufferRef rest = buffer_of(u.held, plan.rest);
    const AxisList sent = minus(plan.owned, plan.rests);
    const AxisList kept = minus(plan.rests, plan.owned);
    if (sent.empty() && kept.empty()) return bring(master, rest);
    if (sent.empty()) {
      const BufferRef part =
          make(u, "updated", plan.rests, in_.job.precision.parameters, plan.on_host[1]);
      temporary_.push_back(part);
      slice(master, part, kept, plan.name);
      return bring(part, rest);
    }
    u.part = make(u, "updated", plan.owned, in_.job.precision.parameters,
                  plan.on_host[0] && plan.on_host[1]);
    temporary_.push_back(u.part);
    bring(master, u.part);
    u.sends = true;
  }

  void slice(const BufferRef& from, const BufferRef& to, const AxisList& axes,
             const std::string& label) {
    Instruction instruction{.kind = InstructionKind::slice};
    instruction.inputs = {from};
    instruction.outputs = {to};
    instruction.axes = axes;
    instruction.label = label;
    w_.add(std::move(instruction));
  }

  /// A copy, over the host link where the buffers are on its two sides.
  void bring(const BufferRef& from, const BufferRef& to) {
    const bool crosses = w_.family_at(from.family).on_host != w_.family_at(to.family).on_host;
    w_.move(crosses ? InstructionKind::host_copy : InstructionKind::copy, from, to);
  }

  /// Where updated parts come together: at rest, or on the device on their way to the host.
  BufferRef whole_of(const Update& u, Copies& to_host) {
    const ParameterPlan& plan = *u.held.plan;
    const BufferRef rest = buffer_of(u.held, plan.rest);
    if (!plan.on_host[0] || plan.on_host[1]) return rest;
    const BufferRef whole = make(u, "to-host", plan.rests, in_.job.precision.parameters);
    temporary_.push_back(whole);
    to_host.emplace_back(whole, rest);
    return whole;
  }

  /// Updated parts to all that use the whole: one message for a unit.
  void spread_parameters(const UnitUpdates& unit) {
    std::map<Message, Instruction> gathers;
    Copies to_host;
    for (const Update& u : unit) {
      if (!u.sends) continue;
      const ParameterPlan& plan = *u.held.plan;
      const AxisList sent = minus(plan.owned, plan.rests);
      if (!minus(plan.rests, plan.owned).empty()) {
        refuse("--placement", plan.name,
               "rests in other parts than it is updated in: no step program yet",
               "optimizer state divided as the parameters are, or further");
      }
      Instruction& instruction = gathers[{sent}];
      instruction.kind = InstructionKind::all_gather;
      instruction.axes = sent;
      instruction.inputs.push_back(u.part);
      instruction.outputs.push_back(whole_of(u, to_host));
      instruction.label = "updated-parameters";
    }
    for (auto& [message, instruction] : gathers) w_.add(std::move(instruction));
    for (const auto& [whole, rest] : to_host) w_.move(InstructionKind::host_copy, whole, rest);
  }

  Lowering& in_;
  Writer& w_;
  const UnitTable& table_;
  const StagePlan& stage_;
  int layer_part_ = -1;
  std::vector<Update> updates_;
  std::vector<BufferRef> temporary_;  // of the unit that is updated
  UpdateNumbers numbers_;
};

}  // namespace

void write_update(Lowering& in, const UnitTable& table, const StagePlan& stage) {
  UpdateWriter(in, table, stage).write();
}

}  // namespace placet

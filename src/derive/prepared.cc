#include "derive/prepared.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "derive/backward_parts.h"
#include "derive/narrow_products.h"
#include "derive/partial_sums.h"
#include "derive/product_copies.h"
#include "units/at.h"
#include "units/error.h"

namespace placet {
namespace {

ClassSet class_of(Module module) {
  switch (module) {
    case Module::embedding:
      return bit_of(TensorClass::embedding);
    case Module::norm:
      return bit_of(TensorClass::norms);
    case Module::attention:
    case Module::core_attention:
    case Module::latent_projection:
      return bit_of(TensorClass::attention);
    case Module::mlp:
    case Module::mlp_activation:
      return bit_of(TensorClass::ffn);
    case Module::moe:
    case Module::moe_activation:
      return bit_of(TensorClass::experts);
    case Module::shared_expert:
      return bit_of(TensorClass::shared_experts);
    case Module::head:
    case Module::loss:
      return bit_of(TensorClass::head);
    case Module::residual:
      return 0;
  }
  return 0;
}

bool has_index(const std::vector<Dim>& dims, Index index) {
  return std::ranges::any_of(dims, [&](const Dim& d) { return d.index == index; });
}

/// Each result of the rotation that has the shape of its input is the input's storage.
void rotate_in_place(const UnitKind& kind, const Operator& op, PreparedKind& out) {
  for (std::size_t i = 0; i < op.outputs.size() && i < op.inputs.size(); ++i) {
    const auto from = static_cast<std::size_t>(op.inputs[i]);
    const auto to = static_cast<std::size_t>(op.outputs[i]);
    if (kind.values[from].dims == kind.values[to].dims) out.values[to].root = out.values[from].root;
  }
}

/// A norm's input in fp32 is its input, where that is fp32.
void cast_nothing(const UnitKind& kind, const Operator& op, PreparedKind& out) {
  const int input = op.inputs.front();
  if (kind.values[at(input)].type != ValueType::fp32) return;
  out.values[at(op.internals.at(internal::kNormInputFp32))].root = out.values[at(input)].root;
}

/// The classes of an operator's tensors: those of its parameters, else of its module.
ClassSet classes_of(const UnitKind& kind, const Operator& op) {
  ClassSet classes = 0;
  for (int p : op.parameters) classes |= kind.parameters[at(p)].classes;
  return classes != 0 ? classes : class_of(op.module);
}

/// Operator `number` takes value `v`.
void read_input(const UnitKind& kind, int number, int v, PreparedKind& out) {
  const Region to = kind.operators[at(number)].region;
  const Region from = kind.values[at(v)].region;
  PreparedValue& value = out.values[at(v)];
  value.last_use = number;
  value.taken_inside = value.taken_inside || to == Region::parallel;
  if (from == Region::residual && to == Region::parallel) value.enters_parallel = true;
  if (from == Region::parallel && to == Region::residual) value.leaves_parallel = true;
}

/// Operator `number` makes value `v`. `routed`: it works on routed tokens.
void read_made(const UnitKind& kind, int number, int v, bool routed, PreparedKind& out) {
  const Operator& op = kind.operators[at(number)];
  PreparedValue& value = out.values[at(v)];
  value.producer = number;
  // Tokens come back from their experts to where they were sent from.
  value.on_stream = op.region == Region::residual || op.kind == OpKind::combine;
  value.classes = out.operators[at(number)].classes;
  value.routed =
      routed && op.kind != OpKind::combine && has_index(kind.values[at(v)].dims, Index::choice);
}

/// Outputs that are the storage of an input.
void read_storage(const UnitKind& kind, const Operator& op, const Profile& profile,
                  PreparedKind& out) {
  if (op.kind == OpKind::rotary && profile.rotates_in_place) rotate_in_place(kind, op, out);
  if (op.kind == OpKind::norm) cast_nothing(kind, op, out);
  const bool in_place = writes_in_place(op.kind) && !profile.parts_stand_apart;
  if (in_place && !op.inputs.empty() && !op.outputs.empty()) {
    out.values[at(op.outputs.front())].root = out.values[at(op.inputs.front())].root;
  }
}

void read_values(const UnitKind& kind, const Profile& profile, PreparedKind& out) {
  out.values.resize(kind.values.size());
  for (std::size_t v = 0; v < kind.values.size(); ++v) {
    out.values[v].root = static_cast<int>(v);
    out.values[v].on_stream = kind.values[v].region == Region::residual;
  }
  for (std::size_t o = 0; o < kind.operators.size(); ++o) {
    const Operator& op = kind.operators[o];
    const int number = static_cast<int>(o);
    out.operators[o].classes = classes_of(kind, op);
    const bool routed = op.kind == OpKind::dispatch || std::ranges::any_of(op.inputs, [&](int v) {
                          return out.values[at(v)].routed;
                        });
    for (int v : op.inputs) read_input(kind, number, v, out);
    for (int v : op.outputs) read_made(kind, number, v, routed, out);
    for (int v : op.internals) read_made(kind, number, v, routed, out);
    read_storage(kind, op, profile, out);
  }
}

/// The last value that an operator makes and none takes; a loss ends the model, so its is none.
void find_output(const UnitKind& kind, PreparedKind& out) {
  for (const Operator& op : kind.operators) {
    if (op.kind == OpKind::loss) continue;
    const auto is_last = [&](int v) { return out.values[at(v)].last_use < 0; };
    const auto last = std::ranges::find_if(op.outputs.rbegin(), op.outputs.rend(), is_last);
    if (last != op.outputs.rend()) out.output = out.values[at(*last)].root;
  }
}

/// Indices of the operators that share a class with `classes`; of none: of all.
IndexSet indices_around(const UnitKind& kind, const PreparedKind& known, ClassSet classes) {
  IndexSet indices = 0;
  for (std::size_t o = 0; o < kind.operators.size(); ++o) {
    const bool near = classes == 0 || (known.operators[o].classes & classes) != 0;
    if (near) indices |= indices_of(kind, kind.operators[o]);
  }
  return indices;
}

PreparedParameter read_parameter(const UnitKind& kind, int number, const PreparedKind& known) {
  PreparedParameter out;
  out.elements = elements_of(kind.parameters[at(number)].dims);
  bool used = false;
  for (const Operator& op : kind.operators) {
    if (std::ranges::find(op.parameters, number) == op.parameters.end()) continue;
    used = true;
    const auto is_routed = [&](int v) { return known.values[at(v)].routed; };
    out.routed = out.routed || std::ranges::any_of(op.inputs, is_routed);
  }
  // A tensor of a model without operators is used on every token, by an operator we do not know.
  out.summed = used ? summed_indices(kind, number) : bit_of(Index::sample) | bit_of(Index::token);
  return out;
}

/// Whether some operator takes the parameter, and all multiply in the products' format.
bool is_narrow(const Job& job, const UnitKind& kind, std::size_t p) {
  bool used = false;
  for (const Operator& op : kind.operators) {
    if (std::ranges::find(op.parameters, static_cast<int>(p)) == op.parameters.end()) continue;
    used = true;
    if (!has_products_format(job, kind, op)) return false;
  }
  return used && kind.parameters[p].dims.size() > 1;
}

void read_parameters(const Job& job, const UnitKind& kind, PreparedKind& out) {
  out.parameters.reserve(kind.parameters.size());
  const std::vector<IndexSet> partial = partial_gradient_indices(kind);
  for (std::size_t p = 0; p < kind.parameters.size(); ++p) {
    out.parameters.push_back(read_parameter(kind, static_cast<int>(p), out));
    out.parameters.back().partial = partial[p];
    out.parameters.back().narrow = is_narrow(job, kind, p);
    out.parameters.back().backward = out.gradients.backward;
  }
}

/// Operators in which backward has work.
void read_gradients(const UnitKind& kind, PreparedKind& out) {
  for (std::size_t o = 0; o < kind.operators.size(); ++o) {
    out.operators[o].backward = std::ranges::any_of(
        kind.operators[o].outputs, [&](int v) { return out.gradients.values[at(v)]; });
  }
}

/// Forward liveness on roots: what an operator makes, and what nobody needs after it.
void read_liveness(const UnitKind& kind, PreparedKind& out) {
  const std::size_t values = kind.values.size();
  std::vector<int> last_use(values, -1);
  for (const PreparedValue& value : out.values) {
    int& last = last_use[at(value.root)];
    last = std::max({last, value.last_use, value.producer});
  }
  for (std::size_t v = 0; v < values; ++v) {
    if (out.values[v].root != static_cast<int>(v)) continue;
    const bool is_output = out.values[v].last_use < 0 && out.values[v].producer >= 0;
    if (is_output || last_use[v] < 0) continue;
    out.operators[at(last_use[v])].dead_after.push_back(static_cast<int>(v));
  }
  for (std::size_t o = 0; o < kind.operators.size(); ++o) {
    std::ranges::copy_if(kind.operators[o].outputs, std::back_inserter(out.operators[o].made),
                         [&](int v) { return out.values[at(v)].root == v; });
  }
}

std::vector<int> copies_of(const UnitKind& kind, std::vector<int> values) {
  for (int& v : values) v += static_cast<int>(kind.values.size());
  return values;
}

/// Backward, from the last operator to the first: when each gradient appears and is used up.
class AdjointWalk {
 public:
  AdjointWalk(const UnitKind& kind, const PreparedKind& prepared, bool all_share)
      : prepared_(prepared),
        all_share_(all_share),
        root_(kind.values.size()),
        holders_(kind.values.size(), 0),
        exists_(kind.values.size(), false) {
    std::iota(root_.begin(), root_.end(), 0);
    // The gradient of what the unit hands on comes in.
    const bool comes_in = prepared.output >= 0 && prepared.gradients.values[at(prepared.output)];
    if (comes_in && all_share) hold(prepared.output);
  }

  void read(const Operator& op, PreparedOperator& out) {
    for (std::size_t i = 0; i < op.inputs.size(); ++i) read_input(op, i, out);
    for (int v : op.outputs) {
      // What is passed on vanishes with the last that has it; or stays to the unit's end.
      const bool ends = exists_[at(v)] && (all_share_ || root_[at(v)] == v);
      if (ends && --holders_[at(root_[at(v)])] == 0) out.adjoints_dead.push_back(root_[at(v)]);
    }
  }

  /// By value: whose storage its gradient is.
  const std::vector<int>& roots() const { return root_; }

 private:
  void hold(int v) {
    exists_[at(v)] = true;
    ++holders_[at(root_[at(v)])];
  }

  /// The gradient of an input: that of an output itself, added to what is there, or made.
  void read_input(const Operator& op, std::size_t i, PreparedOperator& out) {
    const int v = op.inputs[i];
    if (!prepared_.gradients.values[at(v)]) return;  // ids, masks, what nothing trained goes into
    if (exists_[at(v)]) {
      out.adjoints_added.push_back(v);
      return;
    }
    if (const int from = gradient_source(op, i, all_share_);
        from >= 0 && (exists_[at(from)] || !all_share_)) {
      root_[at(v)] = root_[at(from)];
    } else {
      out.adjoints_made.push_back(v);
    }
    hold(v);
  }

  const PreparedKind& prepared_;
  bool all_share_;
  std::vector<int> root_;
  std::vector<int> holders_;  // by storage: values whose gradient it is
  std::vector<bool> exists_;  // by value: whether it has one yet
};

/// Whether dropout widens its input first, so that the gradient of the widened numbers stands
/// between that of its result and that of its input.
bool casts_before_dropping(const UnitKind& kind, const Operator& op) {
  return op.kind == OpKind::dropout &&
         kind.values[at(op.outputs.front())].type == ValueType::fp32 &&
         kind.values[at(op.inputs.front())].type == ValueType::compute;
}

void read_adjoints(const UnitKind& kind, const Profile& profile, PreparedKind& out) {
  AdjointWalk walk(kind, out, profile.residual_shares_gradient);
  for (std::size_t o = kind.operators.size(); o-- > 0;) {
    if (!out.operators[o].backward) continue;
    walk.read(kind.operators[o], out.operators[o]);
    const Operator& op = kind.operators[o];
    const SavedSlots& inner = profile.inner_gradients[static_cast<std::size_t>(op.kind)];
    for (std::size_t i = 0; i < op.internals.size(); ++i) {
      if ((unsigned{inner.internals} >> i & 1U) == 0) continue;
      out.operators[o].inner_gradients.push_back(op.internals[i]);
    }
    if (casts_before_dropping(kind, op)) {
      out.operators[o].inner_gradients.push_back(op.outputs.front());
    }
  }
  if (!kind.values.empty()) out.input_gradient = walk.roots().front();
}

/// Recomputing a module recomputes what it contains.
std::vector<Module> with_contents(const std::vector<Module>& modules) {
  std::vector<Module> all = modules;
  for (Module module : modules) {
    if (module == Module::attention) {
      all.insert(all.end(), {Module::core_attention, Module::latent_projection});
    }
    if (module == Module::mlp) all.push_back(Module::mlp_activation);
    if (module == Module::moe) {
      all.insert(all.end(), {Module::moe_activation, Module::shared_expert});
    }
  }
  return all;
}

void insert_root(std::vector<int>& into, std::vector<bool>& present, int root) {
  if (present[static_cast<std::size_t>(root)]) return;
  present[static_cast<std::size_t>(root)] = true;
  into.push_back(root);
}

/// Notes after which operator's backward each kept or rebuilt value is no longer needed.
void note_last_readers(const UnitKind& kind, const PreparedKind& prepared, const SavedTable& table,
                       SavedPlan& plan) {
  plan.done.assign(kind.operators.size(), {});
  std::vector<bool> waiting(at(prepared.stored), false);
  for (int v : plan.kept) waiting[static_cast<std::size_t>(v)] = true;
  for (int v : plan.rebuilt) waiting[static_cast<std::size_t>(v)] = true;
  for (std::size_t o = 0; o < kind.operators.size(); ++o) {
    for (int v : saved_by(kind, prepared, o, table)) {
      const int root = root_of(kind, prepared, v);
      if (!waiting[at(root)]) continue;
      waiting[at(root)] = false;
      plan.done[o].push_back(root);
    }
  }
  plan.only_again.clear();
  std::ranges::copy_if(plan.kept, std::back_inserter(plan.only_again),
                       [&](int v) { return waiting[static_cast<std::size_t>(v)]; });
}

/// Notes after which of the operators that run again each value has no more readers among them; of
/// what none reads, the one that makes it.
void note_dead_again(const UnitKind& kind, const PreparedKind& prepared, SavedPlan& plan) {
  std::vector<int> last(at(prepared.stored), -1);
  const auto note = [&](const std::vector<int>& values, std::size_t o) {
    for (int v : values) last[at(root_of(kind, prepared, v))] = static_cast<int>(o);
  };
  for (std::size_t o = 0; o < kind.operators.size(); ++o) {
    if (!runs_again(kind, plan, o)) continue;
    note(kind.operators[o].inputs, o);
    note(kind.operators[o].outputs, o);
    if (prepared.operators[o].narrow) note(copies_of(kind, kind.operators[o].inputs), o);
    if (prepared.operators[o].casts_weights) note({cast_of(kind, o)}, o);
  }
  plan.dead_again.assign(kind.operators.size(), {});
  for (std::size_t v = 0; v < last.size(); ++v) {
    if (last[v] < 0) continue;
    plan.dead_again[static_cast<std::size_t>(last[v])].push_back(static_cast<int>(v));
  }
}

SavedPlan whole_unit_plan(const UnitKind& kind, const PreparedKind& prepared,
                          const SavedTable& table) {
  SavedPlan plan;
  plan.whole_unit = true;
  plan.is_kept.assign(at(prepared.stored), false);
  std::vector<bool> rebuilt(at(prepared.stored), false);
  insert_root(plan.kept, plan.is_kept, 0);
  rebuilt[0] = true;
  for (std::size_t o = 0; o < kind.operators.size(); ++o) {
    for (int v : saved_by(kind, prepared, o, table)) {
      insert_root(plan.rebuilt, rebuilt, root_of(kind, prepared, v));
    }
  }
  for (int m = 0; m < kModuleCount; ++m) plan.modules.push_back(static_cast<Module>(m));
  note_last_readers(kind, prepared, table, plan);
  return plan;
}

/// Values from which backward needs something: read by an operator that saves them, or on the way
/// to one that is.
std::vector<bool> needed_in_backward(const UnitKind& kind, const PreparedKind& prepared,
                                     const SavedTable& table) {
  std::vector<bool> needed(kind.values.size(), false);
  for (std::size_t o = kind.operators.size(); o-- > 0;) {
    const Operator& op = kind.operators[o];
    for (int v : saved_by(kind, prepared, o, table)) {
      if (!casting_operator(kind, v)) needed[at(value_of(kind, v))] = true;
    }
    const bool leads_on =
        std::ranges::any_of(op.outputs, [&](int v) { return needed[static_cast<std::size_t>(v)]; });
    for (int v : op.inputs) {
      if (leads_on) needed[static_cast<std::size_t>(v)] = true;
    }
  }
  return needed;
}

/// Whether a policy that speaks of this operator has all that it makes.
bool keeps_outputs(const SavedTable& keeps, const Operator& op, const PreparedKind& prepared,
                   const SavedPlan& plan) {
  if (keeps[static_cast<std::size_t>(op.kind)].outputs == 0 || op.outputs.empty()) return false;
  return std::ranges::all_of(op.outputs, [&](int v) {
    const int root = prepared.values[static_cast<std::size_t>(v)].root;
    return plan.is_kept[static_cast<std::size_t>(root)];
  });
}

/// A block recomputed but for its input and what the policy's operators leave.
SavedPlan policy_plan(const UnitKind& kind, const PreparedKind& prepared, const SavedTable& table,
                      const RecomputePolicy& policy) {
  SavedPlan plan = whole_unit_plan(kind, prepared, table);
  const std::vector<bool> needed = needed_in_backward(kind, prepared, table);
  std::int64_t contractions = 0;
  plan.spared.assign(kind.operators.size(), false);
  for (std::size_t o = 0; o < kind.operators.size(); ++o) {
    const Operator& op = kind.operators[o];
    const bool counted = op.kind == OpKind::linear || op.kind == OpKind::grouped_linear;
    if (counted && contractions++ % policy.every != 0) continue;
    for (int v : saved_by(kind, prepared, o, policy.keeps)) {
      if (casting_operator(kind, v)) continue;  // cast again for the second forward
      if (!policy.keeps_unread && !needed[at(value_of(kind, v))]) continue;
      insert_root(plan.kept, plan.is_kept, root_of(kind, prepared, v));
    }
    plan.spared[o] = keeps_outputs(policy.keeps, op, prepared, plan);
  }
  std::erase_if(plan.rebuilt, [&](int v) { return plan.is_kept[static_cast<std::size_t>(v)]; });
  note_last_readers(kind, prepared, table, plan);
  return plan;
}

const RecomputePolicy* policy_of(const Job& job) {
  for (const RecomputePolicy& policy : job.profile.policies) {
    if (policy.name == job.recompute.policy) return &policy;
  }
  return nullptr;
}

bool is_among(const std::vector<Module>& modules, Module module) {
  return std::ranges::find(modules, module) != modules.end();
}

bool is_inside(const SavedPlan& plan, const Operator& op) {
  return is_among(plan.modules, op.module);
}

/// Whether a value is the result of a recomputed module that the engine makes again for whoever
/// keeps it.
bool is_discarded(const UnitKind& kind, const PreparedKind& prepared, const SavedPlan& plan,
                  const std::vector<Module>& discards, int v) {
  if (casting_operator(kind, v)) return false;
  const int producer = prepared.values[at(value_of(kind, v))].producer;
  if (producer < 0) return false;
  const Module module = kind.operators[at(producer)].module;
  return is_among(discards, module) && is_among(plan.modules, module);
}

/// Values that an operator leaves to backward under the plan's modules: outside of them what it
/// saves, inside the inputs that come from outside.
std::vector<int> kept_by(const UnitKind& kind, const PreparedKind& prepared,
                         const SavedTable& table, const SavedPlan& plan, std::size_t number) {
  const Operator& op = kind.operators[number];
  if (!is_inside(plan, op)) return saved_by(kind, prepared, number, table);
  std::vector<int> kept;
  std::ranges::copy_if(op.inputs, std::back_inserter(kept), [&](int v) {
    const int producer = prepared.values[at(v)].producer;
    return producer < 0 || !is_inside(plan, kind.operators[at(producer)]);
  });
  return kept;
}

/// What stays when `modules` are recomputed: whatever the others keep, and the modules' inputs. Of
/// what an engine discards nothing is kept.
SavedPlan plan_without(const UnitKind& kind, const PreparedKind& prepared, const Profile& profile,
                       const std::vector<Module>& modules) {
  const SavedTable& table = profile.saved;
  SavedPlan plan;
  plan.modules = with_contents(modules);
  plan.is_kept.assign(at(prepared.stored), false);
  const auto root = [&](int v) { return root_of(kind, prepared, v); };
  for (std::size_t o = 0; o < kind.operators.size(); ++o) {
    for (int v : kept_by(kind, prepared, table, plan, o)) {
      if (is_discarded(kind, prepared, plan, profile.discards, v)) continue;
      insert_root(plan.kept, plan.is_kept, root(v));
    }
  }
  std::vector<bool> rebuilt = plan.is_kept;
  for (std::size_t o = 0; o < kind.operators.size(); ++o) {
    for (int v : saved_by(kind, prepared, o, table)) {
      const bool again = is_inside(plan, kind.operators[o]) ||
                         is_discarded(kind, prepared, plan, profile.discards, v);
      if (again) insert_root(plan.rebuilt, rebuilt, root(v));
    }
  }
  note_last_readers(kind, prepared, table, plan);
  return plan;
}

/// The plan of blocks that are recomputed by the job's choice; others keep to the plain one.
SavedPlan recomputed_plan(const Job& job, const UnitKind& kind, const PreparedKind& prepared) {
  const SavedTable& table = job.profile.saved;
  const bool is_block = kind.role == UnitRole::block || kind.role == UnitRole::mtp;
  if (!is_block || kind.values.empty() || !prepared.gradients.backward) return prepared.plain;
  if (recomputes_units(job)) return whole_unit_plan(kind, prepared, table);
  if (job.recompute.kind != Recompute::Kind::selective) return prepared.plain;
  const RecomputePolicy* policy = policy_of(job);
  return policy != nullptr ? policy_plan(kind, prepared, table, *policy)
                           : plan_without(kind, prepared, job.profile, job.recompute.modules);
}

}  // namespace

bool runs_again(const UnitKind& kind, const SavedPlan& plan, std::size_t op) {
  if (op < plan.spared.size() && plan.spared[op]) return false;
  return is_inside(plan, kind.operators[op]);
}

bool recomputes_units(const Job& job) {
  const Recompute::Kind kind = job.recompute.kind;
  if (kind == Recompute::Kind::full || kind == Recompute::Kind::every ||
      kind == Recompute::Kind::first || kind == Recompute::Kind::uniform) {
    return true;
  }
  return std::ranges::any_of(job.placement.axes, [](const AxisPlacement& axis) {
    return axis.how.modes.activations == Mode::materialized;
  });
}

Prepared prepare(const Job& job) {
  Prepared prepared;
  prepared.kinds.reserve(job.model.kinds.size());
  std::vector<KindGradients> gradients = gradients_of(job.model);
  for (const UnitKind& kind : job.model.kinds) {
    PreparedKind& out = prepared.kinds.emplace_back();
    out.gradients = std::move(gradients[prepared.kinds.size() - 1]);
    out.operators.resize(kind.operators.size());
    read_values(kind, job.profile, out);
    find_output(kind, out);
    read_gradients(kind, out);
    read_parameters(job, kind, out);
    for (PreparedOperator& op : out.operators) op.around = indices_around(kind, out, op.classes);
    read_liveness(kind, out);
    read_copies(job, kind, out);
    read_adjoints(kind, job.profile, out);
    out.plain = plan_without(kind, out, job.profile, {});
    out.recomputed = recomputed_plan(job, kind, out);
    read_parts(kind, job.profile, out);
    for (SavedPlan* plan : {&out.plain, &out.recomputed}) {
      note_weights(kind, out, job.profile.saved, *plan);
      note_dead_again(kind, out, *plan);
    }
  }
  return prepared;
}

}  // namespace placet

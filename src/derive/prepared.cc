#include "derive/prepared.h"

#include <algorithm>

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
      return bit_of(TensorClass::attention);
    case Module::mlp:
    case Module::mlp_activation:
      return bit_of(TensorClass::ffn);
    case Module::moe:
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

/// An output that is the same storage as the operator's first input.
bool writes_in_place(OpKind kind) { return kind == OpKind::bias || kind == OpKind::position; }

/// Operators whose first input's gradient is the output's gradient, the same storage.
bool passes_gradient(OpKind kind) { return writes_in_place(kind) || kind == OpKind::residual_add; }

/// Of a residual sum, the branch that was added (its last input) shares the sum's gradient; the
/// stream itself gets a buffer of its own where the branch's gradient flows back into it.
int gradient_alias(const Operator& op) {
  return op.kind == OpKind::residual_add ? op.inputs.back() : op.inputs.front();
}

/// Each result of the rotation that has the shape of its input is the input's storage.
void rotate_in_place(const UnitKind& kind, const Operator& op, PreparedKind& out) {
  for (std::size_t i = 0; i < op.outputs.size() && i < op.inputs.size(); ++i) {
    const auto from = static_cast<std::size_t>(op.inputs[i]);
    const auto to = static_cast<std::size_t>(op.outputs[i]);
    if (kind.values[from].dims == kind.values[to].dims) out.values[to].root = out.values[from].root;
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
    ClassSet classes = 0;
    for (int p : op.parameters) classes |= kind.parameters[static_cast<std::size_t>(p)].classes;
    if (classes == 0) classes = class_of(op.module);
    out.operators[o].classes = classes;
    bool routed_input = op.kind == OpKind::dispatch;
    for (int v : op.inputs) {
      PreparedValue& value = out.values[static_cast<std::size_t>(v)];
      value.last_use = number;
      routed_input = routed_input || value.routed;
      if (op.region == Region::parallel &&
          kind.values[static_cast<std::size_t>(v)].region == Region::residual) {
        value.enters_parallel = true;
      }
      if (op.region == Region::residual &&
          kind.values[static_cast<std::size_t>(v)].region == Region::parallel) {
        value.leaves_parallel = true;
      }
    }
    auto made = [&](int v) {
      PreparedValue& value = out.values[static_cast<std::size_t>(v)];
      value.producer = number;
      // Tokens come back from their experts to where they were sent from.
      value.on_stream = op.region == Region::residual || op.kind == OpKind::combine;
      value.classes = classes;
      value.routed = routed_input && op.kind != OpKind::combine &&
                     has_index(kind.values[static_cast<std::size_t>(v)].dims, Index::choice);
      return value.routed;
    };
    for (int v : op.outputs) made(v);
    for (int v : op.internals) made(v);
    if (op.kind == OpKind::rotary && profile.rotates_in_place) rotate_in_place(kind, op, out);
    if (writes_in_place(op.kind) && !op.inputs.empty() && !op.outputs.empty()) {
      out.values[static_cast<std::size_t>(op.outputs.front())].root =
          out.values[static_cast<std::size_t>(op.inputs.front())].root;
    }
  }
}

/// The last value that an operator makes and none takes; a loss ends the model, so its is none.
void find_output(const UnitKind& kind, PreparedKind& out) {
  for (const Operator& op : kind.operators) {
    for (int v : op.outputs) {
      if (op.kind != OpKind::loss && out.values[static_cast<std::size_t>(v)].last_use < 0) {
        out.output = out.values[static_cast<std::size_t>(v)].root;
      }
    }
  }
}

void read_parameters(const UnitKind& kind, PreparedKind& out) {
  out.parameters.resize(kind.parameters.size());
  for (std::size_t p = 0; p < kind.parameters.size(); ++p) {
    PreparedParameter& parameter = out.parameters[p];
    parameter.elements = elements_of(kind.parameters[p].dims);
    bool used = false;
    for (const Operator& op : kind.operators) {
      if (std::ranges::find(op.parameters, static_cast<int>(p)) == op.parameters.end()) continue;
      used = true;
      (op.region == Region::parallel ? parameter.used_in_parallel : parameter.used_on_residual) =
          true;
      const bool routed = std::ranges::any_of(
          op.inputs, [&](int v) { return out.values[static_cast<std::size_t>(v)].routed; });
      parameter.routed = parameter.routed || routed;
    }
    // A tensor of a model without operators is used on every token, by an operator we do not know.
    parameter.summed = used ? summed_indices(kind, static_cast<int>(p))
                            : bit_of(Index::sample) | bit_of(Index::token);
  }
}

/// Forward liveness on roots, and when each gradient appears and is used up.
void read_liveness(const UnitKind& kind, PreparedKind& out) {
  const std::size_t values = kind.values.size();
  std::vector<int> last_use(values, -1);
  for (std::size_t v = 0; v < values; ++v) {
    const auto root = static_cast<std::size_t>(out.values[v].root);
    last_use[root] = std::max(last_use[root], out.values[v].last_use);
    last_use[root] = std::max(last_use[root], out.values[v].producer);
  }
  for (std::size_t v = 0; v < values; ++v) {
    if (out.values[v].root != static_cast<int>(v)) continue;
    const bool is_output = out.values[v].last_use < 0 && out.values[v].producer >= 0;
    if (!is_output && last_use[v] >= 0) {
      out.operators[static_cast<std::size_t>(last_use[v])].dead_after.push_back(
          static_cast<int>(v));
    }
  }
  std::vector<int> adjoint_root(values);
  for (std::size_t v = 0; v < values; ++v) adjoint_root[v] = static_cast<int>(v);
  std::vector<bool> exists(values, false);
  for (std::size_t o = kind.operators.size(); o-- > 0;) {
    const Operator& op = kind.operators[o];
    PreparedOperator& prepared = out.operators[o];
    for (int v : op.outputs) {
      if (out.values[static_cast<std::size_t>(v)].root == v) prepared.made.push_back(v);
    }
    const bool passes = passes_gradient(op.kind) && !op.inputs.empty() && !op.outputs.empty();
    const int alias = passes ? gradient_alias(op) : -1;
    for (int v : op.inputs) {
      const auto i = static_cast<std::size_t>(v);
      if (kind.values[i].type == ValueType::int64 || kind.values[i].type == ValueType::mask) {
        continue;  // no gradient flows to token ids and masks
      }
      if (v == alias && !exists[i]) {
        adjoint_root[i] = adjoint_root[static_cast<std::size_t>(op.outputs.front())];
      } else if (exists[i]) {
        prepared.adjoints_added.push_back(v);
      } else {
        prepared.adjoints_made.push_back(v);
      }
      exists[i] = true;
    }
    for (int v : op.outputs) {
      const auto i = static_cast<std::size_t>(v);
      const bool passed_on =
          passes && adjoint_root[static_cast<std::size_t>(alias)] == adjoint_root[i];
      if (adjoint_root[i] == v && !passed_on && exists[i]) prepared.adjoints_dead.push_back(v);
    }
  }
}

/// Recomputing a module recomputes what it contains.
std::vector<Module> with_contents(const std::vector<Module>& modules) {
  std::vector<Module> all = modules;
  for (Module module : modules) {
    if (module == Module::attention) all.push_back(Module::core_attention);
    if (module == Module::mlp) all.push_back(Module::mlp_activation);
  }
  return all;
}

bool is_frozen(const UnitKind& kind, const Operator& op) {
  return !op.parameters.empty() && std::ranges::none_of(op.parameters, [&](int p) {
    return kind.parameters[static_cast<std::size_t>(p)].trainable;
  });
}

/// Slots that an operator keeps. A contraction with frozen weights keeps no input: only the
/// weights' own gradient needs it.
std::vector<int> saved_by(const UnitKind& kind, const Operator& op, const SavedTable& table) {
  const SavedSlots& slots = table[static_cast<std::size_t>(op.kind)];
  const bool contraction = op.kind == OpKind::linear || op.kind == OpKind::grouped_linear ||
                           op.kind == OpKind::embedding;
  std::vector<int> saved;
  auto take = [&](const std::vector<int>& values, std::uint16_t mask) {
    for (std::size_t i = 0; i < values.size() && i < 16; ++i) {
      if ((unsigned{mask} >> i & 1U) != 0) saved.push_back(values[i]);
    }
  };
  if (!(contraction && is_frozen(kind, op))) take(op.inputs, slots.inputs);
  take(op.outputs, slots.outputs);
  take(op.internals, slots.internals);
  return saved;
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
  std::vector<bool> waiting(kind.values.size(), false);
  for (int v : plan.kept) waiting[static_cast<std::size_t>(v)] = true;
  for (int v : plan.rebuilt) waiting[static_cast<std::size_t>(v)] = true;
  for (std::size_t o = 0; o < kind.operators.size(); ++o) {
    for (int v : saved_by(kind, kind.operators[o], table)) {
      const int root = prepared.values[static_cast<std::size_t>(v)].root;
      if (!waiting[static_cast<std::size_t>(root)]) continue;
      waiting[static_cast<std::size_t>(root)] = false;
      plan.done[o].push_back(root);
    }
  }
}

SavedPlan whole_unit_plan(const UnitKind& kind, const PreparedKind& prepared,
                          const SavedTable& table) {
  SavedPlan plan;
  plan.whole_unit = true;
  plan.is_kept.assign(kind.values.size(), false);
  std::vector<bool> rebuilt(kind.values.size(), false);
  insert_root(plan.kept, plan.is_kept, 0);
  rebuilt[0] = true;
  for (const Operator& op : kind.operators) {
    for (int v : saved_by(kind, op, table)) {
      insert_root(plan.rebuilt, rebuilt, prepared.values[static_cast<std::size_t>(v)].root);
    }
  }
  for (int m = 0; m < kModuleCount; ++m) plan.modules.push_back(static_cast<Module>(m));
  note_last_readers(kind, prepared, table, plan);
  return plan;
}

/// Values from which backward needs something: read by an operator that saves them, or on the way
/// to one that is.
std::vector<bool> needed_in_backward(const UnitKind& kind, const SavedTable& table) {
  std::vector<bool> needed(kind.values.size(), false);
  for (std::size_t o = kind.operators.size(); o-- > 0;) {
    const Operator& op = kind.operators[o];
    for (int v : saved_by(kind, op, table)) needed[static_cast<std::size_t>(v)] = true;
    const bool leads_on =
        std::ranges::any_of(op.outputs, [&](int v) { return needed[static_cast<std::size_t>(v)]; });
    for (int v : op.inputs) {
      if (leads_on) needed[static_cast<std::size_t>(v)] = true;
    }
  }
  return needed;
}

/// A block recomputed but for its input and what the policy's operators leave.
SavedPlan policy_plan(const UnitKind& kind, const PreparedKind& prepared, const SavedTable& table,
                      const RecomputePolicy& policy) {
  SavedPlan plan = whole_unit_plan(kind, prepared, table);
  const std::vector<bool> needed = needed_in_backward(kind, table);
  std::int64_t contractions = 0;
  for (const Operator& op : kind.operators) {
    const bool counted = op.kind == OpKind::linear || op.kind == OpKind::grouped_linear;
    if (counted && contractions++ % policy.every != 0) continue;
    for (int v : saved_by(kind, op, policy.keeps)) {
      if (!policy.keeps_unread && !needed[static_cast<std::size_t>(v)]) continue;
      insert_root(plan.kept, plan.is_kept, prepared.values[static_cast<std::size_t>(v)].root);
    }
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

/// What stays when `modules` are recomputed: whatever the others keep, and the modules' inputs.
SavedPlan plan_without(const UnitKind& kind, const PreparedKind& prepared, const SavedTable& table,
                       const std::vector<Module>& modules) {
  SavedPlan plan;
  plan.modules = with_contents(modules);
  plan.is_kept.assign(kind.values.size(), false);
  auto is_inside = [&](const Operator& op) {
    return std::ranges::find(plan.modules, op.module) != plan.modules.end();
  };
  auto root_of = [&](int v) { return prepared.values[static_cast<std::size_t>(v)].root; };
  for (const Operator& op : kind.operators) {
    if (!is_inside(op)) {
      for (int v : saved_by(kind, op, table)) insert_root(plan.kept, plan.is_kept, root_of(v));
      continue;
    }
    for (int v : op.inputs) {
      const int producer = prepared.values[static_cast<std::size_t>(v)].producer;
      const bool outside =
          producer < 0 || !is_inside(kind.operators[static_cast<std::size_t>(producer)]);
      if (outside) insert_root(plan.kept, plan.is_kept, root_of(v));
    }
  }
  std::vector<bool> rebuilt = plan.is_kept;
  for (const Operator& op : kind.operators) {
    if (!is_inside(op)) continue;
    for (int v : saved_by(kind, op, table)) insert_root(plan.rebuilt, rebuilt, root_of(v));
  }
  note_last_readers(kind, prepared, table, plan);
  return plan;
}

}  // namespace

bool recomputes_units(const Job& job) {
  if (job.recompute.kind == Recompute::Kind::full || job.recompute.kind == Recompute::Kind::every ||
      job.recompute.kind == Recompute::Kind::first) {
    return true;
  }
  return std::ranges::any_of(job.placement.axes, [](const AxisPlacement& axis) {
    return axis.how.modes.activations == Mode::materialized;
  });
}

Prepared prepare(const Job& job) {
  Prepared prepared;
  prepared.kinds.reserve(job.model.kinds.size());
  for (const UnitKind& kind : job.model.kinds) {
    PreparedKind& out = prepared.kinds.emplace_back();
    out.operators.resize(kind.operators.size());
    read_values(kind, job.profile, out);
    find_output(kind, out);
    read_parameters(kind, out);
    read_liveness(kind, out);
    const SavedTable& table = job.profile.saved;
    out.plain = plan_without(kind, out, table, {});
    const bool is_block = kind.role == UnitRole::block || kind.role == UnitRole::mtp;
    if (!is_block || kind.values.empty()) {
      out.recomputed = out.plain;
    } else if (recomputes_units(job)) {
      out.recomputed = whole_unit_plan(kind, out, table);
    } else if (job.recompute.kind == Recompute::Kind::selective) {
      const RecomputePolicy* policy = policy_of(job);
      out.recomputed = policy != nullptr ? policy_plan(kind, out, table, *policy)
                                         : plan_without(kind, out, table, job.recompute.modules);
    } else {
      out.recomputed = out.plain;
    }
  }
  return prepared;
}

}  // namespace placet

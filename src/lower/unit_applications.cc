#include "lower/unit_applications.h"

#include <algorithm>
#include <iterator>

#include "lower/stages.h"
#include "model/gradients.h"
#include "units/at.h"
#include "units/error.h"

namespace placet {
namespace {

/// Inputs whose gradient is that of an output, unchanged: {input, output} of the original kernel.
std::vector<std::pair<int, int>> passed_on(const Adjoint& adjoint) {
  std::vector<std::pair<int, int>> out;
  const Kernel& k = adjoint.kernel;
  for (std::size_t i = 0; i < adjoint.to.size(); ++i) {
    const int tensor = k.inputs + static_cast<int>(i);
    const auto made = std::ranges::find_if(
        k.statements, [&](const Statement& s) { return s.result.tensor == tensor; });
    if (made == k.statements.end() || !made->is_linear() || made->products.size() != 1) continue;
    const Product& p = made->products.front();
    if (p.factor != Rational(1) || p.operands.size() != 1) continue;
    const Operand& o = p.operands.front();
    const bool incoming = o.tensor < static_cast<int>(adjoint.from.size());
    if (incoming && o.dims == made->result.dims) {
      out.emplace_back(adjoint.to[i], adjoint.from[at(o.tensor)]);
    }
  }
  return out;
}

/// The axes that divide some dim.
AxisList dividing(const std::vector<Division>& by) {
  AxisList axes;
  for (const Division& division : by) axes = united(axes, axes_of(division));
  return axes;
}

/// Making a module again makes again what it contains.
bool contains_module(Module outer, Module inner) {
  switch (outer) {
    case Module::attention:
      return inner == Module::core_attention || inner == Module::latent_projection;
    case Module::mlp:
      return inner == Module::mlp_activation;
    case Module::moe:
      return inner == Module::moe_activation || inner == Module::shared_expert;
    case Module::embedding:
    case Module::norm:
    case Module::core_attention:
    case Module::mlp_activation:
    case Module::shared_expert:
    case Module::residual:
    case Module::head:
    case Module::loss:
    case Module::moe_activation:
    case Module::latent_projection:
      return false;
  }
  fail_internally("every module has its contents");
}

/// Whether a dim of tokens is that of keys and values, by which queries look them up.
bool is_looked_up(const Kernel& kernel, int dim) {
  return kernel.dims[at(dim)].name.ends_with("'");
}

bool keeps_activations_on_host(const How& how) {
  return how.modes.activations == Mode::offloaded ||
         how.offload[static_cast<std::size_t>(State::activations)].has_value();
}

/// Whether what a unit keeps is in host memory: all activations, or the inputs of units that are
/// made again whole.
bool keeps_on_host(const Job& job, Again again) {
  return std::ranges::any_of(job.placement.axes, [&](const AxisPlacement& axis) {
    if (keeps_activations_on_host(axis.how)) return true;
    const auto moves_inputs = [](const Override& o) {
      return std::holds_alternative<Checkpoints>(o.selector) && keeps_activations_on_host(o.how);
    };
    return again == Again::everything && std::ranges::any_of(axis.overrides, moves_inputs);
  });
}

/// Whether an axis divides the inputs of units that are made again whole, which it leaves whole
/// otherwise.
bool divides_checkpoints(const AxisPlacement& axis) {
  const auto divides = [](const Override& o) {
    return std::holds_alternative<Checkpoints>(o.selector) &&
           o.how.modes.activations == Mode::sharded_gather;
  };
  return axis.how.cut == Cut::tensor && axis.how.modes.activations != Mode::sharded_gather &&
         std::ranges::any_of(axis.overrides, divides);
}

}  // namespace

UnitApplications::UnitApplications(Lowering& in, int kind, Again again)
    : in_(in),
      kind_(in.model.reference.kinds[at(kind)]),
      source_(in.job.model.kinds[at(kind)]),
      map_(in.model.kinds[at(kind)]) {
  ReferenceKind asked = kind_;
  hands_back = kind_.stream_in >= 0 && gradients_of(in.job.model)[at(kind)].stream;
  if (!hands_back) asked.stream_in = -1;
  for (const BackwardApplication& b : backward_of(asked, in.model.kernels)) add_backward(b);
  const Again what = backward.empty() ? Again::nothing : again;
  for (std::size_t a = 0; a < kind_.applications.size(); ++a) {
    forward.push_back(applied_forward(static_cast<int>(a)));
    made_again.push_back(is_made_again(static_cast<int>(a), what));
  }
  find_kept();
  find_exchanged();
  find_kept_both_ways();
  kept_on_host = keeps_on_host(in.job, again);
  if (again != Again::everything || kind_.stream_in < 0) return;
  checkpoint_axes =
      in.layouts.axes_where([&](std::size_t a) { return divides_checkpoints(in.layouts.axis(a)); });
}

Place UnitApplications::place_of(int application) const {
  const Operator& op = source_.operators[at(map_.operator_of[at(application)])];
  if (op.kind == OpKind::attention) return Place::core;
  if (op.kind == OpKind::dispatch || op.kind == OpKind::combine) return Place::edge;
  const auto routed = [&](int v) {
    return std::ranges::any_of(source_.values[at(v)].dims,
                               [](const Dim& d) { return d.index == Index::choice; });
  };
  const bool among_experts = std::ranges::any_of(op.inputs, routed);
  if (among_experts) return Place::routed;
  return op.region == Region::parallel ? Place::parallel : Place::stream;
}

Applied UnitApplications::applied_forward(int a) {
  const Application& application = kind_.applications[at(a)];
  Applied out{.application = a,
              .kernel = in_.writer.add_kernel(in_.model.kernels[at(application.kernel)]),
              .place = place_of(a),
              .from = {},
              .reads = application.inputs,
              .to = application.outputs,
              .uses = {},
              .by = {},
              .key = application.key};
  spread_out(out);
  return out;
}

bool UnitApplications::is_made_again(int application, Again again) const {
  switch (again) {
    case Again::nothing:
      return false;
    case Again::everything:
      return true;
    case Again::modules:
      break;
  }
  const Module module = source_.operators[at(map_.operator_of[at(application)])].module;
  return std::ranges::any_of(in_.job.recompute.modules, [&](Module asked) {
    return asked == module || contains_module(asked, module);
  });
}

/// A backward application without the outputs that are their input's gradient as it stands; whole,
/// and apart for values and parameters.
void UnitApplications::add_backward(const BackwardApplication& b) {
  const Application& application = kind_.applications[at(b.application)];
  const Kernel& original = in_.model.kernels[at(application.kernel)];
  const auto value = [&](int t) {
    return t < original.inputs ? application.inputs[at(t)]
                               : application.outputs[at(t - original.inputs)];
  };
  const std::vector<std::pair<int, int>> same = passed_on(b.adjoint);
  std::vector<int> values;
  std::vector<int> parameters;
  for (int t : b.adjoint.to) {
    const bool passed = std::ranges::any_of(same, [&](const auto& s) { return s.first == t; });
    if (passed) continue;
    (kind_.values[at(value(t))].parameter >= 0 ? parameters : values).push_back(t);
  }
  std::vector<int> all = values;
  all.insert(all.end(), parameters.begin(), parameters.end());
  std::ranges::sort(all);
  backward.push_back(applied_backward(b, all));
  const Place place = backward.back().place;
  backward.back().completes =
      place != Place::stream && place != Place::edge && hangs_on_values(b, values);
  if (splits_backward(in_.job)) {
    for_inputs.push_back(applied_backward(b, values));
    for_weights.push_back(applied_backward(b, parameters));
  }
  std::vector<std::pair<int, int>>& list = passes.emplace_back();
  for (const auto& [to, from] : same) list.emplace_back(value(to), value(from));
}

bool UnitApplications::hangs_on_values(const BackwardApplication& b,
                                       const std::vector<int>& to) const {
  if (to.empty()) return false;
  const Application& application = kind_.applications[at(b.application)];
  const auto adjoint = adjoint_of(in_.model.kernels[at(application.kernel)], b.adjoint.from, to);
  if (!adjoint) return false;
  const int inputs = static_cast<int>(application.inputs.size());
  return std::ranges::any_of(adjoint->reads, [&](int t) {
    return t >= inputs || kind_.values[at(application.inputs[at(t)])].parameter < 0;
  });
}

Applied UnitApplications::applied_backward(const BackwardApplication& b,
                                           const std::vector<int>& to) {
  const Application& application = kind_.applications[at(b.application)];
  const Kernel& original = in_.model.kernels[at(application.kernel)];
  Adjoint adjoint{.kernel = {}, .from = b.adjoint.from, .reads = {}, .to = {}};
  if (to == b.adjoint.to) {
    adjoint = b.adjoint;
  } else if (!to.empty()) {
    if (const auto rest = adjoint_of(original, b.adjoint.from, to)) adjoint = *rest;
  }
  Applied out{.application = b.application, .kernel = -1, .place = place_of(b.application)};
  out.key = application.key;
  const auto value = [&](int t) {
    return t < original.inputs ? application.inputs[at(t)]
                               : application.outputs[at(t - original.inputs)];
  };
  for (int t : adjoint.from) out.from.push_back(value(t));
  for (int t : adjoint.reads) out.reads.push_back(value(t));
  for (int t : adjoint.to) out.to.push_back(value(t));
  if (adjoint.to.empty()) return out;
  out.kernel = in_.writer.add_kernel(adjoint.kernel);
  spread_out(out);
  return out;
}

/// Binds the dims of the kernel to logical ones, and these to divisions.
void UnitApplications::spread_out(Applied& a) {
  const Kernel& kernel = in_.writer.kernel(a.kernel);
  std::vector<int> values = a.from;
  values.insert(values.end(), a.reads.begin(), a.reads.end());
  values.insert(values.end(), a.to.begin(), a.to.end());
  const std::vector<int> logical = bound_dims(kernel, values);
  a.by.resize(kernel.dims.size());
  for (std::size_t d = 0; d < kernel.dims.size(); ++d) {
    if (logical[d] < 0) continue;
    a.by[d] = need(kernel, static_cast<int>(d), logical[d], a.place);
    const bool token = in_.model.indices[at(logical[d])] == Index::token;
    if (token && is_looked_up(kernel, static_cast<int>(d)) && !a.by[d].empty()) {
      a.ring = static_cast<int>(d);
    }
  }
  for (std::size_t t = 0; t < values.size(); ++t) {
    const ReferenceValue& value = kind_.values[at(values[t])];
    if (value.parameter < 0) continue;
    std::vector<Division*> by;
    for (const int d : kernel.tensors[t].dims) by.push_back(&a.by[at(d)]);
    in_.layouts.leave_to_first(value.dims, a.place, by);
  }
  for (std::size_t t = 0; t < values.size(); ++t) {
    Spread use{.tensor = kind_.values[at(values[t])].dims, .by = {}, .partial = {}};
    for (int d : kernel.tensors[t].dims) use.by.push_back(a.by[at(d)]);
    a.uses.push_back(std::move(use));
  }
}

std::vector<int> UnitApplications::bound_dims(const Kernel& kernel,
                                              const std::vector<int>& values) const {
  std::vector<int> logical(kernel.dims.size(), -1);
  for (std::size_t t = 0; t < values.size(); ++t) {
    const std::vector<int>& dims = kind_.values[at(values[t])].dims;
    ensure(dims.size() == kernel.tensors[t].dims.size(), "a value has its kernel's dims");
    for (std::size_t d = 0; d < dims.size(); ++d) {
      logical[at(kernel.tensors[t].dims[d])] = dims[d];
    }
  }
  for (std::size_t d = 0; d < logical.size(); ++d) {
    const int like = kernel.dims[d].like;
    if (logical[d] < 0 && like >= 0) logical[d] = logical[at(like)];
  }
  return logical;
}

/// Vectors of functions are whole, and so are the tokens that keys and values are looked up by,
/// unless they go round a ring.
Division UnitApplications::need(const Kernel& kernel, int d, int logical, Place place) const {
  for (const Statement& s : kernel.statements) {
    if (std::ranges::find(s.whole, d) != s.whole.end()) return {};
  }
  const bool token = in_.model.indices[at(logical)] == Index::token;
  if (token && is_looked_up(kernel, d))
    return place == Place::core ? in_.layouts.keys() : Division{};
  return in_.layouts.division(logical, place);
}

/// What backward reads and does not make again, and what it makes that again from. What is made
/// again is kept all the same where the backward of something else reads it.
void UnitApplications::find_kept() {
  std::set<int> read_outside;  // by the backward of what is not made again
  for (const Applied& a : backward) {
    add_values(a.reads, read);
    if (!made_again[at(a.application)]) read_outside.insert(a.reads.begin(), a.reads.end());
  }
  kept = read;
  for (std::size_t a = 0; a < forward.size(); ++a) {
    if (made_again[a]) add_values(forward[a].reads, kept);
  }
  for (std::size_t a = 0; a < forward.size(); ++a) {
    if (!made_again[a]) continue;
    for (int v : forward[a].to) {
      if (!read_outside.contains(v)) kept.erase(v);
    }
  }
}

bool UnitApplications::is_value(int v) const {
  return kind_.values[at(v)].parameter < 0 && kind_.values[at(v)].input < 0;
}

void UnitApplications::add_values(const std::vector<int>& from, std::set<int>& to) const {
  for (int v : from) {
    if (is_value(v)) to.insert(v);
  }
}

std::map<int, std::vector<Division>> UnitApplications::read_alike() const {
  std::map<int, std::vector<Division>> readers;
  std::set<int> apart;
  const auto note = [&](const Applied& a, std::size_t first) {
    for (std::size_t i = 0; i < a.reads.size(); ++i) {
      const std::vector<Division>& by = a.uses[first + i].by;
      if (readers.try_emplace(a.reads[i], by).first->second != by) apart.insert(a.reads[i]);
    }
  };
  for (const Applied& a : forward) note(a, 0);
  for (const Applied& a : backward) note(a, a.from.size());
  for (const int v : apart) readers.erase(v);
  return readers;
}

void UnitApplications::find_exchanged() {
  const std::map<int, std::vector<Division>> readers = read_alike();
  for (const Applied& a : forward) {
    for (std::size_t i = 0; i < a.to.size(); ++i) {
      const int v = a.to[i];
      const std::vector<Division>& made = a.uses[a.reads.size() + i].by;
      const auto there = readers.find(v);
      if (there == readers.end() || there->second == made) continue;
      if (is_for_experts(v) || dividing(there->second) == dividing(made)) exchanged.insert(*there);
    }
  }
}

bool UnitApplications::is_for_experts(int v) const {
  return std::ranges::any_of(kind_.values[at(v)].dims,
                             [&](int d) { return in_.model.indices[at(d)] == Index::expert; });
}

void UnitApplications::find_kept_both_ways() {
  bool exchanges = false;
  for (std::size_t a = 0; a < in_.job.placement.axes.size(); ++a) {
    exchanges = exchanges || exchanges_heads(in_.job, a);
  }
  if (!exchanges) return;
  std::set<int> by_cores;
  std::set<int> by_others;
  for (const Applied& a : forward) {
    if (a.place == Place::core) add_values(a.reads, by_cores);
  }
  for (const Applied& a : backward) {
    add_values(a.reads, a.place == Place::core ? by_cores : by_others);
  }
  for (const Applied& a : forward) {
    if (a.place != Place::core) continue;
    std::ranges::copy_if(a.to, std::inserter(kept_both_ways, kept_both_ways.end()),
                         [&](int v) { return by_cores.contains(v) && by_others.contains(v); });
  }
}

}  // namespace placet

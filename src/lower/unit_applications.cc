#include "lower/unit_applications.h"

#include <algorithm>

#include "units/error.h"

namespace placet {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

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

}  // namespace

UnitApplications::UnitApplications(Lowering& in, int kind, bool recomputed)
    : in_(in),
      kind_(in.model.reference.kinds[at(kind)]),
      source_(in.job.model.kinds[at(kind)]),
      map_(in.model.kinds[at(kind)]) {
  for (std::size_t a = 0; a < kind_.applications.size(); ++a) {
    forward.push_back(applied_forward(static_cast<int>(a)));
  }
  for (const BackwardApplication& b : backward_of(kind_, in.model.kernels)) add_backward(b);
  find_kept(recomputed);
}

Place UnitApplications::place_of(int application) const {
  const Operator& op = source_.operators[at(map_.operator_of[at(application)])];
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

/// A backward application without the outputs that are their input's gradient as it stands.
void UnitApplications::add_backward(const BackwardApplication& b) {
  const Application& application = kind_.applications[at(b.application)];
  const Kernel& original = in_.model.kernels[at(application.kernel)];
  const std::vector<std::pair<int, int>> same = passed_on(b.adjoint);
  Adjoint adjoint = b.adjoint;
  if (!same.empty()) {
    std::vector<int> others;
    for (int t : b.adjoint.to) {
      const bool passed = std::ranges::any_of(same, [&](const auto& s) { return s.first == t; });
      if (!passed) others.push_back(t);
    }
    const auto rest = others.empty() ? std::nullopt : adjoint_of(original, b.adjoint.from, others);
    adjoint = rest ? *rest : Adjoint{.kernel = {}, .from = b.adjoint.from, .reads = {}, .to = {}};
  }
  Applied out{.application = b.application, .place = place_of(b.application)};
  out.key = application.key;
  const auto value = [&](int t) {
    return t < original.inputs ? application.inputs[at(t)]
                               : application.outputs[at(t - original.inputs)];
  };
  for (int t : adjoint.from) out.from.push_back(value(t));
  for (int t : adjoint.reads) out.reads.push_back(value(t));
  for (int t : adjoint.to) out.to.push_back(value(t));
  if (!adjoint.to.empty()) {
    out.kernel = in_.writer.add_kernel(adjoint.kernel);
    spread_out(out);
  } else {
    out.kernel = -1;
  }
  backward.push_back(std::move(out));
  std::vector<std::pair<int, int>>& list = passes.emplace_back();
  for (const auto& [to, from] : same) list.emplace_back(value(to), value(from));
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
    if (logical[d] >= 0) a.by[d] = need(kernel, static_cast<int>(d), logical[d], a.place);
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

/// Vectors of functions are whole, and so are the tokens that keys and values are looked up by.
Division UnitApplications::need(const Kernel& kernel, int d, int logical, Place place) const {
  for (const Statement& s : kernel.statements) {
    if (std::ranges::find(s.whole, d) != s.whole.end()) return {};
  }
  const bool token = in_.model.indices[at(logical)] == Index::token;
  if (token && kernel.dims[at(d)].name.ends_with("'")) return {};
  return in_.layouts.division(logical, place);
}

/// Values that backward reads; where the unit is recomputed, its input alone.
void UnitApplications::find_kept(bool recomputed) {
  for (const Applied& a : backward) {
    for (int v : a.reads) {
      if (kind_.values[at(v)].parameter < 0 && kind_.values[at(v)].input < 0) read.insert(v);
    }
  }
  if (!recomputed) {
    kept = read;
  } else if (kind_.stream_in >= 0) {
    kept = {kind_.stream_in};
  }
}

}  // namespace placet

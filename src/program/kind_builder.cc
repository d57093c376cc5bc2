#include "program/kind_builder.h"

#include <algorithm>
#include <set>

#include "program/kernel_text.h"
#include "units/at.h"
#include "units/error.h"

namespace placet {

void refuse_part(const std::string& what) {
  throw InputError({.where = "model",
                    .value = what,
                    .problem = "has no step program yet",
                    .allowed = "models without it",
                    .nearest = {},
                    .excerpt = {}});
}

Dims with(Dims a, const Dims& b) {
  for (int d : b) {
    if (std::ranges::find(a, d) == a.end()) a.push_back(d);
  }
  return a;
}

Dims without(Dims a, const Dims& b) {
  std::erase_if(a, [&](int d) { return std::ranges::find(b, d) != b.end(); });
  return a;
}

Dims joined(Dims a, const Dims& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

void KindBuilder::begin(const UnitKind& kind) {
  read_heads(kind);
  choices_of_kind_ = 0;
  for (const Value& v : kind.values) {
    for (const Dim& d : v.dims) {
      if (d.index == Index::choice) choices_of_kind_ = d.size;
    }
  }
  if (kind.operators.empty()) refuse_part("a bare count of parameters");
  kind_ = {};
  kind_.name = kind.name;
  map_ = {};
  source_ = &kind;
  map_.value_of.assign(kind.values.size(), -1);
  map_.pieces.resize(kind.parameters.size());
  const int first = value_of(0);
  if (kind.role == UnitRole::embedding) {
    kind_.values[at(first)].input = 0;
  } else {
    kind_.stream_in = first;
  }
}

void KindBuilder::finish() {
  switch (source_->role) {
    case UnitRole::embedding:
    case UnitRole::block:
      kind_.stream_out = map_.value_of[at(source_->operators.back().outputs.front())];
      break;
    case UnitRole::head:
      if (predicts_further_) kind_.stream_out = kind_.stream_in;
      break;
    case UnitRole::mtp:
      break;
  }
  out_.reference.kinds.push_back(std::move(kind_));
  out_.kinds.push_back(std::move(map_));
}

int KindBuilder::dim(const std::string& name, Index index, std::int64_t extent, std::int64_t chosen,
                     std::int64_t outer) {
  for (std::size_t d = 0; d < out_.dims.size(); ++d) {
    const LogicalDim& known = out_.dims[d];
    const bool same_name = known.name == name || known.name.starts_with(name + ".");
    if (same_name && known.extent == extent && known.chosen == chosen && out_.indices[d] == index &&
        out_.outer[d] == outer) {
      return static_cast<int>(d);
    }
  }
  const bool taken = std::ranges::any_of(out_.dims, [&](const auto& d) { return d.name == name; });
  std::string unused = taken ? name + "." + std::to_string(extent) : name;
  const auto clashes = [&](const LogicalDim& d) { return d.name == unused; };
  while (std::ranges::any_of(out_.dims, clashes)) unused += "x";
  out_.dims.push_back({.name = std::move(unused), .extent = extent, .chosen = chosen});
  out_.indices.push_back(index);
  out_.outer.push_back(outer);
  return static_cast<int>(out_.dims.size()) - 1;
}

void KindBuilder::read_heads(const UnitKind& kind) {
  heads_ = {};
  experts_ = 0;
  for (const Operator& op : kind.operators) {
    if (op.kind == OpKind::attention) {
      const Dim& keys = kind.values[at(op.inputs.at(1))].dims.back();
      heads_ = {.kv = keys.parts, .has_kv = keys.index == Index::kv_head};
    }
    if (op.kind == OpKind::router) {
      experts_ = kind.values[at(op.inputs.at(0))].dims.back().size;
    }
  }
}

void KindBuilder::add_heads(const Dim& d, Dims& dims) {
  const Index index = heads_.has_kv ? Index::kv_head : Index::head;
  const std::int64_t kv = heads_.kv > 0 && d.parts % heads_.kv == 0 ? heads_.kv : d.parts;
  if (kv > 1) dims.push_back(dim("head", index, kv));
  if (d.parts / kv > 1) dims.push_back(dim("group", Index::head, d.parts / kv, 0, kv));
  if (d.size / d.parts > 1) dims.push_back(dim("head-size", Index::head_size, d.size / d.parts));
}

void KindBuilder::add_dim(const Dim& d, Dims& dims) {
  switch (d.index) {
    case Index::sample:
      return dims.push_back(sample());
    case Index::token:
      return dims.push_back(token());
    case Index::head:
    case Index::kv_head:
      return add_heads(d, dims);
    case Index::choice:
      return dims.push_back(dim("expert", Index::expert, experts_, d.size));
    case Index::expert:
      return dims.push_back(dim("expert", Index::expert, d.size, choices_of_kind_));
    case Index::key_token:
    case Index::hidden:
    case Index::head_size:
    case Index::ffn:
    case Index::vocab:
    case Index::latent:
    case Index::adapter:
    case Index::state:
    case Index::position:
    case Index::other:
      break;
  }
  if (d.size <= 1) return;
  const std::string name(name_of(d.index));
  if (d.index == Index::state && d.size != d.parts) {
    dims.push_back(dim(name, d.index, d.parts));
    dims.push_back(dim("channel", Index::other, d.size / d.parts));
    return;
  }
  if (d.index == Index::head_size) return dims.push_back(dim("head-size", d.index, d.size));
  dims.push_back(dim(name, d.index, d.size));
}

Dims KindBuilder::dims_of(const std::vector<Dim>& from) {
  Dims dims;
  for (const Dim& d : from) add_dim(d, dims);
  return dims;
}

int KindBuilder::add_kernel(const std::string& text) {
  const auto [found, fresh] = known_.try_emplace(text, static_cast<int>(out_.kernels.size()));
  if (fresh) out_.kernels.push_back(kernel_from(text));
  return found->second;
}

int KindBuilder::value_of(int v) {
  int& known = map_.value_of[at(v)];
  if (known < 0) {
    const Value& value = source_->values[at(v)];
    kind_.values.push_back({.name = value.name, .dims = dims_of(value.dims)});
    known = static_cast<int>(kind_.values.size()) - 1;
  }
  return known;
}

int KindBuilder::inside(const std::string& name, const Dims& dims) {
  kind_.values.push_back({.name = name, .dims = dims});
  return static_cast<int>(kind_.values.size()) - 1;
}

int KindBuilder::parameter(int p, const Dims& dims) {
  const Parameter& from = source_->parameters[at(p)];
  const std::string mark =
      map_.pieces[at(p)].empty() ? "" : "." + std::to_string(map_.pieces[at(p)].size());
  kind_.values.push_back({.name = from.name + mark,
                          .dims = dims,
                          .parameter = static_cast<int>(kind_.parameters.size())});
  const int value = static_cast<int>(kind_.values.size()) - 1;
  map_.pieces[at(p)].push_back(static_cast<int>(kind_.parameters.size()));
  kind_.parameters.push_back({.name = from.name + mark,
                              .value = value,
                              .trainable = from.trainable,
                              .rule = rule_of(p, dims)});
  return value;
}

/// Of a rule that sees matrices there is one for each form of them. Matrices that are fused in one
/// tensor are matrices of their own.
int KindBuilder::rule_of(int p, const Dims& dims) {
  const Parameter& from = source_->parameters[at(p)];
  const int rule = request_.rule_of ? request_.rule_of(from) : 0;
  if (!request_.sees_matrices || !from.trainable || !request_.sees_matrices(from)) return rule;
  fuses_matrices_ = fuses_matrices_ || map_.pieces[at(p)].size() > 1;
  const auto [found, fresh] = shaped_.try_emplace({rule, names(dims)}, 0);
  if (fresh) {
    const RuleMatrix matrix = matrix_of(from, dims);
    found->second = add_rule(at(rule), &matrix);
  }
  return found->second;
}

/// Experts are matrices side by side. The second side of a matrix is the parameter's last dim, of
/// which several may be made here.
RuleMatrix KindBuilder::matrix_of(const Parameter& parameter, const Dims& dims) const {
  RuleMatrix out;
  const bool stacked = parameter.dims.front().index == Index::expert;
  const std::size_t first = stacked ? 1 : 0;  // dim of a matrix
  std::set<std::string> taken;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    std::string name = out_.dims[at(dims[i])].name;
    if (!taken.insert(name).second) name += "'";  // one dim is both sides
    out.dims += (i == 0 ? "" : " ") + name;
    if (i >= first) out.whole += (i == first ? "" : " ") + name;
  }
  out.rows = static_cast<int>(dims.size() - first);
  for (std::int64_t columns = 1; out.rows > 1 && columns < parameter.dims.back().size; --out.rows) {
    columns *= out_.dims[at(dims[first + at(out.rows - 1)])].extent;
  }
  return out;
}

int KindBuilder::add_rule(std::size_t i, const RuleMatrix* matrix) {
  Reference& r = out_.reference;
  const auto number = static_cast<int>(r.rules.size());
  r.rules.push_back({.kernel = add_kernel(rule_kernel({.states = request_.rules[i],
                                                       .number = number,
                                                       .has_factor = r.clip_kernel >= 0,
                                                       .may_be_skipped = request_.scales_loss,
                                                       .matrix = matrix})),
                     .states = request_.rules[i]});
  return number;
}

int KindBuilder::whole_parameter(int p) {
  return parameter(p, dims_of(source_->parameters[at(p)].dims));
}

void KindBuilder::apply(const KernelWriter& kernel, std::vector<int> inputs,
                        std::vector<int> outputs, const std::string& key) {
  kind_.applications.push_back({.kernel = add_kernel(kernel.text()),
                                .inputs = std::move(inputs),
                                .outputs = std::move(outputs),
                                .key = key});
  map_.operator_of.push_back(operator_);
}

void KindBuilder::add_loss(int value) {
  if (kind_.loss < 0) {
    kind_.loss = value;
    return;
  }
  const int sum = inside("losses", dims_at(value));
  KernelWriter k = writer("add");
  const std::string dims = k.list(dims_at(value));
  k.input("x0" + dims);
  k.input("x1" + dims);
  k.output("y" + dims);
  k.line("y" + dims + " = x0" + dims + " + x1" + dims);
  apply(k, {kind_.loss, value}, {sum});
  kind_.loss = sum;
}

std::string KindBuilder::names(const Dims& dims) const {
  std::string text;
  for (int d : dims) text += " " + out_.dims[at(d)].name;
  return text;
}

}  // namespace placet

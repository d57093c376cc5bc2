#include "program/model_reference.h"

#include <algorithm>
#include <map>
#include <utility>

#include "program/kernel_text.h"
#include "units/error.h"

namespace placet {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

using Dims = std::vector<int>;  // positions in ModelReference::dims

[[noreturn]] void refuse(const std::string& what) {
  throw InputError({.where = "model",
                    .value = what,
                    .problem = "has no step program yet",
                    .allowed = "models without it",
                    .nearest = {},
                    .excerpt = {}});
}

/// Tensors of a kernel on their way to its text. Dims are named after logical ones; a name may be
/// changed for one tensor ("token" to "key").
class KernelWriter {
 public:
  KernelWriter(const std::vector<LogicalDim>& dims, std::string name)
      : dims_(dims), name_(std::move(name)) {}

  std::string named(int dim) const { return dims_[at(dim)].name; }

  /// "[sample token hidden]". `other`: dims that are called by that name with a mark.
  std::string list(const Dims& dims, const Dims& marked = {}) const {
    std::string text = "[";
    for (int d : dims) {
      if (text.size() > 1) text += ' ';
      text += named(d);
      if (std::ranges::find(marked, d) != marked.end()) text += "'";
    }
    return text + "]";
  }

  void input(const std::string& text) { inputs_.push_back(text); }
  void output(const std::string& text) { outputs_.push_back(text); }
  void line(const std::string& text) { lines_ += "  " + text + "\n"; }

  std::string text() const {
    return "kernel " + name_ + "(" + joined(inputs_) + ") -> (" + joined(outputs_) + ") {\n" +
           lines_ + "}\n";
  }

 private:
  static std::string joined(const std::vector<std::string>& parts) {
    std::string text;
    for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
    return text;
  }

  const std::vector<LogicalDim>& dims_;
  std::string name_;
  std::vector<std::string> inputs_;
  std::vector<std::string> outputs_;
  std::string lines_;
};

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

class Builder {
 public:
  Builder(const Model& model, const ReferenceRequest& request) : model_(model), request_(request) {}

  ModelReference build() {
    sample_ = dim("sample", Index::sample, request_.samples);
    token_ = dim("token", Index::token, request_.tokens);
    Reference& r = out_.reference;
    r.inputs = {
        {"ids", {sample_, token_}}, {"labels", {sample_, token_}}, {"weights", {sample_, token_}}};
    r.weights = 2;
    add_step_kernels();
    for (const UnitKind& kind : model_.kinds) add_kind(kind);
    for (const Unit& unit : model_.units) r.units.push_back({unit.kind, unit.number});
    tie_parameters();
    r.choices = {"loss: mean over the weighted tokens of the global batch", "balance loss: none",
                 "capacity: none", "random numbers: by logical position"};
    return std::move(out_);
  }

 private:
  // --- dims

  int dim(const std::string& name, Index index, std::int64_t extent, std::int64_t chosen = 0,
          std::int64_t outer = 1) {
    for (std::size_t d = 0; d < out_.dims.size(); ++d) {
      const LogicalDim& known = out_.dims[d];
      const bool same_name = known.name == name || known.name.starts_with(name + ".");
      if (same_name && known.extent == extent && known.chosen == chosen &&
          out_.indices[d] == index && out_.outer[d] == outer) {
        return static_cast<int>(d);
      }
    }
    const bool taken =
        std::ranges::any_of(out_.dims, [&](const auto& d) { return d.name == name; });
    std::string unused = taken ? name + "." + std::to_string(extent) : name;
    const auto clashes = [&](const LogicalDim& d) { return d.name == unused; };
    while (std::ranges::any_of(out_.dims, clashes)) unused += "x";
    out_.dims.push_back({.name = std::move(unused), .extent = extent, .chosen = chosen});
    out_.indices.push_back(index);
    out_.outer.push_back(outer);
    return static_cast<int>(out_.dims.size()) - 1;
  }

  /// Heads of the kind that is being built.
  struct Heads {
    std::int64_t kv = 0;  // key and value heads; 0: no attention
    bool has_kv = false;  // some dim has the index kv_head
  };

  void read_heads(const UnitKind& kind) {
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

  void add_heads(const Dim& d, Dims& dims) {
    const Index index = heads_.has_kv ? Index::kv_head : Index::head;
    const std::int64_t kv = heads_.kv > 0 && d.parts % heads_.kv == 0 ? heads_.kv : d.parts;
    if (kv > 1) dims.push_back(dim("head", index, kv));
    if (d.parts / kv > 1) dims.push_back(dim("group", Index::head, d.parts / kv, 0, kv));
    if (d.size / d.parts > 1) dims.push_back(dim("head-size", Index::head_size, d.size / d.parts));
  }

  void add_dim(const Dim& d, Dims& dims) {
    switch (d.index) {
      case Index::sample:
        return dims.push_back(sample_);
      case Index::token:
        return dims.push_back(token_);
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

  Dims dims_of(const std::vector<Dim>& from) {
    Dims dims;
    for (const Dim& d : from) add_dim(d, dims);
    return dims;
  }

  // --- kinds

  int add_kernel(const std::string& text) {
    const auto [found, fresh] = known_.try_emplace(text, static_cast<int>(out_.kernels.size()));
    if (fresh) out_.kernels.push_back(kernel_from(text));
    return found->second;
  }

  void add_step_kernels() {
    Reference& r = out_.reference;
    r.count_kernel = add_kernel("kernel count(w[s t]) -> (n[]) {\n n[] = w[s t]\n}");
    r.seed_kernel = add_kernel(
        "kernel seed(w[s t], n[]) -> (d[s t]) {\n i[] = inv(n[])\n d[s t] = w[s t] * i[]\n}");
    if (request_.clips) {
      r.norm_kernel = add_kernel("kernel squares(g[...]) -> (q[]) {\n q[] = g[...] * g[...]\n}");
      r.clip_kernel = add_kernel("kernel limit(q[]) -> (c[]) {\n c[] = limited(q[])\n}");
    }
    for (std::size_t i = 0; i < request_.rules.size(); ++i) add_rule(i);
  }

  /// New states from the old ones and the gradient, then the parameter from all of them.
  void add_rule(std::size_t i) {
    const std::vector<std::string>& states = request_.rules[i];
    const std::string mark = i == 0 ? "" : "." + std::to_string(i);
    std::string inputs = "p[...]";
    std::string outputs = "q[...]";
    std::string lines;
    std::string g = "g[...]";
    if (request_.clips) {
      lines += " h[...] = g[...] * c[]\n";
      g = "h[...]";
    }
    std::string made = "p[...]";
    for (std::size_t s = 0; s < states.size(); ++s) {
      const std::string n = std::to_string(s);
      inputs += ", s" + n + "[...]";
      outputs += ", t" + n + "[...]";
      lines += " t" + n + "[...] = moment" + n + mark + "(s" + n + "[...], " + g + ")\n";
      made += ", t" + n + "[...]";
    }
    lines += " q[...] = stepped" + mark + "(" + made + ", " + g + ")\n";
    inputs += std::string(", g[...]") + (request_.clips ? ", c[]" : "");
    out_.reference.rules.push_back(
        {.kernel = add_kernel("kernel update" + mark + "(" + inputs + ") -> (" + outputs + ") {\n" +
                              lines + "}"),
         .states = states});
  }

  void add_kind(const UnitKind& kind) {
    read_heads(kind);
    choices_of_kind_ = 0;
    for (const Value& v : kind.values) {
      for (const Dim& d : v.dims) {
        if (d.index == Index::choice) choices_of_kind_ = d.size;
      }
    }
    if (kind.role == UnitRole::mtp) refuse("a multi-token-prediction module");
    if (kind.operators.empty()) refuse("a bare count of parameters");
    kind_ = {.name = kind.name};
    map_ = {};
    source_ = &kind;
    map_.value_of.assign(kind.values.size(), -1);
    map_.pieces.resize(kind.parameters.size());
    read_input(kind);
    for (std::size_t o = 0; o < kind.operators.size(); ++o) {
      operator_ = static_cast<int>(o);
      add_operator(kind.operators[o]);
    }
    if (kind.role != UnitRole::head) kind_.stream_out = last_output();
    out_.reference.kinds.push_back(std::move(kind_));
    out_.kinds.push_back(std::move(map_));
  }

  void read_input(const UnitKind& kind) {
    const bool ids = kind.role == UnitRole::embedding;
    const int v = value_of(0);
    if (ids) {
      kind_.values[at(v)].input = 0;
    } else {
      kind_.stream_in = v;
    }
  }

  int last_output() const {
    const Operator& last = source_->operators.back();
    return map_.value_of[at(last.outputs.front())];
  }

  /// The reference's value for a value of the model, made at first use.
  int value_of(int v) {
    int& known = map_.value_of[at(v)];
    if (known < 0) {
      const Value& value = source_->values[at(v)];
      kind_.values.push_back({.name = value.name, .dims = dims_of(value.dims)});
      known = static_cast<int>(kind_.values.size()) - 1;
    }
    return known;
  }

  /// A value that the model does not have.
  int inside(const std::string& name, const Dims& dims) {
    kind_.values.push_back({.name = name, .dims = dims});
    return static_cast<int>(kind_.values.size()) - 1;
  }

  const Dims& dims_at(int v) const { return kind_.values[at(v)].dims; }

  /// One parameter of the reference, a piece of parameter `p` of the model.
  int parameter(int p, const Dims& dims) {
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
                                .rule = request_.rule_of ? request_.rule_of(from) : 0});
    return value;
  }

  int whole_parameter(int p) { return parameter(p, dims_of(source_->parameters[at(p)].dims)); }

  void apply(const KernelWriter& kernel, std::vector<int> inputs, std::vector<int> outputs,
             const std::string& key = {}) {
    kind_.applications.push_back({.kernel = add_kernel(kernel.text()),
                                  .inputs = std::move(inputs),
                                  .outputs = std::move(outputs),
                                  .key = key});
    map_.operator_of.push_back(operator_);
  }

  KernelWriter writer(const std::string& name) const { return {out_.dims, name}; }

  // --- operators

  void add_operator(const Operator& op) {
    switch (op.kind) {
      case OpKind::embedding:
        return add_embedding(op);
      case OpKind::position:
        return add_position(op);
      case OpKind::linear:
      case OpKind::grouped_linear:
        return add_linear(op);
      case OpKind::bias:
        return add_bias(op);
      case OpKind::norm:
        return add_norm(op);
      case OpKind::rotary:
        return add_rotary(op);
      case OpKind::attention:
        return add_attention(op);
      case OpKind::activation:
        return add_activation(op);
      case OpKind::gated_activation:
        return add_gated(op);
      case OpKind::multiply:
        return add_product(op, "multiply");
      case OpKind::dropout:
        return add_dropout(op);
      case OpKind::residual_add:
        return add_sum(op);
      case OpKind::router:
        return add_router(op);
      case OpKind::dispatch:
        return add_product(op, "dispatch");
      case OpKind::combine:
        return add_product(op, "combine");
      case OpKind::convolution:
      case OpKind::scan:
        return add_recurrence(op);
      case OpKind::loss:
        return add_loss(op);
    }
  }

  void add_embedding(const Operator& op) {
    const int ids = value_of(op.inputs[0]);
    const int w = whole_parameter(op.parameters[0]);
    const int y = value_of(op.outputs[0]);
    KernelWriter k = writer("lookup");
    const Dims e = {sample_, token_, dims_at(w)[0]};
    k.input("ids" + k.list(dims_at(ids)));
    k.input("w" + k.list(dims_at(w)));
    k.output("y" + k.list(dims_at(y)));
    k.line("e" + k.list(e) + " = onehot(ids" + k.list(dims_at(ids)) + "; at " + k.named(e[2]) +
           ")");
    k.line("y" + k.list(dims_at(y)) + " = e" + k.list(e) + " * w" + k.list(dims_at(w)));
    apply(k, {ids, w}, {y});
  }

  void add_position(const Operator& op) {
    const int x = value_of(op.inputs[0]);
    const int p = whole_parameter(op.parameters[0]);
    const int y = value_of(op.outputs[0]);
    KernelWriter k = writer("position");
    const Dims e = {token_, dims_at(p)[0]};
    k.input("x" + k.list(dims_at(x)));
    k.input("p" + k.list(dims_at(p)));
    k.output("y" + k.list(dims_at(y)));
    k.line("e" + k.list(e) + " = position(; at " + k.named(e[0]) + " " + k.named(e[1]) + ")");
    k.line("y" + k.list(dims_at(y)) + " = x" + k.list(dims_at(x)) + " + e" + k.list(e) + " * p" +
           k.list(dims_at(p)));
    apply(k, {x, p}, {y});
  }

  /// Dims that both an input and an output of a contraction have are not contracted, except where
  /// the weight maps a dim to itself: then the weight's row has a mark.
  void add_linear(const Operator& op) {
    if (op.inputs.size() != 1) refuse("a contraction of several inputs");
    const int x = value_of(op.inputs[0]);
    const std::vector<Dim>& input = source_->values[at(op.inputs[0])].dims;
    const Dims in = dims_of({input.back()});
    const Parameter& weight = source_->parameters[at(op.parameters[0])];
    const Dims experts = weight.dims.front().index == Index::expert && weight.dims.size() == 3
                             ? dims_of({weight.dims.front()})
                             : Dims{};
    KernelWriter k = writer("linear");
    k.input("x" + k.list(dims_at(x)));
    std::vector<int> inputs{x};
    std::vector<int> outputs;
    for (std::size_t i = 0; i < op.outputs.size(); ++i) {
      const std::string n = op.outputs.size() == 1 ? "" : std::to_string(i);
      const Dims out = dims_of({source_->values[at(op.outputs[i])].dims.back()});
      const int w = parameter(op.parameters[0], joined(experts, joined(out, in)));
      const int y = value_of(op.outputs[i]);
      Dims marked;  // dims of the output that the input contracts
      for (int d : out) {
        if (std::ranges::find(in, d) != in.end()) marked.push_back(d);
      }
      const std::string row = k.list(experts) + k.list(out, marked) + k.list(in);
      const std::string weights = bracket(row);
      k.input("w" + n + weights);
      const Dims lead = without(dims_at(x), in);
      const std::string result = bracket(k.list(lead) + k.list(out, marked));
      k.output("y" + n + result);
      k.line("y" + n + result + " = x" + k.list(dims_at(x)) + " * w" + n + weights);
      inputs.push_back(w);
      outputs.push_back(y);
      ensure(dims_at(y).size() == lead.size() + out.size(), "a contraction's result has its dims");
    }
    apply(k, inputs, outputs);
  }

  static Dims joined(Dims a, const Dims& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }

  /// "[a b][c]" as "[a b c]".
  static std::string bracket(std::string text) {
    for (std::size_t i = text.find("]["); i != std::string::npos; i = text.find("][")) {
      const bool empty = text[i - 1] == '[' || text[i + 2] == ']';
      text.replace(i, 2, empty ? "" : " ");
    }
    return text;
  }

  void add_bias(const Operator& op) {
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      const int x = value_of(op.inputs[i]);
      const int y = value_of(op.outputs[i]);
      const Parameter& from = source_->parameters[at(op.parameters[0])];
      Dims dims = from.dims.size() == 2 ? dims_of({from.dims.front()}) : Dims{};
      dims = joined(dims, dims_of({source_->values[at(op.inputs[i])].dims.back()}));
      const int b = parameter(op.parameters[0], dims);
      KernelWriter k = writer("bias");
      k.input("x" + k.list(dims_at(x)));
      k.input("b" + k.list(dims_at(b)));
      k.output("y" + k.list(dims_at(y)));
      k.line("y" + k.list(dims_at(y)) + " = x" + k.list(dims_at(x)) + " + b" + k.list(dims_at(b)));
      apply(k, {x, b}, {y});
    }
  }

  /// Nothing is assumed of a norm but that it depends on an entry and on a sum over its dims.
  void add_norm(const Operator& op) {
    const int x = value_of(op.inputs[0]);
    const int q = value_of(op.internals.at(internal::kNormStatistics));
    const int y = value_of(op.outputs[0]);
    KernelWriter stat = writer("norm-sum");
    const std::string reduced = names(without(dims_at(x), dims_at(q)));
    stat.input("x" + stat.list(dims_at(x)));
    stat.output("q" + stat.list(dims_at(q)));
    stat.line("q" + stat.list(dims_at(q)) + " = sum" + reduced + " of power(x" +
              stat.list(dims_at(x)) + ")");
    apply(stat, {x}, {q});
    KernelWriter k = writer("norm");
    const std::string dims = k.list(dims_at(x));
    std::vector<int> inputs{x, q};
    k.input("x" + dims);
    k.input("q" + k.list(dims_at(q)));
    k.output("y" + dims);
    k.line("n" + dims + " = normal(x" + dims + ", q" + k.list(dims_at(q)) + ")");
    std::string sum = "n" + dims;
    for (std::size_t i = 0; i < op.parameters.size(); ++i) {
      const int w = whole_parameter(op.parameters[i]);
      const std::string name = i == 0 ? "w" : "b";
      inputs.push_back(w);
      k.input(name + k.list(dims_at(w)));
      sum += (i == 0 ? " * " : " + ") + name + k.list(dims_at(w));
    }
    k.line("y" + dims + " = " + sum);
    apply(k, inputs, {y});
  }

  std::string names(const Dims& dims) const {
    std::string text;
    for (int d : dims) text += " " + out_.dims[at(d)].name;
    return text;
  }

  /// Queries, then keys; the part of the keys that all heads share is joined to them.
  void add_rotary(const Operator& op) {
    rotate(op.inputs[0], op.outputs[0]);
    if (op.inputs.size() == 2) return rotate(op.inputs[1], op.outputs[1]);
    const int still = value_of(op.inputs[1]);
    const int shared = value_of(op.inputs[2]);
    const int y = value_of(op.outputs[1]);
    const int size = dims_at(y).back();
    const int from = dims_at(still).back();
    const int tail = dims_at(shared).back();
    KernelWriter k = writer("join-keys");
    const int other = value_of(op.inputs[0]);
    k.input("x" + k.list(dims_at(still)));
    k.input("s" + k.list(dims_at(shared)));
    k.input("q" + k.list(dims_at(other)));
    k.output("y" + k.list(dims_at(y)));
    if (from == size || tail == size || from == tail) refuse("latent attention of equal sizes");
    k.line("a" + k.list({from, size}) + " = rotation(; at " + k.named(from) + " " + k.named(size) +
           ")");
    k.line("b" + k.list({token_, tail, size}) + " = rotation(; at " + k.named(token_) + " " +
           k.named(tail) + " " + k.named(size) + ")");
    k.line("y" + k.list(dims_at(y)) + " = x" + k.list(dims_at(still)) + " * a" +
           k.list({from, size}) + " + s" + k.list(dims_at(shared)) + " * b" +
           k.list({token_, tail, size}));
    apply(k, {still, shared, other}, {y});
  }

  /// A matrix for each position, the same for all models: nothing is assumed of it.
  void rotate(int from, int to) {
    const int x = value_of(from);
    const int y = value_of(to);
    const int e = dims_at(x).back();
    KernelWriter k = writer("rotary");
    const std::string mark = k.named(e) + "'";
    k.input("x" + k.list(dims_at(x)));
    k.output("y" + k.list(dims_at(y), {e}));
    k.line("dim " + mark + " like " + k.named(e));
    const std::string r = "r[" + k.named(token_) + " " + k.named(e) + " " + mark + "]";
    k.line(r + " = rotation(; at " + k.named(token_) + " " + k.named(e) + " " + mark + ")");
    k.line("y" + k.list(dims_at(y), {e}) + " = x" + k.list(dims_at(x)) + " * " + r);
    apply(k, {x}, {y});
  }

  /// Softmax without its shift, which changes nothing over the reals: exp(q k), its sum over the
  /// keys, the values weighted by it, and their ratio.
  void add_attention(const Operator& op) {
    if (op.inputs.size() > 3) refuse("attention that selects its keys");
    if (!op.parameters.empty()) refuse("attention with sinks");
    const int q = value_of(op.inputs[0]);
    const int key = value_of(op.inputs[1]);
    const int v = value_of(op.inputs[2]);
    const int o = value_of(op.outputs[0]);
    const int size = dims_at(q).back();
    const Dims l_dims = without(dims_at(q), {size});
    const int l = value_of(op.internals.at(internal::kLogSumExp));
    ensure(dims_at(l) == l_dims, "attention keeps one number per token and head");
    KernelWriter k = writer("attention");
    const std::string keys = k.named(token_) + "'";
    const std::string v_list = value_list(k, dims_at(v), size);
    const std::string o_list = value_list(k, dims_at(o), size, false);
    const std::string w = bracket(k.list(l_dims) + "[" + keys + "]");
    k.input("q" + k.list(dims_at(q)));
    k.input("k" + k.list(dims_at(key), {token_}));
    k.input("v" + v_list);
    k.output("o" + o_list);
    k.output("l" + k.list(l_dims));
    const std::string function =
        op.window > 0 ? "exp_dot." + std::to_string(op.window) : std::string("exp_dot");
    k.line("w" + w + " = " + function + "(q" + k.list(dims_at(q)) + ", k" +
           k.list(dims_at(key), {token_}) + "; whole " + k.named(size) + "; at " + k.named(token_) +
           " " + keys + ")");
    k.line("l" + k.list(l_dims) + " = w" + w);
    const bool drops = op.internals.size() > 5;
    if (drops) k.line("m" + w + " = kept(; at" + names(l_dims) + " " + keys + ")");
    k.line("n" + o_list + " = w" + w + (drops ? " * m" + w : "") + " * v" + v_list);
    k.line("o" + o_list + " = ratio(n" + o_list + ", l" + k.list(l_dims) + ")");
    apply(k, {q, key, v}, {o, l}, drops ? op.name : "");
  }

  /// Dims of values: their tokens are those of the keys, their size has a name of its own.
  std::string value_list(const KernelWriter& k, const Dims& dims, int size,
                         bool keys = true) const {
    std::string text = "[";
    for (std::size_t i = 0; i < dims.size(); ++i) {
      if (i > 0) text += ' ';
      text += k.named(dims[i]);
      if (keys && dims[i] == token_) text += "'";
      if (i + 1 == dims.size() && dims[i] == size) text += "'";
    }
    return text + "]";
  }

  void add_activation(const Operator& op) {
    const int x = value_of(op.inputs[0]);
    const int y = value_of(op.outputs[0]);
    KernelWriter k = writer("activation");
    k.input("x" + k.list(dims_at(x)));
    k.output("y" + k.list(dims_at(y)));
    k.line("y" + k.list(dims_at(y)) + " = act(x" + k.list(dims_at(x)) + ")");
    apply(k, {x}, {y});
  }

  void add_gated(const Operator& op) {
    const int g = value_of(op.inputs[0]);
    const int u = value_of(op.inputs[1]);
    const int y = value_of(op.outputs[0]);
    KernelWriter k = writer("gated");
    k.input("g" + k.list(dims_at(g)));
    k.input("u" + k.list(dims_at(u)));
    k.output("y" + k.list(dims_at(y)));
    k.line("a" + k.list(dims_at(g)) + " = act(g" + k.list(dims_at(g)) + ")");
    k.line("y" + k.list(dims_at(y)) + " = a" + k.list(dims_at(g)) + " * u" + k.list(dims_at(u)));
    apply(k, {g, u}, {y});
  }

  /// A product of the inputs, summed over what the output does not have.
  void add_product(const Operator& op, const std::string& name) {
    const int a = value_of(op.inputs[0]);
    const int b = value_of(op.inputs[1]);
    const int y = value_of(op.outputs[0]);
    KernelWriter k = writer(name);
    k.input("a" + k.list(dims_at(a)));
    k.input("b" + k.list(dims_at(b)));
    k.output("y" + k.list(dims_at(y)));
    k.line("y" + k.list(dims_at(y)) + " = a" + k.list(dims_at(a)) + " * b" + k.list(dims_at(b)));
    apply(k, {a, b}, {y});
  }

  void add_dropout(const Operator& op) {
    const int x = value_of(op.inputs[0]);
    const int m = value_of(op.internals.at(internal::kDropoutMask));
    const int y = value_of(op.outputs[0]);
    KernelWriter k = writer("dropout");
    const std::string dims = k.list(dims_at(x));
    k.input("x" + dims);
    k.output("y" + dims);
    k.output("m" + dims);
    k.line("m" + dims + " = kept(; at" + names(dims_at(x)) + ")");
    k.line("y" + dims + " = x" + dims + " * m" + dims);
    apply(k, {x}, {y, m}, op.name);
  }

  void add_sum(const Operator& op) {
    KernelWriter k = writer("add");
    std::vector<int> inputs;
    std::string sum;
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      const int x = value_of(op.inputs[i]);
      const std::string name = "x" + std::to_string(i) + k.list(dims_at(x));
      k.input(name);
      sum += (i == 0 ? "" : " + ") + name;
      inputs.push_back(x);
    }
    const int y = value_of(op.outputs[0]);
    k.output("y" + k.list(dims_at(y)));
    k.line("y" + k.list(dims_at(y)) + " = " + sum);
    apply(k, inputs, {y});
  }

  void add_router(const Operator& op) {
    const int z = value_of(op.inputs[0]);
    const int g = value_of(op.outputs[0]);
    const int m = value_of(op.outputs[1]);
    KernelWriter k = writer("route");
    const int scores = dims_at(z).back();
    const std::string expert = k.named(dims_at(g).back());
    k.input("z" + k.list(dims_at(z)));
    std::vector<int> inputs{z};
    std::string operands = "z" + k.list(dims_at(z));
    if (!op.parameters.empty()) {
      const int b = whole_parameter(op.parameters[0]);
      inputs.push_back(b);
      k.input("b" + k.list(dims_at(b)));
      operands += ", b" + k.list(dims_at(b));
    }
    k.output("g" + k.list(dims_at(g)));
    k.output("m" + k.list(dims_at(m)));
    k.line("dim " + expert + " like " + k.named(scores));
    const std::string rest = "(" + operands + "; whole " + k.named(scores) + ")";
    const std::string count = "." + std::to_string(choices_of_kind_);
    k.line("g" + k.list(dims_at(g)) + " = route" + count + rest);
    k.line("m" + k.list(dims_at(m)) + " = chosen" + count + rest);
    apply(k, inputs, {g, m});
  }

  /// Convolutions and scans: functions of whole sequences, channel by channel.
  void add_recurrence(const Operator& op) {
    const int y = value_of(op.outputs[0]);
    KernelWriter k = writer(std::string(name_of(op.kind)));
    std::vector<int> inputs;
    std::string operands;
    Dims all;
    const auto add = [&](int v) {
      const std::string name = "x" + std::to_string(inputs.size()) + k.list(dims_at(v));
      k.input(name);
      operands += (inputs.empty() ? "" : ", ") + name;
      inputs.push_back(v);
      all = with(all, dims_at(v));
    };
    for (int v : op.inputs) add(value_of(v));
    for (int p : op.parameters) add(whole_parameter(p));
    k.output("y" + k.list(dims_at(y)));
    for (int d : without(dims_at(y), all))
      k.line("dim " + k.named(d) + " like " + k.named(all.back()));
    const Dims whole = with({token_}, without(all, dims_at(y)));
    k.line("y" + k.list(dims_at(y)) + " = " + std::string(name_of(op.kind)) + "(" + operands +
           "; whole" + names(whole) + ")");
    apply(k, inputs, {y});
  }

  /// Cross entropy: the largest logit, the sum of exponentials and the logit of the label, the
  /// loss of each token.
  void add_loss(const Operator& op) {
    const int z = value_of(op.inputs[0]);
    const int labels = value_of(op.inputs[1]);
    kind_.values[at(labels)].input = 1;
    const int y = value_of(op.outputs[0]);
    const Dims st = dims_at(labels);
    const int m = inside("loss.max", st);
    const int l = inside("loss.sum", st);
    const int t = inside("loss.target", st);
    KernelWriter k = writer("logit-max");
    const std::string tokens = k.list(st);
    const std::string logits = k.list(dims_at(z));
    const std::string v = k.named(dims_at(z).back());
    k.input("z" + logits);
    k.output("m" + tokens);
    k.line("m" + tokens + " = max " + v + " of id(z" + logits + ")");
    apply(k, {z}, {m});
    KernelWriter sums = writer("loss-sums");
    for (const std::string& input : {"z" + logits, "m" + tokens, "labels" + tokens}) {
      sums.input(input);
    }
    sums.output("l" + tokens);
    sums.output("t" + tokens);
    sums.line("e" + logits + " = exp_shift(z" + logits + ", m" + tokens + ")");
    sums.line("l" + tokens + " = e" + logits);
    sums.line("h" + logits + " = onehot(labels" + tokens + "; at " + v + ")");
    sums.line("t" + tokens + " = h" + logits + " * z" + logits);
    apply(sums, {z, m, labels}, {l, t});
    KernelWriter loss = writer("loss");
    for (const std::string& input : {"l" + tokens, "m" + tokens, "t" + tokens}) loss.input(input);
    loss.output("y" + tokens);
    loss.line("g" + tokens + " = log(l" + tokens + ")");
    loss.line("y" + tokens + " = g" + tokens + " + m" + tokens + " - t" + tokens);
    apply(loss, {l, m, t}, {y});
    kind_.loss = y;
  }

  // --- shared tensors

  void tie_parameters() {
    for (std::size_t k = 0; k < model_.kinds.size(); ++k) {
      const UnitKind& kind = model_.kinds[k];
      for (std::size_t p = 0; p < kind.parameters.size(); ++p) {
        if (!kind.parameters[p].tied) continue;
        const Parameter::Tie& tie = *kind.parameters[p].tied;
        const auto owner = std::ranges::find(model_.units, tie.kind, &Unit::kind);
        ensure(owner != model_.units.end(), "a shared tensor has an owner");
        const std::vector<int>& own = out_.kinds[at(tie.kind)].pieces[at(tie.parameter)];
        const std::vector<int>& here = out_.kinds[k].pieces[p];
        ensure(own.size() == here.size(), "both uses of a shared tensor have its pieces");
        for (std::size_t i = 0; i < here.size(); ++i) {
          out_.reference.kinds[k].parameters[at(here[i])].tied = {
              .unit = static_cast<int>(owner - model_.units.begin()), .parameter = own[i]};
        }
      }
    }
  }

  const Model& model_;
  const ReferenceRequest& request_;
  ModelReference out_;
  std::map<std::string, int> known_;  // kernels by text
  int sample_ = 0, token_ = 0;
  Heads heads_;
  std::int64_t experts_ = 0, choices_of_kind_ = 0;
  const UnitKind* source_ = nullptr;
  ReferenceKind kind_;
  KindMap map_;
  int operator_ = 0;
};

}  // namespace

ModelReference reference_of(const Model& model, const ReferenceRequest& request) {
  return Builder(model, request).build();
}

}  // namespace placet

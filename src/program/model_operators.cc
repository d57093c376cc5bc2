// The kernels that each operator of a model is made of.
#include <algorithm>

#include "model/moments.h"
#include "program/kind_builder.h"
#include "program/model_losses.h"
#include "units/at.h"
#include "units/error.h"

namespace placet {
namespace {

void rotate(KindBuilder& unit, int from, int to);
void add_joined_linear(KindBuilder& unit, const Operator& op);
std::string value_list(KindBuilder& unit, const KernelWriter& k, const Dims& dims, int size,
                       bool keys = true);
std::string bracket(std::string text);

/// A table with a row for each of several entries, in several columns.
int table_of(KindBuilder& unit, const Operator& op) {
  const int table = unit.whole_parameter(op.parameters[0]);
  const Dims& dims = unit.dims_at(table);
  if (dims.size() == 2 && dims[0] != dims[1]) return table;
  throw InputError({.where = "model",
                    .value = op.name,
                    .problem = "is a table of one row or one column, which has no step program",
                    .allowed = "a vocabulary and a hidden size of two or more"});
}

void add_embedding(KindBuilder& unit, const Operator& op) {
  const int ids = unit.value_of(op.inputs[0]);
  if (unit.source().role == UnitRole::mtp) unit.set_input(ids, kLabels);
  const int w = table_of(unit, op);
  const int y = unit.value_of(op.outputs[0]);
  KernelWriter k = unit.writer("lookup");
  const Dims e = {unit.sample(), unit.token(), unit.dims_at(w)[0]};
  k.input("ids" + k.list(unit.dims_at(ids)));
  k.input("w" + k.list(unit.dims_at(w)));
  k.output("y" + k.list(unit.dims_at(y)));
  k.line("e" + k.list(e) + " = onehot(ids" + k.list(unit.dims_at(ids)) + "; at " + k.named(e[2]) +
         ")");
  k.line("y" + k.list(unit.dims_at(y)) + " = e" + k.list(e) + " * w" + k.list(unit.dims_at(w)));
  unit.apply(k, {ids, w}, {y});
}

void add_position(KindBuilder& unit, const Operator& op) {
  const int x = unit.value_of(op.inputs[0]);
  const int p = table_of(unit, op);
  const int y = unit.value_of(op.outputs[0]);
  KernelWriter k = unit.writer("position");
  const Dims e = {unit.token(), unit.dims_at(p)[0]};
  k.input("x" + k.list(unit.dims_at(x)));
  k.input("p" + k.list(unit.dims_at(p)));
  k.output("y" + k.list(unit.dims_at(y)));
  k.line("e" + k.list(e) + " = position(; at " + k.named(e[0]) + " " + k.named(e[1]) + ")");
  k.line("y" + k.list(unit.dims_at(y)) + " = x" + k.list(unit.dims_at(x)) + " + e" + k.list(e) +
         " * p" + k.list(unit.dims_at(p)));
  unit.apply(k, {x, p}, {y});
}

/// Dims that both an input and an output of a contraction have are not contracted, except where
/// the weight maps a dim to itself: then the weight's row has a mark.
void add_linear(KindBuilder& unit, const Operator& op) {
  if (op.inputs.size() != 1) return add_joined_linear(unit, op);
  const int x = unit.value_of(op.inputs[0]);
  const std::vector<Dim>& input = unit.source().values[at(op.inputs[0])].dims;
  const Dims in = unit.dims_of({input.back()});
  const Parameter& weight = unit.source().parameters[at(op.parameters[0])];
  const Dims experts = weight.dims.front().index == Index::expert && weight.dims.size() == 3
                           ? unit.dims_of({weight.dims.front()})
                           : Dims{};
  KernelWriter k = unit.writer("linear");
  k.input("x" + k.list(unit.dims_at(x)));
  std::vector<int> inputs{x};
  std::vector<int> outputs;
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    const std::string n = op.outputs.size() == 1 ? "" : std::to_string(i);
    const Dims out = unit.dims_of({unit.source().values[at(op.outputs[i])].dims.back()});
    const int w = unit.parameter(op.parameters[0], joined(experts, joined(out, in)));
    const int y = unit.value_of(op.outputs[i]);
    Dims marked;  // dims of the output that the input contracts
    for (int d : out) {
      if (std::ranges::find(in, d) != in.end()) marked.push_back(d);
    }
    const std::string row = k.list(experts) + k.list(out, marked) + k.list(in);
    const std::string weights = ("w" + n).append(bracket(row));
    k.input(weights);
    const Dims lead = without(unit.dims_at(x), in);
    const std::string result = ("y" + n).append(bracket(k.list(lead) + k.list(out, marked)));
    k.output(result);
    k.line((result + " = x").append(k.list(unit.dims_at(x))).append(" * ").append(weights));
    inputs.push_back(w);
    outputs.push_back(y);
    ensure(unit.dims_at(y).size() == lead.size() + out.size(),
           "a contraction's result has its dims");
  }
  unit.apply(k, inputs, outputs);
}

/// A contraction with inputs side by side: each has its own columns of the matrix, a piece of it.
void add_joined_linear(KindBuilder& unit, const Operator& op) {
  ensure(op.outputs.size() == 1, "inputs side by side are contracted to one output");
  const int y = unit.value_of(op.outputs[0]);
  const Dims out = unit.dims_of({unit.source().values[at(op.outputs[0])].dims.back()});
  KernelWriter k = unit.writer("linear");
  std::vector<int> inputs;
  std::string sum;
  std::string result;
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    const std::string n = std::to_string(i);
    const int x = unit.value_of(op.inputs[i]);
    const Dims in = unit.dims_of({unit.source().values[at(op.inputs[i])].dims.back()});
    Dims marked;
    for (int d : out) {
      if (std::ranges::find(in, d) != in.end()) marked.push_back(d);
    }
    const std::string columns = "w" + n + bracket(k.list(out, marked) + k.list(in));
    const std::string term = "x" + n + k.list(unit.dims_at(x));
    k.input(term);
    k.input(columns);
    sum.append(i == 0 ? "" : " + ").append(term).append(" * ").append(columns);
    result = "y" + bracket(k.list(without(unit.dims_at(x), in)) + k.list(out, marked));
    inputs.push_back(x);
    inputs.push_back(unit.parameter(op.parameters[0], joined(out, in)));
  }
  k.output(result);
  k.line(result + " = " + sum);
  unit.apply(k, inputs, {y});
}

/// "[a b][c]" as "[a b c]".
std::string bracket(std::string text) {
  for (std::size_t i = text.find("]["); i != std::string::npos; i = text.find("][")) {
    const bool empty = text[i - 1] == '[' || text[i + 2] == ']';
    text.replace(i, 2, empty ? "" : " ");
  }
  return text;
}

void add_bias(KindBuilder& unit, const Operator& op) {
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    const int x = unit.value_of(op.inputs[i]);
    const int y = unit.value_of(op.outputs[i]);
    const Parameter& from = unit.source().parameters[at(op.parameters[0])];
    Dims dims = from.dims.size() == 2 ? unit.dims_of({from.dims.front()}) : Dims{};
    dims = joined(dims, unit.dims_of({unit.source().values[at(op.inputs[i])].dims.back()}));
    const int b = unit.parameter(op.parameters[0], dims);
    KernelWriter k = unit.writer("bias");
    k.input("x" + k.list(unit.dims_at(x)));
    k.input("b" + k.list(unit.dims_at(b)));
    k.output("y" + k.list(unit.dims_at(y)));
    k.line("y" + k.list(unit.dims_at(y)) + " = x" + k.list(unit.dims_at(x)) + " + b" +
           k.list(unit.dims_at(b)));
    unit.apply(k, {x, b}, {y});
  }
}

/// A norm of heads that lie side by side along one dim: the statistics of each, and the weights
/// that all share, are looked up by where an entry stands.
void add_norm_of_heads(KindBuilder& unit, const Operator& op) {
  const int x = unit.value_of(op.inputs[0]);
  const int q = unit.value_of(op.internals.at(internal::kNormStatistics));
  const int y = unit.value_of(op.outputs[0]);
  const Dims entries = without(unit.dims_at(x), unit.dims_at(q));
  const Dims heads = without(unit.dims_at(q), unit.dims_at(x));
  KernelWriter stat = unit.writer("norm-sum");
  const std::string from = "x" + stat.list(unit.dims_at(x));
  const std::string sums = "q" + stat.list(unit.dims_at(q));
  stat.input(from);
  stat.output(sums);
  stat.line(sums + " = power-of-head(" + from + "; whole" + unit.names(entries) + "; at" +
            unit.names(heads) + ")");
  unit.apply(stat, {x}, {q});
  KernelWriter k = unit.writer("norm");
  const std::string dims = k.list(unit.dims_at(x));
  std::vector<int> inputs{x, q};
  k.input("x" + dims);
  k.input("q" + k.list(unit.dims_at(q)));
  k.output("y" + dims);
  Dims whole = heads;
  std::string operands = "x" + dims + ", q" + k.list(unit.dims_at(q));
  for (std::size_t i = 0; i < op.parameters.size(); ++i) {
    const int w = unit.whole_parameter(op.parameters[i]);
    const std::string name = (i == 0 ? "w" : "b") + k.list(unit.dims_at(w));
    inputs.push_back(w);
    k.input(name);
    operands.append(", ").append(name);
    whole = with(whole, without(unit.dims_at(w), unit.dims_at(x)));
  }
  k.line("y" + dims + " = normal-of-head(" + operands + "; whole" + unit.names(whole) + "; at" +
         unit.names(entries) + ")");
  unit.apply(k, inputs, {y});
}

/// What a norm knows of its entries: one value; of a layer norm two, of the same dims.
std::vector<int> statistics_of(KindBuilder& unit, const Operator& op) {
  const int v = op.internals.at(internal::kNormStatistics);
  const Value& value = unit.source().values[at(v)];
  const Dim& last = value.dims.back();
  if (last.index != Index::other || last.size != kMoments) return {unit.value_of(v)};
  const std::vector<Dim> each(value.dims.begin(), value.dims.end() - 1);
  std::vector<int> values;
  for (const char* moment : {".mean", ".deviation"}) {
    values.push_back(unit.inside(value.name + moment, unit.dims_of(each)));
  }
  return values;
}

/// A statistic as a sum of a function of each entry: one of its own for a mean.
void add_norm_sum(KindBuilder& unit, int x, int q, bool of_entries) {
  KernelWriter k = unit.writer(of_entries ? "norm-mean" : "norm-sum");
  const std::string entries = "x" + k.list(unit.dims_at(x));
  const std::string result = "q" + k.list(unit.dims_at(q));
  k.input(entries);
  k.output(result);
  k.line(result + " = sum" + unit.names(without(unit.dims_at(x), unit.dims_at(q))) + " of " +
         (of_entries ? "entry(" : "power(") + entries + ")");
  unit.apply(k, {x}, {q});
}

/// Nothing is assumed of a norm but that it depends on an entry and on sums over its dims.
void add_norm(KindBuilder& unit, const Operator& op) {
  const int x = unit.value_of(op.inputs[0]);
  const std::vector<int> statistics = statistics_of(unit, op);
  const int y = unit.value_of(op.outputs[0]);
  if (!without(unit.dims_at(statistics.front()), unit.dims_at(x)).empty()) {
    return add_norm_of_heads(unit, op);
  }
  for (int q : statistics) add_norm_sum(unit, x, q, q != statistics.back());
  KernelWriter k = unit.writer("norm");
  const std::string dims = k.list(unit.dims_at(x));
  std::vector<int> inputs{x};
  k.input("x" + dims);
  k.output("y" + dims);
  std::string taken = "x" + dims;
  for (int q : statistics) {
    const std::string name = (q == statistics.back() ? "q" : "m") + k.list(unit.dims_at(q));
    inputs.push_back(q);
    k.input(name);
    taken += ", " + name;
  }
  k.line("n" + dims + " = normal(" + taken + ")");
  std::string sum = "n" + dims;
  for (std::size_t i = 0; i < op.parameters.size(); ++i) {
    const int w = unit.whole_parameter(op.parameters[i]);
    const std::string name = i == 0 ? "w" : "b";
    inputs.push_back(w);
    k.input(name + k.list(unit.dims_at(w)));
    sum += (i == 0 ? " * " : " + ") + name + k.list(unit.dims_at(w));
  }
  k.line("y" + dims + " = " + sum);
  unit.apply(k, inputs, {y});
}

/// Queries, then keys; the part of the keys that all heads share is joined to them.
void add_rotary(KindBuilder& unit, const Operator& op) {
  rotate(unit, op.inputs[0], op.outputs[0]);
  if (op.inputs.size() == 2) return rotate(unit, op.inputs[1], op.outputs[1]);
  const int still = unit.value_of(op.inputs[1]);
  const int shared = unit.value_of(op.inputs[2]);
  const int y = unit.value_of(op.outputs[1]);
  const int size = unit.dims_at(y).back();
  const int from = unit.dims_at(still).back();
  const int tail = unit.dims_at(shared).back();
  KernelWriter k = unit.writer("join-keys");
  const int other = unit.value_of(op.inputs[0]);
  k.input("x" + k.list(unit.dims_at(still)));
  k.input("s" + k.list(unit.dims_at(shared)));
  k.input("q" + k.list(unit.dims_at(other)));
  k.output("y" + k.list(unit.dims_at(y)));
  if (from == size || tail == size || from == tail) refuse_part("latent attention of equal sizes");
  k.line("a" + k.list({from, size}) + " = rotation(; at " + k.named(from) + " " + k.named(size) +
         ")");
  k.line("b" + k.list({unit.token(), tail, size}) + " = rotation(; at " + k.named(unit.token()) +
         " " + k.named(tail) + " " + k.named(size) + ")");
  k.line("y" + k.list(unit.dims_at(y)) + " = x" + k.list(unit.dims_at(still)) + " * a" +
         k.list({from, size}) + " + s" + k.list(unit.dims_at(shared)) + " * b" +
         k.list({unit.token(), tail, size}));
  unit.apply(k, {still, shared, other}, {y});
}

/// A matrix for each position, the same for all models: nothing is assumed of it.
void rotate(KindBuilder& unit, int from, int to) {
  const int x = unit.value_of(from);
  const int y = unit.value_of(to);
  const int e = unit.dims_at(x).back();
  KernelWriter k = unit.writer("rotary");
  const std::string mark = k.named(e) + "'";
  k.input("x" + k.list(unit.dims_at(x)));
  k.output("y" + k.list(unit.dims_at(y), {e}));
  k.line("dim " + mark + " like " + k.named(e));
  const std::string r = "r[" + k.named(unit.token()) + " " + k.named(e) + " " + mark + "]";
  k.line(r + " = rotation(; at " + k.named(unit.token()) + " " + k.named(e) + " " + mark + ")");
  k.line("y" + k.list(unit.dims_at(y), {e}) + " = x" + k.list(unit.dims_at(x)) + " * " + r);
  unit.apply(k, {x}, {y});
}

/// Softmax without its shift, which changes nothing over the reals: exp(c q k), its sum over the
/// keys, the values weighted by it, and their ratio. Of the scale c of scores only the size of a
/// head is known; scores that are limited go through a function of their own. A sink is a score of
/// a head that no value stands behind: it is in the sum alone.
void add_attention(KindBuilder& unit, const Operator& op) {
  if (op.inputs.size() > 3) refuse_part("attention that selects its keys");
  const int q = unit.value_of(op.inputs[0]);
  const int key = unit.value_of(op.inputs[1]);
  const int v = unit.value_of(op.inputs[2]);
  const int o = unit.value_of(op.outputs[0]);
  const int size = unit.dims_at(q).back();
  const Dims l_dims = without(unit.dims_at(q), {size});
  const int l = unit.value_of(op.internals.at(internal::kLogSumExp));
  ensure(unit.dims_at(l) == l_dims, "attention keeps one number per token and head");
  KernelWriter k = unit.writer("attention");
  const std::string keys = k.named(unit.token()) + "'";
  const std::string v_list = value_list(unit, k, unit.dims_at(v), size);
  const std::string o_list = value_list(unit, k, unit.dims_at(o), size, false);
  const std::string w = bracket(k.list(l_dims) + "[" + keys + "]");
  k.input("q" + k.list(unit.dims_at(q)));
  k.input("k" + k.list(unit.dims_at(key), {unit.token()}));
  k.input("v" + v_list);
  k.output("o" + o_list);
  k.output("l" + k.list(l_dims));
  std::vector<int> inputs{q, key, v};
  std::string sink;
  for (const int parameter : op.parameters) {
    inputs.push_back(unit.whole_parameter(parameter));
    const std::string each = k.list(unit.dims_at(inputs.back()));
    const std::string logit = "s" + each;
    std::string weight = "z" + each;
    k.input(logit);
    sink.append(" + ").append(weight);
    k.line(weight.append(" = exp(").append(logit).append(")"));
  }
  const std::string queried = "q" + k.list(unit.dims_at(q));
  const std::string keyed = "k" + k.list(unit.dims_at(key), {unit.token()});
  const std::string seen = "; at " + k.named(unit.token()) + " " + keys + ")";
  const std::string window = op.window > 0 ? "." + std::to_string(op.window) : "";
  k.line("c[] = attention_scale." + std::to_string(k.extent(size)) + "()");
  if (op.caps_scores) {
    k.line("a" + w + " = " + queried + " * " + keyed + " * c[]");
    k.line("b" + w + " = capped(a" + w + ")");
    k.line("w" + w + " = exp_seen" + window + "(b" + w + seen);
  } else {
    k.line("w" + w + " = exp_dot" + window + "(" + queried + ", " + keyed + ", c[]; whole " +
           k.named(size) + seen);
  }
  const std::string of_keys = (sink.empty() ? "l" : "e") + k.list(l_dims);
  k.line(of_keys + " = w" + w);
  if (!sink.empty()) k.line("l" + k.list(l_dims) + " = " + of_keys + sink);
  const bool drops = op.internals.size() > 5;
  if (drops) k.line("m" + w + " = kept(; at" + unit.names(l_dims) + " " + keys + ")");
  k.line("n" + o_list + " = w" + w + (drops ? " * m" + w : "") + " * v" + v_list);
  k.line("o" + o_list + " = ratio(n" + o_list + ", l" + k.list(l_dims) + ")");
  unit.apply(k, inputs, {o, l}, drops ? op.name : "");
}

/// Dims of values: their tokens are those of the keys, their size has a name of its own.
std::string value_list(KindBuilder& unit, const KernelWriter& k, const Dims& dims, int size,
                       bool keys) {
  std::string text = "[";
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (i > 0) text += ' ';
    text += k.named(dims[i]);
    if (keys && dims[i] == unit.token()) text += "'";
    if (i + 1 == dims.size() && dims[i] == size) text += "'";
  }
  return text + "]";
}

/// Of the head: what limits its logits (as "capped" does the scores of attention).
void add_activation(KindBuilder& unit, const Operator& op) {
  const std::string function = op.module == Module::head ? "capped.1" : "act";
  const int x = unit.value_of(op.inputs[0]);
  const int y = unit.value_of(op.outputs[0]);
  KernelWriter k = unit.writer("activation");
  k.input("x" + k.list(unit.dims_at(x)));
  k.output("y" + k.list(unit.dims_at(y)));
  k.line("y" + k.list(unit.dims_at(y)) + " = " + function + "(x" + k.list(unit.dims_at(x)) + ")");
  unit.apply(k, {x}, {y});
}

void add_gated(KindBuilder& unit, const Operator& op) {
  const int g = unit.value_of(op.inputs[0]);
  const int u = unit.value_of(op.inputs[1]);
  const int y = unit.value_of(op.outputs[0]);
  KernelWriter k = unit.writer("gated");
  k.input("g" + k.list(unit.dims_at(g)));
  k.input("u" + k.list(unit.dims_at(u)));
  k.output("y" + k.list(unit.dims_at(y)));
  const std::string gate = k.list(unit.dims_at(g));
  k.line("a" + gate + " = " + std::string(name_of(op.nonlinearity)) + "(g" + gate + ")");
  k.line("y" + k.list(unit.dims_at(y)) + " = a" + k.list(unit.dims_at(g)) + " * u" +
         k.list(unit.dims_at(u)));
  unit.apply(k, {g, u}, {y});
}

/// What the operators of a model stand for where they are no product of two values.
void refuse_mixing(const Operator& op) {
  if (op.outputs.size() > 1) refuse_part("keys and values of another block");
  if (op.name.starts_with("block_inputs")) refuse_part("inputs of blocks beside the stream");
  refuse_part("several residual streams");
}

/// A product of the inputs, summed over what the output does not have.
void add_product(KindBuilder& unit, const Operator& op, const std::string& name) {
  if (op.inputs.size() != 2 || op.outputs.size() != 1 || !op.parameters.empty()) {
    refuse_mixing(op);
  }
  const int a = unit.value_of(op.inputs[0]);
  const int b = unit.value_of(op.inputs[1]);
  const int y = unit.value_of(op.outputs[0]);
  KernelWriter k = unit.writer(name);
  k.input("a" + k.list(unit.dims_at(a)));
  k.input("b" + k.list(unit.dims_at(b)));
  k.output("y" + k.list(unit.dims_at(y)));
  k.line("y" + k.list(unit.dims_at(y)) + " = a" + k.list(unit.dims_at(a)) + " * b" +
         k.list(unit.dims_at(b)));
  unit.apply(k, {a, b}, {y});
}

void add_dropout(KindBuilder& unit, const Operator& op) {
  const int x = unit.value_of(op.inputs[0]);
  const int m = unit.value_of(op.internals.at(internal::kDropoutMask));
  const int y = unit.value_of(op.outputs[0]);
  KernelWriter k = unit.writer("dropout");
  const std::string dims = k.list(unit.dims_at(x));
  k.input("x" + dims);
  k.output("y" + dims);
  k.output("m" + dims);
  k.line("m" + dims + " = kept(; at" + unit.names(unit.dims_at(x)) + ")");
  k.line("y" + dims + " = x" + dims + " * m" + dims);
  unit.apply(k, {x}, {y, m}, op.name);
}

void add_sum(KindBuilder& unit, const Operator& op) {
  KernelWriter k = unit.writer("add");
  std::vector<int> inputs;
  std::string sum;
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    const int x = unit.value_of(op.inputs[i]);
    const std::string name = "x" + std::to_string(i) + k.list(unit.dims_at(x));
    k.input(name);
    sum += (i == 0 ? "" : " + ") + name;
    inputs.push_back(x);
  }
  const int y = unit.value_of(op.outputs[0]);
  k.output("y" + k.list(unit.dims_at(y)));
  k.line("y" + k.list(unit.dims_at(y)) + " = " + sum);
  unit.apply(k, inputs, {y});
}

void add_router(KindBuilder& unit, const Operator& op) {
  const int z = unit.value_of(op.inputs[0]);
  const int g = unit.value_of(op.outputs[0]);
  const int m = unit.value_of(op.outputs[1]);
  KernelWriter k = unit.writer("route");
  const int scores = unit.dims_at(z).back();
  const std::string expert = k.named(unit.dims_at(g).back());
  k.input("z" + k.list(unit.dims_at(z)));
  std::vector<int> inputs{z};
  std::string operands = "z" + k.list(unit.dims_at(z));
  for (std::size_t i = 0; i < op.parameters.size(); ++i) {
    const int b = unit.whole_parameter(op.parameters[i]);
    const std::string name = (i == 0 ? "b" : "b" + std::to_string(i)) + k.list(unit.dims_at(b));
    inputs.push_back(b);
    k.input(name);
    operands += ", " + name;
  }
  k.output("g" + k.list(unit.dims_at(g)));
  k.output("m" + k.list(unit.dims_at(m)));
  k.line("dim " + expert + " like " + k.named(scores));
  const std::string rest = "(" + operands + "; whole " + k.named(scores) + ")";
  const std::string count = "." + std::to_string(unit.choices());
  k.line("g" + k.list(unit.dims_at(g)) + " = route" + count + rest);
  k.line("m" + k.list(unit.dims_at(m)) + " = chosen" + count + rest);
  unit.apply(k, inputs, {g, m});
  if (unit.balance() != ReferenceRequest::Balance::none) add_balance_loss(unit, inputs);
}

/// Inputs and parameters of a function, one after the other.
struct Given {
  std::vector<int> values;
  std::string operands;  // "x0[sample token], x1[token]"
  Dims dims;             // of all
};

Given add_inputs(KindBuilder& unit, const Operator& op, KernelWriter& k) {
  Given given;
  for (int v : op.inputs) given.values.push_back(unit.value_of(v));
  for (int p : op.parameters) given.values.push_back(unit.whole_parameter(p));
  for (std::size_t i = 0; i < given.values.size(); ++i) {
    const Dims& dims = unit.dims_at(given.values[i]);
    const std::string name = "x" + std::to_string(i) + k.list(dims);
    k.input(name);
    given.operands += (i == 0 ? "" : ", ") + name;
    given.dims = with(given.dims, dims);
  }
  return given;
}

/// Channel by channel, over whole sequences; taps are dims of the weight alone.
void add_convolution(KindBuilder& unit, const Operator& op) {
  const int y = unit.value_of(op.outputs[0]);
  KernelWriter k = unit.writer("convolution");
  const Given given = add_inputs(unit, op, k);
  const std::string dims = k.list(unit.dims_at(y));
  k.output("y" + dims);
  const Dims whole = with({unit.token()}, without(given.dims, unit.dims_at(y)));
  const std::string call = " = convolution(" + given.operands + "; whole" + unit.names(whole) + ")";
  const std::string after(name_of(op.nonlinearity));
  if (op.nonlinearity == Nonlinearity::none) {
    k.line("y" + dims + call);
  } else {
    k.line("c" + dims + call);
    k.line("y" + dims + " = " + after + "(c" + dims + ")");
  }
  unit.apply(k, given.values, {y});
}

/// A function of whole sequences, one for each piece of the channels (a group, a key head). Fixed
/// decays depend on which of all heads it is.
void add_scan(KindBuilder& unit, const Operator& op) {
  if (op.recurrence == Recurrence::input_gate) return add_product(unit, op, "multiply");
  const int y = unit.value_of(op.outputs[0]);
  const std::string name(name_of(op.recurrence));
  KernelWriter k = unit.writer(name);
  const Given given = add_inputs(unit, op, k);
  const std::string result = "y" + k.list(unit.dims_at(y));
  k.output(result);
  const int piece = unit.dims_at(y).at(2);
  const Dims apart{unit.sample(), piece};
  const Dims whole = with({unit.token()}, without(with(given.dims, unit.dims_at(y)), apart));
  const bool fixed = op.recurrence == Recurrence::linear_attention;
  k.line(result + " = " + name + (fixed ? "." + std::to_string(k.extent(piece)) : "") + "(" +
         given.operands + "; whole" + unit.names(whole) + (fixed ? "; at " + k.named(piece) : "") +
         ")");
  unit.apply(k, given.values, {y});
}

}  // namespace

void add_operator(KindBuilder& unit, const Operator& op) {
  switch (op.kind) {
    case OpKind::embedding:
      return add_embedding(unit, op);
    case OpKind::position:
      return add_position(unit, op);
    case OpKind::linear:
    case OpKind::grouped_linear:
      return add_linear(unit, op);
    case OpKind::bias:
      return add_bias(unit, op);
    case OpKind::norm:
      return add_norm(unit, op);
    case OpKind::rotary:
      return add_rotary(unit, op);
    case OpKind::attention:
      return add_attention(unit, op);
    case OpKind::activation:
      return add_activation(unit, op);
    case OpKind::gated_activation:
      return add_gated(unit, op);
    case OpKind::multiply:
      return add_product(unit, op, "multiply");
    case OpKind::dropout:
      return add_dropout(unit, op);
    case OpKind::residual_add:
      return add_sum(unit, op);
    case OpKind::router:
      return add_router(unit, op);
    case OpKind::dispatch:
      return add_product(unit, op, "dispatch");
    case OpKind::combine:
      return add_product(unit, op, "combine");
    case OpKind::convolution:
      return add_convolution(unit, op);
    case OpKind::scan:
      return add_scan(unit, op);
    case OpKind::loss:
      return add_loss(unit, op);
  }
}

}  // namespace placet

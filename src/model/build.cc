#include "model/build.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "model/build_parts.h"
#include "units/checked.h"
#include "units/error.h"

namespace placet {
namespace {

OperatorPlace residual(std::string name, Module module, ClassSet classes = 0) {
  return {
      .name = std::move(name), .region = Region::residual, .module = module, .classes = classes};
}

Dim hidden_dim(const Architecture& a) { return dim(Index::hidden, a.hidden); }

/// Rows of the embedding are as wide as the stream, or narrower and then projected.
Dim row_dim(const Architecture& a) {
  return a.embedding.width == a.hidden ? hidden_dim(a) : dim(Index::other, a.embedding.width);
}

// --- blocks

struct BranchResult {
  Mixed mixed;
  const Branch* branch = nullptr;
  std::string name;
};

std::string name_of_mixer(const Mixer& mixer) {
  struct Visitor {
    std::string operator()(const Attention&) const { return "attention"; }
    std::string operator()(const StateSpace&) const { return "state"; }
    std::string operator()(const Mlp&) const { return "mlp"; }
    std::string operator()(const Moe&) const { return "moe"; }
    std::string operator()(const Projection& p) const {
      return p.replaces_attention ? "attention" : "mlp";
    }
  };
  return std::visit(Visitor{}, mixer);
}

Mixed build_mixer(UnitBuilder& unit, const Mixer& mixer, int input, int stream) {
  struct Visitor {
    UnitBuilder& unit;
    int input;
    int stream;
    Mixed operator()(const Attention& a) const { return build_attention(unit, a, input); }
    Mixed operator()(const StateSpace& s) const { return build_state_space(unit, s, input); }
    Mixed operator()(const Mlp& m) const { return build_mlp(unit, m, input); }
    Mixed operator()(const Moe& m) const { return build_moe(unit, m, input, stream); }
    Mixed operator()(const Projection& p) const { return build_projection(unit, p, input); }
  };
  return std::visit(Visitor{unit, input, stream}, mixer);
}

/// Whether a sublayer's results may be added before they are whole: nothing that needs whole values
/// stands between the last contraction and the sum, except biases, which may follow it.
bool sums_partials(const UnitBuilder& unit, const std::vector<BranchResult>& results) {
  return results.size() > 1 && std::ranges::all_of(results, [&unit](const BranchResult& r) {
           return unit.region_of(r.mixed.value) == Region::parallel && r.branch->dropout == 0 &&
                  r.branch->norm_after.kind == NormKind::none;
         });
}

int add_bias(UnitBuilder& unit, const Mixed& mixed, int value) {
  if (!mixed.bias) return value;
  return unit.bias(mixed.bias->first, {value}, mixed.bias->second).front();
}

/// The sum of what the branches return, to a stream that it does not join yet.
int sum_of(UnitBuilder& unit, const Sublayer& sublayer, const std::vector<BranchResult>& results) {
  const std::string name = results.front().name;
  std::vector<int> terms;
  for (const BranchResult& r : results) {
    const int value = add_bias(unit, r.mixed, r.mixed.value);
    terms.push_back(unit.norm(r.branch->norm_after, residual(r.name + ".norm_after", Module::norm),
                              value, unit.dims_of(value)));
  }
  const int sum = terms.size() == 1 ? terms.front()
                                    : unit.residual_add(name + ".sum", std::move(terms),
                                                        Region::residual, Module::residual);
  return unit.norm(sublayer.norm_sum, residual(name + ".norm_sum", Module::norm), sum,
                   unit.dims_of(sum));
}

int join(UnitBuilder& unit, const Sublayer& sublayer, const std::vector<BranchResult>& results,
         int stream) {
  const std::string name = results.front().name + ".residual";
  if (sublayer.norm_sum.kind != NormKind::none) {
    const int sum = sum_of(unit, sublayer, results);
    return unit.residual_add(name, {stream, sum}, Region::residual, Module::residual);
  }
  if (sums_partials(unit, results)) {
    std::vector<int> partials;
    partials.reserve(results.size());
    for (const BranchResult& r : results) partials.push_back(r.mixed.value);
    int sum = unit.residual_add(results.front().name + ".sum", std::move(partials),
                                Region::parallel, Module::residual);
    for (const BranchResult& r : results) sum = add_bias(unit, r.mixed, sum);
    return unit.residual_add(name, {stream, sum}, Region::residual, Module::residual);
  }
  std::vector<int> terms{stream};
  for (const BranchResult& r : results) {
    int value = add_bias(unit, r.mixed, r.mixed.value);
    value = unit.norm(r.branch->norm_after, residual(r.name + ".norm_after", Module::norm), value,
                      unit.dims_of(value));
    terms.push_back(unit.dropout(r.name + ".dropout", value, r.branch->dropout, Module::residual));
  }
  return unit.residual_add(name, std::move(terms), Region::residual, Module::residual);
}

/// Streams beside the one that a block's sublayers work on, from where they are read to where
/// they take the result back.
struct OpenStreams {
  int block_input = 0;  // the stream as the block got it
  std::optional<MixedStreams> mixed;
  const StreamMixing* mixing = nullptr;
};

int build_sublayer(UnitBuilder& unit, const Architecture& a, const Sublayer& sublayer, int stream,
                   OpenStreams& open) {
  ensure(!sublayer.branches.empty(), "a sublayer has a branch");
  std::vector<BranchResult> results;
  const std::string first = name_of_mixer(sublayer.branches.front().mixer);
  const int before = stream;
  if (sublayer.mixing) {
    open.mixed = read_streams(unit, *sublayer.mixing, first, stream, hidden_dim(a));
    open.mixing = &*sublayer.mixing;
    stream = open.mixed->read;
  }
  int read = stream;
  for (const Branch& branch : sublayer.branches) {
    const std::string name = name_of_mixer(branch.mixer);
    switch (branch.input) {
      case Branch::Input::stream:
        read = stream;
        break;
      case Branch::Input::block:
        read = open.block_input;
        break;
      case Branch::Input::same:
        break;
    }
    read = unit.norm(branch.norm, residual(name + ".norm", Module::norm), read, unit.dims_of(read));
    results.push_back({build_mixer(unit, branch.mixer, read, stream), &branch, name});
  }
  if (sublayer.mixing && sublayer.returns) {
    // The streams carry what a residual sum would.
    return return_to_streams(unit, *open.mixing, first, *open.mixed,
                             sum_of(unit, sublayer, results));
  }
  // A mixing of one stream only changes what is read.
  int joined = join(unit, sublayer, results, a.streams == 1 ? before : stream);
  if (sublayer.returns) {
    ensure(open.mixed.has_value(), "streams are read before they are written");
    joined = return_to_streams(unit, *open.mixing, first, *open.mixed, joined);
  }
  return unit.norm(sublayer.norm_after, residual(results.front().name + ".norm_out", Module::norm),
                   joined, unit.dims_of(joined));
}

int build_block(UnitBuilder& unit, const Architecture& a, const BlockShape& shape, int stream) {
  OpenStreams open{.block_input = stream};
  for (const Sublayer& sublayer : shape) {
    stream = build_sublayer(unit, a, sublayer, stream, open);
  }
  return stream;
}

/// What tells blocks apart, for their names: "windowed attention moe".
std::string describe(const BlockShape& shape) {
  std::string text;
  for (const Sublayer& sublayer : shape) {
    for (const Branch& branch : sublayer.branches) {
      const auto* attention = std::get_if<Attention>(&branch.mixer);
      if (!text.empty()) text += " ";
      if (attention != nullptr && attention->window > 0) text += "windowed ";
      text += name_of_mixer(branch.mixer);
    }
  }
  return text.empty() ? "empty" : text;
}

// --- embedding and head

UnitKind build_embedding(const Architecture& a) {
  const EmbeddingShape& e = a.embedding;
  UnitBuilder unit(UnitRole::embedding, {}, ValueType::int64);
  ClassSet classes = bit_of(TensorClass::embedding);
  const ClassSet shared =
      a.head.tied ? static_cast<ClassSet>(classes | bit_of(TensorClass::head)) : classes;
  const Dim row = row_dim(a);
  const int tokens = unit.parameter(e.tokens, {dim(Index::vocab, e.vocabulary), row}, shared);
  int stream = unit.value("embedding.output", {row}, Region::parallel);
  unit.add(OpKind::embedding,
           {.name = "embedding", .region = Region::parallel, .module = Module::embedding},
           {{0}, {stream}, {tokens}});
  if (!e.projection.weight.empty()) {
    stream = unit.linear_one(residual("embedding.projection", Module::embedding, classes), stream,
                             {.weights = e.projection,
                              .out = hidden_dim(a),
                              .in = row,
                              .bias_region = Region::residual});
  }
  if (!e.positions.empty()) {
    const int positions = unit.parameter(
        e.positions, {dim(Index::position, e.position_rows), hidden_dim(a)}, classes);
    const int output = unit.value("position.output", {hidden_dim(a)}, Region::residual);
    unit.add(OpKind::position, residual("position", Module::embedding),
             {{stream}, {output}, {positions}});
    stream = output;
  }
  stream = unit.norm(e.norm, residual("embedding.norm", Module::norm), stream, {hidden_dim(a)});
  stream = unit.dropout("embedding.dropout", stream, e.dropout, Module::embedding);
  if (e.block_inputs) stream = join_block_inputs(unit, *e.block_inputs, 0, stream);
  open_streams(unit, a, stream);
  UnitKind kind = std::move(unit).take();
  kind.name = "embedding";
  return kind;
}

/// Marks the newest parameter as a second use of `owner`, which must look alike.
void tie_newest(UnitBuilder& unit, Parameter::Tie tie, const Parameter& owner) {
  Parameter& p = unit.parameters().back();
  p.tied = tie;
  p.classes = owner.classes;
}

void build_loss(UnitBuilder& unit, int logits, std::int64_t vocabulary) {
  const OperatorPlace place{.name = "loss", .region = Region::parallel, .module = Module::loss};
  const std::vector<Dim> dims{dim(Index::vocab, vocabulary)};
  const int labels = unit.value("loss.labels", {}, Region::residual, ValueType::int64);
  const auto inside = [&](const char* name, ValueType type) {
    return unit.value(name, dims, place.region, type);
  };
  std::vector<int> internals{
      inside("loss.logits_fp32", ValueType::fp32), inside("loss.probabilities", ValueType::fp32),
      inside("loss.gradient_fp32", ValueType::fp32), inside("loss.gradient", ValueType::compute)};
  for (const char* name : {"loss.max", "loss.sum", "loss.target"}) {
    internals.push_back(unit.value(name, {}, place.region, ValueType::fp32));
  }
  const int output = unit.value("loss.per_token", {}, place.region, ValueType::fp32);
  unit.add(OpKind::loss, place, {{logits, labels}, {output}, {}, std::move(internals)});
}

/// Output matrix and loss. `shared`: the kind and parameter whose storage the matrix is, if any.
void build_output(UnitBuilder& unit, const Architecture& a, int input, const std::string& name,
                  const std::pair<Parameter::Tie, const Parameter*>& shared) {
  const OperatorPlace place{.name = "head.output",
                            .region = Region::parallel,
                            .module = Module::head,
                            .classes = bit_of(TensorClass::head)};
  const Contraction what{.weights = {.weight = name, .bias = a.head.output.bias},
                         .out = dim(Index::vocab, a.embedding.vocabulary),
                         .in = unit.dims_of(input).back()};
  const auto partial = unit.contract(place, {input}, what);
  if (shared.second != nullptr) tie_newest(unit, shared.first, *shared.second);
  int logits = unit.bias(place, partial, what).front();
  if (a.head.caps_logits) {
    logits =
        unit.elementwise(OpKind::activation,
                         {.name = "head.cap", .region = Region::parallel, .module = Module::head},
                         {logits}, "head.capped");
  }
  build_loss(unit, logits, a.embedding.vocabulary);
}

UnitKind build_head(const Architecture& a, const Model& model) {
  UnitBuilder unit(UnitRole::head, {streams_dim(a)}, ValueType::compute);
  int stream = 0;
  if (a.head.mixing) {
    stream = read_streams(unit, *a.head.mixing, "head", stream, hidden_dim(a)).read;
  }
  stream = unit.norm(a.head.norm, residual("head.norm", Module::norm), stream, {hidden_dim(a)});
  if (!a.head.projection.weight.empty()) {
    stream = unit.linear_one(residual("head.projection", Module::head, bit_of(TensorClass::head)),
                             stream,
                             {.weights = a.head.projection,
                              .out = row_dim(a),
                              .in = hidden_dim(a),
                              .bias_region = Region::residual});
  }
  const Parameter* owner = a.head.tied ? &model.kinds.front().parameters.front() : nullptr;
  build_output(unit, a, stream, a.head.output.weight, {{.kind = 0, .parameter = 0}, owner});
  UnitKind kind = std::move(unit).take();
  kind.name = "head";
  return kind;
}

// --- multi-token prediction

/// The kind and parameter that own the output matrix, which is the newest kind's: the head.
Parameter::Tie output_owner(const Model& model) {
  const std::size_t head = model.kinds.size() - 1;
  const UnitKind& kind = model.kinds[head];
  ensure(kind.role == UnitRole::head, "the head stands before the prediction modules");
  const auto output = std::ranges::find(kind.operators, "head.output", &Operator::name);
  ensure(output != kind.operators.end(), "a head has an output matrix");
  const int position = output->parameters.front();
  const Parameter& matrix = kind.parameters.at(static_cast<std::size_t>(position));
  if (matrix.tied) return *matrix.tied;
  return {.kind = static_cast<int>(head), .parameter = position};
}

const Parameter& parameter_at(const Model& model, Parameter::Tie tie) {
  return model.kinds.at(static_cast<std::size_t>(tie.kind))
      .parameters.at(static_cast<std::size_t>(tie.parameter));
}

UnitKind build_prediction(const Architecture& a, const PredictionModule& m, const Model& model,
                          Parameter::Tie output) {
  const Dim hidden = hidden_dim(a);
  UnitBuilder unit(UnitRole::mtp, {hidden}, ValueType::compute);
  const int ids = unit.value("next_tokens", {}, Region::residual, ValueType::int64);
  const Parameter::Tie tokens_owner{.kind = 0, .parameter = 0};
  const int tokens = unit.parameter(parameter_at(model, tokens_owner));
  unit.parameters().back().name = m.tokens;
  tie_newest(unit, tokens_owner, parameter_at(model, tokens_owner));
  const int embedded = unit.value("embedding.output", {hidden}, Region::parallel);
  unit.add(OpKind::embedding,
           {.name = "embedding", .region = Region::parallel, .module = Module::embedding},
           {{ids}, {embedded}, {tokens}});
  const int next =
      unit.norm(m.embedding_norm, residual("embedding.norm", Module::norm), embedded, {hidden});
  const int past = unit.norm(m.stream_norm, residual("stream.norm", Module::norm), 0, {hidden});
  const Contraction both{.weights = m.projection,
                         .out = hidden,
                         .in = dim(Index::hidden, checked_multiply(hidden.size, 2))};
  int stream = unit.contract(residual("projection", Module::mlp), {next, past}, both).front();
  stream = build_block(unit, a, m.block, stream);
  stream = unit.norm(m.final_norm, residual("head.norm", Module::norm), stream, {hidden});
  build_output(unit, a, stream, m.output, {output, &parameter_at(model, output)});
  for (Parameter& p : unit.parameters()) {
    if (!p.tied) p.classes |= bit_of(TensorClass::mtp);
  }
  UnitKind kind = std::move(unit).take();
  kind.name = "prediction";
  return kind;
}

/// One kind serves modules that differ by number only.
void add_predictions(const Architecture& a, Model& model) {
  const Parameter::Tie output = output_owner(model);
  for (std::size_t i = 0; i < a.predictions.size(); ++i) {
    PredictionModule shape = a.predictions[i];
    const std::int64_t number = std::exchange(shape.number, 0);
    const bool repeats = i > 0 && [&] {
      PredictionModule before = a.predictions[i - 1];
      before.number = 0;
      return before == shape;
    }();
    if (!repeats) model.kinds.push_back(build_prediction(a, shape, model, output));
    model.units.push_back(
        {.kind = static_cast<int>(model.kinds.size()) - 1, .number = static_cast<int>(number)});
  }
}

// --- the whole

/// Adds a mixer's share of the figures, `uses` times.
void add_figures(const Mixer& mixer, std::int64_t uses, ModelFigures& figures) {
  if (const auto* a = std::get_if<Attention>(&mixer)) {
    // Scores take heads x head size, the sum of values heads x value size: their mean counts.
    const std::int64_t width =
        checked_multiply(a->heads, checked_add(a->head_size, a->value_head_size)) / 2;
    figures.attention_width = checked_add(figures.attention_width, checked_multiply(width, uses));
    if (a->heads <= figures.heads) return;
    figures.heads = a->heads;
    figures.kv_heads = a->kv_heads;
    figures.head_size = a->head_size;
  } else if (const auto* m = std::get_if<Moe>(&mixer)) {
    figures.experts = std::max(figures.experts, m->experts);
    figures.experts_per_token = std::max(figures.experts_per_token, m->experts_per_token);
  } else if (const auto* s = std::get_if<StateSpace>(&mixer)) {
    const bool fewest = figures.state_heads == 0 || s->pieces < figures.state_heads;
    if (fewest) figures.state_heads = s->pieces;
  }
}

void add_figures(const BlockShape& shape, std::int64_t uses, ModelFigures& figures) {
  for (const Sublayer& sublayer : shape) {
    for (const Branch& branch : sublayer.branches) add_figures(branch.mixer, uses, figures);
  }
}

std::vector<std::string> block_names(const Architecture& a) {
  if (a.shapes.size() == 1) return {"block"};
  std::map<std::string, int> seen;
  std::vector<std::string> names;
  for (const BlockShape& shape : a.shapes) {
    std::string name = describe(shape) + " block";
    const int again = ++seen[name];
    names.push_back(again == 1 ? name : name + " " + std::to_string(again));
  }
  return names;
}

void add_blocks(const Architecture& a, Model& model) {
  const int first = static_cast<int>(model.kinds.size());
  const std::vector<std::string> names = block_names(a);
  std::vector<std::int64_t> uses(a.shapes.size(), 0);
  for (std::size_t i = 0; i < a.order.size(); ++i) {
    ++uses.at(static_cast<std::size_t>(a.order[i]));
    model.units.push_back({.kind = first + a.order[i], .number = static_cast<int>(i)});
  }
  for (std::size_t i = 0; i < a.shapes.size(); ++i) {
    UnitBuilder unit(UnitRole::block, {streams_dim(a)}, ValueType::compute);
    build_block(unit, a, a.shapes[i], 0);
    model.kinds.push_back(std::move(unit).take());
    model.kinds.back().name = names[i];
    add_figures(a.shapes[i], uses[i], model.figures);
  }
}

bool has_unchanged(const UnitKind& kind, const Operator& op) {
  return std::ranges::any_of(op.parameters, [&](int p) {
    return !kind.parameters[static_cast<std::size_t>(p)].trainable;
  });
}

/// Whether a router adds to its scores what no gradient changes.
bool corrects_choices(const Model& model) {
  return std::ranges::any_of(model.kinds, [](const UnitKind& kind) {
    return std::ranges::any_of(kind.operators, [&](const Operator& op) {
      return op.kind == OpKind::router && has_unchanged(kind, op);
    });
  });
}

/// Whether heads have fixed decays.
bool has_fixed_decays(const Model& model) {
  return std::ranges::any_of(model.kinds, [](const UnitKind& kind) {
    return std::ranges::any_of(kind.operators, [](const Operator& op) {
      return op.kind == OpKind::scan && op.recurrence == Recurrence::linear_attention;
    });
  });
}

}  // namespace

Model build_model(const Architecture& a) {
  ensure(a.hidden > 0 && a.embedding.vocabulary > 0 && a.embedding.width > 0,
         "a model has a hidden size and a vocabulary");
  Model model{.name = a.name,
              .family = a.family,
              .stored = a.stored,
              .notes = a.notes,
              .left_out = a.left_out};
  model.figures = {.blocks = static_cast<std::int64_t>(a.order.size()),
                   .hidden = a.hidden,
                   .vocabulary = a.embedding.vocabulary,
                   .max_sequence = a.max_sequence};
  model.kinds.push_back(build_embedding(a));
  model.units.push_back({.kind = 0, .number = 0});
  add_blocks(a, model);
  model.kinds.push_back(build_head(a, model));
  model.units.push_back({.kind = static_cast<int>(model.kinds.size()) - 1, .number = 0});
  add_predictions(a, model);
  if (corrects_choices(model)) {
    model.left_out.emplace_back("how the bias of the choice of experts follows their loads");
  }
  if (has_fixed_decays(model)) {
    model.left_out.emplace_back("how decays of linear attention fall with the number of the block");
  }
  count_parameters(model);  // refuses sizes beyond 64 bits before anyone multiplies them further
  return model;
}

Model bare_model(std::int64_t parameters, std::int64_t units) {
  if (units < 1 || parameters < units) {
    throw InputError({.where = "units",
                      .value = std::to_string(units),
                      .problem = "does not divide the parameters into non-empty units",
                      .allowed = "1 to the number of parameters"});
  }
  if (units > kMostUnits) {
    throw InputError({.where = "units",
                      .value = std::to_string(units),
                      .problem = "is too many",
                      .allowed = "at most " + std::to_string(kMostUnits)});
  }
  Model model{.name = std::to_string(parameters) + " parameters", .family = "bare"};
  model.figures.blocks = units;
  const std::int64_t larger = parameters % units;
  const auto kind_of = [&](std::int64_t elements) {
    return UnitKind{
        .name = "block",
        .role = UnitRole::block,
        .parameters = {{.name = "unit.{}.parameters", .dims = {dim(Index::other, elements)}}}};
  };
  if (larger > 0) model.kinds.push_back(kind_of(parameters / units + 1));
  model.kinds.push_back(kind_of(parameters / units));
  if (larger > 0) model.kinds.back().name = "smaller block";
  for (std::int64_t i = 0; i < units; ++i) {
    const bool is_smaller = larger > 0 && i >= larger;
    model.units.push_back({.kind = is_smaller ? 1 : 0, .number = static_cast<int>(i)});
  }
  return model;
}

}  // namespace placet

// Attention: projections, q/k norms, rotation, the core, the output gate and projection.
#include "model/build_parts.h"
#include "units/checked.h"
#include "units/error.h"

namespace placet {
namespace {

constexpr ClassSet kAttentionClass = bit_of(TensorClass::attention);

/// What works on heads before the core: apart where they are made from latents.
OperatorPlace projection(const Attention& a, std::string name) {
  OperatorPlace place = token_mixer("attention." + std::move(name));
  if (a.latents) place.module = Module::latent_projection;
  return place;
}

OperatorPlace residual(std::string name) {
  OperatorPlace place = token_mixer("attention." + std::move(name));
  place.region = Region::residual;
  return place;
}

/// The values that the core works on.
struct Heads {
  int query = 0;
  int key = 0;
  int value = 0;
  std::vector<int> gate;        // none or one
  std::vector<int> selection;   // further inputs of the core: which keys to see
  std::vector<int> compressed;  // none or one: keys of several tokens each
};

Dim query_dim(const Attention& a) {
  return dim(Index::head, checked_multiply(a.heads, a.head_size), a.heads);
}
Dim key_dim(const Attention& a) {
  return dim(Index::kv_head, checked_multiply(a.kv_heads, a.head_size), a.kv_heads);
}
Dim value_dim(const Attention& a) {
  return dim(Index::kv_head, checked_multiply(a.kv_heads, a.value_head_size), a.kv_heads);
}

/// The query projection, which may hold the gate's rows too.
void project_query(UnitBuilder& unit, const Attention& a, int input, const Dim& in, Heads& heads) {
  const Dim query = query_dim(a);
  if (a.gate != AttentionGate::in_query) {
    heads.query = unit.linear_one(projection(a, "q"), input,
                                  {.weights = a.query, .out = query, .in = in, .order = a.order});
    return;
  }
  const Dim gate = dim(Index::head, checked_multiply(a.heads, a.value_head_size), a.heads);
  const Dim both = dim(Index::head, checked_add(query.size, gate.size), a.heads);
  const auto outputs = unit.linear(projection(a, "q"), input,
                                   {.weights = a.query,
                                    .out = both,
                                    .in = in,
                                    .parts = {{"attention.q", query}, {"attention.gate", gate}},
                                    .order = a.order});
  heads.query = outputs.at(0);
  heads.gate = {outputs.at(1)};
}

/// Keys and values of another block: what this one reads of them is not described, so that they
/// stand here as made of its own input, without weights.
void borrow_keys(UnitBuilder& unit, const Attention& a, int input, Heads& heads) {
  const OperatorPlace place = token_mixer("attention.borrowed");
  heads.key = unit.value("attention.k", {key_dim(a)}, place.region);
  heads.value = unit.value("attention.v", {value_dim(a)}, place.region);
  unit.add(OpKind::multiply, place, {{input}, {heads.key, heads.value}});
}

void project_keys(UnitBuilder& unit, const Attention& a, int input, Heads& heads) {
  if (a.values == ValueSource::other_block) return borrow_keys(unit, a, input, heads);
  const Dim in = unit.dims_of(input).back();
  heads.key = unit.linear_one(token_mixer("attention.k"), input,
                              {.weights = a.key, .out = key_dim(a), .in = in, .order = a.order});
  heads.value = heads.key;
  if (a.values != ValueSource::projected) return;
  heads.value =
      unit.linear_one(token_mixer("attention.v"), input,
                      {.weights = a.value, .out = value_dim(a), .in = in, .order = a.order});
}

Heads project_separately(UnitBuilder& unit, const Attention& a, int input) {
  const Dim in = unit.dims_of(input).back();
  Heads heads;
  project_query(unit, a, input, in, heads);
  project_keys(unit, a, input, heads);
  return heads;
}

Heads project_fused(UnitBuilder& unit, const Attention& a, int input) {
  const Index index = a.heads == a.kv_heads ? Index::head : Index::kv_head;
  const std::int64_t rows =
      checked_add(query_dim(a).size, checked_add(key_dim(a).size, value_dim(a).size));
  const Contraction what{.weights = a.fused,
                         .out = dim(index, rows, a.kv_heads),
                         .in = unit.dims_of(input).back(),
                         .parts = {{"attention.q", query_dim(a)},
                                   {"attention.k", key_dim(a)},
                                   {"attention.v", value_dim(a)}},
                         .order = a.order};
  const auto outputs = unit.linear(token_mixer("attention.qkv"), input, what);
  return {.query = outputs.at(0), .key = outputs.at(1), .value = outputs.at(2)};
}

/// Keys of several tokens each. They are held here as one per token: a part of what attention's own
/// keys take, and never more.
int compress(UnitBuilder& unit, const KeyCompressor& c, const std::string& name, int input) {
  const Dim in = unit.dims_of(input).back();
  const Dim width = dim(Index::other, c.width);
  const Dim size = dim(Index::other, c.size);
  const int keys = unit.linear_one(residual(name + "_compressor"), input,
                                   {.weights = c.key, .out = width, .in = in});
  const int gates = unit.linear_one(residual(name + "_compressor_gate"), input,
                                    {.weights = c.gate, .out = width, .in = in});
  const OperatorPlace place = residual(name + "_compress");
  const int offsets =
      unit.parameter(c.offsets, {dim(Index::other, c.tokens), width}, place.classes);
  const int output = unit.value(place.name + ".output", {size}, place.region);
  unit.add(OpKind::scan, place, {{keys, gates}, {output}, {offsets}});
  return unit.norm(c.norm, residual(name + "_compressor_norm"), output, {size});
}

/// Scores of the key selector, for the core to choose by. Its few heads have the index `other`.
void select_keys(UnitBuilder& unit, const KeySelector& s, int input, int query_latent,
                 Heads& heads) {
  const Dim in = unit.dims_of(input).back();
  const Dim key = dim(Index::other, s.head_size);
  const Dim query = dim(Index::other, checked_multiply(s.heads, s.head_size));
  int queries =
      unit.linear_one(residual("selector_q"), query_latent,
                      {.weights = s.query, .out = query, .in = unit.dims_of(query_latent).back()});
  queries = unit.norm(s.query_norm, residual("selector_q_norm"), queries, {key},
                      {dim(Index::other, s.heads)});
  int normed = 0;
  if (s.compressor) {
    normed = compress(unit, *s.compressor, "selector_k", input);
  } else {
    const int keys =
        unit.linear_one(residual("selector_k"), input, {.weights = s.key, .out = key, .in = in});
    normed = unit.norm(s.key_norm, residual("selector_k_norm"), keys, {key});
  }
  heads.selection.insert(heads.selection.end(), {queries, normed});
  if (s.head_weights.weight.empty()) return;
  const int weights =
      unit.linear_one(residual("selector_weights"), input,
                      {.weights = s.head_weights, .out = dim(Index::other, s.heads), .in = in});
  heads.selection.push_back(weights);
}

/// Rotates queries and keys. `tail` is what is rotated of the keys if it is a value of its own.
void rotate(UnitBuilder& unit, const Attention& a, std::vector<int> tail, Heads& heads) {
  if (a.rotary_size == 0) return;
  const OperatorPlace place = projection(a, "rotary");
  const auto rotated = [&](Index index, std::int64_t count) {
    return dim(index, checked_multiply(count, a.rotary_size), count);
  };
  const Dim key = tail.empty() ? rotated(Index::kv_head, a.kv_heads) : unit.dims_of(tail[0]).back();
  const auto cast_up = [&](const char* name, const Dim& what) {
    return unit.value(name, {what}, place.region, ValueType::fp32);
  };
  const int queries_fp32 = cast_up("attention.rotary.queries_fp32", rotated(Index::head, a.heads));
  const int keys_fp32 = cast_up("attention.rotary.keys_fp32", key);
  std::vector<Dim> key_dims = unit.dims_of(heads.key);
  if (!tail.empty()) key_dims = {query_dim(a)};
  const int query_out = unit.value("attention.q_rotated", unit.dims_of(heads.query), place.region);
  const int key_out = unit.value("attention.k_rotated", std::move(key_dims), place.region);
  std::vector<int> inputs{heads.query, heads.key};
  inputs.insert(inputs.end(), tail.begin(), tail.end());
  unit.add(OpKind::rotary, place,
           {std::move(inputs), {query_out, key_out}, {}, {queries_fp32, keys_fp32}});
  heads.query = query_out;
  heads.key = key_out;
}

int norm_heads(UnitBuilder& unit, const Norm& norm, QkNorm::Span span, std::string name,
               int input) {
  const Dim whole = unit.dims_of(input).back();
  const std::int64_t size = whole.size / whole.parts;
  std::vector<Dim> weight;
  switch (span) {
    case QkNorm::Span::per_head:
      weight = {dim(Index::head_size, size)};
      break;
    case QkNorm::Span::each_head:
      weight = {dim(whole.index, whole.parts), dim(Index::head_size, size)};
      break;
    case QkNorm::Span::full:
      weight = {whole};
      break;
  }
  std::vector<Dim> statistics;
  if (span != QkNorm::Span::full) statistics.push_back(dim(whole.index, whole.parts));
  const OperatorPlace place = token_mixer("attention." + std::move(name));
  return unit.norm(norm, place, input, weight, std::move(statistics));
}

void norm_queries_and_keys(UnitBuilder& unit, const Attention& a, Heads& heads) {
  if (a.values == ValueSource::raw_keys) heads.value = heads.key;
  if (a.qk_norm) {
    heads.query = norm_heads(unit, a.qk_norm->query, a.qk_norm->span, "q_norm", heads.query);
    heads.key = norm_heads(unit, a.qk_norm->key, a.qk_norm->span, "k_norm", heads.key);
  }
  heads.value = norm_heads(unit, a.value_norm, QkNorm::Span::per_head, "v_norm", heads.value);
}

/// Multi-head latent attention: latents and their norms on the residual stream, the projections up
/// to the heads in the parallel region.
Heads project_latents(UnitBuilder& unit, const Attention& a, int input) {
  const Latents& l = *a.latents;
  const Dim in = unit.dims_of(input).back();
  Heads heads;
  if (l.query_rank > 0) {
    const Dim rank = dim(Index::latent, l.query_rank);
    const int down = unit.linear_one(
        residual("q_down"), input,
        {.weights = l.query_down, .out = rank, .in = in, .bias_region = Region::residual});
    const int latent = unit.norm(l.query_norm, residual("q_down_norm"), down, {rank});
    project_query(unit, a, latent, rank, heads);
    if (a.selector) select_keys(unit, *a.selector, input, latent, heads);
  } else {
    project_query(unit, a, input, in, heads);
  }
  if (l.key_value_rank == 0) {
    project_keys(unit, a, input, heads);
    norm_queries_and_keys(unit, a, heads);
    rotate(unit, a, {}, heads);
    if (a.values == ValueSource::keys) heads.value = heads.key;
    return heads;
  }
  const Dim rank = dim(Index::latent, l.key_value_rank);
  const Dim tail = dim(Index::latent, l.rope_size);
  const auto down =
      unit.linear(residual("kv_down"), input,
                  {.weights = l.key_value_down,
                   .out = dim(Index::latent, checked_add(rank.size, tail.size)),
                   .in = in,
                   .parts = {{"attention.kv_latent", rank}, {"attention.k_shared", tail}},
                   .bias_region = Region::residual});
  const int latent = unit.norm(l.key_value_norm, residual("kv_down_norm"), down.at(0), {rank});
  const auto per_head = [&](std::int64_t size) {
    return dim(Index::head, checked_multiply(a.heads, size), a.heads);
  };
  const std::int64_t still = a.head_size - l.rope_size;
  const auto up = unit.linear(
      projection(a, "kv_up"), latent,
      {.weights = l.key_value_up,
       .out = per_head(checked_add(still, a.value_head_size)),
       .in = rank,
       .parts = {{"attention.k", per_head(still)}, {"attention.v", per_head(a.value_head_size)}}});
  heads.key = up.at(0);
  heads.value = up.at(1);
  rotate(unit, a, {down.at(1)}, heads);
  return heads;
}

int core(UnitBuilder& unit, const Attention& a, const Heads& heads) {
  OperatorPlace place = token_mixer("attention.core");
  place.module = Module::core_attention;
  const Dim each = dim(Index::head, a.heads);
  const std::vector<Dim> values{
      dim(Index::head, checked_multiply(a.heads, a.value_head_size), a.heads)};
  const auto inside = [&](const char* name, std::vector<Dim> dims, ValueType type) {
    return unit.value(std::string("attention.core.") + name, std::move(dims), place.region, type);
  };
  // Sample and token come first, as everywhere; then heads, then the keys that are looked at.
  std::vector<int> internals{inside("keys_expanded", {query_dim(a)}, ValueType::compute),
                             inside("values_expanded", values, ValueType::compute),
                             inside("logsumexp", {each}, ValueType::fp32),
                             inside("scores", {each, key_tokens()}, ValueType::compute),
                             inside("probabilities", {each, key_tokens()}, ValueType::compute)};
  if (a.dropout > 0) {
    internals.push_back(inside("dropout_mask", {each, key_tokens()}, ValueType::mask));
    internals.push_back(inside("probabilities_dropped", {each, key_tokens()}, ValueType::compute));
  }
  std::vector<int> parameters;
  if (!a.sinks.empty()) parameters.push_back(unit.parameter(a.sinks, {each}, kAttentionClass));
  const int context = unit.value("attention.context", values, place.region);
  std::vector<int> inputs{heads.query, heads.key, heads.value};
  inputs.insert(inputs.end(), heads.selection.begin(), heads.selection.end());
  if (!heads.compressed.empty()) inputs.push_back(heads.compressed.front());
  unit.add(OpKind::attention, place,
           {std::move(inputs), {context}, std::move(parameters), std::move(internals)});
  unit.set_caps_scores(a.caps_scores);
  // Beside those of a window, where a selector chooses among keys of several tokens each.
  const std::int64_t selected = a.selector ? a.selector->keys : 0;
  unit.set_window(selected > 0 && !a.compressor ? selected : checked_add(a.window, selected));
  return context;
}

int gate(UnitBuilder& unit, const Attention& a, int input, const Heads& heads, int context) {
  if (a.gate == AttentionGate::none) return context;
  std::vector<int> gates = heads.gate;
  if (a.gate == AttentionGate::separate || a.gate == AttentionGate::per_head) {
    const bool whole = a.gate == AttentionGate::separate;
    gates = unit.linear(token_mixer("attention.gate"), input,
                        {.weights = a.gate_names,
                         .out = whole ? unit.dims_of(context).back() : dim(Index::head, a.heads),
                         .in = unit.dims_of(input).back(),
                         .order = a.order});
  }
  const int open = unit.elementwise(OpKind::activation, token_mixer("attention.gate_activation"),
                                    gates, "attention.gate_activated");
  return unit.elementwise(OpKind::multiply, token_mixer("attention.gate_multiply"), {context, open},
                          "attention.context_gated");
}

Heads project(UnitBuilder& unit, const Attention& a, int input) {
  if (a.latents) return project_latents(unit, a, input);
  Heads heads = a.layout == QkvLayout::fused ? project_fused(unit, a, input)
                                             : project_separately(unit, a, input);
  norm_queries_and_keys(unit, a, heads);
  rotate(unit, a, {}, heads);
  if (a.values == ValueSource::keys) heads.value = heads.key;
  if (a.selector) select_keys(unit, *a.selector, input, input, heads);
  return heads;
}

/// By groups of heads to latents of their own; the matrix has a group's rows after another's.
int group_output(UnitBuilder& unit, const Attention& a, int context) {
  if (a.output_groups == 0) return context;
  const OperatorPlace place = token_mixer("attention.o_down");
  const Dim all = unit.dims_of(context).back();
  const Dim latents =
      dim(Index::head, checked_multiply(a.output_groups, a.output_rank), a.output_groups);
  const int matrix =
      unit.parameter(a.output_down.weight,
                     {latents, dim(Index::head_size, all.size / a.output_groups)}, place.classes);
  const int output = unit.value("attention.o_latent", {latents}, place.region);
  unit.add(OpKind::linear, place, {{context}, {output}, {matrix}});
  return output;
}

}  // namespace

Mixed build_attention(UnitBuilder& unit, const Attention& a, int input) {
  ensure(a.heads > 0 && a.kv_heads > 0 && a.head_size > 0 && a.value_head_size > 0,
         "attention has heads of some size");
  Heads heads = project(unit, a, input);
  if (a.compressor) heads.compressed = {compress(unit, *a.compressor, "k", input)};
  const int context = group_output(unit, a, gate(unit, a, input, heads, core(unit, a, heads)));
  const Contraction output{.weights = a.output,
                           .out = unit.dims_of(input).back(),
                           .in = unit.dims_of(context).back(),
                           .order = a.order,
                           .bias_region = Region::residual};
  const OperatorPlace place = token_mixer("attention.o");
  Mixed result{.value = unit.contract(place, {context}, output).front()};
  if (!output.weights.bias.empty()) result.bias = {place, output};
  return result;
}

}  // namespace placet

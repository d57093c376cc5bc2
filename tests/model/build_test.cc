// The builder: which operators stand where, over which indices.
#include "model/build.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "model/shapes.h"
#include "units/error.h"

namespace placet {
namespace {

// "norm attention.norm R" for each operator, in order.
std::vector<std::string> outline(const UnitKind& kind) {
  std::vector<std::string> lines;
  for (const Operator& op : kind.operators) {
    lines.push_back(std::string(name_of(op.kind)) + " " + op.name +
                    (op.region == Region::parallel ? " P" : " R"));
  }
  return lines;
}

using Lines = std::vector<std::string>;

const Operator& operator_named(const UnitKind& kind, const std::string& name) {
  const auto found = std::ranges::find(kind.operators, name, &Operator::name);
  EXPECT_NE(found, kind.operators.end()) << name;
  return *found;
}

int parameter_number(const UnitKind& kind, const std::string& name) {
  const auto found = std::ranges::find(kind.parameters, name, &Parameter::name);
  EXPECT_NE(found, kind.parameters.end()) << name;
  return static_cast<int>(found - kind.parameters.begin());
}

IndexSet set_of(std::initializer_list<Index> indices) {
  IndexSet set = 0;
  for (const Index index : indices) set |= bit_of(index);
  return set;
}

TEST(BuildTest, AnOrdinaryBlock) {
  const Model model = build_model(small_llama());
  validate(model);
  ASSERT_EQ(model.kinds.size(), 3U);
  EXPECT_EQ(outline(model.kinds[0]), (Lines{"embedding embedding P"}));
  EXPECT_EQ(
      outline(model.kinds[1]),
      (Lines{"norm attention.norm R", "linear attention.q P", "linear attention.k P",
             "linear attention.v P", "rotary attention.rotary P", "attention attention.core P",
             "linear attention.o P", "residual_add attention.residual R", "norm mlp.norm R",
             "linear mlp.gate P", "linear mlp.up P", "gated_activation mlp.activation P",
             "linear mlp.down P", "residual_add mlp.residual R"}));
  EXPECT_EQ(outline(model.kinds[2]),
            (Lines{"norm head.norm R", "linear head.output P", "loss loss P"}));
  // Both blocks share the kind.
  EXPECT_EQ(model.units, (std::vector<Unit>{{0, 0}, {1, 0}, {1, 1}, {2, 0}}));
}

TEST(BuildTest, ABlockWithBiasesAndDropout) {
  const Model model = build_model(small_gpt());
  validate(model);
  EXPECT_EQ(outline(model.kinds[0]), (Lines{"embedding embedding P", "position position R"}));
  EXPECT_EQ(outline(model.kinds[1]),
            (Lines{"norm attention.norm R", "linear attention.qkv P", "bias attention.qkv.bias P",
                   "attention attention.core P", "linear attention.o P", "bias attention.o.bias R",
                   "dropout attention.dropout R", "residual_add attention.residual R",
                   "norm mlp.norm R", "linear mlp.up P", "bias mlp.up.bias P",
                   "activation mlp.activation P", "linear mlp.down P", "bias mlp.down.bias R",
                   "dropout mlp.dropout R", "residual_add mlp.residual R"}));
  // Attention dropout adds the mask and the dropped probabilities.
  const Operator& core = operator_named(model.kinds[1], "attention.core");
  ASSERT_EQ(core.internals.size(), 7U);
  const auto& values = model.kinds[1].values;
  const auto value = [&values](int position) {
    return values.at(static_cast<std::size_t>(position));
  };
  EXPECT_EQ(value(core.internals[internal::kAttentionMask]).type, ValueType::mask);
  EXPECT_EQ(value(core.internals[internal::kLogSumExp]).dims,
            (std::vector<Dim>{{Index::sample, 0, 1}, {Index::token, 0, 1}, {Index::head, 2, 2}}));
  EXPECT_EQ(value(core.internals[internal::kScores]).dims.back(), (Dim{Index::key_token, 0, 1}));
  // The head's matrix is the embedding's.
  const Parameter& head = model.kinds[2].parameters[1];
  EXPECT_EQ(head.tied, (Parameter::Tie{.kind = 0, .parameter = 0}));
}

TEST(BuildTest, FusedProjectionsKeepOneTensor) {
  const Model model = build_model(small_gpt());
  const UnitKind& block = model.kinds[1];
  const Parameter& fused =
      block.parameters[static_cast<std::size_t>(parameter_number(block, "b.{}.qkv.weight"))];
  // 3 x 8 rows in 2 heads, columns first in this checkpoint.
  EXPECT_EQ(fused.dims, (std::vector<Dim>{{Index::hidden, 8, 8}, {Index::head, 24, 2}}));
  EXPECT_EQ(
      fused.segments,
      (std::vector<Dim>{{Index::head, 8, 2}, {Index::kv_head, 8, 2}, {Index::kv_head, 8, 2}}));
  EXPECT_EQ(segmented_dim(fused), 1);
  EXPECT_EQ(operator_named(block, "attention.qkv").outputs.size(), 3U);

  Architecture grouped = small_gpt();
  std::get<Attention>(grouped.shapes[0][0].branches[0].mixer).kv_heads = 1;
  const UnitKind other = build_model(grouped).kinds[1];
  // Two query heads, one key and one value head of 4: 16 rows that stay together.
  EXPECT_EQ(other.parameters[1].dims.back(), (Dim{Index::kv_head, 16, 1}));
}

TEST(BuildTest, GradientsSumOverWhatTheParameterDoesNotHave) {
  const Model model = build_model(small_moe());
  const UnitKind& block = model.kinds[1];
  const auto summed = [&block](const std::string& name) {
    return summed_indices(block, parameter_number(block, name));
  };
  const IndexSet tokens = set_of({Index::sample, Index::token});
  EXPECT_EQ(summed("b.{}.n1.weight"), tokens);
  EXPECT_EQ(summed("b.{}.q.weight"), tokens);
  EXPECT_EQ(summed("b.{}.o.weight"), tokens);
  // One weight for all heads: partial where heads are cut.
  EXPECT_EQ(summed("b.{}.qn.weight"), tokens | bit_of(Index::head));
  EXPECT_EQ(summed("b.{}.kn.weight"), tokens | bit_of(Index::kv_head));
  EXPECT_EQ(summed("b.{}.router.weight"), tokens);
  EXPECT_EQ(summed("b.{}.shared_gate.weight"), tokens);
  EXPECT_EQ(summed("b.{}.experts.{expert}.up.weight"), tokens | bit_of(Index::choice));
}

// Mean and reciprocal deviation of a token, or the second alone.
TEST(BuildTest, LayerNormsHaveTwoNumbersOfEachToken) {
  const auto statistics = [](NormKind kind) {
    Architecture architecture = small_llama();
    architecture.shapes[0][0].branches[0].norm.kind = kind;
    const UnitKind block = build_model(architecture).kinds[1];
    const Operator& norm = block.operators.front();
    return block.values[static_cast<std::size_t>(norm.internals[internal::kNormStatistics])].dims;
  };
  EXPECT_EQ(elements_of(statistics(NormKind::layer)), 0) << "samples and tokens are the job's";
  EXPECT_EQ(statistics(NormKind::layer).back(), (Dim{Index::other, 2, 2}));
  EXPECT_EQ(statistics(NormKind::rms).back().index, Index::token);
}

TEST(BuildTest, NormsOfQueriesAndKeysStandInTheParallelRegion) {
  const Model model = build_model(small_moe());
  const Operator& norm = operator_named(model.kinds[1], "attention.q_norm");
  EXPECT_EQ(norm.region, Region::parallel);
  // Statistics per head: no head needs another one's numbers.
  const Value& statistics =
      model.kinds[1].values[static_cast<std::size_t>(norm.internals[internal::kNormStatistics])];
  EXPECT_EQ(statistics.dims.back(), (Dim{Index::head, 2, 2}));
  EXPECT_EQ(statistics.type, ValueType::fp32);

  Architecture whole = small_moe();
  std::get<Attention>(whole.shapes[0][0].branches[0].mixer).qk_norm->span = QkNorm::Span::full;
  const UnitKind block = build_model(whole).kinds[1];
  const Operator& full = operator_named(block, "attention.q_norm");
  EXPECT_EQ(block.values[static_cast<std::size_t>(full.internals[0])].dims.size(), 2U);
  EXPECT_EQ(block.parameters[static_cast<std::size_t>(full.parameters[0])].dims,
            (std::vector<Dim>{{Index::head, 8, 2}}));
}

TEST(BuildTest, AMixtureOfExperts) {
  const Model model = build_model(small_moe());
  validate(model);
  Lines lines = outline(model.kinds[1]);
  lines.erase(lines.begin(), std::ranges::find(lines, "norm moe.norm R"));
  EXPECT_EQ(
      lines,
      (Lines{"norm moe.norm R", "linear moe.router_logits R", "router moe.router R",
             "dispatch moe.dispatch P", "grouped_linear moe.experts.gate P",
             "grouped_linear moe.experts.up P", "gated_activation moe.experts.activation P",
             "grouped_linear moe.experts.down P", "combine moe.combine P",
             "linear shared_expert.gate P", "linear shared_expert.up P",
             "gated_activation shared_expert.activation P", "linear shared_expert.down P",
             "linear shared_expert.gate_logit R", "activation shared_expert.gate_activation R",
             "multiply shared_expert.gate_multiply R", "residual_add moe.add_shared R",
             "residual_add moe.residual R"}));
  const Parameter& up = model.kinds[1].parameters[static_cast<std::size_t>(
      parameter_number(model.kinds[1], "b.{}.experts.{expert}.up.weight"))];
  EXPECT_EQ(up.dims,
            (std::vector<Dim>{{Index::expert, 4, 4}, {Index::ffn, 6, 6}, {Index::hidden, 8, 8}}));
  EXPECT_TRUE(contains(up.classes, TensorClass::experts));
  // Embedding 128, head 128, norms 3 x 8, q/k norms 4 + 4, attention 192, router 32, offsets 4,
  // experts 4 x 3 x 48 = 576, shared 3 x 80 = 240, its gate 8.
  const ParameterCounts counts = count_parameters(model);
  EXPECT_EQ(counts.total, 128 + 128 + 24 + 8 + 192 + 32 + 4 + 576 + 240 + 8);
  EXPECT_EQ(counts.active, counts.total - 288);  // two of four experts
  EXPECT_EQ(counts.trainable, counts.total - 4);
  EXPECT_EQ(counts.active_without_embedding, counts.active - 128);
}

TEST(BuildTest, BranchesThatArePartialTogetherAreAddedFirst) {
  Architecture a = small_llama(1);
  BlockShape& shape = a.shapes[0];
  shape[0].branches.push_back(shape[1].branches[0]);
  shape[0].branches[1].input = Branch::Input::same;
  shape[0].branches[1].norm = {};
  shape.pop_back();
  const Model model = build_model(a);
  validate(model);
  Lines lines = outline(model.kinds[1]);
  EXPECT_EQ(lines.front(), "norm attention.norm R");
  EXPECT_EQ(std::ranges::count(lines, "norm mlp.norm R"), 0);
  EXPECT_EQ(lines[lines.size() - 2], "residual_add attention.sum P");
  EXPECT_EQ(lines.back(), "residual_add attention.residual R");
}

TEST(BuildTest, LatentProjectionsStandOnTheResidualStream) {
  Architecture a = small_llama(1);
  Attention& attention = std::get<Attention>(a.shapes[0][0].branches[0].mixer);
  attention = {.heads = 2,
               .kv_heads = 2,
               .head_size = 6,
               .value_head_size = 3,
               .query = weight("b.{}.q_up"),
               .output = weight("b.{}.o"),
               .rotary_size = 2,
               .latents = Latents{.query_rank = 5,
                                  .key_value_rank = 3,
                                  .rope_size = 2,
                                  .query_down = weight("b.{}.q_down"),
                                  .query_norm = rms("b.{}.q_down_norm"),
                                  .key_value_down = weight("b.{}.kv_down"),
                                  .key_value_norm = rms("b.{}.kv_down_norm"),
                                  .key_value_up = weight("b.{}.kv_up")}};
  const Model model = build_model(a);
  validate(model);
  Lines lines = outline(model.kinds[1]);
  lines.resize(10);
  EXPECT_EQ(lines, (Lines{"norm attention.norm R", "linear attention.q_down R",
                          "norm attention.q_down_norm R", "linear attention.q P",
                          "linear attention.kv_down R", "norm attention.kv_down_norm R",
                          "linear attention.kv_up P", "rotary attention.rotary P",
                          "attention attention.core P", "linear attention.o P"}));
  const auto dims = [&](const std::string& name) {
    const UnitKind& block = model.kinds[1];
    return block.parameters[static_cast<std::size_t>(parameter_number(block, name))].dims;
  };
  EXPECT_EQ(dims("b.{}.kv_down.weight"),
            (std::vector<Dim>{{Index::latent, 5, 5}, {Index::hidden, 8, 8}}));
  // Two heads of 6 - 2 unrotated key elements and 3 value elements.
  EXPECT_EQ(dims("b.{}.kv_up.weight"),
            (std::vector<Dim>{{Index::head, 14, 2}, {Index::latent, 3, 3}}));
  // Queries and keys of 6, values of 3: 2 x (6 + 3) / 2.
  EXPECT_EQ(model.figures.attention_width, 9);
}

TEST(BuildTest, ShapesThatDifferAreKindsOfTheirOwn) {
  Architecture a = small_llama(3);
  a.shapes.push_back(a.shapes[0]);
  std::get<Attention>(a.shapes[1][0].branches[0].mixer).window = 4;
  a.shapes.push_back({});
  a.order = {0, 1, 2};
  const Model model = build_model(a);
  validate(model);
  ASSERT_EQ(model.kinds.size(), 5U);
  EXPECT_EQ(model.kinds[1].name, "attention mlp block");
  EXPECT_EQ(model.kinds[2].name, "windowed attention mlp block");
  EXPECT_EQ(model.kinds[3].name, "empty block");
  EXPECT_TRUE(model.kinds[3].operators.empty());
  EXPECT_EQ(operator_named(model.kinds[2], "attention.core").window, 4);
}

TEST(BuildTest, PredictionModulesUseTheModelsOwnMatrices) {
  Architecture a = small_llama(1);
  a.predictions.push_back({.number = 1,
                           .embedding_norm = rms("b.{}.en"),
                           .stream_norm = rms("b.{}.hn"),
                           .projection = weight("b.{}.eh"),
                           .block = a.shapes[0],
                           .final_norm = rms("b.{}.fn"),
                           .tokens = "b.{}.embed.weight",
                           .output = "b.{}.head.weight"});
  a.predictions.push_back(a.predictions[0]);
  a.predictions[1].number = 2;
  const Model model = build_model(a);
  validate(model);
  // Both modules are one kind.
  ASSERT_EQ(model.kinds.size(), 4U);
  EXPECT_EQ(model.kinds[3].role, UnitRole::mtp);
  EXPECT_EQ(model.units.back(), (Unit{3, 2}));
  const std::int64_t block = 192 + 288 + 16;
  const ParameterCounts counts = count_parameters(model);
  EXPECT_EQ(counts.prediction, 2 * (8 + 8 + 128 + block + 8));
  EXPECT_EQ(counts.active, 128 + block + 8 + 128);
}

TEST(BuildTest, BareModels) {
  const Model model = bare_model(7, 3);
  validate(model);
  EXPECT_EQ(model.kinds.size(), 2U);
  EXPECT_EQ(count_parameters(model).total, 7);
  EXPECT_EQ(elements_of(model.kinds[0].parameters[0].dims), 3);
  EXPECT_EQ(elements_of(model.kinds[1].parameters[0].dims), 2);
  EXPECT_EQ(model.units, (std::vector<Unit>{{0, 0}, {1, 1}, {1, 2}}));
  EXPECT_EQ(bare_model(6, 3).kinds.size(), 1U);
  EXPECT_THROW(bare_model(2, 3), InputError);
  EXPECT_THROW(bare_model(2, 0), InputError);
}

TEST(BuildTest, SizesBeyondTheRangeAreInputErrors) {
  Architecture a = small_llama(2);
  a.hidden = a.embedding.width = std::int64_t{1} << 40;
  a.embedding.vocabulary = std::int64_t{1} << 40;
  EXPECT_THROW(build_model(a), InputError);
}

TEST(BuildTest, EqualDescriptionsGiveEqualModels) {
  EXPECT_EQ(build_model(small_moe()), build_model(small_moe()));
  EXPECT_NE(build_model(small_moe()), build_model(small_llama(1)));
}

}  // namespace
}  // namespace placet

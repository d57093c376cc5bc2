#include "model/adapt.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "model/build.h"
#include "model/shapes.h"
#include "units/error.h"

namespace placet {
namespace {

std::vector<std::string> words(std::initializer_list<std::string> list) { return list; }

const Parameter& parameter_named(const UnitKind& kind, const std::string& name) {
  const auto found = std::ranges::find(kind.parameters, name, &Parameter::name);
  EXPECT_NE(found, kind.parameters.end()) << name;
  return *found;
}

TEST(AdaptTest, Patterns) {
  EXPECT_TRUE(matches_pattern("*", ""));
  EXPECT_TRUE(matches_pattern("a*c", "abbc"));
  EXPECT_TRUE(matches_pattern("*.q.*", "b.{}.q.weight"));
  EXPECT_TRUE(matches_pattern("l?ver", "lover"));
  EXPECT_TRUE(matches_pattern("*ab*ab", "abxab"));
  EXPECT_FALSE(matches_pattern("a?", "a"));
  EXPECT_FALSE(matches_pattern("q", "qk"));
  EXPECT_FALSE(matches_pattern("", "a"));
}

TEST(AdaptTest, FreezingTakesNamesPartsAndOperators) {
  const Model model = build_model(small_llama(2));
  const auto trainable = [&model](std::initializer_list<std::string> patterns) {
    return count_parameters(with_frozen(model, words(patterns))).trainable;
  };
  const std::int64_t all = count_parameters(model).total;
  EXPECT_EQ(trainable({"*"}), 0);
  EXPECT_EQ(trainable({"q"}), all - 2 * 64);
  EXPECT_EQ(trainable({"b.{}.q.weight", "embed*"}), all - 2 * 64 - 128);
  EXPECT_EQ(trainable({"attention.*"}), all - 2 * (192 + 8));  // projections and their norm
}

TEST(AdaptTest, BothUsesOfASharedMatrixFreezeTogether) {
  Architecture a = small_llama(1);
  a.head.tied = true;
  const Model model = with_frozen(build_model(a), words({"head"}));
  EXPECT_FALSE(model.kinds[0].parameters[0].trainable);
  EXPECT_FALSE(model.kinds[2].parameters[1].trainable);
}

TEST(AdaptTest, PatternsThatMatchNothingAreInputErrors) {
  const Model model = build_model(small_llama(1));
  try {
    with_frozen(model, words({"gait"}));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(
        error.what(),
        "freeze: 'gait' matches no tensor it could apply to; expected a checkpoint name or "
        "a part of one, with * and ?; did you mean 'gate'?");
  }
  EXPECT_THROW(with_lora(model, {.rank = 2, .patterns = words({"n1"})}),
               InputError);  // a norm is no linear operator
}

TEST(AdaptTest, AdaptersByHand) {
  const Model model = with_lora(build_model(small_llama(2)), {.rank = 2});
  validate(model);
  const UnitKind& block = model.kinds[1];
  // q [8, 8]: A [2, 8], B [8, 2]; v [4, 8]: A [2, 8], B [4, 2].
  EXPECT_EQ(parameter_named(block, "b.{}.q.lora_A.weight").dims,
            (std::vector<Dim>{{Index::adapter, 2, 2}, {Index::hidden, 8, 8}}));
  EXPECT_EQ(parameter_named(block, "b.{}.v.lora_B.weight").dims,
            (std::vector<Dim>{{Index::kv_head, 4, 1}, {Index::adapter, 2, 2}}));
  EXPECT_EQ(count_parameters(model).trainable, 2 * (16 + 16 + 16 + 8));
  EXPECT_FALSE(parameter_named(block, "b.{}.n1.weight").trainable);
}

TEST(AdaptTest, AdaptersStandInTheRegionOfTheirBase) {
  const Model model =
      with_lora(build_model(small_llama(1)), {.rank = 2, .patterns = words({"q", "o"})});
  const UnitKind& block = model.kinds[1];
  std::vector<std::string> lines;
  for (const Operator& op : block.operators) {
    if (op.name.starts_with("attention.q") || op.name.starts_with("attention.o")) {
      lines.push_back(op.name + (op.region == Region::parallel ? " P" : " R"));
    }
  }
  EXPECT_EQ(lines, (std::vector<std::string>{"attention.q P", "attention.q.lora_a P",
                                             "attention.q.lora_b P", "attention.q.lora_add P",
                                             "attention.o P", "attention.o.lora_a P",
                                             "attention.o.lora_b P", "attention.o.lora_add P"}));
  // What follows reads the sum: the rotation's first input is made by q's lora_add.
  const auto rotary = std::ranges::find(block.operators, OpKind::rotary, &Operator::kind);
  const auto sum = std::ranges::find(block.operators, "attention.q.lora_add", &Operator::name);
  EXPECT_EQ(rotary->inputs[0], sum->outputs[0]);
  // Under a row-cut base, A is cut (it has the index head), under a column-cut one B is.
  const auto has = [&block](const std::string& name, Index index) {
    const Parameter& p = parameter_named(block, name);
    return std::ranges::any_of(p.dims, [index](const Dim& d) { return d.index == index; });
  };
  EXPECT_FALSE(has("b.{}.q.lora_A.weight", Index::head));
  EXPECT_TRUE(has("b.{}.q.lora_B.weight", Index::head));
  EXPECT_TRUE(has("b.{}.o.lora_A.weight", Index::head));
  EXPECT_FALSE(has("b.{}.o.lora_B.weight", Index::head));
}

TEST(AdaptTest, FusedTensorsAndExpertsGetOnePairEach) {
  const Model fused = with_lora(build_model(small_gpt()), {.rank = 2});
  validate(fused);
  EXPECT_EQ(count_parameters(fused).trainable, 2 * 8 + 24 * 2);
  // The rows of B are those of the fused tensor, query, key and value.
  const UnitKind& fused_block = fused.kinds.at(1);
  const Parameter b = parameter_named(fused_block, "b.{}.qkv.lora_B.weight");
  EXPECT_EQ(b.segments, parameter_named(fused_block, "b.{}.qkv.weight").segments);
  EXPECT_EQ(b.segments.size(), 3U);

  const Model moe =
      with_lora(build_model(small_moe()), {.rank = 2, .patterns = words({"*experts.*up*"})});
  validate(moe);
  EXPECT_EQ(
      parameter_named(moe.kinds[1], "b.{}.experts.{expert}.up.lora_A.weight").dims,
      (std::vector<Dim>{{Index::expert, 4, 4}, {Index::adapter, 2, 2}, {Index::hidden, 8, 8}}));
  EXPECT_EQ(count_parameters(moe).trainable, 4 * (2 * 8 + 6 * 2));
}

// Per block q and o 8 x 8, k and v 4 x 8, gate, up and down 12 x 8: at rank 2 each gets twice the
// sum of its sides. The output matrix gets none.
TEST(AdaptTest, AllLinearOperatorsOfBlocksByOneWord) {
  const Model model = with_lora(build_model(small_llama(2)), {.rank = 2, .all_linear = true});
  validate(model);
  const std::int64_t block = 2 * (2 * (8 + 8) + 2 * (4 + 8) + 3 * (12 + 8));
  EXPECT_EQ(count_parameters(model).trainable, 2 * block);
  const Model moe = with_lora(build_model(small_moe()), {.rank = 2, .all_linear = true});
  for (const UnitKind& kind : moe.kinds) {
    for (const Parameter& p : kind.parameters) {
      const bool adapter = contains(p.classes, TensorClass::adapters);
      EXPECT_FALSE(adapter && contains(p.classes, TensorClass::experts)) << p.name;
    }
  }
}

// A reads what dropout leaves of the base's input, by a mask of its own; the base reads the input.
TEST(AdaptTest, DropoutStandsBeforeA) {
  const Model model =
      with_lora(build_model(small_llama(1)), {.rank = 2, .patterns = words({"q"}), .drops = true});
  validate(model);
  const UnitKind& block = model.kinds[1];
  const auto named = [&block](std::string_view name) {
    return *std::ranges::find(block.operators, name, &Operator::name);
  };
  const Operator drop = named("attention.q.lora_dropout");
  EXPECT_EQ(drop.inputs, named("attention.q").inputs);
  EXPECT_EQ(named("attention.q.lora_a").inputs, drop.outputs);
  const Value& mask = block.values.at(static_cast<std::size_t>(drop.internals.at(0)));
  EXPECT_EQ(mask.type, ValueType::mask);
  EXPECT_EQ(mask.dims, block.values.at(static_cast<std::size_t>(drop.inputs.at(0))).dims);
}

// PEFT names a module by the end of its name.
TEST(AdaptTest, PatternsMayBeTheEndOfAModulesName) {
  const Model model = build_model(small_llama(1));
  const auto trained = [&model](const char* pattern) {
    return count_parameters(with_lora(model, {.rank = 2, .patterns = words({pattern})})).trainable;
  };
  EXPECT_EQ(trained("{}.q"), trained("q"));
  EXPECT_THROW(trained(".q"), InputError);
  EXPECT_THROW(trained("}.q"), InputError) << "names are cut at dots";
}

TEST(AdaptTest, RanksMustBeLow) {
  const Model model = build_model(small_llama(1));
  EXPECT_THROW(with_lora(model, {.rank = 0}), InputError);
  EXPECT_THROW(with_lora(model, {.rank = 4}), InputError);  // v has 4 rows
  EXPECT_NO_THROW(with_lora(model, {.rank = 3}));
}

TEST(AdaptTest, FrozenBasesMayTakeAFormatOfTheirOwn) {
  const Model model =
      with_frozen_format(with_lora(build_model(small_llama(1)), {.rank = 2}), Dtype::nf4);
  const UnitKind& block = model.kinds[1];
  EXPECT_EQ(parameter_named(block, "b.{}.q.weight").dtype, Dtype::nf4);
  EXPECT_EQ(parameter_named(block, "b.{}.gate.weight").dtype, Dtype::nf4);
  EXPECT_EQ(parameter_named(block, "b.{}.q.lora_A.weight").dtype, std::nullopt);
  EXPECT_EQ(parameter_named(block, "b.{}.n1.weight").dtype, std::nullopt);
  EXPECT_EQ(model.kinds[0].parameters[0].dtype, std::nullopt);
}

}  // namespace
}  // namespace placet

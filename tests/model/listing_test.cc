#include "model/listing.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "model/adapt.h"
#include "model/build.h"
#include "model/shapes.h"

namespace placet {
namespace {

TEST(ListingTest, ExpertsThatLieApartAreListedOneByOne) {
  const Model model = build_model(small_moe());
  const std::vector<TensorEntry> entries = list_tensors(model);
  const auto up = std::ranges::find(entries, "b.{}.experts.{expert}.up.weight", &TensorEntry::name);
  ASSERT_NE(up, entries.end());
  EXPECT_EQ(*up, (TensorEntry{.name = "b.{}.experts.{expert}.up.weight",
                              .shape = {6, 8},
                              .dtype = std::nullopt,
                              .tensor_class = "experts",
                              .count = 4}));
  const auto offset = std::ranges::find(entries, "b.{}.offset", &TensorEntry::name);
  EXPECT_EQ(offset->tensor_class, "router");
  EXPECT_EQ(offset->dtype, Dtype::fp32);
  EXPECT_FALSE(offset->trainable);
}

TEST(ListingTest, EntriesAddUpToTheTotal) {
  for (Architecture a : {small_llama(3), small_gpt(), small_moe()}) {
    const Model model = build_model(a);
    std::int64_t total = 0;
    for (const TensorEntry& entry : list_tensors(model)) {
      std::int64_t each = 1;
      for (const std::int64_t size : entry.shape) each *= size;
      if (!entry.shared) total += each * entry.count;
    }
    EXPECT_EQ(total, count_parameters(model).total);
  }
}

TEST(ListingTest, ASharedMatrixIsMarked) {
  const std::vector<TensorEntry> entries = list_tensors(build_model(small_gpt()));
  const auto head = std::ranges::find(entries, "head.weight", &TensorEntry::name);
  EXPECT_TRUE(head->shared);
  EXPECT_EQ(head->tensor_class, "embedding");
}

TEST(ListingTest, FlopsPerToken) {
  // Active without the embedding: two blocks of 192 + 288 + 16 = 496, final norm 8, head 128: 1128.
  // Attention width 2 blocks x 2 heads x 4 = 16; 10 tokens: 12 x 10 x 16 = 1920.
  const FlopsPerToken flops_10 = flops_per_token(build_model(small_llama(2)), 10);
  EXPECT_EQ(flops_10.training, flops(6 * 1128 + 1920));
  EXPECT_EQ(flops_10.forward, flops(2 * 1128 + 640));
}

// As above, with adapters of rank 2 beside q and o of both blocks, each 8 x 8: 2 x (2 x 8 + 8 x 2)
// per block, 128 in all. They alone are trained; their gradients pass the head and both blocks.
TEST(ListingTest, FrozenWeightsHaveNoGradients) {
  const std::vector<std::string> patterns = {"q", "o"};
  const FlopsPerToken flops_10 = flops_per_token(
      with_lora(build_model(small_llama(2)), {.rank = 2, .patterns = patterns}), 10);
  EXPECT_EQ(flops_10.forward, flops(2 * (1128 + 128) + 640));
  EXPECT_EQ(flops_10.training, flops(4 * (1128 + 128) + 2 * 128 + 1920));
}

// Only the head of 128 is trained: backward ends in its unit, the final norm of 8 included.
TEST(ListingTest, BackwardEndsAtTheFirstTrainedUnit) {
  const std::vector<std::string> below = {"embed*", "b.*", "norm*"};
  const FlopsPerToken flops_10 =
      flops_per_token(with_frozen(build_model(small_llama(2)), below), 10);
  EXPECT_EQ(flops_10.forward, flops(2 * 1128 + 640));
  EXPECT_EQ(flops_10.training, flops(2 * 1128 + 640 + 2 * 136 + 2 * 128));
}

// Adapters of q_proj and the embedding are trained: 2 x 3 + 3 x 2 of the first, of two blocks, and
// 4 of the second; of 2 x (4 + 12) + 4 in all.
TEST(TrainedPart, NamesModulesOnce) {
  const auto tensor = [](const char* name, std::vector<Dim> dims, bool trainable) {
    return Parameter{.name = name, .dims = std::move(dims), .trainable = trainable};
  };
  const auto of = [](std::int64_t size) {
    return Dim{.index = Index::other, .size = size, .parts = size};
  };
  Model model;
  model.kinds = {{.name = "embedding",
                  .role = UnitRole::embedding,
                  .parameters = {tensor("embed.weight", {of(4)}, true)}},
                 {.name = "block",
                  .parameters = {tensor("layers.{}.q_proj.weight", {of(2), of(2)}, false),
                                 tensor("layers.{}.q_proj.lora_A.weight", {of(2), of(3)}, true),
                                 tensor("layers.{}.q_proj.lora_B.weight", {of(3), of(2)}, true)}}};
  model.units = {{.kind = 0}, {.kind = 1, .number = 0}, {.kind = 1, .number = 1}};
  const TrainedPart part = trained_part(model);
  EXPECT_EQ(part,
            (TrainedPart{.trained = 28, .total = 36, .modules = {"embed", "layers.*.q_proj"}}));
  EXPECT_DOUBLE_EQ(part.share(), 28.0 / 36);
}

}  // namespace
}  // namespace placet

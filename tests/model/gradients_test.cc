#include "model/gradients.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "model/adapt.h"
#include "model/build.h"
#include "model/shapes.h"

namespace placet {
namespace {

Model frozen(Model model, UnitRole role) {
  for (UnitKind& kind : model.kinds) {
    if (kind.role != role) continue;
    for (Parameter& parameter : kind.parameters) parameter.trainable = false;
  }
  return model;
}

std::vector<std::string> kinds_of_units(const Model& model) {
  std::vector<std::string> names;
  for (const Unit& unit : model.units) {
    names.push_back(model.kinds[static_cast<std::size_t>(unit.kind)].name);
  }
  return names;
}

/// Names of the values of the kind that have a gradient, or have none.
std::vector<std::string> values(const Model& model, std::size_t kind, bool with_gradient) {
  const KindGradients gradients = gradients_of(model)[kind];
  std::vector<std::string> names;
  for (std::size_t v = 0; v < gradients.values.size(); ++v) {
    const std::string& name = model.kinds[kind].values[v].name;
    if (gradients.values[v] == with_gradient) names.push_back(name);
  }
  return names;
}

bool holds(const std::vector<std::string>& names, const char* name) {
  return std::ranges::find(names, name) != names.end();
}

TEST(GradientsTest, AModelThatIsTrainedWholeStaysAsItIs) {
  const Model model = build_model(small_llama(3));
  EXPECT_EQ(with_gradients_needed(model), model);
  const std::vector<KindGradients> gradients = gradients_of(model);
  EXPECT_FALSE(gradients[0].stream) << "ids have no gradient";
  EXPECT_TRUE(gradients[1].stream);
  EXPECT_TRUE(gradients[2].stream);
}

// The embedding is frozen: the gradient of what enters the first block has no use.
TEST(GradientsTest, TheFirstTrainedUnitHandsNothingBack) {
  const Model model =
      with_gradients_needed(frozen(build_model(small_llama(3)), UnitRole::embedding));
  EXPECT_EQ(kinds_of_units(model), (std::vector<std::string>{"embedding", "first trained block",
                                                             "block", "block", "head"}));
  const std::vector<KindGradients> gradients = gradients_of(model);
  EXPECT_FALSE(gradients[0].backward);
  EXPECT_TRUE(gradients[3].backward);
  EXPECT_FALSE(gradients[3].stream);
  EXPECT_TRUE(gradients[1].stream);
}

// Embedding and blocks are frozen: backward ends in the head, and no kind has units on both sides.
TEST(GradientsTest, BackwardEndsWhereNothingIsTrained) {
  const Model model = with_gradients_needed(
      frozen(frozen(build_model(small_llama(3)), UnitRole::embedding), UnitRole::block));
  ASSERT_EQ(model.kinds.size(), 3U);
  const std::vector<KindGradients> gradients = gradients_of(model);
  EXPECT_FALSE(gradients[0].backward);
  EXPECT_FALSE(gradients[1].backward);
  EXPECT_TRUE(gradients[2].backward);
  EXPECT_FALSE(gradients[2].stream);
  EXPECT_TRUE(values(model, 1, true).empty());
}

// Adapters on q and v of three blocks: in the first, neither the norm before them nor the keys have
// a gradient; in the others, both.
TEST(GradientsTest, OfTheFirstAdaptersOnly) {
  const Model model = with_gradients_needed(with_lora(build_model(small_llama(3)), {.rank = 2}));
  EXPECT_EQ(kinds_of_units(model), (std::vector<std::string>{"embedding", "first trained block",
                                                             "block", "block", "head"}));
  const std::vector<std::string> none = values(model, 3, false);
  EXPECT_TRUE(holds(none, "attention.norm.output"));
  EXPECT_TRUE(holds(none, "attention.k"));
  EXPECT_TRUE(holds(none, "attention.k_rotated"));
  EXPECT_FALSE(holds(none, "attention.q_rotated"));
  EXPECT_FALSE(holds(none, "attention.q"));
  EXPECT_FALSE(holds(none, "mlp.norm.output"));
  const std::vector<std::string> later = values(model, 1, true);
  EXPECT_TRUE(holds(later, "attention.norm.output"));
  EXPECT_TRUE(holds(later, "attention.k"));
}

}  // namespace
}  // namespace placet

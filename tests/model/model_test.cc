#include "model/model.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "model/build.h"
#include "model/shapes.h"
#include "units/error.h"

namespace placet {
namespace {

TEST(ModelTest, NamesReadBack) {
  for (int i = 0; i < kOpKindCount; ++i) {
    const auto kind = static_cast<OpKind>(i);
    EXPECT_EQ(op_kind_named(name_of(kind)), kind);
  }
  EXPECT_EQ(op_kind_named("lineer"), std::nullopt);
  EXPECT_EQ(name_of(TensorClass::shared_experts), "shared-experts");
  EXPECT_EQ(name_of(TensorClass::mtp), "mtp");
  EXPECT_EQ(name_of(Module::core_attention), "core_attention");
  EXPECT_EQ(name_of(Module::loss), "loss");
}

TEST(ModelTest, ElementsAreTheProductOfTheDims) {
  EXPECT_EQ(elements_of({}), 1);
  EXPECT_EQ(elements_of({{Index::expert, 3, 3}, {Index::ffn, 5, 5}}), 15);
  EXPECT_THROW(elements_of({{Index::other, INT64_MAX, 1}, {Index::other, 2, 1}}), InputError);
}

TEST(ModelTest, ATiedMatrixCountsAsTheHead) {
  Architecture a = small_llama(1);
  const ParameterCounts apart = count_parameters(build_model(a));
  a.head.tied = true;
  const ParameterCounts tied = count_parameters(build_model(a));
  EXPECT_EQ(tied.total, apart.total - 128);
  // The N of 6 N: the head's 128 count, the lookup does not, tied or not.
  EXPECT_EQ(tied.active_without_embedding, apart.active_without_embedding);
  EXPECT_EQ(apart.active_without_embedding, apart.active - 128);
}

TEST(ModelTest, ValidateFindsEachFault) {
  const std::vector<std::function<void(Model&)>> faults{
      [](Model& m) { m.kinds[1].operators[0].inputs[0] = 1000; },
      [](Model& m) { m.kinds[1].operators[0].parameters[0] = -1; },
      [](Model& m) { m.kinds[1].operators[1].outputs = m.kinds[1].operators[2].outputs; },
      [](Model& m) { m.kinds[1].parameters[1].dims[0].parts = 3; },
      [](Model& m) { m.kinds[1].parameters[1].dims[0].parts = 0; },
      [](Model& m) { m.kinds[1].values[0].dims[0].size = -1; },
      [](Model& m) { m.kinds[2].parameters[0].tied = Parameter::Tie{.kind = 2, .parameter = 0}; },
      [](Model& m) { m.kinds[2].parameters[0].tied = Parameter::Tie{.kind = 1, .parameter = 99}; },
      [](Model& m) { m.kinds[2].parameters[0].tied = Parameter::Tie{.kind = 1, .parameter = 1}; },
      [](Model& m) { m.units[0].kind = 9; }};
  for (std::size_t i = 0; i < faults.size(); ++i) {
    Model model = build_model(small_llama(1));
    EXPECT_NO_THROW(validate(model));
    faults[i](model);
    EXPECT_THROW(validate(model), InternalError) << "fault " << i;
  }
}

}  // namespace
}  // namespace placet

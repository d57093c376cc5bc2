// Decoders of a size: the shape by the rule, the count within one in a hundred, what is refused.
#include "catalog/ordinary_decoder.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "catalog/model_catalog.h"
#include "units/error.h"

namespace placet {
namespace {

const Catalog& shipped() {
  static const Catalog found{PLACET_SOURCE_DIR "/data"};
  return found;
}

// 32 blocks of 4096: attention 2 x 4096^2 + 2 x 4096 x 1024 = 41,943,040; norms 8192 a block and
// 4096; embedding and head 262,144,000. An MLP of 13,696: 3 x 4096 x 13,696 = 168,296,448. In all
// 32 x (41,943,040 + 168,296,448 + 8192) + 4096 + 262,144,000 = 6,990,073,856.
TEST(OrdinaryDecoderTest, HasTheShapeOfTheRule) {
  const DecoderShape expected{.blocks = 32,
                              .hidden = 4096,
                              .heads = 32,
                              .kv_heads = 8,
                              .ffn = 13'696,
                              .parameters = 6'990'073'856};
  EXPECT_EQ(decoder_shape({}, 7'000'000'000), expected);
  const Model model = load_model(shipped(), "decoder=7B");
  EXPECT_EQ(count_parameters(model).total, 6'990'073'856);
  EXPECT_EQ(model.name, "decoder=7B");
  ASSERT_FALSE(model.notes.empty());
  EXPECT_EQ(model.notes.back(),
            "decoder=7B: an ordinary decoder of 6990073856 parameters, no published model: 32 "
            "blocks of 4096, 32 heads of 128, 8 of them for keys and values, a gated MLP of 13696, "
            "32000 tokens");
  EXPECT_EQ(load_model(shipped(), "decoder=7e9").units, model.units);
}

TEST(OrdinaryDecoderTest, ComesWithinOneInAHundredOfAnySize) {
  for (std::int64_t size = 20'000'000; size <= 50'000'000'000'000; size += size / 7) {
    const auto shape = decoder_shape({}, size);
    ASSERT_TRUE(shape) << size;
    EXPECT_LE(100 * std::llabs(shape->parameters - size), size) << size;
    EXPECT_EQ(shape->heads * 128, shape->hidden);
  }
}

TEST(OrdinaryDecoderTest, CountIsThatOfTheModel) {
  for (const char* word : {"decoder=20M", "decoder=350M", "decoder=1.3B", "decoder=70B"}) {
    const auto shape = decoder_shape({}, parse_count(std::string_view(word).substr(8)).value());
    ASSERT_TRUE(shape) << word;
    EXPECT_EQ(count_parameters(load_model(shipped(), word)).total, shape->parameters) << word;
  }
}

TEST(OrdinaryDecoderTest, OtherSizesAreRefused) {
  for (const char* word : {"decoder=", "decoder=x", "decoder=0", "decoder=1M", "decoder=900T"}) {
    try {
      load_model(shipped(), word);
      ADD_FAILURE() << word;
    } catch (const InputError& error) {
      EXPECT_EQ(error.fault().problem, "is no size of an ordinary decoder") << word;
    }
  }
  EXPECT_FALSE(ordinary_decoder(shipped(), "llama-2-7b"));
}

TEST(OrdinaryDecoderTest, ANumberAloneSaysWhatItLeavesOut) {
  for (const auto& [word, size] :
       {std::pair("70B", "70B"), std::pair("params=7e9,units=80", "7e9")}) {
    const Model model = parse_bare_model(word).value();
    ASSERT_EQ(model.notes.size(), 1U);
    EXPECT_EQ(model.notes[0],
              std::string(word) +
                  " is a number of parameters without shapes: activations, attention, the loss "
                  "and time are left out; decoder=" +
                  size + " builds an ordinary decoder of that size");
  }
}

}  // namespace
}  // namespace placet

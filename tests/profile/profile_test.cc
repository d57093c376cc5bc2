#include "profile/profile.h"

#include <gtest/gtest.h>

#include <set>

namespace placet {
namespace {

// Attention that makes its probabilities again keeps query, key, value, its output and one number
// of a row; a product its input, or both whose columns are joined; a sum nothing.
TEST(PlainSavedTable, IsWhatDerivativesRead) {
  const SavedTable saved = plain_saved_table();
  const auto of = [&](OpKind kind) { return saved[static_cast<std::size_t>(kind)]; };
  EXPECT_EQ(of(OpKind::linear).inputs, 0b11);
  EXPECT_EQ(of(OpKind::attention).inputs & 0b111, 0b111);
  EXPECT_EQ(of(OpKind::attention).outputs, 0b1);
  EXPECT_EQ(of(OpKind::residual_add), SavedSlots{});
}

TEST(Symbols, HaveNamesThatReadBack) {
  std::set<std::string_view> names;
  for (int i = 0; i < kSymbolCount; ++i) {
    const auto symbol = static_cast<Symbol>(i);
    names.insert(name_of(symbol));
    EXPECT_EQ(symbol_named(name_of(symbol)), symbol);
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(kSymbolCount));
  EXPECT_FALSE(symbol_named("no_such_size").has_value());
}

TEST(Profile, OfDefaultsIsThePlainTheory) {
  const Profile plain;
  EXPECT_EQ(plain.gradient_life, GradientLife::resting);
  EXPECT_EQ(plain.grain, ShardGrain::element);
  EXPECT_EQ(plain.scatter_path, ScatterPath::reduce_scatter);
  EXPECT_TRUE(plain.memory.empty());
  EXPECT_TRUE(plain.messages.empty());
  EXPECT_TRUE(plain.refusals.empty());
}

}  // namespace
}  // namespace placet

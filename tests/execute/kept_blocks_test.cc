// Memory of messages: kept for the next, and given without being written.
#include "execute/kept_blocks.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <set>
#include <vector>

namespace placet::execute {
namespace {

TEST(KeptBlocksTest, ALargeBlockIsTakenAgainForAsMuchOrLess) {
  KeptBlocks blocks;
  void* first = blocks.take(100'000);
  void* second = blocks.take(100'000);
  EXPECT_NE(first, second);
  blocks.give_back(first, 100'000);
  EXPECT_EQ(blocks.take(70'000), first);  // both are of 128 KiB
  blocks.give_back(first, 70'000);
  blocks.give_back(second, 100'000);
  void* larger = blocks.take(200'000);
  EXPECT_NE(larger, first);
  EXPECT_NE(larger, second);
  blocks.give_back(larger, 200'000);
}

TEST(KeptBlocksTest, MoreThanAreKeptGoBackToTheSystem) {
  KeptBlocks blocks;
  std::vector<void*> taken(20);
  for (void*& block : taken) block = blocks.take(KeptBlocks::kLeast);
  for (void* block : taken) blocks.give_back(block, KeptBlocks::kLeast);
  for (void*& block : taken) block = blocks.take(KeptBlocks::kLeast);
  EXPECT_EQ(std::set<void*>(taken.begin(), taken.end()).size(), taken.size());
  for (void* block : taken) blocks.give_back(block, KeptBlocks::kLeast);
}

TEST(KeptBlocksTest, AVectorHoldsWhatIsWrittenWhileItGrows) {
  Kept<std::uint32_t> numbers;
  for (std::uint32_t i = 0; i < 100'000; ++i) numbers.push_back(i);
  numbers.resize(200'000);
  std::iota(numbers.begin() + 100'000, numbers.end(), 100'000U);
  const Kept<std::uint32_t> copy = numbers;
  for (std::uint32_t i = 0; i < copy.size(); ++i) ASSERT_EQ(copy[i], i);
}

}  // namespace
}  // namespace placet::execute

#include "validate/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

namespace placet {
namespace {

TEST(ParallelTest, DoesEveryPieceOnce) {
  for (const int threads : {1, 2, 7}) {
    std::vector<int> done(100, 0);
    for_each_index(done.size(), threads, [&](std::size_t i) { ++done[i]; });
    EXPECT_EQ(done, std::vector<int>(100, 1)) << threads;
  }
  for_each_index(0, 3, [](std::size_t) { FAIL(); });
}

TEST(ParallelTest, AnExceptionEndsTheWork) {
  std::atomic<int> done{0};
  const auto work = [&](std::size_t i) {
    if (i == 3) throw std::runtime_error("three");
    ++done;
  };
  EXPECT_THROW(for_each_index(1'000'000, 2, work), std::runtime_error);
  EXPECT_LT(done, 1'000'000);
}

}  // namespace
}  // namespace placet

#include "ranks/exchange.h"

#include <gtest/gtest.h>

#include "algebra/machine.h"

namespace placet::algebra {
namespace {

using ranks::add_collective;
using ranks::elements_in;
using ranks::Extents;
using ranks::Member;

/// Members of a group, each with a buffer to give and one to take, in one memory. Element i of what
/// member r gives is 100 r + i.
struct Situation {
  OperationList list;
  std::vector<Extents> gives;
  std::vector<Extents> takes;
  std::vector<Member> members;

  Situation(std::vector<Extents> from, std::vector<Extents> to)
      : gives(std::move(from)), takes(std::move(to)) {
    for (std::size_t r = 0; r < gives.size(); ++r) {
      const std::int64_t in = elements_in(gives[r]);
      const std::int64_t out = elements_in(takes[r]);
      members.push_back({.from = {.size = in, .extents = &gives[r]},
                         .from_address = list.reserve(in),
                         .to = {.size = out, .extents = &takes[r]},
                         .to_address = list.reserve(out)});
    }
  }

  std::vector<std::vector<Element>> run(const Instruction& what) {
    EXPECT_EQ(add_collective(list, what, members), "");
    list.add_move(0, what.op);
    std::vector<Element> memory(static_cast<std::size_t>(list.memory), 7777);
    for (std::size_t r = 0; r < members.size(); ++r) {
      for (std::int64_t i = 0; i < members[r].from.size; ++i) {
        memory[static_cast<std::size_t>(members[r].from_address + i)] =
            100 * r + static_cast<Element>(i);
      }
    }
    Machine machine;
    EXPECT_FALSE(machine.run(list, memory, KeyedHash(0), 0));
    std::vector<std::vector<Element>> found;
    for (const Member& m : members) {
      const auto begin = memory.begin() + m.to_address;
      found.emplace_back(begin, begin + m.to.size);
    }
    return found;
  }
};

using Rows = std::vector<std::vector<Element>>;

TEST(ExchangeTest, AllReduceIsSumOrMax) {
  EXPECT_EQ(Situation({{2}, {2}}, {{2}, {2}}).run({.kind = InstructionKind::all_reduce}),
            (Rows{{100, 102}, {100, 102}}));
  EXPECT_EQ(Situation({{2}, {2}}, {{2}, {2}})
                .run({.kind = InstructionKind::all_reduce, .op = Combine::max}),
            (Rows{{100, 101}, {100, 101}}));
}

// [0 1; 2 3] and [100; 101] side by side, along the second dim.
TEST(ExchangeTest, AllGatherOfUnevenColumns) {
  EXPECT_EQ(Situation({{2, 2}, {2, 1}}, {{2, 3}, {2, 3}})
                .run({.kind = InstructionKind::all_gather, .dim = 1}),
            (Rows{{0, 1, 100, 2, 3, 101}, {0, 1, 100, 2, 3, 101}}));
}

TEST(ExchangeTest, AllGatherOfTheRow) {
  EXPECT_EQ(Situation({{2}, {1}}, {{3}, {3}}).run({.kind = InstructionKind::all_gather}),
            (Rows{{0, 1, 100}, {0, 1, 100}}));
}

// The sum is [100 102 104; 106 108 110]; two columns to the first, one to the second.
TEST(ExchangeTest, ReduceScatterOfUnevenColumns) {
  EXPECT_EQ(Situation({{2, 3}, {2, 3}}, {{2, 2}, {2, 1}})
                .run({.kind = InstructionKind::reduce_scatter, .dim = 1}),
            (Rows{{100, 102, 106, 108}, {104, 110}}));
}

// [0 1; 2 3; 4 5] and [100 101; 102 103; 104 105]: rows 0, 1 to the first, row 2 to the second,
// side by side.
TEST(ExchangeTest, AllToAllBetweenDims) {
  EXPECT_EQ(Situation({{3, 2}, {3, 2}}, {{2, 4}, {1, 4}})
                .run({.kind = InstructionKind::all_to_all, .dim = 0, .into = 1}),
            (Rows{{0, 1, 100, 101, 2, 3, 102, 103}, {4, 5, 104, 105}}));
}

// Each takes what the next one has, the last what the first has; sizes may differ.
TEST(ExchangeTest, PermuteTakesFromFurtherOn) {
  EXPECT_EQ(Situation({{2}, {1}, {1}}, {{1}, {1}, {2}})
                .run({.kind = InstructionKind::permute, .shift = 1}),
            (Rows{{100}, {200}, {0, 1}}));
  EXPECT_EQ(Situation({{1}, {1}, {1}}, {{1}, {1}, {1}})
                .run({.kind = InstructionKind::permute, .shift = -1}),
            (Rows{{200}, {0}, {100}}));
}

TEST(ExchangeTest, AllToAllWithinTheRow) {
  EXPECT_EQ(Situation({{4}, {4}}, {{4}, {4}}).run({.kind = InstructionKind::all_to_all}),
            (Rows{{0, 1, 100, 101}, {2, 3, 102, 103}}));
}

TEST(ExchangeTest, BroadcastFromOne) {
  EXPECT_EQ(Situation({{2}, {2}}, {{2}, {2}}).run({.kind = InstructionKind::broadcast, .peer = 1}),
            (Rows{{100, 101}, {100, 101}}));
}

TEST(ExchangeTest, SizesThatDoNotFitAreNamed) {
  const auto problem = [](std::vector<Extents> from, std::vector<Extents> to,
                          const Instruction& what) {
    Situation s(std::move(from), std::move(to));
    return add_collective(s.list, what, s.members);
  };
  EXPECT_NE(problem({{2}, {3}}, {{2}, {3}}, {.kind = InstructionKind::all_reduce}), "");
  EXPECT_NE(problem({{2}, {2}}, {{3}, {3}}, {.kind = InstructionKind::all_gather}), "");
  EXPECT_NE(problem({{2}, {2}}, {{5}, {5}}, {.kind = InstructionKind::all_gather}), "");
  EXPECT_NE(problem({{4}, {4}}, {{1}, {2}}, {.kind = InstructionKind::reduce_scatter}), "");
  EXPECT_NE(problem({{2}, {2}}, {{2}, {2}}, {.kind = InstructionKind::all_gather, .dim = 4}), "");
  EXPECT_NE(problem({{2, 2}, {2, 2}}, {{1, 2}, {1, 2}},
                    {.kind = InstructionKind::all_to_all, .dim = 0, .into = 1}),
            "");
}

TEST(ExchangeTest, ASliceAndItsSize) {
  const Extents whole{2, 3};
  const Extents part{2, 1};
  OperationList list;
  const Member buffers{.from = {.size = 6, .extents = &whole},
                       .from_address = list.reserve(6),
                       .to = {.size = 2, .extents = &part},
                       .to_address = list.reserve(2)};
  EXPECT_NE(add_slice(list, 1, {.begin = 1, .size = 2}, buffers), "");
  ASSERT_EQ(add_slice(list, 1, {.begin = 2, .size = 1}, buffers), "");
  list.add_move(0, Combine::sum);
  std::vector<Element> memory{1, 2, 3, 4, 5, 6, 0, 0};
  Machine machine;
  machine.run(list, memory, KeyedHash(0), 0);
  EXPECT_EQ(memory[6], 3U);
  EXPECT_EQ(memory[7], 6U);
}

}  // namespace
}  // namespace placet::algebra

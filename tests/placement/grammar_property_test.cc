// parse(print(p)) == p over random placements, and no text makes the parser crash.
#include <gtest/gtest.h>

#include <random>

#include "amount.h"
#include "placement/grammar.h"
#include "placement/words.h"
#include "units/error.h"

namespace placet {
namespace {

using testing::amount_of;
using testing::parse;
using testing::print;

class RandomPlacements {
 public:
  explicit RandomPlacements(std::uint32_t seed) : generator_(seed) {}

  std::int64_t pick(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(generator_);
  }
  bool one_in(std::int64_t n) { return pick(1, n) == 1; }

  Placement placement() {
    Placement placement;
    const std::int64_t axes = pick(1, 4);
    for (std::int64_t i = 0; i < axes; ++i) placement.axes.push_back(axis(i));
    return placement;
  }

 private:
  AxisPlacement axis(std::int64_t number) {
    AxisPlacement axis;
    axis.axis = AxisName("a" + std::to_string(number));
    axis.degree = number == 0 && one_in(20) ? kLargestDegree : pick(1, 64);
    for (std::int64_t i = one_in(4) ? pick(1, 5) : 0; i > 0; --i)
      axis.shares.push_back(pick(0, one_in(2) ? 99 : 2));
    axis.how = how();
    if (axis.how.cut == Cut::layer && !one_in(3)) axis.schedule = schedule();
    if (axis.how.cut == Cut::sequence && !one_in(3)) {
      axis.attention = RealisationWord{one_in(2) ? "ring" : "gather", {}};
    }
    for (std::int64_t i = one_in(2) ? pick(1, 3) : 0; i > 0; --i) {
      Override one{selector(), one_in(2) ? axis.how : how()};
      if (one_in(3)) one.how = {.cut = Cut::expert, .modes = default_modes(Cut::expert)};
      if (one_in(5)) one.how = {.cut = Cut::batch, .modes = default_modes(Cut::batch)};
      // Of two classes that are the same only the later means something, and only it is kept.
      std::erase_if(axis.overrides, [&](const Override& o) { return o.selector == one.selector; });
      axis.overrides.push_back(one);
    }
    return axis;
  }

  RealisationWord schedule() {
    if (one_in(2)) return {"in-turn", {}};
    RealisationWord word{"looped", {pick(0, 9)}};
    if (one_in(2)) word.arguments.push_back(pick(0, 99));
    return word;
  }

  Selector selector() {
    if (one_in(6)) return Checkpoints{};
    if (one_in(4)) {
      const std::int64_t first = pick(0, 50);
      return BlockRange{first, first + pick(0, 50)};
    }
    return one_in(2) ? TensorClass::experts
                     : static_cast<TensorClass>(pick(0, kTensorClassCount - 1));
  }

  Mode mode() { return static_cast<Mode>(pick(0, 4)); }

  How how() {
    How how;
    how.cut = static_cast<Cut>(pick(0, kCutCount - 1));
    how.modes = one_in(2) ? default_modes(how.cut) : Modes{mode(), mode(), mode(), mode()};
    if (one_in(4))
      how.modes = {Mode::sharded_gather, Mode::sharded, Mode::sharded, how.modes.activations};
    if (one_in(3)) how.keep = static_cast<Keep>(pick(0, 2));
    if (one_in(4)) how.prefetch = pick(0, 3);
    for (auto& offload : how.offload) {
      if (one_in(6)) offload = some_offload();
    }
    if (one_in(5)) how.update = one_in(2) ? Medium::host : Medium::device;
    if (how.cut == Cut::tensor && one_in(3)) how.tensor_indices = indices();
    return how;
  }

  Offload some_offload() {
    const std::int64_t denominator = one_in(8) ? pick(1, 999'999'999'999) : pick(1, 20);
    return {.medium = one_in(2) ? Medium::host : Medium::nvme,
            .fraction = Rational(pick(1, denominator), denominator)};
  }

  IndexSet indices() {
    IndexSet set = bit_of(Index::hidden);
    for (Index index : {Index::head, Index::kv_head, Index::ffn, Index::vocab, Index::state}) {
      if (one_in(2)) set |= bit_of(index);
    }
    if (one_in(2)) set = set == bit_of(Index::hidden) ? set : set & ~bit_of(Index::hidden);
    return set;
  }

  std::mt19937 generator_;
};

TEST(GrammarPropertyTest, WhatIsPrintedParsesBack) {
  RandomPlacements random(20260101);
  const Vocabulary words = testing::vocabulary();
  for (int i = 0; i < amount_of(20'000, 4); ++i) {
    const Placement placement = random.placement();
    const std::string text = print_placement(placement, words);
    ASSERT_EQ(parse_placement(text, words), placement) << text;
    ASSERT_EQ(print_placement(parse_placement(text, words), words), text);
  }
}

TEST(GrammarPropertyTest, RawTextSaysTheSame) {
  RandomPlacements random(7);
  const Vocabulary words = testing::vocabulary();
  Vocabulary realisations = words;
  realisations.strategies.clear();
  for (int i = 0; i < 3'000; ++i) {
    const Placement placement = random.placement();
    const std::string raw = print_placement(placement, realisations);
    ASSERT_EQ(parse_placement(raw, words), placement) << raw;
    ASSERT_EQ(print_placement(parse_placement(raw, words), words),
              print_placement(placement, words));
  }
}

// Random edits of good texts: either a placement or an InputError with a place, never anything
// else.
TEST(GrammarPropertyTest, DamagedTextIsReadOrRefused) {
  RandomPlacements random(99);
  const Vocabulary words = testing::vocabulary();
  const std::string characters = "abz059=:;,+()[]*/.- \n\tSRMO_\xff\x01";
  int refused = 0;
  for (int i = 0; i < amount_of(20'000, 4); ++i) {
    std::string text = print_placement(random.placement(), words);
    for (std::int64_t edits = random.pick(1, 3); edits > 0; --edits) {
      const auto at =
          static_cast<std::size_t>(random.pick(0, static_cast<std::int64_t>(text.size()) - 1));
      const char c = characters[static_cast<std::size_t>(
          random.pick(0, static_cast<std::int64_t>(characters.size()) - 1))];
      if (random.one_in(3))
        text.erase(at, 1);
      else if (random.one_in(2))
        text.insert(at, 1, c);
      else
        text[at] = c;
      if (text.empty()) text = " ";
    }
    try {
      const Placement placement = parse_placement(text, words);
      ASSERT_EQ(parse_placement(print_placement(placement, words), words), placement) << text;
    } catch (const InputError& error) {
      ++refused;
      ASSERT_TRUE(error.fault().where.starts_with("placement, character ")) << error.what();
      ASSERT_NE(error.fault().excerpt.find('^'), std::string::npos);
    }
  }
  EXPECT_GT(refused, amount_of(10'000, 4));
}

}  // namespace
}  // namespace placet

#include "catalog/strategy_catalog.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "catalog/renamed_words.h"
#include "placement/grammar.h"
#include "units/error.h"

namespace placet {
namespace {

constexpr Mode R = Mode::replicated;
constexpr Mode S = Mode::sharded;
constexpr Mode G = Mode::sharded_gather;
constexpr Mode O = Mode::offloaded;

const StrategyCatalog& strategies() {
  static const StrategyCatalog kStrategies =
      load_strategies(Catalog{std::filesystem::path(PLACET_SOURCE_DIR) / "data"});
  return kStrategies;
}

Placement parse(const std::string& text) { return parse_placement(text, strategies().vocabulary); }
std::string print(const std::string& text) {
  return print_placement(parse(text), strategies().vocabulary);
}
Modes modes(const std::string& how) { return parse("x=4:" + how).axes[0].how.modes; }

// The paper's spellings (docs/theory.md §2).
TEST(StrategyCatalogTest, DataParallelFamilyIsThatOfThePapers) {
  EXPECT_EQ(modes("ddp"), (Modes{R, R, R, R}));
  EXPECT_EQ(modes("zero1"), (Modes{R, S, R, R}));
  EXPECT_EQ(modes("zero2"), (Modes{R, S, S, R}));
  EXPECT_EQ(modes("zero3"), (Modes{G, S, S, R}));
  EXPECT_EQ(parse("x=4:fsdp"), parse("x=4:zero3"));
  EXPECT_EQ(modes("zero-offload"), (Modes{R, O, O, R}));
  EXPECT_EQ(modes("zero-infinity"), (Modes{O, O, O, R}));
  EXPECT_EQ(parse("a=2:mics-replica b=4:mics"), parse("a=2:ddp b=4:zero3"));
  EXPECT_EQ(parse("a=2:hpz b=4:zero3"), parse("a=2:zero3+keep b=4:zero3"));
  EXPECT_EQ(parse("x=4:zero-infinity-nvme"),
            parse("x=4:zero3+offload(parameters,nvme)+offload(optimizer,nvme)+offload(gradients)"));
}

TEST(StrategyCatalogTest, ExamplesOfTheDocumentationPrintThemselves) {
  for (const char* text :
       {"dp=64:zero3", "pp=4:1f1b dp=8:zero1 tp=8:tp+sp", "rep=2:ddp shard=8:zero3",
        "dp=8:zero1 cp=4:ring+zero1 tp=8:tp+sp", "dp=4:zero1 ep=8:ep+zero1", "dp=8:zero3+keep",
        "pp=4[22,20,20,18]:1f1b dp=2:zero3+keep-step", "dp=8:zero3+offload(optimizer,nvme)",
        "x=2:tp-2d-hidden y=4:tp", "pp=8:interleaved(2) dp=2:zero1",
        "pp=8:dualpipe dp=2:zero1 x=2:vocab-parallel",
        "pp=2:zb-v dp=2:zero2 ep=4:ep+zero2 tp=2:etp+zero2"}) {
    EXPECT_EQ(print(text), text);
  }
  EXPECT_EQ(print("dp=64:batch(S*,S,S,R)"), "dp=64:zero3");
  EXPECT_EQ(print("cp=4:sequence(R,S,R,S)+ring"), "cp=4:ring+zero1");
  EXPECT_EQ(print("tp=8:tensor(S,S,S,S*);experts:expert(S,S,S,R)"), "tp=8:ep+tp+sp");
  EXPECT_EQ(print("cp=4:ulysses+fsdp"), "cp=4:heads+zero3");
}

// A second name must mean what it prints as, or printing would change the placement.
TEST(StrategyCatalogTest, SecondNamesMeanWhatTheyPrintAs) {
  int second_names = 0;
  for (const Strategy& strategy : strategies().vocabulary.strategies) {
    if (strategy.prints_as.empty()) continue;
    ++second_names;
    EXPECT_EQ(parse("x=4:" + strategy.name), parse("x=4:" + strategy.prints_as)) << strategy.name;
    EXPECT_EQ(print("x=4:" + strategy.name), "x=4:" + strategy.prints_as);
  }
  EXPECT_GE(second_names, 8);
}

TEST(StrategyCatalogTest, EveryStrategyGivesAMeaningfulPlacement) {
  for (const Strategy& strategy : strategies().vocabulary.strategies) {
    const PartialHow& sets = strategy.meaning.sets;
    const bool has_cut = sets.cut || strategy.meaning.suggests.cut;
    const Placement placement = parse("x=4:" + strategy.name + (has_cut ? "" : "+tp"));
    for (State state : kStates) {
      const How& how = placement.axes[0].how;
      EXPECT_TRUE(is_meaningful(how.cut, state, how.modes[state])) << strategy.name;
    }
    EXPECT_FALSE(strategy.description.empty());
    EXPECT_FALSE(strategy.sources.empty());
  }
}

// No two words that print under their own name mean the same.
TEST(StrategyCatalogTest, WordsAreDistinct) {
  const auto& list = strategies().vocabulary.strategies;
  for (std::size_t i = 0; i < list.size(); ++i) {
    for (std::size_t j = i + 1; j < list.size(); ++j) {
      if (!list[i].prints_as.empty() || !list[j].prints_as.empty()) continue;
      EXPECT_NE(list[i].meaning, list[j].meaning) << list[i].name << " and " << list[j].name;
    }
  }
}

// A method holds for a whole axis, so no class may print as one, though qgz sets the modes of
// zero3.
TEST(StrategyCatalogTest, ClassesNeverPrintAsMethods) {
  EXPECT_EQ(print("dp=4:zero1;experts:zero3"), "dp=4:zero1;experts:zero3");
  EXPECT_EQ(print("dp=4:zero1;norms:fsdp"), "dp=4:zero1;norms:zero3");
  EXPECT_EQ(print("dp=4:zero1;blocks 0-3:hpz"), "dp=4:zero1;blocks 0-3:zero3+keep");
  // `ep` sets nothing of the axis, but speaks of experts, which are written out.
  EXPECT_EQ(print("dp=4:ddp;experts:zero3"), "dp=4:ddp;experts:zero3");
}

std::vector<std::string> selectors() {
  std::vector<std::string> list = {"checkpoints", "blocks 0-3"};
  for (int c = 0; c < kTensorClassCount; ++c) {
    list.emplace_back(name_of(static_cast<TensorClass>(c)));
  }
  return list;
}

/// The placement of a text; none if the grammar refuses it.
std::optional<Placement> try_parse(const std::string& text) {
  try {
    return parse(text);
  } catch (const InputError&) {
    return std::nullopt;
  }
}

// Every word of the catalogue on every class, alone and kept, on axes of every sort: what prints
// parses back to the same placement, methods included, and prints the same again.
TEST(StrategyCatalogTest, EveryWordOnEveryClassPrintsWhatParsesBack) {
  int read = 0;
  for (const char* axis : {"ddp", "zero1", "zero3", "ep", "qgz", "tp+sp", "ring+zero1"}) {
    for (const Strategy& strategy : strategies().vocabulary.strategies) {
      for (const std::string& selector : selectors()) {
        for (const char* option : {"", "+keep"}) {
          const std::string text =
              std::string("x=4:") + axis + ";" + selector + ":" + strategy.name + option;
          const auto placement = try_parse(text);
          if (!placement) continue;
          ++read;
          const std::string printed = print_placement(*placement, strategies().vocabulary);
          ASSERT_EQ(try_parse(printed), placement) << text << " prints as " << printed;
          ASSERT_EQ(print(printed), printed) << text;
        }
      }
    }
  }
  EXPECT_GT(read, 3'000);
}

TEST(StrategyCatalogTest, SchedulesTakeTheirArguments) {
  const auto schedule = [](const char* how) {
    return schedule_of(strategies(), parse(std::string("pp=4:") + how));
  };
  EXPECT_EQ(schedule("pp").order, Order::one_forward_one_backward) << "the default";
  EXPECT_EQ(schedule("gpipe").order, Order::all_forward);
  const Schedule loop = schedule("interleaved(3,16)");
  EXPECT_EQ(loop.hosting, Hosting::loop);
  EXPECT_EQ(loop.chunks, 3);
  EXPECT_EQ(loop.group, 16);
  EXPECT_EQ(schedule("interleaved(2)").group, 0);
  EXPECT_EQ(schedule("dualpipe").hosting, Hosting::bidirectional);
  EXPECT_EQ(schedule("dualpipe").chunks, 2);
  EXPECT_EQ(schedule("dualpipe-v").hosting, Hosting::vee);
  EXPECT_EQ(schedule("zb-v").order, Order::split_vee);
  EXPECT_EQ(schedule("zb-h1").order, Order::split_single);
}

std::string schedule_message(const std::string& text) {
  try {
    (void)schedule_of(strategies(), parse(text));
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(StrategyCatalogTest, ArgumentsOutOfRangeAreNamed) {
  EXPECT_EQ(schedule_message("pp=4:interleaved(1)"),
            "placement, character 18: '1' does not fit interleaved; expected a whole number of "
            "stages per device from 2 to 1024\n  pp=4:interleaved(1)\n                   ^");
  EXPECT_EQ(schedule_message("pp=4:interleaved(2,0)"),
            "placement, character 20: '0' does not fit interleaved; expected a whole number of "
            "micro-batches per group from 1 to 1048576\n  pp=4:interleaved(2,0)\n"
            "                     ^");
  EXPECT_EQ(schedule_message("a=2:1f1b b=2:gpipe"),
            "placement, axis b: 'gpipe' is a second schedule; expected one schedule for all layer "
            "axes; did you mean '1f1b'?");
}

// Keys and values forward; both and their gradients backward: (n-1)(KV) and (n-1)(KV + dKV).
TEST(StrategyCatalogTest, ExchangesListTheirMovements) {
  using enum ExchangeStep::Movement;
  using enum AttentionTensor;
  const AttentionExchange& ring = strategies().attention.at("ring");
  ASSERT_EQ(ring.steps.size(), 3U);
  EXPECT_EQ(ring.steps[0], (ExchangeStep{pieces, {keys, values}, true, false}));
  EXPECT_EQ(ring.steps[1], (ExchangeStep{pieces, {keys, values}, true, true}));
  EXPECT_EQ(ring.steps[2],
            (ExchangeStep{pieces_sum, {keys_gradient, values_gradient}, true, true}));
  EXPECT_EQ(ring.sequence_chunks, 2);
  EXPECT_FALSE(ring.whole_keys_live);
  const AttentionExchange& gathered = strategies().attention.at("gather");
  EXPECT_EQ(gathered.steps[2],
            (ExchangeStep{scatter_sum, {keys_gradient, values_gradient}, false, true}));
  EXPECT_TRUE(gathered.whole_keys_live);
  const AttentionExchange& exchanged = strategies().attention.at("heads");
  EXPECT_TRUE(exchanged.cuts_heads);
  EXPECT_EQ(exchanged.steps.size(), 4U);
  const auto exchanges = attention_of(strategies(), parse("dp=2:ddp a=2:heads b=2:cp"));
  ASSERT_EQ(exchanges.size(), 3U);
  EXPECT_EQ(exchanges[1].name, "heads");
  EXPECT_EQ(exchanges[2].name, "ring");
}

// --- names carry no meaning

void rename_words(Placement& placement, const testing::RenamedCatalog& words) {
  for (AxisPlacement& axis : placement.axes) {
    for (auto* word : {&axis.schedule, &axis.attention}) {
      if (*word) (*word)->word = words.new_name.at((*word)->word);
    }
    if (axis.method) axis.method = words.new_name.at(*axis.method);
  }
}

std::vector<std::string> many_texts() {
  std::vector<std::string> texts = {
      "pp=4[3,3,2,2]:interleaved(2,8)+vocab-parallel dp=8:zero1",
      "dp=2:zero3+keep;norms:ddp;blocks 0-3:zero1 tp=8:tp+sp;experts:ep"};
  std::vector<std::string> words;
  for (const Strategy& one : strategies().vocabulary.strategies) words.push_back(one.name);
  for (const Realisation& one : strategies().vocabulary.realisations) {
    words.push_back(one.name + (one.least_arguments > 0 ? "(2)" : ""));
  }
  for (const std::string& a : words) {
    texts.push_back("x=4:" + a);
    for (const std::string& b : words) texts.push_back("x=4:" + a + "+" + b + " y=2:" + b);
  }
  return texts;
}

TEST(StrategyCatalogTest, RandomWordsGiveTheSamePlacements) {
  for (std::uint32_t seed : {1U, 2U, 3U}) {
    const testing::RenamedCatalog other = testing::renamed(strategies(), seed);
    int parsed = 0;
    for (const std::string& text : many_texts()) {
      Placement expected;
      try {
        expected = parse(text);
      } catch (const InputError&) {
        EXPECT_THROW(
            (void)parse_placement(testing::translated(text, other), other.catalog.vocabulary),
            InputError);
        continue;
      }
      ++parsed;
      Placement found = parse_placement(testing::translated(text, other), other.catalog.vocabulary);
      rename_words(expected, other);
      EXPECT_EQ(found, expected) << text;
    }
    EXPECT_GT(parsed, 500);
  }
}

TEST(StrategyCatalogTest, RandomWordsResolveToTheSameRealisations) {
  const testing::RenamedCatalog other = testing::renamed(strategies(), 4);
  for (const char* text :
       {"pp=4:zb-v", "pp=4:interleaved(3)", "pp=4:pp", "cp=4:heads", "cp=4:hdp"}) {
    const Placement here = parse(text);
    const Placement there =
        parse_placement(testing::translated(text, other), other.catalog.vocabulary);
    Schedule a = schedule_of(strategies(), here);
    Schedule b = schedule_of(other.catalog, there);
    EXPECT_EQ(b.name, other.new_name.at(a.name));
    b.name = a.name;
    EXPECT_EQ(a, b);
    AttentionExchange x = attention_of(strategies(), here)[0];
    AttentionExchange y = attention_of(other.catalog, there)[0];
    y.name = x.name;
    EXPECT_EQ(x, y);
  }
}

// --- strictness

/// A catalogue of its own with one good file per folder, to be spoiled.
class SmallCatalog : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::temp_directory_path() /
            ("placet-strategies-" +
             std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::remove_all(root_);
    write("strategies", "w", R"({"schema":"placet.strategy/1","name":"w","description":"d",
        "sources":["s"],"sets":{"parameters":"R"},"suggests":{"cut":"batch"}})");
    write("schedules", "t", R"({"schema":"placet.schedule/1","name":"t","description":"d",
        "sources":["s"],"default":true,"sets":{"cut":"layer"},"hosting":"single",
        "order":"one_forward_one_backward","chunks":1})");
    write("attention", "r", R"({"schema":"placet.attention/1","name":"r","description":"d",
        "sources":["s"],"default":true,"sets":{"cut":"sequence"},
        "steps":[{"movement":"gather","tensors":["keys"],"together":true,"phase":"forward"}],
        "whole_keys_live":true,"cuts_heads":false,"sequence_chunks":1})");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void write(const std::string& folder, const std::string& name, const std::string& text) {
    std::filesystem::create_directories(root_ / folder);
    std::ofstream(root_ / folder / (name + ".json")) << text;
  }
  void remove(const std::string& folder, const std::string& name) {
    std::filesystem::remove(root_ / folder / (name + ".json"));
  }
  void write_strategy(const std::string& rest) {
    write("strategies", "w",
          R"({"schema":"placet.strategy/1","name":"w","description":"d","sources":["s"],)" + rest +
              "}");
  }
  void write_schedule(const std::string& rest) {
    write("schedules", "t",
          R"({"schema":"placet.schedule/1","name":"t","description":"d","sources":["s"],)"
          R"("default":true,)" +
              rest + "}");
  }

  std::string message() {
    try {
      (void)load_strategies(Catalog{root_});
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }
  void expect(const std::string& part) {
    EXPECT_NE(message().find(part), std::string::npos) << message();
  }

  std::filesystem::path root_;
};

TEST_F(SmallCatalog, IsReadAsItStands) {
  EXPECT_EQ(message(), "");
  EXPECT_EQ(load_strategies(Catalog{root_}).default_schedule, "t");
}

TEST_F(SmallCatalog, UnknownAndMissingKeysAreRefused) {
  write_strategy(R"("sets":{"paramters":"R"})");
  expect("sets");
  expect("paramters");
  expect("did you mean 'parameters'");
  write("strategies", "w", R"({"schema":"placet.strategy/1","name":"w","sources":["s"]})");
  expect("description");
  write_strategy(R"("sets":{"parameters":"X"})");
  expect("sets.parameters");
  write_strategy(R"("bytes":16,"sets":{"parameters":"R"})");
  expect("bytes");
}

TEST_F(SmallCatalog, StrategiesHoldNoNumbers) {
  write_strategy(R"("sets":{"prefetch":2})");
  expect("prefetch");
  write_strategy(R"("sets":{"offload":{"optimizer":0.5}})");
  expect("sets.offload.optimizer");
  write_strategy(R"("sets":{"offload":{"optimizer":"device"}})");
  expect("is no offload");
}

TEST_F(SmallCatalog, StrategiesMustSaySomething) {
  write_strategy(R"("sets":{})");
  expect("says nothing");
  write_strategy(R"("classes":{"expert":{"sets":{"cut":"expert"}}})");
  expect("did you mean 'experts'");
  write_strategy(R"("classes":{"experts":{"sets":{"schedule":"t"}}})");
  expect("realisations of the axis");
  write_strategy(R"("sets":{"cut":"layer","schedule":"u"})");
  expect("'u' is not a known realisation");
}

TEST_F(SmallCatalog, NamesMustBeThoseOfTheFilesAndUnique) {
  write("strategies", "v", R"({"schema":"placet.strategy/1","name":"w","description":"d",
      "sources":["s"],"sets":{"cut":"batch"}})");
  expect("differs from the name of its file");
  remove("strategies", "v");
  write("strategies", "t", R"({"schema":"placet.strategy/1","name":"t","description":"d",
      "sources":["s"],"sets":{"cut":"batch"}})");
  expect("'t' names two things");
}

TEST_F(SmallCatalog, SchedulesFitTheirHosting) {
  write_schedule(R"("sets":{"cut":"layer"},"hosting":"loop","order":"split_vee","chunks":2)");
  expect("cannot work on this hosting");
  write_schedule(R"("sets":{"cut":"layer"},"hosting":"vee","order":"split_vee","chunks":3)");
  expect("chunks");
  write_schedule(R"("sets":{"cut":"layer"},"hosting":"ring","order":"split_vee","chunks":2)");
  expect("hosting");
}

TEST_F(SmallCatalog, ExactlyOneDefault) {
  write("schedules", "t", R"({"schema":"placet.schedule/1","name":"t","description":"d",
      "sources":["s"],"sets":{"cut":"layer"},"hosting":"single",
      "order":"one_forward_one_backward","chunks":1})");
  expect("no file is marked as the default");
  SetUp();
  write("schedules", "u", R"({"schema":"placet.schedule/1","name":"u","description":"d",
      "sources":["s"],"default":true,"sets":{"cut":"layer"},"hosting":"single",
      "order":"all_forward","chunks":1})");
  expect("is a second default");
}

TEST_F(SmallCatalog, ExchangesAreChecked) {
  const std::string head = R"({"schema":"placet.attention/1","name":"r","description":"d",
      "sources":["s"],"default":true,"sets":{"cut":"sequence"},"whole_keys_live":true,
      "cuts_heads":false,"sequence_chunks":1,)";
  write("attention", "r", head + R"("steps":[]})");
  expect("steps");
  write("attention", "r",
        head + R"("steps":[{"movement":"gathr","tensors":["keys"],"together":true,)"
               R"("phase":"forward"}]})");
  expect("did you mean 'gather'");
}

}  // namespace
}  // namespace placet

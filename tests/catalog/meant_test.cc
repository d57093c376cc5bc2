#include "catalog/meant.h"

#include <gtest/gtest.h>

#include <set>

#include "catalog/catalog_files.h"
#include "catalog/cluster_catalog.h"
#include "catalog/defaults.h"
#include "catalog/model_catalog.h"
#include "catalog/network_words.h"
#include "catalog/profile_catalog.h"
#include "catalog/strategy_catalog.h"
#include "catalog/word_file.h"
#include "model/build.h"
#include "placement/grammar.h"
#include "units/error.h"

namespace placet {
namespace {

using Words = std::vector<std::string>;

TEST(SqueezedTest, DigitsAreNeverJoined) {
  EXPECT_EQ(squeezed("RTX_4090"), "rtx4090");
  EXPECT_EQ(squeezed("Llama 2-7B"), "llama2-7b");
  EXPECT_NE(squeezed("llama-2-7b"), squeezed("llama-27b"));
  EXPECT_EQ(squeezed("--"), "");
}

TEST(MeantNetworkTest, UnusualSpeedsAreRefusedOrTakenLiterally) {
  const Catalog catalog = repository_catalog();
  EXPECT_EQ(meant_network(catalog, "400GbE").text, "roce-400");
  const Meant usual = meant_network(catalog, "800 GbE");
  EXPECT_EQ(usual.text, "800gbit");
  EXPECT_TRUE(usual.notes.empty());
  const Meant literal = meant_network(catalog, "401 Gb/s");
  EXPECT_EQ(literal.text, "401gbit");
  ASSERT_EQ(literal.notes.size(), 1U);
  EXPECT_NE(literal.notes.front().find("literally"), std::string::npos);
  try {
    read_network(catalog, meant_network(catalog, "401gbe").text, 8, "--cluster");
    FAIL() << "401gbe is no speed of Ethernet";
  } catch (const InputError& error) {
    const std::string said = error.what();
    EXPECT_NE(said.find("is no speed of Ethernet"), std::string::npos) << said;
    EXPECT_NE(said.find("did you mean '400gbe'"), std::string::npos) << said;
    EXPECT_NE(said.find("401gbit"), std::string::npos) << said;
  }
}

// A misspelt network of another kind is no speed.
TEST(MeantNetworkTest, OnlyANumberIsASpeedOfEthernet) {
  const Catalog catalog = repository_catalog();
  for (const char* text : {"gbe", "fastgbe", "x400gbe"}) {
    try {
      read_network(catalog, meant_network(catalog, text).text, 8, "--cluster");
      ADD_FAILURE() << text << " is no network";
    } catch (const InputError& error) {
      const std::string said = error.what();
      EXPECT_NE(said.find("is no network that is known"), std::string::npos) << said;
    }
  }
}

TEST(MeantNameTest, TheLeastChangeWins) {
  const WordFile words{.kind = "thing",
                       .beginnings = {{"acme-", ""}},
                       .endings = {{"-instruct", "the same shapes"}},
                       .aliases = {{"small", "a-7b", "the smaller one"}},
                       .entries = {}};
  const Words names = {"a-7b", "a-70b", "a-70b-instruct"};
  const auto meant = [&](const char* word) { return meant_name(words, names, word); };
  EXPECT_EQ(meant("a-7b"), (MeantName{"a-7b", ""}));
  EXPECT_EQ(meant("A7B"), (MeantName{"a-7b", ""}));
  EXPECT_EQ(meant("Acme-A-7B"), (MeantName{"a-7b", ""}));
  EXPECT_EQ(meant("a-7b-instruct"), (MeantName{"a-7b", "the same shapes"}));
  EXPECT_EQ(meant("a-70b-Instruct"), (MeantName{"a-70b-instruct", ""})) << "it is a name itself";
  EXPECT_EQ(meant("small"), (MeantName{"a-7b", "the smaller one"}));
  EXPECT_EQ(meant("small-instruct"), (MeantName{"a-7b", "the smaller one"}));
  EXPECT_EQ(meant("b-7b"), MeantName{});
  EXPECT_EQ(meant("-instruct"), MeantName{}) << "nothing would be left";
}

// Names that are spelled alike but for dashes could not be told apart.
TEST(WordFilesTest, SecondNamesStandForNamesAndForOneEach) {
  const Catalog catalog = repository_catalog();
  const auto check = [&](const char* file, const Words& names) {
    std::set<std::string> spellings;
    for (const std::string& name : names) EXPECT_TRUE(spellings.insert(squeezed(name)).second);
    for (const Alias& alias : load_words(catalog, file).aliases) {
      const std::string first = alias.means.substr(0, alias.means.find('+'));
      EXPECT_NE(std::ranges::find(names, first), names.end()) << file << ": " << alias.means;
      EXPECT_TRUE(spellings.insert(squeezed(alias.word)).second) << file << ": " << alias.word;
    }
  };
  check("devices", names_in(catalog, "hardware/devices"));
  check("clusters", names_in(catalog, "clusters"));
  check("models", names_in(catalog, "models"));
  check("optimizers", names_in(catalog, "optimizers"));
  check("precisions", names_in(catalog, "precisions"));
  std::set<std::string> engines;
  for (const std::string& file : profile_names(catalog)) {
    engines.insert(file.substr(0, file.find('@')));
  }
  check("engines", {engines.begin(), engines.end()});
  const Vocabulary vocabulary = load_strategies(catalog).vocabulary;
  Words terms = {"sp"};
  for (const Strategy& one : vocabulary.strategies) terms.push_back(one.name);
  for (const Realisation& one : vocabulary.realisations) terms.push_back(one.name);
  check("strategies", terms);
}

TEST(MeantClusterTest, SizesAreReadAsPeopleWriteThem) {
  const Catalog catalog = repository_catalog();
  const auto meant = [&](const char* text) { return meant_cluster(catalog, text).text; };
  EXPECT_EQ(meant("h100-sxm:8"), "h100-sxm:8");
  EXPECT_EQ(meant("H100"), "h100-sxm");
  EXPECT_EQ(meant("h100:2"), "h100-sxm:2");
  EXPECT_EQ(meant("8xh100"), "8xh100-sxm");
  EXPECT_EQ(meant("8 x H100"), "8xh100-sxm");
  EXPECT_EQ(meant("8*h100"), "8xh100-sxm");
  EXPECT_EQ(meant("h100x8"), "8xh100-sxm");
  EXPECT_EQ(meant("h100 x 8"), "8xh100-sxm");
  EXPECT_EQ(meant("8h100"), "8xh100-sxm");
  EXPECT_EQ(meant("2x8h100"), "h100-sxm:2");
  EXPECT_THROW(meant_cluster(catalog, "8xh100:2"), InputError) << "devices or hosts?";
  EXPECT_EQ(meant("mi300x"), "mi300x") << "no count";
  EXPECT_EQ(meant("mi300xx8"), "8xmi300x");
  EXPECT_EQ(meant("4x8xa100"), "a100-80gb-sxm:4") << "hosts of 8";
  EXPECT_EQ(meant("512xa100,512xh100"), "512xa100-80gb-sxm,512xh100-sxm");
  EXPECT_EQ(meant("DGX-H100:2"), "dgx-h100:2");
  EXPECT_EQ(meant("./my.toml"), "./my.toml");
  EXPECT_EQ(meant("8xz9000"), "8xz9000") << "left for its reader to refuse";
  EXPECT_THROW(meant_cluster(catalog, "2x4xh100"), InputError);
  EXPECT_EQ(meant_cluster(catalog, "8xh100-sxm").notes, Words{});
  EXPECT_EQ(meant_cluster(catalog, "8xh100").notes.size(), 1U);
}

// The name of a machine with a count: devices, as everywhere, but said. A cluster's own name comes
// before what else a device is called.
TEST(MeantClusterTest, MachinesAndDevicesAreToldApart) {
  const Catalog catalog = repository_catalog();
  const Meant two = meant_cluster(catalog, "2xdgx-h100");
  EXPECT_EQ(two.text, "2xdgx-h100");
  EXPECT_EQ(two.notes, Words{"--cluster: 2xdgx-h100 is 2 devices of it; as many hosts are "
                             "dgx-h100:2"});
  EXPECT_EQ(meant_cluster(catalog, "dgx-h100:2").notes, Words{});
  EXPECT_EQ(meant_cluster(catalog, "gb200-nvl72").text, "gb200-nvl72");
}

// v0.2 attends over the whole sample and v0.1 does not: no alias joins the two.
TEST(MeantModelTest, ModelsThatAttendOtherwiseAreNotTheSame) {
  const Catalog catalog = repository_catalog();
  EXPECT_EQ(meant_model(catalog, "mistral-7b-instruct-v0.2").text, "mistral-7b-v0.2");
  EXPECT_EQ(meant_model(catalog, "microsoft/Phi-3-mini-128k-instruct").text, "phi-3-mini-128k");
}

TEST(MeantModelTest, OwnersAndEndingsAreDropped) {
  const Catalog catalog = repository_catalog();
  const auto meant = [&](const char* text) { return meant_model(catalog, text).text; };
  EXPECT_EQ(meant("meta-llama/Meta-Llama-3-8B-Instruct"), "llama-3-8b");
  EXPECT_EQ(meant("Qwen/Qwen3-8B-Base"), "qwen3-8b");
  EXPECT_EQ(meant("google/gemma-2-9b-it"), "gemma-2-9b");
  EXPECT_EQ(meant("70B"), "70B");
  EXPECT_EQ(meant("params=70e9"), "params=70e9");
  EXPECT_EQ(meant("./meta-llama/Llama-3.1-8B"), "./meta-llama/Llama-3.1-8B") << "a path";
  EXPECT_THROW(meant_model(catalog, "nobody/no-such-model"), InputError) << "neither file nor name";
  // A folder of that name may be missing by mistake, so that what is taken instead is said.
  EXPECT_EQ(meant_model(catalog, "meta-llama/Llama-3.1-8B").notes,
            Words{"MODEL: there is no file meta-llama/Llama-3.1-8B here; it is taken as "
                  "llama-3.1-8b of the catalogue"});
  EXPECT_EQ(meant_model(catalog, "Llama-3.1-8B-Instruct").notes.size(), 1U);
}

// Files of releases 0.14 and 0.19.2 and later; of years; of 1 alone.
TEST(MeantEngineTest, AReleaseIsTheNewestOneThatIsDescribedAndNotNewer) {
  const Catalog catalog = repository_catalog();
  const auto meant = [&](const char* text) { return meant_engine(catalog, text).text; };
  EXPECT_EQ(meant("deepspeed@0.18.9"), "deepspeed@0.14");
  EXPECT_EQ(meant("deepspeed@0.19.2"), "deepspeed@0.19.2");
  EXPECT_EQ(meant("deepspeed@0.19"), "deepspeed@0.19.3") << "of that release the last one";
  EXPECT_EQ(meant("deepspeed@0.99+qwz"), "deepspeed@0.19.3+qwz");
  EXPECT_EQ(meant("megatron@2024.02"), "megatron@2024");
  for (const char* unknown : {"deepspeed@0.1", "deepspeed@1", "deepspeed@0.x", "deepspeed@",
                              "megatron@2023", "placet@99", "nothing@1"}) {
    EXPECT_EQ(meant(unknown), unknown);
    EXPECT_TRUE(meant_engine(catalog, unknown).notes.empty()) << unknown;
  }
  EXPECT_EQ(
      meant_engine(catalog, "deepspeed@0.18.9").notes,
      Words{"--engine: 'deepspeed@0.18.9' is taken as deepspeed@0.14 (the last release described "
            "before it)"});
  EXPECT_EQ(
      meant_engine(catalog, "deepspeed@0.19").notes,
      Words{"--engine: 'deepspeed@0.19' is taken as deepspeed@0.19.3 (the last release described "
            "of it)"});
}

TEST(MeantPlacementTest, AnAxisWithoutHowIsItsName) {
  const Catalog catalog = repository_catalog();
  const Vocabulary vocabulary = load_strategies(catalog).vocabulary;
  const auto meant = [&](const char* text) {
    return meant_placement(catalog, vocabulary, text).text;
  };
  EXPECT_EQ(meant("fsdp=8"), "fsdp=8:fsdp");
  EXPECT_EQ(meant("dp=2, TP=8 PP=2"), "dp=2:ddp tp=8:tp pp=2:1f1b");
  EXPECT_EQ(meant("tp8 pp4"), "tp=8:tp pp=4:1f1b");
  EXPECT_EQ(meant("pp=4[3,3,3,3] dp=2:ZeRO-1"), "pp=4[3,3,3,3]:1f1b dp=2:zero1");
  EXPECT_EQ(meant("dp=8:full_shard+Keep"), "dp=8:fsdp+keep");
  EXPECT_EQ(meant("dp=4:zero1;experts:ZERO3 tp=2"), "dp=4:zero1;experts:zero3 tp=2:tp");
  EXPECT_EQ(meant("dp=8:zero9"), "dp=8:zero9") << "left for the grammar to refuse";
  EXPECT_EQ(meant("dp = 8 : batch(S*,S,S,R)"), "dp = 8 : batch(S*,S,S,R)") << "as it was";
  EXPECT_EQ(meant("foo=8"), "foo=8");
  const std::string refused =
      "placement: 'pt' is an axis whose name does not say how it is used; expected ':' and its "
      "use behind the degree (pt=2:tp), or a name that says it, such as dp, tp, pp or fsdp; "
      "did you mean 'pp'?";
  for (const char* text : {"fsdp=8,pt=2", "pt=2 fsdp=8", "fsdp=8:fsdp, pt=2", "pt2,fsdp8"}) {
    EXPECT_EQ(message_of([&] { meant(text); }), refused) << text;
  }
}

TEST(TokensTest, KAndMAreOf1024) {
  EXPECT_EQ(tokens_in("4096"), 4096);
  EXPECT_EQ(tokens_in("4k"), 4096);
  EXPECT_EQ(tokens_in("128K"), 131072);
  EXPECT_EQ(tokens_in("1M"), 1048576);
  EXPECT_EQ(tokens_in("k"), std::nullopt);
  EXPECT_EQ(tokens_in("4kk"), std::nullopt);
  EXPECT_EQ(tokens_in("4.5k"), std::nullopt);
  EXPECT_EQ(tokens_in("99999999999999999k"), std::nullopt);
}

// 8.03e9 parameters: 2,097,152 tokens (up to 13e9), 512 samples of 4096. On 24 devices 528 is the
// next multiple. On 16,384 devices one sample for 8 of them is more: 2048. With adapters 16.
TEST(AssumedBatchTest, FollowsSizeAndDevices) {
  const Catalog catalog = repository_catalog();
  const JobDefaults defaults = load_defaults(catalog);
  const Model model = load_model(catalog, "llama-3.1-8b");
  const auto samples = [&](std::int64_t devices, std::int64_t sequence) {
    return assumed_batch(defaults, model, devices, sequence).samples;
  };
  EXPECT_EQ(samples(8, 4096), 512);
  EXPECT_EQ(samples(24, 4096), 528);
  EXPECT_EQ(samples(16384, 4096), 2048);
  EXPECT_EQ(samples(1, 8'388'608), 1) << "a sample of more tokens than a step";
  EXPECT_EQ(assumed_batch(defaults, load_model(catalog, "gpt2"), 8, 1024).samples, 512);
}

}  // namespace
}  // namespace placet

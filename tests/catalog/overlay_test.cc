// A user's own folder over the catalogue: each kind of file once, under a name that the shipped
// data lack; what hides what; and what a broken or hostile file does to the others.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "catalog/bug_catalog.h"
#include "catalog/catalog_files.h"
#include "catalog/choices_catalog.h"
#include "catalog/cluster_catalog.h"
#include "catalog/cluster_parts.h"
#include "catalog/data_folder.h"
#include "catalog/defaults.h"
#include "catalog/family_files.h"
#include "catalog/job.h"
#include "catalog/meant.h"
#include "catalog/model_catalog.h"
#include "catalog/profile_catalog.h"
#include "catalog/strategy_catalog.h"
#include "catalog/training_catalog.h"
#include "catalog/word_file.h"
#include "placement/grammar.h"

namespace placet {
namespace {

using Edit = nlohmann::ordered_json;

class OverlayTest : public ::testing::Test {
 protected:
  /// The text of a shipped file under another name, with some keys set otherwise.
  static std::string text_as(const std::string& folder, const std::string& shipped,
                             const std::string& name, const Edit& changes = Edit::object()) {
    std::ifstream in(repository_catalog().root / folder / (shipped + ".json"));
    Edit json = Edit::parse(in);
    json["name"] = name.substr(0, name.find('@'));
    if (name.find('@') != std::string::npos) json["version"] = name.substr(name.find('@') + 1);
    json.merge_patch(changes);
    return json.dump(2);
  }

  /// Writes it into the overlay.
  void as(const std::string& folder, const std::string& shipped, const std::string& name,
          const Edit& changes = Edit::object()) const {
    folder_.write(folder + "/" + name + ".json", text_as(folder, shipped, name, changes));
  }

  Catalog catalog() const {
    return {.root = repository_catalog().root, .overlays = {folder_.path()}};
  }

  std::string parsed(const std::string& text) const {
    return message_of([&] { parse_placement(text, load_strategies(catalog()).vocabulary); },
                      folder_.path());
  }

  TestFolder folder_;
};

TEST_F(OverlayTest, HoldsHardware) {
  as("hardware/links", "nvlink-4", "my-link", Edit::parse(R"({"bandwidth_gb_s":{"value":77}})"));
  as("hardware/hosts", "hgx-h100", "my-host",
     Edit::parse(R"({"links":[{"link":"my-link","devices":8}]})"));
  as("hardware/devices", "h100-sxm", "my-device",
     Edit::parse(R"({"host":"my-host","memory_gib":{"value":50}})"));
  folder_.write("clusters/my-cluster.json",
                R"({"schema":"placet.cluster/1","name":"my-cluster","title":"mine","source":"me",
                    "groups":[{"device":"my-device"}]})");
  const Cluster cluster = load_cluster(catalog(), "my-cluster:2", std::nullopt, "--cluster");
  // Two hosts of 8; 50 GiB are 50 * 2^30 bytes; the link inside a host is that of the overlay.
  EXPECT_EQ(cluster.groups.front().count, 16);
  EXPECT_EQ(cluster.groups.front().device.memory, bytes(50LL << 30));
  EXPECT_EQ(cluster.groups.front().levels.front().link, "my-link");
  EXPECT_EQ(cluster.groups.front().levels.front().bandwidth, gigabytes_per_second(77));
  EXPECT_EQ(meant_cluster(catalog(), "8x My Device").text, "8xmy-device");
}

TEST_F(OverlayTest, HoldsModelsFamiliesAndDefaults) {
  folder_.write("families/mine.json",
                R"({"schema":"placet.family-file/1","name":"mine","source":"me","date":"2026-11",
                    "like":"llama"})");
  // vocabulary 10 x 4 twice, 1 block of q k v o (4 x 16), three matrices of 4 x 8 and two norms of
  // 4, and the last norm: 80 + 64 + 96 + 8 + 4 = 252 parameters.
  folder_.write("models/tiny.json",
                R"({"schema":"placet.model-file/1","name":"tiny","title":"Tiny","source":"me",
                    "date":"2026-11-24","config":{"model_type":"mine","hidden_size":4,
                    "num_hidden_layers":1,"num_attention_heads":2,"num_key_value_heads":2,
                    "intermediate_size":8,"vocab_size":10,"max_position_embeddings":16,
                    "hidden_act":"silu","rms_norm_eps":1e-6,"tie_word_embeddings":false},
                    "parameters":{"total":252,"total_source":"by hand"}})");
  EXPECT_EQ(count_parameters(load_model(catalog(), "tiny")).total, 252);
  as("defaults", "job", "job", Edit::parse(R"({"name":null,"sequence":{"value":1234}})"));
  EXPECT_EQ(load_defaults(catalog()).sequence.value, 1234);
  as("decoders", "ordinary", "ordinary", Edit::parse(R"({"config":{"vocab_size":1000}})"));
  const std::string notes = load_model(catalog(), "decoder=7B").notes.back();
  EXPECT_NE(notes.find(" 1000 tokens"), std::string::npos) << notes;
}

TEST_F(OverlayTest, HoldsTraining) {
  as("formats", "nf4", "nf4-small",
     Edit::parse(R"({"constants":[{"what":"a","dtype":"fp32","elements":32}]})"));
  as("precisions", "bf16", "mine", Edit::parse(R"({"gradients":"fp32"})"));
  as("optimizers", "sgd", "my-sgd");
  EXPECT_EQ(load_format(catalog(), "nf4-small", "--precision").constants.front().elements, 32);
  EXPECT_EQ(load_precision(catalog(), "mine", {}, "--precision").precision.gradients, Dtype::fp32);
  EXPECT_EQ(load_optimizer(catalog(), "my-sgd", "--optimizer").name, "my-sgd");
}

TEST_F(OverlayTest, HoldsWordsOfPlacements) {
  as("strategies", "zero1", "my-zero");
  as("schedules", "gpipe", "my-pipe");
  as("attention", "ring", "my-ring");
  EXPECT_EQ(parsed("pp=2:my-pipe dp=2:my-zero cp=2:my-ring+my-zero"), "no error");
  const StrategyCatalog strategies = load_strategies(catalog());
  EXPECT_EQ(resolve_schedule(strategies, RealisationWord{"my-pipe", {}}).order, Order::all_forward);
  // The ring of the overlay says "default" too, and lies higher than the one that is shipped.
  EXPECT_EQ(strategies.default_attention, "my-ring");
  EXPECT_EQ(strategies.default_schedule, load_strategies(repository_catalog()).default_schedule);
  as("search", "all", "mine");
  EXPECT_EQ(load_choices(catalog(), strategies, "mine").name, "mine");
}

TEST_F(OverlayTest, ASchedulesTableIsMadeForOneDegree) {
  const auto write = [&](const std::string& name, const std::string& table) {
    folder_.write(
        "schedules/" + name + ".json",
        R"({"schema":"placet.schedule/1","name":")" + name +
            R"(","description":"Mine.","sources":["me"],"sets":{"cut":"layer"},"table":)" + table +
            "}");
  };
  write("rows", R"(["0F0 0F1 0B0 0B1","1F0 1B0 1F1 1B1"])");
  write("beside", R"("tables/two.csv")");
  folder_.write("schedules/tables/two.csv", "0F0,0F1,,0B0,0B1\n,1F0,1B0,1F1,1B1\n");
  write("stuck", R"(["0F0 0B0 0F1 0B1","1F0 1F1 1B0 1B1"])");
  const StrategyCatalog strategies = load_strategies(catalog());
  const auto schedule = [&](const std::string& text) {
    return schedule_of(strategies, parse_placement(text, strategies.vocabulary));
  };
  EXPECT_EQ(schedule("pp=2:rows").table, schedule("pp=2:beside").table);
  EXPECT_EQ(
      message_of([&] { schedule("pp=4:rows"); }),
      "placement, rows: '4' is not the degree of this table; expected 2, a device for each row");
  EXPECT_TRUE(
      parsed("pp=2:stuck")
          .starts_with("schedules/stuck.json: table, row 1, slot 2: '0B0' waits for ever for 1B0"))
      << parsed("pp=2:stuck");
  write("both", R"(["0F0 0B0"],"hosting":"single")");
  EXPECT_EQ(parsed("pp=2:both"),
            "schedules/both.json: hosting: 'single' is said beside a table; expected one of both");
}

TEST_F(OverlayTest, HoldsWordsAndBugs) {
  folder_.write("words/devices.json",
                R"({"schema":"placet.words/1","kind":"device",
                    "aliases":[{"word":"our-card","means":"h100-sxm"},
                               {"word":"h100","means":"h200-sxm"}]})");
  const Catalog both = catalog();
  const auto meaning = [&](const char* word) {
    return meant_name(load_words(both, "devices"), names_in(both, "hardware/devices"), word).name;
  };
  EXPECT_EQ(meaning("our-card"), "h100-sxm");
  EXPECT_EQ(meaning("h100"), "h200-sxm");             // the overlay's line comes first
  EXPECT_EQ(meaning("nvidia-h200-sxm"), "h200-sxm");  // a beginning of the shipped file
  const std::string shipped = names_in(repository_catalog(), "bugs").front();
  as("bugs", shipped, "MY-BUG", Edit::parse(R"({"title":"ours"})"));
  const std::string text = message_of([&] { EXPECT_EQ(load_bug(both, "MY-BUG").title, "ours"); });
  EXPECT_EQ(text, "no error");
}

// What the engine files of these tests say, but for name, version and what they inherit.
std::string engine(const std::string& name, const std::string& version, const std::string& inherits,
                   std::int64_t prefetch) {
  return R"({"schema":"placet.engine/1","name":")" + name + R"(","version":")" + version +
         R"(","date":"2026-11","title":"mine")" +
         (inherits.empty() ? "" : R"(,"inherits":")" + inherits + '"') +
         R"(,"prefetch":{"value":)" + std::to_string(prefetch) + R"(,"source":"me"}})";
}

TEST_F(OverlayTest, AnEngineInheritsWhatItHides) {
  const auto profile = [&](const std::string& text) {
    return load_profile(catalog(), text, "--engine");
  };
  folder_.write("engines/mine@1.json", engine("mine", "1", "megatron@2026", 3));
  const MessageGrain shipped =
      load_profile(repository_catalog(), "megatron@2026", "--engine").gradient_grain;
  EXPECT_EQ(profile("mine").prefetch, 3);
  EXPECT_EQ(profile("mine").gradient_grain, shipped);
  // Under its own name a file inherits the one below it; so do the options that lie on that.
  folder_.write("engines/megatron@2026.json", engine("megatron", "2026", "megatron@2026", 5));
  EXPECT_EQ(profile("megatron@2026").prefetch, 5);
  EXPECT_EQ(profile("megatron@2026").gradient_grain, shipped);
  EXPECT_EQ(profile("megatron@2026+overlap").gradient_grain, MessageGrain::bucket);
  EXPECT_EQ(profile("megatron@2026+overlap").prefetch, 5);
  // A path is taken from the file's own folder.
  folder_.write("elsewhere/other@2.json", engine("other", "2", "../engines/mine@1.json", 7));
  EXPECT_EQ(profile(folder_.path() / "elsewhere/other@2.json").prefetch, 7);
}

TEST_F(OverlayTest, CirclesAndChainsOfEnginesEnd) {
  const auto text = [&](const char* name) {
    return message_of([&] { load_profile(catalog(), name, "--engine"); }, folder_.path());
  };
  folder_.write("engines/a@1.json", engine("a", "1", "b@1", 1));
  folder_.write("engines/b@1.json", engine("b", "1", "a@1", 1));
  folder_.write("engines/self@1.json", engine("self", "1", "self@1", 1));
  folder_.write("engines/placet@1-round.json", engine("placet", "1-round", "placet@1-trip", 1));
  folder_.write("engines/placet@1-trip.json", engine("placet", "1-trip", "placet@1-round", 1));
  EXPECT_EQ(
      text("a"),
      "engines/b@1.json: inherits: 'a@1' goes round in a circle; expected a profile that does "
      "not inherit this one");
  EXPECT_NE(text("self").find("goes round in a circle"), std::string::npos) << text("self");
  EXPECT_NE(text("placet+round").find("goes round in a circle"), std::string::npos);
  for (int i = 0; i < 40; ++i) {
    folder_.write("engines/long@" + std::to_string(i) + ".json",
                  engine("long", std::to_string(i), "long@" + std::to_string(i + 1), 1));
  }
  EXPECT_NE(text("long@0").find("is one file too many in a row"), std::string::npos);
}

TEST_F(OverlayTest, FilesOfAClusterFileAreTakenFromItsFolder) {
  folder_.write("parts/card.json", text_as("hardware/devices", "h100-sxm", "card",
                                           Edit::parse(R"({"network":"./wire.json"})")));
  folder_.write("parts/wire.json", text_as("hardware/links", "nvlink-4", "wire",
                                           Edit::parse(R"({"latency_us":{"value":9}})")));
  const std::string file =
      folder_.write("cluster.json", R"({"groups":[{"device":"parts/card.json","nodes":2}]})");
  const Cluster cluster = load_cluster(repository_catalog(), file, std::nullopt, "--cluster");
  EXPECT_EQ(cluster.groups.front().device.name, "card");
  EXPECT_EQ(cluster.groups.front().levels.back().link, "wire");
  EXPECT_EQ(cluster.groups.front().levels.back().latency, microseconds(9));
  folder_.write("cluster.json", R"({"groups":[{"device":"parts/none.json","nodes":2}]})");
  const std::string text = message_of(
      [&] { load_cluster(repository_catalog(), file, std::nullopt, "--cluster"); }, folder_.path());
  EXPECT_TRUE(text.starts_with("parts/none.json: the file cannot be read")) << text;
}

TEST_F(OverlayTest, TheStrongestLayerWins) {
  const TestFolder below;
  as("strategies", "zero1", "mine");
  below.write("strategies/mine.json", "{");
  below.write("strategies/only-below.json", "{");
  const Catalog both{.root = repository_catalog().root, .overlays = {folder_.path(), below.path()}};
  EXPECT_EQ(path_in(both, "strategies", "mine"), folder_.path() / "strategies/mine.json");
  EXPECT_EQ(hidden_by(both, "strategies", path_in(both, "strategies", "mine")),
            below.path() / "strategies/mine.json");
  EXPECT_EQ(path_in(both, "strategies", "zero1"),
            repository_catalog().root / "strategies/zero1.json");
  EXPECT_TRUE(find_strategy(load_strategies(both).vocabulary, "mine") != nullptr);
}

TEST_F(OverlayTest, ABrokenFileBreaksWhoUsesItAlone) {
  folder_.write("strategies/broken.json", "{");
  folder_.write("schedules/1f1b.json", R"({"schema":"placet.schedule/1"})");
  folder_.write("attention/zero1.json", "[]");
  as("strategies", "zero1", "ulysses-like", Edit::parse(R"({"sets":{"attention":"nowhere"}})"));
  as("strategies", "zero1", "Not A Word");
  EXPECT_EQ(parsed("dp=2:zero3"), "no error");
  EXPECT_EQ(parsed("dp=2:zero1"), "no error");
  EXPECT_EQ(parsed("pp=2:gpipe"), "no error");
  EXPECT_TRUE(parsed("dp=2:broken").starts_with("strategies/broken.json")) << parsed("dp=2:broken");
  EXPECT_TRUE(parsed("dp=2:ulysses-like").starts_with("strategies/ulysses-like.json"));
  EXPECT_TRUE(parsed("pp=2:1f1b").starts_with("schedules/1f1b.json")) << parsed("pp=2:1f1b");
  // The hidden file was the default; what hides it is asked for where no schedule is named.
  const StrategyCatalog strategies = load_strategies(catalog());
  EXPECT_TRUE(message_of([&] { resolve_schedule(strategies, std::nullopt); }, folder_.path())
                  .starts_with("schedules/1f1b.json"));
  // Files of other kinds are opened by those who name them alone.
  folder_.write("hardware/devices/dud.json", "{");
  EXPECT_EQ(load_cluster(catalog(), "h100-sxm:1", std::nullopt, "--cluster").groups.size(), 1U);
}

TEST_F(OverlayTest, AFolderIsCheckedAsAWhole) {
  as("strategies", "zero1", "good");
  as("hardware/devices", "h100-sxm", "h100-sxm", Edit::parse(R"({"memory_gib":{"value":-1}})"));
  folder_.write("device/x.json", "{}");
  folder_.write("engines/mine@1.jsn", "{}");
  folder_.write("defaults/other.json", "{}");
  folder_.write("models/huge.json", std::string((std::size_t{4} << 20) + 1, ' '));
  std::filesystem::create_directories(folder_.path() / "hardware/links");
  std::filesystem::create_symlink("loop.json", folder_.path() / "hardware/links/loop.json");
  std::filesystem::create_directory_symlink("..", folder_.path() / "hardware/hosts");
  const DataSheet sheet = check_data(repository_catalog(), folder_.path());
  std::string text;
  for (const InputFault& fault : sheet.findings) text += describe(fault) + "\n";
  const std::string prefix = folder_.path().string() + "/";
  for (std::size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix)) {
    text.erase(at, prefix.size());
  }
  const auto says = [&](const char* part) { return text.find(part) != std::string::npos; };
  EXPECT_TRUE(says("device: is no folder of a kind")) << text;
  EXPECT_TRUE(says("hardware/devices/h100-sxm.json: memory_gib.value: ")) << text;
  EXPECT_TRUE(says("engines/mine@1.jsn: is read by nobody")) << text;
  EXPECT_TRUE(says("defaults/other.json: is read by nobody; expected the name job.json")) << text;
  EXPECT_TRUE(says("models/huge.json: the file is too long")) << text;
  EXPECT_TRUE(says("hardware/links/loop.json: the file cannot be read: Too many levels")) << text;
  EXPECT_FALSE(says("good.json")) << text;
  const auto device = std::ranges::find(sheet.files, "h100-sxm", &DataFile::name);
  ASSERT_NE(device, sheet.files.end());
  EXPECT_EQ(device->hides, repository_catalog().root / "hardware/devices/h100-sxm.json");
  EXPECT_EQ(std::ranges::find(sheet.files, "good", &DataFile::name)->hides, "");
}

}  // namespace
}  // namespace placet

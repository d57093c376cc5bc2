#include "catalog/profile_catalog.h"
#include "catalog/versions.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "catalog/catalog_files.h"

namespace placet {
namespace {

// A catalogue of engines that a test writes; precisions are those of the repository.
class Engines {
 public:
  Engines() { folder_.copy("precisions"); }

  // `rest` follows the heading: ", \"grain\": ...".
  void write(const std::string& name, const std::string& version, const std::string& rest) const {
    folder_.write("engines/" + name + "@" + version + ".json",
                  R"({"schema": "placet.engine/1", "name": ")" + name + R"(", "version": ")" +
                      version + R"(", "date": "2025-06")" + rest + "}");
  }
  Profile load(const std::string& text) const {
    return load_profile(Catalog{folder_.path()}, text, "--engine");
  }
  std::string complaint(const std::string& text) const {
    return message_of([&] { load(text); }, folder_.path());
  }
  std::string complaint_about(const std::string& rest) const {
    write("x", "1", rest);
    const std::string message = complaint("x@1");
    const std::string file = "engines/x@1.json: ";
    return message.starts_with(file) ? message.substr(file.size()) : message;
  }
  const TestFolder& folder() const { return folder_; }

 private:
  TestFolder folder_;
};

std::string value_of(const Profile& profile, const std::string& key) {
  const auto it = std::find_if(profile.facts.begin(), profile.facts.end(),
                               [&](const Fact& fact) { return fact.key == key; });
  return it == profile.facts.end() ? "none" : it->value + " | " + it->source;
}

TEST(ProfileTest, EveryFileOfTheCatalogueReads) {
  for (const std::string& name : profile_names(repository_catalog())) {
    const Profile profile = load_profile(repository_catalog(), name, "test");
    EXPECT_EQ(profile.name + "@" + profile.version, name);
    for (const Fact& fact : profile.facts) EXPECT_FALSE(fact.source.empty()) << fact.key;
  }
}

TEST(ProfileTest, ThePlainTheoryIsTheDefaultsButForWhatTheStepProgramDoes) {
  Profile profile = load_profile(repository_catalog(), "placet@1", "test");
  EXPECT_FALSE(profile.facts.empty());
  profile.facts.clear();
  Profile plain;
  plain.name = "placet";
  plain.version = "1";
  plain.date = profile.date;
  plain.saved = plain_saved_table();
  // What the step program does: nothing in place, sums hand their gradient on, values that
  // derivatives read are kept and no others (docs/theory.md, sections 3.2 to 3.5).
  plain.parts_stand_apart = true;
  plain.residual_shares_gradient = true;
  plain.loss_workspace = {internal::kLossTarget};
  const auto saves = [&](OpKind kind, SavedSlots slots) {
    plain.saved[static_cast<std::size_t>(kind)] = slots;
  };
  saves(OpKind::router, {.inputs = 1});
  saves(OpKind::dispatch, {.inputs = 2});
  saves(OpKind::gated_activation, {.inputs = 3});
  saves(OpKind::loss,
        {.inputs = 1, .internals = 1U << internal::kLossMax | 1U << internal::kLossSum});
  plain.inner_gradients[static_cast<std::size_t>(OpKind::norm)] = {
      .internals = 1U << internal::kNormStatistics};
  // Beside them only the scalars that every training has: norm, overflow flag, tokens, loss.
  EXPECT_EQ(profile.messages.size(), 4U);
  profile.messages.clear();
  EXPECT_EQ(profile, plain);
}

TEST(ProfileTest, FactsReplaceDefaults) {
  const Engines engines;
  engines.write("x", "1", R"(, "grain": {"value": "unit", "source": "a"},
      "pad_elements": {"value": 128, "source": "b"},
      "repeats_kv_heads": {"value": true, "source": "c"},
      "precision": {"value": {"gradients": "fp32", "master": "none"}, "source": "d"},
      "loss_workspace": {"value": ["logits_fp32", "gradient"], "source": "e"})");
  const Profile profile = engines.load("x");
  EXPECT_EQ(profile.grain, ShardGrain::unit);
  EXPECT_EQ(profile.pad_elements, 128);
  EXPECT_TRUE(profile.repeats_kv_heads);
  EXPECT_EQ(profile.precision.gradients, Dtype::fp32);
  EXPECT_EQ(profile.precision.master, std::nullopt);
  EXPECT_EQ(profile.precision.parameters, Dtype::bf16) << "what is not said stays";
  EXPECT_EQ(profile.loss_workspace,
            (std::vector<int>{internal::kLogitsFp32, internal::kLossGradient}));
  EXPECT_EQ(value_of(profile, "pad_elements"), "128 | b");
}

TEST(ProfileTest, SavedValuesByKind) {
  const Engines engines;
  engines.write("x", "1", R"(, "saves": {
      "norm": {"inputs": [0], "internals": ["statistics"], "source": "a"},
      "attention": {"inputs": [0, 1, 2], "outputs": "all", "internals": ["logsumexp"],
                    "source": "b"},
      "residual_add": {"source": "nothing"}})");
  const Profile profile = engines.load("x");
  const auto slots = [&](OpKind kind) { return profile.saved[static_cast<std::size_t>(kind)]; };
  EXPECT_EQ(slots(OpKind::norm), (SavedSlots{.inputs = 1, .outputs = 0, .internals = 1}));
  EXPECT_EQ(slots(OpKind::attention),
            (SavedSlots{.inputs = 7, .outputs = UINT16_MAX, .internals = 4}));
  EXPECT_EQ(slots(OpKind::residual_add), SavedSlots{});
  EXPECT_EQ(slots(OpKind::linear), plain_saved_table()[static_cast<std::size_t>(OpKind::linear)]);
  EXPECT_EQ(value_of(profile, "saves.residual_add"), "{} | nothing");
}

TEST(ProfileTest, OwnTermsMessagesAndRefusals) {
  const Engines engines;
  engines.write("x", "1", R"(, "memory": [{"what": "context", "category": "overhead",
      "instants": "all", "bytes": "600 MiB", "source": "a"}],
    "messages": [{"what": "norm", "collective": "all_reduce", "op": "sum", "dtype": "fp32",
      "phase": "update", "over": ["batch", "tensor"], "payload_elements": 1, "count": 2,
      "source": "b"}],
    "refusals": [{"what": "no experts", "cure": "leave them", "when": {"cut": "expert",
      "degree_above": 1}, "source": "c"}])");
  const Profile profile = engines.load("x");
  ASSERT_EQ(profile.memory.size(), 1U);
  EXPECT_EQ(profile.memory[0].bytes.factor, Rational(600 * 1048576));
  EXPECT_EQ(profile.memory[0].instants, 31) << "all five";
  ASSERT_EQ(profile.messages.size(), 1U);
  EXPECT_EQ(profile.messages[0].over, (std::vector<Cut>{Cut::batch, Cut::tensor}));
  EXPECT_EQ(profile.messages[0].count.factor, Rational(2));
  ASSERT_EQ(profile.refusals.size(), 1U);
  EXPECT_EQ(profile.refusals[0].when[0].cuts, std::vector{Cut::expert});
  EXPECT_EQ(value_of(profile, "refusals.no experts").substr(0, 9), "{\"cure\":\"");
}

TEST(ProfileTest, ConditionsOfRefusals) {
  const Engines engines;
  engines.write("x", "1", R"(, "refusals": [{"what": "w", "cure": "c", "source": "s", "when": [
      {"offloads": "optimizer", "partly": true}, {"divides_checkpoints": true},
      {"exchanges_heads": false}, {"schedule_beyond": ["a", "b"]}, {"recomputes_some": true},
      {"cut": ["batch", "sequence"],
       "states": {"gradients": ["R"], "parameters": ["S*", "O"]}}]}])");
  const Profile profile = engines.load("x");
  ASSERT_EQ(profile.refusals.size(), 1U);
  const std::vector<When>& when = profile.refusals[0].when;
  ASSERT_EQ(when.size(), 6U);
  EXPECT_EQ(when[0], (When{.offloads = State::optimizer, .partly = true}));
  EXPECT_EQ(when[1], When{.divides_checkpoints = true});
  EXPECT_EQ(when[2], When{.exchanges_heads = false});
  EXPECT_EQ(when[3], (When{.schedule_beyond = {"a", "b"}}));
  EXPECT_EQ(when[4], When{.recomputes_some = true});
  EXPECT_EQ(when[5], (When{.cuts = {Cut::batch, Cut::sequence},
                           .states = {{State::parameters, {Mode::sharded_gather, Mode::offloaded}},
                                      {State::gradients, {Mode::replicated}}}}));
}

TEST(InheritanceTest, OverridesOnlyWhatIsSaid) {
  const Engines engines;
  engines.write("base", "1", R"(, "grain": {"value": "row", "source": "a"},
    "prefetch": {"value": 1, "source": "a"}, "memory": [
      {"what": "context", "category": "overhead", "instants": "all", "bytes": 1, "source": "a"},
      {"what": "bucket", "category": "transient", "instants": ["reduction"], "bytes": 2,
       "source": "a"}])");
  engines.write("heir", "1", R"(, "inherits": "base@1", "grain": {"value": "unit", "source": "b"},
    "memory": [{"what": "bucket", "remove": true, "source": "b"},
      {"what": "context", "category": "overhead", "instants": "all", "bytes": 3, "source": "b"}])");
  const Profile profile = engines.load("heir");
  EXPECT_EQ(profile.grain, ShardGrain::unit);
  EXPECT_EQ(profile.prefetch, 1);
  ASSERT_EQ(profile.memory.size(), 1U);
  EXPECT_EQ(profile.memory[0].bytes.factor, Rational(3));
  EXPECT_EQ(value_of(profile, "grain"), "\"unit\" | b");
  EXPECT_EQ(value_of(profile, "prefetch"), "1 | a");
  EXPECT_EQ(value_of(profile, "memory.bucket"), "removed | b");
}

TEST(InheritanceTest, MayNotGoRound) {
  const Engines engines;
  engines.write("a", "1", R"(, "inherits": "b@1")");
  engines.write("b", "1", R"(, "inherits": "a@1")");
  EXPECT_EQ(
      engines.complaint("a"),
      "engines/b@1.json: inherits: 'a@1' goes round in a circle; expected a profile that does "
      "not inherit this one");
}

TEST(VersionTest, APlainNameIsTheNewest) {
  const Engines engines;
  for (const char* version : {"2.9", "2.10", "2.2.1"}) engines.write("x", version, "");
  EXPECT_EQ(engines.load("x").version, "2.10");
  EXPECT_EQ(engines.load("x@2.9").version, "2.9");
  EXPECT_EQ(profile_names(Catalog{engines.folder().path()}),
            (std::vector<std::string>{"x@2.2.1", "x@2.9", "x@2.10"}));
}

TEST(VersionTest, AVariantIsChosenByItsWholeName) {
  const Engines engines;
  for (const char* version : {"2024.12", "2024.12-late"}) engines.write("x", version, "");
  EXPECT_EQ(engines.load("x").version, "2024.12");
  EXPECT_EQ(engines.load("x@2024.12-late").version, "2024.12-late");
}

TEST(OptionTest, VariantsAreLaidOverAVersion) {
  const Engines engines;
  engines.write("x", "1", R"(, "prefetch": {"value": 3, "source": "s"})");
  engines.write("x", "1-far", R"(, "inherits": "x@1", "prefetch": {"value": 7, "source": "s"})");
  engines.write("x", "1-wide",
                R"(, "inherits": "x@1", "pad_elements": {"value": 4, "source": "s"})");
  engines.write("x", "1-wider",
                R"(, "inherits": "x@1-wide", "align_elements": {"value": 8, "source": "s"})");
  engines.write("x", "2", R"(, "inherits": "x@1")");
  const Profile both = engines.load("x@1+far+wide");
  EXPECT_EQ(both.version, "1+far+wide");
  EXPECT_EQ(both.prefetch, 7);
  EXPECT_EQ(both.pad_elements, 4);
  EXPECT_EQ(engines.load("x@1+wider").pad_elements, 4);  // of the option that it inherits from
  EXPECT_EQ(engines.load("x+wider+wide").align_elements, 8);
  EXPECT_EQ(engines.load("x+wider+wide").version, "2+wider+wide");
  EXPECT_EQ(engines.load("x@1-far+wide").prefetch, 7);
}

TEST(OptionTest, OptionsThatDisagreeOrAreUnknownAreRefused) {
  const Engines engines;
  engines.write("x", "1", "");
  engines.write("x", "1-far", R"(, "inherits": "x@1", "prefetch": {"value": 7, "source": "s"})");
  engines.write("x", "1-near", R"(, "inherits": "x@1", "prefetch": {"value": 1, "source": "s"})");
  EXPECT_EQ(engines.complaint("x@1+far+near"),
            "--engine: 'near' says something else about 'prefetch' than far; expected options "
            "that speak of different facts");
  EXPECT_EQ(engines.complaint("x@1+fat"),
            "--engine: 'fat' is not an option of x@1; expected far or near; did you mean 'far'?");
  EXPECT_EQ(engines.complaint("x@1+"), "--engine: is not an option of x@1; expected far or near");
  engines.write("y", "1", "");
  EXPECT_EQ(engines.complaint("y+far"),
            "--engine: 'far' is not an option of y@1; expected no option");
}

TEST(OptionTest, OptionsStandInTheFileOfTheirVersion) {
  const Engines engines;
  engines.write("x", "1", R"(, "prefetch": {"value": 3, "source": "s"}, "options": {
      "far": {"title": "f", "prefetch": {"value": 7, "source": "s"}},
      "wide": {"title": "w", "pad_elements": {"value": 4, "source": "s"}},
      "wider-still": {"title": "r", "includes": ["wide"],
                      "align_elements": {"value": 8, "source": "s"}}})");
  engines.write("x", "2",
                R"(, "inherits": "x@1+far", "pad_elements": {"value": 2, "source": "s"})");
  EXPECT_EQ(engines.load("x@1").prefetch, 3);
  EXPECT_EQ(engines.load("x@1+far").prefetch, 7);
  const Profile both = engines.load("x@1+far+wider-still");
  EXPECT_EQ(both.version, "1+far+wider-still");
  EXPECT_EQ(both.prefetch, 7);
  EXPECT_EQ(both.pad_elements, 4);  // of the option that is included
  EXPECT_EQ(both.align_elements, 8);
  EXPECT_EQ(engines.load("x@1-far-wider-still"), both) << "dashes join options too";
  const Profile newer = engines.load("x");
  EXPECT_EQ(newer.version, "2");
  EXPECT_EQ(newer.prefetch, 7) << "a version may start from another with an option";
  EXPECT_EQ(newer.pad_elements, 2);
  EXPECT_EQ(engines.load("x+wide").pad_elements, 4) << "options of an inherited version";
  EXPECT_EQ(engines.complaint("x@1+fat"),
            "--engine: 'fat' is not an option of x@1; expected far, wide or wider-still; did you "
            "mean 'far'?");
  const EngineVariants variants = engine_variants(Catalog{engines.folder().path()}, "x@1");
  const auto file = engines.folder().path() / "engines" / "x@1.json";
  EXPECT_EQ(variants.options,
            (std::vector<EngineOption>{
                {"far", "f", file}, {"wide", "w", file}, {"wider-still", "r", file}}));
}

Job setting(const std::string& family, const std::string& products, const std::string& device) {
  Job job;
  job.model.family = family;
  if (!products.empty()) job.precision.products = ProductFormat{.name = products};
  if (device.empty()) return job;
  job.cluster = Cluster{.name = device, .groups = {{.device = {.name = device}}}};
  return job;
}

TEST(CaseTest, FactsHoldWhereTheirConditionsDo) {
  const Engines engines;
  engines.write("x", "1", R"(, "prefetch": {"value": 3, "source": "s"},
      "options": {"far": {"title": "f", "pad_elements": {"value": 4, "source": "s"}}},
      "given": [
        {"what": "a", "when": {"families": ["moe"], "products": ["mxfp8"]},
         "prefetch": {"value": 7, "source": "s"}},
        {"what": "b", "when": {"devices": ["big"]}, "includes": ["far"],
         "align_elements": {"value": 8, "source": "s"}}])");
  const Catalog catalog{engines.folder().path()};
  const auto load = [&](const Job& job) { return load_profile(catalog, "x", job, "--engine"); };
  EXPECT_EQ(engines.load("x").prefetch, 3) << "without a job no case holds";
  EXPECT_EQ(load(setting("moe", "", "")).prefetch, 3);
  EXPECT_EQ(load(setting("moe", "mxfp8", "")).prefetch, 7);
  EXPECT_EQ(load(setting("dense", "mxfp8", "big")).prefetch, 3);
  const Profile big = load(setting("dense", "", "big"));
  EXPECT_EQ(big.align_elements, 8);
  EXPECT_EQ(big.pad_elements, 4) << "of the option that the case includes";
  EXPECT_EQ(big.version, "1");
  EXPECT_EQ(load(setting("dense", "", "small")).align_elements, 1);
}

TEST(CaseTest, WrongCasesAreExplained) {
  const Engines engines;
  const auto complaint = [&](const std::string& given) {
    engines.write("x", "1", R"(, "given": [)" + given + "]");
    const Catalog catalog{engines.folder().path()};
    return message_of([&] { require_readable_engine(catalog, "x@1", "--engine"); },
                      engines.folder().path());
  };
  EXPECT_NE(complaint(R"({"what": "a", "when": {"familes": ["moe"]}})").find("did you mean"),
            std::string::npos);
  EXPECT_NE(complaint(R"({"what": "a", "when": {}})").find("says nothing"), std::string::npos);
  EXPECT_NE(complaint(R"({"what": "a", "when": {"has_experts": true},
                          "clips_by_default": {"value": true, "source": "s"}})")
                .find("'clips_by_default' is not a key here"),
            std::string::npos);
  EXPECT_NE(complaint(R"({"what": "a", "when": {"has_experts": true},
                          "prefetch": {"value": -1, "source": "s"}})")
                .find("out of range"),
            std::string::npos);
}

TEST(CaseTest, EveryFileOfTheCatalogueIsReadableInAllItsParts) {
  for (const std::string& name : profile_names(repository_catalog())) {
    EXPECT_NO_THROW(require_readable_engine(repository_catalog(), name, "test")) << name;
  }
}

TEST(VersionTest, WrongNamesAreExplained) {
  const Engines engines;
  engines.write("megatron", "2025", "");
  EXPECT_EQ(engines.complaint("megatrom"),
            "--engine: 'megatrom' is not a known engine; expected megatron; did you mean "
            "'megatron'?");
  EXPECT_EQ(engines.complaint("megatron@2019"),
            "--engine: 'megatron@2019' is not a known version of megatron; expected 2025");
}

TEST(MalformedProfileTest, HeadingsMustAgreeWithTheFile) {
  const Engines engines;
  engines.folder().write("engines/y@1.json", R"({"schema": "placet.engine/1", "name": "x",
      "version": "1", "date": "2025"})");
  EXPECT_EQ(engines.complaint("y"),
            "engines/y@1.json: name: 'x' differs from the name of its file; expected \"y\"");
  engines.folder().write("engines/z@1.json", R"({"schema": "placet.engine/9", "name": "z",
      "version": "1", "date": "2025"})");
  EXPECT_EQ(engines.complaint("z"),
            "engines/z@1.json: schema: 'placet.engine/9' is another schema; expected "
            "\"placet.engine/1\"");
  engines.folder().write("engines/w@1.json", R"({"schema": "placet.engine/1", "name": "w",
      "version": "1", "date": "last year"})");
  EXPECT_EQ(engines.complaint("w").substr(0, 50),
            "engines/w@1.json: date: 'last year' is not a date;");
}

TEST(MalformedProfileTest, FactsAreRefusedWithTheKeyPath) {
  const Engines engines;
  EXPECT_EQ(engines.complaint_about(R"(, "grian": {"value": "unit", "source": "s"})").substr(0, 28),
            "'grian' is not a key here; e");
  EXPECT_EQ(engines.complaint_about(R"(, "grain": "unit")"),
            "grain: 'unit' is not an object; expected an object with the keys value or source");
  EXPECT_EQ(engines.complaint_about(R"(, "grain": {"value": "unit"})"),
            "grain: the key 'source' is missing");
  EXPECT_EQ(engines.complaint_about(R"(, "grain": {"value": "units", "source": "s"})"),
            "grain.value: 'units' is not known; expected element, row, unit, everything or tensor; "
            "did you mean 'unit'?");
  EXPECT_EQ(
      engines.complaint_about(R"(, "pad_elements": {"value": 0, "source": "s"})"),
      "pad_elements.value: '0' is out of range; expected a whole number from 1 to 1000000000");
  EXPECT_EQ(engines.complaint_about(R"(, "gradient_grain": {"value": "bucket", "source": "s"})"),
            "messages go in buckets, but neither 'bucket_elements' nor "
            "'bucket_bytes' is given");
  EXPECT_EQ(
      engines.complaint_about(R"(, "precision": {"value": "mixt", "source": "s"})").substr(0, 48),
      "precision.value: 'mixt' is not a known precision");
}

TEST(MalformedProfileTest, SavedValuesAreRefusedWithTheKeyPath) {
  const Engines engines;
  EXPECT_NE(engines.complaint_about(R"(, "saves": {"nrom": {"source": "s"}})")
                .find("did you mean 'norm'?"),
            std::string::npos);
  EXPECT_EQ(
      engines.complaint_about(R"(, "saves": {"norm": {"internals": ["stats"], "source": "s"}})"),
      "saves.norm.internals[0]: 'stats' is not known; expected statistics, input_fp32, "
      "normalized or normalized_fp32");
  EXPECT_EQ(
      engines.complaint_about(R"(, "saves": {"linear": {"internals": ["x"], "source": "s"}})"),
      "saves.linear.internals[0]: 'x' is not known; expected no internals: this kind has none");
  EXPECT_EQ(engines.complaint_about(R"(, "saves": {"norm": {"inputs": [16], "source": "s"}})"),
            "saves.norm.inputs[0]: '16' is out of range; expected a whole number from 0 to 15");
}

TEST(MalformedProfileTest, TermsAreRefusedWithTheKeyPath) {
  const Engines engines;
  const auto memory = [&](const std::string& entry) {
    return engines.complaint_about(R"(, "memory": [)" + entry + "]");
  };
  EXPECT_EQ(memory(R"({"what": "c", "category": "overhead", "instants": [], "bytes": 1,
                       "source": "s"})"),
            "memory[0].instants: '[]' names no instant; expected \"all\" or a list of instants");
  EXPECT_EQ(memory(R"({"what": "c", "category": "overhead", "instants": "all",
                       "bytes": "2 * hiden", "source": "s"})")
                .substr(0, 64),
            "memory[0].bytes: 'hiden' is neither a number nor a known size; e");
  EXPECT_EQ(memory(R"({"what": "c", "remove": true, "source": "s"})"),
            "memory[0].what: 'c' is not inherited; expected an inherited entry");
  EXPECT_EQ(memory(R"({"what": "c", "category": "overhead", "instants": "all", "bytes": 1,
                       "when": [{}], "source": "s"})"),
            "memory[0].when[0]: '{}' says nothing; expected at least one condition");
  EXPECT_EQ(memory(R"({"what": "c", "category": "overhead", "instants": "all", "bytes": 1,
                       "when": [{"modes": ["S"]}], "source": "s"})"),
            "memory[0].when[0]: the key 'state' is missing");
  EXPECT_EQ(memory(R"({"what": "c", "category": "overhead", "instants": "all", "bytes": 1,
                       "when": [{"state": "optimizer"}], "source": "s"})"),
            "memory[0].when[0]: the key 'modes' is missing");
  EXPECT_EQ(memory(R"({"what": "c", "category": "overhead", "instants": "all", "bytes": 1,
                       "when": [{"cut": []}], "source": "s"})"),
            "memory[0].when[0].cut: '[]' names no cut; expected a cut, or a list of cuts");
  EXPECT_EQ(memory(R"({"what": "c", "category": "overhead", "instants": "all", "bytes": 1,
                       "when": [{"states": {}}], "source": "s"})"),
            "memory[0].when[0].states: '{}' names no state; expected states with their modes");
  EXPECT_EQ(memory(R"({"what": "c", "category": "overhead", "instants": "all", "bytes": 1,
                       "when": [{"partly": true}], "source": "s"})"),
            "memory[0].when[0]: the key 'offloads' is missing");
  EXPECT_EQ(memory(R"({"what": "c", "category": "overhead", "instants": "all", "bytes": 1,
                       "when": [{"schedule_beyond": []}], "source": "s"})"),
            "memory[0].when[0].schedule_beyond: '[]' names none; expected names of schedules");
  EXPECT_EQ(engines.complaint_about(R"(, "refusals": [{"what": "w", "cure": "c", "source": "s"}])")
                .substr(0, 12),
            "refusals[0]:");
}

TEST(AmountTest, NumbersUnitsAndSymbols) {
  EXPECT_EQ(parse_amount("600 MiB", "x").factor, Rational(629145600));
  EXPECT_EQ(parse_amount("0.5 GiB", "x").factor, Rational(536870912));
  EXPECT_EQ(parse_amount("3/4 * 8", "x").factor, Rational(6));
  const Amount amount = parse_amount("2*micro_batch * hidden", "x");
  EXPECT_EQ(amount.factor, Rational(2));
  EXPECT_EQ(amount.symbols, (std::vector<Symbol>{Symbol::micro_batch, Symbol::hidden}));
}

TEST(AmountTest, WholeNumbersAreAddedToAProduct) {
  const Amount amount = parse_amount("7 + 2 * tensor_degree + 1", "x");
  EXPECT_EQ(amount.factor, Rational(2));
  EXPECT_EQ(amount.symbols, std::vector<Symbol>{Symbol::tensor_degree});
  EXPECT_EQ(amount.added, 8);
  EXPECT_EQ(parse_amount("2 + 3", "x"), (Amount{.factor = Rational(0), .added = 5}));
}

TEST(AmountTest, AProductMayHaveABound) {
  const Amount amount = parse_amount("4 * owned at most 4 GB", "x");
  EXPECT_EQ(amount.factor, Rational(4));
  EXPECT_EQ(amount.symbols, std::vector<Symbol>{Symbol::owned});
  EXPECT_EQ(amount.most, 4'000'000'000);
}

TEST(AmountTest, NonsenseIsRefused) {
  for (const char* text :
       {"4 at most", "4 at most hidden", "4 at most 1/3", "4 at most 2 at most 1", "", "*", "2 *",
        "2 TiB", "1/0", "-3", "2 hidden", "1.", "hidden hidden", "hidden + heads", "1/2 + hidden",
        "hidden +", "+"}) {
    EXPECT_THROW(parse_amount(text, "x"), InputError) << text;
  }
}

TEST(VersionsTest, NumbersInVersionsAreNumbers) {
  EXPECT_EQ(newest_of_name({"a@0.19", "a@0.9", "ab@7"}, "a"), "a@0.19");
  EXPECT_EQ(newest_of_name({"a@0.19", "a@0.9"}, "a@0.9"), "a@0.9");
  EXPECT_EQ(newest_of_name({"a@0.19"}, "b"), "");
}

}  // namespace
}  // namespace placet

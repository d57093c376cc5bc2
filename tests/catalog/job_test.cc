#include "catalog/job.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "catalog/catalog_files.h"

namespace placet {
namespace {

JobRequest request() { return {.model = "70B", .placement = "dp=8:zero3"}; }

Job load(const JobRequest& asked) { return load_job(repository_catalog(), asked); }

std::string job_complaint(const JobRequest& asked) {
  return message_of([&] { load(asked); });
}

TEST(LoadJobTest, DefaultsAreAddedAndSaid) {
  const Job job = load(request());
  EXPECT_EQ(job.placement_text, "dp=8:zero3");
  EXPECT_EQ(job.engine_text, "placet@1");
  EXPECT_EQ(job.optimizer.name, "adamw");
  EXPECT_EQ(job.precision, Precision{});
  EXPECT_EQ(job.batch, (Batch{.sequence = 4096, .global = 8, .micro = 1}));
  EXPECT_FALSE(job.cluster.has_value());
  EXPECT_FALSE(job.clips_by_global_norm);
  ASSERT_GE(job.model.notes.size(), 2U);
  EXPECT_EQ(job.model.notes.back(),
            "--global-batch was not given: one micro-batch per device, 8 samples per step, is "
            "assumed");
}

TEST(LoadJobTest, FormatsOfClassesThatAreNotThereAreNoted) {
  JobRequest asked = request();
  asked.sequence = 2048;
  asked.global_batch = 8;
  asked.precision = "experts=fp8";
  const Job job = load(asked);
  ASSERT_EQ(job.model.notes.size(), 2U);  // the first is of a count without shapes
  EXPECT_EQ(
      job.model.notes.back(),
      "--precision experts=fp8 has nothing to act on: the model has no tensors of this class");
}

TEST(LoadJobTest, WhatIsSaidHolds) {
  JobRequest asked = request();
  asked.sequence = 2048;
  asked.global_batch = 64;
  asked.micro_batch = 2;
  asked.recompute = "full";
  asked.precision = "gradients=fp32";
  asked.optimizer = "momentum";
  asked.clip = 1.0;
  asked.routing = "expected=1.5";
  asked.cluster = "h100-sxm";
  const Job job = load(asked);
  EXPECT_EQ(job.batch, (Batch{.sequence = 2048, .global = 64, .micro = 2}));
  EXPECT_EQ(job.recompute.kind, Recompute::Kind::full);
  EXPECT_EQ(job.precision.gradients, Dtype::fp32);
  EXPECT_EQ(job.optimizer.states.size(), 1U);
  EXPECT_TRUE(job.clips_by_global_norm);
  EXPECT_EQ(job.routing, (Routing{.kind = Routing::Kind::expected, .skew = 1.5}));
  ASSERT_TRUE(job.cluster.has_value());
  EXPECT_EQ(devices_of(*job.cluster), 8) << "a cluster without a size is what the placement needs";
}

// Batch axes: dp = 4 and ep = 2, which is a batch axis for all but the experts.
TEST(LoadJobTest, TheGlobalBatchCountsAxesThatCutIt) {
  JobRequest asked = request();
  asked.placement = "pp=2:1f1b dp=4:zero1 ep=2:ep+zero1 tp=2:tp";
  asked.micro_batch = 3;
  EXPECT_EQ(load(asked).batch.global, 24);
}

// 8 samples, half of 4096 tokens and half of 16384, over 4 devices that take 4096 tokens at once:
// 4 x 1 + 4 x 4 = 20 rounds of a device, which 5 of the longest take too.
TEST(LoadJobTest, SamplesOfSeveralLengthsCountAsTheLongest) {
  JobRequest asked = request();
  asked.placement = "cp=4:hdp";
  asked.lengths = parse_lengths("4096:1/2,16384:1/2", "--lengths");
  asked.global_batch = 8;
  const Job job = load(asked);
  EXPECT_EQ(job.batch.sequence, 16384);
  EXPECT_EQ(job.batch.global, 5);
  EXPECT_EQ(job.batch.samples, 8);
  EXPECT_EQ(job.model.notes.back(),
            "8 samples of 2 lengths keep the devices busy as 5 of 16384 tokens would: figures are "
            "those of a device that always works on the longest");
}

TEST(LoadJobTest, LengthsAreRefusedWhereTheyMeanNothing) {
  JobRequest asked = request();
  asked.lengths = parse_lengths("4096:1/2,16384:1/2", "--lengths");
  EXPECT_EQ(job_complaint(asked),
            "--global-batch: is missing; expected samples per step, of all lengths together");
  asked.global_batch = 8;
  asked.sequence = 4096;
  EXPECT_EQ(job_complaint(asked),
            "--seq: '4096' is not the longest of --lengths; expected 16384, or nothing");
  asked.sequence = std::nullopt;
  asked.placement = "a=2:ring b=2:ring";
  EXPECT_EQ(job_complaint(asked),
            "--lengths: asks for one axis of equal shares that cuts the sequence, and axis b is a "
            "second one; expected at most one such axis");
}

TEST(LoadJobTest, AdaptersAndFrozenTensors) {
  JobRequest asked = request();
  asked.model = "gpt2";
  asked.lora = "8";
  const std::int64_t trainable = count_parameters(load(asked).model).trainable;
  EXPECT_GT(trainable, 0);
  EXPECT_LT(trainable, 1'000'000);
  asked.lora = "0";
  EXPECT_EQ(job_complaint(asked).substr(0, 32), "--lora: '0' has no valid rank; e");
}

// FSDP2 keeps fp32 of what is trained. The base beside adapters rests as it is loaded, and it is
// said; a named precision, or a format of frozen tensors, holds instead.
TEST(LoadJobTest, ABaseBesideAdaptersRestsInBf16) {
  const auto frozen = [](std::optional<std::string> precision, const char* engine) {
    JobRequest asked = request();
    asked.model = "gpt2";
    asked.lora = "8";
    asked.engine = engine;
    asked.precision = std::move(precision);
    const Job job = load(asked);
    const bool said = std::ranges::any_of(job.model.notes, [](const std::string& note) {
      return note.starts_with("the frozen base rests in bf16");
    });
    std::set<std::optional<Dtype>> formats;
    for (const UnitKind& kind : job.model.kinds) {
      for (const Parameter& p : kind.parameters) {
        if (!p.trainable) formats.insert(p.dtype);
      }
    }
    return std::pair(formats, said);
  };
  using Formats = std::set<std::optional<Dtype>>;
  EXPECT_EQ(frozen(std::nullopt, "pytorch@2.9"), std::pair(Formats{Dtype::bf16}, true));
  EXPECT_EQ(frozen("adapters=fp32", "pytorch@2.9").second, true);
  EXPECT_EQ(frozen("frozen=fp32", "pytorch@2.9"), std::pair(Formats{Dtype::fp32}, false));
  EXPECT_EQ(frozen("fp32", "pytorch@2.9"), std::pair(Formats{std::nullopt}, false));
  EXPECT_EQ(frozen(std::nullopt, "placet"), std::pair(Formats{std::nullopt}, false));
}

// The Trainer takes weights as they were loaded, which a job without --precision does not say. An
// engine that says its own formats does not inherit the note.
TEST(LoadJobTest, FormatsThatHangOnTheLoadingAreSaid) {
  const auto notes = [](const char* engine, std::optional<std::string> precision,
                        std::optional<std::string> lora) {
    JobRequest asked = request();
    asked.model = "gpt2";
    asked.engine = engine;
    asked.precision = std::move(precision);
    asked.lora = std::move(lora);
    return std::ranges::count_if(load(asked).model.notes, [](const std::string& note) {
      return note.starts_with(
          "weights rest in fp32, the default of hf-trainer@5, unless the model");
    });
  };
  EXPECT_EQ(notes("hf-trainer@5", std::nullopt, std::nullopt), 1);
  EXPECT_EQ(notes("hf-trainer@5", "bf16", std::nullopt), 0);
  EXPECT_EQ(notes("hf-trainer@5", std::nullopt, "8"), 0);
  EXPECT_EQ(notes("transformers-loop@5", std::nullopt, std::nullopt), 0);
}

TEST(LoadJobTest, EnginesMayClipByDefault) {
  JobRequest asked = request();
  asked.engine = "megatron@2026";
  const Job job = load(asked);
  EXPECT_TRUE(job.clips_by_global_norm);
  EXPECT_EQ(std::ranges::count(job.model.notes,
                               "gradients are clipped by their global norm, the default of "
                               "megatron@2026: --clip 0 switches it off"),
            1);
  asked.clip = 0.0;
  EXPECT_FALSE(load(asked).clips_by_global_norm);
  for (const char* engine : {"deepspeed@0.19.2", "megatron-deepspeed@2022", "pytorch@2.9"}) {
    asked = request();
    asked.engine = engine;
    EXPECT_FALSE(load(asked).clips_by_global_norm) << engine;
  }
}

// llama-2-70b, 80 blocks: 68451041280 numbers of 4 bits in their matrices, with a byte per 64 and 4
// bytes per 16384 of them: 35311779840 bytes. Embedding, output and 161 norms of 8192, 525606912
// numbers, in bf16; so are the adapters, 10354688 in a block: 64 (in + out) of each matrix.
TEST(LoadJobTest, QloraQuantisesTheMatricesOfBlocks) {
  JobRequest asked = request();
  asked.model = "llama-2-70b";
  asked.lora = "64,*_proj";
  asked.precision = "qlora";
  const Job job = load(asked);
  std::int64_t quantised = 0;
  std::int64_t others = 0;
  for (const Unit& unit : job.model.units) {
    for (const Parameter& p : job.model.kinds[static_cast<std::size_t>(unit.kind)].parameters) {
      const std::int64_t elements = elements_of(p.dims);
      if (p.dtype == Dtype::nf4) {
        quantised += in_bytes(bytes_of(elements, Dtype::nf4) + bytes_of(elements, p.constants));
      } else {
        others += elements;
      }
    }
  }
  EXPECT_EQ(quantised, 35'311'779'840);
  EXPECT_EQ(others, 525'606'912 + 80 * 10'354'688);
  EXPECT_EQ(job.precision.parameters, Dtype::bf16);
  EXPECT_EQ(job.precision.master, std::nullopt);
}

TEST(LoadJobTest, WhatIsMissingIsSaid) {
  EXPECT_EQ(job_complaint({.model = "70B"}),
            "--placement: is missing; expected axes such as \"dp=8:zero1 tp=8:tp+sp\"");
  EXPECT_EQ(job_complaint({.placement = "dp=8:zero3"}).substr(0, 18), "MODEL: is missing;");
}

TEST(LoadJobTest, WrongWordsAreExplained) {
  const auto with = [](auto JobRequest::*field, const char* text) {
    JobRequest asked = request();
    asked.*field = text;
    return job_complaint(asked);
  };
  EXPECT_NE(with(&JobRequest::placement, "dp=8:zero4").find("did you mean"), std::string::npos);
  EXPECT_EQ(with(&JobRequest::recompute, "ful"),
            "--recompute: 'ful' is no way of recomputation; expected none, full, selective, "
            "selective=MODULE,..., every=N, first=N or uniform=N; did you mean 'full'?");
  EXPECT_EQ(with(&JobRequest::recompute, "every=0").substr(0, 41),
            "--recompute: 'every=0' has no valid count");
  EXPECT_EQ(with(&JobRequest::recompute, "first=33"), "no error") << "70B has no known blocks";
  EXPECT_NE(with(&JobRequest::recompute, "selective=mpl").find("did you mean 'mlp'?"),
            std::string::npos);
  EXPECT_EQ(with(&JobRequest::routing, "expected=0.5").substr(0, 38),
            "--routing: 'expected=0.5' is no routin");
  EXPECT_EQ(with(&JobRequest::loss, "sum"),
            "--loss: 'sum' is not a known loss weight; expected token-mean");
  EXPECT_NE(with(&JobRequest::optimizer, "adamv").find("did you mean"), std::string::npos);
  EXPECT_NE(with(&JobRequest::engine, "placett").find("did you mean 'placet'?"), std::string::npos);
  EXPECT_NE(with(&JobRequest::cluster, "h100-sxn:8").find("did you mean 'h100-sxm'?"),
            std::string::npos);
}

// GPT-2 has 12 blocks.
TEST(LoadJobTest, RecomputationCountsBlocksThatThereAre) {
  JobRequest asked{.model = "gpt2", .placement = "dp=8:zero3"};
  for (const char* right : {"first=1", "first=12", "every=1", "every=12"}) {
    asked.recompute = right;
    EXPECT_NO_THROW(load(asked)) << right;
  }
  asked.recompute = "first=13";
  EXPECT_EQ(job_complaint(asked),
            "--recompute: 'first=13' recomputes more blocks than the model has; expected first=1 "
            "to first=12, or full");
  asked.recompute = "every=13";
  EXPECT_EQ(job_complaint(asked),
            "--recompute: 'every=13' recomputes one block of more than the model has; expected "
            "every=1 to every=12, or none");
}

// A = M is the same as full: said twice it may be said the same.
TEST(LoadJobTest, RecomputationMayNotContradictThePlacement) {
  JobRequest asked = request();
  asked.placement = "dp=2:batch(R,S,R,M)";
  EXPECT_EQ(load(asked).recompute.kind, Recompute::Kind::none);
  asked.recompute = "full";
  EXPECT_EQ(load(asked).recompute.kind, Recompute::Kind::full);
  for (const char* other : {"none", "selective", "every=2", "first=1"}) {
    asked.recompute = other;
    EXPECT_EQ(job_complaint(asked),
              "--recompute: '" + std::string(other) +
                  "' contradicts the placement: activations are M along dp, which recomputes every "
                  "block; expected full, nothing, or activations R along dp; did you mean 'full'?");
  }
}

TEST(ParseRecomputeTest, EveryForm) {
  const auto parse = [](const char* text) { return parse_recompute(text, "x"); };
  EXPECT_EQ(parse("none"), Recompute{});
  EXPECT_EQ(parse("every=2"), (Recompute{.kind = Recompute::Kind::every, .count = 2}));
  EXPECT_EQ(parse("uniform=4"), (Recompute{.kind = Recompute::Kind::uniform, .count = 4}));
  EXPECT_EQ(parse("first=10"), (Recompute{.kind = Recompute::Kind::first, .count = 10}));
  EXPECT_EQ(parse("selective"), parse("selective=core_attn"));
  EXPECT_EQ(parse("selective=moe_act,shared_experts,mla_up_proj").modules,
            (std::vector<Module>{Module::shared_expert, Module::moe_activation,
                                 Module::latent_projection}));
  EXPECT_EQ(parse("selective=mlp,core_attn").modules,
            (std::vector<Module>{Module::core_attention, Module::mlp}));
  EXPECT_THROW(parse("full=1"), InputError);
  EXPECT_THROW(parse("every"), InputError);
  EXPECT_THROW(parse(""), InputError);
}

// Job files.

TEST(JobFileTest, TomlAndJsonSayTheSame) {
  const TestFolder folder;
  const JobRequest toml = read_job_file(folder.write("j.toml",
                                                     "model = \"70B\"\n"
                                                     "placement = \"dp=8:zero3\"\n"
                                                     "seq = 2048\n"
                                                     "global-batch = 64\n"
                                                     "freeze = [\"a*\", \"b\"]\n"
                                                     "lora = 16\n"
                                                     "clip = 1.0\n"));
  JobRequest json = read_job_file(folder.write(
      "j.json", R"({"model": "70B", "placement": "dp=8:zero3", "seq": 2048, "global-batch": 64,
                    "freeze": ["a*", "b"], "lora": "16", "clip": 1.0})"));
  json.file = toml.file;
  EXPECT_EQ(toml, json);
  EXPECT_EQ(toml.sequence, 2048);
}

TEST(JobFileTest, FlagsWin) {
  const JobRequest file{.model = "7B", .placement = "dp=8:ddp", .sequence = 2048};
  const JobRequest merged = merge({.model = "70B", .micro_batch = 4}, file);
  EXPECT_EQ(merged.model, "70B");
  EXPECT_EQ(merged.placement, "dp=8:ddp");
  EXPECT_EQ(merged.sequence, 2048);
  EXPECT_EQ(merged.micro_batch, 4);
}

// A word that a flag overrides is no longer the file's.
TEST(JobFileTest, FaultsAreNamedWhereTheirWordsWereSaid) {
  const TestFolder folder;
  const std::string path =
      folder.write("j.toml", "model = \"gpt2\"\nplacement = \"dp=8:zero4\"\nseq = 2048\n");
  const JobRequest merged = merge({.sequence = 512}, read_job_file(path));
  EXPECT_EQ(merged.in_file, (std::set<std::string>{"model", "placement"}));
  const auto named = [&](const char* where) {
    return named_as_said({.where = where}, merged).where;
  };
  EXPECT_EQ(named("--placement"), path + ": placement");
  EXPECT_EQ(named("placement, character 6"), path + ": placement, character 6");
  EXPECT_EQ(named("MODEL"), path + ": model");
  EXPECT_EQ(named("--seq"), "--seq");
  EXPECT_EQ(named("--placements"), "--placements");
  EXPECT_EQ(named("other.json: placement"), "other.json: placement");
}

TEST(JobFileTest, PathsStartFromTheFilesFolder) {
  const TestFolder folder;
  const std::string file = folder.write(
      "jobs/j.toml", "model = \"../models/m.json\"\ncluster = \"8xc.toml,4xh100-sxm\"\n");
  const JobRequest read = read_job_file(file);
  const std::string jobs = (folder.path() / "jobs").string();
  EXPECT_EQ(read.model, jobs + "/../models/m.json");
  EXPECT_EQ(read.cluster, "8x" + jobs + "/c.toml,4xh100-sxm");
}

TEST(JobFileTest, WrongFilesAreRefusedWithTheKey) {
  const TestFolder folder;
  const auto complaint_about = [&](const std::string& text) {
    const std::string file = folder.write("j.toml", text);
    return message_of([&] { read_job_file(file); }, folder.path());
  };
  EXPECT_EQ(complaint_about("micro_batch = 1\n").substr(0, 44),
            "j.toml: 'micro_batch' is not a key here; exp");
  EXPECT_NE(complaint_about("micro_batch = 1\n").find("did you mean 'micro-batch'?"),
            std::string::npos);
  EXPECT_EQ(complaint_about("seq = 0\n"),
            "j.toml: seq: '0' is out of range; expected a whole number from 1 to 1000000000");
  EXPECT_EQ(
      complaint_about("seq = \"4q\"\n"),
      "j.toml: seq: '4q' is not a number of tokens; expected 1 to 1000000000, or a text such as "
      "\"4k\"");
  EXPECT_EQ(read_job_file(folder.write("k.toml", "seq = \"4k\"\n")).sequence, 4096);
  EXPECT_EQ(complaint_about("model = 70\n"),
            "j.toml: model: '70' is not a text; expected a text in quotes");
  EXPECT_EQ(complaint_about("clip = -1\n"),
            "j.toml: clip: '-1' is out of range; expected a number from 0 to 1e+12");
  EXPECT_EQ(complaint_about("seq = 1\nseq = 2\n").substr(0, 15), "j.toml: line 2:");
  EXPECT_EQ(complaint_about("[job]\nseq = 1\n").substr(0, 35),
            "j.toml: 'job' is not a key here; ex");
}

}  // namespace
}  // namespace placet

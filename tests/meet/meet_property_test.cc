// The closed forms of derive() and the sums of the step program are the same figures, to the byte.
#include <gtest/gtest.h>

#include <iostream>

#include "catalog/catalog_files.h"
#include "catalog/job.h"
#include "check/check.h"
#include "derive/derive.h"
#include "lower/lower.h"
#include "meet/meet_jobs.h"
#include "meet/meeting.h"
#include "model/adapt.h"
#include "model/gradients.h"

namespace placet::testing {
namespace {

Model with_adapters(Model model) {
  return with_gradients_needed(with_lora(std::move(model), {.rank = 4}));
}

/// All but the head, and what it shares.
Model with_head_trained(Model model) {
  for (UnitKind& kind : model.kinds) {
    if (kind.role == UnitRole::head) continue;
    for (Parameter& parameter : kind.parameters) parameter.trainable = false;
  }
  for (UnitKind& kind : model.kinds) {
    for (Parameter& parameter : kind.parameters) {
      if (parameter.tied) parameter.trainable = false;
    }
  }
  return with_gradients_needed(std::move(model));
}

class TwoDerivations : public ::testing::TestWithParam<int> {};

TEST_P(TwoDerivations, MeetInMessagesRestAndPeaks) {
  MeetJobs jobs(static_cast<std::uint32_t>(700 + GetParam()), dense_models());
  const Tallied tallied = jobs.compare(600, {Figure::messages, Figure::rest, Figure::peak});
  EXPECT_GE(tallied.lowered, 100);
  EXPECT_GE(tallied.met.at(Figure::peak), 90);
  EXPECT_TRUE(tallied.parted.empty()) << tallied.parted.size() << " part\n" << text_of(tallied);
  std::cout << text_of(tallied) << "\n";
}

TEST(TwoDerivationsOfExperts, MeetInMessagesRestAndPeaks) {
  MeetJobs jobs(750, expert_models());
  const Tallied tallied = jobs.compare(500, {Figure::messages, Figure::rest, Figure::peak});
  EXPECT_GE(tallied.lowered, 40);
  EXPECT_TRUE(tallied.parted.empty()) << tallied.parted.size() << " part\n" << text_of(tallied);
  std::cout << text_of(tallied) << "\n";
}

// A sum on its way to a divided stream is whole beside its part, of which a norm keeps no more.
TEST(TwoDerivationsOfANormBehindABranch, MeetInPeaks) {
  JobRequest request;
  request.model = "gemma-2-2b";
  request.placement = "tp=4:tp+sp dp=2:ddp";
  request.sequence = 1024;
  request.global_batch = 8;
  request.micro_batch = 2;
  for (const char* recompute : {"none", "full"}) {
    request.recompute = recompute;
    const Job job = load_job(Catalog{PLACET_SOURCE_DIR "/data"}, request);
    for (const Difference& difference : differences(job, derive(job), lower(job))) {
      ADD_FAILURE() << recompute << ": " << text_of(difference);
    }
  }
}

// What waits between the two parts of a split backward is in both.
TEST(TwoDerivationsOfSplitBackward, MeetInRestAndPeaks) {
  MeetJobs jobs(760, untied_models(), split_schedules());
  const Tallied tallied = jobs.compare(600, {Figure::rest, Figure::peak});
  EXPECT_GE(tallied.lowered, 70);
  EXPECT_TRUE(tallied.parted.empty()) << tallied.parted.size() << " part\n" << text_of(tallied);
  std::cout << text_of(tallied) << "\n";
}

// Inputs of units that are made again whole, kept in parts; states on drives; cuts of some of the
// dims that tensor cuts have.
TEST(TwoDerivationsOfOtherCuts, Meet) {
  for (const char* placement :
       {"dp=2:zero1 tp=2:vocab-parallel", "pp=2:1f1b dp=2:zero3 tp=2:vocab-parallel",
        "tp=2:tp-2d-columns", "dp=2:zero1 tp=2:tp-2d-columns", "i=2:tp-2d-rows j=2:tp-2d-columns",
        "tp=2:tp-2d-hidden", "dp=2:zero1 tp=2:tp-2d-hidden", "x=2:tp-2d-hidden y=2:tp",
        "dp=2:zero1 tp=2:tensor(S,S,S,R,ffn)", "tp=2:tensor(S,S,S,R,head,kv_head)",
        "tp=2:tensor(S,S,S,R,ffn,vocab)", "dp=2:ddp tp=2:tensor(R,R,R,R,vocab)",
        "tp=2:tp+partitioned-checkpoints", "dp=2:zero1 tp=4:tp+partitioned-checkpoints",
        "pp=2:1f1b dp=2:zero3 tp=2:tp+partitioned-checkpoints",
        "dp=2:zero3+offload(optimizer,nvme)", "dp=2:zero1+offload(activations,nvme) tp=2:tp",
        "dp=2:zero-infinity-nvme"}) {
    for (const char* recompute : {"full", "every=2", "none"}) {
      JobRequest request{.model = "llama-3.2-1b", .placement = placement};
      request.sequence = 256;
      request.global_batch = 16;
      request.recompute = recompute;
      const Job job = load_job(find_catalog(), request);
      // Where columns come together, the peaks are not compared (docs/theory.md, section 6.10).
      const bool columns = std::string_view(placement).ends_with("tp-2d-columns");
      for (const Difference& difference : differences(job, derive(job), lower(job))) {
        if (columns && difference.figure == Figure::peak) continue;
        ADD_FAILURE() << placement << ", " << recompute << ": " << text_of(difference);
      }
    }
  }
}

// Schedules that are written out, from a user's own folder: two waves over two devices (stages 0,
// 3, 4 and 7 on the first), and one whose backwards are split on the second device alone.
// Left out, as they part: waves whose parameters are gathered (dp=2:zero3). The closed form's peak
// in forward is 525,336,576 bytes below the program's: 128,256 x 2,048 x 2, the tied embedding.
TEST(TwoDerivationsOfTables, Meet) {
  const TestFolder folder;
  const auto write = [&](const std::string& name, const std::string& rows) {
    folder.write("schedules/" + name + ".json",
                 R"({"schema":"placet.schedule/1","name":")" + name +
                     R"(","description":"Mine.","sources":["by hand"],"sets":{"cut":"layer"},)"
                     R"("table":[)" +
                     rows + "]}");
  };
  write("waves", R"("0F0 0F1 3F0 4F0 3F1 4F1 7F0 7B0 7F1 7B1 4B0 3B0 4B1 3B1 0B0 0B1",)"
                 R"("1F0 2F0 1F1 2F1 5F0 6F0 5F1 6F1 6B0 5B0 6B1 5B1 2B0 1B0 2B1 1B1")");
  write("mixed", R"("0F0 0F1 0B0 0B1", "1F0 1I0 1F1 1I1 1W0 1W1")");
  const Catalog catalog{.root = find_catalog().root, .overlays = {folder.path()}};
  for (const char* placement :
       {"pp=2:waves", "pp=2:waves dp=2:zero1", "pp=2:mixed", "pp=2:mixed dp=2:zero1 tp=2:tp"}) {
    JobRequest request{.model = "llama-3.2-1b", .placement = placement};
    request.sequence = 256;
    request.micro_batch = 1;
    request.global_batch =
        std::string_view(placement).find("dp=2") == std::string_view::npos ? 2 : 4;
    const Job job = load_job(catalog, request);
    EXPECT_TRUE(check(lower(job)).equivalent) << placement;
    for (const Difference& difference : differences(job, derive(job), lower(job))) {
      ADD_FAILURE() << placement << ": " << text_of(difference);
    }
  }
}

// 50257 tokens in 2, 3 and 4 parts, with a head of its own and one that is the embedding: the first
// device has one token more than the last.
TEST(TwoDerivationsOfUnevenVocabularies, Meet) {
  for (const char* model : {"gpt2", "granite-3.3-8b", "untied"}) {
    for (const char* placement :
         {"tp=2:tp", "dp=2:ddp tp=2:tp+sp", "dp=2:zero1 tp=4:tp+sp", "dp=2:zero3 tp=4:tp",
          "pp=2:1f1b dp=2:zero1 tp=2:tp+sp", "dp=3:zero3+keep tp=2:vocab-parallel"}) {
      const bool untied = std::string_view(model) == "untied";
      JobRequest request{.model = untied ? "gpt2" : model, .placement = placement};
      request.sequence = 256;
      request.global_batch = 12;
      Job job = load_job(find_catalog(), request);
      if (untied) {
        for (UnitKind& kind : job.model.kinds) {
          for (Parameter& parameter : kind.parameters) parameter.tied.reset();
        }
      }
      // Where the stream is divided, peaks are not compared (docs/theory.md, section 6.10).
      const bool divided = std::string_view(placement).find("+sp") != std::string_view::npos;
      for (const Difference& difference : differences(job, derive(job), lower(job))) {
        if (divided && difference.figure == Figure::peak) continue;
        ADD_FAILURE() << model << ", " << placement << ": " << text_of(difference);
      }
    }
  }
}

TEST(TwoDerivationsOfFrozenModels, MeetWhereTheHeadIsTrained) {
  MeetJobs jobs(760, dense_models());
  const Tallied tallied =
      jobs.compare(300, {Figure::messages, Figure::rest, Figure::peak}, with_head_trained);
  EXPECT_GE(tallied.lowered, 50);
  EXPECT_TRUE(tallied.parted.empty()) << tallied.parted.size() << " part\n" << text_of(tallied);
  std::cout << text_of(tallied) << "\n";
}

TEST(TwoDerivationsOfFrozenModels, MeetWhereAdaptersAre) {
  MeetJobs jobs(770, dense_models());
  const Tallied tallied =
      jobs.compare(300, {Figure::messages, Figure::rest, Figure::peak}, with_adapters);
  EXPECT_GE(tallied.lowered, 50);
  EXPECT_TRUE(tallied.parted.empty()) << tallied.parted.size() << " part\n" << text_of(tallied);
  std::cout << text_of(tallied) << "\n";
}

INSTANTIATE_TEST_SUITE_P(OfDenseModels, TwoDerivations, ::testing::Range(0, 4));

}  // namespace
}  // namespace placet::testing

// Formats that an engine chooses while it computes (docs/theory.md §3.2): torch.autocast over fp32
// weights. The model of small_llama.h, 6 tokens: a value of the stream is 48 numbers, keys 24, one
// of the MLP 96.
#include "profile/autocast.h"

#include <gtest/gtest.h>

#include <map>

#include "derive/derive.h"
#include "derive/kept_tensors.h"
#include "derive/small_llama.h"
#include "model/adapt.h"
#include "model/gradients.h"

namespace placet {
namespace {

Job autocast_job(Architecture architecture = small_architecture(1)) {
  Job job = plain_job(build_model(architecture), {axis("dp", 1, Cut::batch, {})}, 6, 1);
  job.precision = {.name = "fp32-bf16-compute",
                   .parameters = Dtype::fp32,
                   .compute = Dtype::bf16,
                   .gather = Dtype::fp32,
                   .gradients = Dtype::fp32,
                   .reduce = Dtype::fp32,
                   .master = {},
                   .products = {}};
  job.profile.autocasts = {OpKind::linear, OpKind::grouped_linear, OpKind::attention};
  return job;
}

/// Bytes of what the block keeps, by name.
std::map<std::string, std::int64_t> kept_by_block(Job job) {
  set_formats(job);
  std::map<std::string, std::int64_t> kept;
  for (const KeptTensor& tensor : kept_tensors(job, derive(job).memory.front())) {
    if (tensor.unit == "block") kept[tensor.what] = in_bytes(tensor.bytes);
  }
  return kept;
}

// The embedding gives fp32, so that residual sums are fp32, and norms' results; of these each
// product keeps a copy of its own in bf16. What products give is bf16.
TEST(Autocast, EachProductKeepsItsOwnCopy) {
  const auto kept = kept_by_block(autocast_job());
  EXPECT_EQ(kept.at("input"), 48 * 4);
  EXPECT_EQ(kept.at("attention.norm.output in bf16"), 3 * 48 * 2) << "query, key and value";
  EXPECT_EQ(kept.at("mlp.norm.output in bf16"), 2 * 48 * 2) << "gate and up";
  EXPECT_FALSE(kept.contains("attention.norm.output"));
  EXPECT_FALSE(kept.contains("mlp.norm.output"));
  EXPECT_EQ(kept.at("mlp.activation.output"), 96 * 2) << "bf16 as it came: no copy";
}

// Every product keeps its weights in bf16, too: 8 x 8 of query and output, 8 x 4 of key and value,
// 8 x 16 of the MLP's three.
TEST(Autocast, ProductsKeepTheirWeightsInTheFormatOfComputation) {
  std::int64_t weights = 0;
  for (const auto& [what, bytes] : kept_by_block(autocast_job())) {
    if (what.starts_with("weights of ")) weights += bytes;
  }
  EXPECT_EQ(weights, (2 * 64 + 2 * 32 + 3 * 128) * 2);
}

// An adapter in fp32 casts its input before dropout and what is left of it after: kept are a mask
// of one byte and a copy in bf16, 48 numbers each.
TEST(Autocast, AdaptersKeepAMaskAndACopy) {
  Job job = autocast_job();
  job.model = with_gradients_needed(
      with_lora(build_model(small_architecture(2)), {.rank = 2, .patterns = {"q"}, .drops = true}));
  for (UnitKind& kind : job.model.kinds) {
    for (Parameter& p : kind.parameters) {
      if (!p.trainable) p.dtype = Dtype::bf16;
    }
  }
  const auto kept = kept_by_block(job);
  EXPECT_EQ(kept.at("attention.q.lora_dropout.dropout_mask"), 48);
  EXPECT_EQ(kept.at("attention.q.lora_dropout in bf16"), 48 * 2);
  EXPECT_FALSE(kept.contains("attention.norm.output in bf16"));
}

// Without a list of what is cast nothing of this happens: formats are those of the precision.
TEST(Autocast, IsAFactOfTheEngine) {
  Job job = autocast_job();
  job.profile.autocasts.clear();
  const auto kept = kept_by_block(job);
  EXPECT_EQ(kept.at("input"), 48 * 2);
  EXPECT_EQ(kept.at("attention.norm.output"), 48 * 2);
  for (const auto& [what, bytes] : kept) EXPECT_FALSE(what.starts_with("weights of ")) << what;
}

// Weights in bf16 leave nothing to cast, and the stream in bf16.
TEST(Autocast, WeightsThatAreNarrowAlreadyAreNotCast) {
  Job job = autocast_job();
  job.precision.parameters = Dtype::bf16;
  const auto kept = kept_by_block(job);
  EXPECT_EQ(kept.at("input"), 48 * 2);
  EXPECT_EQ(kept.at("attention.norm.output"), 48 * 2);
  for (const auto& [what, bytes] : kept) EXPECT_FALSE(what.starts_with("weights of ")) << what;
}

// A kind that is not cast computes in the widest format of what it takes: the MLP's product that
// an engine leaves in fp32 gives fp32, and keeps its input as it is.
TEST(Autocast, WhatIsNotCastStaysWide) {
  Job job = autocast_job();
  job.profile.autocasts = {OpKind::attention};
  const auto kept = kept_by_block(job);
  EXPECT_EQ(kept.at("attention.norm.output"), 48 * 4);
  EXPECT_EQ(kept.at("mlp.activation.output"), 96 * 4);
}

// Moments are as wide as the parameters where these have no master.
TEST(Autocast, MomentsFollowParametersWithoutAMaster) {
  Optimizer optimizer{.states = {{.what = "first moment"}, {.what = "second moment"}}};
  Precision precision{.parameters = Dtype::bf16, .master = Dtype::fp32};
  follow_parameters(precision, optimizer);
  EXPECT_EQ(optimizer.states.front().dtype, Dtype::fp32);
  precision.master.reset();
  follow_parameters(precision, optimizer);
  EXPECT_EQ(optimizer.states.front().dtype, Dtype::bf16);
  EXPECT_EQ(optimizer.states.back().dtype, Dtype::bf16);
}

}  // namespace
}  // namespace placet

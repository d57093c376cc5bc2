#include "derive/reserve.h"

#include <gtest/gtest.h>

#include "derive/derive.h"
#include "derive/traffic.h"

namespace placet {
namespace {

Architecture wide_architecture_of(int blocks) {
  Architecture architecture = small_architecture(blocks);
  architecture.hidden = 1024;
  architecture.embedding = {.vocabulary = 4096, .width = 1024, .tokens = "embed"};
  auto& attention = std::get<Attention>(architecture.shapes[0][0].branches[0].mixer);
  attention.heads = 8;
  attention.kv_heads = 4;
  attention.head_size = attention.value_head_size = attention.rotary_size = 128;
  std::get<Mlp>(architecture.shapes[0][1].branches[0].mixer).width = 4096;
  return architecture;
}

Model wide_model() { return build_model(wide_architecture_of(6)); }

// The replay makes and frees what the walk counts: the most alive is the same figure, up to the
// rounding of each request to 512 bytes. Sizes large enough that rounding stays below a hundredth.
TEST(Reserve, TheReplayHasAsMuchAliveAsTheDerivation) {
  const Model model = wide_model();
  const std::vector<std::vector<AxisPlacement>> placements = {
      {},
      {axis("dp", 4, Cut::batch)},
      {axis("dp", 4, Cut::batch, kOptimizerSharded)},
      {axis("tp", 2, Cut::tensor, kTensorWhole)},
      {axis("pp", 3, Cut::layer, kStages), axis("dp", 2, Cut::batch)},
  };
  for (const auto& axes : placements) {
    const Job job = plain_job(model, axes, 2048, 16);
    const Derivation derivation = derive(job);
    const std::vector<Reservation> reserved = reserve(job);
    ASSERT_EQ(reserved.size(), derivation.memory.size());
    for (std::size_t s = 0; s < reserved.size(); ++s) {
      EXPECT_NEAR(reserved[s].alive / derivation.memory[s].peak, 1.0, 0.01) << "stage " << s;
      EXPECT_GE(reserved[s].reserved, reserved[s].alive);
    }
  }
}

// Buffers of attention over a cut sequence, and what comes in for the update, too.
TEST(Reserve, TheReplayHasTheBuffersOfAttentionAndOfTheUpdate) {
  for (const char* placement : {"cp=4:gather", "cp=4:ring", "cp=4:heads", "dp=4:batch(R,S*,S,R)",
                                "dp=4:ddp+offload(optimizer)+update(device)"}) {
    const Job job = written_job(wide_model(), placement, 2048, 16);
    EXPECT_NEAR(reserve(job)[0].alive / derive(job).memory[0].peak, 1.0, 0.01) << placement;
  }
}

// What is kept in host memory, or divided among neighbours, does not stay on the device: 12 blocks
// keep one input of 2048 x 1024 entries in bf16 each, 4 MiB, of which all, half or a quarter goes.
TEST(Reserve, WhatIsKeptElsewhereLeavesTheDevice) {
  const Model model = build_model(wide_architecture_of(12));
  for (const char* placement :
       {"dp=2:ddp+offload(activations)", "dp=2:ddp+offload(activations=1/2)",
        "tp=4:tp;checkpoints:sp", "tp=4:tp+host-checkpoints"}) {
    Job job = written_job(model, placement, 2048, 2);
    job.recompute.kind = Recompute::Kind::full;
    EXPECT_NEAR(reserve(job)[0].alive / derive(job).memory[0].peak, 1.0, 0.01) << placement;
  }
}

// Parameters gathered for all micro-batches go with the last backward: where the update needs most,
// with states gathered and hardly any activations, they are not beside it.
TEST(Reserve, WhatIsGatheredForTheStepIsGoneBeforeTheUpdate) {
  const Job job =
      written_job(wide_model(), "a=2:batch(R,S*,R,R) b=2:batch(S*,R,R,R)+keep-step", 16, 16);
  EXPECT_NEAR(reserve(job)[0].alive / derive(job).memory[0].peak, 1.0, 0.01);
}

// A gradient of the output matrix that the embedding owns waits for the embedding's, where a part
// of it goes to host memory: 4096 x 1024 entries in bf16, a fortieth of all.
TEST(Reserve, TheReplayHasTheGradientThatWaitsForItsOwner) {
  Architecture architecture = wide_architecture_of(1);
  architecture.head.tied = true;
  const Model model = build_model(architecture);
  const Job job = written_job(model, "dp=2:batch(R,R,R,R)+offload(gradients=1/3)", 512, 2);
  const MemoryClass memory = derive(job).memory[0];
  EXPECT_EQ(memory.peak_instant, Instant::backward);
  EXPECT_NEAR(reserve(job)[0].alive / memory.peak, 1.0, 0.002);
}

// Where gradients grow in backward it waits as well, whole or in parts: an output matrix of its
// own, 4096 x 1024, has as much of a gradient behind it, and 2 + 12 bytes of states more.
TEST(Reserve, AGrowingGradientOfTwoUsesWaitsForTheSecond) {
  const auto alive = [](bool tied) {
    Architecture architecture = wide_architecture_of(2);
    architecture.head.tied = tied;
    Job job = written_job(build_model(architecture), "dp=2:ddp", 16384, 2);
    job.profile.gradient_life = GradientLife::growing;
    job.profile.gradient_hold = GradientHold::op;
    job.profile.fuses_output_and_loss = true;
    return in_bytes(reserve(job)[0].alive);
  };
  constexpr std::int64_t kEntries = std::int64_t{4096} * 1024;
  EXPECT_LT(std::abs(alive(false) - alive(true) - 14 * kEntries), kEntries / 8);
}

// What an engine needs at the loss alone is there when the loss is taken, and gone afterwards.
TEST(Reserve, TheReplayHasTermsOfTheLossAlone) {
  Job job = plain_job(wide_model(), {axis("dp", 4, Cut::batch)}, 2048, 16);
  EngineMemory term{.what = "tile", .instants = bit_of(Instant::loss)};
  term.category = MemoryCategory::transient;
  term.bytes.factor = Rational(std::int64_t{3} << 30);
  job.profile.memory.push_back(term);
  const MemoryClass memory = derive(job).memory[0];
  EXPECT_EQ(memory.peak_instant, Instant::loss);
  EXPECT_NEAR(reserve(job)[0].alive / memory.peak, 1.0, 0.01);
}

// Bytes lost to the context are not there for the allocator: it gives back what it caches where it
// would pass what is left, and only then. What is alive does not change.
TEST(Reserve, AFullDeviceGivesBackWhatItCaches) {
  Job job = plain_job(wide_model(), {axis("dp", 4, Cut::batch)}, 16384, 16);
  const auto own = [&](const char* what, Bytes size, InstantSet instants, bool in_reserved) {
    EngineMemory term{.what = what, .instants = instants};
    term.category =
        instants == kEveryInstant ? MemoryCategory::overhead : MemoryCategory::transient;
    term.bytes.factor = Rational(in_bytes(size));
    term.in_reserved = in_reserved;
    job.profile.memory.push_back(term);
  };
  // One buffer larger than any that the backward pass leaves in the cache.
  own("flat buffer", gibibytes(3), bit_of(Instant::update), true);
  const Prepared prepared = prepare(job);
  const Reservation free = reserve(job, prepared, 0);
  EXPECT_EQ(reserve(job, prepared, 0, free.reserved).reserved, free.reserved);

  own("context", mebibytes(64), kEveryInstant, false);
  const Reservation tight = reserve(job, prepared, 0, free.reserved);
  EXPECT_EQ(tight.alive, free.alive);
  EXPECT_LT(tight.reserved, free.reserved);
  EXPECT_LE(tight.reserved_after_backward, tight.reserved);
}

}  // namespace
}  // namespace placet

#include "derive/unit_work.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "derive/small_llama.h"
#include "derive/traffic.h"

namespace placet {
namespace {

std::vector<KernelWork> products(const std::vector<KernelWork>& kernels, std::string_view what) {
  std::vector<KernelWork> found;
  for (const KernelWork& kernel : kernels) {
    if (kernel.kind == KernelWork::Kind::product && kernel.what == what) found.push_back(kernel);
  }
  return found;
}

UnitWork block_of(const Job& job, bool recomputed = false) {
  const Prepared prepared = prepare(job);
  const Layout layout = lay_out(job, prepared);
  return unit_work(layout, layout.unit_of[1], recomputed);
}

double products_flops(const std::vector<KernelWork>& kernels) {
  double sum = 0;
  for (const KernelWork& kernel : kernels) {
    if (kernel.kind == KernelWork::Kind::product) sum += kernel.flops;
  }
  return sum;
}

// A block of small_llama.h multiplies with 576 elements (q 64, k 32, v 32, o 64, gate, up and down
// 128 each): 2 x 576 FLOPs per token forward, twice that backward.
TEST(UnitWork, ProductsFollowFromTheMatrices) {
  const Job job = plain_job(build_model(small_architecture(4)), {axis("dp", 1, Cut::batch)}, 8, 1);
  const double tokens = static_cast<double>(job.batch.sequence);
  const UnitWork work = block_of(job);
  EXPECT_DOUBLE_EQ(products_flops(work.forward), 2 * 576 * tokens);
  EXPECT_DOUBLE_EQ(products_flops(work.backward), 4 * 576 * tokens);
  EXPECT_TRUE(work.again.empty());
}

// Two tensor ranks: half of every matrix but for the one key and value head, which both hold: 32 +
// 32 + 32 + 32 + 3 x 64 = 320 elements, all tokens.
TEST(UnitWork, ATensorCutHalvesWhatItCuts) {
  const Job job = plain_job(build_model(small_architecture(4)),
                            {axis("tp", 2, Cut::tensor, kTensorWhole)}, 8, 1);
  EXPECT_DOUBLE_EQ(products_flops(block_of(job).forward),
                   2 * 320 * static_cast<double>(job.batch.sequence));
}

TEST(UnitWork, AWholeUnitIsComputedAgain) {
  Job job = plain_job(build_model(small_architecture(4)), {axis("dp", 1, Cut::batch)}, 8, 1);
  job.recompute = {.kind = Recompute::Kind::full};
  const UnitWork work = block_of(job, true);
  EXPECT_DOUBLE_EQ(products_flops(work.again), products_flops(work.forward));
}

// A policy that keeps what products make leaves none to the second forward, and attention as it is.
TEST(UnitWork, WhatAPolicyKeepsIsNotComputedAgain) {
  Job job = plain_job(build_model(small_architecture(4)), {axis("dp", 1, Cut::batch)}, 8, 1);
  RecomputePolicy policy{.name = "products", .keeps_unread = true};
  policy.keeps[static_cast<std::size_t>(OpKind::linear)].outputs = 1;
  job.profile.policies = {policy};
  job.recompute = {.kind = Recompute::Kind::selective, .policy = "products"};
  const UnitWork work = block_of(job, true);
  EXPECT_EQ(products_flops(work.again), 0);
  const auto is_attention = [](const KernelWork& kernel) {
    return kernel.kind == KernelWork::Kind::attention;
  };
  EXPECT_EQ(std::ranges::count_if(work.again, is_attention), 1);
}

// Every second product is kept: of q, k, v, o, gate, up and down (64, 32, 32, 64, 128, 128, 128)
// the second, fourth and sixth run again: 32 + 64 + 128 = 224 elements.
TEST(UnitWork, APolicyOfEverySecondProductLeavesTheOthers) {
  Job job = plain_job(build_model(small_architecture(4)), {axis("dp", 1, Cut::batch)}, 8, 1);
  RecomputePolicy policy{.name = "half", .every = 2, .keeps_unread = true};
  policy.keeps[static_cast<std::size_t>(OpKind::linear)].outputs = 1;
  job.profile.policies = {policy};
  job.recompute = {.kind = Recompute::Kind::selective, .policy = "half"};
  EXPECT_DOUBLE_EQ(products_flops(block_of(job, true).again),
                   2 * 224 * static_cast<double>(job.batch.sequence));
}

// Attention's work below the diagonal: 4 x heads x size x s^2 / 2 forward, 2.5 times that backward.
TEST(UnitWork, AttentionCountsWhatLiesBelowTheDiagonal) {
  const Job job = plain_job(build_model(small_architecture(4)), {axis("dp", 1, Cut::batch)}, 8, 1);
  const double s = static_cast<double>(job.batch.sequence);
  const UnitWork work = block_of(job);
  const auto is_attention = [](const KernelWork& kernel) {
    return kernel.kind == KernelWork::Kind::attention;
  };
  const auto forward = std::ranges::find_if(work.forward, is_attention);
  const auto backward = std::ranges::find_if(work.backward, is_attention);
  ASSERT_NE(forward, work.forward.end());
  ASSERT_NE(backward, work.backward.end());
  const double width = static_cast<double>(job.model.figures.attention_width) / 4;
  EXPECT_DOUBLE_EQ(forward->flops, 2 * width * s * s);
  EXPECT_DOUBLE_EQ(backward->flops, 2.5 * forward->flops);
}

// A window of 128 keys among 1024: kernels work on blocks of 128 keys, so that a query meets 256 at
// most, 1/4 of all: 1/4 - 1/32 of the pairs. Their rate is that of 128 keys.
TEST(UnitWork, AWindowIsComputedInWholeBlocks) {
  Architecture small = small_architecture(4);
  attention_in(small).window = 128;
  const Job job = plain_job(build_model(small), {axis("dp", 1, Cut::batch)}, 1024, 1);
  const UnitWork work = block_of(job);
  const auto attention =
      std::ranges::find(work.forward, KernelWork::Kind::attention, &KernelWork::kind);
  ASSERT_NE(attention, work.forward.end());
  const double width = static_cast<double>(job.model.figures.attention_width) / 4;
  EXPECT_DOUBLE_EQ(attention->flops, 4 * width * 1024 * 1024 * (0.25 - 0.03125));
  EXPECT_EQ(attention->length, 128);
}

// Without such a kernel: two products of all pairs, and softmax.
TEST(UnitWork, UnfusedAttentionMakesAllScores) {
  Job job = plain_job(build_model(small_architecture(4)), {axis("dp", 1, Cut::batch)}, 8, 1);
  job.profile.timing.attention_kernel.clear();
  const UnitWork work = block_of(job);
  const auto attention = std::ranges::find_if(
      job.model.kinds[static_cast<std::size_t>(job.model.units[1].kind)].operators,
      [](const Operator& op) { return op.kind == OpKind::attention; });
  const auto found = products(work.forward, attention->name);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].shape.m, job.batch.sequence);
  EXPECT_EQ(found[0].shape.n, job.batch.sequence);
}

TEST(UnitWork, FusedOperatorsDoNotLaunch) {
  Job job = plain_job(build_model(small_architecture(4)), {axis("dp", 1, Cut::batch)}, 8, 1);
  const auto launches = [](const UnitWork& work) {
    std::int64_t sum = 0;
    for (const KernelWork& kernel : work.forward) sum += kernel.launches;
    return sum;
  };
  const std::int64_t apart = launches(block_of(job));
  job.profile.timing.fused = {{OpKind::residual_add, OpKind::norm}};
  EXPECT_LT(launches(block_of(job)), apart);
}

// Two norms of s tokens and 8 values each (small_llama.h), as kernels of 36 and 84 bytes per
// value.
TEST(UnitWork, AnOperatorMayTakeSeveralKernels) {
  Job job = plain_job(build_model(small_architecture(4)), {axis("dp", 1, Cut::batch)}, 8, 1);
  job.profile.timing.steps[static_cast<std::size_t>(OpKind::norm)] = {
      .forward_bytes = 36, .backward_bytes = 84, .forward_launches = 7, .backward_launches = 14};
  const UnitWork work = block_of(job);
  const double values = static_cast<double>(job.batch.sequence * job.model.figures.hidden);
  const auto of = [&](const std::vector<KernelWork>& kernels, double each, std::int64_t launches) {
    return std::ranges::count_if(kernels, [&](const KernelWork& kernel) {
      return kernel.bytes == each * values && kernel.launches == launches;
    });
  };
  EXPECT_EQ(of(work.forward, 36, 7), 2);
  EXPECT_EQ(of(work.backward, 84, 14), 2);
}

// Products in 8 bits: the casts before experts' products read two bytes more per element, and each
// product has two launches more.
TEST(UnitWork, NarrowProductsReadWhatTheyCast) {
  Job job = plain_job(build_model(expert_architecture(4)), {axis("dp", 1, Cut::batch)}, 8, 1);
  job.precision.products = Dtype::fp8;
  const auto sums = [&] {
    double bytes = 0;
    std::int64_t launches = 0;
    for (const KernelWork& kernel : block_of(job).forward) {
      if (kernel.kind == KernelWork::Kind::stream) bytes += kernel.bytes;
      if (kernel.kind == KernelWork::Kind::product) launches += kernel.launches;
    }
    return std::pair(bytes, launches);
  };
  const auto before = sums();
  double cast = 0;  // experts' inputs: several matrices in one product
  for (const KernelWork& kernel : block_of(job).forward) {
    const ProductShape& shape = kernel.shape;
    if (kernel.kind != KernelWork::Kind::product || shape.batch == 1) continue;
    cast += static_cast<double>(shape.batch * shape.m * shape.k);
  }
  ASSERT_GT(cast, 0);
  job.profile.timing.cast_bytes = 2;
  job.profile.timing.narrow_launches = 2;
  const auto after = sums();
  EXPECT_DOUBLE_EQ(after.first - before.first, 2 * cast);
  EXPECT_EQ(after.second, 3 * before.second);
}

// Where the host asks once for the products of all four experts, a loop launches the four.
TEST(UnitWork, ALibraryMayLaunchWhatExpertsMultiply) {
  Job job = plain_job(build_model(expert_architecture(4)), {axis("dp", 1, Cut::batch)}, 8, 1);
  job.profile.timing.launches_per_expert = 1;
  const auto launches = [&] {
    std::pair<std::int64_t, std::int64_t> sum;
    for (const KernelWork& kernel : block_of(job).forward) {
      if (kernel.shape.batch < 4) continue;
      sum.first += kernel.launches;
      sum.second += kernel.inner_launches;
    }
    return sum;
  };
  EXPECT_EQ(launches(), std::pair(12L, 0L));  // gate, up and down
  job.profile.timing.host_per_expert_launch = microseconds(5);
  EXPECT_EQ(launches(), std::pair(3L, 12L));
}

// Eight tokens of 16 numbers in two bytes, each with two choices, go to two devices: R = 512 bytes
// in order of experts. By default they are put in order before they leave and once more where they
// arrive: R / 2, the choices (8 x 2 x 8 bytes), R and 2 R are moved. Where they are sorted on
// arrival only, what arrived and R: 3/4 of R arrive if each token comes once per device.
TEST(UnitWork, TokensMayBeSortedOnArrivalOnly) {
  Job job = written_job(build_model(expert_architecture(4)), "ep=2:ep+zero1", 8, 2);
  const auto dispatched = [&] {
    const UnitWork work = block_of(job);
    return std::ranges::find(work.forward, true, &KernelWork::routes)->bytes;
  };
  EXPECT_DOUBLE_EQ(dispatched(), 256 + 128 + 512 + 1024);
  job.profile.timing.sorts_on_arrival = true;
  EXPECT_DOUBLE_EQ(dispatched(), 512 + 512);
  job.profile.timing.exchanges_once_per_domain = true;
  EXPECT_DOUBLE_EQ(dispatched(), 384 + 512);
}

// A token's weight that is applied with the activation spares its sum's backward what came back.
TEST(UnitWork, WeightsMayBeAppliedWithTheActivation) {
  Job job = plain_job(build_model(expert_architecture(4)), {axis("dp", 1, Cut::batch)}, 8, 1);
  const auto moved = [&] {
    double bytes = 0;
    for (const KernelWork& kernel : block_of(job).backward) bytes += kernel.bytes;
    return bytes;
  };
  const double before = moved();
  job.profile.timing.weighs_in_activation = true;
  EXPECT_LT(moved(), before);
}

// The 576 elements of a block's matrices (above), 10 bytes each, on their way to the reduction.
TEST(UnitWork, GradientsMoveOnTheirWay) {
  Job job = plain_job(build_model(small_architecture(4)), {axis("dp", 1, Cut::batch)}, 8, 1);
  const auto bytes = [&] {
    double sum = 0;
    for (const KernelWork& kernel : block_of(job).backward) sum += kernel.bytes;
    return sum;
  };
  const double before = bytes();
  job.profile.timing.gradient_bytes = 10;
  EXPECT_DOUBLE_EQ(bytes() - before, 10 * 576);
}

}  // namespace
}  // namespace placet

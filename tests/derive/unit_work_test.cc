#include "derive/unit_work.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "catalog/model_catalog.h"
#include "derive/engine_lines.h"
#include "derive/scan_work.h"
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

/// Bytes of what attention moves beside its own kernel.
std::vector<double> bytes_beside_attention(const std::vector<KernelWork>& kernels) {
  std::vector<double> bytes;
  for (const KernelWork& kernel : kernels) {
    const bool stream = kernel.kind == KernelWork::Kind::stream;
    if (stream && kernel.what == "attention.core") bytes.push_back(kernel.bytes);
  }
  return bytes;
}

// The engine writes the values of two heads once more, for all four: 8 tokens x 16 x 2 = 256 bytes,
// kept for backward or not.
TEST(UnitWork, ValuesAreRepeatedInRecomputedUnitsToo) {
  Job job = engine_job("nanotron@2026.04", wide(1), "dp=1:ddp", 8, 1);
  const std::vector<double> each = {256};
  EXPECT_EQ(bytes_beside_attention(block_of(job).forward), each);
  job.recompute = {.kind = Recompute::Kind::full};
  const UnitWork work = block_of(job, true);
  EXPECT_EQ(bytes_beside_attention(work.forward), each);
  EXPECT_EQ(bytes_beside_attention(work.again), each);
  EXPECT_EQ(bytes_beside_attention(work.backward), each);
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

// A ring of four devices with two chunks each: one block in eight is on the diagonal. Where heads
// are exchanged, and on whole sequences, attention is one call.
TEST(UnitWork, MostBlocksOfARingHaveNoMask) {
  const auto open = [](const char* placement) {
    const UnitWork work =
        block_of(written_job(build_model(wide_architecture(4)), placement, 64, 4));
    const auto forward =
        std::ranges::find(work.forward, KernelWork::Kind::attention, &KernelWork::kind);
    const auto backward =
        std::ranges::find(work.backward, KernelWork::Kind::attention, &KernelWork::kind);
    EXPECT_EQ(forward->open, backward->open);
    return forward->open;
  };
  EXPECT_DOUBLE_EQ(open("cp=4:ring"), 7.0 / 8);
  EXPECT_EQ(open("cp=2:ulysses"), 0);
  EXPECT_EQ(open("dp=4:ddp"), 0);
}

// DeepSeek-V2-Lite: 16 heads with keys of 192 and values of 128. Below the diagonal of 256 x 256:
// forward keys and values, backward 3 x 192 for scores and the gradients of queries and keys, 2 x
// 128 for those of probabilities and values.
TEST(UnitWork, KeysAndValuesMayDifferInWidth) {
  const Job job =
      written_job(load_model(repository_data(), "deepseek-v2-lite"), "dp=1:ddp", 256, 1);
  const UnitWork work = block_of(job);
  const auto flops = [](const std::vector<KernelWork>& kernels) {
    return std::ranges::find(kernels, KernelWork::Kind::attention, &KernelWork::kind)->flops;
  };
  EXPECT_DOUBLE_EQ(flops(work.forward), 16.0 * 256 * 256 * (192 + 128));
  EXPECT_DOUBLE_EQ(flops(work.backward), 16.0 * 256 * 256 * (3 * 192 + 2 * 128));
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

// Products in 8 bits: the casts before experts' products read two bytes more per element (gate and
// up read the same, which is cast once), and each product but the router's has two launches more.
TEST(UnitWork, NarrowProductsReadWhatTheyCast) {
  Job job = plain_job(build_model(expert_architecture(4)), {axis("dp", 1, Cut::batch)}, 8, 1);
  job.precision.products =
      ProductFormat{.name = "fp8", .numbers = {.dtype = Dtype::fp8}, .units = Dtype::fp8};
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
    if (kernel.what.ends_with("up")) continue;
    cast += static_cast<double>(shape.batch * shape.m * shape.k);
  }
  ASSERT_GT(cast, 0);
  job.profile.timing.cast_bytes = 2;
  job.profile.timing.narrow_launches = 2;
  const auto after = sums();
  EXPECT_DOUBLE_EQ(after.first - before.first, 2 * cast);
  EXPECT_EQ(after.second, before.second + 2 * (before.second - 1));
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

// s tokens; q, k and v read the 8 numbers of a norm, gate and up those of the other one, o and down
// 8 and 16 (small_llama.h); backward gradients of 8, 4, 4, 8, 16, 16 and 8 numbers are cast. A norm
// may write its own result in 8 bits.
TEST(UnitWork, NarrowProductsOfALinearLayerReadWhatTheyCast) {
  Job job = plain_job(build_model(small_architecture(4)), {axis("dp", 1, Cut::batch)}, 8, 1);
  job.precision.products =
      ProductFormat{.name = "fp8", .numbers = {.dtype = Dtype::fp8}, .units = Dtype::fp8};
  const auto bytes = [&] {
    std::pair<double, double> sum;
    for (const KernelWork& kernel : block_of(job).forward) sum.first += kernel.bytes;
    for (const KernelWork& kernel : block_of(job).backward) sum.second += kernel.bytes;
    return sum;
  };
  const auto before = bytes();
  const double tokens = static_cast<double>(job.batch.sequence);
  job.profile.timing.linear_cast_bytes = 2;
  EXPECT_DOUBLE_EQ(bytes().first - before.first, 2 * (8 + 8 + 8 + 16) * tokens);
  EXPECT_DOUBLE_EQ(bytes().second - before.second, 2 * (8 + 4 + 4 + 8 + 16 + 16 + 8) * tokens);
  job.profile.timing.norm_casts = true;
  EXPECT_DOUBLE_EQ(bytes().first - before.first, 2 * (8 + 16) * tokens);
}

// The output matrix multiplies in the compute format unless the engine says otherwise.
TEST(UnitWork, TheOutputMatrixMayMultiplyInFewerBits) {
  Job job = plain_job(build_model(small_architecture(4)), {axis("dp", 1, Cut::batch)}, 8, 1);
  job.precision.products =
      ProductFormat{.name = "fp8", .numbers = {.dtype = Dtype::fp8}, .units = Dtype::fp8};
  const auto format = [&] {
    const Prepared prepared = prepare(job);
    const Layout layout = lay_out(job, prepared);
    const auto work = unit_work(layout, layout.unit_of.back(), false).forward;
    return std::ranges::find(work, KernelWork::Kind::product, &KernelWork::kind)->format;
  };
  EXPECT_EQ(format(), MatmulFormat::bf16);
  job.profile.timing.narrow_head = true;
  EXPECT_EQ(format(), MatmulFormat::fp8);
}

// A block's 576 + 16 parameters, 4 bytes each, are copied out of what was gathered, both ways.
TEST(UnitWork, GatheredParametersMayBeCopied) {
  Job job = written_job(build_model(small_architecture(4)), "dp=2:zero3", 8, 2);
  const auto bytes = [&] {
    std::pair<double, double> sum;
    for (const KernelWork& kernel : block_of(job).forward) sum.first += kernel.bytes;
    for (const KernelWork& kernel : block_of(job).backward) sum.second += kernel.bytes;
    return sum;
  };
  const auto before = bytes();
  job.profile.timing.gathered_bytes = 4;
  EXPECT_DOUBLE_EQ(bytes().first - before.first, 4 * (576 + 16));
  EXPECT_DOUBLE_EQ(bytes().second - before.second, 4 * (576 + 16));
}

// Gradients in fp32 that products add to themselves: 4 bytes read and 4 written where 2 would be.
TEST(UnitWork, ProductsMayAddToGradients) {
  Job job = plain_job(build_model(small_architecture(4)), {axis("dp", 1, Cut::batch)}, 8, 1);
  job.profile.fuses_weight_gradient = true;
  job.precision.gradients = Dtype::fp32;
  double added = 0;
  for (const KernelWork& kernel : block_of(job).backward) added += kernel.added_bytes;
  EXPECT_DOUBLE_EQ(added, 6 * 576);
}

// p = 64 channels and n = 128 numbers of a head, chunks of q = 128 tokens, a group per head:
// forward 4pn + qp + 2qn = 73,728 FLOPs per token, backward 10pn + 3qp + 6qn = 204,800.
TEST(ScanWork, FollowsFromHeadsStatesAndChunks) {
  const ScanShape shape{.tokens = 128, .heads = 1, .head_size = 64, .state = 128, .chunk = 128};
  EXPECT_DOUBLE_EQ(scan_flops(shape, false), 128 * 73'728.0);
  EXPECT_DOUBLE_EQ(scan_flops(shape, true), 128 * 204'800.0);
  EXPECT_DOUBLE_EQ(scan_bytes(shape, false), 12 * 8'192 + 6 * 8'192);
  EXPECT_DOUBLE_EQ(scan_bytes(shape, true), 34 * 8'192 + 22 * 8'192);
}

// Nemotron-H 8B: 128 heads of 64 with states of 128 in 8 groups, a chunk of 256 tokens.
TEST(ScanWork, IsReadOffAModelsRecurrence) {
  Job job = written_job(load_model(repository_data(), "nemotron-h-8b"), "dp=1:ddp", 256, 1);
  const UnitWork work = block_of(job);
  const auto scan = std::ranges::find(work.forward, true, &KernelWork::scan);
  ASSERT_NE(scan, work.forward.end());
  const ScanShape shape{
      .tokens = 256, .heads = 128, .groups = 8, .head_size = 64, .state = 128, .chunk = 256};
  EXPECT_DOUBLE_EQ(scan->flops, scan_flops(shape, false));
  EXPECT_DOUBLE_EQ(scan->bytes, scan_bytes(shape, false));
}

}  // namespace
}  // namespace placet

// Tensor cuts that divide both sides of every matrix (docs/theory.md §4.5), against the published
// algorithms of 2D and 2.5D tensor parallelism.
#include <gtest/gtest.h>

#include <algorithm>

#include "derive/traffic.h"

namespace placet {
namespace {

// A GPT block: hidden h = 16, 4 heads of 4, as many for keys, an MLP of 4 h without a gate.
Model gpt_block() {
  Architecture architecture = wide_architecture(1);
  attention_in(architecture).kv_heads = 4;
  auto& mlp = std::get<Mlp>(architecture.shapes[0][1].branches[0].mixer);
  mlp.gated = false;
  mlp.gate = {};
  mlp.width = 64;
  return build_model(architecture);
}

// 4 devices, 2 x 2. A device has one of two samples of 8 tokens and 8 of 16 columns of the stream:
// 128 bytes. Before each product its input comes together over j: 8 x 16 x 2 = 256 bytes before
// q, k, v, before o and before up, 8 x 64 x 2 = 1024 before down; once more in backward for the
// gradient of the matrix, while the gradient of the input is summed and scattered. Norms reduce two
// numbers over the columns, 8 tokens x 4 bytes.
TEST(BothSides, InputsComeTogetherForEveryProduct) {
  const Job job = written_job(gpt_block(), "i=2:tp-2d-rows j=2:tp-2d-columns", 8, 2);
  EXPECT_EQ(of_block(job), (Lines{"forward all_gather bf16 j 256x1 attention.norm.output",
                                  "backward all_gather bf16 j 256x1 attention.norm.output",
                                  "backward reduce_scatter bf16 j 256x1 attention.norm.output",
                                  "forward all_gather bf16 j 256x1 attention.context",
                                  "backward all_gather bf16 j 256x1 attention.context",
                                  "backward reduce_scatter bf16 j 256x1 attention.context",
                                  "forward all_gather bf16 j 256x1 mlp.norm.output",
                                  "backward all_gather bf16 j 256x1 mlp.norm.output",
                                  "backward reduce_scatter bf16 j 256x1 mlp.norm.output",
                                  "forward all_gather bf16 j 1024x1 mlp.activated",
                                  "backward all_gather bf16 j 1024x1 mlp.activated",
                                  "backward reduce_scatter bf16 j 1024x1 mlp.activated",
                                  "forward all_reduce fp32 j 32x2 norm.statistics",
                                  "backward all_reduce fp32 j 32x2 norm.gradient"}));
}

// Matrices that a checkpoint keeps as [in, out] are cut in their outputs all the same.
TEST(BothSides, OutputsAreCutHoweverAMatrixIsStored) {
  const auto lines = [](WeightOrder order) {
    Architecture architecture = wide_architecture(1);
    attention_in(architecture).order = order;
    std::get<Mlp>(architecture.shapes[0][1].branches[0].mixer).order = order;
    return of_block(written_job(build_model(architecture), "j=2:tp-2d-columns", 8, 1));
  };
  EXPECT_EQ(lines(WeightOrder::in_out), lines(WeightOrder::out_in));
}

// The gradient of up's input, 8 tokens x 16 columns x 2 bytes, is partial along both axes: the
// columns go to their devices first, or the tokens to theirs, and half of it is summed for all.
TEST(BothSides, WhatStaysIsSummed) {
  const auto sums = [](const char* placement) {
    const Job job = written_job(gpt_block(), placement, 8, 1);
    return traffic(job, [](const CommunicationTerm& t) {
      return t.what == "mlp.norm.output" && t.phase == Phase::backward && t.axes == axis_bit(0);
    });
  };
  const Lines half = {"backward all_reduce bf16 k 128x1 mlp.norm.output"};
  EXPECT_EQ(sums("k=2:tp j=2:tp-2d-columns"), half);
  EXPECT_EQ(sums("k=2:tp j=2:tp+sp"), half);
}

// A layer norm sums two numbers of each of 8 tokens, each by itself: two norms, four messages.
TEST(BothSides, ALayerNormSumsTwoNumbers) {
  Architecture architecture = wide_architecture(1);
  for (Sublayer& sublayer : architecture.shapes[0]) {
    sublayer.branches[0].norm.kind = NormKind::layer;
  }
  const Job job = written_job(build_model(architecture), "x=2:tp-2d-hidden", 8, 1);
  const Lines block = of_block(job);
  EXPECT_EQ(std::ranges::count(block, "forward all_reduce fp32 x 32x4 norm.statistics"), 1);
  EXPECT_EQ(std::ranges::count(block, "backward all_reduce fp32 x 32x4 norm.gradient"), 1);
}

std::int64_t payload(const Job& job, const Chosen& chosen) {
  std::int64_t sum = 0;
  const Derivation derivation = derive(job);
  for (const CommunicationTerm& term : derivation.communication.at(0).terms) {
    if (chosen(term)) sum += in_bytes(term.payload) * term.count;
  }
  return sum;
}

// Optimus (arXiv 2104.05343, table 1) moves 7 b s h + 12 h^2 elements over sqrt(p) forward and
// twice that backward (three times with the second forward of its checkpoints). Here b = 2, s = 8,
// h = 16, p = 4: 7 x 256 / 2 = 896 elements of activations, 12 x 256 / 2 = 1536 of matrices, of 2
// bytes; and two norms of 8 columns, which Optimus sends apart.
TEST(BothSides, MovesWhatSummaMoves) {
  const Job job = written_job(gpt_block(), "i=2:tp-2d-rows j=2:tp-2d-columns", 8, 2);
  const auto moved = [&](State state, Phase phase) {
    return payload(job, [&](const CommunicationTerm& t) {
      return t.state == state && t.phase == phase && t.unit == "block" &&
             t.collective != Collective::all_reduce;
    });
  };
  EXPECT_EQ(moved(State::activations, Phase::forward), 896 * 2);
  EXPECT_EQ(moved(State::activations, Phase::backward), 2 * 896 * 2);
  const std::int64_t matrices = (1536 + 16) * 2;
  EXPECT_EQ(moved(State::parameters, Phase::forward), matrices);
  EXPECT_EQ(moved(State::parameters, Phase::backward) + moved(State::gradients, Phase::backward),
            2 * matrices);
}

// 2.5D adds an axis of depth: samples divided, matrices whole along it, their gradients summed over
// it once per step (arXiv 2105.14500, section 3): 1552 elements of the block's, half of which a
// device of the rows' axis owns.
TEST(BothSides, DepthSumsGradientsOnce) {
  const Job job =
      written_job(gpt_block(), "d=2:tp-25d-depth i=2:tp-2d-rows j=2:tp-2d-columns", 8, 4);
  const auto of_depth = [&](const CommunicationTerm& t) {
    return t.unit == "block" && t.axes == axis_bit(0);
  };
  EXPECT_EQ(traffic(job, of_depth), Lines{"reduce all_reduce bf16 d 1552x1 gradients"});
}

// The weights of q: 16 x 16 elements, cut in their rows alone along j, gathered over i.
TEST(BothSides, MatricesAreCutOnce) {
  const Job job = written_job(gpt_block(), "j=2:tp-2d-columns", 8, 1);
  const Derivation derived = derive(job);
  // 12 h^2 + 2 h = 3104 elements in the block, embedding and head 1024 each, a norm of 16: all of
  // them halved.
  EXPECT_EQ(derived.memory.at(0).at_rest[0], bytes((3104 + 2048 + 16) / 2 * 2));
}

// The embedding's rows are divided: each device has some words' columns whole, which are summed and
// scattered. 8 tokens x 16 columns x 2 bytes.
TEST(BothSides, SumsOfWholeColumnsAreScattered) {
  const Job job = written_job(gpt_block(), "j=2:tp-2d-columns", 8, 1);
  EXPECT_EQ(traffic(job, activations_of("embedding")),
            (Lines{"forward reduce_scatter bf16 j 256x1 embedding.output",
                   "backward all_gather bf16 j 256x1 embedding.output"}));
}

// A stream cut in its columns cannot be cut in its tokens along the same axis as well.
TEST(BothSides, AStreamIsDividedOnce) {
  const Job job = written_job(gpt_block(), "j=2:tp-2d-columns+sp", 8, 1);
  const Derivation derived = derive(job);
  EXPECT_FALSE(derived.meaningful);
  EXPECT_EQ(derived.findings.at(0).message,
            "activations cannot be S* along a cut of the residual stream's columns, which divides "
            "them already");
}

}  // namespace
}  // namespace placet

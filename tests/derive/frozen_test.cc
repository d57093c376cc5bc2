// Frozen units: backward goes no further than the first unit that trains something
// (docs/theory.md §3.2). Hidden 16 on 8 tokens: a stream of 8 x 16 x 2 = 256 bytes.
#include <gtest/gtest.h>

#include <algorithm>

#include "catalog/training_catalog.h"
#include "derive/derive.h"
#include "derive/prepared.h"
#include "derive/small_cluster.h"
#include "derive/time.h"
#include "derive/traffic.h"
#include "derive/unit_memory.h"
#include "derive/unit_work.h"
#include "model/adapt.h"
#include "model/gradients.h"

namespace placet {
namespace {

Model frozen(Model model, std::initializer_list<UnitRole> roles) {
  for (UnitKind& kind : model.kinds) {
    if (std::ranges::find(roles, kind.role) == roles.end()) continue;
    for (Parameter& parameter : kind.parameters) parameter.trainable = false;
  }
  return with_gradients_needed(std::move(model));
}

Model head_only(int blocks) { return frozen(wide(blocks), {UnitRole::embedding, UnitRole::block}); }

Chosen in_phase(Phase phase) {
  return [phase](const CommunicationTerm& term) { return term.phase == phase; };
}

std::vector<std::string> units_of(const Job& job, Phase phase, State state) {
  std::vector<std::string> units;
  const Derivation derived = derive(job);
  for (const CommunicationTerm& term : derived.communication.front().terms) {
    if (term.phase == phase && term.state == state) units.emplace_back(term.unit);
  }
  return units;
}

// Embedding and blocks are gathered in forward; of what is trained, the head, again in backward.
TEST(Frozen, UnitsWithoutABackwardAreGatheredOnce) {
  const Job job = written_job(head_only(3), "dp=4:zero3", 8, 4);
  EXPECT_EQ(units_of(job, Phase::forward, State::parameters),
            (std::vector<std::string>{"embedding", "block", "head"}));
  EXPECT_EQ(units_of(job, Phase::backward, State::parameters), std::vector<std::string>{"head"});
}

// The first trained block needs its weights for its own gradients; the embedding below it nothing.
TEST(Frozen, AdaptersGatherAllButTheEmbeddingAgain) {
  const Job job =
      written_job(with_gradients_needed(with_lora(wide(3), {.rank = 2})), "dp=4:zero3", 8, 4);
  EXPECT_EQ(units_of(job, Phase::backward, State::parameters),
            (std::vector<std::string>{"first trained block", "block", "head"}));
}

// No gradient is asked for below the head's norm, whose weights need that of its result.
TEST(Frozen, NoGradientOfActivationsBelowTheFirstTrainedUnit) {
  const Job job = written_job(head_only(3), "tp=2:tp", 8, 1);
  const Lines lines = traffic(job, in_phase(Phase::backward));
  EXPECT_EQ(lines, Lines{"backward all_reduce bf16 tp 256x1 head.norm.output"});
}

// Four stages of one block; the third and the fourth train. Gradients cross the last boundary only:
// 2 micro-batches of 256 bytes.
TEST(Frozen, StagesBelowTheFirstTrainedUnitGetNoGradients) {
  Model model = wide(4);
  UnitKind trained = model.kinds[1];
  trained.name = "late block";
  for (UnitKind& kind : model.kinds) {
    for (Parameter& parameter : kind.parameters) parameter.trainable = kind.role == UnitRole::head;
  }
  model.units[3].kind = model.units[4].kind = static_cast<int>(model.kinds.size());
  model.kinds.push_back(trained);
  const Job job = written_job(with_gradients_needed(std::move(model)), "pp=4:1f1b", 8, 2);
  const auto gradients = [&](std::size_t stage) {
    return traffic(
        job, [](const CommunicationTerm& term) { return term.what == "boundary gradients"; },
        stage);
  };
  EXPECT_EQ(gradients(1), Lines{});
  EXPECT_EQ(gradients(2), Lines{});
  EXPECT_EQ(gradients(3), Lines{"backward send_recv bf16 pp/2 256x2 boundary gradients"});
}

// Nothing is kept below the head. The head keeps what it keeps when all is trained.
TEST(Frozen, UnitsWithoutABackwardKeepNothing) {
  const auto kept = [](Model model, std::size_t kind) {
    const Job job = written_job(std::move(model), "dp=1:ddp", 8, 1);
    const Prepared prepared = prepare(job);
    const Layout layout = lay_out(job, prepared);
    for (std::size_t k = 0; k < layout.units.size(); ++k) {
      if (static_cast<std::size_t>(layout.units[k].kind) != kind) continue;
      return unit_memory(layout, static_cast<int>(k), false).kept;
    }
    return std::int64_t{-1};
  };
  EXPECT_EQ(kept(head_only(3), 0), 0);
  EXPECT_EQ(kept(head_only(3), 1), 0);
  EXPECT_GT(kept(head_only(3), 2), 0);
  EXPECT_EQ(kept(head_only(3), 2), kept(wide(3), 2));
  EXPECT_EQ(kept(frozen(wide(3), {UnitRole::embedding, UnitRole::block, UnitRole::head}), 2), 0);
}

// The head's product backward, for its weights and not for its input would be one; its norm is
// trained, so that both are there: 2 of 2 x 8 x 16 x 64 FLOPs. Of the blocks nothing.
TEST(Frozen, NothingIsComputedBackwardBelow) {
  const auto backward = [](const Model& model, int kind) {
    const Job job = written_job(model, "dp=1:ddp", 8, 1);
    const Prepared prepared = prepare(job);
    const Layout layout = lay_out(job, prepared);
    double flops = 0;
    for (const KernelWork& kernel : unit_work(layout, kind, false).backward) flops += kernel.flops;
    return flops;
  };
  EXPECT_EQ(backward(head_only(1), 1), 0);
  EXPECT_EQ(backward(head_only(1), 2), 2 * 2.0 * 8 * 16 * 64);
  Model product_only = head_only(1);
  product_only.kinds[2].parameters[0].trainable = false;
  ASSERT_EQ(product_only.kinds[2].parameters[0].name, "norm");
  EXPECT_EQ(backward(product_only, 2), 2.0 * 8 * 16 * 64);
}

/// Kernels that make numbers of blocks.
std::vector<KernelWork> dequantised(const std::vector<KernelWork>& kernels) {
  std::vector<KernelWork> out;
  for (const KernelWork& kernel : kernels) {
    if (kernel.kind == KernelWork::Kind::dequantise) out.push_back(kernel);
  }
  return out;
}

Job quantised_job() {
  const std::vector<std::string> queries = {"q"};
  Model model = with_gradients_needed(with_lora(wide(2), {.rank = 4, .patterns = queries}));
  const PrecisionChoice choice = read_precision(repository_data(), "qlora", Precision{}, "test");
  apply_formats(choice, model);
  Job job = written_job(std::move(model), "dp=1:ddp", 8, 1);
  job.precision = choice.precision;
  return job;
}

// The seven matrices of a block have 2304 numbers: 1152 bytes in nf4; of 256, 128, 128, 256 and
// 3 x 512 a byte per 64 and one fp32, 4 + 2 + 2 + 4 + 3 x 8 = 36 and 7 x 4; written as bf16, 4608.
// Constants of constants are a second kernel.
TEST(Frozen, MatricesInBlocksAreDequantisedBeforeEachProduct) {
  const Job job = quantised_job();
  const Prepared prepared = prepare(job);
  const Layout layout = lay_out(job, prepared);
  const UnitWork work = unit_work(layout, layout.unit_of[2], true);
  const std::vector<KernelWork> forward = dequantised(work.forward);
  ASSERT_EQ(forward.size(), 7U);
  double moved = 0;
  for (const KernelWork& kernel : forward) {
    moved += kernel.bytes;
    EXPECT_EQ(kernel.launches, 2);
  }
  EXPECT_EQ(moved, 1152 + 36 + 28 + 4608);
  EXPECT_EQ(dequantised(work.backward).size(), 7U);  // all hand a gradient on
  // Nothing before the first block is trained: its queries, keys and values hand nothing on.
  const UnitWork first = unit_work(layout, layout.unit_of[1], false);
  EXPECT_EQ(dequantised(first.forward).size(), 7U);
  EXPECT_EQ(dequantised(first.backward).size(), 4U);
  EXPECT_TRUE(dequantised(first.again).empty());
}

// Recomputed, the forward's products come once more, and so do the numbers that they take.
TEST(Frozen, WhatIsRecomputedIsDequantisedAgain) {
  Job job = quantised_job();
  job.recompute = {.kind = Recompute::Kind::full};
  const Prepared prepared = prepare(job);
  const Layout layout = lay_out(job, prepared);
  const UnitWork work = unit_work(layout, layout.unit_of[2], true);
  EXPECT_EQ(dequantised(work.again).size(), 7U);
}

// Without blocks there is nothing to make.
TEST(Frozen, PlainFormatsAreNotDequantised) {
  Job job = written_job(wide(2), "dp=1:ddp", 8, 1);
  const Prepared prepared = prepare(job);
  const Layout layout = lay_out(job, prepared);
  EXPECT_TRUE(dequantised(unit_work(layout, layout.unit_of[1], false).forward).empty());
}

// At least 1 us per kernel: a term of the step's own, forward and backward.
TEST(Frozen, DequantisationIsATermOfTheStep) {
  Job job = quantised_job();
  job.cluster = small_cluster(1);
  Seconds spent;
  for (const TimeTerm& term : derive_time(job).terms) {
    if (term.what == "dequantisation") spent += term.time;
  }
  // 7 + 7 forward and 4 + 7 backward.
  EXPECT_NEAR(in_seconds(spent), 25e-6, 1e-12);
}

}  // namespace
}  // namespace placet

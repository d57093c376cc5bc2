#include "derive/memory.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "catalog/training_catalog.h"
#include "derive/alive.h"
#include "derive/derive.h"
#include "derive/traffic.h"
#include "derive/unit_memory.h"

namespace placet {
namespace {

Bytes rest(const MemoryClass& memory, State state) {
  return memory.at_rest[static_cast<std::size_t>(state)];
}

Bytes states_at_rest(const MemoryClass& memory) {
  return rest(memory, State::parameters) + rest(memory, State::optimizer) +
         rest(memory, State::gradients);
}

Bytes at_instant(const MemoryClass& memory, Instant instant) {
  const auto found = std::ranges::find(memory.instants, instant, &InstantBytes::instant);
  return found == memory.instants.end() ? Bytes() : found->bytes;
}

Derivation derive_bare(std::int64_t parameters, std::int64_t units, AxisPlacement axis) {
  return derive(plain_job(bare_model(parameters, units), {axis}, 1, axis.degree));
}

UnitMemory block_memory(const Job& job) {
  const Prepared prepared = prepare(job);
  const Layout layout = lay_out(job, prepared);
  return unit_memory(layout, layout.unit_of[1], true);
}

// Mixed-precision Adam: 2 bytes of parameters, 2 of gradients, 4 + 4 + 4 of optimizer per
// parameter. 70e9 x 16 = 1120e9.
TEST(Memory, WholeReplicasRestInSixteenBytesPerParameter) {
  const Derivation whole = derive_bare(70'000'000'000, 80, axis("dp", 8, Cut::batch));
  EXPECT_EQ(states_at_rest(whole.memory[0]), gigabytes(1120));
  EXPECT_EQ(whole.peak, gigabytes(1120));
}

// Parameters that rest whole in host memory are copied in for use, one unit of 2 x 500 bytes at a
// time; of half of them half.
TEST(Memory, ParametersOnTheHostAreCopiedInUnitByUnit) {
  AxisPlacement half = axis("dp", 2, Cut::batch);
  half.how.offload[0] = Offload{.fraction = Rational(1, 2)};
  AxisPlacement all = half;
  all.how.offload[0] = Offload{.fraction = Rational(1)};
  const auto copied = [](const AxisPlacement& dp) {
    return alive(derive_bare(2'000, 4, dp).memory[0], "gathered parameters");
  };
  EXPECT_EQ(copied(all), bytes(1'000));
  EXPECT_EQ(copied(half), bytes(500));
}

// 1120e9 / 8 = 140e9: eight times less.
TEST(Memory, EverythingShardedOverEightRestsInAnEighth) {
  const Derivation sharded =
      derive_bare(70'000'000'000, 80, axis("dp", 8, Cut::batch, kAllSharded));
  EXPECT_EQ(states_at_rest(sharded.memory[0]), gigabytes(140));
}

// Rajbhandari et al. 2020 (arXiv 1910.02054), figure 1: 7.5e9 parameters on 64 devices:
// 16 x 7.5 = 120; 4 x 7.5 + 12 x 7.5 / 64 = 31.40625; 2 x 7.5 + 14 x 7.5 / 64 = 16.640625;
// 16 x 7.5 / 64 = 1.875 GB.
TEST(Memory, StatesOfSevenAndAHalfBillionParametersOnSixtyFourDevices) {
  const auto resting = [](Modes modes) {
    return states_at_rest(
        derive_bare(7'500'000'000, 1, axis("dp", 64, Cut::batch, modes)).memory[0]);
  };
  EXPECT_EQ(resting({}), bytes(120'000'000'000));
  EXPECT_EQ(resting(kOptimizerSharded), bytes(31'406'250'000));
  EXPECT_EQ(resting(kGradientsToo), bytes(16'640'625'000));
  EXPECT_EQ(resting(kAllSharded), bytes(1'875'000'000));
}

// Kept by one block for one sample of 4 tokens, bf16 unless said: norm input 8 x 4 x 2 = 64 and its
// statistics 4 x 4 = 16 (fp32), norm output 64; queries 64, keys 32, values 32, context 64,
// logsumexp 2 heads x 4 x 4 = 32; second norm 64 + 16, its output 64; gate, up, act(gate), product
// 4 x 128.
TEST(Memory, OneBlockKeepsWhatItsBackwardNeeds) {
  const Job job = plain_job(build_model(small_architecture(2)), {}, 4, 1);
  EXPECT_EQ(block_memory(job).kept, 1024);
}

// A layer norm has a mean beside the reciprocal deviation: 4 tokens x 4 bytes more, twice.
TEST(Memory, LayerNormsKeepTwoNumbersOfEachToken) {
  Architecture architecture = small_architecture(2);
  for (Sublayer& sublayer : architecture.shapes[0])
    sublayer.branches[0].norm.kind = NormKind::layer;
  EXPECT_EQ(block_memory(plain_job(build_model(architecture), {}, 4, 1)).kept, 1024 + 2 * 16);
}

// Two devices along a divided stream: 2 tokens of everything on the stream (32, 8, 32 and 32, 8,
// 32), one head (32, context 32, logsumexp 16), the one kv head whole (32, 32), half of the MLP (4
// x 64).
TEST(Memory, ATensorAxisDividesHeadsMlpAndADividedStream) {
  const Job job = plain_job(build_model(small_architecture(2)),
                            {axis("tp", 2, Cut::tensor, kTensorSplit)}, 4, 1);
  EXPECT_EQ(block_memory(job).kept, 144 + 80 + 64 + 256);
}

// With the stream whole the six values on it stay whole: 64 + 16 + 64 twice.
TEST(Memory, AWholeStreamIsKeptWhole) {
  const Job job = plain_job(build_model(small_architecture(2)),
                            {axis("tp", 2, Cut::tensor, kTensorWhole)}, 4, 1);
  EXPECT_EQ(block_memory(job).kept, 288 + 80 + 64 + 256);
}

// A recomputed block keeps its input, 8 x 4 x 2 bytes, and makes the rest again: 1024 - 64.
TEST(Memory, ARecomputedBlockKeepsItsInput) {
  Job job = plain_job(build_model(small_architecture(2)), {}, 4, 1);
  job.recompute.kind = Recompute::Kind::full;
  const UnitMemory memory = block_memory(job);
  EXPECT_EQ(memory.kept, 64);
  EXPECT_GE(memory.backward.kept + memory.backward.rebuilt, 960);
}

// Without the attention core's insides (logsumexp 32): its output is still the projection's input.
TEST(Memory, RecomputingTheCoreDropsItsInsidesOnly) {
  Job job = plain_job(build_model(small_architecture(2)), {}, 4, 1);
  job.recompute = {.kind = Recompute::Kind::selective, .modules = {Module::core_attention}};
  EXPECT_EQ(block_memory(job).kept, 1024 - 32);
}

// The whole layer is inside of the module: router, dispatch, experts with their activation, sum.
// The norm before it is not: it keeps what it needs and makes the layer's input.
TEST(Memory, RecomputingAMixtureLeavesItsInputOnly) {
  Job job = plain_job(build_model(expert_architecture(1)), {}, 4, 1);
  job.recompute = {.kind = Recompute::Kind::selective, .modules = {Module::moe}};
  const Prepared prepared = prepare(job);
  const UnitKind& block = job.model.kinds[1];
  ASSERT_EQ(block.role, UnitRole::block);
  for (const int v : prepared.kinds[1].recomputed.kept) {
    const std::string& name = block.values[static_cast<std::size_t>(v)].name;
    EXPECT_TRUE(!name.starts_with("moe.") || name.starts_with("moe.norm.")) << name;
  }
  const auto rebuilt = prepared.kinds[1].recomputed.rebuilt.size();
  job.recompute.modules = {Module::moe_activation};
  EXPECT_LT(prepare(job).kinds[1].recomputed.rebuilt.size(), rebuilt);
}

// What experts compute between their matrices is cut as they are: 2 ranks that cut each expert of
// width 8 hold 4 columns of the gate, of what goes up, and of their product.
TEST(Memory, TheInsidesOfExpertsAreCutAsTheyAre) {
  const Job job = written_job(build_model(expert_architecture(1)), "dp=2:zero1+etp", 8, 2);
  const Prepared prepared = prepare(job);
  const Layout layout = lay_out(job, prepared);
  const UnitKind& block = job.model.kinds[1];
  const LocalUnit& local = layout.units[1];
  const auto op = std::ranges::find(block.operators, OpKind::gated_activation,
                                    [](const Operator& o) { return o.kind; });
  ASSERT_NE(op, block.operators.end());
  EXPECT_EQ(local.values[static_cast<std::size_t>(op->outputs[0])],
            local.values[static_cast<std::size_t>(op->inputs[0])]);
}

// 1F1B over 4 stages of one block each, 8 micro-batches: stage s holds 4 - s of them.
TEST(Memory, AStageHoldsTheMicroBatchesThatItsScheduleKeepsInFlight) {
  const Job job =
      plain_job(build_model(small_architecture(4)), {axis("pp", 4, Cut::layer, kStages)}, 4, 8);
  const Derivation derivation = derive(job);
  ASSERT_EQ(derivation.memory.size(), 4U);
  EXPECT_EQ(rest(derivation.memory[1], State::activations), bytes(3 * 1024));
  EXPECT_EQ(rest(derivation.memory[2], State::activations), bytes(2 * 1024));
}

// 10 x 8 = 80 elements over 3 devices: 27, 27 and 26, so the fullest rests 27 of them.
TEST(Memory, UnevenSharesAddUpToTheWhole) {
  Job job =
      plain_job(build_model(small_architecture(1)), {axis("dp", 3, Cut::batch, kAllSharded)}, 4, 3);
  const std::int64_t whole = count_parameters(job.model).total * 2;
  std::int64_t sum = 0;
  for (std::int64_t r = 0; r < 3; ++r) sum += in_bytes(resting_bytes(job, Rank{r}).device[0]);
  EXPECT_EQ(sum, whole);
}

// A tied head on the embedding's device is stored once, on another device twice.
TEST(Memory, ATiedHeadRestsOnceWhereTheEmbeddingRests) {
  Architecture tied = small_architecture(2);
  tied.head.tied = true;
  const auto parameters = [&](std::vector<AxisPlacement> axes) {
    const Derivation d = derive(plain_job(build_model(tied), std::move(axes), 4, 2));
    Bytes sum;
    for (const MemoryClass& m : d.memory) sum += rest(m, State::parameters);
    return sum;
  };
  const Bytes once = parameters({});
  EXPECT_EQ(once, bytes(2 * count_parameters(build_model(tied)).total));
  EXPECT_EQ(parameters({axis("pp", 2, Cut::layer, kStages)}), once + bytes(2 * 80));
}

// 64e6 parameters in 10 units over 8 groups of 8 devices; gathered over all 64 in forward, then
// kept whole along the outer axis and divided over the inner one until backward. There, at the end:
// 16 x 64e6 / 64 = 16e6 bytes at rest; all units' parts, 2 x 64e6 / 8 = 16e6; of the running unit
// 2 x 6.4e6 = 12.8e6 gathered and as much of gradients.
TEST(Memory, ParametersKeptAlongOneAxisOnlyAreACopyDividedOverTheOther) {
  AxisPlacement across = axis("o", 8, Cut::batch, kAllSharded);
  across.how.keep = Keep::backward;
  const AxisPlacement inside = axis("i", 8, Cut::batch, kAllSharded);
  const Derivation d = derive(plain_job(bare_model(64'000'000, 10), {across, inside}, 1, 64));
  EXPECT_EQ(d.peak, bytes(16'000'000 + 16'000'000 + 2 * 12'800'000));
  EXPECT_EQ(alive(d.memory[0], "parameters kept gathered in part"), bytes(16'000'000));
  EXPECT_EQ(alive(d.memory[0], "gathered parameters"), bytes(12'800'000));
  EXPECT_EQ(states_at_rest(d.memory[0]), bytes(16'000'000));
}

// The same kept along both axes: whole, 2 x 64e6, and no copy in part.
TEST(Memory, ParametersKeptAlongAllAxesAreWhole) {
  AxisPlacement across = axis("o", 8, Cut::batch, kAllSharded);
  AxisPlacement inside = axis("i", 8, Cut::batch, kAllSharded);
  across.how.keep = inside.how.keep = Keep::backward;
  const Derivation d = derive(plain_job(bare_model(64'000'000, 10), {across, inside}, 1, 64));
  EXPECT_EQ(alive(d.memory[0], "parameters kept gathered in part"), Bytes());
  EXPECT_EQ(alive(d.memory[0], "gathered parameters"), bytes(128'000'000));
}

// Two stages of 5 units hold 2 and 1 micro-batches. What the first stage keeps from forward to
// backward is there for all of its units while it runs any, 5 x 2 x 6.4e6; the second stage has as
// much at its last unit.
TEST(Memory, SeveralMicroBatchesInFlightKeepAllUnitsGathered) {
  AxisPlacement dp = axis("dp", 8, Cut::batch, kAllSharded);
  dp.how.keep = Keep::backward;
  const Derivation d = derive(
      plain_job(bare_model(64'000'000, 10), {axis("pp", 2, Cut::layer, kStages), dp}, 1, 16));
  ASSERT_EQ(d.memory.size(), 2U);
  EXPECT_EQ(d.memory[0].instants[0].instant, Instant::forward);
  EXPECT_EQ(d.memory[0].instants[0].bytes, states_at_rest(d.memory[0]) + bytes(64'000'000));
  EXPECT_EQ(d.memory[1].instants[0].bytes, states_at_rest(d.memory[1]) + bytes(64'000'000));
}

// A block's 64 + 32 + 32 + 64 + 3 x 128 + 2 x 8 = 592 elements stay beside the head's while the
// loss is computed: 1184 bytes in bf16.
TEST(Memory, ALastBlockThatStaysGatheredIsThereWhileTheHeadRuns) {
  Job job =
      plain_job(build_model(small_architecture(3)), {axis("dp", 2, Cut::batch, kAllSharded)}, 4, 2);
  const Derivation freed = derive(job);
  job.profile.last_block_stays_gathered = true;
  const Derivation stays = derive(job);
  EXPECT_EQ(at_instant(stays.memory[0], Instant::loss),
            at_instant(freed.memory[0], Instant::loss) + bytes(1184));
}

// Every total is the sum of its terms, at every peak.
// State of 12 x 400 bytes per device in 4 units: on NVMe, with the 1200 bytes of one unit in host
// memory on their way. Its gradients and parameters cross the host link as from host memory. The
// host is judged by the 2400 bytes of its two processes.
TEST(Memory, StateOnNvmeTakesHostMemoryOnlyForOneUnit) {
  Job job = written_job(bare_model(1600, 4), "dp=2:zero3+offload(optimizer,nvme)", 1, 2);
  Cluster cluster;
  cluster.groups.push_back({.device = {.memory = gigabytes(1)},
                            .count = 2,
                            .per_host = 2,
                            .host_memory = bytes(5000),
                            .levels = {{.devices = 2}}});
  job.cluster = cluster;
  const Derivation d = derive(job);
  EXPECT_EQ(d.memory[0].on_nvme[1], bytes(12 * 800));
  EXPECT_EQ(d.memory[0].on_host[1], bytes(12 * 200));
  EXPECT_EQ(d.host_used, bytes(2 * 2400));
  EXPECT_EQ(d.nvme_used, bytes(2 * 9600));
  EXPECT_TRUE(runs(d));
  job.cluster->groups[0].per_host = 8;  // room for more processes than the job has
  EXPECT_EQ(derive(job).host_used, bytes(2 * 2400));
  job.cluster->groups[0].per_host = 2;
  job.placement = parse_placement("dp=2:zero3+offload(optimizer)", strategies().vocabulary);
  const Derivation on_host = derive(job);
  EXPECT_EQ(on_host.memory[0].on_host[1], bytes(9600));
  EXPECT_FALSE(runs(on_host));
  EXPECT_EQ(on_host.sent, d.sent);
}

// Optimizer state of one and of three units on two stages: 12 x 200 and 12 x 600 bytes per device,
// 4,800 and 14,400 per host. The larger hosts have the larger stage.
TEST(Memory, AHostIsJudgedByTheStagesThatStandOnIt) {
  Job job = written_job(bare_model(1600, 4), "pp=2[1,3]:1f1b dp=2:zero3+offload(optimizer)", 1, 2);
  DeviceGroup small{.device = {.memory = gigabytes(1)},
                    .count = 2,
                    .per_host = 2,
                    .host_memory = bytes(5000),
                    .levels = {{.devices = 2}}};
  DeviceGroup large = small;
  large.host_memory = bytes(14'500);
  job.cluster = Cluster{.name = "test", .groups = {small, large}, .between_groups = {.devices = 4}};
  const Derivation fitting = derive(job);
  EXPECT_TRUE(runs(fitting));
  EXPECT_EQ(fitting.host_capacity, bytes(14'500));  // 100 bytes are left there, 200 on the others
  EXPECT_EQ(fitting.host_used, bytes(14'400));
  std::swap(job.cluster->groups[0], job.cluster->groups[1]);
  const Derivation other = derive(job);
  EXPECT_FALSE(runs(other));
  EXPECT_EQ(other.host_capacity, bytes(5000));
  EXPECT_EQ(other.host_used, bytes(14'400));
}

// Parameters of 4 units of 200 elements on a device, the next unit read ahead: 2 x 400 bytes of
// host memory.
TEST(Memory, ParametersOnNvmePassThroughHostMemoryWithTheUnitsReadAhead) {
  const Derivation d = derive(
      written_job(bare_model(1600, 4), "dp=2:zero3+offload(parameters,nvme)+prefetch(1)", 1, 2));
  EXPECT_EQ(d.memory[0].on_nvme[0], bytes(1600));
  EXPECT_EQ(d.memory[0].on_host[0], bytes(800));
  EXPECT_EQ(
      resting_bytes(written_job(bare_model(1600, 4), "dp=2:zero3+offload(parameters,nvme)", 1, 2),
                    Rank{0})
          .host[0],
      Bytes());
}

// 2 checkpoints of 4 tokens x 8 x 2 = 64 bytes on NVMe, one of them on its way.
TEST(Memory, ActivationsOnNvmePassThroughHostMemoryUnitByUnit) {
  Job job = written_job(build_model(small_architecture(2)),
                        "dp=2:ddp;checkpoints:batch(R,R,R,R)+offload(activations,nvme)", 4, 2);
  job.recompute.kind = Recompute::Kind::full;
  const Derivation d = derive(job);
  EXPECT_EQ(d.memory[0].on_nvme[3], bytes(128));
  EXPECT_EQ(d.memory[0].on_host[3], bytes(64));
}

// A step that consumes each gradient inside backward has none at rest, whatever the axis cuts.
TEST(Memory, ConsumedGradientsRestNowhereUnderAnyCut) {
  const auto gradients = [](Model model, const char* placement) {
    const Derivation d = derive(written_job(std::move(model), placement, 4, 1));
    Bytes most;
    for (const MemoryClass& memory : d.memory) {
      most = std::max(most, rest(memory, State::gradients));
    }
    return most;
  };
  const Model dense = build_model(wide_architecture(2));
  EXPECT_EQ(gradients(dense, "dp=1:batch(R,R,M,R) tp=2:tensor(S,S,S,R)"), Bytes());
  EXPECT_EQ(gradients(dense, "tp=2:tensor(S,S,M,R)"), Bytes());
  EXPECT_EQ(gradients(dense, "pp=2:layer(S,S,M,S)"), Bytes());
  EXPECT_GT(gradients(dense, "tp=2:tensor(S,S,S,R)"), Bytes());
}

// The same step as with M along a batch axis of one device: the same peak.
TEST(Memory, ConsumedGradientsTakeTheSameUnderATensorCutAsUnderABatchCut) {
  const auto peak = [](const char* placement) {
    return derive(written_job(build_model(wide_architecture(2)), placement, 4, 1)).peak;
  };
  EXPECT_EQ(peak("tp=2:tensor(S,S,M,R)"), peak("dp=1:batch(R,R,M,R) tp=2:tensor(S,S,S,R)"));
  EXPECT_LT(peak("tp=2:tensor(S,S,M,R)"), peak("tp=2:tensor(S,S,S,R)"));
}

// Of experts only: a block's 4 experts of 3 x 16 x 8 elements have no gradients at rest, all else
// has: 2 bytes each.
TEST(Memory, ConsumedGradientsOfExpertsLeaveTheOthersAtRest) {
  const Model model = build_model(expert_architecture(1));
  const auto gradients = [&](const char* placement) {
    return rest(derive(written_job(model, placement, 4, 2)).memory[0], State::gradients);
  };
  const Bytes kept = gradients("ep=2:batch(R,R,R,R);experts:expert(S,S,S,R)");
  const Bytes consumed = gradients("ep=2:batch(R,R,R,R);experts:expert(S,S,M,R)");
  EXPECT_EQ(kept - consumed, bytes(2 * 2 * 3 * 16 * 8));
}

// Two stages of 2 blocks hold 2 and 1 micro-batches: what rests of activations is what they keep of
// all of them, at whatever instant the peak is.
TEST(Memory, TermsOfActivationsAddUpToWhatTheMicroBatchesKeep) {
  const Derivation d = derive(written_job(build_model(small_architecture(4)), "pp=2:1f1b", 4, 4));
  for (const MemoryClass& memory : d.memory) {
    Bytes sum;
    for (const MemoryTerm& term : memory.terms) {
      if (term.category == MemoryCategory::activations) sum += term.rest;
    }
    EXPECT_EQ(sum, rest(memory, State::activations));
    EXPECT_GT(sum, Bytes());
  }
}

TEST(Memory, TermsAddUpToThePeak) {
  const Job job =
      plain_job(build_model(small_architecture(6)),
                {axis("pp", 3, Cut::layer, kStages), axis("dp", 2, Cut::batch, kAllSharded),
                 axis("tp", 2, Cut::tensor, kTensorSplit)},
                4, 8);
  for (const MemoryClass& memory : derive(job).memory) {
    Bytes sum;
    for (const MemoryTerm& term : memory.terms) sum += term.bytes;
    EXPECT_EQ(sum, memory.peak);
  }
}

// 1000 parameters: 4 of the master copy, 1 + 1 of the moments; blocks of 256 are 4, one fp32
// constant each and moment: 6000 + 2 x 4 x 4.
TEST(Memory, MomentsOfEightBitsHaveConstantsOfTheirBlocks) {
  Job job = plain_job(bare_model(1000, 1), {axis("dp", 1, Cut::batch)}, 1, 1);
  job.optimizer = load_optimizer(repository_data(), "adam-8bit", "test");
  EXPECT_EQ(rest(derive(job).memory[0], State::optimizer), bytes(6032));
}

// Matrices of a block, 768 of attention and 3 x 32 x 16 of its MLP: 4 of the master copy and 4 of
// momentum. Embedding and head 2 x 64 x 16 and three norms of 16: 4 + 4 + 4.
// 2304 x 8 + 2096 x 12.
TEST(Memory, TensorsThatAreNotOrthogonalisedHaveTwoMoments) {
  Job job = written_job(build_model(wide_architecture(1)), "dp=1:ddp", 8, 1);
  job.optimizer = load_optimizer(repository_data(), "muon", "test");
  EXPECT_EQ(rest(derive(job).memory[0], State::optimizer), bytes(43'584));
}

// 100 numbers of 4 bits, and a constant of 4 bytes for each block of 64; or constants of one byte,
// and 4 bytes for all of these.
TEST(Memory, BlockFormatsHaveConstants) {
  Job job = plain_job(bare_model(100, 1), {axis("dp", 1, Cut::batch)}, 1, 1);
  const auto stored_as = [&](const std::string& format) {
    const StorageFormat read = load_format(repository_data(), format, "test");
    for (UnitKind& kind : job.model.kinds) {
      for (Parameter& p : kind.parameters) {
        p.trainable = false;
        p.dtype = read.dtype;
        p.constants = read.constants;
      }
    }
    return rest(derive(job).memory[0], State::parameters);
  };
  EXPECT_EQ(stored_as("nf4"), bytes(50 + 8));
  EXPECT_EQ(stored_as("nf4-double"), bytes(50 + 2 + 4));
}

/// What a recomputation of one module saves of what the micro-batch keeps.
Bytes saved_without(const char* engine, Model model, Module module) {
  Job job = engine_job(engine, std::move(model), "dp=2:ddp", 8, 2);
  const Bytes whole = rest(derive(job).memory[0], State::activations);
  job.recompute = {.kind = Recompute::Kind::selective, .modules = {module}};
  return whole - rest(derive(job).memory[0], State::activations);
}

// 8 tokens of 16: two norms in each of two blocks keep 4 bytes per token of statistics, and leave
// 8 x 16 x 2 bytes to the projections, which an engine that discards them makes again. 16 routed
// rows of 8 go from the activation to the experts' last matrices.
TEST(MemoryTest, WhatAModuleHandsOnMayBeDiscarded) {
  EXPECT_EQ(saved_without("megatron@2026", wide(2), Module::norm), bytes(2 * 2 * (32 + 256)));
  EXPECT_EQ(saved_without("megatron@2024", wide(2), Module::norm), bytes(2 * 2 * 32));
  const Model experts = build_model(expert_architecture(1));
  EXPECT_EQ(saved_without("megatron@2026", experts, Module::moe_activation), bytes(16 * 8 * 2));
  EXPECT_EQ(saved_without("megatron@2024", experts, Module::moe_activation), Bytes{});
}

/// What the engine's own terms of the update alone add to it.
Bytes own_at_update(Job job) {
  const Bytes with = at_instant(derive(job).memory[0], Instant::update);
  std::erase_if(job.profile.memory,
                [](const EngineMemory& term) { return term.instants == bit_of(Instant::update); });
  return with - at_instant(derive(job).memory[0], Instant::update);
}

/// A job whose vocabulary and shares are not padded.
Job unpadded_job(const std::string& engine, const std::string& placement, int samples = 8) {
  Job job = engine_job(engine, wide(2), placement, samples, 4);
  job.profile.vocabulary_multiple = 1;
  job.profile.align_elements = 1;
  job.profile.pad_total_elements = 1;
  job.profile.pad_elements = 1;
  return job;
}

// 6736 elements, half of them the device's own: 4 bytes of each beside the bf16 buffer.
TEST(MemoryTest, ReducedGradientsAreCastForTheUpdate) {
  EXPECT_EQ(own_at_update(unpadded_job("megatron@2026+bf16-reduce", "dp=2:zero1")),
            bytes(4 * 6736 / 2));
}

// All 6736 elements in one buffer over 3 devices: 2246 on the fullest, 12 bytes of optimizer state
// and 2 of gradient each, where tensors by themselves are rounded up one by one.
TEST(MemoryTest, PartsOfAFlatBufferAreRoundedOnce) {
  Job job = unpadded_job("deepspeed@0.19.2", "dp=3:zero2", 12);
  const auto rest = [&] { return derive(job).memory[0].at_rest; };
  EXPECT_EQ(rest()[1], bytes(12 * 2246));
  EXPECT_EQ(rest()[2], bytes(2 * 2246));
  job.profile.flat_rest = FlatRest::none;
  EXPECT_GT(rest()[1], bytes(12 * 2246));
}

// Megatron's buffers end at a multiple of 128 elements, 53 x 128 = 6784: parameters and gradients
// have this size too, and the first of two devices updates half of it.
TEST(MemoryTest, WholeCopiesStandInThePaddedBuffer) {
  Job job = unpadded_job("megatron@2026", "dp=2:zero1");
  job.profile.pad_total_elements = 128;
  const auto rest = derive(job).memory[0].at_rest;
  EXPECT_EQ(rest[0], bytes(2 * 6784));
  EXPECT_EQ(rest[1], bytes(12 * 3392));
  EXPECT_EQ(rest[2], bytes(4 * 6784));
}

// DeepSpeed's stage 3 keeps the own half of tensors that stay whole beside these.
TEST(MemoryTest, PartsStandBesideTensorsThatStayWhole) {
  Job job = unpadded_job("deepspeed@0.19.2", "dp=2:zero3");
  EXPECT_EQ(derive(job).memory[0].at_rest[0], bytes(2 * 6736 + 2 * 3368));
  job.profile.persistent_elements = 0;
  EXPECT_EQ(derive(job).memory[0].at_rest[0], bytes(2 * 3368));
}

// The square roots of the second moments, 4 bytes of each of 3368 owned elements, as PyTorch's
// foreach Adam makes them at once. The fused one has none; nor has another optimizer; nor an update
// on the host.
TEST(MemoryTest, ForeachAdamTakesTemporaries) {
  const auto job = [](const char* engine, const char* placement = "dp=2:fsdp") {
    return unpadded_job(engine, placement);
  };
  for (const char* engine :
       {"pytorch@2.9", "accelerate@1", "pytorch-fsdp1@2.0", "torchtitan@2024.12"}) {
    EXPECT_EQ(own_at_update(job(engine)), bytes(4 * 3368)) << engine;
  }
  EXPECT_EQ(own_at_update(job("pytorch-ddp@2.11", "dp=2:ddp")), bytes(4 * 6736));
  for (const char* engine :
       {"pytorch@2.9+fused", "accelerate@1+fused", "torchtitan@2026.02", "llm-foundry@2023"}) {
    EXPECT_EQ(own_at_update(job(engine)), Bytes{}) << engine;
  }
  Job momentum = job("pytorch@2.9");
  momentum.optimizer.name = "momentum";
  EXPECT_EQ(own_at_update(momentum), Bytes{});
  EXPECT_EQ(own_at_update(job("pytorch@2.9", "dp=2:fsdp+offload(optimizer)")), Bytes{});
}

// 6736 elements over 2 devices, 3368 each, gradients of 2 bytes: stage 2 puts the device's own
// together (2 bytes) and casts them (4). Stage 1 has dropped all 6736 x 2 bytes, which stand for
// the same 2 + 2 + 4 bytes of 3368 but for 2 bytes of each; over 4 devices they stand for more than
// that. Stage 3 does as stage 2 by sub-groups of 1e9 elements: here one.
TEST(MemoryTest, DeepSpeedCastsItsGradientsForTheUpdate) {
  const auto job = [](const char* placement) {
    return unpadded_job("deepspeed@0.19.2", placement);
  };
  EXPECT_EQ(own_at_update(job("dp=2:zero2")), bytes((2 + 4) * 3368));
  EXPECT_EQ(own_at_update(job("dp=2:zero1")), bytes(2 * 3368));
  EXPECT_EQ(own_at_update(job("dp=4:zero1")), Bytes{});
  Job sub_group = job("dp=2:zero3");
  EXPECT_EQ(own_at_update(sub_group), bytes((2 + 4) * 3368));
  for (EngineMemory& term : sub_group.profile.memory) term.bytes.most = 1000;
  EXPECT_EQ(own_at_update(sub_group), bytes(1000 + 1000));
}

// The MLP is made again, the residual that reads its result is not: the result goes with the
// projection that makes it, and so does what only that reads.
TEST(Memory, WhatNothingReadsAgainGoesWithItsMaker) {
  Job job = plain_job(build_model(small_architecture(1)), {}, 4, 1);
  job.recompute = {.kind = Recompute::Kind::selective, .modules = {Module::mlp}};
  const UnitKind& block = job.model.kinds[1];
  const SavedPlan plan = prepare(job).kinds[1].recomputed;
  std::size_t down = block.operators.size() - 1;
  while (block.operators[down].kind != OpKind::linear) --down;
  const Operator& last = block.operators[down];
  EXPECT_EQ(plan.dead_again[down], (std::vector<int>{last.inputs[0], last.outputs[0]}));
  for (std::size_t o = down + 1; o < block.operators.size(); ++o) {
    EXPECT_TRUE(plan.dead_again[o].empty());
  }
}

// FSDP2 adds up whole gradients in the format that is reduced: raised only where it is not that
// of computation. 6736 parameters, four micro-batches: 2 bytes each where bf16 is reduced, 4 where
// fp32 is. Reduced after each, parts rest in the format of the parameters, fp32, of 3368.
TEST(Memory, GradientsThatWaitAreInTheFormatThatIsReduced) {
  const auto gradients = [](const std::string& engine) {
    const Job job = engine_job(engine, wide(2), "dp=2:fsdp", 8, 8);
    return rest(derive(job).memory[0], State::gradients);
  };
  EXPECT_EQ(gradients("accelerate@1"), bytes(2 * 6736));
  EXPECT_EQ(gradients("pytorch@2.9+no-sync"), bytes(4 * 6736));
  EXPECT_EQ(gradients("pytorch@2.9"), bytes(4 * 3368));
}

}  // namespace
}  // namespace placet

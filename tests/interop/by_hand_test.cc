// Degrees, batch and micro-batches of configurations that people run, read off the files by hand
// with the engines' own rules beside them: the importer has to say the same.
#include <gtest/gtest.h>

#include <filesystem>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include "catalog/job.h"
#include "interop/diff.h"
#include "interop/import.h"

namespace placet {
namespace {

namespace fs = std::filesystem;

const fs::path kRealFiles = fs::path(PLACET_SOURCE_DIR) / "../shared/fixtures";

struct MeshDegrees {
  std::int64_t dp = 1, tp = 1, pp = 1, cp = 1, ep = 1;

  friend bool operator==(const MeshDegrees&, const MeshDegrees&) = default;
};

struct ByHand {
  std::string file;
  Words given;  // what is not in the file: devices, and a model where only the batch matters
  MeshDegrees degrees;
  std::int64_t global_batch = 1;
  std::int64_t micro_batches = 1;
};

Words on(const char* devices, Words more = {}) {
  more.insert({"world-size", devices});
  return more;
}

// nanotron src/nanotron/parallel/context.py: dp tp pp cp = devices. src/nanotron/config/config.py:
// samples of a step = micro_batch_size x batch_accumulation_per_replica x dp.
std::vector<ByHand> of_nanotron() {
  const Words small = {{"model", "llama-3.2-1b"}};
  return {
      {"nanotron/config_2.8b_llama.yaml", {}, {.dp = 8, .tp = 2}, 64 * 1 * 8, 1},
      {"nanotron/config_mamba.yaml", small, {.dp = 2, .tp = 2, .pp = 2}, 2 * 1 * 2, 1},
      {"nanotron/config_nanoset.yaml", {}, {}, 2, 1},
      {"nanotron/config_qwen.yaml", {}, {.dp = 2, .tp = 2}, 3 * 2, 1},
      {"nanotron/config_qwen_with_moe.yaml", small, {.dp = 2}, 3 * 2, 1},
      {"nanotron/config_tiny_llama.yaml", {}, {.dp = 4, .tp = 2}, 3 * 4, 1},
      {"nanotron/mup_350m_llama_config.yaml", {}, {.dp = 4, .tp = 2}, 32 * 8 * 4, 8},
  };
}

// NVIDIA/NeMo nemo/collections/nlp/parts/nlp_overrides.py and Megatron's calculator: devices are
// nodes x devices, dp is what tp, pp and cp leave of them, micro-batches = global / (micro x dp).
std::vector<ByHand> of_nemo() {
  const Words big = {{"model", "llama-3.1-70b"}};
  return {
      {"nemo/gpt3_175b.yaml", {{"model", "gpt3-175b"}}, {.dp = 32, .tp = 4, .pp = 8}, 2048, 64},
      {"nemo/gpt3_175b_mlperf.yaml",
       {{"model", "gpt3-175b"}},
       {.dp = 16, .tp = 4, .pp = 8},
       2048,
       2048 / 2 / 16},
      {"nemo/gpt3_5b_64k.yaml", {{"model", "gpt3-6.7b"}}, {.tp = 8, .cp = 4}, 32, 32},
      {"nemo/llama_llama2_70b.yaml", big, {.dp = 64, .tp = 4, .pp = 4}, 2048, 32},
      {"nemo/llama_llama3_1_405b.yaml",
       {{"model", "llama-3.1-405b"}},
       {.dp = 32, .tp = 8, .pp = 9, .cp = 2},
       2016,
       63},
      {"nemo/llama_llama3_70b.yaml", big, {.dp = 32, .tp = 4, .pp = 4, .cp = 2}, 2048, 64},
      {"nemo/nemo_megatron_gpt_config.yaml", {{"model", "gpt2"}}, {}, 8, 2},
  };
}

// pytorch/torchtitan torchtitan/distributed/parallel_dims.py: data_parallel_shard_degree -1 is what
// the other degrees leave; trainer.py: global batch = local batch x dp unless it is said, one
// micro-batch without stages, and with them local batch / pipeline_parallel_microbatch_size (1).
std::vector<ByHand> of_torchtitan() {
  const std::string last = "torchtitan/2026-02-last-toml/";
  return {
      {"torchtitan/2024-04/llama_70b.toml", on("64"), {.dp = 8, .tp = 8}, 4 * 8, 1},
      {"torchtitan/2024-04/debug_model_2d.toml",
       on("8", {{"model", "llama-3.2-1b"}}),
       {.dp = 4, .tp = 2},
       8 * 4,
       1},
      {"torchtitan/2024-11/llama3_405b.toml", on("512"), {.dp = 64, .tp = 8}, 2 * 64, 1},
      {"torchtitan/2024-11/llama3_8b.toml", on("8"), {.dp = 8}, 8, 1},
      {"torchtitan/2025-08/models__llama3__llama3_70b.toml",
       on("256"),
       {.dp = 32, .tp = 8},
       8 * 32,
       1},
      {"torchtitan/2025-08/models__deepseek_v3__deepseek_v3_16b.toml",
       on("8", {{"model", "deepseek-v2-lite"}}),
       {.dp = 8},
       8 * 8,
       1},
      {last + "models__deepseek_v3__deepseek_v3_671b.toml", on("256"), {.dp = 256}, 4 * 256, 1},
      {last + "models__qwen3__qwen3_1.7b.toml", on("8"), {.dp = 8}, 4 * 8, 1},
      {last + "models__llama4__llama4_17bx128e.toml", on("256"), {.dp = 8, .tp = 8, .pp = 4}, 8, 1},
  };
}

// NVIDIA/Megatron-LM megatron/core/num_microbatches_calculator.py and parallel_state.py: dp =
// devices / (tp pp cp), micro-batches = global / (micro x dp); experts fold into what tp, cp and dp
// leave, so that dp stays as it is. The functional tests run on 8 devices, releases on 64.
std::vector<ByHand> of_megatron() {
  const std::string cases = "megatron/test_cases/";
  const Words mixtral = {{"model", "mixtral-8x7b"}};
  return {
      {cases + "gpt__gpt3_7b_tp1_pp4_memory_speed.yaml", on("8"), {.dp = 2, .pp = 4}, 8, 4},
      {cases + "gpt__gpt3_mcore_te_tp1_pp4_vp1_uneven_pipeline.yaml",
       on("8"),
       {.dp = 2, .pp = 4},
       32,
       4},
      {cases + "gpt__gpt3_mcore_te_tp2_pp1_multi_dist_optimizer_instances.yaml",
       on("8"),
       {.dp = 4, .tp = 2},
       32,
       2},
      {cases + "gpt__gpt3_mcore_te_tp2_pp2_cp2_etp4_dp_last.yaml",
       on("8"),
       {.tp = 2, .pp = 2, .cp = 2},
       32,
       8},
      {cases + "gpt__gpt3_mcore_te_tp2_pp2_ddp_average_in_collective.yaml",
       on("8"),
       {.dp = 2, .tp = 2, .pp = 2},
       32,
       4},
      {cases + "mixtral__mixtral_8x7b_alltoall_tp2pp4ep4_release.yaml",
       on("64", mixtral),
       {.dp = 8, .tp = 2, .pp = 4, .ep = 4},
       1024,
       128},
      {cases + "mixtral__mixtral_8x7b_tp1pp4ep8vpp8_release.yaml",
       on("64", mixtral),
       {.dp = 8, .tp = 2, .pp = 4, .ep = 8},
       256,
       32},
      {cases + "moe__deepseek_proxy_fsdp_ep2_fsdp2.yaml",
       on("8", mixtral),
       {.dp = 8, .ep = 2},
       256,
       1},
      {cases + "moe__gpt3_mcore_te_tp2_pp2_ep4_etp1_memory_speed.yaml",
       on("8", mixtral),
       {.dp = 2, .tp = 2, .pp = 2, .ep = 4},
       32,
       4},
      // 24 nodes of 8: 192 = 12 x 4 x 4; 2048 = 2 x 4 x 256.
      {"megatron/bloom_176b.args", {}, {.dp = 4, .tp = 4, .pp = 12}, 2048, 256},
      {"megatron/old_gpt3_175B_pretrain.args", {}, {.dp = 8, .tp = 8, .pp = 16}, 1536, 192},
  };
}

// EleutherAI/gpt-neox megatron/neox_arguments/arguments.py, calculate_derived and
// calculate_batch_parameters: dp = devices / (pipe x model), accumulation is 1 unless it is said.
// deepspeedai/DeepSpeed deepspeed/runtime/config.py, _set_batch_related_parameters: train batch =
// micro-batch x accumulation x dp.
std::vector<ByHand> of_deepspeed() {
  return {
      {"gpt-neox/20B.yml", on("96"), {.dp = 12, .tp = 2, .pp = 4}, 4 * 32 * 12, 32},
      {"gpt-neox/13B.yml", on("8", {{"model", "gpt3-13b"}}), {.dp = 8}, 4 * 8, 1},
  };
}

// mosaicml/composer composer/trainer/trainer.py: a device's batch is global / devices, in
// micro-batches of device_train_microbatch_size.
std::vector<ByHand> of_llm_foundry() {
  return {
      {"llm-foundry/pretrain__mpt-7b.yaml", on("8"), {.dp = 8}, 1024, 1024 / 8 / 8},
      {"llm-foundry/pretrain__mpt-30b.yaml", on("64"), {.dp = 64}, 2048, 2048 / 64 / 8},
      {"llm-foundry/finetune__dbrx-full-ft.yaml", on("64", {{"model", "dbrx"}}), {.dp = 64}, 64, 1},
  };
}

// huggingface/accelerate src/accelerate/parallelism_config.py: the product of the sizes is the
// devices, samples are divided by dp_replicate x dp_shard. axolotl and LLaMA-Factory: step =
// micro_batch_size x gradient_accumulation_steps x those (transformers' Trainer).
std::vector<ByHand> of_trainers() {
  const Words batch = {
      {"model", "llama-3.1-8b"}, {"seq", "4096"}, {"micro-batch", "1"}, {"global-batch", "8"}};
  return {
      {"accelerate/parallelism_tp_hsdp.yaml", batch, {.dp = 4, .tp = 2}, 8, 2},
      {"accelerate/parallelism_cp.yaml", batch, {.cp = 8}, 8, 8},
      {"accelerate/llamafactory_fsdp_config_multiple_nodes.yaml",
       {{"model", "llama-3.1-8b"}, {"seq", "4096"}, {"micro-batch", "1"}, {"global-batch", "32"}},
       {.dp = 16},
       32,
       2},
      {"axolotl/llama-3_1-8b-hsdp-tp.yaml", {}, {.dp = 8, .tp = 2}, 8, 1},
      {"axolotl/qwen3-8b-fsdp-tp-cp.yaml", {}, {.dp = 2, .tp = 2, .cp = 2}, 2, 1},
      {"axolotl/gpt-oss-120b-fft-fsdp2-offload.yaml",
       {{"model", "gpt-oss-120b"}},
       {.dp = 16},
       1 * 2 * 16,
       2},
      {"llamafactory/megatron__qwen3_moe_full.yaml",
       on("8", {{"model", "qwen3-30b-a3b"}}),
       {.dp = 2, .pp = 4, .ep = 2},
       1 * 8 * 2,
       8},
  };
}

std::vector<ByHand> all_by_hand() {
  std::vector<ByHand> all;
  for (auto* of : {of_nanotron, of_nemo, of_torchtitan, of_megatron, of_deepspeed, of_llm_foundry,
                   of_trainers}) {
    const std::vector<ByHand> some = of();
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

bool divides_experts(const AxisPlacement& axis) {
  if (axis.how.cut == Cut::expert) return true;
  for (const Override& other : axis.overrides) {
    const auto* of = std::get_if<TensorClass>(&other.selector);
    if (of != nullptr && *of == TensorClass::experts && other.how.cut == Cut::expert) return true;
  }
  return false;
}

MeshDegrees degrees_of(const Placement& placement) {
  MeshDegrees out;
  for (const AxisPlacement& axis : placement.axes) {
    if (divides_experts(axis)) out.ep *= axis.degree;
    switch (axis.how.cut) {
      case Cut::batch:
      case Cut::expert:
        out.dp *= axis.degree;
        break;
      case Cut::tensor:
        out.tp *= axis.degree;
        break;
      case Cut::layer:
        out.pp *= axis.degree;
        break;
      case Cut::sequence:
        out.cp *= axis.degree;
        break;
    }
  }
  return out;
}

std::string print(const MeshDegrees& d, std::int64_t global, std::int64_t micro_batches) {
  return "dp=" + std::to_string(d.dp) + " tp=" + std::to_string(d.tp) +
         " pp=" + std::to_string(d.pp) + " cp=" + std::to_string(d.cp) +
         " ep=" + std::to_string(d.ep) + ", " + std::to_string(global) + " samples in " +
         std::to_string(micro_batches) + " micro-batches";
}

std::string imported(const Catalog& catalog, const ByHand& hand) {
  try {
    const Imported result = import_sources(
        catalog,
        {.sources = {read_source(kRealFiles / hand.file)}, .dialect = {}, .given = hand.given});
    if (!result.missing.empty()) return "asks for " + result.missing.front().what;
    const Job job = load_job(catalog, request_of_words(result.job, hand.file));
    const MeshDegrees degrees = degrees_of(job.placement);
    return print(degrees, job.batch.global, job.batch.global / (job.batch.micro * degrees.dp));
  } catch (const InputError& error) {
    return error.what();
  }
}

TEST(ByHandTest, ImportedJobsHaveTheDegreesAndBatchesOfTheEngines) {
  if (!fs::exists(kRealFiles)) GTEST_SKIP() << "no fixtures at " << kRealFiles;
  const Catalog catalog = find_catalog();
  const std::vector<ByHand> all = all_by_hand();
  EXPECT_GE(all.size(), 40U);
  for (const ByHand& hand : all) {
    EXPECT_EQ(imported(catalog, hand), print(hand.degrees, hand.global_batch, hand.micro_batches))
        << hand.file;
  }
}

}  // namespace
}  // namespace placet

// Formats of fewer than 16 bits that configurations say: products, matrices at rest, moments.
#include <gtest/gtest.h>

#include "imported.h"
#include "interop/export.h"
#include "interop/import.h"
#include "round_trip.h"
#include "units/error.h"

namespace placet {
namespace {

Imported low_bits_read(const std::string& text, SourceForm form, const Words& given = {}) {
  return import_text(form, text, given);
}

struct LowBits {
  std::string said, precision;
  std::string optimizer, engine;
};

void expect_words(const Imported& read, const LowBits& low) {
  EXPECT_EQ(said_of(read, "precision"), low.precision) << low.said;
  EXPECT_EQ(said_of(read, "optimizer"), low.optimizer) << low.said;
  if (low.engine.empty()) return;
  EXPECT_EQ(said_of(read, "engine"), low.engine) << low.said;
}

const std::string kLaunch =
    "torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 8 --hidden-size 512\n"
    "--num-attention-heads 8 --seq-length 128 --vocab-size 1000 --micro-batch-size 1\n"
    "--global-batch-size 8 --swiglu --ffn-hidden-size 1024 --position-embedding-type rope ";

TEST(LowBitsTest, MegatronNamesARecipeOfProducts) {
  const std::string resting = "megatron@2026+fp8-param-gather";
  const std::vector<LowBits> all = {
      {"--bf16 --fp8-format hybrid", "fp8", "", "megatron@2026"},
      {"--bf16 --fp8 e4m3 --fp8-recipe tensorwise", "fp8-current", "", ""},
      {"--bf16 --fp8-format e4m3 --fp8-recipe blockwise --fp8-param-gather", "fp8-blockwise", "",
       resting},
      {"--bf16 --fp8-format e4m3 --fp8-recipe mxfp8", "mxfp8", "", ""},
      {"--bf16 --fp4-format e2m1", "nvfp4", "", ""},
      {"--bf16 --fp8-hybrid", "fp8", "", ""},
      {"--fp16 --fp8-format hybrid", "mixed-fp16,products=fp8", "", ""},
      {"--bf16 --fp8-recipe mxfp8", "", "", ""},
      {"--bf16 --fp8-format e4m3 --fp8-recipe custom", "", "", ""}};
  for (const LowBits& low : all) {
    expect_words(low_bits_read(kLaunch + low.said, SourceForm::arguments), low);
  }
}

// Beside bf16 parameters the optimizer keeps the other 16 bits of the fp32 ones.
TEST(LowBitsTest, MegatronsOptimizerKeepsStatesInFewerBits) {
  const std::string aware = "--bf16 --use-precision-aware-optimizer ";
  const std::vector<LowBits> all = {
      {aware + "--exp-avg-dtype bf16 --exp-avg-sq-dtype bf16", "master=bf16", "adamw-bf16", ""},
      {aware + "--main-params-dtype fp16 --main-grads-dtype bf16 --exp-avg-dtype fp8 "
               "--exp-avg-sq-dtype fp8",
       "master=fp16,gradients=bf16,reduce=bf16", "adamw-fp8", ""},
      {aware + "--fp8-format e4m3 --fp8-recipe blockwise --exp-avg-dtype fp16 "
               "--exp-avg-sq-dtype fp16",
       "fp8-blockwise", "adamw-fp16", ""},
      {aware + "--fp8-format hybrid --exp-avg-dtype fp8 --exp-avg-sq-dtype fp8", "fp8,master=bf16",
       "adamw-fp8", ""},
      {aware + "--grad-reduce-in-bf16", "master=bf16,gradients=bf16,reduce=bf16", "",
       "megatron@2026"},
      {aware + "--main-grads-dtype bf16 --fp8-format e4m3 --fp8-recipe blockwise", "fp8-blockwise",
       "", "megatron@2026+bf16-reduce"},
      {"--bf16 --grad-reduce-in-bf16", "", "", "megatron@2026+bf16-reduce"}};
  for (const LowBits& low : all) {
    expect_words(low_bits_read(kLaunch + low.said, SourceForm::arguments), low);
  }
}

TEST(LowBitsTest, WhatARecipeLeavesOpenIsInTheLedger) {
  const Imported read = low_bits_read(
      kLaunch +
          "--bf16 --fp8-format hybrid --fp8-recipe tensorwise --first-last-layers-bf16 "
          "--num-layers-at-start-in-bf16 2 --fp8-margin 0 --exp-avg-dtype bf16",
      SourceForm::arguments);
  EXPECT_EQ(fate_of_key(read, "--fp8-recipe"), Fate::understood);
  EXPECT_EQ(fate_of_key(read, "--first-last-layers-bf16"), Fate::not_modelled);
  EXPECT_EQ(fate_of_key(read, "--fp8-margin"), Fate::no_effect);
  EXPECT_EQ(fate_of_key(read, "--exp-avg-dtype"), Fate::not_modelled);
}

const std::string kLowBridge =
    "train: {global_batch_size: 64, micro_batch_size: 1, train_iters: 10}\n"
    "dist: {}\nrng: {}\nscheduler: {}\nlogger: {}\ncheckpoint: {}\n"
    "ddp: {use_distributed_optimizer: true}\nmodel: {seq_length: 4096, num_layers: 32}\n"
    "mixed_precision: ";

TEST(LowBitsTest, BridgeNamesRecipesByStringOrByMember) {
  const std::string base = "megatron-bridge@2026";
  const std::vector<LowBits> all = {
      {"bf16_with_fp8_delayed_scaling_mixed", "fp8", "", base + "+fp32-reduce"},
      {"bf16-with-fp8-current-scaling-mixed", "fp8-current", "", base + "+fp32-reduce"},
      {"bf16_with_fp8_subchannel_scaling_mixed", "fp8-blockwise", "", base + "+fp32-reduce"},
      {"bf16_with_mxfp8_mixed", "mxfp8", "", base + "+fp32-reduce"},
      {"bf16_with_nvfp4_mixed", "nvfp4", "", base + "+fp32-reduce"},
      {"fp16_mixed", "mixed-fp16", "", base},
      {"{bf16: true, fp8: hybrid, grad_reduce_in_fp32: false}", "fp8-current", "",
       base + "+no-fp8-param-gather"},
      {"{bf16: true, fp8: e4m3, fp8_recipe: mxfp8, fp8_param_gather: true, "
       "grad_reduce_in_fp32: false}",
       "mxfp8", "", base},
      {"{bf16: true, fp8: null, fp4: e2m1}", "nvfp4", "", base + "+fp32-reduce"}};
  for (const LowBits& low : all) {
    expect_words(low_bits_read(kLowBridge + low.said, SourceForm::yaml), low);
  }
}

const std::string kLowNemo =
    "trainer: {devices: 8, num_nodes: 1, precision: bf16}\nexp_manager: {}\n"
    "model:\n  micro_batch_size: 1\n  global_batch_size: 64\n  encoder_seq_length: 4096\n"
    "  tensor_model_parallel_size: 1\n  megatron_amp_O2: true\n"
    "  optim: {name: mcore_distributed_optim}\n";

TEST(LowBitsTest, NemoSwitchesDelayedScalingOn) {
  const std::vector<LowBits> all = {
      {"  fp8: true\n  fp8_hybrid: true\n  fp8_params: true\n", "fp8,master=fp32", "",
       "megatron@2024"},
      {"  fp8: true\n  fp8_e4m3: true\n", "fp8,master=fp32", "",
       "megatron@2024+no-fp8-param-gather"},
      {"  fp8: false\n  fp8_hybrid: true\n", "master=fp32", "", "megatron@2024"}};
  for (const LowBits& low : all) {
    expect_words(low_bits_read(kLowNemo + low.said, SourceForm::yaml), low);
  }
}

// Masters of distributed_fused_adam are the other 16 bits of bf16 parameters, as the engine's are.
TEST(LowBitsTest, NemosOptimizersDifferInTheirMasters) {
  const std::string head = kLowNemo.substr(0, kLowNemo.find("  optim:"));
  const std::string sync = "grad_sync_dtype: bf16}\n";
  const std::vector<LowBits> all = {
      {"  optim: {name: distributed_fused_adam}\n", "", "", "megatron@2024"},
      {"  optim: {name: distributed_fused_adam, " + sync, "", "", "megatron@2024+bf16-reduce"},
      {"  optim: {name: mcore_distributed_optim, " + sync, "master=fp32", "",
       "megatron@2024+bf16-reduce"}};
  for (const LowBits& low : all) {
    expect_words(low_bits_read(head + low.said, SourceForm::yaml), low);
  }
}

const std::string kLowTitan =
    "[model]\nname = \"llama3\"\nflavor = \"8B\"\n"
    "[parallelism]\ndata_parallel_shard_degree = 8\n"
    "[training]\nseq_len = 4096\nlocal_batch_size = 1\n";

TEST(LowBitsTest, TorchtitansConvertersChooseProducts) {
  const std::string experts =
      "[model]\nname = \"deepseek_v3\"\nflavor = \"671B\"\n"
      "converters = [\"quantize.linear.float8\"]\n";
  const std::string head = kLowTitan.substr(kLowTitan.find("[parallelism]"));
  const auto of = [&](const std::string& name, const std::string& tables) {
    return "[model]\nname = \"llama3\"\nflavor = \"8B\"\nconverters = [\"" + name + "\"]\n" + head +
           tables;
  };
  const std::string gather = "enable_fsdp_float8_all_gather = true\n";
  const std::vector<LowBits> all = {
      {of("float8", "[float8]\n" + gather), "fp8-current,gather=fp8", "", ""},
      {of("quantize.linear.float8", "[quantize.linear.float8]\nrecipe_name = \"rowwise\"\n"),
       "fp8-current", "", ""},
      {of("float8", "[float8]\nrecipe_name = \"tensorwise\"\n" + gather), "fp8-current", "", ""},
      {of("quantize.linear.mx", ""), "mxfp8", "", ""},
      {kLowTitan + "[float8]\n" + gather, "", "", ""},
      {experts + head, "", "", ""}};
  for (const LowBits& low : all) expect_words(low_bits_read(low.said, SourceForm::toml), low);
  EXPECT_EQ(fate_of_key(low_bits_read(experts + head, SourceForm::toml), "model.converters"),
            Fate::not_modelled);
}

const std::string kAccelerate =
    "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nnum_machines: 1\n"
    "fsdp_config: {fsdp_version: 2, fsdp_reshard_after_forward: true}\nnum_processes: 8\n"
    "mixed_precision: fp8\n";

TEST(LowBitsTest, AcceleratesBackendsDifferInWhatTheyKeepAndGather) {
  const std::vector<LowBits> all = {
      {"", "fp8-current,gather=fp8", "", "accelerate@1"},
      {"fp8_config: {backend: AO, enable_fsdp_float8_all_gather: false}\n", "fp8-current", "",
       "accelerate@1"},
      {"fp8_config: {backend: TE, fp8_format: HYBRID}\n", "fp8", "",
       "accelerate@1+transformer-engine"},
      {"fp8_config: {backend: TE, use_mxfp8_block_scaling: true}\n", "mxfp8", "", ""},
      {"fp8_config: {backend: MSAMP}\n", "", "", "accelerate@1"}};
  for (const LowBits& low : all) {
    expect_words(low_bits_read(kAccelerate + low.said, SourceForm::yaml), low);
  }
}

TEST(LowBitsTest, TrainersSwitchFp8OnByAFlag) {
  const std::string factory =
      "stage: sft\ndo_train: true\nfinetuning_type: full\ncutoff_len: 4096\n"
      "per_device_train_batch_size: 1\nbf16: true\nmodel_name_or_path: a/b\n";
  const std::string axolotl =
      "base_model: a/b\nsequence_len: 4096\nmicro_batch_size: 1\nbf16: true\n"
      "fsdp_version: 2\nfsdp_config: {reshard_after_forward: true}\noptimizer: adamw_torch_8bit\n"
      "datasets: [{path: a, type: alpaca}]\n";
  const std::vector<LowBits> all = {
      {factory + "fp8: true\n", "autocast,products=fp8", "", ""},
      {factory + "fp8: false\n", "autocast", "", ""},
      {axolotl + "fp8: true\nfp8_enable_fsdp_float8_all_gather: true\n", "fp8-current,gather=fp8",
       "adam-8bit", ""}};
  for (const LowBits& low : all) expect_words(low_bits_read(low.said, SourceForm::yaml), low);
}

TEST(LowBitsTest, MaxtextQuantizesProducts) {
  const std::string text =
      "base_config: base.yml\nmodel_name: llama3.1-8b\nper_device_batch_size: 1\n"
      "max_target_length: 4096\nici_fsdp_parallelism: 8\nremat_policy: full\n";
  const std::vector<LowBits> all = {{text + "quantization: fp8\n", "fp8", "", ""},
                                    {text + "quantization: te_mxfp8\n", "mxfp8", "", ""},
                                    {text + "quantization: int8\n", "products=int8", "", ""},
                                    {text + "quantization: fp8\nweight_dtype: bfloat16\n",
                                     "fp8,parameters=bf16,gradients=bf16", "", ""}};
  for (const LowBits& low : all) expect_words(low_bits_read(low.said, SourceForm::yaml), low);
}

// --- jobs whose devices have units for them, written and read again

void expect_low_bits_return(const std::string& dialect, JobRequest job) {
  const Catalog catalog = find_catalog();
  job.cluster = "b200-sxm:1";
  const Exported exported = export_job(catalog, job, dialect);
  for (const JobDifference& word : exported.unsaid) {
    ADD_FAILURE() << dialect << ": " << word.word << " " << word.one << ", said " << word.other;
  }
}

TEST(LowBitsTest, EveryRecipeIsWritten) {
  for (const char* dialect : {"megatron", "megatron-bridge"}) {
    for (const char* precision : {"fp8", "fp8-current", "fp8-blockwise", "mxfp8", "nvfp4"}) {
      JobRequest job = base_request("dp=8:zero1");
      job.precision = precision;
      expect_low_bits_return(dialect, job);
    }
  }
}

TEST(LowBitsTest, MomentsAreWrittenWithTheFormatsBesideThem) {
  JobRequest job = base_request("dp=8:zero1");
  job.optimizer = "adamw-bf16";
  job.precision = "master=bf16,gradients=bf16,reduce=bf16";
  job.engine = "megatron@2026";
  expect_low_bits_return("megatron", job);
  job.precision = "mxfp8";
  job.engine = "megatron@2026+fp8-param-gather";
  expect_low_bits_return("megatron", job);
}

TEST(LowBitsTest, ADeviceWithoutUnitsIsRefusedWithWhatItHas) {
  const Imported read =
      low_bits_read(kLaunch + "--bf16 --fp8-format e4m3 --fp8-recipe mxfp8", SourceForm::arguments);
  JobRequest job = base_request("dp=8:ddp");
  job.precision = said_of(read, "precision");
  try {
    load_job(find_catalog(), job);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.fault().value, "mxfp8") << error.what();
    EXPECT_NE(error.fault().allowed.find("fp8-blockwise"), std::string::npos);
  }
}

}  // namespace
}  // namespace placet

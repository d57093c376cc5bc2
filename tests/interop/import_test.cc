// Sources to jobs, ledgers and findings.
#include "interop/import.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "catalog/catalog_files.h"
#include "catalog/job.h"
#include "imported.h"
#include "interop/dialect.h"
#include "units/error.h"

namespace placet {
namespace {

constexpr const char* kToml =
    "[model]\nname = \"llama3\"\nflavor = \"8B\"\n"
    "[training]\nlocal_batch_size = 2\nseq_len = 8192\nmystery = 1\n"
    "[parallelism]\ndata_parallel_shard_degree = -1\ntensor_parallel_degree = 4\n"
    "[metrics]\nlog_freq = 10\n[compile]\nenable = true\n"
    "[activation_checkpoint]\nmode = \"full\"\n";

Imported imported(const std::string& text, SourceForm form, const Words& given) {
  return import_text(form, text, given);
}

std::vector<std::string> codes_of(const Imported& result) {
  std::vector<std::string> codes;
  for (const LintFinding& f : result.findings) {
    codes.push_back(f.code + ":" + std::to_string(f.line));
  }
  return codes;
}

// 32 devices with tp 4 leave 8 that shard; each takes 2 samples: 16 a step.
TEST(ImportTest, ConfigurationBecomesAJob) {
  const Imported result = imported(kToml, SourceForm::toml, {{"world-size", "32"}});
  EXPECT_EQ(job_text(result),
            "engine = \"torchtitan@2026.02+compiled\"\nglobal-batch = 16\nmicro-batch = 2\n"
            "model = \"llama-3.1-8b\"\nplacement = \"dp=8:fsdp tp=4:tp+sp\"\n"
            "recompute = \"full\"\nseq = 8192\n");
}

// torchtitan recomputes every second block unless it is told otherwise; what it was told and has no
// counterpart leaves no default.
TEST(ImportTest, DefaultsHoldWhereNothingIsSaid) {
  const std::string base =
      "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nlocal_batch_size = 2\n"
      "[parallelism]\ntensor_parallel_degree = 4\n";
  const auto recompute = [&](const std::string& more) {
    const Imported result = imported(base + more, SourceForm::toml, {{"world-size", "32"}});
    const auto found = result.job.find("recompute");
    return found == result.job.end() ? std::string() : found->second;
  };
  EXPECT_EQ(recompute(""), "every=2");
  EXPECT_EQ(recompute("[activation_checkpoint]\nmode = \"none\"\n"), "none");
  EXPECT_EQ(recompute("[activation_checkpoint]\nselective_ac_option = \"op\"\n"), "selective=op");
  EXPECT_EQ(recompute("[activation_checkpoint]\nselective_ac_option = \"mine\"\n"), "");
}

// Megatron trains in fp32 unless it is told otherwise; its FSDP shards along the other axes too.
TEST(ImportTest, MegatronsFormatsAndShardingReachTheJob) {
  const std::string base =
      "--num-layers 32\n--seq-length 4096\n--micro-batch-size 1\n--global-batch-size 8\n"
      "--context-parallel-size 4\n";
  const auto job = [&](const std::string& more) {
    return imported(base + more, SourceForm::arguments,
                    {{"world-size", "8"}, {"model", "llama-3.1-8b"}})
        .job;
  };
  EXPECT_EQ(job("").at("precision"), "fp32");
  EXPECT_EQ(job("--fp16\n").at("precision"), "mixed-fp16");
  EXPECT_FALSE(job("--bf16\n").contains("precision"));
  EXPECT_EQ(job("--use-megatron-fsdp\n").at("placement"), "dp=2:zero3 cp=4:ring+zero3");
  EXPECT_EQ(job("--use-megatron-fsdp\n--data-parallel-sharding-strategy optim\n").at("placement"),
            "dp=2:zero1 cp=4:ring+zero1");
}

TEST(ImportTest, LedgerHoldsEveryKeyOnce) {
  const Imported result = imported(kToml, SourceForm::toml, {{"world-size", "32"}});
  std::vector<std::string> lines;
  for (const LedgerLine& line : result.ledger) {
    lines.push_back(line.setting.path + " " + name_of(line.fate));
  }
  const std::vector<std::string> expected = {"model.name understood",
                                             "model.flavor understood",
                                             "training.local_batch_size understood",
                                             "training.seq_len understood",
                                             "training.mystery unknown",
                                             "parallelism.data_parallel_shard_degree understood",
                                             "parallelism.tensor_parallel_degree understood",
                                             "metrics.log_freq no effect",
                                             "compile.enable understood",
                                             "activation_checkpoint.mode understood"};
  EXPECT_EQ(lines, expected);
  EXPECT_TRUE(is_lossy(result));
}

TEST(ImportTest, WhatIsMissingIsAskedForByItsFlag) {
  const Imported result = imported(kToml, SourceForm::toml, {});
  ASSERT_EQ(result.missing.size(), 1U);
  EXPECT_EQ(result.missing[0].flag, "--world-size N");
  EXPECT_THROW(job_text(result), InputError);
}

// 8 devices are no multiple of tp 16.
TEST(LintTest, DegreesMustDivideTheWorld) {
  const Imported result = imported("--tensor-model-parallel-size 16\n--num-layers 4",
                                   SourceForm::arguments, {{"world-size", "8"}});
  EXPECT_EQ(codes_of(result), std::vector<std::string>{"PL018:1"});
}

// 30 = 7 x 4 + 2 layers; 28 heads = 3 x 8 + 4.
TEST(LintTest, LayersAndHeadsMustDivideAndCanBeIgnored) {
  EXPECT_EQ(codes_of(imported("--num-layers 30\n--pipeline-model-parallel-size 4\n"
                              "--num-attention-heads 28\n--tensor-model-parallel-size 8\n",
                              SourceForm::arguments, {})),
            (std::vector<std::string>{"PL012:1", "PL003:4"}));
  EXPECT_EQ(codes_of(imported("--num-layers 30  # placet: ignore=PL012\n"
                              "--pipeline-model-parallel-size 4\n",
                              SourceForm::arguments, {})),
            std::vector<std::string>{});
}

// 3 + 4 + 4 + 3 = 14 layers on four stages, which 4 does not divide.
TEST(LintTest, LayersOfAStatedLayoutNeedNotDivide) {
  EXPECT_EQ(codes_of(imported("--num-layers 14\n--pipeline-model-parallel-size 4\n"
                              "--pipeline-model-parallel-layout Et*3|t*4|t*4|t*3,L\n",
                              SourceForm::arguments, {})),
            std::vector<std::string>{});
}

// 48 - 11 - 13 = 24 are in no stage; 62 - 24 = 38 = 9 x 4 + 2 over the four in the middle.
TEST(LintTest, LayersBetweenFirstAndLastStageMustHaveAPlace) {
  const auto found = [](const char* layers, const char* stages) {
    return codes_of(imported(std::string("--num-layers ") + layers +
                                 "\n--pipeline-model-parallel-size " + stages +
                                 "\n--decoder-first-pipeline-num-layers 11\n"
                                 "--decoder-last-pipeline-num-layers 13\n",
                             SourceForm::arguments, {}));
  };
  EXPECT_EQ(found("48", "2"), std::vector<std::string>{"PL024:4"});
  EXPECT_EQ(found("24", "2"), std::vector<std::string>{});
  EXPECT_EQ(found("62", "6"), std::vector<std::string>{"PL025:4"});
  EXPECT_EQ(found("64", "6"), std::vector<std::string>{});
}

// Embedding and loss stand for a layer each: 6 + 2 = 4 x 2.
TEST(LintTest, LayersThatDivideWithTheEndsAreNoFault) {
  EXPECT_EQ(codes_of(imported("--num-layers 6\n--pipeline-model-parallel-size 4\n"
                              "--account-for-embedding-in-pipeline-split\n"
                              "--account-for-loss-in-pipeline-split\n",
                              SourceForm::arguments, {})),
            std::vector<std::string>{});
}

// Embedding and output matrix stand for a block each: (70 + 2) / 12 = 6, of which the first and the
// last stage have 5 blocks.
TEST(ImportTest, ASplitThatCountsTheEndsGivesShares) {
  const Imported result = imported(
      "--num-layers 70\n--pipeline-model-parallel-size 12\n"
      "--pp-partition-method 'type:transformer|embedding'\n",
      SourceForm::arguments, {{"world-size", "12"}});
  EXPECT_EQ(codes_of(result), std::vector<std::string>{});
  EXPECT_EQ(result.job.at("placement"), "pp=12[5,6x10,5]:1f1b");
  EXPECT_EQ(name_of(result.ledger.back().fate), "understood");
}

// 48 - 11 - 13 = 24 over two stages in the middle.
TEST(ImportTest, LayersOfTheFirstAndTheLastStageGiveShares) {
  EXPECT_EQ(imported("--num-layers 48\n--pipeline-model-parallel-size 4\n"
                     "--decoder-first-pipeline-num-layers 11\n"
                     "--decoder-last-pipeline-num-layers 13\n",
                     SourceForm::arguments, {{"world-size", "4"}})
                .job.at("placement"),
            "pp=4[11,12x2,13]:1f1b");
}

// Llama 3.1 8B, as its flags describe it: 8,030,261,248 parameters.
TEST(ImportTest, SizesAndFlagsDescribeAModel) {
  const Imported result = imported(
      "--num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32\n"
      "--group-query-attention --num-query-groups 8 --vocab-size 128256 --swiglu\n"
      "--normalization RMSNorm --position-embedding-type rope --disable-bias-linear\n"
      "--untie-embeddings-and-output-weights --seq-length 8192\n",
      SourceForm::arguments, {{"world-size", "8"}});
  EXPECT_TRUE(result.missing.empty());
  JobRequest request;
  request.model = result.job.at("model");
  EXPECT_EQ(count_parameters(load_requested_model(find_catalog(), request)).total, 8030261248);
}

// hidden 4096: 4096 x 4096 elements a bucket, 10 x 4096 that stay gathered, 9/10 of 4096 x 4096.
TEST(ImportTest, AutoIsWorkedOutFromTheModel) {
  const std::string text =
      "{\"zero_optimization\": {\"stage\": 3, \"reduce_bucket_size\": \"auto\",\n"
      "\"stage3_param_persistence_threshold\": \"auto\"}, \"train_batch_size\": \"auto\"}";
  const Imported result =
      imported(text, SourceForm::json, {{"world-size", "8"}, {"model", "llama-3.1-8b"}});
  EXPECT_EQ(result.job.at("engine"),
            "deepspeed@0.19.3+reduce_bucket_size=16777216"
            "+stage3_param_persistence_threshold=40960");
  ASSERT_FALSE(result.missing.empty());
  EXPECT_EQ(result.missing[0].flag, "--global-batch N");
}

// Blocks made again four at a time, unless their parameters are gathered for use.
TEST(ImportTest, WhatAJobCannotSayIsNotModelled) {
  const std::string four =
      "--num-layers 8\n--recompute-granularity full\n--recompute-method uniform\n";
  const std::string last = "--recompute-num-layers 4\n";
  const Imported plain = imported(four + last, SourceForm::arguments, {});
  EXPECT_EQ(plain.job.at("recompute"), "uniform=4");
  EXPECT_EQ(name_of(plain.ledger.back().fate), "understood");
  const Imported sharded =
      imported(four + "--use-megatron-fsdp\n" + last, SourceForm::arguments, {});
  EXPECT_EQ(sharded.job.at("recompute"), "full");
  EXPECT_EQ(name_of(sharded.ledger.back().fate), "not modelled");
  EXPECT_EQ(sharded.ledger.back().what,
            "saved activations and transient memory: blocks are made again that many at a time");
}

TEST(ImportTest, WordsThatNoDialectHasAreNamed) {
  const Imported result =
      imported("--num-layers 8\n", SourceForm::arguments, {{"tp", "2"}, {"tpp", "2"}});
  EXPECT_EQ(result.unread, std::set<std::string>{"tpp"});
}

TEST(LintTest, UnknownKeyIsNamedWithTheNearest) {
  const Imported result =
      imported("{\"train_batch_size\": 8, \"gradient_clipp1ng\": 1.0}", SourceForm::json, {});
  ASSERT_EQ(result.findings.size(), 1U);
  EXPECT_EQ(result.findings[0].code, "PL001");
  EXPECT_EQ(result.findings[0].fix, "'gradient_clipping' is the nearest that it knows");
}

TEST(LintTest, WordSaidTwiceShowsBothPlaces) {
  const Imported result =
      imported("--seq-length 1024\n--num-layers 2\n--seq-length 2048\n", SourceForm::arguments, {});
  ASSERT_EQ(result.findings.size(), 1U);
  EXPECT_EQ(result.findings[0].code, "PL002");
  EXPECT_EQ(result.findings[0].message,
            "'--seq-length' is 2048 here, and '--seq-length' is 1024 at f:1; this one is taken");
}

// The v1 of LLaMA-Factory shards over all ranks, samples and sequence alike: 8 ranks in groups of 2
// that share a sequence take 4 samples of 1.
TEST(ImportTest, LlamaFactorysNewTrainerIsRead) {
  const std::string text =
      "model: Qwen/Qwen3-0.6B\nmodel_class: llm\ncutoff_len: 1024\nmicro_batch_size: 1\n"
      "dist_config:\n  name: fsdp2\n  cp_mode: ulysses\n  cp_size: 2\n";
  const Imported result = imported(text, SourceForm::yaml, {{"world-size", "8"}});
  EXPECT_EQ(job_text(result),
            "clip = 1.0\nengine = \"pytorch@2.9\"\nglobal-batch = 4\nmicro-batch = 1\n"
            "model = \"Qwen/Qwen3-0.6B\"\nplacement = \"dp=4:fsdp cp=2:heads+fsdp\"\n"
            "precision = \"bf16\"\nrecompute = \"full\"\nseq = 1024\n");
  EXPECT_TRUE(result.findings.empty());
}

Words job_of(const std::string& text, SourceForm form) {
  return imported(text, form, {{"world-size", "8"}}).job;
}

std::string word_of(const Words& job, const std::string& word) {
  const auto found = job.find(word);
  return found == job.end() ? "" : found->second;
}

// LLaMA-Factory recomputes blocks unless it is told not to, or where the Trainer's own key says so
// anyway; a batch of which nothing is said is the Trainer's, 8. In pure bf16 nothing is cast.
TEST(ImportTest, LlamaFactoryRecomputesUnlessToldNotTo) {
  const auto job = [&](const std::string& more) {
    return job_of(
        "model_name_or_path: Qwen/Qwen3-0.6B\nstage: sft\ncutoff_len: 1024\n"
        "finetuning_type: full\n" +
            more,
        SourceForm::yaml);
  };
  EXPECT_EQ(job("bf16: true\n").at("recompute"), "full");
  EXPECT_EQ(job("bf16: true\n").at("engine"), "hf-trainer@5");
  EXPECT_EQ(job("bf16: true\n").at("precision"), "autocast");
  EXPECT_EQ(job("bf16: true\n").at("global-batch"), "64");
  EXPECT_EQ(job("gradient_checkpointing: false\n").at("recompute"), "full");
  const std::string off = "disable_gradient_checkpointing: true\n";
  EXPECT_EQ(job(off).at("recompute"), "none");
  EXPECT_EQ(job(off + "gradient_checkpointing: true\n").at("recompute"), "full");
  EXPECT_EQ(job("pure_bf16: true\n").at("engine"), "transformers-loop@5");
  EXPECT_EQ(job("pure_bf16: true\n").at("precision"), "bf16");
}

// TRL fine-tunes with recomputation, under autocast in bf16, from weights in fp32, at 1024 tokens,
// unless it is told otherwise (trl 1.16.0).
TEST(ImportTest, TrlHasDefaultsOfItsOwn) {
  const Words called =
      job_of("trl sft --model_name_or_path Qwen/Qwen3-0.6B --dataset_name d --output_dir o\n",
             SourceForm::arguments);
  EXPECT_EQ(called.at("engine"), "hf-trainer@5+trl");
  EXPECT_EQ(called.at("global-batch"), "64");
  EXPECT_EQ(called.at("recompute"), "full");
  EXPECT_EQ(called.at("precision"), "autocast");
  EXPECT_EQ(called.at("seq"), "1024");
  const std::string base =
      "model_name_or_path: Qwen/Qwen3-0.6B\ndataset_text_field: text\noutput_dir: o\n"
      "learning_rate: 1e-5\n";
  const auto job = [&](const std::string& more) { return job_of(base + more, SourceForm::yaml); };
  EXPECT_EQ(job("use_peft: true\nlora_r: 32\nmax_length: 4096\n").at("lora"), "32,dropout=0.05");
  EXPECT_EQ(job("use_peft: true\n").at("precision"), "frozen=fp32");
  EXPECT_EQ(word_of(job("use_peft: true\ndtype: auto\n"), "precision"), "");
  EXPECT_EQ(word_of(job("lora_r: 32\n"), "lora"), "") << "without use_peft nothing is adapted";
  EXPECT_EQ(job("dtype: bfloat16\n").at("precision"), "bf16");
  EXPECT_EQ(job("dtype: bfloat16\n").at("engine"), "hf-trainer@5+trl") << "under autocast";
  EXPECT_EQ(job("dtype: bfloat16\nbf16: false\n").at("engine"), "transformers-loop@5+trl");
  EXPECT_EQ(job("bf16: false\n").at("precision"), "fp32");
  EXPECT_EQ(job("bf16: false\nfp16: true\n").at("precision"), "autocast-fp16");
  const Words sharded = job_of(
      "trl sft --model_name_or_path Qwen/Qwen3-0.6B --accelerate_config zero3 --max_length 2048\n",
      SourceForm::arguments);
  EXPECT_EQ(sharded.at("placement"), "dp=8:zero3");
}

// Matrices that get adapters, by the lists and words of each program; what is a pattern is said to
// be lost. TRL drops a twentieth unless told not to, the others nothing.
TEST(ImportTest, AdaptersStandWhereTheConfigurationPutsThem) {
  const std::string trl = "trl sft --model_name_or_path Qwen/Qwen3-0.6B --use_peft ";
  const auto called = [&](const std::string& more) {
    return job_of(trl + more + "\n", SourceForm::arguments);
  };
  EXPECT_EQ(called("--lora_target_modules q_proj v_proj --lora_r 8").at("lora"),
            "8,q_proj,v_proj,dropout=0.05");
  EXPECT_EQ(called("--lora_target_modules all-linear --lora_dropout 0.0").at("lora"),
            "16,all-linear");
  EXPECT_FALSE(called("--lora_target_modules '.*(q|v)_proj' --lora_dropout 0").contains("lora"));
  EXPECT_EQ(called("--load_in_4bit").at("precision"), "qlora-single");
  EXPECT_EQ(called("--load_in_4bit --use_bnb_nested_quant").at("precision"), "qlora");
  EXPECT_EQ(called("--optim adamw_torch --use_liger_kernel").at("engine"),
            "hf-trainer@5+trl+liger-kernels+foreach");
  EXPECT_EQ(called("--optim paged_adamw_8bit").at("optimizer"), "adam-8bit");

  const std::string axolotl =
      "base_model: Qwen/Qwen3-0.6B\nadapter: lora\nlora_r: 32\nsequence_len: 2048\n"
      "micro_batch_size: 1\ngradient_accumulation_steps: 1\n";
  const auto file = [](const std::string& text) { return job_of(text, SourceForm::yaml); };
  EXPECT_EQ(file(axolotl + "lora_target_linear: true\nlora_dropout: 0.1\n").at("lora"),
            "32,all-linear,dropout=0.1");
  EXPECT_EQ(file(axolotl + "lora_target_modules:\n  - q_proj\n  - o_proj\n").at("lora"),
            "32,q_proj,o_proj");
  const std::string factory =
      "model_name_or_path: Qwen/Qwen3-0.6B\nstage: sft\nfinetuning_type: lora\n"
      "cutoff_len: 1024\n";
  EXPECT_EQ(file(factory).at("lora"), "8,all-linear");
  EXPECT_EQ(file(factory + "lora_target: q_proj,v_proj\nlora_rank: 4\n").at("lora"),
            "4,q_proj,v_proj");
}

// What a Trainer's script has as well does not make it TRL's; nor does another program's "sft".
TEST(ImportTest, TrlIsToldByWhatIsItsOwn) {
  for (const char* text :
       {"torchrun train.py --model_name_or_path Qwen/Qwen3-0.6B --output_dir o --learning_rate "
        "1e-5\n",
        "python sft.py --model_name_or_path Qwen/Qwen3-0.6B --lora_r 8 --lora_alpha 16 "
        "--per_device_train_batch_size 1\n",
        "other sft --model_name_or_path Qwen/Qwen3-0.6B --per_device_train_batch_size 1\n"}) {
    EXPECT_EQ(word_of(job_of(text, SourceForm::arguments), "recompute"), "") << text;
  }
  const char* trainer =
      "model_name_or_path: Qwen/Qwen3-0.6B\nper_device_train_batch_size: 1\nlearning_rate: 1e-5\n"
      "gradient_accumulation_steps: 2\nnum_train_epochs: 1\nbf16: true\n"
      "attn_implementation: sdpa\nmax_length: 512\n";
  EXPECT_EQ(word_of(job_of(trainer, SourceForm::yaml), "recompute"), "");
}

// Training from preferences holds a second model and scores pairs, which no job says: it is not
// taken for training on samples.
TEST(ImportTest, PreferencesAreNotTakenForSamples) {
  const auto asks = [](const std::string& text, SourceForm form) {
    const Imported result = imported(text, form, {{"world-size", "8"}});
    return std::ranges::any_of(result.missing, [](const MissingFact& m) {
      return m.what.starts_with("a training on samples alone");
    });
  };
  const std::string options = " --model_name_or_path Qwen/Qwen3-0.6B --output_dir o\n";
  EXPECT_TRUE(asks("trl dpo" + options, SourceForm::arguments));
  EXPECT_TRUE(asks("accelerate launch trl/scripts/grpo.py" + options, SourceForm::arguments));
  EXPECT_FALSE(asks("trl sft" + options, SourceForm::arguments));
  const std::string factory = "model_name_or_path: Qwen/Qwen3-0.6B\nfinetuning_type: full\n";
  EXPECT_TRUE(asks(factory + "stage: dpo\n", SourceForm::yaml));
  EXPECT_FALSE(asks(factory + "stage: pt\n", SourceForm::yaml));
  const std::string axolotl = "base_model: Qwen/Qwen3-0.6B\nsequence_len: 8\nmicro_batch_size: 1\n";
  EXPECT_TRUE(asks(axolotl + "rl: kto\n", SourceForm::yaml));
  EXPECT_FALSE(asks(axolotl, SourceForm::yaml));
}

// A launcher's own file may shard everything: it is asked for. A module that a launcher runs tells
// the dialect as its script does.
TEST(ImportTest, ALaunchersFileIsAskedFor) {
  const std::string line =
      "accelerate launch --config_file fsdp.yaml -m trl.scripts.sft --model_name_or_path "
      "Qwen/Qwen3-0.6B --output_dir o\n";
  const Imported result = imported(line, SourceForm::arguments, {{"world-size", "8"}});
  EXPECT_TRUE(std::ranges::any_of(result.missing, [](const MissingFact& m) {
    return m.what == "the file 'fsdp.yaml', which holds the launcher's settings";
  }));
  EXPECT_EQ(word_of(result.job, "engine"), "hf-trainer@5+trl");
}

// DeepSpeed's file leads, and what the trainer says of adapters, kernels and recomputation holds
// all the same; so it does where accelerate's file stands first.
TEST(ImportTest, FineTuningHoldsWhoeverLeads) {
  const auto together = [](const std::string& one, const std::string& other, SourceForm form) {
    const ImportRequest request{
        .sources = {parse_source(one, SourceForm::yaml, "one"), parse_source(other, form, "two")},
        .dialect = {},
        .given = {{"world-size", "8"}}};
    return import_sources(find_catalog(), request).job;
  };
  const std::string sharded = R"({"zero_optimization": {"stage": 3}, "bf16": {"enabled": true}})";
  const std::string trl =
      "model_name_or_path: Qwen/Qwen3-0.6B\nuse_peft: true\nlora_target_modules: all-linear\n"
      "load_in_4bit: true\nper_device_train_batch_size: 2\n";
  const Words fine = together(trl, sharded, SourceForm::json);
  EXPECT_EQ(fine.at("lora"), "16,all-linear,dropout=0.05");
  EXPECT_EQ(fine.at("precision"), "qlora-single");
  EXPECT_EQ(fine.at("engine"), "deepspeed@0.19.3+trl");
  EXPECT_EQ(fine.at("recompute"), "full");
  const std::string factory =
      "model_name_or_path: Qwen/Qwen3-0.6B\nstage: sft\nfinetuning_type: lora\ncutoff_len: 1024\n"
      "lora_target: [q_proj, v_proj]\nenable_liger_kernel: true\n";
  const Words liger = together(factory, sharded, SourceForm::json);
  EXPECT_EQ(liger.at("lora"), "8,q_proj,v_proj");
  EXPECT_EQ(liger.at("engine"), "deepspeed@0.19.3+liger");
  const std::string launcher =
      "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nfsdp_config:\n"
      "  fsdp_version: 2\nnum_processes: 8\nmixed_precision: bf16\n";
  EXPECT_EQ(together(launcher, trl, SourceForm::yaml).at("engine"), "accelerate@1+trl");
  EXPECT_EQ(together(launcher, trl, SourceForm::yaml), together(trl, launcher, SourceForm::yaml));
}

// Kernels of other libraries are options of the engine.
TEST(ImportTest, KernelsOfLibrariesAreOptions) {
  const std::string axolotl = "base_model: Qwen/Qwen3-0.6B\nsequence_len: 8\nmicro_batch_size: 1\n";
  const auto engine = [](const std::string& text) {
    return job_of(text, SourceForm::yaml).at("engine");
  };
  const std::string plugins =
      "plugins:\n  - axolotl.integrations.liger.LigerPlugin\n"
      "  - axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin\n";
  EXPECT_EQ(engine(axolotl), "hf-trainer@5");
  EXPECT_EQ(engine(axolotl + plugins + "liger_rope: true\n"), "hf-trainer@5+cce+liger-rotary");
  const std::string liger = "liger_fused_linear_cross_entropy: true\nliger_rms_norm: true\n";
  EXPECT_EQ(engine(axolotl + liger), "hf-trainer@5") << "without its plugin it does nothing";
  EXPECT_EQ(engine(axolotl + "plugins:\n  - axolotl.integrations.liger.LigerPlugin\n" + liger),
            "hf-trainer@5+liger-loss+liger-norm");
  EXPECT_EQ(engine(axolotl + plugins + "cut_cross_entropy: false\n"), "hf-trainer@5");
  EXPECT_EQ(engine("model_name_or_path: Qwen/Qwen3-0.6B\nstage: sft\nfinetuning_type: full\n"
                   "enable_liger_kernel: true\n"),
            "hf-trainer@5+liger");
}

// The file that `trl sft --config` names is asked for.
TEST(ImportTest, TrlsSettingsFileIsASource) {
  const Imported result =
      imported("trl sft --config sft.yaml\n", SourceForm::arguments, {{"world-size", "8"}});
  const auto is_file = [](const MissingFact& m) {
    return m.what == "the file 'sft.yaml', which holds the settings" &&
           m.flag == "'sft.yaml' as one more of SOURCES";
  };
  EXPECT_EQ(std::ranges::count_if(result.missing, is_file), 1);
}

TEST(ImportTest, NameWithoutVersionIsTheNewest) {
  const Catalog catalog = find_catalog();
  EXPECT_EQ(load_dialect(catalog, "torchtitan", "dialect").name, "torchtitan@2026.02");
  EXPECT_EQ(load_dialect(catalog, "torchtitan@2024.11", "dialect").name, "torchtitan@2024.11");
  EXPECT_THROW(load_dialect(catalog, "torch", "dialect"), InputError);
}

TEST(ImportTest, EveryDialectIsWellFormed) {
  const Catalog catalog = find_catalog();
  for (const std::string& name : names_in(catalog, "dialects")) {
    const Dialect dialect = load_dialect(catalog, name, "dialect");
    EXPECT_FALSE(dialect.marks.empty()) << name;
    for (const DialectAxis& axis : dialect.axes) {
      ASSERT_FALSE(axis.terms.empty()) << name;
      EXPECT_TRUE(axis.terms.back().when.empty()) << name << " " << axis.name;
    }
  }
}

// A dialect is found by its head, and no more of the file is read until it is.
TEST(DialectTest, WhatTellsItStandsInFrontOfItsKeys) {
  const TestFolder folder;
  folder.write("dialects/mine@1.json",
               R"({"schema": "placet.dialect/1", "name": "mine@1", "title": "t", "form": "yaml",
                   "source": "s", "date": "2026-11-28", "marks": ["mine"],
                   "keys": {}, "derived": [], "axes": [], "told-by": ["mine"]})");
  const Catalog catalog{.root = find_catalog().root, .overlays = {folder.path()}};
  EXPECT_EQ(placet::message_of([&] { load_dialect(catalog, "mine@1", "test"); }, folder.path()),
            "dialects/mine@1.json: told-by: '[\"mine\"]' stands behind 'keys', where nobody looks "
            "for it; expected in front of 'keys'");
}

}  // namespace
}  // namespace placet

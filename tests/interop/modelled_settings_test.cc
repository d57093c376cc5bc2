// Settings of engines that a job says by an option or a word, with what they change in bytes. The
// arithmetic is by hand.
#include <gtest/gtest.h>

#include "catalog/job.h"
#include "derive/derive.h"
#include "imported.h"
#include "interop/diff.h"
#include "interop/import.h"

namespace placet {
namespace {

Job job_of(const Imported& imported) {
  return load_job(find_catalog(), request_of_words(imported.job, "f"));
}

Imported read(const std::string& text, SourceForm form, const Words& given) {
  return import_text(form, text, given);
}

Bytes kept(const Job& job) { return derive(job).memory.front().at_rest[3]; }

Bytes sent(const Job& job, std::string_view what) {
  Bytes sum;
  const Derivation derivation = derive(job);
  for (const CommunicationTerm& term : derivation.communication.front().terms) {
    if (term.what == what) sum += term.sent;
  }
  return sum;
}

const std::string kGpt =
    "--num-layers 12 --seq-length 1024 --micro-batch-size 1 --global-batch-size 1 --bf16\n";

// 12 heads and 1024 x 1024 scores: 5 bytes each instead of 4 bytes per head and token, in 12
// blocks.
TEST(ModelledSettingsTest, UnfusedAttentionKeepsScores) {
  const Words given = {{"world-size", "1"}, {"model", "gpt2"}};
  const Job fused =
      job_of(read(kGpt + "--attention-backend flash\n", SourceForm::arguments, given));
  const Job unfused =
      job_of(read(kGpt + "--attention-backend unfused\n", SourceForm::arguments, given));
  constexpr std::int64_t kScores = std::int64_t{5} * 12 * 1024 * 1024;
  constexpr std::int64_t kStatistics = std::int64_t{4} * 12 * 1024;
  EXPECT_EQ(unfused.engine_text, "megatron@2026+unfused-attention");
  EXPECT_EQ(kept(unfused) - kept(fused), bytes(12 * (kScores - kStatistics)));
}

// 4096 tokens with 2 choices on each of 4 devices: 8192 probabilities, of which 3/4 leave, forward
// in 32 blocks. 4 bytes each instead of 2.
TEST(ModelledSettingsTest, RoutersInFp32SendTwiceTheBytes) {
  const std::string base =
      "--num-layers 32 --num-experts 8 --expert-model-parallel-size 4 --seq-length 4096\n"
      "--micro-batch-size 1 --global-batch-size 4 --bf16 --moe-token-dispatcher-type alltoall\n";
  const Words given = {{"world-size", "4"}, {"model", "mixtral-8x7b"}};
  const Job plain = job_of(read(base, SourceForm::arguments, given));
  const Job fp32 = job_of(read(base + "--moe-router-dtype fp32\n", SourceForm::arguments, given));
  EXPECT_EQ(sent(plain, "probabilities to experts"), bytes(std::int64_t{32} * 8192 * 2 * 3 / 4));
  EXPECT_EQ(sent(fp32, "probabilities to experts"), bytes(std::int64_t{32} * 8192 * 4 * 3 / 4));
}

// 44 blocks of h = 6144 on 4 stages, tensor 2. On the first stage each device has 11 blocks:
// matrices 12 h^2 / 2, of their biases 3 h / 2 and 4 h / 2 cut and 2 h whole, norms 4 h; and half
// of the embedding's 50432 rows. All of it is summed whole over 12 ranks in fp16, and each keeps a
// part: 2 x 11 / 12 of the bytes.
TEST(ModelledSettingsTest, ZeroOneBesideStagesSumsWholeGradients) {
  const std::string text =
      "{\"pipe_parallel_size\": 4, \"model_parallel_size\": 2, \"num_layers\": 44,\n"
      "\"hidden_size\": 6144, \"num_attention_heads\": 64, \"seq_length\": 2048,\n"
      "\"pos_emb\": \"rotary\", \"no_weight_tying\": true, \"fp16\": {\"enabled\": true},\n"
      "\"zero_optimization\": {\"stage\": 1, \"reduce_bucket_size\": 1260000000},\n"
      "\"train_micro_batch_size_per_gpu\": 4, \"gradient_accumulation_steps\": 32}\n";
  const Job job = job_of(read(text, SourceForm::yaml, {{"world-size", "96"}}));
  EXPECT_EQ(job.engine_text, "megatron-deepspeed@2022+neox+zero1+reduce_bucket_size=1260000000");
  constexpr std::int64_t kHidden = 6144;
  constexpr std::int64_t kBlock =
      12 * kHidden * kHidden / 2 + 7 * kHidden / 2 + 2 * kHidden + 4 * kHidden;
  constexpr std::int64_t kEmbedding = 50432 / 2 * kHidden;
  constexpr std::int64_t kElements = 11 * kBlock + kEmbedding;
  const Derivation d = derive(job);
  EXPECT_TRUE(d.findings.empty());
  EXPECT_EQ(d.memory.front().at_rest[2], bytes(2 * kElements));
  Bytes summed;
  for (const CommunicationTerm& term : d.communication.front().terms) {
    if (term.what == "gradients") summed += term.sent;
  }
  // Buckets and padding round each message to whole numbers: less than one in a million.
  const double expected = 2.0 * 11 / 12 * 2 * static_cast<double>(kElements);
  EXPECT_NEAR(static_cast<double>(in_bytes(summed)), expected, expected * 1e-6);
}

// torchtitan's blocks keep gate, up and the activated gate; compiled, they make the last again:
// 14336 numbers of 2 bytes less for each token, in 32 blocks.
TEST(ModelledSettingsTest, CompiledBlocksKeepOneValueLess) {
  const std::string base =
      "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nlocal_batch_size = 1\n"
      "seq_len = 1024\n[activation_checkpoint]\nmode = \"none\"\n[compile]\nenable = true\n";
  const Words given = {{"world-size", "8"}};
  const Job loss = job_of(read(base + "components = [\"loss\"]\n", SourceForm::toml, given));
  const Job both =
      job_of(read(base + "components = [\"model\", \"loss\"]\n", SourceForm::toml, given));
  EXPECT_EQ(loss.engine_text, "torchtitan@2026.02");
  EXPECT_EQ(both.engine_text, "torchtitan@2026.02+compiled");
  EXPECT_EQ(kept(loss) - kept(both), bytes(std::int64_t{32} * 1024 * 14336 * 2));
}

// 32 inputs of 4096 tokens with 4096 numbers of 2 bytes, half of each on either tensor rank.
TEST(ModelledSettingsTest, SavedActivationsAreDividedOverTensorRanks) {
  const std::string base =
      "--num-layers 32 --seq-length 4096 --micro-batch-size 1 --global-batch-size 8 --bf16\n"
      "--tensor-model-parallel-size 2 --recompute-granularity full --recompute-method uniform\n"
      "--recompute-num-layers 1\n";
  const Words given = {{"world-size", "8"}, {"model", "llama-3.1-8b"}};
  const Imported divided =
      read(base + "--distribute-saved-activations\n", SourceForm::arguments, given);
  EXPECT_EQ(divided.job.at("placement"), "dp=4:ddp tp=2:tp;checkpoints:sp");
  EXPECT_EQ(kept(job_of(read(base, SourceForm::arguments, given))) - kept(job_of(divided)),
            bytes(std::int64_t{32} * 4096 * 4096 * 2 / 2));
}

// 8 of 32 blocks: a quarter of what is kept.
TEST(ModelledSettingsTest, ActivationsOfSomeLayersGoToTheHost) {
  const std::string base =
      "--num-layers 32 --seq-length 4096 --micro-batch-size 1 --global-batch-size 8 --bf16\n";
  const Words given = {{"world-size", "8"}, {"model", "llama-3.1-8b"}};
  const Job moved = job_of(read(base + "--cpu-offloading --cpu-offloading-num-layers 8\n",
                                SourceForm::arguments, given));
  const Bytes all = kept(job_of(read(base, SourceForm::arguments, given)));
  EXPECT_EQ(4 * in_bytes(derive(moved).memory.front().on_host[3]), in_bytes(all));
}

// Tokens beyond a capacity are dropped: what the job's routing says.
TEST(ModelledSettingsTest, ACapacityIsARouting) {
  const std::string base = "--num-layers 32 --num-experts 8 --seq-length 4096\n";
  const Words given = {{"world-size", "8"}, {"model", "mixtral-8x7b"}};
  const auto routing = [&](const std::string& more) {
    const Imported result = read(base + more, SourceForm::arguments, given);
    const auto found = result.job.find("routing");
    return found == result.job.end() ? std::string("balanced") : found->second;
  };
  EXPECT_EQ(routing(""), "balanced");
  EXPECT_EQ(routing("--moe-expert-capacity-factor 1.25\n"), "capacity=1.25");
  EXPECT_EQ(routing("--moe-expert-capacity-factor -1\n"), "balanced");
}

// 16, 24 and 32 samples: three jobs, of which the last is given; 16 to 32 by 6 does not come out.
TEST(ModelledSettingsTest, ARampIsAListOfJobs) {
  const std::string base = "--num-layers 12 --global-batch-size 32 --micro-batch-size 1\n";
  const Imported even = read(base + "--rampup-batch-size 16 8 1_000\n", SourceForm::arguments, {});
  EXPECT_EQ(even.batch_ramp, (std::vector<long long>{16, 24, 32}));
  EXPECT_EQ(even.job.at("global-batch"), "32");
  EXPECT_EQ(name_of(even.ledger.back().fate), "understood");
  const Imported odd = read(base + "--rampup-batch-size 16 6 1_000\n", SourceForm::arguments, {});
  EXPECT_TRUE(odd.batch_ramp.empty());
  EXPECT_EQ(name_of(odd.ledger.back().fate), "not modelled");
  const Imported steps =
      read(base + "--step-batch-size-schedule '0:16 2.4B:32'\n", SourceForm::arguments, {});
  EXPECT_EQ(steps.batch_ramp, (std::vector<long long>{16, 32}));
}

// The trainer says 2 samples, 4 times, clipped at 0.5; hidden 4096 makes buckets of 4096 x 4096
// elements, 9/10 of that rounded down gathered ahead, and 10 x 4096 that stay.
TEST(ModelledSettingsTest, AnEnginesFileTakesWhatItsTrainerSays) {
  const std::string line =
      "deepspeed --num_gpus 8 train.py --model_name_or_path meta-llama/Llama-3.1-8B --bf16 True "
      "--per_device_train_batch_size 2 --gradient_accumulation_steps 4 --max_grad_norm 0.5 "
      "--model_max_length 4096\n";
  const std::string file =
      "{\"train_batch_size\": \"auto\", \"train_micro_batch_size_per_gpu\": \"auto\",\n"
      "\"gradient_accumulation_steps\": \"auto\", \"gradient_clipping\": \"auto\",\n"
      "\"bf16\": {\"enabled\": \"auto\"}, \"zero_optimization\": {\"stage\": 3,\n"
      "\"reduce_bucket_size\": \"auto\", \"stage3_prefetch_bucket_size\": \"auto\",\n"
      "\"stage3_param_persistence_threshold\": \"auto\"}}\n";
  const Imported result =
      import_sources(find_catalog(), {.sources = {parse_source(line, SourceForm::arguments, "a"),
                                                  parse_source(file, SourceForm::json, "b")},
                                      .dialect = {},
                                      .given = {}});
  EXPECT_EQ(job_text(result),
            "clip = 0.5\n"
            "engine = \"deepspeed@0.19.3+reduce_bucket_size=16777216"
            "+stage3_prefetch_bucket_size=15099494+stage3_param_persistence_threshold=40960\"\n"
            "global-batch = 64\nmicro-batch = 2\nmodel = \"meta-llama/Llama-3.1-8B\"\n"
            "placement = \"dp=8:zero3\"\nseq = 4096\n");
  EXPECT_FALSE(is_lossy(result));
}

// 128 experts of which each device has half; 4096 tokens with 8 choices of 2048 numbers in bf16,
// half of them to the other device, in 48 blocks.
TEST(ModelledSettingsTest, ExpertsBesideFullSharding) {
  const Imported result = read(
      "base_model: Qwen/Qwen3-30B-A3B\nexpert_parallel_size: 2\ndp_shard_size: 2\n"
      "sequence_len: 4096\nmicro_batch_size: 1\ngradient_accumulation_steps: 1\nbf16: true\n"
      "fsdp_version: 2\nfsdp_config:\n  reshard_after_forward: true\n",
      SourceForm::yaml, {});
  EXPECT_EQ(result.job.at("placement"), "dp=2:fsdp ep=2:ep+fsdp");
  const Job job = job_of(result);
  EXPECT_EQ(job.engine_text, "accelerate@1+experts");
  Bytes first;
  const Derivation derivation = derive(job);
  for (const CommunicationTerm& term : derivation.communication.front().terms) {
    if (term.collective != Collective::all_to_all || term.phase != Phase::forward) continue;
    if (first == Bytes()) first = term.sent;
  }
  EXPECT_EQ(first, bytes(std::int64_t{48} * 4096 * 8 * 2048 * 2 / 2));
}

// Options in one pair of quotes are settings where they stand, whatever uses them.
TEST(ModelledSettingsTest, OptionsInAVariableAreRead) {
  const Imported result = read(
      "NODES=2\nDISTRIBUTED=\"--nnodes $NODES --nproc_per_node 8\"\n"
      "EXTRA=\" --sequence-parallel \"\nEXTRA=\"--bf16 ${EXTRA}\"\n"
      "torchrun $DISTRIBUTED pretrain.py --num-layers 12 --hidden-size 768 \\\n"
      "  --tensor-model-parallel-size 2 $EXTRA\n",
      SourceForm::arguments, {});
  EXPECT_EQ(result.words.at("world-size"), "16");
  EXPECT_EQ(result.words.at("half"), "bf16");
  EXPECT_EQ(result.words.at("sequence-parallel"), "true");
  EXPECT_EQ(result.words.at("tp"), "2");
}

}  // namespace
}  // namespace placet

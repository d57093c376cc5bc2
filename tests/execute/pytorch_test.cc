// Losses of PyTorch, from the same initial values and samples: what the kernels compute is what the
// field's own program computes. pytorch_losses.py printed the figures (torch 2.14.1, CPU).
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "call/job_flags.h"
#include "call/runs.h"
#include "catalog/job.h"
#include "execute/run.h"
#include "lower/lower.h"

namespace placet {
namespace {

constexpr const char* kGpt2 =
    R"({"model_type": "gpt2", "n_layer": 2, "n_embd": 16, "n_head": 2, "n_positions": 8,
        "vocab_size": 24, "attn_pdrop": 0, "embd_pdrop": 0, "resid_pdrop": 0})";
constexpr const char* kLlama =
    R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 16, "intermediate_size": 64,
        "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8,
        "max_position_embeddings": 8, "vocab_size": 24, "rms_norm_eps": 1e-5,
        "hidden_act": "silu", "tie_word_embeddings": false})";
constexpr const char* kMixtral =
    R"({"model_type": "mixtral", "num_hidden_layers": 2, "hidden_size": 16, "intermediate_size": 64,
        "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8, "num_local_experts": 4,
        "num_experts_per_tok": 2, "max_position_embeddings": 8, "vocab_size": 24,
        "rms_norm_eps": 1e-5, "hidden_act": "silu", "sliding_window": null,
        "tie_word_embeddings": false})";

constexpr const char* kMamba2 =
    R"({"model_type": "mamba2", "num_hidden_layers": 2, "hidden_size": 16, "expand": 2,
        "num_heads": 4, "head_dim": 8, "n_groups": 2, "state_size": 4, "conv_kernel": 4,
        "vocab_size": 24, "layer_norm_epsilon": 1e-5, "tie_word_embeddings": false})";

const std::vector<double> kGpt2Losses = {3.5255991483870806, 3.384774511603955, 3.3070655856809754,
                                         3.2574661181471223, 3.281038076597671, 3.1309963860079755,
                                         3.2726115627633567, 3.077292253187489, 3.1598237892930205,
                                         3.0246925861651537};
const std::vector<double> kLlamaLosses = {
    3.602678709996758,  3.0897631940198105, 3.252720944658045,  3.175945874839092,
    3.098837325209533,  2.891006200434786,  2.9918159494777297, 2.915099841774588,
    2.9261488252224304, 3.0243038536362006};
const std::vector<double> kMixtralLosses = {
    3.417389981410616,  2.956078223263039, 3.21428270634074,  3.0850986409233974,
    2.969148616617081,  2.814572390831816, 2.958016126887675, 2.8820456483808954,
    2.8880884740956687, 2.9875637153376617};

const std::vector<double> kMamba2Losses = {
    3.2660733305295446, 3.3163172629147284, 3.184087747439278,  3.1650985738651287,
    3.146952122802502,  3.065127115823758,  3.1698939043749186, 2.8962401915798273,
    3.092650586512817,  3.1158533922332587};

Job job_of(const char* model, const char* placement, const char* tokens) {
  JobFlags flags;
  flags.model = model;
  flags.placements = {placement};
  flags.sequence = tokens;
  flags.global_batch = "4";
  flags.micro_batch = "1";
  const Catalog catalog = find_catalog();
  return load_job(catalog, request_of(catalog, flags));
}

RealRun ten_steps(const char* model, const char* placement, Meanings::Activation activation,
                  Arithmetic arithmetic) {
  const Program program = lower(job_of(model, placement, "8"));
  return run(program,
             {.steps = 10, .arithmetic = arithmetic, .meanings = {.activation = activation}});
}

void expect_losses(const RealRun& found, const std::vector<double>& expected, double within) {
  ASSERT_FALSE(found.stuck) << *found.stuck;
  ASSERT_EQ(found.steps.size(), expected.size());
  for (std::size_t k = 0; k < expected.size(); ++k) {
    EXPECT_NEAR(found.steps[k].ranks, expected[k], within * expected[k]) << "step " << k + 1;
    EXPECT_NEAR(found.steps[k].one_device, expected[k], within * expected[k]) << "step " << k + 1;
  }
}

TEST(PyTorchTest, TrainsGpt2ToTheSameLosses) {
  for (const char* placement : {"dp=2:zero3", "tp=2:tp", "pp=2:1f1b"}) {
    expect_losses(
        ten_steps(kGpt2, placement, Meanings::Activation::gelu_tanh, Arithmetic::binary64),
        kGpt2Losses, 1e-12);
  }
}

TEST(PyTorchTest, TrainsLlamaToTheSameLosses) {
  for (const char* placement : {"dp=2:zero3", "dp=2:zero1 tp=2:tp+sp", "cp=2:ring+zero1"}) {
    expect_losses(ten_steps(kLlama, placement, Meanings::Activation::silu, Arithmetic::binary64),
                  kLlamaLosses, 1e-12);
  }
}

// Experts on every device, divided among some, cut by a tensor axis.
TEST(PyTorchTest, TrainsMixtralToTheSameLosses) {
  for (const char* placement : {"dp=2:zero3", "tp=2:tp", "ep=4:ep", "dp=2:zero1 ep=2:ep+zero1",
                                "ep=2:ep+zero1 tp=2:tp+sp", "pp=2:1f1b ep=2:ep+zero1"}) {
    expect_losses(ten_steps(kMixtral, placement, Meanings::Activation::silu, Arithmetic::binary64),
                  kMixtralLosses, 1e-12);
  }
}

// A cut by groups, each of which has keys and queries of its own.
TEST(PyTorchTest, TrainsMamba2ToTheSameLosses) {
  for (const char* placement : {"dp=2:zero3", "tp=2:tp", "pp=2:1f1b"}) {
    expect_losses(ten_steps(kMamba2, placement, Meanings::Activation::silu, Arithmetic::binary64),
                  kMamba2Losses, 1e-12);
  }
}

// Four samples of two groups: T 16 numbers by T 24 + T 2 + 3 2 others. Of 8 tokens 8 x 128 x 214 =
// 0.2 million slopes, of 64 8 x 1024 x 1670 = 14 million.
TEST(PyTorchTest, LongRecurrencesAreRunAsSmallJobs) {
  for (const Arithmetic arithmetic : {Arithmetic::canonical, Arithmetic::binary64}) {
    EXPECT_TRUE(runs_as_it_is(job_of(kMamba2, "dp=2:zero3", "8"), arithmetic));
    EXPECT_FALSE(runs_as_it_is(job_of(kMamba2, "dp=2:zero3", "64"), arithmetic));
  }
}

// Reads of 24 bits: of ten steps 1e-6 of the loss.
TEST(PyTorchTest, CanonicalStepsAreAsNearAsTheirReads) {
  expect_losses(
      ten_steps(kGpt2, "dp=2:zero3", Meanings::Activation::gelu_tanh, Arithmetic::canonical),
      kGpt2Losses, 1e-6);
  expect_losses(ten_steps(kLlama, "tp=2:tp", Meanings::Activation::silu, Arithmetic::canonical),
                kLlamaLosses, 1e-6);
  expect_losses(ten_steps(kMixtral, "dp=2:zero1 ep=2:ep+zero1", Meanings::Activation::silu,
                          Arithmetic::canonical),
                kMixtralLosses, 1e-6);
}

}  // namespace
}  // namespace placet

#include "lower/catalogue_jobs.h"

#include "algebra/verify.h"
#include "check/check.h"
#include "lower/lower.h"
#include "lower/small.h"
#include "program/text.h"
#include "program/wellformed.h"

namespace placet::testing {
namespace {

/// Devices that hold different samples, and whether there is a pipeline.
std::int64_t replicas_of(const Placement& placement, bool& pipelined) {
  std::int64_t n = 1;
  for (const AxisPlacement& axis : placement.axes) {
    if (axis.how.cut == Cut::batch || axis.how.cut == Cut::expert) n *= axis.degree;
    if (axis.how.cut == Cut::layer && axis.degree > 1) pipelined = true;
  }
  return n;
}

std::string first_fault(const Verdict& verdict) {
  if (verdict.findings.empty()) return "no finding";
  const CheckFinding& f = verdict.findings.front();
  return f.tensor + " at " + f.at + ": " + f.difference;
}

}  // namespace

std::vector<CatalogueJob> few_catalogue_jobs() {
  return {
      {"llama-3.1-8b", "dp=4:ddp"},
      {"llama-3.1-8b", "dp=4:zero1 tp=2:tp+sp"},
      {"llama-3.1-8b", "rep=2:ddp shard=4:zero3"},
      {"llama-3.1-8b", "pp=4:1f1b dp=2:zero1 tp=2:tp"},
      {"llama-3.1-8b", "tp=16:tp"},                  // key and value heads on two devices each
      {"gpt2", "pp=2:gpipe dp=2:zero2 tp=2:tp+sp"},  // tied ends, dropout, biases
      {"falcon-7b", "dp=2:zero1 tp=2:tp"},           // fused rows of one shared head
      {"mixtral-8x7b", "dp=2:zero1 ep=4:ep+zero1"},
      {"qwen2.5-7b", "dp=2:zero3 tp=2:tp+sp", "full"},
      {"llama-3.1-8b", "dp=2:zero1 cp=2:gather+zero1"},
      {"llama-3.1-8b", "pp=2:interleaved(2) dp=2:zero3", "", ""},
      {"qwen3-8b", "tp=16:tp"},                           // norms of keys that several devices hold
      {"mixtral-8x7b", "ep=4:ep+zero1 dp=2:zero1"},       // the axis of experts outside
      {"mixtral-8x7b", "dp=2[2,1]:zero1 ep=2:ep+zero1"},  // and inside of uneven shares
      {"llama-3.1-8b", "dp=3[2,1,1]:zero1"},              // whose sum is no multiple of the degree
      {"gpt2", "dp=2:zero3 cp=2:gather+zero1"},           // gradients scattered early and late
      {"gpt2", "dp=3:zero2 rep=5:zero1"},
      {"gpt2", "dp=3:zero1 shard=5:zero3"},
      {"mixtral-8x7b", "dp=2:zero1 ep=4:ep+zero3"},
      {"llama-3.1-8b", "dp=2:zero3 tp=2:tp", "", "8"},
      {"gpt2", "dp=2:zero1 tp=2:tp+sp", "selective"},
      {"qwen2.5-7b", "dp=2:zero3", "selective=mlp,norm"},
      {"mixtral-8x7b", "ep=2:ep+zero1", "selective=attention,moe"},
      {"llama-3.1-8b", "pp=2:1f1b dp=2:zero1", "every=2"},
      {"llama-3.1-8b", "pp=2:1f1b dp=2:zero1", "first=1"},
      {"llama-3.1-8b", "pp=2:zb-h1 dp=2:zero1 tp=2:tp+sp"},
      {"gpt2", "pp=4:zb-v dp=2:zero2"},  // both ends of the model on one device
      {"gpt2", "pp=2:zb-h1 dp=2:zero3", "selective=mlp"},
      {"llama-3.1-8b", "pp=4:dualpipe dp=2:zero1 tp=2:tp"},
      {"gpt2", "pp=4:dualpipe dp=2:zero2", "full"},
      {"mixtral-8x7b", "pp=2:dualpipe-v ep=2:ep+zero1"},
      {"llama-3.1-8b", "dp=2:zero3+offload(activations) tp=2:tp+sp"},
      {"gpt2", "pp=2:zb-h1 dp=2:zero1+host-checkpoints", "full"},
      {"gpt2", "pp=2:1f1b dp=2:zero3+keep"},
      {"gpt2", "x=2:batch(R,S*,R,R) dp=2:ddp tp=2:tp"},
      {"llama-3.1-8b", "x=3:batch(R,S*,S,R) pp=2:1f1b"},
      {"gpt2", "pp=2:dualpipe dp=2:zero3+keep", "selective"},
      {"llama-3.1-8b", "cp=2:heads"},
      {"gpt2", "dp=2:zero1 cp=4:heads+zero1 tp=2:tp+sp"},
      {"glm-4-9b", "dp=2:zero2 cp=4:heads+zero2"},  // fewer key and value heads
      {"llama-3.1-8b", "cp=2:gather sp=2:heads tp=2:tp"},
      {"llama-3.1-8b", "cp=4:ring tp=2:tp+sp"},
      {"gpt2", "pp=2:1f1b dp=2:zero1 cp=2:ring+zero1", "full"},   // drops keys
      {"deepseek-v3", "pp=2:dualpipe dp=2:zero1 ep=4:ep+zero1"},  // predicts two tokens
      {"mixtral-8x7b", "dp=2:zero1 ep=2:ep+zero1 tp=2:tp+sp", "", "", "sequence"},
      {"qwen3-30b-a3b", "pp=2:dualpipe cp=2:heads", "full", "", "sequence"},
      {"gpt2", "pp=2:1f1b dp=2:zero2 tp=2:tp+sp", "", "", "", "mixed-fp16"},
      {"gpt2", "dp=2:zero1 x=2:tp-2d-hidden y=2:tp"},  // columns of the stream cut
      {"llama-3.1-8b", "i=2:tp-2d-rows j=2:tp-2d-columns", "full"},
      {"falcon-mamba-7b", "dp=2:zero1 tp=2:tp+sp"},         // selective scans
      {"codestral-mamba-7b", "pp=2:1f1b dp=2:zero3"},       // scans by heads
      {"nemotron-h-8b", "dp=2:zero3 tp=2:tp", "full"},      // and their norms by group
      {"qwen3-next-80b-a3b", "dp=2:zero3 tp=2:tp"},         // delta rules
      {"kimi-linear-48b-a3b", "ep=2:ep+zero1 tp=2:tp"},     // with decays per channel
      {"minimax-text-01", "pp=2:1f1b dp=2:zero1 tp=2:tp"},  // linear attention
      {"lfm2-350m", "dp=2:zero3 tp=2:tp+sp"},               // short convolutions
  };
}

std::vector<CatalogueJob> all_catalogue_jobs() {
  const std::vector<std::string> models = {
      "llama-3.1-8b",  "gpt2",         "falcon-7b",  "mixtral-8x7b", "qwen2.5-7b",
      "qwen3-30b-a3b", "gpt-neox-20b", "gemma-2-9b", "phi-4",        "bloom-176b"};
  const std::vector<std::string> placements = {
      "dp=1:ddp",
      "dp=4:ddp",
      "dp=4:zero1",
      "dp=4:zero2",
      "dp=4:zero3",
      "dp=6:zero3",
      "dp=4:zero3+keep",
      "dp=4:zero3+keep-step",
      "rep=2:ddp shard=4:zero3",
      "rep=3:ddp shard=2:zero3",
      "tp=2:tp",
      "tp=2:tp+sp",
      "cp=2:gather",
      "dp=4:zero1+offload(optimizer)",
      "dp=4:zero1+offload(optimizer=1/2)",
      "dp=2:zero3+offload(parameters=1/4) tp=2:tp+sp",
      "dp=2:zero1 tp=2:tp",
      "dp=2:zero2 tp=2:tp+sp",
      "dp=3:zero1 tp=2:tp+sp",
      "dp=4:zero3 tp=2:tp+sp",
      "pp=2:1f1b dp=2:zero1",
      "pp=2:gpipe dp=2:zero3",
      "pp=2:interleaved(2) dp=2:ddp",
      "pp=4:1f1b tp=2:tp+sp",
      "dp=2:zero1 cp=2:gather+zero1",
      "dp=2:zero2 cp=2:gather+zero2 tp=2:tp",
      "pp=2:1f1b dp=2:zero1 tp=2:tp+sp",
      "pp=2:interleaved(2) dp=2:zero1 tp=2:tp",
      "pp=2:1f1b dp=2:zero1 cp=2:gather+zero1 tp=2:tp+sp",
      "pp=2:1f1b rep=2:ddp shard=2:zero2 tp=2:tp+sp",
      "pp=2:gpipe rep=2:ddp shard=2:zero1 cp=2:gather+zero1 tp=2:tp+sp",
      "dp=2:ddp tp=2:tp",
      "dp=8:zero1",
      "dp=5:zero2",
      "pp=3:1f1b dp=2:zero2",
      "dp=2:zero1 cp=2:heads+zero1 tp=2:tp+sp",
      "pp=2:1f1b dp=2:zero2+offload(activations)",
      "x=2:batch(R,S*,S,R) dp=2:ddp",
      "pp=2:interleaved(2) dp=2:zero3+keep",
      "pp=2:1f1b cp=2:heads+zero3",
      "pp=2:zb-h1 dp=2:zero1 tp=2:tp+sp",
      "pp=4:zb-h1 dp=2:zero3",
      "pp=2:zb-v dp=2:zero2 tp=2:tp",
      "pp=2:dualpipe dp=2:zero1 tp=2:tp+sp",
      "pp=4:dualpipe dp=2:zero2",
      "pp=2:dualpipe-v dp=2:zero3",
      "cp=3:ring",
      "dp=2:zero2 cp=4:ring+zero2 tp=2:tp",
      "pp=2:zb-h1 cp=2:ring+zero3",
      "cp=4:ring sp=2:heads",
      "dp=2:zero1 tp=2:vocab-parallel",
      "x=2:tp-2d-hidden y=2:tp+sp z=2:tp-3d-depth",
  };
  std::vector<CatalogueJob> jobs = few_catalogue_jobs();
  for (const std::string& model : models) {
    for (const std::string& placement : placements) jobs.push_back({model, placement});
  }
  for (const std::string model : {"mixtral-8x7b", "qwen3-30b-a3b"}) {
    for (const std::string placement :
         {"ep=4:ep", "ep=4:ep+zero1", "dp=2:zero1 ep=2:ep+zero1",
          "dp=2:zero1 ep=2:ep+zero1 tp=2:tp", "pp=2:1f1b dp=2:zero1 ep=2:ep+zero1 tp=2:tp+sp",
          "dp=2:zero2 ep=4:ep+zero2", "pp=2:dualpipe dp=2:zero1 ep=2:ep+zero1",
          "pp=2:zb-h1 ep=2:ep+zero1 tp=2:tp+sp"}) {
      jobs.push_back({model, placement});
      jobs.push_back({model, placement, "", "", "sequence"});
    }
  }
  for (const std::string model : {"deepseek-v3", "glm-4.5-air"}) {
    for (const std::string placement :
         {"dp=4:zero1", "dp=2:zero3", "ep=4:ep+zero1", "pp=2:1f1b dp=2:zero2 tp=2:tp",
          "pp=2:zb-v ep=2:ep+zero1"}) {
      jobs.push_back({model, placement});
    }
  }
  for (const std::string model :
       {"mamba-2.8b", "mamba2-1.3b", "falcon-mamba-7b", "codestral-mamba-7b", "jamba-v0.1",
        "nemotron-h-8b", "nemotron-3-nano-30b-a3b", "qwen3-next-80b-a3b", "kimi-linear-48b-a3b",
        "minimax-text-01", "lfm2-350m"}) {
    for (const std::string placement :
         {"dp=4:zero3", "tp=2:tp", "dp=2:zero2 tp=2:tp+sp", "pp=2:1f1b dp=2:zero1",
          "pp=2:dualpipe dp=2:zero1 tp=2:tp"}) {
      const bool one_group = model == "mamba2-1.3b" && placement.find("tp") != std::string::npos;
      const bool odd = model == "kimi-linear-48b-a3b" && placement.starts_with("pp=2");
      if (!one_group && !odd) jobs.push_back({model, placement});
    }
    jobs.push_back({model, "dp=2:zero1", "full"});
  }
  for (const std::string placement :
       {"dp=4:zero3", "dp=2:zero1 tp=2:tp+sp", "pp=2:1f1b dp=2:zero1"}) {
    for (const std::string& model : models) {
      for (const std::string recompute : {"full", "selective", "selective=attention,mlp,moe"}) {
        jobs.push_back({model, placement, recompute});
      }
    }
    for (const std::string precision : {"mixed-fp16", "fp32-fp16-compute"}) {
      jobs.push_back({"gpt2", placement, "", "", "", precision});
    }
    jobs.push_back({"llama-3.1-8b", placement, "", "4"});
    jobs.push_back({"qwen2.5-7b", placement, "", "4"});
  }
  return jobs;
}

Job load(const CatalogueJob& what) {
  JobRequest request;
  request.model = what.model;
  request.placement = what.placement;
  request.sequence = 1024;
  request.micro_batch = 1;
  request.clip = 1.0;
  if (!what.recompute.empty()) request.recompute = what.recompute;
  if (!what.lora.empty()) request.lora = what.lora;
  if (!what.balance.empty()) request.balance_loss = what.balance;
  if (!what.precision.empty()) request.precision = what.precision;
  if (!what.engine.empty()) request.engine = what.engine;
  request.global_batch = 1;
  Job job = load_job(find_catalog(), request);
  bool pipelined = false;
  const std::int64_t replicas = replicas_of(job.placement, pipelined);
  job.batch.global = replicas * (pipelined ? 12 : 2);
  return job;
}

Program with_long_pipeline(const CatalogueJob& what) {
  Job small = small_job(load(what));
  bool pipelined = false;
  small.batch.global = small.batch.micro * replicas_of(small.placement, pipelined) * 12;
  return with_short_dims(lower(small));
}

std::string fault_of(const CatalogueJob& what) {
  const Job job = load(what);
  const Verdict large = check(lower(job, [](std::string_view pass, const Program& program) {
    require_wellformed(program, {.where = "after " + std::string(pass)});
  }));
  if (!large.equivalent) return "full size: " + first_fault(large);
  const Program small = lower_small(job);
  const Verdict verdict = check(small);
  if (!verdict.equivalent) return "small: " + first_fault(verdict);
  const Verification run = verify(small);
  if (run.stuck) return "stuck: " + *run.stuck;
  if (!run.equal) return "not equal: " + run.witness.front().tensor;
  if (program_from(to_text(small), "small program") != small)
    return "reads back as another program";
  return {};
}

}  // namespace placet::testing

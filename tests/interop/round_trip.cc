// Random jobs, written and read again.
#include "round_trip.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "catalog/memory.h"
#include "interop/export.h"

namespace placet {

JobRequest base_request(const std::string& placement) {
  JobRequest job;
  job.model = "llama-3.1-8b";
  job.cluster = "h100-sxm:1";
  job.placement = placement;
  job.sequence = 4096;
  job.global_batch = 64;
  return job;
}

namespace {

// What a dialect can say: placements with degrees N, M and K whose product is the devices, and
// words of which each job has one. Empty: none is said.
struct Sayable {
  const char* dialect;
  std::vector<std::string> placements, models, recompute, precision, engines;
  std::vector<std::string> optimizers = {""};
};

// Of 32 blocks each.
const std::vector<std::string> kDense = {"llama-3.1-8b", "llama-2-7b", "mistral-7b-v0.1"};

const std::vector<Sayable>& sayable() {
  static const std::vector<Sayable> all = {
      {"torchtitan",
       {"rep=N:ddp dp=M:fsdp", "dp=N:fsdp tp=M:tp+sp", "dp=N:fsdp cp=M:gather+fsdp tp=K:tp+sp",
        "dp=N:fsdp cp=M:ring+fsdp", "dp=N:fsdp+keep tp=M:tp+sp", "dp=N:ddp",
        "pp=N:1f1b dp=M:fsdp+keep-step tp=K:tp+sp", "pp=N:gpipe dp=M:fsdp+keep-step",
        "pp=N:interleaved(2) dp=M:fsdp+keep-step", "pp=N:zb-v rep=M:ddp dp=K:fsdp+keep-step",
        "pp=N:dualpipe-v dp=M:fsdp+keep-step"},
       {"llama-3.1-8b", "llama-2-7b", "llama-2-13b"},
       {"none", "full", "every=2", "every=3", "every=7", "selective=op"},
       {"", "fp8-current", "fp8-current,gather=fp8"},
       {""}},
      {"megatron",
       {"dp=N:zero1 tp=M:tp+sp", "dp=N:ddp tp=M:tp", "pp=N:1f1b dp=M:zero1 tp=K:tp+sp",
        "pp=N:interleaved(2) dp=M:zero1 tp=K:tp+sp", "pp=N:interleaved(4) dp=M:ddp",
        "dp=N:zero1 cp=M:ring+zero1 tp=K:tp+sp", "dp=N:zero1 pp=M:1f1b", "dp=N:ddp cp=M:heads+ddp",
        "dp=N:zero1 cp=M:gather+zero1", "rep=N:ddp dp=M:zero1 tp=K:tp+sp",
        "pp=2[17,15]:1f1b dp=N:zero1", "pp=4[7,9x2,7]:1f1b dp=N:zero1",
        "pp=2[9,7,7,9]:interleaved(2) dp=N:zero1", "pp=4[5,9,9,9]:1f1b dp=N:zero1",
        "dp=N:zero1+offload(optimizer) tp=M:tp+sp", "dp=N:zero1+offload(optimizer=0.5)"},
       kDense,
       {"none", "full", "selective", "selective=mlp,norm", "selective=norm", "first=2", "first=3"},
       {"", "mixed-fp16", "fp32", "fp8", "fp8-current", "fp8-blockwise", "mixed-fp16,products=fp8"},
       {"", "", "megatron@2026+overlap", "megatron@2026+bf16-reduce",
        "megatron@2026+overlap+fused-loss", "megatron@2026+per-token",
        "megatron@2026+make_vocab_size_divisible_by=256"},
       {"adamw", "sgd"}},
      {"megatron",
       {"dp=N:zero1 tp=M:tp+sp", "pp=N:1f1b dp=M:zero1"},
       kDense,
       {"none", "full"},
       {"fp8-current", "fp8-blockwise"},
       {"", "megatron@2026+fp8-param-gather", "megatron@2026+overlap+fp8-param-gather",
        "megatron@2026+bf16-reduce+fp8-param-gather"},
       {"adamw", "adamw-bf16", "adamw-fp16", "adamw-fp8"}},
      {"megatron",
       {"dp=N:zero1 tp=M:tp+sp", "dp=N:zero1 cp=M:ring+zero1"},
       kDense,
       {"none", "selective"},
       {"fp8,master=bf16", "fp8,master=bf16,gradients=bf16,reduce=bf16"},
       {"", "megatron@2026+overlap"}},
      {"megatron",
       {"dp=N:zero3 tp=M:tp+sp", "dp=N:zero2", "pp=N:1f1b dp=M:zero3",
        "dp=N:zero3 cp=M:ring+zero3"},
       kDense,
       {"none", "full", "selective"},
       {""},
       {"", "megatron@2026+fsdp"}},
      {"megatron",
       {"dp=N:zero1 ep=M:ep+zero1", "pp=N:1f1b dp=M:zero1 ep=K:ep+zero1",
        "dp=N:zero1 ep=M:ep+zero1 tp=K:tp+sp", "ep=N:ep+zero1 tp=M:tp+sp;experts:ep"},
       {"qwen3-30b-a3b", "mixtral-8x7b"},
       {"none", "full", "selective=norm"},
       {""},
       {"", "megatron@2026+flex", "megatron@2026+allgather"}},
      {"deepspeed",
       {"dp=N:zero1 tp=M:tp", "dp=N:zero2 tp=M:tp", "dp=N:ddp", "dp=N:zero3 tp=M:tp",
        "rep=N:ddp dp=M:zero3", "dp=N:zero3 cp=M:heads+zero3", "dp=N:zero1 cp=M:heads+zero1",
        "rep=N:hpz dp=M:zero3", "pp=N:1f1b dp=M:zero1", "pp=N:1f1b dp=M:ddp tp=K:tp",
        "dp=N:zero2+offload(optimizer)", "dp=N:zero3+offload(optimizer=0.5)",
        "dp=N:zero3+offload(optimizer,nvme)", "dp=N:zero3+offload(optimizer)+offload(parameters)"},
       kDense,
       {"none", "full", "every=2"},
       {"", "mixed-fp16", "fp32"},
       {"", "deepspeed@0.19.3+reduce_bucket_size=50000000"},
       {"adamw", "sgd", "muon", "lion"}},
      {"deepspeed",
       {"dp=N:zero1 tp=M:tp", "dp=N:zero2"},
       kDense,
       {"none", "full"},
       {""},
       {"deepspeed@0.19.3+overlap"}},
      {"nanotron",
       {"dp=N:ddp tp=M:tp+sp", "dp=N:zero1 tp=M:tp+sp", "dp=N:ddp tp=M:tp",
        "pp=N:1f1b dp=M:zero1 tp=K:tp", "pp=N:gpipe tp=M:tp+sp", "dp=N:ddp cp=M:ring+ddp tp=K:tp"},
       kDense,
       {"none", "full"},
       {""},
       {"", "nanotron@2026.04+make_vocab_size_divisible_by=64"}},
      {"accelerate",
       {"dp=N:fsdp tp=M:tp", "dp=N:fsdp+keep", "rep=N:ddp dp=M:fsdp", "dp=N:ddp",
        "rep=N:ddp dp=M:fsdp tp=K:tp", "dp=N:fsdp cp=M:gather+fsdp", "dp=N:fsdp cp=M:ring+fsdp",
        "dp=N:fsdp+offload(parameters)+offload(gradients)+offload(optimizer)"},
       kDense,
       {"none", "full"},
       {"", "fp8-current"},
       {""},
       {"adamw", "sgd"}},
      {"accelerate",
       {"dp=N:fsdp", "dp=N:fsdp+keep"},
       kDense,
       {"none"},
       {"fp8"},
       {"accelerate@1+transformer-engine"}},
      {"accelerate",
       {"dp=N:fsdp", "dp=N:fsdp+keep"},
       kDense,
       {"none"},
       {"fp8-current,gather=fp8"},
       {""}},
      {"axolotl",
       {"dp=N:fsdp tp=M:tp", "dp=N:fsdp+keep", "rep=N:ddp dp=M:fsdp", "dp=N:fsdp cp=M:gather+fsdp",
        "dp=N:fsdp cp=M:ring+fsdp"},
       kDense,
       {"none", "full"},
       {""},
       {""},
       {"adamw", "sgd", "lion", "muon"}},
      {"llamafactory",
       {"pp=N:1f1b dp=M:zero1", "dp=N:zero1 tp=M:tp+sp", "dp=N:ddp tp=M:tp",
        "dp=N:zero1 cp=M:ring+zero1", "pp=N:interleaved(2) dp=M:zero1 tp=K:tp+sp",
        "dp=N:zero1 cp=M:gather+zero1", "pp=4[5,9,9,9]:1f1b dp=N:zero1",
        "dp=N:zero1+offload(optimizer=0.5)"},
       kDense,
       {"none", "full", "selective", "selective=mlp,norm", "first=2", "uniform=2"},
       {""},
       {""}},
      {"llm-foundry",
       {"dp=N:fsdp", "dp=N:fsdp+keep", "rep=N:ddp dp=M:fsdp", "dp=N:ddp"},
       kDense,
       {"none", "full"},
       {""},
       {""},
       {"adamw", "lion"}},
      {"gpt-neox",
       {"pp=N:1f1b dp=M:ddp", "dp=N:ddp tp=M:tp", "pp=N:1f1b dp=M:ddp tp=K:tp"},
       {"gpt-neox-20b", "llama-2-7b"},
       {"none", "full"},
       {"mixed-fp16"},
       {""}},
      {"nemo",
       {"dp=N:zero1 tp=M:tp+sp", "dp=N:ddp tp=M:tp", "pp=N:1f1b dp=M:zero1 tp=K:tp+sp",
        "pp=N:interleaved(2) dp=M:zero1 tp=K:tp+sp", "dp=N:zero1 cp=M:ring+zero1",
        "dp=N:zero1 pp=M:1f1b tp=K:tp+sp"},
       kDense,
       {"none", "full", "selective", "first=2"},
       {"", "mixed-fp16", "fp32", "fp8", "fp8-current", "fp8-blockwise"},
       {""}},
      {"nemo",
       {"dp=N:zero1 tp=M:tp+sp", "pp=N:1f1b dp=M:zero1 tp=K:tp+sp"},
       kDense,
       {"none", "full"},
       {"master=fp32", "fp8,master=fp32"},
       {"", "megatron@2024+bf16-reduce"}},
      {"nemo",
       {"dp=N:zero1 tp=M:tp+sp"},
       kDense,
       {"none"},
       {"fp8", "fp8-current"},
       {"megatron@2024+no-fp8-param-gather"}},
      {"megatron-bridge",
       {"dp=N:zero1 tp=M:tp+sp", "dp=N:ddp tp=M:tp", "pp=N:1f1b dp=M:zero1 tp=K:tp+sp",
        "pp=N:interleaved(2) dp=M:zero1 tp=K:tp+sp", "dp=N:zero1 cp=M:ring+zero1",
        "dp=N:zero1 cp=M:gather+zero1", "rep=N:ddp dp=M:zero1", "pp=4[5,9,9,9]:1f1b dp=N:zero1",
        "dp=N:zero1+offload(optimizer=0.5)"},
       kDense,
       {"none", "full", "selective", "selective=mlp,norm", "first=2"},
       {"", "mixed-fp16", "fp8", "fp8-current", "fp8-blockwise"},
       {""}},
      {"megatron-bridge",
       {"dp=N:zero1 tp=M:tp+sp"},
       kDense,
       {"none"},
       {"fp8", "fp8-current"},
       {"megatron-bridge@2026+fp32-reduce",
        "megatron-bridge@2026+no-fp8-param-gather+fp32-reduce"}},
      {"maxtext",
       {"dp=N:fsdp", "rep=N:ddp dp=M:fsdp", "dp=N:fsdp tp=M:tp", "dp=N:fsdp cp=M:gather+fsdp",
        "dp=N:fsdp cp=M:ring+fsdp", "dp=N:fsdp+offload(optimizer)", "dp=N:ddp"},
       {"llama-3.1-8b"},
       {"full", "selective=minimal"},
       {"", "fp8", "fp8-current"},
       {""},
       {"adamw", "sgd"}}};
  return all;
}

class Dice {
 public:
  explicit Dice(unsigned seed) : engine_(seed) {}
  template <typename List>
  const typename List::value_type& one_of(const List& list) {
    return list[engine_() % list.size()];
  }

 private:
  std::mt19937 engine_;
};

void replace(std::string& text, const std::string& what, std::int64_t with) {
  if (const auto at = text.find(what); at != std::string::npos) {
    text.replace(at, what.size(), "=" + std::to_string(with));
  }
}

bool has(const std::string& text, const char* what) { return text.find(what) != std::string::npos; }

// 16 devices, of which some stand in the placement already ("pp=4[...]").
std::string with_degrees(std::string placement, Dice& dice) {
  std::int64_t left = 16;
  if (has(placement, "pp=2[")) left /= 2;
  if (has(placement, "pp=4[")) left /= 4;
  for (const char* name : {"=K", "=M"}) {
    if (!has(placement, name)) continue;
    const std::int64_t degree = left > 4 ? dice.one_of(std::vector<std::int64_t>{2, 4}) : 2;
    replace(placement, name, degree);
    left /= degree;
  }
  replace(placement, "=N", left);
  return placement;
}

void take_word(std::optional<std::string>& into, const std::vector<std::string>& words,
               Dice& dice) {
  if (const std::string& word = dice.one_of(words); !word.empty()) into = word;
}

JobRequest random_job(const Sayable& dialect, Dice& dice) {
  JobRequest job = base_request(with_degrees(dice.one_of(dialect.placements), dice));
  job.cluster = "h100-sxm:2";
  job.model = dice.one_of(dialect.models);
  job.sequence = dice.one_of(std::vector<std::int64_t>{1024, 2048, 4096, 8192});
  job.micro_batch = dice.one_of(std::vector<std::int64_t>{1, 2, 4});
  job.global_batch = dice.one_of(std::vector<std::int64_t>{64, 128, 256, 512});
  job.clip = dice.one_of(std::vector<double>{0, 0.5, 1});
  job.recompute = dice.one_of(dialect.recompute);
  take_word(job.precision, dialect.precision, dice);
  take_word(job.engine, dialect.engines, dice);
  take_word(job.optimizer, dialect.optimizers, dice);
  return job;
}

void expect_same_after_reading(const Catalog& catalog, const JobRequest& job,
                               const Exported& exported) {
  for (const JobDifference& word : exported.unsaid) {
    ADD_FAILURE() << exported.dialect << " " << *job.placement << ": " << word.word << " is "
                  << word.one << ", said is " << word.other;
  }
  const SharedDialect dialect = shared_dialect(catalog, exported.dialect, "test");
  const ExportedFile& file = exported.files.front();
  ImportRequest reading{.sources = {parse_source(file.text, dialect->form, file.name)},
                        .dialect = {},
                        .given = exported.beside};
  reading.given["world-size"] = "16";
  const Imported read = import_sources(catalog, reading);
  JobRequest again = request_of_words(read.job, "read");
  EXPECT_EQ(again.sequence, job.sequence);
  EXPECT_EQ(again.micro_batch, job.micro_batch);
  EXPECT_EQ(again.global_batch, job.global_batch);
  JobRequest meant = job;
  if (!meant.engine) meant.engine = again.engine;
  again.cluster = job.cluster;
  EXPECT_EQ(differences_of(load_job(catalog, meant), load_job(catalog, again)),
            std::vector<JobDifference>{})
      << exported.dialect << " " << *job.placement;
}

}  // namespace

std::vector<std::string> sayable_dialects() {
  std::vector<std::string> names;
  for (const Sayable& one : sayable()) {
    if (std::ranges::find(names, one.dialect) == names.end()) names.emplace_back(one.dialect);
  }
  return names;
}

void round_trips(const std::string& name, unsigned jobs) {
  Catalog catalog = find_catalog();
  catalog.memory = std::make_shared<CatalogMemory>();
  std::vector<Sayable> kinds = sayable();
  std::erase_if(kinds, [&](const Sayable& one) { return one.dialect != name; });
  Dice dice(7);
  for (unsigned i = 0; i < jobs; ++i) {
    const Sayable& kind = kinds[i % kinds.size()];
    const JobRequest job = random_job(kind, dice);
    SCOPED_TRACE(job.model.value_or("") + " " + job.placement.value_or("") + " " +
                 job.recompute.value_or("") + " " + job.engine.value_or("") + " " +
                 job.precision.value_or(""));
    expect_same_after_reading(catalog, job, export_job(catalog, job, name));
  }
}

}  // namespace placet

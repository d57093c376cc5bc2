// Random jobs, written and read again.
#include "round_trip.h"

#include <gtest/gtest.h>

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

struct Sayable {
  const char* dialect;
  std::vector<std::string> axes;  // one placement each; N, M: degrees of which 8 is the product
  std::vector<std::string> recompute, precision;
};

const std::vector<Sayable>& sayable() {
  static const std::vector<Sayable> all = {
      {"torchtitan",
       {"rep=N:ddp dp=M:fsdp", "dp=N:fsdp tp=M:tp+sp", "dp=N:fsdp cp=M:gather+fsdp",
        "pp=N:1f1b dp=M:fsdp+keep-step", "pp=N:gpipe dp=M:fsdp+keep-step", "dp=8:ddp"},
       {"none", "full", "every=2", "every=3", "selective=op"},
       {}},
      {"megatron",
       {"dp=N:zero1 tp=M:tp+sp", "dp=N:ddp tp=M:tp", "pp=N:1f1b dp=M:zero1",
        "pp=N:interleaved(2) tp=M:tp+sp", "dp=N:zero3 tp=M:tp+sp", "dp=N:zero1 cp=M:ring+zero1",
        "dp=N:ddp cp=M:heads+ddp", "dp=8:zero2", "pp=2[17,15]:1f1b dp=4:zero1",
        "pp=4[7,9x2,7]:1f1b dp=2:zero1", "dp=8:zero1+offload(optimizer)"},
       {"none", "full", "selective", "selective=mlp,norm", "first=2"},
       {"", "mixed-fp16", "fp32"}},
      {"deepspeed",
       {"dp=8:zero1", "dp=8:zero2", "dp=8:ddp", "dp=8:zero3", "rep=N:ddp dp=M:zero3",
        "dp=N:zero3 sp=M:heads+zero3", "dp=N:zero1 tp=M:tp", "dp=8:zero2+offload(optimizer)",
        "dp=8:zero3+offload(optimizer)+offload(parameters)"},
       {"none", "full", "every=2"},
       {"", "mixed-fp16", "fp32"}},
      {"nanotron",
       {"dp=N:zero1 tp=M:tp+sp", "dp=N:ddp tp=M:tp", "pp=N:1f1b dp=M:zero1",
        "pp=N:gpipe tp=M:tp+sp"},
       {"none", "full"},
       {}},
      {"accelerate",
       {"dp=8:fsdp", "dp=8:fsdp+keep", "rep=N:ddp dp=M:fsdp", "dp=N:fsdp tp=M:tp",
        "dp=N:fsdp cp=M:gather+fsdp", "dp=8:ddp",
        "dp=8:fsdp+offload(parameters)+offload(gradients)+offload(optimizer)"},
       {"none", "full"},
       {}},
      {"axolotl",
       {"dp=8:fsdp", "dp=8:fsdp+keep", "rep=N:ddp dp=M:fsdp", "dp=N:fsdp tp=M:tp",
        "dp=N:fsdp cp=M:gather+fsdp"},
       {"none", "full"},
       {}},
      {"llamafactory",
       {"pp=N:1f1b dp=M:zero1", "dp=N:zero1 tp=M:tp+sp", "dp=N:ddp tp=M:tp",
        "dp=N:zero1 cp=M:ring+zero1"},
       {"none", "full", "selective"},
       {}},
      {"llm-foundry", {"dp=8:fsdp", "dp=8:fsdp+keep", "rep=N:ddp dp=M:fsdp"}, {"none", "full"}, {}},
      {"gpt-neox",
       {"pp=N:1f1b dp=M:ddp", "dp=N:ddp tp=M:tp", "pp=N:1f1b tp=M:tp+sp"},
       {"none", "full"},
       {"mixed-fp16"}},
      {"nemo",
       {"dp=N:zero1 tp=M:tp+sp", "dp=N:ddp tp=M:tp", "pp=N:1f1b dp=M:zero1",
        "pp=N:interleaved(2) tp=M:tp+sp", "dp=N:zero1 cp=M:ring+zero1"},
       {"none", "full", "selective"},
       {"", "mixed-fp16", "fp32"}},
      {"megatron-bridge",
       {"dp=N:zero1 tp=M:tp+sp", "dp=N:ddp tp=M:tp", "pp=N:1f1b dp=M:zero1",
        "pp=N:interleaved(2) tp=M:tp+sp", "dp=N:zero1 cp=M:ring+zero1"},
       {"none", "full", "selective"},
       {}},
      {"maxtext", {"dp=8:fsdp", "rep=N:ddp dp=M:fsdp", "dp=N:fsdp tp=M:tp"}, {"full"}, {}}};
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

JobRequest random_job(const Sayable& dialect, Dice& dice) {
  std::string placement = dice.one_of(dialect.axes);
  const std::int64_t first = dice.one_of(std::vector<std::int64_t>{2, 4});
  replace(placement, "=N", first);
  replace(placement, "=M", 8 / first);
  JobRequest job = base_request(placement);
  job.sequence = dice.one_of(std::vector<std::int64_t>{1024, 4096, 8192});
  job.micro_batch = dice.one_of(std::vector<std::int64_t>{1, 2});
  job.global_batch = dice.one_of(std::vector<std::int64_t>{64, 128, 256});
  job.recompute = dice.one_of(dialect.recompute);
  job.clip = dice.one_of(std::vector<double>{0, 0.5, 1});
  if (!dialect.precision.empty()) {
    if (const std::string& word = dice.one_of(dialect.precision); !word.empty()) {
      job.precision = word;
    }
  }
  return job;
}

void expect_same_after_reading(const Catalog& catalog, const JobRequest& job,
                               const Exported& exported) {
  for (const JobDifference& word : exported.unsaid) {
    ADD_FAILURE() << exported.dialect << " " << *job.placement << ": " << word.word << " is "
                  << word.one << ", said is " << word.other;
  }
  const Dialect dialect = load_dialect(catalog, exported.dialect, "test");
  const ExportedFile& file = exported.files.front();
  ImportRequest reading{.sources = {parse_source(file.text, dialect.form, file.name)},
                        .dialect = {},
                        .given = exported.beside};
  reading.given["world-size"] = "8";
  const Imported read = import_sources(catalog, reading);
  JobRequest again = request_of_words(read.job, "read");
  EXPECT_EQ(again.sequence, job.sequence);
  EXPECT_EQ(again.micro_batch, job.micro_batch);
  EXPECT_EQ(again.global_batch, job.global_batch);
  JobRequest meant = job;
  meant.engine = again.engine;
  again.cluster = job.cluster;
  EXPECT_EQ(differences_of(load_job(catalog, meant), load_job(catalog, again)),
            std::vector<JobDifference>{})
      << exported.dialect << " " << *job.placement;
}

}  // namespace

void round_trips(unsigned jobs) {
  Catalog catalog = find_catalog();
  catalog.memory = std::make_shared<CatalogMemory>();
  Dice dice(7);
  for (const Sayable& dialect : sayable()) {
    for (unsigned i = 0; i < jobs; ++i) {
      const JobRequest job = random_job(dialect, dice);
      expect_same_after_reading(catalog, job, export_job(catalog, job, dialect.dialect));
    }
  }
}

}  // namespace placet

#include "call/checkpoints.h"

#include <filesystem>

#include "call/corpora.h"
#include "call/request_words.h"
#include "catalog/job.h"
#include "checkpoint/reshard.h"
#include "units/error.h"

namespace placet {
namespace {

using checkpoint::Checkpoint;
using checkpoint::CheckpointFacts;

std::string index_of(const std::string& folder) {
  return (std::filesystem::path(folder) / checkpoint::kIndexFile).string();
}

std::string absolute(const std::string& word) {
  std::error_code error;
  if (word.empty() || !std::filesystem::exists(word, error)) return word;
  const std::filesystem::path path = std::filesystem::absolute(word, error);
  return error ? word : path.string();
}

/// Words as they are found again from any other folder.
JobWords saved_words(JobFlags flags) {
  std::error_code error;
  const std::filesystem::path here = std::filesystem::current_path(error);
  flags.model = absolute(model_from_folder(here, flags.model));
  flags.cluster = cluster_from_folder(here, flags.cluster);
  flags.engine = file_from_folder(here, flags.engine);
  flags.job_file = absolute(flags.job_file);
  for (std::string& one : flags.from) one = absolute(one);
  return job_words_of(flags);
}

std::vector<std::pair<std::string, std::int64_t>> mesh_of(const Program& program) {
  std::vector<std::pair<std::string, std::int64_t>> mesh;
  mesh.reserve(program.axes.size());
  for (const ProgramAxis& axis : program.axes) mesh.emplace_back(axis.name, axis.degree);
  mesh.pop_back();  // the micro-batches
  return mesh;
}

std::string mesh_text(const std::vector<std::pair<std::string, std::int64_t>>& mesh) {
  std::string text;
  for (const auto& [axis, degree] : mesh) {
    text += (text.empty() ? "" : " ") + axis + "=" + std::to_string(degree);
  }
  return text.empty() ? "one device" : text;
}

void require_mesh(const RunRequest& request, const Program& program) {
  const auto& saved = request.from->facts().mesh;
  if (saved == mesh_of(program)) return;
  throw InputError({.where = "--resume",
                    .value = request.resume,
                    .problem = "is the state of the mesh " + mesh_text(saved) + ", the run's is " +
                               mesh_text(mesh_of(program)),
                    .allowed = "a checkpoint of this placement: `placet reshard` makes it"});
}

std::string placement_of(const JobWords& words) {
  for (const auto& [key, said] : words) {
    if (key == "placement") return said.front();
  }
  return {};
}

/// The words of the new job: what is said, then what the checkpoint says beside the placement.
JobFlags job_of(const ReshardRequest& request, const Checkpoint& from) {
  if (request.job.job.placements.empty()) {
    throw InputError({.where = "--placement",
                      .problem = "is missing",
                      .allowed = "the placement that the state is to have"});
  }
  return filled(request.job.job, from.facts().job, index_of(request.from) + ": job");
}

}  // namespace

void open_checkpoint(RunRequest& request) {
  if (request.resume.empty()) return;
  request.from = std::make_shared<const Checkpoint>(request.resume);
  request.program.job =
      filled(request.program.job, request.from->facts().job, index_of(request.resume) + ": job");
}

std::string mode_of(const RunRequest& request) {
  if (request.from == nullptr) return request.mode.empty() ? "canonical" : request.mode;
  const std::string& saved = request.from->facts().mode;
  if (request.mode.empty() || request.mode == saved) return saved;
  throw InputError({.where = "--mode",
                    .value = request.mode,
                    .problem = "is another mode than that of the checkpoint",
                    .allowed = saved});
}

MeaningWords meaning_words_of(const RunRequest& request) {
  MeaningWords out;
  if (request.from != nullptr) out.words = request.from->facts().meanings;
  if (request.corpus.empty()) {
    out.corpus = taken_corpus(out.words);
  } else {
    std::erase_if(out.words, [](const std::string& word) { return word.starts_with(kCorpusWord); });
    out.corpus = corpus_of_file(request.corpus);
  }
  out.words.insert(out.words.end(), request.meanings.begin(), request.meanings.end());
  return out;
}

void require_place(const RunRequest& request) {
  if (!request.save.empty()) checkpoint::require_new_folder(request.save, "--save");
}

void resume_and_save(const RunRequest& request, const Program& program, RunOptions& options) {
  int steps = options.steps;
  if (request.from != nullptr) {
    require_mesh(request, program);
    options.resume = request.from.get();
    steps += options.resume->steps();
  }
  if (request.save.empty()) return;
  const CheckpointFacts facts{.steps = steps,
                              .mode = std::string(name_of(options.arithmetic)),
                              .job = saved_words(request.program.job),
                              .mesh = mesh_of(program),
                              .meanings = words_of(options.meanings)};
  checkpoint::require_facts(facts, "--save");
  options.on_end = [facts, folder = request.save](const execute::StateView& state) {
    checkpoint::write_checkpoint(folder, facts, state, "--save");
  };
}

ReshardedRun resharded(const Catalog& catalog, const ReshardRequest& request) {
  checkpoint::require_new_folder(request.output, "-o");
  const Checkpoint from(request.from);
  ProgramRequest asked = request.job;
  asked.job = job_of(request, from);
  return on_said(catalog, asked.job, AskedOf::all, [&](const JobRequest& job) {
    const Arithmetic arithmetic = arithmetic_from(from.facts().mode);
    ProgramToRun found = program_to_run(
        catalog, asked, job, [&](const Job& own) { return runs_as_it_is(own, arithmetic); });
    ReshardedRun out{.asked = std::move(found.asked), .sheet = {}};
    if (!out.asked.has_step) return out;
    CheckpointFacts facts = from.facts();
    facts.job = saved_words(asked.job);
    facts.mesh = mesh_of(found.program);
    checkpoint::require_facts(facts, "-o");
    const checkpoint::Resharded state(from,
                                      state_slices(found.program, limits_of_runs(arithmetic)));
    out.sheet = {.from = placement_of(from.facts().job),
                 .to = placement_of(facts.job),
                 .run_as = out.asked.judged.run_as,
                 .steps = facts.steps,
                 .from_ranks = from.ranks(),
                 .output = request.output};
    for (const auto& [axis, degree] : facts.mesh) out.sheet.ranks *= static_cast<int>(degree);
    out.sheet.bytes = checkpoint::write_checkpoint(request.output, facts, state, "-o");
    return out;
  });
}

}  // namespace placet

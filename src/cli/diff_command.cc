// placet diff A B: what two jobs or configurations say differently, and what that changes.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "call/judged.h"
#include "catalog/reader.h"
#include "cli/command.h"
#include "cli/data_flag.h"
#include "cli/import_flags.h"
#include "cli/output.h"
#include "derive/time.h"
#include "interop/diff.h"
#include "report/human.h"
#include "report/timeline.h"
#include "units/error.h"

namespace placet {
namespace {

struct DiffCall {
  ImportFlags flags;  // for what configurations leave out
};

// What stands beside the words: one line of the report.
struct Figure {
  std::string what, one, other;
};

// A job file has a placement at its top, a configuration has the keys of its engine.
bool is_job_file(const std::string& file) {
  if (!file.ends_with(".toml") && !file.ends_with(".json")) return false;
  const Json document = read_document(file);
  return document.is_object() && document.contains("placement") &&
         document["placement"].is_string();
}

JobRequest request_of_file(const DiffCall& call, const std::string& file) {
  if (is_job_file(file)) return read_job_file(file);
  ImportFlags flags = call.flags;
  flags.words.sources = {file};
  const Imported imported = import_of(flags);
  job_text(imported);  // refuses what is no job yet, with the flags that complete it
  JobRequest request = request_of_words(imported.job, file);
  if (!call.flags.words.cluster.empty()) request.cluster = call.flags.words.cluster;
  return request;
}

std::string time_of(const Job& job) {
  return job.cluster ? human_seconds(derive_time(job).step) : "no cluster is named";
}

std::vector<Figure> figures_of(const Judged& one, const Judged& other) {
  const auto row = [&](const char* what, auto&& figure) {
    return Figure{.what = what,
                  .one = one.derivation.meaningful ? figure(one) : "no meaning",
                  .other = other.derivation.meaningful ? figure(other) : "no meaning"};
  };
  return {row("memory", [](const Judged& j) { return human_bytes(most_needed(j.derivation)); }),
          row("bytes sent", [](const Judged& j) { return human_bytes(j.derivation.sent); }),
          row("step", [](const Judged& j) { return time_of(*j.job); })};
}

std::string text_of(const std::vector<JobDifference>& differences,
                    const std::vector<Figure>& figures) {
  if (differences.empty()) return "alike\n";
  std::string text = "Words\n";
  for (const JobDifference& word : differences) {
    text += fmt::format("  {}\n    {}\n    {}\n", word.word, word.one, word.other);
  }
  text += "\nWhat follows\n";
  for (const Figure& figure : figures) {
    text += fmt::format("  {:<10}  {:>12}  {:>12}\n", figure.what, figure.one, figure.other);
  }
  return text;
}

std::string json_of(const std::vector<JobDifference>& differences,
                    const std::vector<Figure>& figures) {
  Json document{
      {"schema", "placet.diff/1"}, {"differences", Json::array()}, {"figures", Json::array()}};
  for (const JobDifference& word : differences) {
    document["differences"].push_back(
        {{"word", word.word}, {"one", word.one}, {"other", word.other}});
  }
  for (const Figure& figure : figures) {
    document["figures"].push_back(
        {{"what", figure.what}, {"one", figure.one}, {"other", figure.other}});
  }
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

int diff_jobs(const DiffCall& call) {
  if (call.flags.words.sources.size() != 2) {
    throw InputError({.where = "SOURCES",
                      .value = std::to_string(call.flags.words.sources.size()),
                      .problem = "is not the number of files that differ",
                      .allowed = "two: job files or configurations"});
  }
  const Catalog catalog = called_catalog();
  const JobRequest first = request_of_file(call, call.flags.words.sources[0]);
  const JobRequest second = request_of_file(call, call.flags.words.sources[1]);
  const Judged one = judged_of(catalog, first, ShownClasses::fullest);
  const Judged other = judged_of(catalog, second, ShownClasses::fullest);
  const std::vector<JobDifference> differences = differences_of(*one.job, *other.job);
  const std::vector<Figure> figures =
      differences.empty() ? std::vector<Figure>{} : figures_of(one, other);
  print(call.flags.json ? json_of(differences, figures) : text_of(differences, figures));
  return differences.empty() ? kGood : kBad;
}

}  // namespace

void add_diff_command(CLI::App& program, Action& action) {
  auto call = std::make_shared<DiffCall>();
  CLI::App* command = program.add_subcommand(
      "diff", "What two job files or configurations say differently, and what that changes");
  add_import_flags(*command, call->flags);
  command->footer(
      "\nExamples:\n"
      "  placet diff job.toml train.toml --cluster h100-sxm:1\n"
      "  placet diff old.toml new.toml --world-size 64 --json\n");
  command->callback([call, &action] { action = [call] { return diff_jobs(*call); }; });
}

}  // namespace placet

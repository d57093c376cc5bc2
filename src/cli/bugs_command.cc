// placet bugs: bugs of real training systems, and what Placet says of them.
#include <memory>
#include <optional>

#include "catalog/bug_catalog.h"
#include "catalog/file_text.h"
#include "check/check.h"
#include "cli/catalogue_call.h"
#include "cli/command.h"
#include "cli/data_flag.h"
#include "cli/output.h"
#include "lower/lower.h"
#include "program/fault.h"
#include "program/text.h"
#include "report/bug.h"
#include "units/error.h"

namespace placet {
namespace {

constexpr std::size_t kMostBugBytes = std::size_t{1} << 20;

struct BugsCall {
  CatalogueCall list;
  std::string name;
};

Catalogue list_bugs(const Catalog& catalog) {
  Catalogue list{.kind = "bugs",
                 .columns = {"system", "axes", "breaks"},
                 .rows = {},
                 .hint = "One of them with what Placet says of it: placet bugs B003."};
  for (const std::string& name : names_in(catalog, "bugs")) {
    const Bug bug = load_bug(catalog, name);
    list.rows.push_back(
        {.name = bug.name,
         .title = bug.title,
         .cells = {bug.system, bug.axes, bug.is_visible() ? bug.condition : "not visible"},
         .sources = {bug.source}});
  }
  return list;
}

BugStory story_of(const Bug& bug) {
  BugStory story{.name = bug.name,
                 .title = bug.title,
                 .story = bug.story,
                 .facts = {{"system", bug.system},
                           {"thread", bug.thread},
                           {"source", bug.source},
                           {"kind", bug.kind},
                           {"axes", bug.axes},
                           {"state", bug.state}},
                 .call = {},
                 .faults_mean = bug.faults_mean,
                 .not_visible = bug.not_visible};
  if (!bug.is_visible()) return story;
  story.facts.emplace_back("breaks", bug.condition);
  story.call = call_of(bug);
  return story;
}

Verdict verdict_of(const Catalog& catalog, const Bug& bug) {
  Program program = bug.job
                        ? lower(load_job(catalog, *bug.job))
                        : program_from(read_file_text(bug.program, kMostBugBytes, "a step program"),
                                       bug.program.string());
  std::vector<Fault> faults;
  faults.reserve(bug.faults.size());
  for (const std::string& words : bug.faults) faults.push_back(fault_from(words));
  return check(with_faults(std::move(program), faults));
}

int show_bug(const BugsCall& call) {
  if (call.list.names || !call.list.html.empty()) {
    throw InputError({.where = call.list.names ? "--names" : "--html",
                      .problem = "is for the list of all",
                      .allowed = "`placet bugs` without a name"});
  }
  const Catalog catalog = called_catalog();
  const Bug bug = load_bug(catalog, call.name);
  const BugStory story = story_of(bug);
  std::optional<Verdict> verdict;
  std::optional<CheckFinding> finding;
  if (bug.is_visible()) {
    verdict = verdict_of(catalog, bug);
    finding = finding_with(*verdict, bug.condition, bug.finding);
  }
  print(call.list.json ? bug_json(story, verdict) : bug_text(story, finding, output_style()));
  return finding || !bug.is_visible() ? kGood : kBad;
}

}  // namespace

void add_bugs_command(CLI::App& program, Action& action) {
  auto call = std::make_shared<BugsCall>();
  CLI::App* command =
      program.add_subcommand("bugs", "Bugs of real training systems, and what Placet says of them");
  command->add_option("BUG", call->name, "One of them: B003");
  add_catalogue_flags(*command, call->list);
  command->footer(
      "\nExamples:\n"
      "  placet bugs\n"
      "  placet bugs B003\n");
  command->callback([call, &action] {
    action = [call] {
      return call->name.empty() ? show_catalogue(call->list, list_bugs(called_catalog()))
                                : show_bug(*call);
    };
  });
}

}  // namespace placet

#include "call/call.h"

#include <algorithm>
#include <array>
#include <functional>

#include "call/configurations.h"
#include "call/experiments.h"
#include "call/export_sources.h"
#include "call/judged.h"
#include "call/lists.h"
#include "call/programs.h"
#include "call/request_words.h"
#include "call/runs.h"
#include "report/json.h"
#include "report/plans.h"
#include "report/trace.h"
#include "units/error.h"
#include "units/nearest.h"

namespace placet {
namespace {

constexpr int kGood = 0;
constexpr int kBad = 1;
constexpr int kWrongInput = 2;

struct Asked {
  const Catalog& catalog;
  const Reader& request;
  const PlanWatch& watch;
  std::function<void(const std::string&)> warn;
};

Answer answer_of(bool good, std::string document) {
  return {.status = good ? kGood : kBad, .document = std::move(document), .warnings = {}};
}

Answer answer_model(const Asked& asked) {
  allow_flags(asked.request, {});
  return on_said(asked.catalog, job_flags_in(asked.request), AskedOf::what_to_train,
                 [&](const JobRequest& request) {
                   const auto [model, sequence] = shown_model_of(asked.catalog, request);
                   return answer_of(true, model_json(model, sequence));
                 });
}

Answer answer_derive(const Asked& asked) {
  allow_flags(asked.request, {});
  const JobFlags flags = job_flags_in(asked.request);
  require_one_placement(flags);
  return on_said(asked.catalog, flags, AskedOf::all, [&](const JobRequest& request) {
    const Judged judged = judged_of(asked.catalog, request, ShownClasses::all);
    return answer_of(is_good(judged.derivation), derivation_json(judged));
  });
}

Answer answer_compare(const Asked& asked) {
  allow_flags(asked.request, {});
  const JobFlags flags = job_flags_in(asked.request);
  return on_said(asked.catalog, flags, AskedOf::all, [&](const JobRequest& request) {
    return answer_of(true, comparison_json(compared_of(asked.catalog, request, flags.placements,
                                                       flags.clusters)));
  });
}

Answer answer_simulate(const Asked& asked) {
  allow_flags(asked.request, {"straggler", "slices"});
  const JobFlags flags = job_flags_in(asked.request);
  require_one_placement(flags);
  const auto shown = asked.request.find("slices");
  const bool slices = shown && shown->flag();
  return on_said(asked.catalog, flags, AskedOf::all, [&](const JobRequest& request) {
    const PlayedStep step = played_step_of(
        asked.catalog, {.job = request, .stragglers = words_in(asked.request, "straggler")});
    if (!step.has_time) return answer_of(false, timeline_json(step.judged));
    const bool good = is_good(step.judged.derivation);
    if (slices) return answer_of(good, slices_json(step.judged, step.simulated));
    return answer_of(good, timeline_json(step.timeline()));
  });
}

Answer answer_plan(const Asked& asked) {
  allow_flags(asked.request,
              {"goal", "top", "fix", "require", "max-memory", "allow-tight", "tokens", "price",
               "scale", "front", "front-step", "goodput", "proofs"});
  const PlanRequest plan = plan_request_in(asked.request);
  return on_said(asked.catalog, plan.flags, AskedOf::what_to_train, [&](const JobRequest& request) {
    const PlannedJob planned = planned_of(asked.catalog, plan, request, asked.watch);
    return answer_of(!planned.sheet.plans.empty(), plans_json(planned.sheet));
  });
}

Answer answer_lower(const Asked& asked) {
  allow_flags(asked.request, {});
  const JobFlags flags = job_flags_in(asked.request);
  require_one_placement(flags);
  return on_said(asked.catalog, flags, AskedOf::all, [&](const JobRequest& request) {
    const LoweredJob lowered = lowered_of(asked.catalog, request);
    return answer_of(true, program_json(lowered.program, lowered.text));
  });
}

/// What both say before any verdict; none: there is one.
std::optional<Answer> unjudged(const AskedProgram& program) {
  if (!program.has_step) return answer_of(false, unjudged_json(program.rules));
  if (program.listed_only) return answer_of(true, faults_json(program.listed));
  return std::nullopt;
}

ProgramRequest program_asked(const Asked& asked) {
  ProgramRequest program = program_request_in(asked.request);
  program.warn = asked.warn;
  return program;
}

Answer answer_check(const Asked& asked) {
  allow_flags(asked.request, {"fault", "accept", "list-faults"});
  const ProgramRequest program = program_asked(asked);
  return on_said(asked.catalog, program.job, AskedOf::all, [&](const JobRequest& request) {
    const auto [found, verdict] = checked_of(asked.catalog, program, request);
    if (auto answer = unjudged(found)) return *std::move(answer);
    return answer_of(verdict.equivalent, verdict_json(verdict, found.judged.methods, found.rules));
  });
}

Answer answer_verify(const Asked& asked) {
  allow_flags(asked.request, {"fault", "accept", "list-faults", "seeds"});
  const ProgramRequest program = program_asked(asked);
  return on_said(asked.catalog, program.job, AskedOf::all, [&](const JobRequest& request) {
    const VerifiedProgram verified = verified_of(asked.catalog, program, request);
    if (auto answer = unjudged(verified.asked)) return *std::move(answer);
    return answer_of(verified.run.equal, verification_json(verified.run, check(verified.program),
                                                           verified.asked.rules));
  });
}

Answer answer_run(const Asked& asked) {
  if (const auto name = asked.request.find("experiment")) {
    asked.request.allow({"subcommand", "experiment"});
    const Experiment experiment =
        experiment_of(asked.catalog, name->text(), {.in_full_size = false});
    return answer_of(experiment.holds(), experiment_json(experiment));
  }
  allow_flags(asked.request, {"fault", "accept", "list-faults", "steps", "mode", "meaning", "order",
                              "watch", "times"});
  RunRequest run = run_request_in(asked.request);
  run.program.warn = asked.warn;
  return on_said(asked.catalog, run.program.job, AskedOf::all, [&](const JobRequest& request) {
    const RanProgram ran = ran_of(asked.catalog, run, request);
    if (auto answer = unjudged(ran.asked)) return *std::move(answer);
    return answer_of(ran.sheet.is_good(), run_json(ran.sheet, ran.asked.rules));
  });
}

Answer answer_import(const Asked& asked) {
  allow_source_flags(asked.request, {"strict"});
  const auto strict = asked.request.find("strict");
  const Imported imported = read_of(asked.catalog, source_words_in(asked.request));
  refuse_conflicts(imported);
  const bool lost = strict && strict->flag() && is_lossy(imported);
  return answer_of(imported.missing.empty() && !lost, import_json(imported));
}

/// Where it shall mend, the texts as they are then, and what is still wrong in them.
Answer answer_lint(const Asked& asked) {
  allow_source_flags(asked.request, {"fix"});
  SourceWords words = source_words_in(asked.request);
  std::vector<LintFinding> findings = linted_of(asked.catalog, words);
  SourceTexts mended;
  if (const auto fix = asked.request.find("fix"); fix && fix->flag()) {
    mended = mended_texts(words, findings);
    for (const auto& [name, text] : mended) words.texts[name] = text;
    findings = linted_of(asked.catalog, words);
  }
  return answer_of(!has_error(findings), lint_json(findings, mended));
}

Answer answer_export(const Asked& asked) {
  allow_flags(asked.request, {"to"});
  const std::string dialect = asked.request.at("to").text();
  const JobFlags flags = job_flags_in(asked.request);
  return on_said(asked.catalog, flags, AskedOf::all, [&](const JobRequest& request) {
    const Exported exported = exported_of(asked.catalog, flags, request, dialect);
    return answer_of(exported.unsaid.empty(), export_json(exported));
  });
}

Answer answer_list(const Asked& asked, std::string_view kind) {
  asked.request.allow({"subcommand", "name"});
  Catalogue list = listed_of(asked.catalog, kind, asked.warn);
  if (const auto name = asked.request.find("name")) keep_named(list, name->text());
  return answer_of(true, catalogue_json(list));
}

struct Callable {
  std::string_view name;
  Answer (*answer)(const Asked&);
};
constexpr std::array kCallable = {
    Callable{"model", &answer_model},     Callable{"derive", &answer_derive},
    Callable{"compare", &answer_compare}, Callable{"simulate", &answer_simulate},
    Callable{"plan", &answer_plan},       Callable{"lower", &answer_lower},
    Callable{"check", &answer_check},     Callable{"verify", &answer_verify},
    Callable{"run", &answer_run},         Callable{"import", &answer_import},
    Callable{"lint", &answer_lint},       Callable{"export", &answer_export}};

Answer answered(const Asked& asked) {
  const std::string name = asked.request.at("subcommand").text();
  for (const Callable& one : kCallable) {
    if (one.name == name) return one.answer(asked);
  }
  const std::vector<ListKind> lists = list_kinds();
  if (std::ranges::find(lists, name, &ListKind::name) != lists.end()) {
    return answer_list(asked, name);
  }
  const std::vector<std::string> names = callable();
  throw InputError({.where = asked.request.at("subcommand").where(),
                    .value = name,
                    .problem = "is no subcommand that can be called",
                    .allowed = list_words(names),
                    .nearest = nearest(name, names)});
}

std::string error_document(const InputFault& fault) {
  const Json document{{"error",
                       {{"message", describe(fault)},
                        {"where", fault.where},
                        {"value", fault.value},
                        {"problem", fault.problem},
                        {"allowed", fault.allowed},
                        {"nearest", fault.nearest}}}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::vector<std::string> callable() {
  std::vector<std::string> names;
  names.reserve(kCallable.size());
  for (const Callable& one : kCallable) names.emplace_back(one.name);
  for (const ListKind& one : list_kinds()) names.emplace_back(one.name);
  return names;
}

Answer call(const Catalog& catalog, std::string_view request, const PlanWatch& watch) {
  std::vector<std::string> warnings;
  const auto warn = [&](const std::string& text) { warnings.push_back(text); };
  Answer answer;
  try {
    const Document document{.where = "request", .value = parse_json(request, "request")};
    const Reader reader(document);
    answer = answered({.catalog = catalog, .request = reader, .watch = watch, .warn = warn});
  } catch (const InputError& error) {
    answer = {.status = kWrongInput, .document = error_document(error.fault()), .warnings = {}};
  }
  answer.warnings = std::move(warnings);
  return answer;
}

}  // namespace placet

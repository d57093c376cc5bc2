#include "report/verdict.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/derivation_text.h"
#include "report/json_parts.h"
#include "report/verdict_parts.h"

namespace placet {

std::string_view meaning_of(Condition condition) {
  switch (condition) {
    case Condition::gradient_integrity:
      return "every gradient has each sample once, with the right weight";
    case Condition::state_consistency:
      return "copies of one value are equal, and of the right version";
    case Condition::update_integrity:
      return "numbers that steer the update are complete and alike";
    case Condition::input_integrity:
      return "samples and random numbers are those of the whole batch";
    case Condition::order:
      return "everything is made before it is used, collectives meet";
  }
  return {};
}

std::string plain_name_of(Condition condition) {
  std::string text(name_of(condition));
  for (char& c : text) c = c == '_' ? ' ' : c;
  return text;
}

std::string sentence_of(const Verdict& verdict) {
  const std::string devices =
      fmt::format("{} device{}", verdict.devices, verdict.devices == 1 ? "" : "s");
  if (verdict.equivalent) {
    return "to single-device training (two consecutive steps, " + devices + ")";
  }
  const auto broken = std::ranges::count(verdict.holds, false);
  return fmt::format("to single-device training ({}): {} of {} conditions {}", devices, broken,
                     kConditionCount, broken == 1 ? "fails" : "fail");
}

std::string sentence_of(const Method& m) {
  return m.name + " on " + m.axis + " is not equivalent, because " + m.because +
         "; it keeps this: " + m.keeps + ".";
}

std::string sentence_of(const Verification& run) {
  if (run.stuck) return *run.stuck;
  if (!run.equal) return "the ranks and the reference differ.";
  return fmt::format("{} entries of {} ranks agree with the reference in {} steps, {} seeds.",
                     run.compared, run.ranks, run.steps, run.seeds);
}

std::string cure_sentence(const Cure& cure) {
  if (!cure.change.empty()) {
    const std::string where = cure.found_in.empty() ? "" : " (found in " + cure.found_in + ")";
    return "one change makes it right" + where + ", in " + cure.body;
  }
  return fmt::format("none was found among {} change{} of one instruction{}.", cure.tried,
                     cure.tried == 1 ? "" : "s",
                     cure.cut_short ? "; others were not tried, for the time" : "");
}

std::string index_of(const Witness& witness) {
  return fmt::format("[{}]", fmt::join(witness.index, ","));
}

namespace {

void add_line(std::string& text, const TextStyle& style, std::string_view title,
              const std::string& value) {
  if (value.empty()) return;
  text += "  " + padded(title, 12);
  text += wrapped(style, value, 14);
  text += "\n";
}

/// The choices of the reference by what they are about; "other": those that do not say.
Json choices_object(const std::vector<std::string>& choices) {
  Json reference = Json::object();
  for (const std::string& choice : choices) {
    const std::size_t colon = choice.find(": ");
    if (colon == std::string::npos) {
      reference["other"].push_back(choice);
      continue;
    }
    std::string key = choice.substr(0, colon);
    if (key == "random numbers") key = "dropout";
    for (char& c : key) c = c == ' ' ? '_' : c;
    reference[key] = choice.substr(colon + 2);
  }
  return reference;
}

Json verdict_object(const Verdict& verdict) {
  Json out;
  out["schema"] = "placet.verdict/1";
  out["equivalent"] = verdict.equivalent;
  out["steps_checked"] = verdict.steps;
  out["devices"] = verdict.devices;
  out["reference"] = choices_object(verdict.reference);
  Json conditions;
  for (const Condition c : kConditions) {
    conditions[std::string(name_of(c))] =
        verdict.holds[static_cast<std::size_t>(c)] ? "holds" : "broken";
  }
  out["conditions"] = std::move(conditions);
  Json findings = Json::array();
  for (const CheckFinding& f : verdict.findings) {
    findings.push_back({{"condition", name_of(f.condition)},
                        {"tensor", f.tensor},
                        {"ranks", f.ranks},
                        {"at", f.at},
                        {"expected", f.expected},
                        {"found", f.found},
                        {"difference", f.difference},
                        {"chain", f.chain},
                        {"before", f.before},
                        {"fix", f.fix},
                        {"masked", f.masked}});
  }
  out["findings"] = std::move(findings);
  out["labels"] = verdict.labels;
  if (verdict.cure) {
    const Cure& cure = *verdict.cure;
    out["cure"] = {{"found", !cure.change.empty()},
                   {"body", cure.body},
                   {"change", cure.change},
                   {"tried", cure.tried},
                   {"cut_short", cure.cut_short}};
    if (!cure.found_in.empty()) out["cure"]["found_in"] = cure.found_in;
  }
  return out;
}

std::string cure_text(const Cure& cure, const TextStyle& style) {
  const std::string text = "Cure: " + cure_sentence(cure);
  if (cure.change.empty()) return text + "\n";
  return text + ":\n  " + wrapped(style, cure.change, 2) + "\n";
}

}  // namespace

std::string finding_text(const CheckFinding& f, const TextStyle& style) {
  std::string text = inked(style, Ink::red, plain_name_of(f.condition));
  if (!f.tensor.empty()) text += ": " + f.tensor;
  if (f.masked) text += " (masked)";
  text += "\n";
  add_line(text, style, "what", f.difference);
  add_line(text, style, "where", f.at);
  if (!f.chain.empty() && f.chain.front() != f.at) add_line(text, style, "shows", f.chain.front());
  add_line(text, style, "before", f.before);
  add_line(text, style, "devices", f.ranks);
  add_line(text, style, "required", f.expected);
  add_line(text, style, "found", f.found);
  add_line(text, style, "hint", f.fix);
  return text;
}

namespace {

/// What differs, without the name of the buffer or the gradient at its front: "'own.x' is used ..."
/// is " is used ...", "gradient of x is missing" " is missing".
std::string_view without_name(std::string_view difference) {
  if (difference.starts_with("gradient of ") && difference.ends_with(" is missing")) {
    return difference.substr(difference.rfind(" is "));
  }
  const std::size_t end =
      difference.starts_with('\'') ? difference.find('\'', 1) : std::string_view::npos;
  return end == std::string_view::npos ? difference : difference.substr(end + 1);
}

/// The tensor that a finding speaks of; else the buffer.
std::string subject_of(const CheckFinding& finding) {
  if (!finding.tensor.empty()) return finding.tensor;
  const std::string_view difference = finding.difference;
  return std::string(difference.substr(0, difference.size() - without_name(difference).size()));
}

/// One cause: the same condition, missed in the same way, told with the same hint. Where it shows
/// differs from tensor to tensor.
bool of_one_cause(const CheckFinding& a, const CheckFinding& b) {
  return a.condition == b.condition && without_name(a.difference) == without_name(b.difference) &&
         a.fix == b.fix && a.masked == b.masked && !subject_of(a).empty() && !subject_of(b).empty();
}

/// The first counterexample of each cause, with the tensors that show it too.
std::string findings_of_causes(const std::vector<CheckFinding>& findings, const TextStyle& style) {
  constexpr std::size_t kNamed = 3;
  std::string text;
  for (std::size_t i = 0; i < findings.size(); ++i) {
    const auto is_same = [&](const CheckFinding& other) {
      return of_one_cause(findings[i], other);
    };
    const auto begin = findings.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::any_of(findings.begin(), begin, is_same)) continue;
    text += "\n" + finding_text(findings[i], style);
    std::vector<std::string> others;
    for (auto other = begin + 1; other != findings.end(); ++other) {
      if (is_same(*other)) others.push_back(subject_of(*other));
    }
    if (others.empty()) continue;
    const std::size_t named = std::min(others.size(), kNamed);
    const std::string names = fmt::format(
        "{}", fmt::join(others.begin(), others.begin() + static_cast<std::ptrdiff_t>(named), ", "));
    add_line(text, style, "also",
             fmt::format("and {} more tensor{}: {}{}", others.size(), others.size() == 1 ? "" : "s",
                         names, others.size() > named ? ", ..." : ""));
  }
  return text;
}

}  // namespace

std::string headline(const Verdict& verdict, const TextStyle& style) {
  return (verdict.equivalent ? inked(style, Ink::green, "EQUIVALENT")
                             : inked(style, Ink::red, "NOT EQUIVALENT")) +
         " " + sentence_of(verdict) + "\n\n";
}

std::string verdict_text(const Verdict& verdict, const TextStyle& style) {
  constexpr std::size_t kMeaning = 30;  // columns before what a condition means
  std::string text = headline(verdict, style);
  for (const Condition c : kConditions) {
    const bool holds = verdict.holds[static_cast<std::size_t>(c)];
    text += "  " + padded(plain_name_of(c), 20) +
            inked(style, holds ? Ink::green : Ink::red, holds ? "holds " : "BROKEN") + "  " +
            wrapped(style, meaning_of(c), kMeaning) + "\n";
  }
  text += findings_of_causes(verdict.findings, style);
  if (verdict.cure) text += "\n" + cure_text(*verdict.cure, style);
  if (!verdict.labels.empty()) text += "\nTypes that disagree with what buffers hold:";
  for (const std::string& label : verdict.labels) text += "\n  " + wrapped(style, label, 4);
  if (!verdict.labels.empty()) text += "\n";
  text += "\nThe reference:";
  for (const std::string& choice : verdict.reference) text += "\n  " + choice;
  return text + "\n";
}

std::string unjudged_text(const std::vector<Finding>& rules, const TextStyle& style) {
  return findings_text(rules, style) + inked(style, Ink::red, "No step to judge") +
         ": the placement has no meaning as it is written.\n";
}

std::string unjudged_json(const std::vector<Finding>& rules) {
  return print_json({{"schema", "placet.verdict/1"},
                     {"equivalent", false},
                     {"steps_checked", 0},
                     {"conditions", Json::object()},
                     {"findings", Json::array()},
                     {"rules", findings_json(rules)}});
}

std::string verdict_json(const Verdict& verdict, const std::vector<Method>& methods,
                         const std::vector<Finding>& rules) {
  Json out = verdict_object(verdict);
  out["rules"] = findings_json(rules);
  for (const Method& m : methods) {
    out["methods"].push_back({{"name", m.name},
                              {"axis", m.axis},
                              {"breaks", m.breaks},
                              {"because", m.because},
                              {"keeps", m.keeps}});
  }
  return print_json(out);
}

std::string methods_text(const std::vector<Method>& methods, const TextStyle& style) {
  std::string text;
  for (const Method& m : methods) text += wrapped(style, sentence_of(m), 0) + "\n";
  return text.empty() ? text : text + "\n";
}

std::string verification_text(const Verification& run, const TextStyle& style) {
  std::string text = run.stuck   ? inked(style, Ink::red, "Stuck")
                     : run.equal ? inked(style, Ink::green, "Equal")
                                 : inked(style, Ink::red, "Not equal");
  text += ": " + sentence_of(run) + "\n";
  text += fmt::format("  field              {}\n  error probability  {:.1e}\n", run.field,
                      run.error_probability);
  if (!run.stuck) text += "  order              not judged here, but by placet check\n";
  if (run.witness.empty()) return text;
  std::vector<std::vector<std::string>> rows;
  for (const Witness& w : run.witness) {
    rows.push_back({w.tensor, std::to_string(w.rank), index_of(w), std::to_string(w.step),
                    std::to_string(w.expected), std::to_string(w.found)});
    if (rows.size() == 10) break;
  }
  text += "\n" + table(style,
                       {{.title = "tensor", .may_shrink = true},
                        {.title = "rank", .right = true},
                        {.title = "entry"},
                        {.title = "step", .right = true},
                        {.title = "expected", .right = true},
                        {.title = "found", .right = true}},
                       rows, 2);
  if (run.witness.size() > rows.size()) {
    text += fmt::format("  and {} more\n", run.witness.size() - rows.size());
  }
  return text;
}

namespace {

/// Whether a run of all ranks shows a condition broken. Values that are equal break none; a run
/// that is stuck shows that the order does not hold. Which condition wrong numbers break is the
/// checker's to say.
bool shows_broken(Condition condition, const Verification& run, const Verdict& verdict) {
  if (condition == Condition::order) return run.stuck.has_value();
  if (run.equal || run.stuck) return false;
  return !verdict.holds[static_cast<std::size_t>(condition)];
}

/// What the run says nothing of: the order of streams and events, unless it is stuck; of values
/// that differ, conditions that no finding breaks.
bool is_judged(Condition condition, const Verification& run, const Verdict& verdict) {
  if (shows_broken(condition, run, verdict)) return true;
  return run.equal && condition != Condition::order;
}

}  // namespace

std::string verification_json(const Verification& run, Verdict verdict,
                              const std::vector<Finding>& rules) {
  std::erase_if(verdict.findings,
                [&](const CheckFinding& f) { return !shows_broken(f.condition, run, verdict); });
  Json out = verdict_object(verdict);
  out["rules"] = findings_json(rules);
  out["equivalent"] = run.equal;
  Json open = Json::array();
  for (const Condition c : kConditions) {
    const std::string name(name_of(c));
    out["conditions"][name] = shows_broken(c, run, verdict) ? "broken" : "holds";
    if (!is_judged(c, run, verdict)) open.push_back(name);
  }
  out["not_judged"] = std::move(open);
  out["steps_checked"] = run.steps;
  out["field"] = run.field;
  out["seeds"] = run.seeds;
  out["error_probability"] = run.error_probability;
  Json witness = Json::array();
  for (const Witness& w : run.witness) {
    witness.push_back({{"tensor", w.tensor},
                       {"rank", w.rank},
                       {"index", w.index},
                       {"step", w.step},
                       {"expected", w.expected},
                       {"found", w.found}});
  }
  out["witness"] = std::move(witness);
  if (run.stuck) out["stuck"] = *run.stuck;
  return print_json(out);
}

}  // namespace placet

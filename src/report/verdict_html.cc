// Verdicts as pages.
#include <fmt/format.h>

#include "report/html_parts.h"
#include "report/verdict.h"
#include "report/verdict_parts.h"

namespace placet {
namespace {

std::string verdict_heading(const JudgedProgram& judged, bool good, std::string_view word,
                            const std::string& sentence) {
  std::string facts;
  for (const std::string& fault : judged.faults) facts += fact("fault", code(fault));
  for (const std::string& what : judged.accepted) facts += fact("accepted", escaped(what));
  if (!judged.run_as.empty()) facts += fact("run as", escaped(judged.run_as));
  if (!facts.empty()) facts = "<dl class=\"facts\">" + facts + "</dl>\n";
  return fmt::format("<h1>{}</h1>\n{}<div class=\"card verdict {}\">{} {}</div>\n",
                     escaped(judged.title), facts, good ? "good" : "bad", word, escaped(sentence));
}

std::string methods_html(const std::vector<Method>& methods) {
  std::string text;
  for (const Method& m : methods) text += "<p>" + escaped(sentence_of(m)) + "</p>\n";
  return text.empty() ? text : section("Methods", text);
}

std::string conditions_html(const Verdict& verdict) {
  std::vector<std::vector<std::string>> rows;
  for (const Condition c : kConditions) {
    const bool holds = verdict.holds[static_cast<std::size_t>(c)];
    rows.push_back({plain_name_of(c),
                    fmt::format("<strong class=\"{}\">{}</strong>", holds ? "good" : "bad",
                                holds ? "holds" : "broken"),
                    escaped(meaning_of(c))});
  }
  return section("Conditions", html_table({{"condition"}, {""}, {"it says that"}}, rows));
}

std::string fact_or_none(std::string_view name, const std::string& value, bool is_code) {
  if (value.empty()) return {};
  return fact(name, is_code ? code(value) : escaped(value));
}

std::string chain_html(const std::vector<std::string>& chain) {
  if (chain.size() < 2) return {};
  std::string text;
  for (const std::string& instruction : chain) text += "<li>" + code(instruction) + "</li>\n";
  return folded("From where it shows to where it began", "<ol>" + text + "</ol>\n");
}

std::string counterexample_html(const CheckFinding& f) {
  std::string text =
      fmt::format("<div class=\"finding {}\"><strong>{}</strong> {} <span class=\"soft\">{}</span>",
                  f.masked ? "warning" : "error", plain_name_of(f.condition), code(f.tensor),
                  f.masked ? "masked: not seen in what is trained" : "");
  text += "<dl class=\"facts\">" + fact_or_none("what", f.difference, false) +
          fact_or_none("where", f.at, true) + fact_or_none("before", f.before, true) +
          fact_or_none("devices", f.ranks, false) + fact_or_none("required", f.expected, true) +
          fact_or_none("found", f.found, true) + fact_or_none("hint", f.fix, false) + "</dl>\n";
  return text + chain_html(f.chain) + "</div>\n";
}

std::string counterexamples_html(const Verdict& verdict) {
  std::string text;
  for (const CheckFinding& f : verdict.findings) text += counterexample_html(f);
  return text.empty() ? text : section("Counterexamples", text);
}

std::string verdict_cure_html(const Verdict& verdict) {
  if (!verdict.cure) return {};
  std::string text = "<p>" + escaped(cure_sentence(*verdict.cure)) + "</p>\n";
  if (!verdict.cure->change.empty()) text += "<p>" + code(verdict.cure->change) + "</p>\n";
  return section("Cure", text);
}

std::string list_html(const std::string& title, const std::vector<std::string>& lines) {
  if (lines.empty()) return {};
  std::string text;
  for (const std::string& line : lines) text += "<li>" + escaped(line) + "</li>\n";
  return section(title, "<ul>" + text + "</ul>\n");
}

std::string witnesses_html(const Verification& run) {
  if (run.witness.empty()) return {};
  std::vector<std::vector<std::string>> rows;
  rows.reserve(run.witness.size());
  for (const Witness& w : run.witness) {
    rows.push_back({code(w.tensor), std::to_string(w.rank), index_of(w), std::to_string(w.step),
                    std::to_string(w.expected), std::to_string(w.found)});
  }
  return section("Entries that differ", html_table({{"tensor"},
                                                    {"rank", true},
                                                    {"entry"},
                                                    {"step", true},
                                                    {"expected", true},
                                                    {"found", true}},
                                                   rows));
}

}  // namespace

std::string verdict_page(const JudgedProgram& judged, const Verdict& verdict) {
  return page(
      judged.title,
      verdict_heading(judged, verdict.equivalent,
                      verdict.equivalent ? "EQUIVALENT" : "NOT EQUIVALENT", sentence_of(verdict)) +
          methods_html(judged.methods) + conditions_html(verdict) + counterexamples_html(verdict) +
          verdict_cure_html(verdict) +
          list_html("Types that disagree with what buffers hold", verdict.labels) +
          list_html("The reference", verdict.reference));
}

std::string verification_page(const JudgedProgram& judged, const Verification& run) {
  const std::string facts =
      "<dl class=\"facts\">" + fact("ranks", std::to_string(run.ranks)) +
      fact("steps", std::to_string(run.steps)) + fact("seeds", std::to_string(run.seeds)) +
      (run.stuck ? std::string() : fact("order", "not judged here, but by placet check")) +
      fact("field", escaped(run.field)) +
      fact("error probability", fmt::format("{:.1e}", run.error_probability)) + "</dl>\n";
  return page(judged.title, verdict_heading(judged, run.equal,
                                            run.stuck   ? "Stuck:"
                                            : run.equal ? "Equal:"
                                                        : "Not equal:",
                                            sentence_of(run)) +
                                section("The run", facts) + witnesses_html(run));
}

}  // namespace placet

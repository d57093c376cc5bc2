#include "report/bug.h"

#include <algorithm>

#include "report/json_parts.h"
#include "report/verdict.h"

namespace placet {
namespace {

bool has_words(const CheckFinding& f, const std::vector<std::string>& words) {
  std::string text;
  for (const std::string* part :
       {&f.tensor, &f.ranks, &f.at, &f.expected, &f.found, &f.difference}) {
    text += *part + "\n";
  }
  return std::ranges::all_of(
      words, [&](const std::string& word) { return text.find(word) != std::string::npos; });
}

void add_fact(std::string& text, const TextStyle& style, std::string_view title,
              const std::string& value) {
  if (value.empty()) return;
  text += "  " + padded(title, 12) + wrapped(style, value, 14) + "\n";
}

}  // namespace

std::optional<CheckFinding> finding_with(const Verdict& verdict, std::string_view condition,
                                         const std::vector<std::string>& words) {
  const auto found = std::ranges::find_if(verdict.findings, [&](const CheckFinding& f) {
    return name_of(f.condition) == condition && has_words(f, words);
  });
  return found == verdict.findings.end() ? std::nullopt : std::optional(*found);
}

std::string bug_text(const BugStory& story, const std::optional<CheckFinding>& finding,
                     const TextStyle& style) {
  std::string text = inked(style, Ink::bold, story.name) + "  " + story.title + "\n\n";
  text += wrapped(style, story.story, 0) + "\n\n";
  for (const auto& [title, value] : story.facts) add_fact(text, style, title, value);
  if (!story.not_visible.empty()) {
    add_fact(text, style, "not visible", story.not_visible);
    return text;
  }
  add_fact(text, style, "here", story.faults_mean);
  text += "\n" + inked(style, Ink::faint, "$ " + story.call) + "\n\n";
  return text + (finding ? finding_text(*finding, style) : "Placet does not find it.\n");
}

std::string bug_json(const BugStory& story, const std::optional<Verdict>& verdict) {
  Json out = {{"schema", "placet.bug/1"}, {"name", story.name}, {"title", story.title}};
  out["story"] = story.story;
  for (const auto& [title, value] : story.facts) out[title] = value;
  if (!story.not_visible.empty()) out["not_visible"] = story.not_visible;
  if (!story.call.empty()) out["call"] = story.call;
  if (!story.faults_mean.empty()) out["faults_mean"] = story.faults_mean;
  if (verdict) out["verdict"] = Json::parse(verdict_json(*verdict));
  return out.dump(2) + "\n";
}

}  // namespace placet

#include "report/explanation.h"

#include "report/json_parts.h"

namespace placet {
namespace {

std::string paragraph(const TextStyle& style, const std::string& text) {
  return text.empty() ? text : "  " + wrapped(style, text, 2) + "\n";
}

std::string facts_text(const std::vector<ExplainedFact>& facts, const TextStyle& style) {
  std::string text;
  for (const ExplainedFact& fact : facts) {
    const std::string line = "  " + fact.key + " = " + fact.value;
    text += wrapped(style, line, 4) + "\n";
    if (!fact.source.empty()) {
      text += inked(style, Ink::faint, "      " + wrapped(style, fact.source, 6)) + "\n";
    }
  }
  return text.empty() ? text : "\n" + text;
}

std::string explanation_text(const Explanation& one, const TextStyle& style) {
  std::string text = inked(style, Ink::bold, one.word) + "  (" + one.kind + ")\n";
  text += paragraph(style, one.title) + paragraph(style, one.meaning);
  if (!one.picture.empty()) text += "\n";
  for (const std::string& line : one.picture) text += "    " + line + "\n";
  text += facts_text(one.facts, style);
  if (!one.sources.empty()) text += "\n";
  for (const std::string& source : one.sources) {
    text += inked(style, Ink::faint, "  source: " + wrapped(style, source, 10)) + "\n";
  }
  return text;
}

}  // namespace

std::string explanations_text(const std::vector<Explanation>& explanations,
                              const TextStyle& style) {
  std::string text;
  for (const Explanation& one : explanations) {
    text += (text.empty() ? "" : "\n") + explanation_text(one, style);
  }
  return text;
}

Json explanations_list(const std::vector<Explanation>& explanations) {
  Json list = Json::array();
  for (const Explanation& one : explanations) {
    Json facts = Json::array();
    for (const ExplainedFact& fact : one.facts) {
      facts.push_back({{"key", fact.key}, {"value", fact.value}, {"source", fact.source}});
    }
    list.push_back({{"kind", one.kind},
                    {"word", one.word},
                    {"title", one.title},
                    {"meaning", one.meaning},
                    {"picture", one.picture},
                    {"facts", std::move(facts)},
                    {"sources", one.sources}});
  }
  return list;
}

std::string explanations_json(const std::string& asked,
                              const std::vector<Explanation>& explanations) {
  return print_json({{"schema", "placet.explanation/1"},
                     {"word", asked},
                     {"explanations", explanations_list(explanations)}});
}

}  // namespace placet

// What a word means: a strategy, a mode, a rule, a device, a column ... with its source.
#pragma once

#include <string>
#include <vector>

#include "report/style.h"

namespace placet {

/// Something that is said of it: "memory_gib", "79.11", "measured: ...".
struct ExplainedFact {
  std::string key;
  std::string value;
  std::string source;  // empty: that of the whole

  friend bool operator==(const ExplainedFact&, const ExplainedFact&) = default;
};

struct Explanation {
  std::string kind;  // "device"
  std::string word;  // as the catalogue spells it
  std::string title;
  std::string meaning;               // more than the title; may be empty
  std::vector<std::string> picture;  // lines; may be empty
  std::vector<ExplainedFact> facts;
  std::vector<std::string> sources;

  friend bool operator==(const Explanation&, const Explanation&) = default;
};

/// All meanings of the word that was asked for, one after the other.
std::string explanations_text(const std::vector<Explanation>& explanations, const TextStyle& style);

/// {"schema": "placet.explanation/1", "word": ..., "explanations": [...]} (docs/formats.md).
std::string explanations_json(const std::string& asked,
                              const std::vector<Explanation>& explanations);

}  // namespace placet

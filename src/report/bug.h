// A bug of a real training system with what Placet says of it, for people and as JSON.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "check/check.h"
#include "report/style.h"

namespace placet {

/// What is told of a bug.
struct BugStory {
  std::string name;
  std::string title;
  std::string story;
  std::vector<std::pair<std::string, std::string>> facts;  // "system", "NeMo"
  std::string call;         // of `placet check`; empty: no step program shows it
  std::string faults_mean;  // what the faults do
  std::string not_visible;  // why no step program shows it
};

/// The finding under a condition that has all the words: in its tensor, place, devices,
/// difference, what was required or found.
std::optional<CheckFinding> finding_with(const Verdict& verdict, std::string_view condition,
                                         const std::vector<std::string>& words);

/// The story and, where there is a verdict, the finding that tells the bug.
std::string bug_text(const BugStory& story, const std::optional<CheckFinding>& finding,
                     const TextStyle& style);

/// Schema placet.bug/1; `verdict` as `placet check` prints it.
std::string bug_json(const BugStory& story, const std::optional<Verdict>& verdict);

}  // namespace placet

// A row of a table as what a user would type: `placet simulate ...`, with files for a model and a
// cluster that have no name.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "catalog/catalog.h"
#include "placement/strategy.h"
#include "validate/run_facts.h"
#include "validate/run_jobs.h"
#include "validate/validation.h"

namespace placet {

/// Files that commands name, by text, each once: "model-3.json".
class CommandFiles {
 public:
  /// `folder` stands before names in commands; empty: nothing does.
  explicit CommandFiles(std::string folder) : folder_(std::move(folder)) {}

  /// The path of the file with this text; a new one is named "KIND-N.json".
  std::string path_of(const std::string& kind, const std::string& text);
  /// By name.
  std::map<std::string, std::string> files() const;

 private:
  std::string folder_;
  std::map<std::string, std::string> names_;  // by text
  std::map<std::string, int> counts_;         // by kind
};

/// The command of a row, whose job gives the row's figures.
std::string command_of(const Catalog& catalog, const Vocabulary& vocabulary, const RunPlan& plan,
                       const RunFacts& facts, CommandFiles& files);

}  // namespace placet

// A row of a table as what a user would type: `placet simulate ...`, with files for a model and a
// cluster that have no name.
#pragma once

#include <map>
#include <string>

#include "catalog/catalog.h"
#include "placement/strategy.h"
#include "validate/run_facts.h"
#include "validate/run_jobs.h"
#include "validate/validation.h"

namespace placet {

/// Files that commands name, by text, each once: "model-3.json".
class CommandFiles {
 public:
  /// The name of the file with this text; a new one "KIND-N.json".
  std::string name_of(const std::string& kind, const std::string& text);
  /// By name.
  std::map<std::string, std::string> files() const;

 private:
  std::map<std::string, std::string> names_;  // by text
  std::map<std::string, int> counts_;         // by kind
};

/// The command of a row, whose job gives the row's figures. `folder` stands before names of files.
std::string command_of(const Catalog& catalog, const Vocabulary& vocabulary, const RunPlan& plan,
                       const RunFacts& facts, const std::string& folder, CommandFiles& files);

}  // namespace placet

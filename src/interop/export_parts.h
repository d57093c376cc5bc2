// The steps of an export. For the sources of this folder.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "interop/dialect.h"
#include "interop/export.h"

namespace placet {

/// A key that is written where its conditions hold and all words of its value are known.
struct WrittenKey {
  std::string key;
  std::string value;  // with {words}; empty: the dialect's word of the key, in its spelling
  std::vector<WordCondition> when;
};

/// A file that is written beside the configuration, or is it: "{arguments}" stands for the keys.
struct WrittenFile {
  std::string name;
  std::vector<std::string> lines;  // with {words}
};

/// How a dialect is written: the part `export` of its file.
struct Writing {
  std::string file;                  // the configuration's; empty: the arguments stand in `files`
  std::vector<DerivedWord> derived;  // words of the dialect from those of the job
  std::vector<WrittenKey> keys;      // in the order of the file
  std::vector<WrittenFile> files;
  std::vector<std::string> beside;  // words of the job that the engine takes from elsewhere
};

/// The words of a job that `export` reads: those of a job file, figures of the model, and for each
/// axis NAME its degree ("NAME"), its terms ("NAME-terms"), the first of them ("NAME-first") and
/// what stands in the first's parentheses ("NAME-argument").
Words words_of_job(const Job& job, const std::string& model);

/// The text of a configuration. `settings` are in order; keys of one object need not be neighbours.
std::string configuration_text(SourceForm form, const std::vector<Setting>& settings);

/// The options of a launch line, one a line, with the backslashes that join them.
std::string arguments_text(const std::vector<Setting>& settings);

}  // namespace placet

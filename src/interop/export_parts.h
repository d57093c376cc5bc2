// The steps of an export. For the sources of this folder.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "interop/dialect.h"
#include "interop/export.h"
#include "interop/shell_text.h"

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
  std::string launcher;    // the dialect whose options are the launcher's; empty: none are written
  std::string model_file;  // name of the model's own configuration; empty: the engine reads none
};

/// One dialect as it is read and written.
struct Pen {
  SharedDialect dialect;
  Writing writing;
};

/// Throws InputError for a name that is no dialect of the catalogue.
Pen pen_of(const Catalog& catalog, const std::string& name);

/// The words of a request that a dialect is written from.
Words words_for(const Catalog& catalog, const JobRequest& request, const Writing& writing);

/// The keys that a dialect writes for words, in its order.
std::vector<Setting> settings_of(const Pen& pen, const Words& words);

/// The dialect's spelling of what a word says; none: it has none.
std::optional<std::string> spelling_of(const KeyMeaning& meaning, const std::string& value,
                                       SourceForm form);

/// The files that launch a configuration: `words` say {file} or {arguments} too.
std::vector<ExportedFile> launch_files(const Writing& writing, const Words& words);

/// Those of the words that the engine takes from elsewhere.
Words beside_of(const Writing& writing, const Words& words);

/// Leaves out of words that are said elsewhere those that a file alone says alike.
void leave_out_said(const Imported& alone, Words& beside);

/// What was read leaves open, as differences from the job.
std::vector<JobDifference> missing_of(const Imported& imported);

/// The model's own configuration, where the engine reads one and the request's model has one.
std::vector<ExportedFile> model_files(const Catalog& catalog, const JobRequest& request,
                                      const Writing& writing);

/// The words of a job that `export` reads: those of a job file, figures of the model, and for each
/// axis NAME its degree ("NAME"), its terms ("NAME-terms"), the first of them ("NAME-first") and
/// what stands in the first's parentheses ("NAME-argument").
Words words_of_job(const Job& job, const std::string& model);

/// The text of a configuration. `settings` are in order; keys of one object need not be neighbours.
std::string configuration_text(SourceForm form, const std::vector<Setting>& settings);

/// The options of a launch line, one a line, with the backslashes that join them. Words with
/// characters that mean something to a shell are quoted: it takes each as it is. `words` writes a
/// value (shell_text.h).
std::string arguments_text(const std::vector<Setting>& settings,
                           std::string (*words)(const Setting&) = quoted_words);

}  // namespace placet

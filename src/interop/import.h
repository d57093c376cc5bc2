// Sources to a job: what each key means goes into words, words into the words of a job, and a
// ledger says of every key what became of it (docs/formats.md, section 16).
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "interop/dialect.h"
#include "interop/source.h"

namespace placet {

/// What became of a key.
enum class Fate { understood, no_effect, kept, not_modelled, unknown, unresolved };

/// One key of the sources. Every key stands in the ledger exactly as often as in its source.
struct LedgerLine {
  std::string file;
  Setting setting;
  Fate fate = Fate::unknown;
  std::string what;             // the word it sets, the figure it could change, the nearest key
  std::string word;             // of which the key speaks, whatever became of it
  std::string said;             // what it says of it, where it was understood
  std::size_t turn = 0;         // of its source: the last one that says a word is taken
  std::string other_size = {};  // that the job's model has in place of what is said: "61 of 'm'"
};

/// What mends a line of a source.
struct LintEdit {
  enum class Kind { none, value, key, drop, add };
  Kind kind = Kind::none;
  std::size_t line = 0;
  Setting setting;  // that is edited, or beside which a key is added
  std::string key;  // its new name, or that of the key that is added
  std::string value;

  friend bool operator==(const LintEdit&, const LintEdit&) = default;
};

/// Something wrong in the sources.
struct LintFinding {
  std::string code;      // "PL003"
  std::string name;      // "heads-over-tensor"
  std::string severity;  // error, warning, advice
  std::string file;
  std::size_t line = 0;
  std::string message;
  std::string fix;
  LintEdit edit;  // none where people have to choose
  /// Settings and flags that no run satisfies together, a line each; none: a job may follow.
  std::string conflict;
};

/// A fact that the sources do not hold, and the flag that gives it.
struct MissingFact {
  std::string what;
  std::string flag;
};

struct ImportRequest {
  std::vector<Source> sources;
  std::string dialect;  // empty: guessed from keys
  Words given;          // by flags, which win over sources: "world", "model", "sequence"
};

struct Imported {
  std::vector<std::string> dialects;             // one for each source; empty where none is known
  std::map<std::string, SharedDialect> read_by;  // those dialects, by source's file
  std::vector<LedgerLine> ledger;
  Words words;
  std::set<std::string> unread;   // given words of which no dialect of the sources speaks
  std::set<std::string> unclear;  // words of which something was said that has no counterpart
  /// Words that a launch script leaves to branches of which nobody can tell whether they are taken,
  /// and where these say them.
  std::map<std::string, std::string> undecided;
  Words given;                             // by flags
  std::map<std::string, std::string> job;  // words of a job file
  /// Samples of a step, from the first one on, where the batch grows in the course of a training:
  /// as many jobs, which differ in nothing else. `job` has the last.
  std::vector<long long> batch_ramp;
  std::vector<MissingFact> missing;
  std::vector<LintFinding> findings;                         // by file and line
  std::map<std::string, std::vector<std::string>> comments;  // of the sources, line by line
};

/// "understood", "no effect", ...
std::string name_of(Fate fate);

/// Throws InputError for a dialect that is not known, and for sources of which none is read.
Imported import_sources(const Catalog& catalog, const ImportRequest& request);

/// Throws InputError where settings contradict each other, or what flags give, so that the engine
/// would not start: the message shows all their places.
void refuse_conflicts(const Imported& imported);

/// The text of a job file (TOML). Throws as refuse_conflicts does. Without all facts that a job
/// needs it throws InputError that names the flags.
std::string job_text(const Imported& imported);

/// Whether a key that has an effect was lost: not modelled, unknown or unresolved.
bool is_lossy(const Imported& imported);

}  // namespace placet

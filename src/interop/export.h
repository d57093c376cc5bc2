// A job as an engine's configuration: the dialect's keys read backwards (docs/formats.md, section
// 16). What is written is read again, and is handed out only if it says the job.
#pragma once

#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "catalog/job.h"
#include "interop/diff.h"
#include "interop/import.h"

namespace placet {

struct ExportedFile {
  std::string name, text;
};

struct Exported {
  std::string dialect;
  std::vector<ExportedFile> files;  // the configuration, the launch line, the batch script
  std::map<std::string, std::string> beside;  // words that the engine takes from elsewhere
  /// What the dialect cannot say: `one` is the job's word, `other` the nearest that was written.
  /// None: reading the files back gives the job.
  std::vector<JobDifference> unsaid;
};

/// A configuration that a job was read from, of the dialect in which it is to be written again.
struct Original {
  Source source;
  std::string text;
  std::vector<Source> others;  // read beside it, which are not written
  Words given;                 // what they leave open, as it was given
  JobRequest said;             // the job that they say, before anything was changed
};

/// Dialects that can be written, by name.
std::vector<std::string> writable_dialects(const Catalog& catalog);

/// The full name of a dialect that can be written; without its version the newest. Throws
/// InputError for any other.
std::string writable_name(const Catalog& catalog, const std::string& name);

/// The files that say a job in a dialect: its name, or that without the version for the newest.
/// Where the request names no engine, the one that the files give is taken. Throws InputError for
/// a dialect that is not known or not written, and for a request that is no job.
Exported export_job(const Catalog& catalog, const JobRequest& request, const std::string& dialect);

/// The same over the configuration that the job was read from: what the request says differently is
/// changed in its text, and all else of it stays, whatever the dialect knows of it. Throws
/// InputError, as above, and where a change cannot be made in place.
Exported export_over(const Catalog& catalog, const JobRequest& request, const Original& origin,
                     const std::string& dialect);

}  // namespace placet

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

/// Dialects that can be written, by name.
std::vector<std::string> writable_dialects(const Catalog& catalog);

/// The files that say a job in a dialect: its name, or that without the version for the newest.
/// Where the request names no engine, the one that the files give is taken. Throws InputError for
/// a dialect that is not known or not written, and for a request that is no job.
Exported export_job(const Catalog& catalog, const JobRequest& request, const std::string& dialect);

}  // namespace placet

// Bugs of real training systems as cases: data/bugs (docs/formats.md, docs/bugs.md). Each is a job,
// or a step program, with faults that make the same mistake.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "catalog/job.h"

namespace placet {

/// A mistake that was made, and how it is made here.
struct Bug {
  std::string name;    // "B003"
  std::string title;   // what went wrong, in a few words
  std::string system;  // where it was found
  std::string thread;  // "NVIDIA-NeMo/Speech#7184"
  std::string source;  // its address
  std::string kind;    // of mistake: "missing_collective"
  std::string axes;    // the kinds of parallelism that it takes: "TP+SP"
  std::string state;   // what of the training state is wrong
  std::string story;   // what happened
  /// The case: a job or a program of data/bugs/programs. Neither: no step program shows the bug,
  /// and `not_visible` says why.
  std::optional<JobRequest> job;
  std::filesystem::path program;
  std::vector<std::string> faults;   // as --fault takes them
  std::string faults_mean;           // what they do, in words
  std::string condition;             // that must be broken: "gradient_integrity"
  std::vector<std::string> finding;  // words that the finding under that condition has
  std::string not_visible;

  bool is_visible() const { return not_visible.empty(); }
  friend bool operator==(const Bug&, const Bug&) = default;
};

/// The bug of that name, in capitals or not. Throws InputError with file and key path, and for an
/// unknown name with the nearest one.
Bug load_bug(const Catalog& catalog, const std::string& name);

/// How one calls `placet check` for it: the job with its flags, or the program, and the faults.
std::string call_of(const Bug& bug);

}  // namespace placet

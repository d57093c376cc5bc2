// What two jobs say differently in meaning, whatever their spelling (docs/formats.md, section 16).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "catalog/job.h"
#include "profile/job.h"

namespace placet {

/// A word of a job that means something else in another job.
struct JobDifference {
  std::string word;  // "placement", "seq", "recompute", ...
  std::string one, other;

  friend bool operator==(const JobDifference&, const JobDifference&) = default;
};

/// Differences of meaning, in the order of the words of a job; none: the jobs are alike. Names of
/// axes and of strategies are spelling: "dp=8:fsdp" and "data=8:zero3" are alike.
std::vector<JobDifference> differences_of(const Job& one, const Job& other);

/// A job's recomputation as --recompute takes it: "none", "every=2", "selective=mlp".
std::string recompute_words(const Recompute& recompute);

/// Patterns that commas part: "embed_tokens,*_proj".
std::vector<std::string> patterns_in(const std::string& list);

/// The request that words of a job make, such as those of Imported::job. Throws InputError for
/// numbers that are none; `where` names the words' source.
JobRequest request_of_words(const std::map<std::string, std::string>& words,
                            const std::string& where);

}  // namespace placet

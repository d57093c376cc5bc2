// Numbers of an engine's version that a user sets, as "+NAME=VALUE" behind it: sizes of buckets,
// thresholds, divisors (docs/formats.md, section 7). Inside of catalog/profile_catalog.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "catalog/engine_files.h"

namespace placet {

/// Where a number stands, and what it may be.
struct NumberPlace {
  const EngineFile* file = nullptr;
  std::string title;
  std::int64_t least = 0, greatest = 0;
  std::int64_t standard = 0;  // that the version has by itself
};

/// By name what may be set of a version: what its own file offers, then what those offer that it
/// inherits from. Points into `version`.
std::map<std::string, NumberPlace> numbers_of(EngineFilesView version);

/// "NAME=VALUE" with the value as whole digits: "reduce_bucket_size=5e7" is
/// "reduce_bucket_size=50000000". Throws InputError that speaks of `where` for a name that is none,
/// and for a value that is no whole number or out of range.
std::string plain_number(EngineFilesView version, const std::string& text,
                         const std::string& where);

/// The facts that a plain "NAME=VALUE" says, to be laid one after the other: those of the file,
/// then those under `with` for each of `options`. The value stands in place of "{value}", and its
/// sum or product with N in place of "{value+N}" and "{value*N}".
std::vector<Document> facts_of_number(EngineFilesView version, const std::string& plain,
                                      const std::vector<std::string>& options);

}  // namespace placet

// The facts of one engine file, laid over a profile. Inside of catalog/profile_catalog.
#pragma once

#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "catalog/reader.h"
#include "profile/profile.h"

namespace placet {

/// Every key that an engine file may hold.
std::vector<std::string> profile_keys();

/// Keys of an entry of `options`, and of `given`: its words and facts. The facts of a case may not
/// be what is settled before the job is known: formats, clipping, names of recomputations.
std::vector<std::string> option_keys();
std::vector<std::string> case_keys();

/// Reads all facts of the file `reader` into `profile`: what the file says replaces, the rest
/// stays. Each fact is noted in Profile::facts.
void read_facts(const Catalog& catalog, const Reader& reader, Profile& profile);

/// Keys of the facts that are one value each.
std::vector<std::string> scalar_keys();

/// The parts of read_facts: single values, saved values, and the lists of own terms, messages and
/// refusals.
void read_scalars(const Reader& reader, Profile& profile);
void read_timing(const Reader& reader, Profile& profile);
void read_saves(const Reader& reader, Profile& profile);
void read_policies(const Reader& reader, Profile& profile);
void read_memory(const Reader& reader, Profile& profile);
void read_messages(const Reader& reader, Profile& profile);
void read_refusals(const Reader& reader, Profile& profile);

/// Notes a fact, in place of an earlier one with the same key.
void note_fact(Profile& profile, const std::string& key, const std::string& value,
               const std::string& source);

}  // namespace placet

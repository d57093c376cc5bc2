#include "catalog/profile_facts.h"

#include <algorithm>
#include <functional>

#include "catalog/profile_catalog.h"
#include "catalog/training_catalog.h"
#include "catalog/words.h"
#include "units/error.h"

namespace placet {
namespace {

// A fact with one value: its key and how the value enters the profile.
struct ScalarFact {
  std::string key;
  std::function<void(const Reader&, Profile&)> set;
};

ScalarFact flag_fact(const char* key, bool Profile::*field) {
  return {key, [field](const Reader& value, Profile& p) { p.*field = value.flag(); }};
}

ScalarFact whole_fact(const char* key, std::int64_t Profile::*field, WholeRange range) {
  return {key, [=](const Reader& value, Profile& p) { p.*field = value.whole(range); }};
}

template <class Enum>
ScalarFact word_fact(const char* key, Enum Profile::*field, std::vector<std::string> words) {
  return {key, [=](const Reader& value, Profile& p) {
            p.*field = static_cast<Enum>(value.one_of(words));
          }};
}

ScalarFact loss_fact() {
  return {"loss_workspace", [](const Reader& value, Profile& p) {
            p.loss_workspace.clear();
            const std::vector<std::string> words = internals_of(OpKind::loss);
            for (const Reader& item : value.items()) {
              p.loss_workspace.push_back(static_cast<int>(item.one_of(words)));
            }
          }};
}

const std::vector<ScalarFact>& scalar_facts() {
  static const std::vector<ScalarFact> facts = {
      word_fact("gradient_life", &Profile::gradient_life, {"resting", "growing"}),
      word_fact("scatter_path", &Profile::scatter_path,
                {"reduce_scatter", "all_reduce_and_slice"}),
      flag_fact("layer_cut_defers_sharding", &Profile::layer_cut_defers_sharding),
      word_fact("gradient_grain", &Profile::gradient_grain, {"unit", "everything", "bucket"}),
      word_fact("update_grain", &Profile::update_grain, {"unit", "everything", "bucket"}),
      whole_fact("bucket_elements", &Profile::bucket_elements, {0, 1'000'000'000'000}),
      word_fact("grain", &Profile::grain, {"element", "row", "unit", "everything"}),
      whole_fact("pad_elements", &Profile::pad_elements, {1, 1'000'000'000}),
      whole_fact("prefetch", &Profile::prefetch, {0, 1000}),
      flag_fact("last_unit_stays_gathered", &Profile::last_unit_stays_gathered),
      word_fact("stage_cut", &Profile::stage_cut, {"even", "weighed", "by_cost", "by_cost_late"}),
      whole_fact("embedding_weight", &Profile::embedding_weight, {0, 1000}),
      whole_fact("head_weight", &Profile::head_weight, {0, 1000}),
      word_fact("gathered_input", &Profile::gathered_input, {"shard", "whole"}),
      flag_fact("repeats_kv_heads", &Profile::repeats_kv_heads),
      whole_fact("vocabulary_multiple", &Profile::vocabulary_multiple, {1, 1'000'000}),
      flag_fact("vocabulary_multiple_times_tensor_degree",
                &Profile::vocabulary_multiple_times_tensor_degree),
      loss_fact(),
      flag_fact("fuses_weight_gradient", &Profile::fuses_weight_gradient)};
  return facts;
}

// The formats that an engine uses unless the job says otherwise.
void read_engine_precision(const Catalog& catalog, const Reader& value, Profile& profile) {
  if (value.is_text()) {
    profile.precision = load_precision(catalog, value.text(), value.where()).precision;
    return;
  }
  value.allow({"parameters", "compute", "gather", "gradients", "reduce", "master"});
  std::string text;
  for (const auto& [key, dtype] : value.members()) {
    text += (text.empty() ? "" : ",") + key + "=" + dtype.text();
  }
  if (text.empty()) value.fail("says nothing", "at least one format");
  profile.precision = read_precision(catalog, text, profile.precision, value.where()).precision;
}

}  // namespace

std::vector<std::string> profile_keys() {
  std::vector<std::string> keys = {"schema", "name",      "version", "date",     "title",   "notes",
                                   "inherits", "precision", "saves",   "memory", "messages",
                                   "refusals"};
  for (const ScalarFact& fact : scalar_facts()) keys.push_back(fact.key);
  return keys;
}

void note_fact(Profile& profile, const std::string& key, const std::string& value,
               const std::string& source) {
  const auto it = std::find_if(profile.facts.begin(), profile.facts.end(),
                               [&](const Fact& fact) { return fact.key == key; });
  if (it != profile.facts.end()) {
    *it = {key, value, source};
  } else {
    profile.facts.push_back({key, value, source});
  }
}

void read_facts(const Catalog& catalog, const Reader& reader, Profile& profile) {
  if (const auto title = reader.find("title")) title->text();
  if (const auto notes = reader.find("notes")) {
    for (const Reader& note : notes->items()) note.text();
  }
  if (const auto fact = reader.find("precision")) {
    fact->allow({"value", "source"});
    read_engine_precision(catalog, fact->at("value"), profile);
    note_fact(profile, "precision", fact->at("value").print(), fact->at("source").text());
  }
  for (const ScalarFact& scalar : scalar_facts()) {
    const auto fact = reader.find(scalar.key);
    if (!fact) continue;
    fact->allow({"value", "source"});
    scalar.set(fact->at("value"), profile);
    note_fact(profile, scalar.key, fact->at("value").print(), fact->at("source").text());
  }
  const bool buckets = profile.gradient_grain == MessageGrain::bucket ||
                       profile.update_grain == MessageGrain::bucket;
  if (buckets && profile.bucket_elements == 0) {
    throw InputError({.where = reader.where(),
                      .problem = "messages go in buckets, but the key 'bucket_elements' is missing"});
  }
  read_saves(reader, profile);
  read_memory(reader, profile);
  read_messages(reader, profile);
  read_refusals(reader, profile);
}

}  // namespace placet

#include "call/export_sources.h"

#include <algorithm>
#include <array>

#include "call/sources.h"

namespace placet {
namespace {

SourceWords words_alone(const JobFlags& flags) {
  SourceWords words;
  words.sources = flags.from;
  words.texts = flags.texts;
  words.dialect = flags.dialect;
  words.cluster = flags.cluster;
  words.set = flags.set;
  words.world = flags.world;
  return words;
}

// What flags give of what the sources do not say themselves. What they say and flags say otherwise
// is a change.
SourceWords words_left_open(const JobFlags& flags, const Imported& alone) {
  SourceWords words = words_alone(flags);
  const auto take = [&](const char* word, const std::string& given, std::string& into) {
    const bool is_open = !alone.job.contains(word) || alone.unclear.contains(word);
    if (is_open) into = given;
  };
  take("model", flags.model, words.model);
  take("placement", flags.placements.empty() ? "" : flags.placements.front(), words.placement);
  take("seq", flags.sequence, words.sequence);
  take("global-batch", flags.global_batch, words.global_batch);
  take("micro-batch", flags.micro_batch, words.micro_batch);
  return words;
}

Words given_in(const SourceWords& words) {
  Words given;
  const auto give = [&](const char* word, const std::string& value) {
    if (!value.empty()) given[word] = value;
  };
  give("model", words.model);
  give("placement", words.placement);
  give("seq", words.sequence);
  give("global-batch", words.global_batch);
  give("micro-batch", words.micro_batch);
  for (const std::string& word : words.set) {
    const std::size_t equals = word.find('=');
    give(word.substr(0, equals).c_str(), word.substr(std::min(equals + 1, word.size())));
  }
  return given;
}

}  // namespace

Exported exported_of(const Catalog& catalog, const JobFlags& flags, const JobRequest& request,
                     const std::string& dialect) {
  require_one_placement(flags);
  const auto origin = origin_of(catalog, flags, writable_name(catalog, dialect));
  return origin ? export_over(catalog, request, *origin, dialect)
                : export_job(catalog, request, dialect);
}

std::optional<Original> origin_of(const Catalog& catalog, const JobFlags& flags,
                                  const std::string& dialect) {
  if (flags.from.empty()) return std::nullopt;
  const Imported alone = imported_of(catalog, words_alone(flags));
  const auto own = std::ranges::find(alone.dialects, dialect);
  const auto at = static_cast<std::size_t>(own - alone.dialects.begin());
  if (at >= flags.from.size()) return std::nullopt;
  const SourceWords words = words_left_open(flags, alone);
  const Imported said = imported_of(catalog, words);
  job_text(said);  // refuses what is no job yet, with the flags that complete it
  const ConfigurationText read = source_text_of(flags.texts, flags.from[at]);
  Original origin{.source = parse_source(read.text, read.form, flags.from[at]),
                  .text = read.text,
                  .others = {},
                  .given = given_in(words),
                  .said = request_of_words(said.job, flags.from[at])};
  origin.said.cluster = flags.cluster.empty() ? origin.said.cluster : flags.cluster;
  for (std::size_t i = 0; i < flags.from.size(); ++i) {
    if (i != at) origin.others.push_back(source_of(flags.texts, flags.from[i]));
  }
  return origin;
}

}  // namespace placet

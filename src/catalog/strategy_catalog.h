// Strategies and realisations by name: data/strategies, data/schedules, data/attention
// (docs/formats.md). A strategy file holds components only; what a realisation does (hosting, order
// of work, movements of keys and values) stands in its own file.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "placement/exchange.h"
#include "placement/placement.h"
#include "placement/strategy.h"
#include "profile/job.h"
#include "schedule/schedule.h"

namespace placet {

/// A schedule whose numbers may be arguments of its word: the first of `interleaved(4,16)` is 4.
struct ScheduleTemplate {
  struct Argument {
    enum class Field : std::uint8_t { chunks, group };
    Field field = Field::chunks;
    std::int64_t least = 1;
    std::int64_t most = 1;
    friend bool operator==(const Argument&, const Argument&) = default;
  };
  Schedule schedule;
  std::vector<Argument> arguments;  // in the order of the word's

  friend bool operator==(const ScheduleTemplate&, const ScheduleTemplate&) = default;
};

/// The three folders. Schedules and exchanges by name; the default ones carry out a cut for which a
/// placement names no realisation.
struct StrategyCatalog {
  Vocabulary vocabulary;
  std::map<std::string, ScheduleTemplate> schedules;
  std::map<std::string, AttentionExchange> attention;
  std::map<std::string, Method> methods;  // of strategies with rewrites; no axis
  std::string default_schedule;
  std::string default_attention;

  friend bool operator==(const StrategyCatalog&, const StrategyCatalog&) = default;
};

/// Reads all files. Throws InputError with file and key path for unknown, missing or implausible
/// keys, a word that is given twice, and a folder of realisations without exactly one default. What
/// is wrong in a file of an overlay is kept in the vocabulary, for who uses its word; the default
/// of the strongest layer that has one is the default.
StrategyCatalog load_strategies(const Catalog& catalog);
/// The same, not copied where the catalogue's memory has it.
std::shared_ptr<const StrategyCatalog> shared_strategies(const Catalog& catalog);

/// The schedule that a word with arguments names; without a word the default one.
/// Throws InputError for an argument out of range, or a word that is no schedule.
Schedule resolve_schedule(const StrategyCatalog& strategies,
                          const std::optional<RealisationWord>& word);

/// The exchange that a word names; without a word the default one.
AttentionExchange resolve_attention(const StrategyCatalog& strategies,
                                    const std::optional<RealisationWord>& word);

/// The schedule of a placement's layer axes: that of the outermost one that names it. Throws
/// InputError if two layer axes name different ones.
Schedule schedule_of(const StrategyCatalog& strategies, const Placement& placement);

/// The methods of a placement, axis by axis.
std::vector<Method> methods_of(const StrategyCatalog& strategies, const Placement& placement);

/// The exchanges of a placement, one per axis (that of an axis without a sequence cut is unused).
std::vector<AttentionExchange> attention_of(const StrategyCatalog& strategies,
                                            const Placement& placement);

}  // namespace placet

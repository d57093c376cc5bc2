// Files of strategies, schedules and attention exchanges, told apart by their schema, each beside a
// catalogue of one default schedule and one default exchange.
#include "catalog/strategy_catalog.h"
#include "placement/grammar.h"
#include "target.h"

namespace placet::fuzz {
namespace {

void copy_defaults() {
  const Catalog catalog = find_catalog();
  const StrategyCatalog strategies = load_strategies(catalog);
  const auto copy = [&](const char* folder, const std::string& name) {
    std::filesystem::create_directories(scratch() / folder);
    std::filesystem::copy_file(catalog.root / folder / (name + ".json"),
                               scratch() / folder / (name + ".json"));
  };
  copy("schedules", strategies.default_schedule);
  copy("attention", strategies.default_attention);
}

}  // namespace

std::string_view target_name() { return "strategy"; }

void read_one(std::string_view text) {
  static const bool kCopied = (copy_defaults(), true);
  ensure(kCopied, "the defaults are there");
  const char* folder = "strategies";
  if (text.find("placet.schedule/") != std::string_view::npos) folder = "schedules";
  if (text.find("placet.attention/") != std::string_view::npos) folder = "attention";
  for (const char* other : {"strategies", "schedules", "attention"}) {
    std::filesystem::remove(scratch() / other / "fuzz.json");
  }
  write_scratch(std::string(folder) + "/fuzz.json", text);
  const StrategyCatalog strategies = load_strategies(Catalog{.root = scratch()});
  const Vocabulary& words = strategies.vocabulary;
  const Placement placement = parse_placement("a=4:fuzz", words);
  ensure(parse_placement(print_placement(placement, words), words) == placement,
         "the print of a placement reads as the same placement");
  schedule_of(strategies, placement);
}

}  // namespace placet::fuzz

// The placement grammar: what is read prints, and the print reads as the same placement.
#include "catalog/strategy_catalog.h"
#include "placement/grammar.h"
#include "target.h"

namespace placet::fuzz {

std::string_view target_name() { return "placement"; }

void read_one(std::string_view text) {
  static const StrategyCatalog kStrategies = load_strategies(find_catalog());
  const Vocabulary& words = kStrategies.vocabulary;
  const Placement placement = parse_placement(text, words);
  ensure(parse_placement(print_placement(placement, words), words) == placement,
         "the print of a placement reads as the same placement");
  schedule_of(kStrategies, placement);
  attention_of(kStrategies, placement);
}

}  // namespace placet::fuzz

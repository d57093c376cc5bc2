// Small spaces of real plans: a model of the catalogue cut short, a random cluster with random
// rates, a part of the model frozen, random choices; and every plan of them judged one by one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "catalog/strategy_catalog.h"
#include "profile/choices.h"
#include "search/planner.h"

namespace placet::testing {

/// Of one space.
struct Comparison {
  std::string difference;  // empty: search and enumeration agree
  std::size_t plans = 0;   // that were judged one by one; 0: the space was too large to
  std::size_t fit = 0;     // of the best ones, that are plans
};

class SmallSpaces {
 public:
  SmallSpaces();

  /// Draws a space, searches it, and judges all of its plans.
  Comparison compare(std::uint32_t seed) const;

  /// Compares the spaces of many seeds; the first difference. Asserts that enough of them had
  /// plans that fit.
  std::string compare_all(std::uint32_t first, std::uint32_t last) const;

 private:
  /// A bound that is too high is a difference too.
  Comparison compare_or_say(std::uint32_t seed) const;

  Catalog catalog_;
  StrategyCatalog strategies_;
  Choices choices_;
  std::vector<Job> jobs_;          // one per model
  std::vector<Profile> profiles_;  // of every engine
  std::vector<Optimizer> optimizers_;
};

}  // namespace placet::testing

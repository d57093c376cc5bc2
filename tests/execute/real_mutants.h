// Mutants on real numbers: what the algebraic run tells apart differs in bits or is stuck, what it
// finds equal has the bits of one device, and what only the order of queues breaks shows under some
// order.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "check/check.h"
#include "program/program.h"

namespace placet::testing {

struct RealTally {
  int mutants = 0;
  int refused = 0;      // by the run: functions that mean nothing on numbers
  int apart = 0;        // told apart by the algebraic run
  int apart_found = 0;  // of these, with other bits or stuck
  int orders = 0;       // broken in the order of queues alone
  int orders_found = 0;
  int equal = 0;  // that neither judge finds anything in
  std::vector<std::string> missed;
  std::vector<std::string>
      by_chance;  // missed: numbers that a mask or eight bits leave as they are
  std::vector<std::string> of_nothing;  // equal ones that differ in what is zero over the reals
  std::vector<std::string> missed_orders;
  std::vector<std::string> alarms;  // equal ones that differ
};

/// Whether no order of queues can show it: a mask hides it, or it is gathered where nobody reads
/// it, as the embedding's matrix before its backward.
bool is_hidden(const CheckFinding& finding);

/// Draws mutants of a program and runs each in exact numbers, in step and under four orders of
/// queues, for two steps. At most so many.
void run_mutants(const std::string& name, const Program& program, std::uint32_t seed, int per_kind,
                 RealTally& tally, std::size_t most = std::numeric_limits<std::size_t>::max());

/// Prints the counts and what was missed.
void print_tally(const RealTally& tally);

}  // namespace placet::testing
